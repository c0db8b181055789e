//! The verbs for what is observed outside of the core, in `src/extra/observe`.

#[cfg(feature = "metrics")]
use crate::extra::observe::{publish_executor, publish_group};
use crate::task::Observers;
#[cfg(feature = "histograms")]
use crate::{Builder, Group, Handle, Histograms, RunHistograms, extra::observe::RunRecorder};

/// The observers that the verbs ask for. Each executor has its own, also one of several that one builder makes.
#[derive(Clone, Debug, Default)]
pub(crate) struct WantedObservers {
    /// How many names have histograms of their own; `None` if there are no histograms at all.
    #[cfg(feature = "histograms")]
    histogram_names: Option<usize>,
}

impl WantedObservers {
    pub(crate) fn add_to(&self, observers: &mut Observers) {
        #[cfg(feature = "histograms")]
        if let Some(names) = self.histogram_names {
            observers.add(RunRecorder::new(names));
        }
        #[cfg(not(feature = "histograms"))]
        let _ = observers;
    }
}

#[cfg(feature = "histograms")]
impl Builder {
    /// Keeps [histograms](crate::Histograms) of how late the executor's runs start and how long they take:
    /// for all runs, for the tasks of each [group](crate::Group::histograms), and for each of the first `names` names that
    /// tasks run with. The runs of other tasks count for the pool alone, so a program that makes up names without end does
    /// not run out of memory. They are read by [`Handle::histograms`](crate::Handle::histograms).
    ///
    /// The memory is allocated when a worker, a name or a group has its first run, and does not grow: 70 KiB
    /// for each of them. To record a run takes no reading of the clock, since the worker's
    /// next one is its end. Lateness counts from the moment for which a run was planned, also where an
    /// earlier run was what made it late; so a stall is seen in every run that it delayed, and no correction
    /// for coordinated omission is needed. Runs that [`MissedRuns`](crate::MissedRuns) leaves out are not
    /// recorded: [`Statistics::missed_runs`](crate::Statistics::missed_runs) counts them. A run by hand, as
    /// of a [`DrainedTask`](crate::DrainedTask), is not recorded either.
    #[doc(alias("percentiles", "latency"))]
    #[cfg_attr(docsrs, doc(cfg(feature = "histograms")))]
    pub fn histograms(mut self, names: usize) -> Self {
        self.observing.histogram_names = Some(names);
        self
    }
}

#[cfg(feature = "histograms")]
impl Handle {
    /// Returns how late tasks started and how long they took, in the pool and by name; `None` unless
    /// [histograms](crate::Builder::histograms) are kept. Takes some microseconds for each name and
    /// each worker that there ever was at once; a worker that records a run meanwhile waits for one of
    /// these.
    #[doc(alias("percentiles", "latency"))]
    #[cfg_attr(docsrs, doc(cfg(feature = "histograms")))]
    pub fn histograms(&self) -> Option<Histograms> {
        self.observer().map(RunRecorder::snapshot)
    }
}

#[cfg(feature = "histograms")]
impl Group {
    /// Returns how late the runs of the group's tasks have started and how long they took, since the group
    /// was made; `None` if the executor keeps no [histograms](crate::Builder::histograms). Costs what
    /// [`Handle::histograms`] does for one name.
    #[cfg_attr(docsrs, doc(cfg(feature = "histograms")))]
    pub fn histograms(&self) -> Option<RunHistograms> {
        let recorder: &RunRecorder = self.handle().observer()?;
        Some(recorder.of_group(&self.state.name))
    }
}

#[cfg(feature = "metrics")]
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
        publish_executor(self, executor);
    }
}

#[cfg(feature = "metrics")]
impl Group {
    /// Hands the group's [statistics](Self::statistics) to the recorder, as [`Handle::publish_metrics`] does those of the executor.
    /// Each series has the label `executor`, with this value, and the label `group` with the group's name.
    ///
    /// The program says which groups are published, since a recorder never forgets a series: a group for each of ten thousand customers
    /// had better not be. Of two groups with one name in one executor, the counts of the later call stay only where they are larger.
    ///
    /// Blocks as long as the recorder does.
    pub fn publish_metrics(&self, executor: &str) {
        publish_group(self, executor);
    }
}
