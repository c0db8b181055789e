//! What becomes of a periodic task when a run panics.
//!
//! Java ends the periodic task, and says so only to those who ask the future. Here that is the default,
//! and the one among four that a task can choose from. Each failed run is kept, the last one for
//! everyone to read, and reported to the executor's panic handler.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

/// What a periodic task does after a run that panicked; set by
/// [`TaskBuilder::on_panic`](crate::TaskBuilder::on_panic).
///
/// ```
/// use std::time::Duration;
/// use punctual::{PanicPolicy, ScheduledThreadPoolExecutor};
///
/// let executor = ScheduledThreadPoolExecutor::new(1);
/// let stubborn = PanicPolicy::resume()
///     .back_off(Duration::from_secs(1), Duration::from_secs(60))
///     .stop_after(10);
/// let poller = executor.task().name("poller").on_panic(stubborn).schedule_with_fixed_delay(
///     Duration::ZERO,
///     Duration::from_secs(5),
///     || { /* asks a server that is sometimes away */ },
/// )?;
/// # poller.cancel();
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
///
/// A closure that goes on after a panic finds its captures as the panic left them: what it had
/// half changed is half changed, and a `Mutex` of std that it held is poisoned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PanicPolicy {
    /// So many failures in a row end the periodic task.
    stop_after: Option<NonZeroU32>,
    /// How long to wait after the first failure, and at most.
    back_off: Option<(Duration, Duration)>,
}

impl PanicPolicy {
    /// The first panic ends the periodic task: Java's rule, and the default.
    #[must_use]
    pub const fn stop() -> Self {
        Self { stop_after: Some(NonZeroU32::MIN), back_off: None }
    }

    /// The next run takes place as if nothing had happened.
    #[must_use]
    pub const fn resume() -> Self {
        Self { stop_after: None, back_off: None }
    }

    /// So many panics in a row end the periodic task; a run that ends well begins the count anew. Zero
    /// counts as one.
    #[must_use]
    pub const fn stop_after(mut self, failures: u32) -> Self {
        self.stop_after = match NonZeroU32::new(failures) {
            Some(failures) => Some(failures),
            None => Some(NonZeroU32::MIN),
        };
        self
    }

    /// After a panic the next run is at least `first` away, and twice as far after each further
    /// one in a row, but never more than `longest`. A run that is put off so moves the grid of a
    /// fixed rate: the following runs are planned from it.
    #[must_use]
    pub const fn back_off(mut self, first: Duration, longest: Duration) -> Self {
        self.back_off = Some((first, longest));
        self
    }

    /// Whether a task has to end after so many failures in a row.
    pub(crate) fn ends_after(&self, in_a_row: u32) -> bool {
        self.stop_after.is_some_and(|limit| in_a_row >= limit.get())
    }

    /// How far the next run has to be at least, after so many failures in a row.
    pub(super) fn delay_after(&self, in_a_row: u32) -> Duration {
        let Some((first, longest)) = self.back_off else { return Duration::ZERO };
        let doublings = in_a_row.saturating_sub(1).min(63);
        let delay = first.as_nanos().saturating_mul(1 << doublings);
        Duration::from_nanos(u64::try_from(delay).unwrap_or(u64::MAX)).min(longest)
    }
}

impl Default for PanicPolicy {
    fn default() -> Self {
        Self::stop()
    }
}

/// A run of a periodic task that failed; from
/// [`ScheduledFuture::last_failure`](crate::ScheduledFuture::last_failure).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedRun {
    pub(super) run_number: u64,
    pub(super) in_a_row: u32,
    pub(super) message: Arc<str>,
}

impl FailedRun {
    /// A run that has ended its task by taking too long.
    pub(crate) fn over_limit(run_number: u64, message: &str) -> Self {
        Self { run_number, in_a_row: 1, message: message.into() }
    }

    /// Which run it was; 1 for the first.
    #[must_use]
    pub fn run_number(&self) -> u64 {
        self.run_number
    }

    /// How many runs had failed in a row by then, with this one.
    #[must_use]
    pub fn in_a_row(&self) -> u32 {
        self.in_a_row
    }

    /// What it panicked with, or that it was over its budget.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_wait_doubles_up_to_the_longest() {
        let policy = PanicPolicy::resume().back_off(SECOND, 10 * SECOND);
        let waits: Vec<_> = (1..=6).map(|n| policy.delay_after(n).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 10, 10]);
        assert_eq!(policy.delay_after(u32::MAX), 10 * SECOND);
        let endless = PanicPolicy::resume().back_off(Duration::MAX, Duration::MAX);
        assert_eq!(endless.delay_after(3), Duration::from_nanos(u64::MAX));
        assert_eq!(PanicPolicy::resume().delay_after(3), Duration::ZERO);
    }

    #[test]
    fn each_policy_ends_when_it_says() {
        assert!(PanicPolicy::default().ends_after(1));
        assert!(!PanicPolicy::resume().ends_after(u32::MAX));
        let thrice = PanicPolicy::resume().stop_after(3);
        assert!(!thrice.ends_after(2));
        assert!(thrice.ends_after(3));
        assert!(PanicPolicy::resume().stop_after(0).ends_after(1));
    }
}
