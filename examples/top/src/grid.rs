//! A table of texts: drawn with as many columns as fit, from the left, or printed.

use comfy_table::{Table as Text, presets};
use ratatui::{
    Frame,
    layout::{Constraint, Rect},
    style::Modifier,
    symbols::border,
    text::Line,
    widgets::{Block, Cell, Row as Cells, Table, TableState},
};

/// A column: its name, how wide it is at least, and whether its texts are at its right end.
pub(crate) struct Column(pub(crate) &'static str, pub(crate) u16, pub(crate) bool);

pub(crate) struct Grid {
    pub(crate) title: &'static str,
    pub(crate) columns: &'static [Column],
    pub(crate) rows: Vec<Vec<String>>,
}

impl Grid {
    /// Draws the table. The last column that fits is as wide as there is space.
    pub(crate) fn draw(
        &self,
        frame: &mut Frame<'_>,
        area: Rect,
        selected: Option<usize>,
        has_frame: bool,
    ) {
        let beside = if has_frame { 2 } else { 0 } + if selected.is_some() { 2 } else { 0 };
        let inner = area.width.saturating_sub(beside);
        let fits = |count: &usize| {
            self.columns[..*count].iter().map(|column| column.1 + 1).sum::<u16>() <= inner + 1
        };
        let shown = (1..=self.columns.len()).rev().find(fits).unwrap_or(1);
        let columns = &self.columns[..shown];
        let cell = |text: &str, column: &Column| {
            let line = Line::from(text.to_owned());
            Cell::from(if column.2 { line.right_aligned() } else { line })
        };
        let rows = self.rows.iter().map(|row| {
            Cells::from_iter(row.iter().zip(columns).map(|(text, column)| cell(text, column)))
        });
        let header = Cells::from_iter(columns.iter().map(|column| cell(column.0, column)));
        let widths = columns.iter().enumerate().map(|(place, column)| {
            let is_last = place + 1 == shown;
            if is_last { Constraint::Min(column.1) } else { Constraint::Length(column.1) }
        });
        let mut table = Table::new(rows, widths)
            .header(header.style(Modifier::BOLD))
            .highlight_symbol("> ")
            .row_highlight_style(Modifier::REVERSED);
        if has_frame {
            let title = format!(" {} ", self.title);
            table = table.block(Block::bordered().border_set(border::PLAIN).title(title));
        }
        frame.render_stateful_widget(table, area, &mut TableState::new().with_selected(selected));
    }

    /// Returns the table as lines of text.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut table = Text::new();
        table.load_style(presets::NOTHING).set_header(self.columns.iter().map(|column| column.0));
        for row in &self.rows {
            table.add_row(row);
        }
        table.lines().map(|line| line.trim_end().to_owned()).collect()
    }
}
