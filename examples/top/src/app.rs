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
    jobs_page::JobsPage,
    keys::{Command, Page},
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
    page: Page,
    database: Option<String>,
    /// None until it is looked at.
    jobs: Option<JobsPage>,
}

impl<'a> App<'a> {
    pub(crate) fn new(demo: &'a Demo, options: &Options, stop: &'a CancellationToken) -> Self {
        let every = options.every.unwrap_or(EVERY);
        let end = options.run_for.and_then(|time| Instant::now().checked_add(time));
        let focus = Focus { selected: 0, said: None, is_manual: demo.is_manual() };
        let page = if options.has_jobs { Page::Jobs } else { Page::Tasks };
        let database = options.database.clone();
        Self { demo, every, end, stop, focus, page, database, jobs: None }
    }

    pub(crate) fn run(mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        // A database is asked before there is a screen: if it cannot be, that is an error like any other.
        self.open_jobs()?;
        let mut screen = Screen::open()?;
        loop {
            self.open_jobs()?;
            self.draw(&mut screen)?;
            let Some(command) = self.next_command()? else { return Ok(()) };
            match command {
                Some(Command::Quit) => return Ok(()),
                Some(command) => self.obey(command),
                // It is time to look again, or the terminal has another size.
                None => {}
            }
        }
    }

    /// Opens the queue when its page is looked at for the first time.
    fn open_jobs(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        if self.page == Page::Jobs && self.jobs.is_none() {
            self.jobs = Some(JobsPage::open(self.demo, self.database.as_deref())?);
        }
        Ok(())
    }

    fn draw(&mut self, screen: &mut Screen) -> io::Result<()> {
        match &mut self.jobs {
            Some(jobs) if self.page == Page::Jobs => {
                jobs.look();
                screen.draw(|frame| jobs.draw(frame))
            }
            _ => {
                let snapshot = self.demo.snapshot();
                screen.draw(|frame| view::draw(frame, &snapshot, &self.focus))
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
                    if let Some(command) = Command::of(key, self.page) {
                        return Ok(Some(Some(command)));
                    }
                }
                Event::Resize(..) => return Ok(Some(None)),
                _ => {}
            }
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Show(page) => self.page = page,
            Command::Step => self.advance(STEP),
            #[allow(clippy::panic, reason = "it is what the key is for")]
            Command::Panic => panic!("you have asked for it"),
            command => {
                match &mut self.jobs {
                    Some(jobs) if self.page == Page::Jobs => jobs.obey(command),
                    _ => self.focus.obey(command, self.demo.tasks()),
                }
                // On a manual clock, what is due now is to be seen at once.
                self.advance(Duration::ZERO);
            }
        }
    }

    fn advance(&mut self, span: Duration) {
        self.demo.advance(span);
        if let Some(jobs) = self.jobs.as_mut().filter(|_| self.demo.is_manual()) {
            jobs.is_outdated();
        }
    }
}
