//! Debounce: one run after the calls have stopped. Throttle: a run for the first call, and at most one per period.
//!
//! ```text
//!   calls      │ │ │       │             │
//!   debounce   ────── ▼ ────── ▼ ─────────── ▼     quiet after the last call
//!   throttle   ▼ ── ▼ ──── ▼ ─────────── ▼         at once, and then at most once per period
//! ```
//!
//! The first call asks for a run. Each further call joins that run, and with debounce also puts it off ([`Calls`]).

use std::time::Duration;

use super::{
    NEVER,
    calls::{Caller, Calls},
    nanos,
};
use crate::{Outcome, RejectedExecutionError, TaskBuilder, TaskHandle};

/// A task that runs once it has not been called for a while; from
/// [`TaskBuilder::debounce`](crate::TaskBuilder::debounce).
///
/// Dropping it detaches the task: a run that calls wait for takes place, and the task is pending until cancelled, by a
/// [handle](Self::task_handle) or with its executor. [`cancel_on_drop`](Self::cancel_on_drop) changes that.
#[derive(Debug)]
pub struct Debounced {
    caller: Caller,
    // In nanoseconds.
    quiet: u64,
    max_wait: u64,
}

#[allow(clippy::must_use_candidate, reason = "they are done for what they do")]
impl Debounced {
    #[track_caller]
    pub(crate) fn submit<O: Outcome>(
        task: TaskBuilder<'_>,
        quiet: Duration,
        body: impl FnMut() -> O + Send + 'static,
    ) -> Result<Self, RejectedExecutionError> {
        let caller = Calls::submit(task, Duration::ZERO, body)?;
        Ok(Self { caller, quiet: nanos(quiet), max_wait: NEVER })
    }

    /// Runs the task no later than `max_wait` after the first call, however often it is called meanwhile. By default
    /// there is no limit.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let second = Duration::from_secs(1);
    /// let save = executor.task().debounce(second, || { /* save */ })?.max_wait(3 * second);
    /// for _ in 0..100 {
    ///     save.call(); // ten times a second, for ten seconds
    ///     clock.run_for(second / 10);
    /// }
    /// assert_eq!(executor.statistics().runs, 3);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[must_use]
    pub fn max_wait(mut self, max_wait: Duration) -> Self {
        self.max_wait = nanos(max_wait);
        self
    }

    /// Asks for a run once no further call has come for the quiet time. Returns `false` if the task has ended. Does not
    /// block. A call that finds another one waiting costs one atomic operation; any other, O(log n).
    pub fn call(&self) -> bool {
        self.caller.call(|now, first| {
            let latest = first.saturating_add(self.max_wait).max(now);
            now.saturating_add(self.quiet).min(latest)
        })
    }

    /// Returns `true` if a call waits for its run: something has changed and is not saved yet. A call stops waiting
    /// when its run begins. O(1).
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let save = executor.task().debounce(Duration::from_secs(60), || { /* save */ })?;
    /// assert!(!save.is_waiting());
    /// save.call();
    /// assert!(save.is_waiting());
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn is_waiting(&self) -> bool {
        self.caller.is_waiting()
    }

    /// Runs the task now if a call is waiting; otherwise, or if the task has ended, returns `false`. Does not block.
    pub fn flush(&self) -> bool {
        self.caller.flush()
    }

    /// Cancels the task when this is dropped, and with it a run that calls wait for: where that matters, call
    /// [`flush`](Self::flush) first.
    #[must_use]
    pub fn cancel_on_drop(mut self) -> Self {
        self.caller.cancels_on_drop = true;
        self
    }

    /// Returns the handle of the task.
    #[must_use]
    pub fn task_handle(&self) -> &TaskHandle {
        &self.caller.task
    }
}

/// A task that runs at most once per period, however often it is called; from
/// [`TaskBuilder::throttle`](crate::TaskBuilder::throttle).
///
/// Dropping it detaches the task: a run that calls wait for takes place, and the task is pending until cancelled, by a
/// [handle](Self::task_handle) or with its executor. [`cancel_on_drop`](Self::cancel_on_drop) changes that.
#[derive(Debug)]
pub struct Throttled {
    caller: Caller,
}

impl Throttled {
    #[track_caller]
    pub(crate) fn submit<O: Outcome>(
        task: TaskBuilder<'_>,
        period: Duration,
        body: impl FnMut() -> O + Send + 'static,
    ) -> Result<Self, RejectedExecutionError> {
        Ok(Self { caller: Calls::submit(task, period, body)? })
    }

    /// Asks for a run: at once if the last one began a period ago or more, and otherwise as soon as a period has
    /// passed. All calls until then share that run. Returns `false` if the task has ended. Does not block. O(log n).
    #[allow(clippy::must_use_candidate, reason = "it is done for what it does")]
    pub fn call(&self) -> bool {
        self.caller.call(|_, _| 0)
    }

    /// Cancels the task, and any run that calls wait for, when this is dropped.
    #[must_use]
    pub fn cancel_on_drop(mut self) -> Self {
        self.caller.cancels_on_drop = true;
        self
    }

    /// Returns the handle of the task.
    #[must_use]
    pub fn task_handle(&self) -> &TaskHandle {
        &self.caller.task
    }
}
