//! The future that is ready at a moment.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use super::TimerStopped;
use crate::{
    entry::Ticket,
    pool::PoolRef,
    task::{Alarm, Node},
    time::{Clock, Timestamp},
};

/// A future that is ready at its deadline; from [`Handle::sleep`](crate::Handle::sleep).
///
/// It wakes the waker of its last poll, from a worker of the executor. After its end it is ready at every
/// further poll, until it is [reset](Self::reset). Dropping it removes it from the queue at once, and wakes
/// nobody.
///
/// It ends with [`TimerStopped`] if the executor stops before the deadline.
///
/// [`Handle::sleep`](crate::Handle::sleep) and [`reset`](Self::reset) have examples.
// The entry is known by its ticket alone: the queue owns the alarm, so the two share no count and no lock.
#[must_use = "a future does nothing unless it is awaited"]
pub struct Sleep {
    pool_ref: PoolRef,
    deadline: Timestamp,
    /// The alarm in the queue, from a poll that found the deadline ahead until one that finds the alarm
    /// gone off.
    entry: Option<TimerEntry>,
}

#[derive(Clone, Copy)]
struct TimerEntry {
    ticket: Ticket,
    waker: WakerId,
}

/// Which waker it is, as [`Waker::will_wake`] compares it. The alarm in the queue keeps that waker alive,
/// so no other can have the same address.
#[derive(Clone, Copy, PartialEq, Eq)]
struct WakerId(usize, usize);

impl WakerId {
    fn of(waker: &Waker) -> Self {
        Self(waker.data().addr(), std::ptr::from_ref(waker.vtable()).addr())
    }
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

    /// An entry that cannot be moved because it is gone has been woken, or is about to be, and the poll
    /// that follows makes another. One that may not be put off, because the executor was shut down, stays
    /// where it is; when it goes off there, the poll finds that it was too early.
    pub(super) fn move_to(&mut self, deadline: Timestamp) {
        self.deadline = deadline;
        if let Some(TimerEntry { ticket, waker }) = self.entry {
            let moved = self.pool_ref.pool().move_timer(ticket, deadline);
            self.entry = moved.map(|ticket| TimerEntry { ticket, waker });
        }
    }

    pub(super) fn poll_elapsed(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), TimerStopped>> {
        let now = self.clock().read();
        if now >= self.deadline {
            self.leave();
            return Poll::Ready(Ok(()));
        }
        let waker = WakerId::of(context.waker());
        match self.entry {
            Some(entry) if entry.waker == waker => self.poll_entry(entry.ticket),
            _ => {
                self.leave();
                self.enter(now, context.waker())?;
                Poll::Pending
            }
        }
    }

    /// Polls an entry that need not be changed. The clock is read once more if it is gone, which may be
    /// because its deadline has come since the poll has begun.
    fn poll_entry(&mut self, ticket: Ticket) -> Poll<Result<(), TimerStopped>> {
        let Some(reason) = self.pool_ref.pool().end_of_timer(ticket) else {
            return Poll::Pending;
        };
        self.entry = None;
        Poll::Ready(if self.is_elapsed() { Ok(()) } else { Err(TimerStopped { reason }) })
    }

    fn enter(&mut self, now: Timestamp, waker: &Waker) -> Result<(), TimerStopped> {
        let id = WakerId::of(waker);
        let task = Node::alarm(Alarm::new(waker.clone()));
        let admitted = self.pool_ref.admit_timer(task, now, self.deadline);
        let ticket = admitted.map_err(|why| TimerStopped::refused(&why))?;
        self.entry = Some(TimerEntry { ticket, waker: id });
        Ok(())
    }

    #[inline]
    fn leave(&mut self) {
        if let Some(entry) = self.entry.take() {
            self.pool_ref.pool().remove_timer(entry.ticket);
        }
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
        self.leave();
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
