//! The circumstances of the measurement: the machine and its limits, its other load, and failures.

use std::collections::BTreeMap;

use super::{markdown::table, number::quantity};
use crate::{
    results::{Child, Figure, Results, Spread},
    roster::{MACHINE, Peer, ROSTER},
};

pub(super) fn host(results: &Results) -> String {
    let facts = &results.host.facts;
    facts.iter().map(|(name, value)| format!("* {name}: {value}\n")).collect()
}

pub(super) fn machine(results: &Results) -> String {
    let mut values = BTreeMap::<_, (Vec<f64>, &str)>::new();
    for sample in &results.samples {
        let measurement = &sample.measurement;
        if measurement.peer == MACHINE {
            let entry = values.entry(&measurement.metric).or_default();
            entry.0.push(measurement.value);
            entry.1 = &measurement.unit;
        }
    }
    if values.is_empty() {
        return "Not measured.".to_owned();
    }
    let rows = values.into_iter().filter_map(|(metric, (values, unit))| {
        let Spread { min, median, max } = Spread::of(values)?;
        let cells = [median, min, max].map(|value| quantity(value, unit));
        Some([format!("`{metric}`")].into_iter().chain(cells).collect())
    });
    table(&["", "median", "min", "max"], rows)
}

/// The facts that a reader has to know before trusting the figures.
pub(super) fn remarks(results: &Results) -> String {
    let mut out = load(&results.children) + &theft(&results.children);
    for (peer, early) in early(results) {
        out += &format!("* {peer} started tasks before they were due, by up to {early}.\n");
    }
    let failed: Vec<_> =
        results.children.iter().filter_map(|child| Some((child, child.error.as_ref()?))).collect();
    out += &format!("* {} processes, {} failed.\n", results.children.len(), failed.len());
    for (Child { round, step, peer, .. }, error) in failed {
        out += &format!("  * round {round}, {step}, {peer}: {error}\n");
    }
    out
}

/// The load of the machine, from these processes and others.
fn load(children: &[Child]) -> String {
    let loads = children.iter().map(|child| child.load).collect();
    let Some(Spread { median, max, .. }) = Spread::of(loads) else { return String::new() };
    format!("* The load average when a process began: median {median:.1}, at most {max:.1}.\n")
}

/// The share of the machine that its host took away.
fn theft(children: &[Child]) -> String {
    let seconds: f64 = children.iter().map(|child| child.seconds).sum();
    let stolen: f64 = children.iter().map(|child| child.stolen * child.seconds).sum();
    let worst = children.iter().max_by(|a, b| a.stolen.total_cmp(&b.stolen));
    let Some(worst) = worst.filter(|_| stolen > 0.0) else {
        return "* The processor was never taken away by a host.\n".to_owned();
    };
    format!(
        "* The machine is virtual: its host gave {:.2} % of the processors' time to others, most \
         in round {}, {}, {} ({:.1} %).\n",
        100.0 * stolen / seconds,
        worst.round,
        worst.step,
        worst.peer,
        100.0 * worst.stolen,
    )
}

/// The peers that started tasks before they were due, and by how much.
fn early(results: &Results) -> Vec<(&'static str, String)> {
    let late = ["w3-spread", "w4-idle", "w4-loaded", "w5", "w13"];
    let earliest = |peer: &Peer| {
        let figures = late.map(|step| Figure::new(step, "late_min", &[]));
        let mins = figures.iter().filter_map(|figure| Some(results.get(peer.name, figure)?.min));
        let min = mins.min_by(f64::total_cmp)?;
        (min < 0.0).then(|| (peer.name, quantity(-min, "us")))
    };
    ROSTER.iter().filter_map(earliest).collect()
}
