//! The picture of how late the last runs of a task were.

use std::time::Duration;

use ratatui::{
    Frame,
    layout::Rect,
    style::Color,
    symbols::border,
    widgets::{Block, Sparkline, SparklineBar},
};

use crate::{board::Row, values::short};

/// The bars are on a scale of their own: from a microsecond to ten seconds, by powers of ten.
const SCALE: u64 = 70;

pub(crate) fn draw(frame: &mut Frame<'_>, area: Rect, row: &Row) {
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

/// Green is what the system takes to wake a thread, red is what a user notices.
pub(crate) fn colour_of(late: Duration) -> Color {
    match late.as_millis() {
        0 => Color::Green,
        1..100 => Color::Yellow,
        _ => Color::Red,
    }
}
