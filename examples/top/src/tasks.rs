//! The table of tasks. It has as many columns as fit, from the left.

use punctual::TaskState;
use ratatui::{
    Frame,
    layout::Rect,
    style::{Color, Modifier, Style},
    symbols::border,
    text::Line,
    widgets::{Block, Cell, Row as Cells, Table, TableState},
};

use crate::{
    board::{Row, Snapshot},
    lateness::colour_of,
    values::{short_or_dash, state},
    view::Focus,
};

pub(crate) const COLUMNS: [&str; 7] =
    ["task", "state", "next run", "late", "took", "runs", "failed"];
const WIDTHS: [u16; 7] = [11, 9, 8, 7, 7, 6, 6];

pub(crate) fn draw(
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

fn style_of(state: TaskState) -> Style {
    match state {
        TaskState::Running => Color::Green.into(),
        TaskState::Paused => Color::Yellow.into(),
        TaskState::Failed => Color::Red.into(),
        TaskState::Completed | TaskState::Cancelled => Modifier::DIM.into(),
        _ => Style::new(),
    }
}
