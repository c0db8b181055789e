//! The statistics as metrics, for whichever recorder of the crate `metrics` the program has installed.
//!
//! # Published when somebody looks, and not counted twice
//!
//! The executor counts anyway, on cache lines that each worker has for itself, and a snapshot of these counts
//! never contradicts itself ([`statistics`](crate::statistics)). So nothing is recorded while a task runs. One call
//! takes a snapshot and hands over each number of it, and the program decides when: at each scrape, or every ten
//! seconds for a recorder that pushes. Between the calls the feature costs nothing at all.
//!
//! To record each run as it happens would cost each run three look-ups in the recorder, on the worker, and the counts
//! of a scrape would contradict each other, since they would be read one by one.
//!
//! A count is set as an absolute value, which a recorder only ever increases. So of two threads that publish at
//! the same time the later snapshot stays, in the counts.
//!
//! # Labels
//!
//! Every series has the label `executor`, whose value the program chooses, and that is all. A task's name is no label: programs
//! name tasks after customers and files, and each name would be a series that the recorder never forgets. A program whose
//! names are few records them in a hook ([`Builder::after_execute`](crate::Builder::after_execute)).
//!
//! # Where to add one
//!
//! [`METRICS`] is the list. `docs/observing.md` has the same list for readers, and a test compares the two. What has a label more
//! than `executor` is published beside it, as [`publish_state`] does, and as quantiles are, one series for each.

use metrics::{Unit, counter, describe_counter, describe_gauge, gauge};

use crate::{
    executor::Handle,
    pool::{ExecutorState, Statistics},
    sync::Arc,
};

/// The label that every series has.
const EXECUTOR: &str = "executor";

/// A metric that has one series for each executor.
struct Metric {
    name: &'static str,
    value: Value,
    /// What the recorder is told about it.
    meaning: &'static str,
}

/// What a metric is, and where it stands in the snapshot.
enum Value {
    /// It only ever grows, until the process ends.
    Counter(fn(&Statistics) -> u64),
    /// It comes and goes.
    Gauge(fn(&Statistics) -> usize),
}

use Value::{Counter, Gauge};

#[rustfmt::skip]
const METRICS: [Metric; 17] = [
    Metric { name: "punctual_workers_core", value: Gauge(|now| now.core_pool_size), meaning: "Workers that there are to be." },
    Metric { name: "punctual_workers", value: Gauge(|now| now.pool_size), meaning: "Workers." },
    Metric { name: "punctual_workers_largest", value: Gauge(|now| now.largest_pool_size), meaning: "The most workers that there have been at once." },
    Metric { name: "punctual_tasks_active", value: Gauge(|now| now.active), meaning: "Tasks that run." },
    Metric { name: "punctual_tasks_pending", value: Gauge(|now| now.pending), meaning: "Tasks that wait." },
    Metric { name: "punctual_tasks_submitted_total", value: Counter(|now| now.submitted), meaning: "Tasks that were admitted." },
    Metric { name: "punctual_tasks_completed_total", value: Counter(|now| now.completed), meaning: "Tasks that ended with a result." },
    Metric { name: "punctual_tasks_failed_total", value: Counter(|now| now.failed), meaning: "Tasks that ended with a panic or an error." },
    Metric { name: "punctual_tasks_cancelled_total", value: Counter(|now| now.cancelled), meaning: "Tasks that were cancelled, for whatever reason." },
    Metric { name: "punctual_tasks_rejected_total", value: Counter(|now| now.rejected), meaning: "Submissions that were not admitted." },
    Metric { name: "punctual_caller_runs_total", value: Counter(|now| now.caller_runs), meaning: "Rejected submissions that their submitter's thread has run." },
    Metric { name: "punctual_caller_panics_total", value: Counter(|now| now.caller_panics), meaning: "Runs by a submitter's thread that failed." },
    Metric { name: "punctual_runs_total", value: Counter(|now| now.runs), meaning: "Runs; each run of a periodic task counts." },
    Metric { name: "punctual_runs_failed_total", value: Counter(|now| now.failed_runs), meaning: "Runs that failed, or exceeded their time limit." },
    Metric { name: "punctual_runs_missed_total", value: Counter(|now| now.missed_runs), meaning: "Runs that were left out because the one before was late." },
    Metric { name: "punctual_runs_skipped_total", value: Counter(|now| now.gate_skips), meaning: "Runs that a gate has skipped." },
    Metric { name: "punctual_timeouts_total", value: Counter(|now| now.timed_out), meaning: "Time limits that were exceeded." },
];

/// The one that has a label more.
const STATE: &str = "punctual_executor_state";
const STATE_MEANING: &str =
    "1 in the series of the executor's state, 0 in the series of the other states.";

/// Each state, with the value of its label, which is also the name that `serde` gives it.
const STATES: [(ExecutorState, &str); 4] = [
    (ExecutorState::Running, "running"),
    (ExecutorState::ShuttingDown, "shutting_down"),
    (ExecutorState::Stopping, "stopping"),
    (ExecutorState::Terminated, "terminated"),
];

impl Handle {
    /// Hands the [statistics](Self::statistics) to the recorder of the crate [`metrics`](https://docs.rs/metrics) that the calling
    /// thread uses, which is that of the process if it has no other. Without a recorder nothing happens.
    ///
    /// Call it just before the metrics are read, or now and then if they are pushed. All values are of one consistent
    /// snapshot. `executor` is the value of the label that tells this executor from others; two
    /// executors with the same value would overwrite each other's series.
    ///
    /// `docs/observing.md` lists the name, the type, the labels and the meaning of each metric. Names and labels
    /// change only with a new major version of this crate.
    ///
    /// Takes as long as [`statistics`](Self::statistics), and some microseconds more for the recorder, which is asked
    /// for each of two dozen series. Blocks as long as the recorder does.
    ///
    /// ```
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// // The program's recorder; `install_recorder` makes it that of the whole process.
    /// let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// executor.submit(|| ())?.join()?;
    ///
    /// metrics::with_local_recorder(&recorder, || executor.publish_metrics("mail"));
    /// let page = recorder.handle().render();
    /// assert!(page.contains("punctual_tasks_completed_total{executor=\"mail\"} 1\n"));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias("prometheus", "opentelemetry"))]
    pub fn publish_metrics(&self, executor: &str) {
        let now = self.statistics();
        let executor: Arc<str> = executor.into();
        METRICS.iter().for_each(|metric| metric.publish(&now, &executor));
        publish_state(now.state, &executor);
        #[cfg(feature = "histograms")]
        if let Some(seen) = self.histograms() {
            quantiles::publish(seen.pool(), &executor);
        }
    }
}

impl Metric {
    /// Describes the metric each time, since the recorder may be a new one; a recorder keeps the first description.
    fn publish(&self, now: &Statistics, executor: &Arc<str>) {
        let executor = Arc::clone(executor);
        match self.value {
            Counter(read) => {
                describe_counter!(self.name, Unit::Count, self.meaning);
                counter!(self.name, EXECUTOR => executor).absolute(read(now));
            }
            Gauge(read) => {
                describe_gauge!(self.name, Unit::Count, self.meaning);
                #[allow(clippy::cast_precision_loss, reason = "gauges are floating point")]
                gauge!(self.name, EXECUTOR => executor).set(read(now) as f64);
            }
        }
    }
}

/// How late runs start and how long they take, where an executor keeps histograms.
#[cfg(feature = "histograms")]
mod quantiles {
    use metrics::{Unit, describe_gauge, gauge};

    use super::EXECUTOR;
    use crate::{
        histogram::{Histogram, RunHistograms},
        sync::Arc,
    };

    const LATENESS: &str = "punctual_run_lateness_seconds";
    const LATENESS_MEANING: &str =
        "How late runs have started that this share of all does not exceed.";
    const RUN_TIME: &str = "punctual_run_time_seconds";
    const RUN_TIME_MEANING: &str =
        "How long runs have taken that this share of all does not exceed.";

    const QUANTILES: [(f64, &str); 5] =
        [(0.5, "0.5"), (0.9, "0.9"), (0.99, "0.99"), (0.999, "0.999"), (1.0, "1")];

    /// Publishes the quantiles of all runs so far, if there were any.
    pub(super) fn publish(runs: &RunHistograms, executor: &Arc<str>) {
        publish_one(LATENESS, LATENESS_MEANING, runs.lateness(), executor);
        publish_one(RUN_TIME, RUN_TIME_MEANING, runs.run_time(), executor);
    }

    fn publish_one(
        name: &'static str,
        meaning: &'static str,
        durations: &Histogram,
        executor: &Arc<str>,
    ) {
        describe_gauge!(name, Unit::Seconds, meaning);
        for (share, label) in QUANTILES {
            if let Some(value) = durations.quantile(share) {
                let series = gauge!(name, EXECUTOR => Arc::clone(executor), "quantile" => label);
                series.set(value.as_secs_f64());
            }
        }
    }
}

/// Publishes a series for each state.
fn publish_state(state: ExecutorState, executor: &Arc<str>) {
    describe_gauge!(STATE, STATE_MEANING);
    for (known, label) in STATES {
        let is_it = f64::from(u8::from(known == state));
        gauge!(STATE, EXECUTOR => Arc::clone(executor), "state" => label).set(is_it);
    }
}
