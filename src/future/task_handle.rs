//! A handle on a task, for everyone who has to do with the task but not with its result.

use std::{
    fmt,
    time::{Duration, Instant},
};

use super::{describe, task_ref::TaskRef};
use crate::{
    FailedRun, TaskId, TaskState, WouldDeadlock,
    sync::Arc,
    task::{Change, Pace},
    trigger::Trigger,
};

/// Controls and cancels a task; from [`ScheduledFuture::task_handle`](crate::ScheduledFuture::task_handle). It is cheap to clone, does not
/// depend on the type of the result, and does nothing when it is dropped.
///
/// ```
/// use std::time::Duration;
/// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
///
/// let clock = ManualClock::new();
/// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
/// let logout = executor.schedule(Duration::from_secs(60), || "logged out")?;
/// let activity = logout.task_handle();
///
/// clock.run_for(Duration::from_secs(59));
/// assert!(activity.reschedule(Duration::from_secs(60)), "seen again: one minute more");
/// clock.run_for(Duration::from_secs(59));
/// assert!(!logout.is_done());
/// clock.run_for(Duration::from_secs(1));
/// assert_eq!(logout.join()?, "logged out");
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[doc(alias = "AbortHandle")]
pub struct TaskHandle(TaskRef);

impl TaskHandle {
    pub(crate) fn new(task: TaskRef) -> Self {
        Self(task)
    }

    /// Cancels the task: see [`ScheduledFuture::cancel`](crate::ScheduledFuture::cancel).
    #[allow(clippy::must_use_candidate, reason = "it is done for what it does")]
    pub fn cancel(&self) -> bool {
        self.0.cancel()
    }

    /// Cancels the task, and asks a running body to stop: see
    /// [`ScheduledFuture::cancel_and_signal`](crate::ScheduledFuture::cancel_and_signal).
    #[allow(clippy::must_use_candidate, reason = "it is done for what it does")]
    pub fn cancel_and_signal(&self) -> bool {
        self.0.cancel_and_signal()
    }

    /// Cancels the task, asks a running body to stop, and waits until it has: see
    /// [`ScheduledFuture::cancel_and_wait`](crate::ScheduledFuture::cancel_and_wait).
    ///
    /// # Errors
    ///
    /// The same as [`ScheduledFuture::cancel_and_wait`](crate::ScheduledFuture::cancel_and_wait).
    pub fn cancel_and_wait(&self) -> Result<bool, WouldDeadlock> {
        self.0.cancel_and_wait()
    }

    /// Runs the task next after `delay`: see [`ScheduledFuture::reschedule`](crate::ScheduledFuture::reschedule).
    #[allow(clippy::must_use_candidate, reason = "it is done for what it does")]
    pub fn reschedule(&self, delay: Duration) -> bool {
        self.0.reschedule(delay)
    }

    /// Runs the task next at `instant`: see [`ScheduledFuture::reschedule_at`](crate::ScheduledFuture::reschedule_at).
    #[allow(clippy::must_use_candidate, reason = "it is done for what it does")]
    pub fn reschedule_at(&self, instant: impl Into<Option<Instant>>) -> bool {
        self.0.reschedule_at(instant.into())
    }

    /// Runs the task after `delay` at the latest: see [`ScheduledFuture::run_within`](crate::ScheduledFuture::run_within).
    #[allow(clippy::must_use_candidate, reason = "it is done for what it does")]
    pub fn run_within(&self, delay: Duration) -> bool {
        self.0.run_within(delay)
    }

    /// Runs the task now, beside its schedule: see [`ScheduledFuture::run_now`](crate::ScheduledFuture::run_now).
    #[allow(clippy::must_use_candidate, reason = "it is done for what it does")]
    pub fn run_now(&self) -> bool {
        self.0.run_now()
    }

    /// Gives a periodic task another schedule: see [`ScheduledFuture::set_trigger`](crate::ScheduledFuture::set_trigger).
    #[allow(clippy::must_use_candidate, reason = "it is done for what it does")]
    pub fn set_trigger(&self, trigger: impl Trigger) -> bool {
        self.0.set_trigger(trigger)
    }

    /// Keeps the task from running until it is resumed: see [`ScheduledFuture::pause`](crate::ScheduledFuture::pause).
    #[allow(clippy::must_use_candidate, reason = "it is done for what it does")]
    pub fn pause(&self) -> bool {
        self.0.change(Change::Pause)
    }

    /// Ends a pause: see [`ScheduledFuture::resume`](crate::ScheduledFuture::resume).
    #[allow(clippy::must_use_candidate, reason = "it is done for what it does")]
    pub fn resume(&self) -> bool {
        self.0.change(Change::Resume)
    }

    /// Returns how long it is until the next run: see [`ScheduledFuture::delay`](crate::ScheduledFuture::delay).
    #[must_use]
    pub fn delay(&self) -> Option<Duration> {
        self.0.delay()
    }

    /// Returns the last run of a periodic task that failed: see [`ScheduledFuture::last_failure`](crate::ScheduledFuture::last_failure).
    #[must_use]
    pub fn last_failure(&self) -> Option<FailedRun> {
        self.0.task().last_failure()
    }

    /// Calls the task, which is debounced or throttled.
    pub(crate) fn call(&self, pace: Pace) -> bool {
        let now = self.0.clock().read();
        self.0.change(Change::Call(now, pace))
    }

    /// Runs the task now if a call waits for it. Returns `true` if one does.
    pub(crate) fn flush(&self) -> bool {
        let now = self.0.clock().read();
        self.0.change(Change::Flush(now))
    }

    /// Returns `true` if a call waits for its run.
    pub(crate) fn is_called(&self) -> bool {
        self.0.task().is_called()
    }

    /// Returns `true` if the task has ended.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.0.state().is_done()
    }

    /// Returns `true` if the task was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.state() == TaskState::Cancelled
    }

    /// Returns the state of the task.
    #[must_use]
    pub fn state(&self) -> TaskState {
        self.0.state()
    }

    /// Returns the id of the task.
    #[must_use]
    pub fn id(&self) -> TaskId {
        self.0.id()
    }

    /// Returns the name of the task, if it was given one.
    #[must_use]
    pub fn name(&self) -> Option<Arc<str>> {
        self.0.task().name()
    }
}

impl Clone for TaskHandle {
    fn clone(&self) -> Self {
        Self(self.0.share())
    }
}

impl fmt::Debug for TaskHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe(f, "TaskHandle", self.id(), self.name(), self.state())
    }
}
