//! Debounce and throttle: one run for many calls.
//!
//! Both are a task [on demand](crate::trigger::on_demand) and one request for a moment with each call.
//! Debounce asks for a moment *later* than all before, so the run waits until the calls have stopped;
//! throttle asks for one that is *no later*, so the first call decides.
//!
//! ```text
//!   calls      │ │ │       │             │
//!   debounce   ────── ▼ ────── ▼ ─────────── ▼     quiet after the last call
//!   throttle   ▼ ── ▼ ──── ▼ ─────────── ▼         at once, and then once in each period
//! ```
//!
//! The task stays in the queue while there is no call, and never falls due. A call during a run is not
//! lost: it asks for another run. Which calls wait, and when the body last began, the task itself keeps
//! ([`Pace`]), so that a run that is skipped, put off or left out takes its calls with it.
//!
//! The first call of a debounced task moves its entry. Those that follow before the run only put it off, and do so by the
//! word beside the entry ([`PutOff`]): a storm of calls costs one atomic operation each.

use std::{fmt, time::Duration};

use crate::{
    Handle, Outcome, RejectedExecutionError, TaskBuilder, TaskHandle,
    layers::{Pace, PutOff, body_begins},
    sync::Arc,
    trigger::on_demand,
};

/// A task that runs once it has not been called for a while; from [`Handle::debounce`].
///
/// Dropping it detaches the task, as dropping a [future](crate::ScheduledFuture) does: a run that is due takes place. The
/// task then stays pending until it is cancelled, by a [handle](Self::task_handle) or with its executor.
/// [`cancel_on_drop`](Self::cancel_on_drop) has it cancelled by the drop.
pub struct Debounced {
    task: TaskHandle,
    put_off: Arc<PutOff>,
    quiet: Duration,
    max_wait: Duration,
    cancels_on_drop: bool,
}

impl Debounced {
    /// Runs the task `max_wait` after the first call at the latest, however often it is called
    /// meanwhile. Without this call there is no limit.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let second = Duration::from_secs(1);
    /// let save = executor.debounce(second, || { /* save */ })?.max_wait(3 * second);
    /// for _ in 0..100 {
    ///     save.call(); // ten times a second, for ten seconds
    ///     clock.run_for(second / 10);
    /// }
    /// assert_eq!(executor.statistics().runs, 3);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[must_use]
    pub fn max_wait(mut self, max_wait: Duration) -> Self {
        self.max_wait = max_wait;
        self
    }

    /// Asks for a run when no further call has come for the quiet time. Returns `false` if the task has
    /// ended. Does not block. A call that finds another one waiting costs one atomic operation, as
    /// [`extend`](crate::Extender::extend) does; any other, O(log n).
    #[allow(clippy::must_use_candidate, reason = "it is done for what it does")]
    pub fn call(&self) -> bool {
        let Self { quiet, max_wait, .. } = *self;
        self.task.call_again(&self.put_off, quiet, max_wait)
            || self.task.call(Pace::Quiet { quiet, max_wait })
    }

    /// Returns `true` if a call waits for its run: something has changed, and is not saved yet. A run that
    /// has begun is not waited for any more. O(1).
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let save = executor.debounce(Duration::from_secs(1), || println!("saved"))?;
    /// save.call();
    /// assert!(save.is_waiting());
    /// clock.run_for(Duration::from_secs(1));
    /// assert!(!save.is_waiting());
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.task.is_called() && !self.task.is_done()
    }

    /// Runs the task now if a call waits for it. Returns `true` if one does. Does not wait for the run.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let save = executor.debounce(Duration::from_secs(1), || { /* save */ })?;
    /// assert!(!save.flush(), "there is nothing to save");
    /// save.call();
    /// assert!(save.flush());
    /// clock.run_until_idle();
    /// assert_eq!((executor.statistics().runs, clock.elapsed()), (1, Duration::ZERO));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[allow(clippy::must_use_candidate, reason = "it is done for what it does")]
    pub fn flush(&self) -> bool {
        self.task.flush()
    }

    /// Has the task cancelled when this is dropped, and with it a run that is waited for: [`flush`](Self::flush) comes
    /// first where that matters.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let save = executor.debounce(Duration::from_secs(60), || ())?.cancel_on_drop();
    /// save.call();
    /// drop(save);
    /// assert_eq!(executor.pending_count(), 0);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[must_use]
    pub fn cancel_on_drop(mut self) -> Self {
        self.cancels_on_drop = true;
        self
    }

    /// Returns the handle of the task.
    #[must_use]
    pub fn task_handle(&self) -> &TaskHandle {
        &self.task
    }
}

/// A task that runs once in a period at most, however often it is called; from [`Handle::throttle`].
///
/// Dropping it detaches the task, as dropping a [future](crate::ScheduledFuture) does: a run that is due takes place. The
/// task then stays pending until it is cancelled, by a [handle](Self::task_handle) or with its executor.
/// [`cancel_on_drop`](Self::cancel_on_drop) has it cancelled by the drop.
pub struct Throttled {
    task: TaskHandle,
    period: Duration,
    cancels_on_drop: bool,
}

impl Throttled {
    /// Asks for a run: at once if the last one was a period ago or more, and otherwise when it will have
    /// been. All calls until then have that run in common. Returns `false` if the task has ended. Does
    /// not block. O(log n).
    #[allow(clippy::must_use_candidate, reason = "it is done for what it does")]
    pub fn call(&self) -> bool {
        self.task.call(Pace::Period(self.period))
    }

    /// Has the task cancelled when this is dropped, and with it a run that is waited for.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let draw = executor.throttle(Duration::from_secs(60), || ())?.cancel_on_drop();
    /// draw.call();
    /// drop(draw);
    /// assert_eq!(executor.pending_count(), 0);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[must_use]
    pub fn cancel_on_drop(mut self) -> Self {
        self.cancels_on_drop = true;
        self
    }

    /// Returns the handle of the task.
    #[must_use]
    pub fn task_handle(&self) -> &TaskHandle {
        &self.task
    }
}

impl Handle {
    /// Submits a task that runs when it has been [called](Debounced::call), and then not been called
    /// again for the `quiet` time: a file that is saved once the user stops typing, an index that is
    /// built when the last change of many has arrived.
    ///
    /// The body reports like that of [`repeat`](Self::repeat). Costs a few allocations more than a
    /// periodic task. The first of several calls costs what a [`reschedule`](crate::ScheduledFuture::reschedule) does, each
    /// further one what an [`extend`](crate::Extender::extend) does.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let second = Duration::from_secs(1);
    /// let save = executor.debounce(second, || println!("saved"))?.max_wait(10 * second);
    /// for _ in 0..5 {
    ///     save.call(); // a key is pressed
    ///     clock.run_for(second / 2);
    /// }
    /// assert_eq!(executor.statistics().runs, 0);
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
    pub fn debounce<F, O>(
        &self,
        quiet: Duration,
        body: F,
    ) -> Result<Debounced, RejectedExecutionError>
    where
        F: FnMut() -> O + Send + 'static,
        O: Outcome,
    {
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
    pub fn throttle<F, O>(
        &self,
        period: Duration,
        body: F,
    ) -> Result<Throttled, RejectedExecutionError>
    where
        F: FnMut() -> O + Send + 'static,
        O: Outcome,
    {
        self.task().throttle(period, body)
    }
}

impl TaskBuilder<'_> {
    /// Submits the task: see [`Handle::debounce`].
    ///
    /// # Errors
    ///
    /// The same as [`Handle::debounce`].
    #[track_caller]
    pub fn debounce<F, O>(
        self,
        quiet: Duration,
        body: F,
    ) -> Result<Debounced, RejectedExecutionError>
    where
        F: FnMut() -> O + Send + 'static,
        O: Outcome,
    {
        let task = self.called(body)?;
        let put_off = task.extension_by_calls();
        Ok(Debounced { task, put_off, quiet, max_wait: Duration::MAX, cancels_on_drop: false })
    }

    /// Submits the task: see [`Handle::throttle`].
    ///
    /// # Errors
    ///
    /// The same as [`Handle::throttle`].
    #[track_caller]
    pub fn throttle<F, O>(
        self,
        period: Duration,
        body: F,
    ) -> Result<Throttled, RejectedExecutionError>
    where
        F: FnMut() -> O + Send + 'static,
        O: Outcome,
    {
        Ok(Throttled { task: self.called(body)?, period, cancels_on_drop: false })
    }

    /// Submits a task that runs for its calls.
    #[track_caller]
    fn called<F, O>(self, mut body: F) -> Result<TaskHandle, RejectedExecutionError>
    where
        F: FnMut() -> O + Send + 'static,
        O: Outcome,
    {
        let body = move || {
            body_begins();
            body()
        };
        Ok(self.repeat(on_demand(), body)?.task_handle())
    }
}

impl Drop for Debounced {
    fn drop(&mut self) {
        if self.cancels_on_drop {
            self.task.cancel();
        }
    }
}

impl Drop for Throttled {
    fn drop(&mut self) {
        if self.cancels_on_drop {
            self.task.cancel();
        }
    }
}

impl fmt::Debug for Debounced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Debounced").field(&self.task).finish()
    }
}

impl fmt::Debug for Throttled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Throttled").field(&self.task).finish()
    }
}
