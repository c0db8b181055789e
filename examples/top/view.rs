//! How it looks, as a function of what there is to see.
//!
//! On a small terminal less is shown: first the picture of the lateness goes, then the counts, the frame, and the
//! columns from the right. Nothing depends on the size being enough.

use std::time::Duration;

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Color, Modifier, Style, Stylize},
    symbols::border,
    text::{Line, Span},
    widgets::{Block, Cell, Row as Cells, Sparkline, SparklineBar, Table, TableState},
};

use punctual::TaskState;

use crate::{
    board::{Row, Snapshot},
    values::{short, short_or_dash, state},
};

pub(crate) const COLUMNS: [&str; 7] =
    ["task", "state", "next run", "late", "took", "runs", "failed"];
const WIDTHS: [u16; 7] = [11, 9, 8, 7, 7, 6, 6];

/// The bars are on a scale of their own: from a microsecond to ten seconds, by powers of ten.
const SCALE: u64 = 70;

/// What the user looks at.
pub(crate) struct Focus {
    /// The index of a task.
    pub(crate) selected: usize,
    /// What came of the last order.
    pub(crate) said: Option<String>,
    pub(crate) is_manual: bool,
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
    draw_tasks(frame, table, snapshot, focus, has_frame);
    if let Some(row) = snapshot.rows.get(focus.selected) {
        draw_lateness(frame, bars, row);
    }
    frame.render_widget(said_line(snapshot, focus), said);
    frame.render_widget(help_line(focus), help);
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
    frame.render_widget(ratatui::text::Text::from_iter(lines), area);
}

fn draw_tasks(
    frame: &mut Frame<'_>,
    area: Rect,
    snapshot: &Snapshot,
    focus: &Focus,
    has_frame: bool,
) {
    let inner = area.width.saturating_sub(if has_frame { 4 } else { 2 });
    // A column more as long as it fits, with a space before it.
    let fits =
        |count: &usize| WIDTHS[..*count].iter().map(|width| width + 1).sum::<u16>() <= inner + 1;
    let columns = (1..=WIDTHS.len()).rev().find(fits).unwrap_or(1);
    let cells = |row: &Row| {
        let cells = [
            Cell::from(row.name.clone()),
            Cell::from(state(row.state)).style(style_of(row.state)),
            right(short_or_dash(row.next_run)),
            right(short_or_dash(row.lateness.last().copied()))
                .style(row.lateness.last().map_or_else(Style::new, |late| colour_of(*late).into())),
            right(short_or_dash(row.run_time)),
            right(row.runs.to_string()),
            right(row.failures.to_string()),
        ];
        Cells::from_iter(cells.into_iter().take(columns))
    };
    let header = COLUMNS.iter().enumerate().take(columns).map(|(index, name)| {
        let line = Line::from(*name);
        Cell::from(if index < 2 { line } else { line.right_aligned() })
    });
    let mut table =
        Table::new(snapshot.rows.iter().map(cells), WIDTHS.iter().copied().take(columns))
            .header(Cells::from_iter(header).style(Modifier::BOLD))
            .highlight_symbol("> ")
            .row_highlight_style(Modifier::REVERSED);
    if has_frame {
        table = table.block(Block::bordered().border_set(border::PLAIN).title(" Tasks "));
    }
    let mut state = TableState::new().with_selected(focus.selected);
    frame.render_stateful_widget(table, area, &mut state);
}

fn right(text: String) -> Cell<'static> {
    Cell::from(Line::from(text).right_aligned())
}

fn draw_lateness(frame: &mut Frame<'_>, area: Rect, row: &Row) {
    if area.height == 0 {
        return;
    }
    let shown = usize::from(area.width.saturating_sub(2));
    let last = &row.lateness[row.lateness.len().saturating_sub(shown)..];
    let title = match last.iter().max() {
        None => format!(" Lateness of {}: it has not run ", row.name),
        Some(most) => {
            let runs = if last.len() == 1 { "run" } else { "runs" };
            format!(" Lateness of {}, {} {runs}: {} at most ", row.name, last.len(), short(*most))
        }
    };
    let bars = last
        .iter()
        .map(|late| SparklineBar::from(height_of(*late)).style(Some(colour_of(*late).into())));
    let block = Block::bordered().border_set(border::PLAIN).title(title);
    frame.render_widget(Sparkline::default().data(bars).max(SCALE).block(block), area);
}

/// How high a bar is: ten for each power of ten above a microsecond.
fn height_of(late: Duration) -> u64 {
    let micros = late.as_secs_f64() * 1e6;
    if micros < 1.0 { 0 } else { ((micros.log10() * 10.0).round() as u64).clamp(1, SCALE) }
}

/// Green is what the system takes to wake a thread, red is what somebody notices.
fn colour_of(late: Duration) -> Color {
    match late.as_millis() {
        0 => Color::Green,
        1..100 => Color::Yellow,
        _ => Color::Red,
    }
}

fn style_of(state: TaskState) -> Style {
    match state {
        TaskState::Running => Color::Green.into(),
        TaskState::Paused => Color::Yellow.into(),
        TaskState::Failed => Color::Red.into(),
        TaskState::Completed | TaskState::Cancelled => Modifier::DIM.into(),
        _ => Style::new(),
    }
}

/// What came of the last order, or else the last failure.
fn said_line(snapshot: &Snapshot, focus: &Focus) -> Line<'static> {
    match (&focus.said, &snapshot.last_failure) {
        (Some(said), _) => Line::from(format!(" {said}")),
        (None, Some(failure)) => {
            Line::from(vec![" last failure ".fg(Color::Red), failure.clone().into()])
        }
        (None, None) => Line::default(),
    }
}

fn help_line(focus: &Focus) -> Line<'static> {
    let keys =
        [("↑↓", "select"), ("r", "run now"), ("p", "pause"), ("u", "resume"), ("c", "cancel")];
    let step = focus.is_manual.then_some(("space", "+1 s"));
    let keys = keys.into_iter().chain(step).chain([("q", "quit")]);
    let spans = keys.flat_map(|(key, what)| {
        [Span::from(" "), Span::from(key).bold(), Span::from(format!(" {what} "))]
    });
    spans.collect()
}
