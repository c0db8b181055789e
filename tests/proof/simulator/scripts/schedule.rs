//! The schedule of the [model](super::model): a rhythm, perhaps with retries, or a call.

use std::time::Duration;

use super::script::{Missed, Rhythm, Tries, Trigger};

/// Up to here `Skip` takes a run for one that is on time, and from there on for one that is too late in any case.
const ON_TIME: Duration = Duration::from_millis(1);
const TOO_LATE: Duration = Duration::from_secs(10);

/// The schedule of a task that runs more than once.
#[derive(Clone, Copy)]
pub(super) struct Schedule {
    /// `None` for a call.
    pub(super) rhythm: Option<Rhythm>,
    pub(super) retry: Option<Tries>,
    /// For when the run was planned that is tried, and how many of its attempts have failed.
    origin: Duration,
    pub(super) failed: u32,
    /// `true` if the plan is another attempt.
    is_attempt: bool,
}

impl Schedule {
    pub(super) fn of(trigger: Trigger) -> Self {
        Self::new(Some(trigger.rhythm), trigger.retry)
    }

    pub(super) fn new(rhythm: Option<Rhythm>, retry: Option<Tries>) -> Self {
        Self { rhythm, retry, origin: Duration::ZERO, failed: 0, is_attempt: false }
    }

    /// Returns how many moments there are behind one and up to another.
    pub(super) fn between(&self, from: Duration, to: Duration) -> u64 {
        let Some(Rhythm::Every(period)) = self.rhythm else { return 0 };
        (to.saturating_sub(from).as_nanos() / period.span().as_nanos()) as u64
    }

    /// Returns `true` if a run must not start `now` whose lateness counts from then.
    pub(super) fn is_overdue(&self, from: Duration, now: Duration, missed: Missed) -> bool {
        let late = now.saturating_sub(from);
        match missed {
            Missed::Within(limit) => late > limit.span(),
            Missed::Skip => late > TOO_LATE || late >= ON_TIME && self.between(from, now) > 0,
            _ => false,
        }
    }

    /// Returns the next moment, after a run that `fails` or not, or did not take place.
    pub(super) fn next(
        &mut self,
        (planned, started): (Duration, Duration),
        ended: Duration,
        missed: Missed,
        fails: Option<bool>,
    ) -> Option<Duration> {
        if !self.is_attempt {
            self.origin = planned;
        }
        self.failed = match fails {
            Some(true) => self.failed + 1,
            Some(false) => 0,
            None => self.failed,
        };
        let is_tried = fails.unwrap_or(self.rhythm.is_none());
        let retry = self.retry.filter(|_| is_tried);
        let again = retry.and_then(|tries| Some(ended + tries.delay_after(self.failed)?));
        let last = self.retry.and_then(|tries| tries.elapsed).map(|span| self.origin + span.span());
        let again = again.filter(|again| last.is_none_or(|last| *again <= last));
        self.is_attempt = again.is_some();
        if again.is_some() {
            return again;
        }
        self.failed = 0;
        let period = match self.rhythm? {
            Rhythm::Delay(delay) => return Some(ended + delay.span()),
            Rhythm::Every(period) => period.span(),
        };
        let after = match missed {
            Missed::Burst => planned,
            Missed::Delay if self.retry.is_none() && self.between(planned, started) > 0 => {
                return Some(started + period);
            }
            Missed::Coalesce | Missed::Delay => started,
            Missed::Skip => ended,
            Missed::Within(span) => {
                planned.max(ended.saturating_sub(span.span() + Duration::from_nanos(1)))
            }
        };
        let points = self.between(self.origin, after) as u32 + 1;
        Some(self.origin + period * points)
    }
}
