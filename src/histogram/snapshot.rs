//! What can be read of a recorder: distributions that no longer change.

use std::{fmt, time::Duration};

use super::Tally;

/// How many runs took how long, or were how late; from [`RunHistograms`].
///
/// Durations are counted in buckets whose width is 64 nanoseconds, and above 16 microseconds less than a hundredth of
/// what they count, up to a day; what is shorter or longer is in the first bucket or in the last. The count, the mean,
/// the smallest and the largest are exact, in nanoseconds, also beyond these bounds.
///
/// ```
/// use std::time::Duration;
/// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
///
/// let (clock, second) = (ManualClock::new(), Duration::from_secs(1));
/// let builder = ScheduledThreadPoolExecutor::builder().clock(clock.clone());
/// let executor = builder.histograms(0).build()?;
/// let (initial_delay, period) = (second, second);
/// executor.schedule_at_fixed_rate(initial_delay, period, || ())?;
/// clock.advance(3 * second); // the three runs are late by two seconds, by one, and not at all
/// clock.run_until_idle();
/// let seen = executor.histograms().expect("they are kept");
/// let lateness = seen.pool().lateness();
/// assert_eq!((lateness.count(), lateness.mean()), (3, Some(second)));
/// assert_eq!(lateness.quantile(1.0), Some(2 * second));
/// assert_eq!(lateness.buckets().map(|bucket| bucket.count).sum::<u64>(), 3);
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[derive(Clone)]
pub struct Histogram(pub(super) Tally);

/// So many durations, none of which is outside of these bounds; from [`Histogram::buckets`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HistogramBucket {
    /// The shortest duration that this bucket counts.
    pub from: Duration,
    /// The longest duration that this bucket counts.
    pub to: Duration,
    /// How many there were.
    pub count: u64,
}

impl Histogram {
    /// Returns how many durations have been recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.counts.len()
    }

    /// Returns the shortest duration, exactly; `None` if there is none.
    #[must_use]
    pub fn min(&self) -> Option<Duration> {
        self.nonzero(|| Duration::from_nanos(self.0.min))
    }

    /// Returns the longest duration, exactly; `None` if there is none.
    #[must_use]
    pub fn max(&self) -> Option<Duration> {
        self.nonzero(|| Duration::from_nanos(self.0.max))
    }

    /// Returns the sum of all durations, exactly, up to 584 years.
    #[must_use]
    pub fn sum(&self) -> Duration {
        Duration::from_nanos(u64::try_from(self.0.sum).unwrap_or(u64::MAX))
    }

    /// Returns the mean, rounded down to nanoseconds; `None` if there is none.
    #[must_use]
    pub fn mean(&self) -> Option<Duration> {
        self.nonzero(|| {
            let mean = self.0.sum / u128::from(self.count());
            Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX))
        })
    }

    /// Returns a duration that this share of all durations does not exceed: 0.5 for the median, 0.99 for what
    /// one of a hundred exceeds. It is at most 64 nanoseconds or a hundredth too long, and never shorter than the
    /// shortest nor longer than the longest. A share below zero counts as zero, and one above one as
    /// one. `None` if nothing has been recorded.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        self.nonzero(|| {
            let share = if share >= 0.0 { share } else { 0.0 };
            let value = self.0.counts.value_at_quantile(share);
            // The value of the last bucket is its bound; beyond that only the largest is known.
            let is_last = value >= self.0.counts.highest_equivalent(super::HIGHEST);
            let value = if is_last { self.0.max } else { value };
            Duration::from_nanos(value.clamp(self.0.min, self.0.max))
        })
    }

    /// Returns how many durations were no longer than `limit`. A duration in the same bucket as the limit
    /// counts, so one that is at most 64 nanoseconds or a hundredth too long may be among them. Takes a few
    /// microseconds.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
    ///
    /// let (clock, second) = (ManualClock::new(), Duration::from_secs(1));
    /// let builder = ScheduledThreadPoolExecutor::builder().clock(clock.clone());
    /// let executor = builder.histograms(0).build()?;
    /// executor.schedule_at_fixed_rate(second, second, || ())?;
    /// clock.advance(3 * second); // the three runs are late by two seconds, by one, and not at all
    /// clock.run_until_idle();
    /// let seen = executor.histograms().expect("they are kept");
    /// assert_eq!(seen.pool().lateness().count_within(second), 2);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[must_use]
    pub fn count_within(&self, limit: Duration) -> u64 {
        match u64::try_from(limit.as_nanos()) {
            Ok(limit) if limit < super::HIGHEST => self.0.counts.count_between(0, limit),
            // The last bucket also counts values above the highest that is recorded.
            _ => self.count(),
        }
    }

    /// Returns the buckets that are not empty, in ascending order.
    pub fn buckets(&self) -> impl Iterator<Item = HistogramBucket> + '_ {
        let counts = &self.0.counts;
        counts.iter_recorded().map(|step| HistogramBucket {
            from: Duration::from_nanos(counts.lowest_equivalent(step.value_iterated_to())),
            to: Duration::from_nanos(counts.highest_equivalent(step.value_iterated_to())),
            count: step.count_since_last_iteration(),
        })
    }

    fn nonzero(&self, value: impl FnOnce() -> Duration) -> Option<Duration> {
        (self.count() > 0).then(value)
    }
}

/// One line for a log: `count 3, median 1s, p99 2s, longest 2s`.
impl fmt::Display for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "count {}", self.count())?;
        match (self.quantile(0.5), self.quantile(0.99), self.max()) {
            (Some(median), Some(most), Some(longest)) => {
                write!(f, ", median {median:?}, p99 {most:?}, longest {longest:?}")
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Histogram")
            .field("count", &self.count())
            .field("min", &self.min())
            .field("median", &self.quantile(0.5))
            .field("p99", &self.quantile(0.99))
            .field("max", &self.max())
            .finish_non_exhaustive()
    }
}

/// How late the runs of some tasks started, and how long they took.
#[derive(Clone, Debug)]
pub struct RunHistograms {
    pub(super) lateness: Histogram,
    pub(super) run_time: Histogram,
}

impl RunHistograms {
    pub(crate) fn new() -> Self {
        Self { lateness: Histogram(Tally::new()), run_time: Histogram(Tally::new()) }
    }

    /// Adds another snapshot to this one.
    pub(crate) fn add(&mut self, other: &Self) {
        self.lateness.0.add(&other.lateness.0);
        self.run_time.0.add(&other.run_time.0);
    }

    /// Returns how long after the moment for which it was planned each run started, as
    /// [`TaskContext::lateness`](crate::TaskContext::lateness) has it.
    #[must_use]
    pub fn lateness(&self) -> &Histogram {
        &self.lateness
    }

    /// Returns how long each run occupied its worker: from its start until the worker looked for the next task.
    /// That includes the hooks around the run, and to wake those who wait for its result.
    #[must_use]
    pub fn run_time(&self) -> &Histogram {
        &self.run_time
    }

    /// Returns how many runs have been recorded.
    #[must_use]
    pub fn runs(&self) -> u64 {
        self.run_time.count()
    }
}

/// One line for a log: both distributions.
impl fmt::Display for RunHistograms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lateness: {}; run time: {}", self.lateness, self.run_time)
    }
}
