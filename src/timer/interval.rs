//! A series of ticks.

use std::{
    fmt,
    future::poll_fn,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use super::{Sleep, TimerStopped};
use crate::{MissedRuns, task::Period};

/// A series of ticks; from [`Handle::interval`](crate::Handle::interval).
///
/// The ticks are on a grid that does not drift. [`tick`](Self::tick) waits for the next one; between two
/// calls there is nothing in the queue. What happens to the ticks that have passed when `tick` is called
/// is decided by [`missed_runs`](Self::missed_runs); the default is [`MissedRuns::Coalesce`]: one late
/// tick stands for all of them, and the next is on the grid.
///
/// ```
/// use std::time::Duration;
/// use punctual::{Handle, TimerStopped};
///
/// async fn watch(timers: &Handle) -> Result<(), TimerStopped> {
///     let mut ticks = timers.interval(Duration::from_secs(5));
///     loop {
///         ticks.tick().await?;
///         // look
///     }
/// }
/// ```
///
/// With the feature `stream` it is a `futures_core::Stream`, which ends when the executor has stopped.
#[doc(alias = "ticker")]
#[must_use = "it ticks when it is awaited"]
pub struct Interval {
    sleep: Sleep,
    period: Duration,
    missed: MissedRuns,
}

impl Interval {
    pub(super) fn new(sleep: Sleep, period: Duration, missed: MissedRuns) -> Self {
        assert!(
            !period.is_zero(),
            "the period of an interval is zero; the shortest is one nanosecond"
        );
        Self { sleep, period, missed }
    }

    /// Sets what happens to ticks that have passed unseen. With [`MissedRuns::Skip`] and
    /// [`MissedRuns::Within`] an overdue tick is left out even if it is the first one that has passed
    /// unseen.
    #[doc(alias = "set_missed_tick_behavior")]
    pub fn missed_runs(mut self, missed: MissedRuns) -> Self {
        self.missed = missed;
        self
    }

    /// Waits for the next tick, and returns the instant for which it was planned. Nothing is lost if the
    /// future is dropped before it is ready.
    ///
    /// # Errors
    ///
    /// [`TimerStopped`], if the executor stops before.
    pub async fn tick(&mut self) -> Result<Instant, TimerStopped> {
        poll_fn(|context| self.poll_tick(context)).await
    }

    /// The poll of [`tick`](Self::tick).
    ///
    /// # Errors
    ///
    /// The same as [`tick`](Self::tick).
    pub fn poll_tick(&mut self, context: &mut Context<'_>) -> Poll<Result<Instant, TimerStopped>> {
        let period = Period::fixed_rate(self.period, self.missed);
        loop {
            ready!(self.sleep.poll_elapsed(context))?;
            let (planned, clock) = (self.sleep.planned(), self.sleep.clock());
            let now = clock.read();
            let tick = clock.instant_of(planned).unwrap_or_else(|| clock.now());
            let is_left_out = period.leaves_out_tick(planned, now, clock);
            self.sleep.move_to(period.next_tick(planned, now));
            if !is_left_out {
                return Poll::Ready(Ok(tick));
            }
        }
    }

    /// Begins the grid anew: the next tick is one period from now.
    pub fn reset(&mut self) {
        self.sleep.reset(self.period);
    }

    /// Begins the grid anew, with the next tick at an instant of the executor's
    /// [clock](crate::Handle::clock).
    pub fn reset_at(&mut self, instant: impl Into<Option<Instant>>) {
        self.sleep.reset_at(instant);
    }

    /// Returns the time between two ticks.
    #[must_use]
    pub fn period(&self) -> Duration {
        self.period
    }
}

#[cfg(feature = "stream")]
impl futures_core::Stream for Interval {
    type Item = Instant;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Instant>> {
        self.poll_tick(context).map(Result::ok)
    }
}

impl fmt::Debug for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interval")
            .field("period", &self.period)
            .field("next", &self.sleep)
            .finish_non_exhaustive()
    }
}
