//! Retry: how long to wait after a failed run ([`Backoff`]), and a trigger that retries failed runs ([`Retry`]).
//!
//! While a run is being retried, [`Retry`] plans the attempts without asking the inner trigger. The inner trigger sees
//! the run and its retries as one run, at the moment for which it planned that run. So a fixed rate stays on its grid,
//! and a calendar does not return the same moment twice.
//!
//! If the gate skips an attempt, or the attempt is overdue, the trigger of a [single call](Retry::of_call) plans that
//! attempt again, after a further delay; a series goes on with the next run of the inner trigger. A gate typically
//! skips an attempt because another replica has done the work, and would skip each further attempt too.

use std::{
    collections::hash_map::RandomState,
    hash::BuildHasher,
    ops::RangeInclusive,
    time::{Duration, SystemTime},
};

use super::{Due, Every, LastRun, Trigger, TriggerContext, every, mix};
use crate::{
    Attempt,
    time::{Timestamp, saturating_nanos},
};

/// How long to wait after a failed attempt, and how often and how long to try: exponential backoff or a constant delay,
/// optionally with jitter and with limits on the attempts and on the time. Without a limit, it tries forever.
///
/// Pass it to [`Handle::retry`](crate::Handle::retry) or, for a series, to [`Trigger::retry`]; code that waits by
/// itself calls [`delay_after`](Self::delay_after).
///
/// ```
/// use std::time::Duration;
/// use punctual::Backoff;
///
/// let second = Duration::from_secs(1);
/// let backoff = Backoff::exponential(5 * second..=40 * second).max_attempts(6);
/// let delays: Vec<_> = (1..).map_while(|failures| backoff.delay_after(failures)).collect();
/// assert_eq!(delays, [5, 10, 20, 40, 40].map(Duration::from_secs)); // the sixth attempt is the last
/// ```
#[doc(alias("RetryPolicy", "ExponentialBackoff", "ExponentialBuilder", "RetryConfig"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    max_attempts: Option<u32>,
    max_elapsed: Option<Duration>,
    /// `Some` if the delays have jitter; the inner value is the seed, or `None` if each delay is random.
    jitter: Option<Option<u64>>,
}

impl Backoff {
    /// With `first..=longest`, waits `first` after the first failure, and twice as long after each further one, but
    /// never longer than `longest`, even if `first` is longer. A delay counts from the end of the attempt that failed.
    #[doc(alias = "exponential_backoff")]
    pub const fn exponential(delays: RangeInclusive<Duration>) -> Self {
        let (first, longest) = (*delays.start(), *delays.end());
        Self { first, longest, max_attempts: None, max_elapsed: None, jitter: None }
    }

    /// Waits `delay` after each failure. With a delay of zero the next attempt is made at once.
    #[doc(alias("fixed", "FixedInterval"))]
    pub const fn constant(delay: Duration) -> Self {
        Self::exponential(delay..=delay)
    }

    /// Makes at most this many attempts, including the first. Zero counts as one.
    #[doc(alias("max_retries", "max_times", "stop_after_attempt"))]
    pub const fn max_attempts(mut self, attempts: u32) -> Self {
        self.max_attempts = Some(if attempts == 0 { 1 } else { attempts });
        self
    }

    /// Makes no attempt that would be due later than `span` after the moment for which the first one was planned. So
    /// the last error is reported as soon as it is known to be the last. This does not interrupt an attempt that has
    /// begun: [`TaskBuilder::timeout`](crate::TaskBuilder::timeout) limits each attempt.
    #[doc(alias("max_elapsed_time", "max_duration", "total_delay", "deadline"))]
    pub const fn max_elapsed(mut self, span: Duration) -> Self {
        self.max_elapsed = Some(span);
        self
    }

    /// Takes a random part off each delay, up to half of it, so that clients that failed together do not come back
    /// together.
    #[doc(alias("with_jitter", "thundering_herd", "randomization_factor"))]
    pub const fn jitter(mut self) -> Self {
        self.jitter = Some(None);
        self
    }

    /// Like [`jitter`](Self::jitter), with the same delays each time.
    pub const fn jitter_seed(mut self, seed: u64) -> Self {
        self.jitter = Some(Some(seed));
        self
    }

    /// Returns how long to wait after this many failures in a row; `None` if no attempt is left. Ignores the limit on
    /// the time, since the caller has the clock.
    ///
    /// For async code, whose attempts are futures, so that a task per attempt would only wait:
    ///
    /// ```
    /// # async fn fetch() -> Option<&'static str> { Some("the page") }
    /// use punctual::{Backoff, Handle, TimerStopped};
    ///
    /// async fn fetch_again(timers: &Handle, backoff: Backoff) -> Result<Option<&str>, TimerStopped> {
    ///     for failures in 1.. {
    ///         match (fetch().await, backoff.delay_after(failures)) {
    ///             (None, Some(delay)) => timers.sleep(delay).await?,
    ///             (page, _) => return Ok(page),
    ///         }
    ///     }
    ///     Ok(None)
    /// }
    /// ```
    pub fn delay_after(&self, failures: u32) -> Option<Duration> {
        if self.max_attempts.is_some_and(|most| failures >= most) {
            return None;
        }
        let doublings = failures.saturating_sub(1).min(63);
        let delay = self.first.as_nanos().saturating_mul(1 << doublings);
        let delay = u64::try_from(delay).unwrap_or(u64::MAX).min(saturating_nanos(self.longest));
        let random = match self.jitter {
            None => return Some(Duration::from_nanos(delay)),
            Some(None) => RandomState::new().hash_one(failures),
            Some(Some(seed)) => mix(seed ^ mix(failures.into())),
        };
        let off = (u128::from(random) * u128::from(delay / 2 + 1)) >> 64;
        Some(Duration::from_nanos(delay - off as u64))
    }
}

/// Another trigger whose failed runs are retried; from [`Trigger::retry`].
#[derive(Clone, Debug)]
pub struct Retry<G> {
    inner: G,
    backoff: Backoff,
    /// The last run that the inner trigger planned: its moment, and its wall-clock moment, if it has one.
    origin: (Timestamp, Option<SystemTime>),
    /// How many attempts at the run of `origin` have failed in a row so far.
    failed: u32,
    /// `true` if the planned run is another attempt, and not a run that the inner trigger planned.
    is_attempt: bool,
    retries: u64,
    /// `true` if all runs are attempts at one call: an attempt that does not take place is then planned again.
    is_call: bool,
}

impl<G> Retry<G> {
    pub(super) fn new(inner: G, backoff: Backoff) -> Self {
        let origin = (Timestamp::from_nanos(0), None);
        Self { inner, backoff, origin, failed: 0, is_attempt: false, retries: 0, is_call: false }
    }

    /// Notes how the last planned run went. Returns `true` if it calls for another attempt, even if none is left.
    fn learn(&mut self, run: LastRun, last: &TriggerContext<'_>) -> bool {
        if !self.is_attempt {
            self.origin = (run.planned, run.planned_wall);
        } else if run.took_place {
            self.retries += 1;
        }
        if run.took_place {
            // Runs that the trigger was not asked for may have succeeded in between.
            let before = self.failed.min(last.failures_in_a_row.saturating_sub(1));
            self.failed = if last.failures_in_a_row > 0 { before + 1 } else { 0 };
            self.failed > 0
        } else {
            self.is_call
        }
    }

    fn shown<'a>(&self, last: &TriggerContext<'a>) -> TriggerContext<'a> {
        let (planned, planned_wall) = self.origin;
        let runs = last.runs.saturating_sub(self.retries);
        let run = last.last.map(|run| LastRun { planned, planned_wall, ..run });
        TriggerContext { last: run, runs, ..*last }
    }

    fn next_attempt(&self, ended: Timestamp) -> Option<Timestamp> {
        let due = ended.after(self.backoff.delay_after(self.failed)?);
        let last = self.backoff.max_elapsed.map(|span| self.origin.0.after(span));
        last.is_none_or(|last| due <= last).then_some(due)
    }
}

impl<G: Trigger> Trigger for Retry<G> {
    fn next(&mut self, last: &TriggerContext<'_>) -> Option<Due> {
        let Some(run) = last.last else { return self.inner.next(last) };
        if !last.is_asked_again {
            let due = if self.learn(run, last) { self.next_attempt(run.ended) } else { None };
            self.is_attempt = due.is_some();
            if let Some(due) = due {
                return Some(last.clock.instant_of(due).map_or(Due::OnDemand, Due::At));
            }
            self.failed = 0;
        }
        let shown = self.shown(last);
        self.inner.next(&shown)
    }

    fn offset(&mut self, moment: Due, last: &TriggerContext<'_>) -> Duration {
        if self.is_attempt { Duration::ZERO } else { self.inner.offset(moment, &self.shown(last)) }
    }

    fn attempt(&mut self) -> Option<Attempt> {
        let number = if self.is_attempt { self.failed.saturating_add(1) } else { 1 };
        Some(Attempt { number, of: self.backoff.max_attempts })
    }

    fn inner(&mut self) -> Option<&mut dyn Trigger> {
        Some(&mut self.inner)
    }
}

impl Retry<Every> {
    /// Makes the trigger for a single call: an attempt at once, then retries.
    pub(crate) fn of_call(backoff: Backoff) -> Self {
        Self { is_call: true, ..Self::new(every(Duration::MAX), backoff) }
    }
}
