//! The state of the goals: a row for each.

use super::{
    goals::{Bound, Goal, Yardstick, goals},
    markdown::table,
    number::{number, quantity, with_range},
    verdict::{Verdict, judge},
};
use crate::{
    results::{Figure, Results},
    roster::OURS,
};

fn goals_met(verdicts: &[Option<Verdict>]) -> String {
    let count = |wanted: Option<bool>| {
        verdicts.iter().filter(|verdict| verdict.map(|v| v.is_met) == wanted).count()
    };
    let (met, missed, open) = (count(Some(true)), count(Some(false)), count(None));
    format!("{met} met, {missed} missed, {open} open, because something was not measured.")
}

pub(super) fn table_of_goals(results: &Results) -> String {
    let goals = goals();
    let verdicts: Vec<_> = goals.iter().map(|goal| judge(results, OURS, goal)).collect();
    let head = ["", "metric", "ours (min–max)", "against", "theirs", "ratio", "goal", ""];
    let rows = goals.iter().zip(&verdicts).map(|(goal, verdict)| row(results, goal, verdict));
    format!("{}\n\n{}", goals_met(&verdicts), table(&head, rows))
}

fn row(results: &Results, goal: &Goal, verdict: &Option<Verdict>) -> Vec<String> {
    let figure = &goal.figure;
    let unit = results.unit(figure);
    let (sign, bound) = match goal.bound {
        Bound::AtMost(bound) => ("≤", bound),
        Bound::AtLeast(bound) => ("≥", bound),
    };
    let bound = match goal.measured_by {
        Yardstick::Unit => quantity(bound, unit),
        _ => number(bound),
    };
    let mut row = vec![title(figure), format!("`{}`", figure.metric)];
    match verdict {
        Some(verdict) => row.extend(verdict_cells(results, goal, verdict, unit)),
        None => {
            let ours = results.get(OURS, figure).map(|spread| with_range(spread, unit));
            row.extend([ours.unwrap_or_default(), String::new(), String::new(), String::new()]);
        }
    }
    row.push(format!("{sign} {bound}"));
    let end = verdict.map_or("open", |v| if v.is_met { "met" } else { "**missed**" });
    row.push(end.to_owned());
    row
}

fn verdict_cells(results: &Results, goal: &Goal, verdict: &Verdict, unit: &str) -> [String; 4] {
    let ours = with_range(verdict.ours, unit);
    let Some((name, theirs)) = verdict.theirs else {
        return [ours, String::new(), String::new(), String::new()];
    };
    let (who, their_unit) = match &goal.measured_by {
        Yardstick::One(_, figure) if *figure != goal.figure => {
            (format!("{name}, {} `{}`", title(figure), figure.metric), results.unit(figure))
        }
        _ => (name.to_owned(), unit),
    };
    [ours, who, quantity(theirs.median, their_unit), number(verdict.reached)]
}

/// Such as `W1 P=1000 T=2`.
fn title(figure: &Figure) -> String {
    let mut title = match figure.step.strip_prefix('w') {
        Some(rest) => format!("W{}", rest.replace('-', " ")),
        None => figure.step.to_owned(),
    };
    for (key, value) in &figure.params {
        title += &format!(" {key}={value}");
    }
    title
}
