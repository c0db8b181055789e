//! What the executor watches while it works: histograms, starvation, slow runs, and the spans of
//! submitters. What is not switched on costs nothing.

use std::time::Duration;

use super::Builder;
use crate::{SlowRun, Starvation, sync::Arc, unwind::Contained};

impl Builder {
    /// Has the executor keep [histograms](crate::Histograms) of how late its runs start and how
    /// long they take: for all runs, and for each of the first `names` names that tasks are
    /// submitted with. The runs of other tasks count for the pool alone, so a program that makes
    /// up names without end does not run out of memory. They are read by
    /// [`Handle::histograms`](crate::Handle::histograms).
    ///
    /// The memory is allocated when a worker starts and when a name is first seen, and does not grow: 70
    /// KiB for each worker and for each name. To record a run takes no reading of the clock, since
    /// the worker's next one is its end. Lateness counts from the moment for which a run was
    /// planned, also where an earlier run was what made it late; so a stall is seen in every run that it
    /// delayed, and no correction for coordinated omission is needed. Runs that
    /// [`MissedRuns`](crate::MissedRuns) leaves out are not recorded:
    /// [`Statistics::missed_runs`](crate::Statistics::missed_runs) counts them. A run by hand, as of a
    /// [`DrainedTask`](crate::DrainedTask), is not recorded either.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
    ///
    /// let clock = ManualClock::new();
    /// let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(1).clock(clock.clone());
    /// let executor = builder.histograms(16).build()?;
    /// let second = Duration::from_secs(1);
    /// let (initial_delay, period) = (second, second);
    /// executor.task().name("sweep").schedule_at_fixed_rate(initial_delay, period, || ())?;
    /// clock.run_for(4 * second);
    /// let histograms = executor.histograms().expect("they are kept");
    /// assert_eq!(histograms.pool().runs(), 4);
    /// let sweep = histograms.named("sweep").expect("one of the first sixteen names");
    /// assert_eq!(sweep.lateness().max(), Some(Duration::ZERO)); // the clock stood still
    /// println!("p99 {:?}", sweep.run_time().quantile(0.99));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias("percentiles", "latency"))]
    #[cfg(feature = "histograms")]
    pub fn histograms(mut self, names: usize) -> Self {
        self.config.observing.histogram_names = Some(names);
        self
    }

    /// Has the executor report when nothing that is due could start for as long as `after`, because all
    /// workers were occupied: by a warning event, and by a call of `callback` with the tasks that
    /// occupy them. A starvation is reported once when it has lasted that long, and again each time
    /// it has lasted twice as long as it had at the last report. It ends when a worker takes a task.
    ///
    /// The callback is called on the thread that expires [timeouts](crate::TaskBuilder::timeout), with
    /// no lock held; the first worker that is started starts that thread as well. While the callback
    /// runs, no timeout expires, so it should be short; it may submit tasks. A panic in it is reported as that of a
    /// [`Starvation`](crate::FailureSource::Starvation) callback. While a worker is idle, the executor
    /// does not look; while all are busy it looks at most once in the time that was set.
    ///
    /// ```
    /// use std::{sync::mpsc, time::Duration};
    /// use punctual::{ScheduledThreadPoolExecutor, Starvation};
    ///
    /// let (tell, told) = mpsc::channel();
    /// let executor = ScheduledThreadPoolExecutor::builder()
    ///     .core_pool_size(1)
    ///     .on_starvation(Duration::from_millis(5), move |starvation: &Starvation| {
    ///         tell.send(starvation.clone()).ok();
    ///     })
    ///     .build()?;
    /// let (end, ends) = mpsc::channel();
    /// executor.task().name("upload").execute(move || drop(ends.recv()))?;
    /// executor.task().name("heartbeat").execute(|| ())?;
    /// let is_heartbeat = |it: &Starvation| it.next_task().name() == Some("heartbeat");
    /// let starvation = told.iter().find(is_heartbeat).expect("it is reported");
    /// assert_eq!(starvation.running()[0].name(), Some("upload"));
    /// end.send(())?;
    /// # executor.close()?;
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias("watchdog", "stall"))]
    pub fn on_starvation(
        mut self,
        after: Duration,
        callback: impl Fn(&Starvation) + Send + Sync + 'static,
    ) -> Self {
        self.config.observing.starvation_after = Some(after);
        self.callbacks().starvation = Some(Contained::new(Arc::new(callback)));
        self
    }

    /// Sets how long a run may take before it is named, for all tasks of which nothing else is
    /// [said](crate::TaskBuilder::warn_after), where that is explained. By default there is no such time. Every task
    /// then costs what that costs, and is no longer a single allocation.
    pub fn warn_after(mut self, limit: Duration) -> Self {
        self.config.observing.warn_after = Some(limit);
        self
    }

    /// Sets the callback to which runs are named that take longer than they
    /// [should](crate::TaskBuilder::warn_after), each once. It is called while the run goes on, on the
    /// thread that expires [timeouts](crate::TaskBuilder::timeout); if that thread was late, on the worker, when the
    /// body has returned. No lock is held. It should be short, since no timeout expires meanwhile. A panic in
    /// it is reported as that of a [`SlowRun`](crate::FailureSource::SlowRun) callback.
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
    /// let slow = told.recv()?; // while it runs
    /// assert_eq!((slow.name(), slow.run_number()), (Some("report"), 1));
    /// assert!(slow.scheduled_at().file().ends_with(".rs"));
    /// end.send(())?;
    /// # executor.close()?;
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias = "watchdog")]
    pub fn on_slow_run(mut self, callback: impl Fn(&SlowRun) + Send + Sync + 'static) -> Self {
        self.callbacks().slow_run = Some(Contained::new(Arc::new(callback)));
        self
    }

    /// Sets whether each run appears under the `tracing` span in which its task was scheduled; by
    /// default it does not, and appears under whatever span its worker is in. The span of the one run of a one-shot task
    /// is then a child of the span that was current where the task was submitted. The spans of a
    /// periodic task's runs are no children of it, which would all belong to work that is long
    /// over; each [follows from](https://docs.rs/tracing/latest/tracing/struct.Span.html#method.follows_from)
    /// it. The task holds the span until the task has ended.
    ///
    /// Only if a subscriber listens is the span kept, at the cost of two allocations. Without the feature
    /// `tracing` this changes nothing.
    ///
    /// The cookbook in the book has an example (`docs/book/cookbook/watching.md`).
    #[doc(alias = "instrument")]
    pub fn submitter_span(mut self, follow: bool) -> Self {
        self.config.observing.submitter_span = follow;
        self
    }
}
