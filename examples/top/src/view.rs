//! How it looks, as a function of what there is to see.
//!
//! On a small terminal less is shown: first the picture of the lateness goes, then the counts, the frame, and the
//! columns from the right. Nothing depends on the size being enough.

use punctual::TaskHandle;
use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Color, Stylize},
    text::{Line, Span, Text},
};

use crate::{board::Snapshot, keys::Command, lateness, tasks, values::short};

/// The part that the user looks at.
pub(crate) struct Focus {
    /// The index of a task.
    pub(crate) selected: usize,
    /// The outcome of the last order.
    pub(crate) said: Option<String>,
    pub(crate) is_manual: bool,
}

impl Focus {
    pub(crate) fn obey(&mut self, command: Command, tasks: &[TaskHandle]) {
        let last = tasks.len() - 1;
        match command {
            Command::Up => self.selected = self.selected.saturating_sub(1),
            Command::Down => self.selected = (self.selected + 1).min(last),
            Command::First => self.selected = 0,
            Command::Last => self.selected = last,
            Command::Tell(order) => self.said = Some(order.give(&tasks[self.selected])),
            _ => {}
        }
    }
}

pub(crate) fn draw(frame: &mut Frame<'_>, snapshot: &Snapshot, focus: &Focus) {
    let area = frame.area();
    let rows = u16::try_from(snapshot.rows.len()).unwrap_or(u16::MAX);
    let has_frame = area.height >= 8;
    let counts = match area.height {
        ..6 => 0,
        6..12 => 1,
        _ => 3,
    };
    let framed = rows + 1 + if has_frame { 2 } else { 0 };
    // The help and what was said take a line each.
    let rest = area.height.saturating_sub(counts + framed + 2);
    let sparkline = if rest >= 4 { rest.min(10) } else { 0 };
    let [top, table, bars, said, help] = Layout::vertical([
        Constraint::Length(counts),
        Constraint::Fill(1),
        Constraint::Length(sparkline),
        Constraint::Length(u16::from(area.height >= 4)),
        Constraint::Length(u16::from(area.height >= 3)),
    ])
    .areas(area);
    draw_counts(frame, top, snapshot);
    tasks::draw(frame, table, snapshot, focus, has_frame);
    if let Some(row) = snapshot.rows.get(focus.selected) {
        lateness::draw(frame, bars, row);
    }
    frame.render_widget(said_line(snapshot, focus), said);
    frame.render_widget(help_line(focus, area.width), help);
}

pub(crate) fn tasks_line(snapshot: &Snapshot) -> String {
    let now = &snapshot.counts;
    format!(
        "{} submitted, {} pending, {} active, {} completed, {} failed, {} cancelled",
        now.submitted, now.pending, now.active, now.completed, now.failed, now.cancelled
    )
}

pub(crate) fn runs_line(snapshot: &Snapshot) -> String {
    let now = &snapshot.counts;
    format!(
        "{} {}, {} failed, {} missed; {} of {} workers",
        now.runs,
        if now.runs == 1 { "run" } else { "runs" },
        now.failed_runs,
        now.missed_runs,
        now.pool_size,
        now.core_pool_size
    )
}

fn draw_counts(frame: &mut Frame<'_>, area: Rect, snapshot: &Snapshot) {
    let title = Line::from(vec![
        " punctual ".bold().reversed(),
        format!(" {}, for {}", snapshot.counts.state, short(snapshot.up)).into(),
    ]);
    let lines = [
        title,
        Line::from(format!(" {}", tasks_line(snapshot))),
        Line::from(format!(" {}", runs_line(snapshot))),
    ];
    frame.render_widget(Text::from_iter(lines), area);
}

/// The outcome of the last order, or else the last failure.
fn said_line(snapshot: &Snapshot, focus: &Focus) -> Line<'static> {
    match (&focus.said, &snapshot.last_failure) {
        (Some(said), _) => Line::from(format!(" {said}")),
        (None, Some(failure)) => {
            Line::from(vec![" last failure ".fg(Color::Red), failure.clone().into()])
        }
        (None, None) => Line::default(),
    }
}

fn help_line(focus: &Focus, width: u16) -> Line<'static> {
    let keys =
        [("↑↓", "select"), ("r", "run now"), ("p", "pause"), ("u", "resume"), ("c", "cancel")];
    let step = focus.is_manual.then_some(("space", "+1 s"));
    // It has no room beside the others on a terminal of the usual width; the usage says it, too.
    let jobs = (width > 80).then_some(("2", "jobs"));
    keys_line(keys.into_iter().chain(step).chain([("q", "quit")]).chain(jobs))
}

pub(crate) fn keys_line(
    keys: impl IntoIterator<Item = (&'static str, &'static str)>,
) -> Line<'static> {
    let spans = keys.into_iter().flat_map(|(key, what)| {
        [Span::from(" "), Span::from(key).bold(), Span::from(format!(" {what} "))]
    });
    spans.collect()
}
