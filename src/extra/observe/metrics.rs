//! Publishes the statistics through the program's recorder for the `metrics` crate.
//!
//! The executor counts anyway, so a run never calls the recorder: `publish_metrics` takes a snapshot and publishes its
//! numbers. A counter is set to an absolute value, and a recorder never lowers it, so two threads that publish at the
//! same time count nothing twice.
//!
//! A histogram becomes one counter per bound, with Prometheus's names and label `le`: a histogram of the `metrics`
//! crate would count twice what is published twice. Sums are in whole microseconds, since counters are integers.
//!
//! A task's name is not a label: programs name tasks after customers and files, and a recorder may keep every name.

use std::sync::Arc;
#[cfg(feature = "histograms")]
use std::time::Duration;

use metrics::{Label, SharedString, Unit, counter, describe_counter, describe_gauge, gauge};

use crate::{ExecutorState, Group, GroupStatistics, Handle, Statistics};
#[cfg(feature = "histograms")]
use crate::{Histogram, RunHistograms};

/// The name of a metric, a function that reads the metric's value from a snapshot, and a description for the recorder.
/// A metric whose name ends with `_total` is a counter, which only grows; all others are gauges.
type Metric<S> = (&'static str, fn(&S) -> u64, &'static str);

#[rustfmt::skip]
const METRICS: [Metric<Statistics>; 17] = [
    ("punctual_workers_core", |now| now.core_pool_size as u64, "The core size: how many workers the pool keeps."),
    ("punctual_workers", |now| now.pool_size as u64, "Workers."),
    ("punctual_workers_largest", |now| now.largest_pool_size as u64, "The most workers that there have been at once."),
    ("punctual_tasks_active", |now| now.active as u64, "Tasks that run."),
    ("punctual_tasks_pending", |now| now.pending as u64, "Tasks that wait."),
    ("punctual_tasks_submitted_total", |now| now.submitted, "Tasks that were admitted."),
    ("punctual_tasks_completed_total", |now| now.completed, "Tasks that ended with a result."),
    ("punctual_tasks_failed_total", |now| now.failed, "Tasks that ended with a panic or an error."),
    ("punctual_tasks_cancelled_total", |now| now.cancelled, "Tasks that were cancelled, for whatever reason."),
    ("punctual_tasks_rejected_total", |now| now.rejected, "Submissions that were not admitted."),
    ("punctual_caller_runs_total", |now| now.caller_runs, "Rejected submissions that their submitter's thread has run."),
    ("punctual_caller_panics_total", |now| now.caller_panics, "Runs by a submitter's thread that failed."),
    ("punctual_runs_total", |now| now.runs, "Runs; each run of a periodic task counts."),
    ("punctual_runs_failed_total", |now| now.failed_runs, "Runs that failed, or exceeded their time limit."),
    ("punctual_runs_missed_total", |now| now.missed_runs, "Runs that were left out because the one before was late."),
    ("punctual_runs_skipped_total", |now| now.gate_skips, "Runs that a gate has skipped."),
    ("punctual_timeouts_total", |now| now.timed_out, "Time limits that were exceeded."),
];

#[rustfmt::skip]
const GROUP_METRICS: [Metric<GroupStatistics>; 10] = [
    ("punctual_group_tasks_active", |now| now.active as u64, "Tasks of the group that run."),
    ("punctual_group_tasks_pending", |now| now.pending as u64, "Tasks of the group that wait."),
    ("punctual_group_tasks_waiting", |now| now.waiting as u64, "Tasks of the group that are due and wait for the group."),
    ("punctual_group_tasks_submitted_total", |now| now.submitted, "Tasks of the group that were admitted."),
    ("punctual_group_tasks_rejected_total", |now| now.rejected, "Submissions that were refused because the group was shut down."),
    ("punctual_group_tasks_completed_total", |now| now.completed, "Tasks of the group that ended with a result."),
    ("punctual_group_tasks_failed_total", |now| now.failed, "Tasks of the group that ended with a panic or an error."),
    ("punctual_group_tasks_cancelled_total", |now| now.cancelled, "Tasks of the group that were cancelled, for whatever reason."),
    ("punctual_group_runs_total", |now| now.runs, "Runs of the group's tasks."),
    ("punctual_group_runs_failed_total", |now| now.failed_runs, "Runs of the group's tasks that failed, or exceeded their time limit."),
];

#[cfg(feature = "histograms")]
const BOUNDS: [f64; 19] = [
    1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
    30.0, 60.0, 300.0,
];

pub(crate) fn publish_executor(of: &Handle, executor: &str) {
    let (now, labels) = (of.statistics(), [label("executor", executor)]);
    METRICS.iter().for_each(|metric| publish(metric, &now, &labels));
    publish_state(now.state, &labels);
    #[cfg(feature = "histograms")]
    if let Some(seen) = of.histograms() {
        publish_runs("punctual_run", "", seen.pool(), &labels);
    }
}

pub(crate) fn publish_group(of: &Group, executor: &str) {
    let (now, labels) = (of.statistics(), [label("executor", executor), label("group", of.name())]);
    GROUP_METRICS.iter().for_each(|metric| publish(metric, &now, &labels));
    #[cfg(feature = "histograms")]
    if let Some(seen) = of.histograms() {
        publish_runs("punctual_group_run", " of the group's tasks", &seen, &labels);
    }
}

fn label(name: &'static str, value: &str) -> Label {
    Label::new(name, Arc::<str>::from(value))
}

fn publish<S>(&(name, read, meaning): &Metric<S>, now: &S, labels: &[Label]) {
    if name.ends_with("_total") {
        return set_counter(name, Unit::Count, meaning, labels.to_vec(), read(now));
    }
    describe_gauge!(name, Unit::Count, meaning);
    #[allow(clippy::cast_precision_loss, reason = "gauges are floating point")]
    gauge!(name, labels.to_vec()).set(read(now) as f64);
}

/// Sets a counter, and describes it each time, since the recorder may be a new one.
fn set_counter(
    name: impl Into<SharedString>,
    unit: Unit,
    meaning: impl Into<SharedString>,
    labels: Vec<Label>,
    value: u64,
) {
    let name = name.into();
    describe_counter!(name.clone(), unit, meaning.into());
    counter!(name, labels).absolute(value);
}

/// Publishes one gauge for each state. The value of the label `state` is also the name that `serde` uses.
fn publish_state(state: ExecutorState, labels: &[Label]) {
    use ExecutorState::{Running, ShuttingDown, Stopping, Terminated};
    const STATE: &str = "punctual_executor_state";
    describe_gauge!(
        STATE,
        "1 in the series of the executor's state, 0 in the series of the other states."
    );
    for known in [Running, ShuttingDown, Stopping, Terminated] {
        let (label, is_it) = (known.to_string().replace(' ', "_"), u8::from(known == state));
        let labels = [labels, &[Label::new("state", label)]].concat();
        gauge!(STATE, labels).set(f64::from(is_it));
    }
}

/// Publishes two histograms, whose names begin with `prefix`. `of` follows the word "runs" in their descriptions.
#[cfg(feature = "histograms")]
fn publish_runs(prefix: &str, of: &str, runs: &RunHistograms, labels: &[Label]) {
    let publish = |what: &str, is_within: &str, seen: &Histogram| {
        let set = |part: &str, unit, meaning: String, labels, value| {
            set_counter(format!("{prefix}_{what}_{part}"), unit, meaning, labels, value);
        };
        let name = format!("{prefix}_{what}_seconds_bucket");
        describe_counter!(name.clone(), Unit::Count, format!("Runs{of} that {is_within}."));
        let bucket = |bound: String, value| {
            let labels = [labels, &[Label::new("le", bound)]].concat();
            counter!(name.clone(), labels).absolute(value);
        };
        for bound in BOUNDS {
            bucket(bound.to_string(), seen.count_within(Duration::from_secs_f64(bound)));
        }
        bucket("+Inf".to_owned(), seen.count());
        let recorded = format!("Runs{of} of which the {what} was recorded.");
        set("seconds_count", Unit::Count, recorded, labels.to_vec(), seen.count());
        let micros = u64::try_from(seen.sum().as_micros()).unwrap_or(u64::MAX);
        let sum = format!("The {what} of all runs{of} together.");
        set("microseconds_total", Unit::Microseconds, sum, labels.to_vec(), micros);
    };
    publish("lateness", "started no later than this after they were due", runs.lateness());
    publish("time", "took no longer than this", runs.run_time());
}
