//! The methods that request and read the observations of `src/extra/observe`.

use std::time::Duration;

#[cfg(any(feature = "histograms", feature = "metrics"))]
use crate::Group;
#[cfg(feature = "metrics")]
use crate::extra::observe::{publish_executor, publish_group};
use crate::{
    Builder, Handle, ScheduledThreadPoolExecutor, SlowRun, Starvation, Submission,
    extra::observe::{StarvationWatch, Watcher, watch_runs},
    pool::{Config, Pool},
    sync::Arc,
    task::{Around, FailureSource, Hooks},
    trace,
    unwind::{Callback, Contained},
};
#[cfg(feature = "histograms")]
use crate::{Histograms, RunHistograms, extra::observe::RunRecorder};

type OnStarvation = dyn Fn(&Starvation) + Send + Sync;
type OnSlowRun = dyn Fn(&SlowRun) + Send + Sync;

/// The observers that a builder's methods have requested. Each executor that the builder makes gets its own observers.
#[derive(Clone, Debug, Default)]
pub(crate) struct WantedObservers {
    #[cfg(feature = "histograms")]
    histogram_names: Option<usize>,
    starvation: Option<(Duration, Callback<OnStarvation>)>,
    slow_run: Option<Callback<OnSlowRun>>,
}

impl WantedObservers {
    pub(crate) fn starves_at_once(&self) -> bool {
        self.starvation.as_ref().is_some_and(|(after, _)| after.is_zero())
    }

    pub(crate) fn begin(executor: &Handle) {
        if let Some(watch) = executor.observer::<StarvationWatch>() {
            watch.begin(executor);
        }
    }

    pub(crate) fn add_to(self, config: &mut Config) {
        // An executor without threads starts no thread to watch it.
        let watcher = (!config.is_driven).then(|| watcher(config));
        let observers = &mut config.callbacks.hooks;
        if let Some((watcher, (after, callback))) = watcher.clone().zip(self.starvation) {
            let tell =
                Arc::new(move |handle: &Handle, it: &Starvation| tell(handle, it, &callback));
            // This comes first, so that a worker that hangs in another observer counts as busy.
            observers.add_first(StarvationWatch::new(after, watcher, tell));
        }
        watcher.clone().into_iter().for_each(|watcher| observers.add(watcher));
        let watch = move |task: &Submission<'_>, limit: Duration, pool: &Pool| {
            let (hooks, callback) = (pool.callbacks.hooks.clone(), self.slow_run.clone());
            let tell = move |it: &SlowRun| tell_slow(&hooks, it, callback.as_ref());
            Around::of_wrapper(watch_runs(task, limit, pool.clock(), watcher.as_ref(), tell))
        };
        config.callbacks.watch = Some(Contained::new(Arc::new(watch)));
        #[cfg(feature = "histograms")]
        if let Some(names) = self.histogram_names {
            config.callbacks.hooks.add(RunRecorder::new(names));
        }
    }
}

fn watcher(config: &Config) -> Watcher {
    let (clock, factory) = (config.clock.clone(), config.thread_factory.clone());
    let (name, stack_size) = (config.thread_name.clone(), config.stack_size);
    Watcher::new(move || {
        let mut builder =
            ScheduledThreadPoolExecutor::builder().thread_name(format!("{name}-watch"));
        (builder.config.clock, builder.config.thread_factory) = (clock.clone(), factory.clone());
        builder.config.stack_size = stack_size;
        builder
    })
}

fn tell(handle: &Handle, it: &Starvation, callback: &Callback<OnStarvation>) {
    trace::starvation(it.waited(), it.next_task().id().0, it.next_task().name(), &it.occupants());
    let hooks = &handle.pool().callbacks.hooks;
    hooks.call_aside(FailureSource::Starvation, &mut || callback(it));
}

fn tell_slow(hooks: &Hooks, it: &SlowRun, callback: Option<&Callback<OnSlowRun>>) {
    let (id, running_for) = (it.id().0, it.running_for());
    trace::slow_run(id, it.name(), it.run_number(), running_for, it.scheduled_at());
    if let Some(callback) = callback {
        hooks.call_aside(FailureSource::SlowRun, &mut || callback(it));
    }
}

/// # Observing
impl Builder {
    /// Sets how long a run may take before it is reported, for all tasks without a [setting of their
    /// own](crate::TaskBuilder::warn_after), which explains it. By default there is no such time. With it, a task is no
    /// longer a single allocation.
    pub fn warn_after(mut self, limit: Duration) -> Self {
        self.config.warn_after = Some(limit);
        self
    }

    /// Sets the callback for runs that take longer than they [should](crate::TaskBuilder::warn_after). It is called
    /// once for each, while the run goes on, with no lock held, on a thread that watches this executor; if that thread
    /// is late, on the worker, when the body has returned. It should be short, since reports of other runs wait for it.
    /// A panic in it is reported with the source [`SlowRun`](crate::FailureSource::SlowRun). The executor does
    /// not wait for it when it terminates.
    ///
    /// ```
    /// use std::{sync::mpsc, time::Duration};
    /// use punctual::{ScheduledThreadPoolExecutor, SlowRun};
    ///
    /// let (tell, told) = mpsc::channel();
    /// let executor = ScheduledThreadPoolExecutor::builder()
    ///     .on_slow_run(move |run: &SlowRun| drop(tell.send(run.clone())))
    ///     .build()?;
    /// let (end, ends) = mpsc::channel();
    /// let task = executor.task().name("report").warn_after(Duration::from_millis(5));
    /// task.execute(move || drop(ends.recv()))?;
    /// assert_eq!(told.recv()?.name(), Some("report")); // while it runs
    /// end.send(())?;
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias = "watchdog")]
    pub fn on_slow_run(mut self, callback: impl Fn(&SlowRun) + Send + Sync + 'static) -> Self {
        self.observing.slow_run = Some(Contained::new(Arc::new(callback)));
        self
    }

    /// Reports starvation, with a warning event and a call of `callback`, which gets the tasks that occupy the workers:
    /// no due task could start for `after`, because all workers were occupied. Reports once, and again each time the
    /// wait has doubled, until a worker takes a task.
    ///
    /// The callback is called like that for [slow runs](Self::on_slow_run), but always on a watching thread, and may
    /// submit tasks. A panic in it is reported with the source [`Starvation`](crate::FailureSource::Starvation).
    /// The watch checks at most once per `after`, and not while a worker is idle.
    #[doc(alias("watchdog", "stall"))]
    pub fn on_starvation(
        mut self,
        after: Duration,
        callback: impl Fn(&Starvation) + Send + Sync + 'static,
    ) -> Self {
        self.observing.starvation = Some((after, Contained::new(Arc::new(callback))));
        self
    }
}

#[cfg(feature = "histograms")]
impl Builder {
    /// Keeps [histograms](crate::Histograms) of how late runs start and how long they take: for all runs, for each
    /// [group](crate::Group::histograms), and for each of the first `names` names that tasks run with. The bound keeps
    /// a program that makes up ever more names from running out of memory.
    /// [`Handle::histograms`](crate::Handle::histograms) reads them.
    ///
    /// They take 70 KiB for each worker, name and group, from its first run on. Recording a run reads no clock, since
    /// the worker's next reading is the end of the run. Lateness counts from the planned moment, so a stall shows in
    /// every run that it delayed, and no correction for coordinated omission is needed. Runs that
    /// [`MissedRuns`](crate::MissedRuns) leaves out are only in
    /// [`Statistics::missed_runs`](crate::Statistics::missed_runs); a run by hand, such as a
    /// [`DrainedTask`](crate::DrainedTask)'s, is not recorded.
    #[doc(alias("percentiles", "latency"))]
    #[cfg_attr(docsrs, doc(cfg(feature = "histograms")))]
    pub fn histograms(mut self, names: usize) -> Self {
        self.observing.histogram_names = Some(names);
        self
    }
}

/// # Observing
#[cfg(feature = "histograms")]
impl Handle {
    /// Returns how late tasks started and how long they took, overall and by name; `None` unless
    /// [histograms](crate::Builder::histograms) are kept. Takes some microseconds for each name, and for as many
    /// workers as there ever were at once; a worker that records a run meanwhile waits for one of these.
    #[doc(alias("percentiles", "latency"))]
    #[cfg_attr(docsrs, doc(cfg(feature = "histograms")))]
    pub fn histograms(&self) -> Option<Histograms> {
        self.observer().map(RunRecorder::snapshot)
    }
}

#[cfg(feature = "histograms")]
impl Group {
    /// Returns how late the runs of the group's tasks have started and how long they took; `None` if the executor
    /// keeps no [histograms](crate::Builder::histograms). Costs what [`Handle::histograms`] does for one name.
    #[cfg_attr(docsrs, doc(cfg(feature = "histograms")))]
    pub fn histograms(&self) -> Option<RunHistograms> {
        let recorder: &RunRecorder = self.handle().observer()?;
        Some(recorder.of_group(&self.state.name))
    }
}

#[cfg(feature = "metrics")]
impl Handle {
    /// Hands the [statistics](Self::statistics), as one consistent snapshot, to the recorder of the crate
    /// [`metrics`](https://docs.rs/metrics) that the calling thread uses: the process's, if it has no other. Without a
    /// recorder nothing happens. Call it just before the metrics are read, or periodically if they are pushed.
    /// `executor` is a label; two executors with the same value would overwrite each other's series.
    ///
    /// The page on observing in the repository lists the name, type, labels and meaning of each metric; they change
    /// only with a new major version. Groups have [metrics of their own](Group::publish_metrics).
    ///
    /// Takes as long as [`statistics`](Self::statistics), and some microseconds more for the recorder, which is called
    /// for two dozen series, and for forty more where there are histograms. Blocks as long as the recorder does.
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
    /// Hands the group's [statistics](Self::statistics) to the recorder, as [`Handle::publish_metrics`] does the
    /// executor's, with the labels `executor` and `group`. Blocks as long as the recorder does.
    ///
    /// The program chooses the groups, since a recorder never forgets a series: do not publish one for each of ten
    /// thousand customers. If two groups of one executor share a name, the counts of the later call replace only
    /// smaller ones.
    pub fn publish_metrics(&self, executor: &str) {
        publish_group(self, executor);
    }
}
