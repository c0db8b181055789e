//! Timers to await: [`sleep`](Handle::sleep), [`interval`](Handle::interval) and
//! [`timeout`](Handle::timeout), on any async runtime and without one.
//!
//! They are entries of the executor's own queue, beside its tasks. There is no reactor and no thread of
//! their own: a worker takes the entry when it is due and wakes the asynchronous task. So they are as exact
//! as the tasks are, to the nanosecond on a [`ManualClock`](crate::ManualClock), and cost what a task costs.
//!
//! ```text
//!   Sleep ──▶ first poll ──▶ entry in the queue ──▶ due: a worker wakes the last waker
//!                │                 │ dropped: out of the queue, at once
//!                │                 │ reset: moved in place
//!                │                 └ executor stopped: woken, and ends with TimerStopped
//!                └ due already: ready, without an entry
//! ```
//!
//! A timer enters the queue when it is polled first, and until then costs no allocation; but its deadline
//! counts from the call that made it. [`Statistics`](crate::Statistics) counts it among the tasks. It is not
//! refused for the executor's [bound](crate::Builder::max_pending), which counts it all the same, and no
//! hook, decorator or rejection handler hears of it.
//!
//! # When the executor stops
//!
//! A timer of an executor that was shut down goes off as a delayed task does: at its moment, if the
//! policy lets delayed tasks run, and otherwise it ends at once with [`TimerStopped`]. It never ends
//! early with success: what ends with `Ok` was due.
//!
//! # Why no wake-up is lost
//!
//! A timer that waits has an alarm in the queue, which wakes the waker that it has, unless the timer
//! itself has taken it out ([`Alarm`](crate::task::Alarm)). A poll reads the clock, and before the
//! deadline looks for the alarm. If that is there, it is yet to go off. If it is gone, the pool has ended
//! it, since a worker takes it at the deadline and not before. A move that does not find it forgets it.

mod interval;
mod sleep;
mod timeout;

use std::{
    error::Error,
    fmt,
    future::{Future, IntoFuture},
    time::{Duration, Instant},
};

pub use self::{interval::Interval, sleep::Sleep, timeout::TimeoutError};
use crate::{CancelReason, Handle, MissedRuns, RejectionReason, time::Timestamp};

impl Handle {
    /// Returns a future that is ready `duration` after this call, and never earlier. `Duration::MAX` means
    /// never.
    ///
    /// Does not block, and enters the queue when it is polled first. Dropping it removes it from the
    /// queue at once. Costs what a task costs: one allocation, and O(log n).
    ///
    /// ```
    /// # use std::future::Future;
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    /// # fn block_on<F: Future>(future: F) -> F::Output {
    /// #     struct Unpark(std::thread::Thread);
    /// #     impl std::task::Wake for Unpark {
    /// #         fn wake(self: std::sync::Arc<Self>) { self.0.unpark() }
    /// #     }
    /// #     let waker = std::sync::Arc::new(Unpark(std::thread::current())).into();
    /// #     let mut future = std::pin::pin!(future);
    /// #     loop {
    /// #         match future.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
    /// #             std::task::Poll::Ready(output) => return output,
    /// #             std::task::Poll::Pending => std::thread::park(),
    /// #         }
    /// #     }
    /// # }
    ///
    /// let timers = ScheduledThreadPoolExecutor::new(1);
    /// let begun = std::time::Instant::now();
    /// block_on(timers.sleep(Duration::from_millis(5)))?; // on tokio, smol or any other: `.await`
    /// assert!(begun.elapsed() >= Duration::from_millis(5));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias = "delay")]
    #[doc(alias("timer", "after", "delay_for"))]
    pub fn sleep(&self, duration: Duration) -> Sleep {
        let now = self.pool().clock().read();
        Sleep::new(self.pool_ref(), now.after(duration))
    }

    /// As [`sleep`](Self::sleep), until an instant of the executor's [clock](Self::clock). One that has
    /// passed means now, and `None` never.
    pub fn sleep_until(&self, instant: impl Into<Option<Instant>>) -> Sleep {
        Sleep::new(self.pool_ref(), self.deadline_of(instant.into()))
    }

    /// Returns a series of ticks, the first of which is due now, and each other one `period` after the
    /// one before. See [`Interval`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor, TimerStopped};
    ///
    /// let clock = ManualClock::new();
    /// clock.set_auto_advance(true);
    /// let mut executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build_driven()?;
    /// let mut ticks = executor.interval(Duration::from_secs(5));
    /// executor.run_until(async { // on any runtime: the block alone
    ///     for _ in 0..3 {
    ///         ticks.tick().await?;
    ///     }
    ///     Ok::<(), TimerStopped>(())
    /// })?;
    /// assert_eq!(clock.elapsed(), Duration::from_secs(10)); // at 0, 5 and 10 seconds
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the period is zero, since such ticks would never let anything else run.
    #[doc(alias("ticker", "tick", "setInterval", "every"))]
    pub fn interval(&self, period: Duration) -> Interval {
        let now = self.pool().clock().read();
        Interval::new(Sleep::new(self.pool_ref(), now), period, MissedRuns::Coalesce)
    }

    /// As [`interval`](Self::interval), with the first tick at an instant of the executor's
    /// [clock](Self::clock).
    ///
    /// # Panics
    ///
    /// The same as [`interval`](Self::interval).
    pub fn interval_at(&self, first: impl Into<Option<Instant>>, period: Duration) -> Interval {
        Interval::new(self.sleep_until(first), period, MissedRuns::Coalesce)
    }

    /// Runs a future, but no longer than `duration` from this call on. If the time is up the future is
    /// dropped, where it stands.
    ///
    /// The future is polled first: one that is ready when the time is up has been in time. A limit of
    /// `Duration::MAX` never expires.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// # async fn answer() -> u32 { 42 }
    /// async fn ask(timers: &punctual::Handle) -> Result<u32, punctual::TimeoutError> {
    ///     timers.timeout(Duration::from_secs(2), answer()).await
    /// }
    /// # let timers = ScheduledThreadPoolExecutor::new(1);
    /// # let asked = std::pin::pin!(ask(&timers));
    /// # let polled = asked.poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
    /// # assert_eq!(polled, std::task::Poll::Ready(Ok(42)));
    /// ```
    ///
    /// # Errors
    ///
    /// [`TimeoutError::Elapsed`] if the time is up; [`TimeoutError::Stopped`] if the executor stopped before,
    /// so that there is no limit any more.
    #[doc(alias("deadline", "time_limit", "with_timeout"))]
    pub fn timeout<F: IntoFuture>(
        &self,
        duration: Duration,
        future: F,
    ) -> impl Future<Output = Result<F::Output, TimeoutError>> + use<F> {
        timeout::limited(self.sleep(duration), future.into_future())
    }

    /// As [`timeout`](Self::timeout), until an instant of the executor's [clock](Self::clock).
    ///
    /// # Errors
    ///
    /// The same as [`timeout`](Self::timeout).
    #[doc(alias = "deadline")]
    pub fn timeout_at<I, F>(
        &self,
        instant: I,
        future: F,
    ) -> impl Future<Output = Result<F::Output, TimeoutError>> + use<I, F>
    where
        I: Into<Option<Instant>>,
        F: IntoFuture,
    {
        timeout::limited(self.sleep_until(instant), future.into_future())
    }

    fn deadline_of(&self, instant: Option<Instant>) -> Timestamp {
        instant.map_or(Timestamp::NEVER, |instant| self.pool().clock().deadline_of(instant))
    }
}

/// A timer will not go off: its executor has stopped, or has refused it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerStopped {
    reason: CancelReason,
}

impl TimerStopped {
    /// Returns why.
    #[must_use]
    pub fn reason(&self) -> CancelReason {
        self.reason
    }

    fn refused(why: &RejectionReason) -> Self {
        let reason = match why {
            RejectionReason::Shutdown => CancelReason::Shutdown,
            _ => CancelReason::Rejected,
        };
        Self { reason }
    }
}

impl fmt::Display for TimerStopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the timer will not go off ({}); use one of an executor that runs", self.reason)
    }
}

impl Error for TimerStopped {}
