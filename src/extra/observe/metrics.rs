//! The statistics as metrics, for whichever recorder of the crate `metrics` the program has installed.
//!
//! # Published on request, and not counted twice
//!
//! The executor counts anyway, and a snapshot of its counts never contradicts itself ([`Statistics`]). So
//! nothing is recorded while a task runs: one call takes a snapshot and hands over each number of it.
//! A count is set as an absolute value, which a recorder only ever increases. So of two threads that publish at
//! the same time the later snapshot stays, in the counts.
//!
//! A task's name is no label: programs name tasks after customers and files, and each name would be a series that the
//! recorder never forgets.
//!
//! [`METRICS`] and [`GROUP_METRICS`] are the lists. `docs/observing.md` has them for readers, and a test compares. What has
//! a label more is published beside it, one series for each value, as [`publish_state`] and [`publish_histogram`] do.
//!
//! # Histograms
//!
//! A histogram is published as a count for each bound: how many runs did not exceed it. A monitoring system takes the
//! difference of two scrapes, and works out the quantiles of the time between them, of one process or of all. The sum is
//! one of whole microseconds, so that all of them are counters; a histogram of the crate `metrics` would count twice what
//! is published twice. The names and the label `le` are those that Prometheus gives a histogram, so its functions work.

use std::sync::Arc;
#[cfg(feature = "histograms")]
use std::time::Duration;

use metrics::{Label, SharedString, Unit, counter, describe_counter, describe_gauge, gauge};

use crate::{ExecutorState, Group, GroupStatistics, Handle, Statistics};
#[cfg(feature = "histograms")]
use crate::{Histogram, RunHistograms};

/// A metric that has one series for each executor, or one for each group, by whose snapshot it is: its name, its value, and
/// its description for the recorder.
type Metric<S> = (&'static str, Value<S>, &'static str);

/// The kind of a metric, and its place in the snapshot.
enum Value<S> {
    /// It only ever grows, until the process ends.
    Counter(fn(&S) -> u64),
    /// It comes and goes.
    Gauge(fn(&S) -> usize),
}

use Value::{Counter, Gauge};

#[rustfmt::skip]
const METRICS: [Metric<Statistics>; 17] = [
    ("punctual_workers_core", Gauge(|now| now.core_pool_size), "Workers that there are to be."),
    ("punctual_workers", Gauge(|now| now.pool_size), "Workers."),
    ("punctual_workers_largest", Gauge(|now| now.largest_pool_size), "The most workers that there have been at once."),
    ("punctual_tasks_active", Gauge(|now| now.active), "Tasks that run."),
    ("punctual_tasks_pending", Gauge(|now| now.pending), "Tasks that wait."),
    ("punctual_tasks_submitted_total", Counter(|now| now.submitted), "Tasks that were admitted."),
    ("punctual_tasks_completed_total", Counter(|now| now.completed), "Tasks that ended with a result."),
    ("punctual_tasks_failed_total", Counter(|now| now.failed), "Tasks that ended with a panic or an error."),
    ("punctual_tasks_cancelled_total", Counter(|now| now.cancelled), "Tasks that were cancelled, for whatever reason."),
    ("punctual_tasks_rejected_total", Counter(|now| now.rejected), "Submissions that were not admitted."),
    ("punctual_caller_runs_total", Counter(|now| now.caller_runs), "Rejected submissions that their submitter's thread has run."),
    ("punctual_caller_panics_total", Counter(|now| now.caller_panics), "Runs by a submitter's thread that failed."),
    ("punctual_runs_total", Counter(|now| now.runs), "Runs; each run of a periodic task counts."),
    ("punctual_runs_failed_total", Counter(|now| now.failed_runs), "Runs that failed, or exceeded their time limit."),
    ("punctual_runs_missed_total", Counter(|now| now.missed_runs), "Runs that were left out because the one before was late."),
    ("punctual_runs_skipped_total", Counter(|now| now.gate_skips), "Runs that a gate has skipped."),
    ("punctual_timeouts_total", Counter(|now| now.timed_out), "Time limits that were exceeded."),
];

#[rustfmt::skip]
const GROUP_METRICS: [Metric<GroupStatistics>; 10] = [
    ("punctual_group_tasks_active", Gauge(|now| now.active), "Tasks of the group that run."),
    ("punctual_group_tasks_pending", Gauge(|now| now.pending), "Tasks of the group that wait."),
    ("punctual_group_tasks_waiting", Gauge(|now| now.waiting), "Tasks of the group that are due and wait for the group."),
    ("punctual_group_tasks_submitted_total", Counter(|now| now.submitted), "Tasks of the group that were admitted."),
    ("punctual_group_tasks_rejected_total", Counter(|now| now.rejected), "Submissions that were refused because the group was shut down."),
    ("punctual_group_tasks_completed_total", Counter(|now| now.completed), "Tasks of the group that ended with a result."),
    ("punctual_group_tasks_failed_total", Counter(|now| now.failed), "Tasks of the group that ended with a panic or an error."),
    ("punctual_group_tasks_cancelled_total", Counter(|now| now.cancelled), "Tasks of the group that were cancelled, for whatever reason."),
    ("punctual_group_runs_total", Counter(|now| now.runs), "Runs of the group's tasks."),
    ("punctual_group_runs_failed_total", Counter(|now| now.failed_runs), "Runs of the group's tasks that failed, or exceeded their time limit."),
];

/// Each state, with the value of its label, which is also the name that `serde` gives it.
const STATES: [ExecutorState; 4] = [
    ExecutorState::Running,
    ExecutorState::ShuttingDown,
    ExecutorState::Stopping,
    ExecutorState::Terminated,
];

/// The bounds, in microseconds. Their label is in seconds.
#[cfg(feature = "histograms")]
const BOUNDS: [u64; 19] = [
    100,
    250,
    500,
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    30_000_000,
    60_000_000,
    300_000_000,
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
    // Shared, since each series has it.
    Label::new(name, Arc::<str>::from(value))
}

fn with(labels: &[Label], name: &'static str, value: impl Into<SharedString>) -> Vec<Label> {
    let mut labels = labels.to_vec();
    labels.push(Label::new(name, value));
    labels
}

/// Describes the metric each time, since the recorder may be a new one; a recorder keeps the first description.
fn publish<S>((name, value, meaning): &Metric<S>, now: &S, labels: &[Label]) {
    match value {
        Counter(read) => {
            describe_counter!(*name, Unit::Count, *meaning);
            counter!(*name, labels.to_vec()).absolute(read(now));
        }
        Gauge(read) => {
            describe_gauge!(*name, Unit::Count, *meaning);
            #[allow(clippy::cast_precision_loss, reason = "gauges are floating point")]
            gauge!(*name, labels.to_vec()).set(read(now) as f64);
        }
    }
}

fn publish_state(state: ExecutorState, labels: &[Label]) {
    const STATE: &str = "punctual_executor_state";
    describe_gauge!(
        STATE,
        "1 in the series of the executor's state, 0 in the series of the other states."
    );
    for known in STATES {
        let (label, is_it) = (known.to_string().replace(' ', "_"), u8::from(known == state));
        gauge!(STATE, with(labels, "state", label)).set(f64::from(is_it));
    }
}

/// Publishes all runs so far. The names begin with `prefix`, and `of` says whose the runs are, if not those of all tasks.
#[cfg(feature = "histograms")]
fn publish_runs(prefix: &str, of: &str, runs: &RunHistograms, labels: &[Label]) {
    let lateness = [
        format!("Runs{of} that started no later than this after they were due."),
        format!("Runs{of} of which the lateness was recorded."),
        format!("The lateness of all runs{of} together."),
    ];
    let run_time = [
        format!("Runs{of} that took no longer than this."),
        format!("Runs{of} of which the time was recorded."),
        format!("The time of all runs{of} together."),
    ];
    publish_histogram(&format!("{prefix}_lateness"), lateness, runs.lateness(), labels);
    publish_histogram(&format!("{prefix}_time"), run_time, runs.run_time(), labels);
}

#[cfg(feature = "histograms")]
fn publish_histogram(name: &str, meanings: [String; 3], seen: &Histogram, labels: &[Label]) {
    let [bucket, count] = ["bucket", "count"].map(|part| format!("{name}_seconds_{part}"));
    let sum = format!("{name}_microseconds_total");
    let [of_bucket, of_count, of_sum] = meanings;
    describe_counter!(bucket.clone(), Unit::Count, of_bucket);
    describe_counter!(count.clone(), Unit::Count, of_count);
    describe_counter!(sum.clone(), Unit::Microseconds, of_sum);
    let series =
        |bound: String, runs| counter!(bucket.clone(), with(labels, "le", bound)).absolute(runs);
    for bound in BOUNDS.map(Duration::from_micros) {
        series(bound.as_secs_f64().to_string(), seen.count_within(bound));
    }
    // Nothing exceeds this one.
    series("+Inf".to_owned(), seen.count());
    counter!(count, labels.to_vec()).absolute(seen.count());
    let micros = u64::try_from(seen.sum().as_micros()).unwrap_or(u64::MAX);
    counter!(sum, labels.to_vec()).absolute(micros);
}
