//! The future that is ready at a moment.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use super::TimerStopped;
use crate::{
    CancelReason,
    pool::PoolRef,
    queue::Ticket,
    sync::Arc,
    task::{Alarm, Change, Runnable, Task},
    time::{Clock, Timestamp},
    unwind::discard,
};

/// A future that is ready at its deadline; from [`Handle::sleep`](crate::Handle::sleep).
///
/// It wakes the waker of its last poll, from a worker of the executor. After its end it is ready at every
/// further poll, until it is [reset](Self::reset). Dropping it removes it from the queue at once, and wakes
/// nobody.
///
/// It ends with [`TimerStopped`] if the executor stops before the deadline.
#[must_use = "a future does nothing unless it is awaited"]
pub struct Sleep {
    pool_ref: PoolRef,
    deadline: Timestamp,
    /// What is in the queue, from a poll that found the deadline ahead until one that finds the alarm
    /// gone off.
    entry: Option<Entry>,
}

struct Entry {
    task: Arc<Task<Alarm>>,
    ticket: Ticket,
}

impl Sleep {
    pub(super) fn new(pool_ref: &PoolRef, deadline: Timestamp) -> Self {
        Self { pool_ref: pool_ref.clone(), deadline, entry: None }
    }

    pub(super) fn clock(&self) -> &Clock {
        self.pool_ref.pool().clock()
    }

    pub(super) fn planned(&self) -> Timestamp {
        self.deadline
    }

    /// Returns the instant at which it is ready; `None` for one that never is.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.clock().instant_of(self.deadline)
    }

    /// Returns `true` if the deadline has come.
    #[must_use]
    pub fn is_elapsed(&self) -> bool {
        self.clock().read() >= self.deadline
    }

    /// Moves the deadline to `duration` from now, earlier or later, whether or not it has come. An entry
    /// that is in the queue is moved there, with the waker that it has.
    ///
    /// Does not block. O(log n).
    ///
    /// ```
    /// use std::{pin::Pin, task::{Context, Poll, Waker}, time::Duration};
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
    ///
    /// let clock = ManualClock::new();
    /// let timers = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let second = Duration::from_secs(1);
    /// let mut context = Context::from_waker(Waker::noop());
    /// let mut idle = timers.sleep(30 * second);
    /// assert!(Pin::new(&mut idle).poll(&mut context).is_pending());
    /// clock.run_for(29 * second);
    /// idle.reset(30 * second); // there was news
    /// clock.run_for(29 * second);
    /// assert!(Pin::new(&mut idle).poll(&mut context).is_pending());
    /// clock.run_for(second);
    /// assert!(Pin::new(&mut idle).poll(&mut context).is_ready());
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn reset(&mut self, duration: Duration) {
        let deadline = self.clock().read().after(duration);
        self.move_to(deadline);
    }

    /// As [`reset`](Self::reset), to an instant of the executor's [clock](crate::Handle::clock). One that
    /// has passed means now, and `None` never.
    pub fn reset_at(&mut self, instant: impl Into<Option<Instant>>) {
        let instant = instant.into();
        let deadline =
            instant.map_or(Timestamp::NEVER, |instant| self.clock().deadline_of(instant));
        self.move_to(deadline);
    }

    /// An entry that cannot be moved has gone off, or has been ended, or may not be put off because the
    /// executor was shut down. Then its waker has been woken or will be, and the poll that follows sees to
    /// the new deadline.
    pub(super) fn move_to(&mut self, deadline: Timestamp) {
        self.deadline = deadline;
        if let Some(Entry { task, ticket }) = &self.entry {
            let shared = || Arc::clone(task) as Arc<dyn Runnable>;
            self.pool_ref.control(&**task, *ticket, Change::At(deadline), shared);
        }
    }

    pub(super) fn poll_elapsed(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), TimerStopped>> {
        if let Some(entry) = &self.entry {
            let ended = ready!(entry.task.poll_alarm(context.waker()));
            discard(self.entry.take());
            ended.map_err(|reason| TimerStopped { reason })?;
            // One that was moved when it had gone off already, or was run by hand, is not due.
        }
        let now = self.clock().read();
        if now >= self.deadline {
            return Poll::Ready(Ok(()));
        }
        self.enter(now, context)?;
        Poll::Pending
    }

    fn enter(&mut self, now: Timestamp, context: &Context<'_>) -> Result<(), TimerStopped> {
        let pool = self.pool_ref.pool();
        let reason = CancelReason::Rejected;
        let is_staffed = pool.ensure_worker().map_err(|_| TimerStopped { reason })?;
        let task = Arc::new(Task::plain(Alarm::new(context.waker().clone())));
        let ticket = self
            .pool_ref
            .admit_timer(task.clone(), now, self.deadline, is_staffed)
            .map_err(|why| TimerStopped::refused(&why))?;
        self.entry = Some(Entry { task, ticket });
        Ok(())
    }
}

impl Future for Sleep {
    type Output = Result<(), TimerStopped>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_elapsed(context)
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(Entry { task, ticket }) = self.entry.take() {
            self.pool_ref.pool().cancel(&*task, ticket, CancelReason::Requested, false);
            discard(task);
        }
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep")
            .field("remaining", &self.deadline.delay_at(self.clock().read()))
            .field("is_queued", &self.entry.is_some())
            .finish_non_exhaustive()
    }
}
