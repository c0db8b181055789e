//! The extender: a handle that puts a run off with one atomic.
//!
//! It is for the timeout that nearly every request extends and nearly none lets expire. The later moment goes into a word
//! that the extender shares with the task, and the entry in the queue follows once in each span
//! (`layers::put_off`).

use std::{
    fmt,
    ops::Deref,
    time::{Duration, Instant},
};

use super::{ScheduledFuture, TaskHandle};
use crate::{layers::PutOff, sync::Arc, time::Timestamp};

/// Puts a run off, as often as it likes, at the cost of one atomic operation; from
/// [`TaskHandle::extender`] or [`ScheduledFuture::extender`](crate::ScheduledFuture::extender).
///
/// It is what a timeout needs that each sign of life extends: an idle connection, a session, a lease, a watchdog.
/// [`reschedule`](crate::ScheduledFuture::reschedule) does the same, but moves the task in the queue at each call, under two
/// locks. An extender notes the later moment beside the queue. When the task comes up at its old moment, a worker finds
/// the note and queues the task for the later one, without running it. That look costs a microsecond of a worker,
/// and there is one for each span at most: a timeout of 30 s that is extended a million times is looked at every 30 s.
///
/// It dereferences to the handle of the task, to cancel and control it. It is cheap to clone, and does nothing when it is
/// dropped.
///
/// * The run does not take place before the moment to which it was put off, unless a later call asks for an earlier one:
///   [`reschedule`](crate::ScheduledFuture::reschedule), [`run_within`](crate::ScheduledFuture::run_within),
///   [`run_now`](crate::ScheduledFuture::run_now). After a shutdown such a call can do no more than take the extension
///   back: the run takes place at its old moment, which may be earlier.
/// * Tasks whose moments are equal run in the order of their submission, as after `reschedule`.
/// * [`delay`](TaskHandle::delay) and [`pending_tasks`](crate::Handle::pending_tasks) show the later moment.
/// * A task that has a [time limit](crate::TaskBuilder::timeout), a [gate](crate::TaskBuilder::gate) or a
///   [group](crate::Group) is moved under its lock, as by `reschedule`, since these have to move along. So is one that is put
///   off for ever.
/// * With a [bound](crate::Builder::max_pending), a task that is looked at for nothing keeps its place, although it has left
///   the queue for that moment: for each worker that looks at one, one task more than the bound may be admitted.
///
/// ```
/// use std::time::Duration;
/// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
///
/// let clock = ManualClock::new();
/// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
/// let second = Duration::from_secs(1);
/// let hang_up = executor.schedule(30 * second, || "idle for 30 seconds")?;
/// let activity = hang_up.extender();
/// for _ in 0..100 {
///     clock.run_for(second); // a request each second
///     assert!(activity.extend(30 * second));
/// }
/// assert_eq!(activity.delay(), Some(30 * second));
/// clock.run_for(30 * second);
/// assert_eq!(hang_up.join()?, "idle for 30 seconds");
/// assert!(!activity.extend(30 * second), "too late");
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[doc(alias("keep_alive", "heartbeat", "watchdog", "touch", "renew"))]
#[derive(Clone)]
pub struct Extender {
    handle: TaskHandle,
    put_off: Arc<PutOff>,
}

impl Extender {
    /// Runs the task after `delay` at the earliest, counted from now: puts its next run off, or leaves it as it is if that
    /// is later. It never brings a run forward, which is what [`run_within`](crate::ScheduledFuture::run_within) is for.
    ///
    /// Returns `true` if the next run does not take place before that. Returns `false`, and has no effect, if the
    /// run has begun, if the task has ended, or if the executor was shut down and the task is queued for an earlier moment. A
    /// periodic task has its next run put off, and `false` means that one is under way.
    ///
    /// Does not block: one reading of the clock and one atomic operation, or none if an extension to a later moment came
    /// before. Java: `cancel` and `schedule`.
    #[doc(alias("reset", "postpone"))]
    #[allow(clippy::must_use_candidate, reason = "it is done for what it does")]
    #[inline]
    pub fn extend(&self, delay: Duration) -> bool {
        self.put_off_to(self.handle.clock().read().after(delay))
    }

    /// As [`extend`](Self::extend), to an instant of the executor's [clock](crate::Handle::clock); `None` means never. It
    /// saves the reading of the clock where the caller has the time already.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{Clock, ManualClock, ScheduledThreadPoolExecutor};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let second = Duration::from_secs(1);
    /// let session = executor.schedule(60 * second, || "logged out")?;
    /// let seen = executor.clock().now() + 10 * second;
    /// assert!(session.extender().extend_to(seen + 60 * second));
    /// assert_eq!(session.delay(), Some(70 * second));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[allow(clippy::must_use_candidate, reason = "it is done for what it does")]
    pub fn extend_to(&self, instant: impl Into<Option<Instant>>) -> bool {
        let clock = self.handle.clock();
        self.put_off_to(
            instant.into().map_or(Timestamp::NEVER, |instant| clock.deadline_of(instant)),
        )
    }

    #[inline]
    fn put_off_to(&self, moment: Timestamp) -> bool {
        // An entry of a closed queue is not put off. One extension may still be on its way; it comes before the closing.
        let is_open = !self.handle.pool().queue.is_closed();
        is_open && self.put_off.put_off_to(moment) || self.handle.put_off_to(moment)
    }
}

impl TaskHandle {
    /// Returns a handle that puts the next run off with one atomic operation. The first call for a task
    /// allocates; all extenders of one task share what it has made.
    #[must_use]
    pub fn extender(&self) -> Extender {
        let put_off = self.extension();
        Extender { handle: self.clone(), put_off }
    }
}

impl<T> ScheduledFuture<T> {
    /// Returns a handle that puts the run off with one atomic operation: for a timeout that is extended again and again.
    /// [`Extender`] has an example.
    #[must_use]
    pub fn extender(&self) -> Extender {
        let handle = self.task_handle();
        let put_off = handle.extension();
        Extender { handle, put_off }
    }
}

impl Deref for Extender {
    type Target = TaskHandle;

    fn deref(&self) -> &TaskHandle {
        &self.handle
    }
}

impl fmt::Debug for Extender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.handle.describe(f, "Extender")
    }
}
