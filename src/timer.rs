//! Async timers: [`sleep`](Handle::sleep), [`interval`](Handle::interval) and [`timeout`](Handle::timeout), on any
//! runtime or without one. Timers are entries of the executor's own queue, beside its tasks, so they are as exact as
//! tasks, and cost as much.
//!
//! ```text
//!   Sleep ──▶ first poll ──▶ entry in the queue ──▶ due: a worker calls the last waker
//!                │                 │ dropped: out of the queue, at once
//!                │                 │ reset: moved in place
//!                │                 └ executor stopped: woken, and ends with TimerStopped
//!                └ due already: ready, without an entry
//! ```
//!
//! [`Statistics`](crate::Statistics) counts an entry among the tasks. The executor's
//! [bound](crate::Builder::max_pending) counts it but never refuses it, and no hook, decorator or rejection handler
//! sees it. A shutdown treats an entry like a delayed task: the entry stays, or ends at once with [`TimerStopped`].
//!
//! # Why no wake-up is lost
//!
//! An entry holds an alarm, which calls the waker unless the timer has taken the entry out (`task::alarm`). A poll
//! before the deadline looks for the entry. If it is there, the alarm has yet to go off. If it is gone and the deadline
//! has still not come, the pool has ended the entry, since no worker takes an entry before its deadline. A reset that
//! does not find the entry forgets it, and the next poll makes a new entry.

use std::{
    error::Error,
    fmt,
    future::{Future, IntoFuture, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll, Waker, ready},
    time::{Duration, Instant},
};

use crate::{
    CancelReason, Handle, MissedRuns, RejectionReason,
    entry::{Moved, Ticket},
    pool::{Phase, PoolRef},
    schedule::Schedule,
    task::{Alarm, Node},
    time::{Clock, Timestamp},
};

/// # Timers
impl Handle {
    /// Returns a future that completes `duration` after this call, and never earlier; `Duration::MAX` means never. Does
    /// not block. The future enters the queue at its first poll, and dropping it removes it. Costs as much as a task:
    /// one allocation, and O(log n).
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let timers = ScheduledThreadPoolExecutor::new(1);
    /// let begun = std::time::Instant::now();
    /// smol::block_on(timers.sleep(Duration::from_millis(5)))?; // in async code: `.await`
    /// assert!(begun.elapsed() >= Duration::from_millis(5));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias("delay", "timer", "after", "delay_for"))]
    pub fn sleep(&self, duration: Duration) -> Sleep {
        let now = self.pool().clock().read();
        Sleep::new(self.pool_ref(), now.after(duration))
    }

    /// Like [`sleep`](Self::sleep), until an instant of the executor's [clock](Self::clock). One that has passed
    /// means now, and `None` never.
    pub fn sleep_until(&self, instant: impl Into<Option<Instant>>) -> Sleep {
        Sleep::new(self.pool_ref(), self.pool().clock().deadline_of(instant))
    }

    /// Returns a series of ticks: the first is due now, and each later one `period` after the one before. See
    /// [`Interval`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let timers = ScheduledThreadPoolExecutor::new(1);
    /// let mut ticks = timers.interval(Duration::from_millis(5));
    /// let first = smol::block_on(ticks.tick())?; // in async code: `.await`
    /// assert!(smol::block_on(ticks.tick())? - first >= Duration::from_millis(5));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the period is zero, since such ticks would never let anything else run.
    #[doc(alias("ticker", "tick", "setInterval", "every"))]
    pub fn interval(&self, period: Duration) -> Interval {
        self.interval_at(self.clock().now(), period)
    }

    /// Like [`interval`](Self::interval), with the first tick at an instant of the executor's [clock](Self::clock).
    /// Panics as it does.
    pub fn interval_at(&self, first: impl Into<Option<Instant>>, period: Duration) -> Interval {
        assert!(
            !period.is_zero(),
            "the period of an interval is zero; the shortest is one nanosecond"
        );
        Interval { sleep: self.sleep_until(first), period, missed: MissedRuns::Coalesce }
    }

    /// Runs a future for at most `duration` from this call, and then drops it where it stands. The clock is read after
    /// each poll, so a future that is ready when the time is up is in time. A limit of `Duration::MAX` never expires.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let timers = ScheduledThreadPoolExecutor::new(1);
    /// let asked = timers.timeout(Duration::from_secs(2), async { 42 });
    /// assert_eq!(smol::block_on(asked), Ok(42)); // in async code: `.await`
    /// ```
    ///
    /// # Errors
    ///
    /// [`TimeoutError::Elapsed`] if the time is up; [`TimeoutError::Stopped`] if the executor stopped first, so that
    /// there is no limit any more.
    #[doc(alias("deadline", "time_limit", "with_timeout", "timeout_at"))]
    pub fn timeout<F: IntoFuture>(
        &self,
        duration: Duration,
        future: F,
    ) -> impl Future<Output = Result<F::Output, TimeoutError>> + use<F> {
        // An async block pins the future in place, without an allocation.
        let (mut sleep, future) = (self.sleep(duration), future.into_future());
        async move {
            let mut future = pin!(future);
            poll_fn(|context| match future.as_mut().poll(context) {
                Poll::Ready(output) => Poll::Ready(Ok(output)),
                Poll::Pending => sleep.poll_elapsed(context).map(|ended| {
                    ended?;
                    Err(TimeoutError::Elapsed)
                }),
            })
            .await
        }
    }
}

/// A future that completes at its deadline; from [`Handle::sleep`](crate::Handle::sleep), which has an example. It
/// fails with [`TimerStopped`] if the executor stops first.
///
/// A worker of the executor calls the waker of its last poll. Once complete, it is ready at every further poll, until
/// it is [reset](Self::reset). Dropping it removes it from the queue at once, without a wake-up.
// The timer knows its entry by the ticket alone: the queue owns the alarm, so the two share no count and no lock.
#[must_use = "a future does nothing unless it is awaited"]
pub struct Sleep {
    pool_ref: PoolRef,
    deadline: Timestamp,
    /// The entry in the queue, from the poll that made it until a call takes it out or finds it gone.
    entry: Option<(Ticket, WakerId)>,
}

/// The identity of a waker, as [`Waker::will_wake`] compares it. The entry in the queue keeps that waker alive, so no
/// other waker can have the same addresses.
type WakerId = (usize, usize);

fn id_of(waker: &Waker) -> WakerId {
    (waker.data().addr(), std::ptr::from_ref(waker.vtable()).addr())
}

impl Sleep {
    fn new(pool_ref: &PoolRef, deadline: Timestamp) -> Self {
        Self { pool_ref: pool_ref.clone(), deadline, entry: None }
    }

    fn clock(&self) -> &Clock {
        self.pool_ref.pool().clock()
    }

    /// Returns the instant at which it completes; `None` if it never does.
    pub fn deadline(&self) -> Option<Instant> {
        self.clock().instant_of(self.deadline)
    }

    /// Returns `true` if the deadline has come.
    pub fn is_elapsed(&self) -> bool {
        self.clock().read() >= self.deadline
    }

    /// Moves the deadline to `duration` from now, earlier or later, whether or not it has come; an entry in the
    /// queue keeps its waker. Does not block. O(log n).
    pub fn reset(&mut self, duration: Duration) {
        self.move_to(self.clock().read().after(duration));
    }

    /// Like [`reset`](Self::reset), to an instant of the executor's [clock](crate::Handle::clock). One that has
    /// passed means now, and `None` never.
    pub fn reset_at(&mut self, instant: impl Into<Option<Instant>>) {
        self.move_to(self.clock().deadline_of(instant));
    }

    /// Moves the deadline, and the entry with it. If the entry is gone, its waker has been called, or is about to be,
    /// and the next poll makes another entry. After a shutdown, an entry cannot move to a later deadline, so it stays
    /// where it is. It goes off too early, and the poll that it causes fails with [`TimerStopped`].
    fn move_to(&mut self, deadline: Timestamp) {
        self.deadline = deadline;
        if let Some((ticket, waker)) = self.entry {
            let moved = self.pool_ref.pool().with_entry(ticket, |entry| {
                entry(None, &mut |before, is_open| {
                    (is_open || deadline <= before).then_some(deadline.into())
                })
            });
            self.entry = match moved {
                Moved::To(slot) => Some((ticket.moved_to(slot), waker)),
                Moved::Declined => Some((ticket, waker)),
                Moved::Absent => None,
            };
        }
    }

    fn poll_elapsed(&mut self, context: &mut Context<'_>) -> Poll<Result<(), TimerStopped>> {
        let now = self.clock().read();
        if now >= self.deadline {
            self.leave();
            return Poll::Ready(Ok(()));
        }
        let waker = id_of(context.waker());
        if let Some((ticket, _)) = self.entry.filter(|(_, known)| *known == waker) {
            if self.pool_ref.pool().queue.deadline(ticket).is_some() {
                return Poll::Pending;
            }
            self.entry = None;
            return self.gone();
        }
        if !self.leave() {
            return self.gone();
        }
        self.enter(now, context.waker())?;
        Poll::Pending
    }

    /// Returns the answer of a poll that finds its entry gone: gone off, or ended by the pool. The clock is read
    /// *afterwards*: if the deadline has not come by then, the pool has ended the entry, since no worker takes it
    /// before its deadline. How the pool was shut down is not known once it has terminated, so the reason does not
    /// tell.
    ///
    /// A poll with another waker comes here as well. If it made another entry instead, a submitter that discards the
    /// oldest entry to make room for its own could go on for as long as the timer is polled.
    fn gone(&self) -> Poll<Result<(), TimerStopped>> {
        let was_shut_down = self.pool_ref.pool().lifecycle.phase() > Phase::Running;
        if self.is_elapsed() {
            return Poll::Ready(Ok(()));
        }
        let reason = if was_shut_down { CancelReason::Shutdown } else { CancelReason::Rejected };
        Poll::Ready(Err(TimerStopped { reason }))
    }

    fn enter(&mut self, now: Timestamp, waker: &Waker) -> Result<(), TimerStopped> {
        let task = Node::alarm(Alarm::Wake(waker.clone()));
        let admitted = self.pool_ref.admit_timer(task, now, self.deadline);
        let ticket = admitted.map_err(|why| match why {
            RejectionReason::Shutdown => TimerStopped { reason: CancelReason::Shutdown },
            _ => TimerStopped { reason: CancelReason::Rejected },
        })?;
        self.entry = Some((ticket, id_of(waker)));
        Ok(())
    }

    /// If the timer has an entry, takes it out of the queue. Returns `false` if the entry was no longer there.
    #[inline]
    fn leave(&mut self) -> bool {
        let Some((ticket, _)) = self.entry.take() else { return true };
        let pool = self.pool_ref.pool();
        let is_found = pool.remove(ticket);
        if is_found {
            pool.log.cancelled(ticket.sequence, || None);
        }
        is_found
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

/// A series of ticks on a grid that does not drift; from [`Handle::interval`](crate::Handle::interval).
///
/// [`tick`](Self::tick) waits for the next one; between two calls, nothing is in the queue.
/// [`missed_runs`](Self::missed_runs) decides what becomes of the ticks that have passed when `tick` is called; by
/// default ([`MissedRuns::Coalesce`]) one late tick stands for all of them, and the next is on the grid.
///
/// With the feature `stream` it is a `futures_core::Stream`, which ends when the executor has stopped.
#[doc(alias = "ticker")]
#[derive(Debug)]
#[must_use = "it ticks when it is awaited"]
pub struct Interval {
    sleep: Sleep,
    period: Duration,
    missed: MissedRuns,
}

const TICKS_OF_A_POLL: u32 = 64;

impl Interval {
    /// Sets the policy for ticks that have passed unseen. With [`MissedRuns::Skip`] and [`MissedRuns::Within`] an
    /// overdue tick is left out even if it is the first one.
    #[doc(alias = "set_missed_tick_behavior")]
    pub fn missed_runs(mut self, missed: MissedRuns) -> Self {
        self.missed = missed;
        self
    }

    /// Waits for the next tick, and returns the instant for which it was planned. Nothing is lost if the future is
    /// dropped before it completes.
    ///
    /// # Errors
    ///
    /// [`TimerStopped`], if the executor stops first.
    pub async fn tick(&mut self) -> Result<Instant, TimerStopped> {
        poll_fn(|context| self.poll_tick(context)).await
    }

    /// Polls for the next [`tick`](Self::tick). Does not block. If the period is so short that every tick is already
    /// overdue, and the [policy](Self::missed_runs) leaves it out, the poll wakes its task after some of these, and
    /// yields.
    ///
    /// # Errors
    ///
    /// The same as [`tick`](Self::tick).
    pub fn poll_tick(&mut self, context: &mut Context<'_>) -> Poll<Result<Instant, TimerStopped>> {
        let mut period = Schedule::fixed_rate(self.period, self.missed);
        for _ in 0..TICKS_OF_A_POLL {
            ready!(self.sleep.poll_elapsed(context))?;
            let (planned, clock) = (self.sleep.deadline, self.sleep.clock());
            let now = clock.read();
            let tick = clock.instant_of(planned).unwrap_or_else(|| clock.now());
            let is_left_out = period.is_overdue(planned, planned, now, clock);
            let plan = period.plan(planned, now, || now);
            self.sleep.move_to(plan.map_or(Timestamp::NEVER, |plan| plan.next));
            if !is_left_out {
                return Poll::Ready(Ok(tick));
            }
        }
        // Every tick is overdue by the time it is checked, and other tasks need a turn.
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Restarts the grid: the next tick is one period from now.
    pub fn reset(&mut self) {
        self.sleep.reset(self.period);
    }

    /// Like [`reset`](Self::reset), with the next tick at an instant of the executor's [clock](crate::Handle::clock).
    pub fn reset_at(&mut self, instant: impl Into<Option<Instant>>) {
        self.sleep.reset_at(instant);
    }
}

#[cfg(feature = "stream")]
impl futures_core::Stream for Interval {
    type Item = Instant;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Instant>> {
        self.poll_tick(context).map(Result::ok)
    }
}

/// The error of a timer that will not go off: its executor has stopped, or has refused it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerStopped {
    reason: CancelReason,
}

impl TimerStopped {
    /// Returns why the timer will not go off.
    pub fn reason(&self) -> CancelReason {
        self.reason
    }
}

impl fmt::Display for TimerStopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the timer will not go off ({}); use one of an executor that runs", self.reason)
    }
}

impl Error for TimerStopped {}

/// The error of a future with a [time limit](crate::Handle::timeout).
#[doc(alias = "Elapsed")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimeoutError {
    /// The time was up before the future completed.
    Elapsed,
    /// The executor stopped first, so there was no longer a limit.
    Stopped(TimerStopped),
}

impl fmt::Display for TimeoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Elapsed => f.write_str("the time was up before the future was ready"),
            Self::Stopped(stopped) => stopped.fmt(f),
        }
    }
}

impl Error for TimeoutError {}

impl From<TimerStopped> for TimeoutError {
    fn from(stopped: TimerStopped) -> Self {
        Self::Stopped(stopped)
    }
}
