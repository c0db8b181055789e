//! Features that use only the public names of the crate: `tests/proof/doors` compiles the same files outside the crate.
//! So a user can copy a file and change the feature. The methods that offer [`pace`] and [`together`] are here; those
//! that offer [`observe`] are in `observing.rs`.

#[cfg(feature = "cron")]
pub(crate) mod cron;
pub(crate) mod observe;
pub(crate) mod pace;
pub(crate) mod together;

use std::time::Duration;

use self::pace::{Debounced, Extender, Throttled};
use crate::{
    Handle, InvokeError, Limit, Outcome, RejectedExecutionError, ScheduledFuture, TaskBuilder,
    TaskOutput,
};

/// # Many calls, one run
impl TaskBuilder<'_> {
    /// Gives the task an [`Extender`], which puts off its next run with one atomic operation: for a timeout that is
    /// often extended. Set a [gate](Self::gate) before this call: it is asked about the runs that the extender lets
    /// pass. A gate set later replaces the extender, which then answers `false`. As with every gate,
    /// [jitter](crate::Trigger::jitter) needs a seed or a name. Costs a gate, asked before each run.
    pub fn extender(self) -> (Self, Extender) {
        Extender::of(self)
    }

    /// Submits a task that runs once its [calls](Debounced::call) have stopped for the `quiet` time: a file is saved
    /// when the user stops typing.
    ///
    /// The body may return what a body of [`repeat`](Self::repeat) may, and this call fails for the same reasons. Costs
    /// a few allocations more than a periodic task. The first of several calls costs as much as a
    /// [`reschedule`](crate::TaskHandle::reschedule), each further one as an [`extend`](Extender::extend).
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let second = Duration::from_secs(1);
    /// let save = executor.task().debounce(second, || println!("saved"))?;
    /// for _ in 0..5 {
    ///     save.call(); // a key is pressed
    ///     clock.run_for(second / 2);
    /// }
    /// clock.run_for(second);
    /// assert_eq!(executor.statistics().runs, 1);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias = "coalesce")]
    #[track_caller]
    pub fn debounce<O: Outcome>(
        self,
        quiet: Duration,
        body: impl FnMut() -> O + Send + 'static,
    ) -> Result<Debounced, RejectedExecutionError> {
        Debounced::submit(self, quiet, body)
    }

    /// Submits a task that runs when it is [called](Throttled::call): at once, but at most once per `period`. A call
    /// that comes too soon gets its run at the end of the period, so a run follows every call: for a progress bar, or a
    /// log line about an event that happens too often.
    ///
    /// The body may return what a body of [`repeat`](Self::repeat) may, and this call fails for the same reasons.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let second = Duration::from_secs(1);
    /// let draw = executor.task().throttle(second, || println!("drawn"))?;
    /// for _ in 0..30 {
    ///     draw.call(); // some progress
    ///     clock.run_for(second / 10);
    /// }
    /// assert_eq!(executor.statistics().runs, 4, "at 0, 1, 2 and 3 seconds");
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias("rate_limit", "RateLimiter"))]
    #[track_caller]
    pub fn throttle<O: Outcome>(
        self,
        period: Duration,
        body: impl FnMut() -> O + Send + 'static,
    ) -> Result<Throttled, RejectedExecutionError> {
        Throttled::submit(self, period, body)
    }
}

/// # Many tasks at once
impl Handle {
    /// Submits the closures, blocks until all have ended, and returns their futures in the order of the closures. Java:
    /// `invokeAll`.
    ///
    /// On a manual clock [another thread has to move it](crate::ManualClock#when-it-blocks).
    ///
    /// ```
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(2);
    /// let words = ["no", "unsafe", "code"];
    /// let lengths = executor.invoke_all(words.map(|word| move || word.len()))?;
    /// let lengths: Result<Vec<_>, _> = lengths.into_iter().map(|future| future.join()).collect();
    /// assert_eq!(lengths?, [2, 6, 4]);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// * [`InvokeError::Rejected`] as soon as one closure is rejected.
    /// * [`InvokeError::WouldDeadlock`] where [`ScheduledFuture::wait`] would return it.
    ///
    /// In both cases, and if the iterator panics, the tasks that were submitted are
    /// [cancelled and signalled](crate::TaskHandle::cancel_and_signal).
    #[doc(alias = "join_all")]
    #[track_caller]
    pub fn invoke_all<T: TaskOutput + Send + 'static>(
        &self,
        closures: impl IntoIterator<Item = impl FnOnce() -> T + Send + 'static>,
    ) -> Result<Vec<ScheduledFuture<T>>, InvokeError> {
        together::invoke_all(self, closures, None)
    }

    /// Runs the closures as [`invoke_all`](Self::invoke_all) does, but blocks only until `limit`, counted from the
    /// call. When the time is up, it [cancels and signals](crate::TaskHandle::cancel_and_signal) unfinished tasks, and
    /// returns all futures. When the token is cancelled, it submits no more closures, and cancels and signals all tasks
    /// too. Java: `invokeAll(tasks, timeout, unit)`, and `invokeAll` in a thread that may be interrupted.
    ///
    /// # Errors
    ///
    /// [`InvokeError::Interrupted`] if the token is cancelled, before or during the call, and not all have ended.
    /// Otherwise as [`invoke_all`](Self::invoke_all), but never [`InvokeError::WouldDeadlock`].
    #[track_caller]
    pub fn invoke_all_within<T: TaskOutput + Send + 'static>(
        &self,
        closures: impl IntoIterator<Item = impl FnOnce() -> T + Send + 'static>,
        limit: impl Into<Limit>,
    ) -> Result<Vec<ScheduledFuture<T>>, InvokeError> {
        together::invoke_all(self, closures, Some(limit.into()))
    }

    /// Submits the closures, blocks until the first returns `Ok`, and returns its value. It [cancels and
    /// signals](crate::TaskHandle::cancel_and_signal) the other tasks, and never runs closures that it has not yet
    /// submitted. Java: `invokeAny`.
    ///
    /// ```
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(2);
    /// let texts = ["seven", "7", "VII"];
    /// let number = executor.invoke_any(texts.map(|text| move || text.parse::<u32>()))?;
    /// assert_eq!(number, 7);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// * If all tasks fail, the failure of the one that ended last: [`InvokeError::Failed`] with the
    ///   error that it returned, or [`InvokeError::Task`] if it panicked or was cancelled.
    /// * [`InvokeError::NoTasks`] if there are no closures.
    /// * [`InvokeError::Rejected`] as soon as one closure is rejected.
    /// * [`InvokeError::WouldDeadlock`] where [`ScheduledFuture::wait`] would return it.
    ///
    /// In each case, and if the iterator panics, the tasks that were submitted have ended or are cancelled and
    /// signalled.
    #[doc(alias("select_ok", "race"))]
    #[track_caller]
    pub fn invoke_any<T: Send + 'static, E: Send + 'static>(
        &self,
        closures: impl IntoIterator<Item = impl FnOnce() -> Result<T, E> + Send + 'static>,
    ) -> Result<T, InvokeError<E>>
    where
        Result<T, E>: TaskOutput,
    {
        together::invoke_any(self, closures, None)
    }

    /// Runs the closures as [`invoke_any`](Self::invoke_any) does, but blocks only until `limit`, counted from the
    /// call. Once the token is cancelled, it submits no more closures. Java: `invokeAny(tasks, timeout, unit)`, and
    /// `invokeAny` in a thread that may be interrupted.
    ///
    /// # Errors
    ///
    /// [`InvokeError::TimedOut`] if no task has succeeded by then and not all have failed; [`InvokeError::Interrupted`]
    /// if the token is cancelled, before or during the call, and no task has succeeded. Otherwise as
    /// [`invoke_any`](Self::invoke_any), but never [`InvokeError::WouldDeadlock`].
    #[track_caller]
    pub fn invoke_any_within<T: Send + 'static, E: Send + 'static>(
        &self,
        closures: impl IntoIterator<Item = impl FnOnce() -> Result<T, E> + Send + 'static>,
        limit: impl Into<Limit>,
    ) -> Result<T, InvokeError<E>>
    where
        Result<T, E>: TaskOutput,
    {
        together::invoke_any(self, closures, Some(limit.into()))
    }
}
