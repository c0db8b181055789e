//! The verbs for tasks with a pace of their own, which is kept outside of the core, in `src/extra/pace`.

use std::time::Duration;

use crate::{
    Handle, Outcome, RejectedExecutionError, TaskBuilder,
    extra::pace::{Debounced, Extender, Throttled},
};

impl Handle {
    /// Submits a task that runs when it has been [called](Debounced::call), and then not been called
    /// again for the `quiet` time: a file that is saved once the user stops typing, an index that is
    /// built when the last change of many has arrived.
    ///
    /// The body reports like that of [`repeat`](Self::repeat). Costs a few allocations more than a
    /// periodic task. The first of several calls costs what a [`reschedule`](crate::TaskHandle::reschedule) does, each
    /// further one what an [`extend`](Extender::extend) does.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let second = Duration::from_secs(1);
    /// let save = executor.debounce(second, || println!("saved"))?;
    /// for _ in 0..5 {
    ///     save.call(); // a key is pressed
    ///     clock.run_for(second / 2);
    /// }
    /// clock.run_for(second);
    /// assert_eq!(executor.statistics().runs, 1);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The same as [`repeat`](Self::repeat).
    #[doc(alias = "coalesce")]
    #[track_caller]
    pub fn debounce<O: Outcome>(
        &self,
        quiet: Duration,
        body: impl FnMut() -> O + Send + 'static,
    ) -> Result<Debounced, RejectedExecutionError> {
        self.task().debounce(quiet, body)
    }

    /// Submits a task that runs when it has been [called](Throttled::call): at once, but once in a
    /// `period` at most. A call that comes too soon after a run has its run at the end of the period,
    /// and no call is without a run after it: a progress bar, a log line about what happens too often.
    ///
    /// The body reports like that of [`repeat`](Self::repeat).
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let second = Duration::from_secs(1);
    /// let draw = executor.throttle(second, || println!("drawn"))?;
    /// for _ in 0..30 {
    ///     draw.call(); // some progress
    ///     clock.run_for(second / 10);
    /// }
    /// assert_eq!(executor.statistics().runs, 4, "at 0, 1, 2 and 3 seconds");
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The same as [`repeat`](Self::repeat).
    #[doc(alias("rate_limit", "RateLimiter"))]
    #[track_caller]
    pub fn throttle<O: Outcome>(
        &self,
        period: Duration,
        body: impl FnMut() -> O + Send + 'static,
    ) -> Result<Throttled, RejectedExecutionError> {
        self.task().throttle(period, body)
    }
}

impl TaskBuilder<'_> {
    /// Gives the task an [`Extender`], which puts its next run off with one atomic operation: for a timeout that is extended
    /// again and again. A [`gate`](Self::gate) is set before this, and asked about the runs that the extender lets pass;
    /// one that is set later takes the extender's place, whose answers are `false` then. As with every gate,
    /// [jitter](crate::Trigger::jitter) needs a seed or a name.
    ///
    /// [`Extender`] has an example. Costs a gate, which is asked before each run.
    pub fn extender(self) -> (Self, Extender) {
        Extender::of(self)
    }

    /// Submits the task: see [`Handle::debounce`](Handle::debounce).
    ///
    /// # Errors
    ///
    /// The same as [`Handle::debounce`](Handle::debounce).
    #[track_caller]
    pub fn debounce<O: Outcome>(
        self,
        quiet: Duration,
        body: impl FnMut() -> O + Send + 'static,
    ) -> Result<Debounced, RejectedExecutionError> {
        Debounced::submit(self, quiet, body)
    }

    /// Submits the task: see [`Handle::throttle`](Handle::throttle).
    ///
    /// # Errors
    ///
    /// The same as [`Handle::throttle`](Handle::throttle).
    #[track_caller]
    pub fn throttle<O: Outcome>(
        self,
        period: Duration,
        body: impl FnMut() -> O + Send + 'static,
    ) -> Result<Throttled, RejectedExecutionError> {
        Throttled::submit(self, period, body)
    }
}
