//! The loop: look, draw, wait for a key.

use std::{
    error::Error,
    io,
    time::{Duration, Instant},
};

use punctual::CancellationToken;
use ratatui::crossterm::event::{self, Event};

use crate::{
    demo::Demo,
    keys::{Command, Order},
    options::Options,
    screen::Screen,
    view::{self, Focus},
};

/// How often to look, unless an option says otherwise.
const EVERY: Duration = Duration::from_millis(250);
/// How soon a signal is seen.
const PATIENCE: Duration = Duration::from_millis(100);
/// The time by which the space bar moves a manual clock.
const STEP: Duration = Duration::from_secs(1);

pub(crate) struct App<'a> {
    demo: &'a Demo,
    every: Duration,
    end: Option<Instant>,
    stop: &'a CancellationToken,
    focus: Focus,
}

impl<'a> App<'a> {
    pub(crate) fn new(demo: &'a Demo, options: &Options, stop: &'a CancellationToken) -> Self {
        let every = options.every.unwrap_or(EVERY);
        let end = options.run_for.and_then(|time| Instant::now().checked_add(time));
        let focus = Focus { selected: 0, said: None, is_manual: demo.is_manual() };
        Self { demo, every, end, stop, focus }
    }

    pub(crate) fn run(mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        let mut screen = Screen::open()?;
        loop {
            let snapshot = self.demo.snapshot();
            screen.draw(|frame| view::draw(frame, &snapshot, &self.focus))?;
            let Some(command) = self.next_command()? else { return Ok(()) };
            match command {
                Some(Command::Quit) => return Ok(()),
                Some(command) => self.obey(command),
                // It is time to look again, or the terminal has another size.
                None => {}
            }
        }
    }

    /// Waits for a key, for another size of the terminal, or until it is time to look again. Returns `None` when
    /// the program is to end.
    fn next_command(&self) -> io::Result<Option<Option<Command>>> {
        let look = Instant::now().checked_add(self.every);
        loop {
            let now = Instant::now();
            let has_come = |moment: Option<Instant>| moment.is_some_and(|moment| moment <= now);
            if self.stop.is_cancelled() || has_come(self.end) {
                return Ok(None);
            }
            if has_come(look) {
                return Ok(Some(None));
            }
            let nearest = [look, self.end].into_iter().flatten().min();
            let left = nearest.map_or(PATIENCE, |moment| moment - now);
            if !event::poll(left.min(PATIENCE))? {
                continue;
            }
            match event::read()? {
                Event::Key(key) => {
                    if let Some(command) = Command::of(key) {
                        return Ok(Some(Some(command)));
                    }
                }
                Event::Resize(..) => return Ok(Some(None)),
                _ => {}
            }
        }
    }

    fn obey(&mut self, command: Command) {
        let last = self.demo.tasks().len() - 1;
        let selected = self.focus.selected;
        match command {
            Command::Up => self.focus.selected = selected.saturating_sub(1),
            Command::Down => self.focus.selected = (selected + 1).min(last),
            Command::First => self.focus.selected = 0,
            Command::Last => self.focus.selected = last,
            Command::Tell(order) => self.tell(order),
            Command::Step => self.demo.advance(STEP),
            #[allow(clippy::panic, reason = "it is what the key is for")]
            Command::Panic => panic!("you have asked for it"),
            Command::Quit => {}
        }
    }

    fn tell(&mut self, order: Order) {
        self.focus.said = Some(order.give(&self.demo.tasks()[self.focus.selected]));
        // On a manual clock, what is due now is to be seen at once.
        self.demo.advance(Duration::ZERO);
    }
}
