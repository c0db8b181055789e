//! The page of jobs: which one is selected, and how the page is drawn and printed.
//!
//! The selection holds on to a job and not to a line: jobs come and go. When it has gone the one in its place is selected.

use std::{error::Error, time::Duration};

use punctual_jobs::JobId;
use ratatui::{
    Frame,
    layout::{Constraint, Layout},
    style::{Color, Stylize},
    text::Line,
};

use crate::{
    demo::Demo,
    feed::Feed,
    job_rows::{jobs, kinds, schedules},
    keys::Command,
    values::short,
    view::keys_line,
};

/// How many lines kinds and schedules have at most.
const ROWS: usize = 5;
/// How long printing waits for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) struct JobsPage {
    feed: Feed,
    is_manual: bool,
    selected: usize,
    held: Option<JobId>,
}

impl JobsPage {
    pub(crate) fn open(
        demo: &Demo,
        database: Option<&str>,
    ) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let feed = demo.open_queue(database)?;
        Ok(Self { feed, is_manual: demo.is_manual(), selected: 0, held: None })
    }

    /// Takes in what the queue has answered, and asks it from time to time.
    pub(crate) fn look(&mut self) {
        self.feed.look();
        let jobs = &self.feed.answer.jobs;
        let place = jobs.iter().position(|job| Some(job.id) == self.held);
        self.select(place.unwrap_or(self.selected));
    }

    fn select(&mut self, place: usize) {
        let jobs = &self.feed.answer.jobs;
        self.selected = place.min(jobs.len().saturating_sub(1));
        self.held = jobs.get(self.selected).map(|job| job.id);
    }

    pub(crate) fn obey(&mut self, command: Command) {
        match command {
            Command::Up => self.select(self.selected.saturating_sub(1)),
            Command::Down => self.select(self.selected + 1),
            Command::First => self.select(0),
            Command::Last => self.select(usize::MAX),
            Command::TellJob(order) => match self.held {
                Some(job) => self.feed.order(order, job),
                None => self.feed.said = Some("there is no job".to_owned()),
            },
            _ => {}
        }
    }

    /// Has the next look ask: the clock was moved.
    pub(crate) fn is_outdated(&mut self) {
        self.feed.is_outdated();
    }

    pub(crate) fn draw(&self, frame: &mut Frame<'_>) {
        let area = frame.area();
        let has_frame = area.height >= 8;
        let (kinds, schedules) = (kinds(&self.feed), schedules(&self.feed));
        let lines = |rows: usize, least: u16| {
            let is_shown = rows > 0 && area.height >= least;
            if is_shown { u16::try_from(rows.min(ROWS)).unwrap_or(0) + 3 } else { 0 }
        };
        let [top, above, below, middle, said, help] = Layout::vertical([
            Constraint::Length(u16::from(area.height >= 6)),
            Constraint::Length(lines(kinds.rows.len(), 16)),
            Constraint::Fill(1),
            Constraint::Length(lines(schedules.rows.len(), 22)),
            Constraint::Length(u16::from(area.height >= 4)),
            Constraint::Length(u16::from(area.height >= 3)),
        ])
        .areas(area);
        frame.render_widget(self.title(), top);
        kinds.draw(frame, above, None, true);
        jobs(&self.feed).draw(frame, below, Some(self.selected), has_frame);
        schedules.draw(frame, middle, None, true);
        let told = self.feed.said.as_ref().map(|said| format!(" {said}"));
        frame.render_widget(Line::from(told.unwrap_or_default()), said);
        let keys = [("↑↓", "select"), ("r", "retry"), ("d", "discard"), ("x", "remove")];
        let step = self.is_manual.then_some(("space", "+1 s"));
        let rest = [("1", "tasks"), ("q", "quit")];
        frame.render_widget(keys_line(keys.into_iter().chain(step).chain(rest)), help);
    }

    fn title(&self) -> Line<'static> {
        let silence = self.feed.silence().map(|silence| format!(", {silence}"));
        Line::from(vec![
            " punctual ".bold().reversed(),
            format!(" jobs {}", self.feed.place).into(),
            silence.unwrap_or_default().fg(Color::Red),
        ])
    }

    /// Returns the page as text, as it is now.
    pub(crate) fn text(&mut self, up: Duration) -> String {
        self.feed.look_now(PATIENCE);
        let silence = self.feed.silence().map(|silence| format!(", {silence}"));
        let place = self.feed.place;
        let head = format!("after {}: jobs {place}{}", short(up), silence.unwrap_or_default());
        let grids = [kinds(&self.feed), jobs(&self.feed), schedules(&self.feed)];
        let some = grids.iter().filter(|grid| !grid.rows.is_empty());
        let lines = some.flat_map(|grid| grid.lines());
        std::iter::once(head).chain(lines).collect::<Vec<_>>().join("\n")
    }
}
