//! The statistics as metrics, for whichever recorder of the crate `metrics` the program has installed.
//!
//! # Published on request, and not counted twice
//!
//! The executor counts anyway, and a snapshot of its counts never contradicts itself ([`statistics`](crate::statistics)). So
//! nothing is recorded while a task runs: one call takes a snapshot and hands over each number of it.
//! A count is set as an absolute value, which a recorder only ever increases. So of two threads that publish at
//! the same time the later snapshot stays, in the counts.
//!
//! A task's name is no label: programs name tasks after customers and files, and each name would be a series that the
//! recorder never forgets.
//!
//! [`METRICS`] and [`GROUP_METRICS`] are the lists. `docs/observing.md` has them for readers, and a test compares. What has
//! a label more is published beside it, one series for each value, as [`publish_state`] does and as [histograms](buckets) are.

#[cfg(feature = "histograms")]
mod buckets;

use metrics::{Label, Unit, counter, describe_counter, describe_gauge, gauge};

use crate::{
    executor::{ExecutorState, Handle, Statistics},
    group::{Group, GroupStatistics},
    sync::Arc,
};

/// A metric that has one series for each executor, or one for each group, by whose snapshot it is.
struct Metric<S> {
    name: &'static str,
    value: Value<S>,
    /// Its description, for the recorder.
    meaning: &'static str,
}

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

#[rustfmt::skip]
const GROUP_METRICS: [Metric<GroupStatistics>; 10] = [
    Metric { name: "punctual_group_tasks_active", value: Gauge(|now| now.active), meaning: "Tasks of the group that run." },
    Metric { name: "punctual_group_tasks_pending", value: Gauge(|now| now.pending), meaning: "Tasks of the group that wait." },
    Metric { name: "punctual_group_tasks_waiting", value: Gauge(|now| now.waiting), meaning: "Tasks of the group that are due and wait for the group." },
    Metric { name: "punctual_group_tasks_submitted_total", value: Counter(|now| now.submitted), meaning: "Tasks of the group that were admitted." },
    Metric { name: "punctual_group_tasks_rejected_total", value: Counter(|now| now.rejected), meaning: "Submissions that were refused because the group was shut down." },
    Metric { name: "punctual_group_tasks_completed_total", value: Counter(|now| now.completed), meaning: "Tasks of the group that ended with a result." },
    Metric { name: "punctual_group_tasks_failed_total", value: Counter(|now| now.failed), meaning: "Tasks of the group that ended with a panic or an error." },
    Metric { name: "punctual_group_tasks_cancelled_total", value: Counter(|now| now.cancelled), meaning: "Tasks of the group that were cancelled, for whatever reason." },
    Metric { name: "punctual_group_runs_total", value: Counter(|now| now.runs), meaning: "Runs of the group's tasks." },
    Metric { name: "punctual_group_runs_failed_total", value: Counter(|now| now.failed_runs), meaning: "Runs of the group's tasks that failed, or exceeded their time limit." },
];

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
    /// `docs/observing.md` lists the name, the type, the labels and the meaning of each metric; they
    /// change only with a new major version of this crate. Groups have metrics of their own: see [`Group::publish_metrics`].
    ///
    /// Takes as long as [`statistics`](Self::statistics), and some microseconds more for the recorder, which is asked
    /// for each of two dozen series, and for each of forty more where there are histograms. Blocks as long as the recorder does.
    ///
    /// ```
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
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
        let labels = [label("executor", executor)];
        METRICS.iter().for_each(|metric| metric.publish(&now, &labels));
        publish_state(now.state, &labels);
        #[cfg(feature = "histograms")]
        if let Some(seen) = self.histograms() {
            buckets::publish("punctual_run", "", seen.pool(), &labels);
        }
    }
}

impl Group {
    /// Hands the group's [statistics](Self::statistics) to the recorder, as [`Handle::publish_metrics`] does those of the executor.
    /// Each series has the label `executor`, with this value, and the label `group` with the group's name.
    ///
    /// The program says which groups are published, since a recorder never forgets a series: a group for each of ten thousand customers
    /// had better not be. Of two groups with one name in one executor, the counts of the later call stay only where they are larger.
    ///
    /// Blocks as long as the recorder does.
    ///
    /// ```
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let mail = executor.group("mail").limit(1).build()?;
    /// mail.task().submit(|| ())?.join()?;
    ///
    /// metrics::with_local_recorder(&recorder, || mail.publish_metrics("web"));
    /// let page = recorder.handle().render();
    /// let series = "punctual_group_tasks_completed_total{executor=\"web\",group=\"mail\"} 1\n";
    /// assert!(page.contains(series));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn publish_metrics(&self, executor: &str) {
        let now = self.statistics();
        let labels = [label("executor", executor), label("group", self.name())];
        GROUP_METRICS.iter().for_each(|metric| metric.publish(&now, &labels));
        #[cfg(feature = "histograms")]
        if let Some(seen) = self.histograms() {
            buckets::publish("punctual_group_run", " of the group's tasks", &seen, &labels);
        }
    }
}

fn label(name: &'static str, value: &str) -> Label {
    // Shared, since each series has it.
    Label::new(name, Arc::<str>::from(value))
}

/// Returns these labels and one more.
fn with(labels: &[Label], name: &'static str, value: &'static str) -> Vec<Label> {
    let mut labels = labels.to_vec();
    labels.push(Label::new(name, value));
    labels
}

impl<S> Metric<S> {
    /// Describes the metric each time, since the recorder may be a new one; a recorder keeps the first description.
    fn publish(&self, now: &S, labels: &[Label]) {
        match self.value {
            Counter(read) => {
                describe_counter!(self.name, Unit::Count, self.meaning);
                counter!(self.name, labels.to_vec()).absolute(read(now));
            }
            Gauge(read) => {
                describe_gauge!(self.name, Unit::Count, self.meaning);
                #[allow(clippy::cast_precision_loss, reason = "gauges are floating point")]
                gauge!(self.name, labels.to_vec()).set(read(now) as f64);
            }
        }
    }
}

/// Publishes a series for each state.
fn publish_state(state: ExecutorState, labels: &[Label]) {
    const STATE: &str = "punctual_executor_state";
    describe_gauge!(
        STATE,
        "1 in the series of the executor's state, 0 in the series of the other states."
    );
    for (known, label) in STATES {
        let is_it = f64::from(u8::from(known == state));
        gauge!(STATE, with(labels, "state", label)).set(is_it);
    }
}
