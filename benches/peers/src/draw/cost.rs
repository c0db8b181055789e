//! The cost of scheduling and cancelling, against the number of pending tasks: W1. Each line is named at its end.

use std::path::Path;

use anyhow::Result;
use plotters::prelude::*;

use super::{
    labels::keep_apart,
    style::{self, Area, FAINT, GRID, LARGE, SMALL, Subject, TEXT, beginning, bold, text},
};
use crate::{
    results::{Figure, Results},
    roster::{OURS, Peer},
};

const PENDING: [u64; 4] = [1_000, 10_000, 100_000, 1_000_000];

/// The height of a panel, with the space before the next one.
const PANEL: u32 = 464;
const BELOW: u32 = 24;

/// The space for the names behind the lines, which holds the longest in the wide fonts of Debian.
const NAMES: u32 = 284;

/// The points of one peer.
struct Line {
    peer: &'static Peer,
    colour: RGBColor,
    points: Vec<(f64, f64)>,
}

pub(super) fn draw(results: &Results, file: &Path) -> Result<()> {
    let panels = [(1, "one thread submits"), (2, "two threads submit")];
    let panels = panels.map(|(threads, title)| (lines(results, threads), title));
    let all = panels.iter().flat_map(|(lines, _)| lines).flat_map(|line| &line.points);
    let costs = all.map(|&(_, cost)| cost);
    let Some((least, most)) = range(costs) else { return Ok(()) };
    let notes = notes();
    let subject = Subject {
        title: "What it costs to schedule a task and cancel it",
        description: "For each peer a line: the cost of both calls against the number of pending tasks.",
        notes: &notes,
    };
    style::picture(file, 2 * PANEL, &subject, |area| {
        for ((lines, title), area) in panels.iter().zip(area.split_evenly((2, 1))) {
            panel(&area, title, lines, least..most)?;
        }
        Ok(())
    })
}

fn notes() -> [String; 2] {
    let others = style::peers().filter(|peer| peer.is_executor && style::colour(peer).is_none());
    let others: Vec<_> = others.map(|peer| peer.label).collect();
    [
        "Time for both calls together, medians; lower is better. Both axes are logarithmic: equal distances are \
         equal ratios."
            .to_owned(),
        format!("Measured too, and in the tables: {}.", others.join("; ")),
    ]
}

fn lines(results: &Results, threads: u64) -> Vec<Line> {
    let cost = |peer: &Peer, pending: u64| {
        let figure = Figure::new("w1", "ns_per_op", &[("P", pending), ("T", threads)]);
        Some((pending as f64, results.get(peer.name, &figure)?.median))
    };
    let lines = style::peers().filter_map(|peer| {
        let points = PENDING.into_iter().filter_map(|pending| cost(peer, pending)).collect();
        Some(Line { peer, colour: style::colour(peer)?, points })
    });
    lines.filter(|line| !line.points.is_empty()).collect()
}

/// The axis runs from one tick to another, around all costs.
fn range(costs: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let (least, most) = costs.fold((f64::MAX, 0.0_f64), |(l, m), cost| (l.min(cost), m.max(cost)));
    let below = ticks().take_while(|tick| *tick <= least).last()?;
    Some((below, ticks().find(|tick| *tick >= most)?))
}

fn panel(area: &Area<'_>, title: &str, lines: &[Line], costs: std::ops::Range<f64>) -> Result<()> {
    let ticks: Vec<_> = ticks().filter(|&t| costs.start <= t && t <= costs.end).collect();
    let pending = PENDING.map(|pending| pending as f64);
    let mut chart = ChartBuilder::on(area)
        .margin_top(style::panel_title(area, title)?)
        .margin_bottom(BELOW)
        .margin_left(4)
        .margin_right(NAMES)
        .x_label_area_size(56)
        .y_label_area_size(76)
        .build_cartesian_2d(
            (pending[0]..pending[3]).log_scale().with_key_points(pending.to_vec()),
            costs.log_scale().with_key_points(ticks),
        )?;
    chart
        .configure_mesh()
        .max_light_lines(0)
        .bold_line_style(GRID)
        .axis_style(FAINT)
        .label_style(text(SMALL, FAINT))
        .x_desc("pending tasks")
        .axis_desc_style(text(SMALL, FAINT))
        .x_label_formatter(&|&tasks| grouped(tasks))
        .y_label_formatter(&|&nanos| duration(nanos))
        .draw()?;
    for line in lines {
        let width = if line.peer.name == OURS { 4 } else { 2 };
        let style = line.colour.stroke_width(width);
        let points = || line.points.iter().copied();
        chart.draw_series(LineSeries::new(points(), style))?;
        let dot = |point| Circle::new(point, width + 1, line.colour.filled());
        chart.draw_series(points().map(dot))?;
    }
    let ends = lines.iter().filter_map(|line| {
        let (x, y) = chart.backend_coord(line.points.last()?);
        Some(End { line, at: (x, y), label: y })
    });
    let (_, y_range) = chart.plotting_area().get_pixel_range();
    name_lines(area, ends.collect(), y_range)
}

/// The end of a line, and the height of its name.
struct End<'a> {
    line: &'a Line,
    at: (i32, i32),
    label: i32,
}

/// Writes the names at the right, in the order of the lines, each connected with its line. The
/// positions are those of the whole picture.
fn name_lines(
    area: &Area<'_>,
    mut ends: Vec<End<'_>>,
    y_range: std::ops::Range<i32>,
) -> Result<()> {
    ends.sort_by_key(|end| end.label);
    let mut labels: Vec<_> = ends.iter().map(|end| end.label).collect();
    keep_apart(&mut labels, 20, y_range.start, y_range.end);
    let (left, top) = area.get_base_pixel();
    for (End { line: Line { peer, colour, .. }, at: (x, y), .. }, label) in
        ends.into_iter().zip(labels)
    {
        let (x, y, label) = (x - left, y - top, label - top);
        area.draw(&PathElement::new([(x + 5, y), (x + 20, label)], colour.stroke_width(2)))?;
        let style = if peer.name == OURS { bold(LARGE, *colour) } else { text(SMALL, TEXT) };
        area.draw_text(peer.label, &beginning(style), (x + 24, label))?;
    }
    Ok(())
}

/// 1, 2, 5, 10, 20, …
fn ticks() -> impl Iterator<Item = f64> {
    (0..8).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(power)))
}

fn duration(nanos: f64) -> String {
    if nanos < 1000.0 { format!("{nanos} ns") } else { format!("{} µs", nanos / 1000.0) }
}

/// Such as `100,000`.
fn grouped(tasks: f64) -> String {
    let digits = format!("{tasks:.0}");
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{duration, grouped};

    #[test]
    fn labels_are_short() {
        assert_eq!(grouped(1000.0), "1,000");
        assert_eq!(grouped(1_000_000.0), "1,000,000");
        assert_eq!(duration(500.0), "500 ns");
        assert_eq!(duration(2000.0), "2 µs");
    }
}
