//! Histograms of how late runs start and how long they take.
//!
//! A histogram allocates its 4,382 buckets of eight bytes (34 KiB) when it is made, so recording a duration allocates
//! nothing. Buckets are 64 nanoseconds wide up to 16 microseconds; after that, the width doubles every 128 buckets, as
//! in `HdrHistogram` with two significant digits.

use std::{fmt, time::Duration};

/// The first buckets are `1 << UNIT` nanoseconds wide.
const UNIT: u32 = 6;
/// Beyond 16 microseconds, the bucket width doubles every `1 << OCTAVE` buckets.
const OCTAVE: u32 = 7;
/// A day, in nanoseconds. Longer durations count in the last bucket.
const HIGHEST: u64 = 24 * 3_600 * 1_000_000_000;

/// Returns the bucket of a duration. It depends on the eight leading bits of the duration in units of 64 nanoseconds,
/// and on how many bits follow them.
#[inline]
fn bucket_of(nanos: u64) -> usize {
    let units = nanos.min(HIGHEST) >> UNIT;
    let digits = u64::BITS - units.leading_zeros();
    let shift = digits.saturating_sub(OCTAVE + 1);
    ((u64::from(shift) << OCTAVE) + (units >> shift)) as usize
}

fn highest_in(bucket: usize) -> u64 {
    let shift = (bucket as u64 >> OCTAVE).saturating_sub(1);
    let units = bucket as u64 - (shift << OCTAVE);
    ((units + 1) << (shift + u64::from(UNIT))) - 1
}

/// The distribution of the times that runs took, or by which they were late; from [`RunHistograms`].
///
/// Durations are counted in buckets that are 64 nanoseconds wide and, from 16 microseconds to a day, narrower than a
/// hundredth of what they count. The count, the sum, the shortest and the longest are exact, even beyond a day.
///
/// ```
/// use std::time::Duration;
/// use punctual::{ManualClock, MissedRuns, ScheduledThreadPoolExecutor, trigger::every};
///
/// let (clock, second) = (ManualClock::new(), Duration::from_secs(1));
/// let builder = ScheduledThreadPoolExecutor::builder().clock(clock.clone());
/// let executor = builder.histograms(0).build()?;
/// let burst = executor.task().missed_runs(MissedRuns::Burst);
/// burst.repeat(every(second).first_in(second), || ())?;
/// clock.advance(3 * second); // the three runs are late by two seconds, by one, and not at all
/// clock.run_until_idle();
/// let seen = executor.histograms().expect("they are kept");
/// let lateness = seen.pool().lateness();
/// assert_eq!((lateness.count(), lateness.mean()), (3, Some(second)));
/// assert_eq!((lateness.quantile(1.0), lateness.count_within(second)), (Some(2 * second), 2));
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[derive(Clone)]
pub struct Histogram {
    buckets: Box<[u64]>,
    count: u64,
    min: u64,
    max: u64,
    sum: u128,
}

impl Default for Histogram {
    fn default() -> Self {
        let buckets = vec![0; bucket_of(HIGHEST) + 1].into_boxed_slice();
        Self { buckets, count: 0, min: u64::MAX, max: 0, sum: 0 }
    }
}

impl Histogram {
    #[inline]
    fn record(&mut self, nanos: u64) {
        self.buckets[bucket_of(nanos)] += 1;
        self.count += 1;
        self.min = self.min.min(nanos);
        self.max = self.max.max(nanos);
        self.sum += u128::from(nanos);
    }

    fn add(&mut self, other: &Self) {
        self.buckets.iter_mut().zip(&other.buckets).for_each(|(own, more)| *own += more);
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
    }

    /// Returns how many durations have been recorded.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the shortest duration, exactly; `None` if there is none.
    pub fn min(&self) -> Option<Duration> {
        self.nonzero(|| Duration::from_nanos(self.min))
    }

    /// Returns the longest duration, exactly; `None` if there is none.
    pub fn max(&self) -> Option<Duration> {
        self.nonzero(|| Duration::from_nanos(self.max))
    }

    /// Returns the sum of all durations, exactly, up to 584 years.
    pub fn sum(&self) -> Duration {
        Duration::from_nanos(u64::try_from(self.sum).unwrap_or(u64::MAX))
    }

    /// Returns the mean, rounded down to nanoseconds; `None` if there is none.
    pub fn mean(&self) -> Option<Duration> {
        self.nonzero(|| Duration::from_nanos((self.sum / u128::from(self.count())) as u64))
    }

    /// Returns a duration that this share of all durations does not exceed: 0.5 for the median, 0.99 for the 99th
    /// percentile. It is at most 64 nanoseconds or a hundredth too long, and always between the shortest and the
    /// longest. Clamps `share` to the range from 0 to 1. `None` if nothing has been recorded.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        self.nonzero(|| {
            let place = (share.clamp(0.0, 1.0) * self.count as f64).ceil() as u64;
            let mut left = place.max(1);
            let reaches = |runs: &u64| {
                left = left.saturating_sub(*runs);
                left == 0
            };
            // The last bucket has no upper bound, so a quantile in it is the longest duration.
            let bucket = self.buckets[..bucket_of(HIGHEST)].iter().position(reaches);
            let value = bucket.map_or(self.max, highest_in);
            Duration::from_nanos(value.clamp(self.min, self.max))
        })
    }

    /// Returns how many durations were no longer than `limit`. Counts the limit's whole bucket, so some may be up to 64
    /// nanoseconds or a hundredth longer. Takes a few microseconds.
    pub fn count_within(&self, limit: Duration) -> u64 {
        let limit = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        self.buckets[..=bucket_of(limit)].iter().sum()
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
        write!(f, "Histogram({self})")
    }
}

/// How late the runs of some tasks started, and how long they took.
#[derive(Clone, Debug, Default)]
pub struct RunHistograms {
    lateness: Histogram,
    run_time: Histogram,
}

impl RunHistograms {
    #[inline]
    pub(super) fn record(&mut self, lateness: Duration, run_time: Duration) {
        // A measured duration fits, and the compiler sees that it was made from a number of nanoseconds.
        self.lateness.record(lateness.as_nanos() as u64);
        self.run_time.record(run_time.as_nanos() as u64);
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.lateness.add(&other.lateness);
        self.run_time.add(&other.run_time);
    }

    /// Returns how long after its planned moment each run started, as
    /// [`TaskContext::lateness`](crate::TaskContext::lateness) defines it.
    #[must_use]
    pub fn lateness(&self) -> &Histogram {
        &self.lateness
    }

    /// Returns how long each run occupied its worker, until the worker looked for its next task. This includes the
    /// hooks around the run, and waking the threads that wait for its result.
    #[must_use]
    pub fn run_time(&self) -> &Histogram {
        &self.run_time
    }

    /// Returns how many runs have been recorded.
    pub fn runs(&self) -> u64 {
        self.run_time.count()
    }
}

impl fmt::Display for RunHistograms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lateness: {}; run time: {}", self.lateness, self.run_time)
    }
}

#[cfg(test)]
mod tests;
