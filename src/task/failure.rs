//! The policy of a periodic task for a failed run: one that panicked, returned an `Err`, or exceeded its time limit.
//!
//! Java ends the task, and only a caller that asks the future learns of the failure. Here, ending the task is only the
//! default policy. Each failed run is reported to the failure handler, and the future shows the last failed run.

use std::{fmt, num::NonZeroU32, ops::RangeInclusive, sync::Arc, time::Duration};

use crate::{Backoff, Failure, FailureKind};

/// The policy of a periodic task for a run that failed: that panicked, or returned an `Err`
/// ([`Outcome`](crate::Outcome)). Set with [`TaskBuilder::on_failure`](crate::TaskBuilder::on_failure).
///
/// ```
/// use std::time::Duration;
/// use punctual::{FailurePolicy, ScheduledThreadPoolExecutor, trigger::fixed_delay};
///
/// let executor = ScheduledThreadPoolExecutor::new(1);
/// let stubborn = FailurePolicy::resume()
///     .back_off(Duration::from_secs(1)..=Duration::from_secs(60))
///     .stop_after(10);
/// let poller = executor.task().name("poller").on_failure(stubborn);
/// let poller = poller.repeat(fixed_delay(Duration::from_secs(5)), || { /* asks a server that is sometimes away */ })?;
/// # poller.cancel();
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
///
/// A closure that is called again after a panic finds its captures as the panic left them: a change may be half made,
/// and a `std::sync::Mutex` that was locked is poisoned.
#[doc(alias = "RetryPolicy")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailurePolicy {
    stop_after: Option<NonZeroU32>,
    /// The least delay after the first failure, and the bound up to which further failures double this delay.
    back_off: Option<(Duration, Duration)>,
}

impl FailurePolicy {
    /// Ends the periodic task at its first failure: Java's rule, and the default. If nothing else
    /// [hears](crate::Builder::failure_handler) of it, a line on standard error says so.
    #[must_use]
    pub const fn stop() -> Self {
        Self { stop_after: Some(NonZeroU32::MIN), back_off: None }
    }

    /// Goes on with the next run as planned, however many runs have failed.
    #[must_use]
    pub const fn resume() -> Self {
        Self { stop_after: None, back_off: None }
    }

    /// Ends the periodic task after `failures` failures in a row. A run that succeeds resets the count. Zero counts as
    /// one.
    #[doc(alias("max_retries", "max_attempts"))]
    #[must_use]
    pub const fn stop_after(mut self, failures: u32) -> Self {
        self.stop_after = Some(NonZeroU32::MIN.saturating_add(failures.saturating_sub(1)));
        self
    }

    /// Slows a series down while it fails. With `first..=longest`, the least delay of the next run is `first` after one
    /// failure, and doubles with each further failure in a row, up to `longest`, even if `first` is longer. A delayed
    /// run moves the grid of a fixed rate. [`Trigger::retry`](crate::Trigger::retry) tries
    /// a failed run again *sooner*, has jitter and limits, and leaves the grid where it is.
    ///
    /// If `longest` is no longer than the period of the series, there is nothing to slow down, and the submission is
    /// refused, with [`BackOffWithinPeriod`](crate::RejectionReason::BackOffWithinPeriod). Inside another trigger, the
    /// period is not known.
    ///
    /// The trigger is asked before the delay is added, so a delayed run may take place after an end set by
    /// [`until`](crate::Trigger::until); `trigger.retry(backoff).until(end)` is strict.
    #[doc(alias("backoff", "exponential_backoff"))]
    #[must_use]
    pub const fn back_off(mut self, delays: RangeInclusive<Duration>) -> Self {
        self.back_off = Some((*delays.start(), *delays.end()));
        self
    }

    pub(crate) fn ends_after(&self, in_a_row: u32) -> bool {
        self.stop_after.is_some_and(|limit| in_a_row >= limit.get())
    }

    /// Returns the longest delay that the backoff reaches, if there is a backoff.
    pub(super) fn longest_back_off(&self) -> Option<Duration> {
        self.back_off.map(|_| self.delay_after(u32::MAX))
    }

    /// Returns the least delay before the next run, after `in_a_row` failures in a row.
    pub(super) fn delay_after(&self, in_a_row: u32) -> Duration {
        let backoff = self.back_off.map(|(first, longest)| Backoff::exponential(first..=longest));
        backoff.and_then(|backoff| backoff.delay_after(in_a_row)).unwrap_or_default()
    }
}

impl Default for FailurePolicy {
    fn default() -> Self {
        Self::stop()
    }
}

/// A run of a periodic task that failed; from [`TaskHandle::last_failure`](crate::TaskHandle::last_failure).
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FailedRun {
    run_number: u64,
    in_a_row: u32,
    kind: FailureKind,
    message: Arc<str>,
}

impl FailedRun {
    pub(crate) fn new(run_number: u64, in_a_row: u32, failure: &Failure) -> Self {
        Self { run_number, in_a_row, kind: failure.kind(), message: failure.message().into() }
    }

    /// Returns which run it was, 1 for the first.
    pub fn run_number(&self) -> u64 {
        self.run_number
    }

    /// Returns how many runs in a row had failed by then, this one included.
    pub fn in_a_row(&self) -> u32 {
        self.in_a_row
    }

    /// Returns the cause of the failure: a panic, an error, or its time limit.
    pub fn kind(&self) -> FailureKind {
        self.kind
    }

    /// Returns the message of the panic or of the error, or says that the run exceeded its time limit.
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// One line for a log: `run 7 failed (3 in a row): no answer`.
impl fmt::Display for FailedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { run_number, in_a_row, message, .. } = self;
        let what = if self.kind == FailureKind::Panic { "panicked" } else { "failed" };
        write!(f, "run {run_number} {what} ({in_a_row} in a row): {message}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_wait_doubles_up_to_the_longest() {
        let policy = FailurePolicy::resume().back_off(SECOND..=10 * SECOND);
        let waits: Vec<_> = (1..=6).map(|n| policy.delay_after(n).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 10, 10]);
        assert_eq!(policy.delay_after(u32::MAX), 10 * SECOND);
        let endless = FailurePolicy::resume().back_off(Duration::MAX..=Duration::MAX);
        assert_eq!(endless.delay_after(3), Duration::from_nanos(u64::MAX));
        assert_eq!(FailurePolicy::resume().delay_after(3), Duration::ZERO);
    }

    #[test]
    fn each_policy_ends_when_it_says() {
        assert!(FailurePolicy::default().ends_after(1));
        assert!(!FailurePolicy::resume().ends_after(u32::MAX));
        let thrice = FailurePolicy::resume().stop_after(3);
        assert!(!thrice.ends_after(2));
        assert!(thrice.ends_after(3));
        assert!(FailurePolicy::resume().stop_after(0).ends_after(1));
    }
}
