//! How late tasks start: W4.

use std::path::Path;

use anyhow::Result;
use plotters::prelude::*;

use super::style::{
    self, Area, FAINT, LARGE, OTHERS, OUR_COLOUR, SMALL, Subject, TEXT, beginning, bold, ending,
    text,
};
use crate::{
    results::{Figure, Results},
    roster::{MACHINE, OURS, Peer},
};

/// The space between a panel and the next one.
const BELOW: u32 = 24;

/// The space for the names before the bars, which holds the longest in the wide fonts of Debian.
const NAMES: u32 = 260;

/// One peer; microseconds.
struct Bar {
    peer: &'static Peer,
    p50: f64,
    p99: f64,
}

impl Bar {
    fn colour(&self) -> RGBColor {
        if self.peer.name == OURS { OUR_COLOUR } else { OTHERS }
    }
}

pub(super) fn draw(results: &Results, file: &Path) -> Result<()> {
    let panels = [
        ("w4-idle", "100 tasks a second; the processor idles in between"),
        ("w4-loaded", "10,000 tasks a second"),
    ];
    let panels = panels.map(|(step, title)| (bars(results, step), title));
    let rows = panels.iter().map(|(bars, _)| bars.len()).max().unwrap_or(0);
    if rows == 0 {
        return Ok(());
    }
    let bare = results.get(MACHINE, &Figure::new("limits", "wait_1ns_p50", &[]));
    let mut bare = bare.map(|spread| spread.median);
    let notes = notes(bare);
    let subject = Subject {
        title: "How late a task starts, at random instants",
        description: "For each peer two bars: the median of the lateness, and the 99th percentile.",
        notes: &notes,
    };
    let height = 2 * (112 + BELOW + 28 * rows as u32);
    style::picture(file, height, &subject, |area| {
        // Only the first panel shows the bare wait for the same instants.
        for ((bars, title), area) in panels.iter().zip(area.split_evenly((2, 1))) {
            panel(&area, title, bars, bare.take())?;
        }
        Ok(())
    })
}

fn notes(bare: Option<f64>) -> Vec<String> {
    let mut notes = vec![
        "Strong: the median. Pale: the 99th percentile. Medians of the rounds; lower is better. An arrow marks a bar \
         that is cut off."
            .to_owned(),
        format!("Not comparable, and left out: {}.", style::disqualified().join("; ")),
    ];
    notes.extend(bare.map(|bare| {
        format!(
            "Dashed line: a bare timed wait for the same instants, with the finest timer of the kernel: {}.",
            short(bare)
        )
    }));
    notes
}

/// The best first.
fn bars(results: &Results, step: &'static str) -> Vec<Bar> {
    let get = |peer, metric| Some(results.get(peer, &Figure::new(step, metric, &[]))?.median);
    let bar = |peer: &'static Peer| {
        Some(Bar { peer, p50: get(peer.name, "late_p50")?, p99: get(peer.name, "late_p99")? })
    };
    let peers = style::peers().filter(|peer| peer.disqualified.is_none());
    let mut bars: Vec<_> = peers.filter_map(bar).collect();
    bars.sort_by(|a, b| a.p50.total_cmp(&b.p50));
    bars
}

/// Bars longer than this are cut, so that the short ones can be told apart.
fn limit(bars: &[Bar]) -> f64 {
    let mut ends: Vec<f64> = bars.iter().map(|bar| bar.p99).collect();
    ends.sort_by(f64::total_cmp);
    ends.get(ends.len() / 2).map_or(1.0, |median| median * 1.6)
}

fn panel(area: &Area<'_>, title: &str, bars: &[Bar], bare: Option<f64>) -> Result<()> {
    let limit = limit(bars);
    let rows = bars.len() as f64;
    let mut chart = ChartBuilder::on(area)
        .margin_top(style::panel_title(area, title)?)
        .margin_bottom(BELOW)
        .margin_left(8)
        .margin_right(150)
        .x_label_area_size(48)
        .y_label_area_size(NAMES)
        .build_cartesian_2d(0.0..limit, rows..0.0)?;
    chart
        .configure_mesh()
        .disable_mesh()
        .disable_y_axis()
        .axis_style(FAINT)
        .label_style(text(SMALL, FAINT))
        .x_labels(3)
        .x_label_formatter(&|micros| format!("{micros:.0} µs"))
        .draw()?;
    for (row, bar) in bars.iter().enumerate() {
        let (top, bottom) = (row as f64 + 0.16, row as f64 + 0.84);
        for (value, style) in [(bar.p99, bar.colour().mix(0.35)), (bar.p50, bar.colour().mix(1.0))]
        {
            let corners = [(0.0, top), (value.min(limit), bottom)];
            chart.draw_series([Rectangle::new(corners, style.filled())])?;
        }
    }
    if let Some(bare) = bare {
        let line = [(bare, 0.0), (bare, rows)];
        chart.draw_series(DashedLineSeries::new(line, 5, 4, TEXT.stroke_width(1)))?;
    }
    for (row, bar) in bars.iter().enumerate() {
        let at = |value| chart.backend_coord(&(value, row as f64 + 0.5));
        name_bar(area, bar, limit, at(0.0), at(bar.p99.min(limit)))?;
    }
    Ok(())
}

/// Writes the name before the bar, and the values behind it. The positions are those of the whole
/// picture.
fn name_bar(
    area: &Area<'_>,
    bar: &Bar,
    limit: f64,
    start: (i32, i32),
    end: (i32, i32),
) -> Result<()> {
    let (left, top) = area.get_base_pixel();
    let style = if bar.peer.name == OURS { bold(LARGE, OUR_COLOUR) } else { text(SMALL, TEXT) };
    area.draw_text(bar.peer.label, &ending(style.clone()), (start.0 - left - 8, start.1 - top))?;
    let arrow = if bar.p99 > limit { "▸ " } else { "" };
    let values = format!("{arrow}{} / {}", short(bar.p50), short(bar.p99));
    area.draw_text(&values, &beginning(style), (end.0 - left + 6, end.1 - top))?;
    Ok(())
}

/// Microseconds, or milliseconds where these would be long.
fn short(micros: f64) -> String {
    if micros < 999.5 { format!("{micros:.0} µs") } else { format!("{:.1} ms", micros / 1000.0) }
}
