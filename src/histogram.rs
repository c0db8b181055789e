//! Histograms of how late runs start and how long they take.
//!
//! A [`Recorder`] has two distributions, of lateness and of run time, under one lock of its own. A worker
//! has one for itself, which only a snapshot ever contends for, and each name that is kept apart has one. To record a run
//! is to take that lock and to increment two counts.
//!
//! # No run is counted twice
//!
//! A task that is recorded apart has [`Recorders`]: one for its name, and that of the group that it is
//! in. Its runs go to the recorder of its name *in place of* the worker's own, since what a pool has done is the
//! sum of the workers' recorders and of those of the names; and they go to the group's *as well*, which
//! that sum leaves out.
//!
//! # Memory
//!
//! A distribution has all its buckets from the beginning, so nothing is allocated where a run is recorded:
//! [`LOWEST`] to [`HIGHEST`] with two significant digits are 4,480 counts of eight bytes, 35 KiB, and twice that for a recorder.

use std::{fmt, time::Duration};

use crate::{
    sync::{Arc, Mutex},
    time::saturating_nanos,
};

/// Shorter durations share one bucket with zero.
const LOWEST: u64 = 64;
/// A day, in nanoseconds. What is longer counts as this.
const HIGHEST: u64 = 24 * 3_600 * 1_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 2;

/// The numbers recorded for a run: nanoseconds, the unit in which a worker measures and by which a bucket is chosen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) lateness: u64,
    pub(crate) run_time: u64,
}

pub(crate) struct Recorder(Mutex<RunHistograms>);

impl Recorder {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(RunHistograms::new()))
    }

    #[inline]
    pub(crate) fn record(&self, sample: Sample) {
        let mut recorded = self.0.lock();
        recorded.lateness.record(sample.lateness);
        recorded.run_time.record(sample.run_time);
    }

    /// Adds the records to a snapshot.
    pub(crate) fn add_to(&self, sum: &mut RunHistograms) {
        sum.add(&self.0.lock());
    }
}

/// The recorders of the runs of one task; see the [module](self).
pub(crate) struct Recorders {
    /// The one of the task's name, in place of the worker's own.
    pub(crate) of_name: Option<Arc<Recorder>>,
    /// The one of the task's group, beside the one above.
    pub(crate) of_group: Option<Arc<Recorder>>,
}

impl Recorders {
    /// Records a run that a worker has made, whose own recorder is `own`.
    pub(crate) fn record(&self, own: &Recorder, sample: Sample) {
        self.of_name.as_deref().unwrap_or(own).record(sample);
        if let Some(recorder) = &self.of_group {
            recorder.record(sample);
        }
    }
}

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
/// executor.schedule_at_fixed_rate(second, second, || ())?;
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
    counts: hdrhistogram::Histogram<u64>,
    // The exact values that the buckets do not hold.
    min: u64,
    max: u64,
    sum: u128,
}

impl Histogram {
    fn new() -> Self {
        let made = hdrhistogram::Histogram::new_with_bounds(LOWEST, HIGHEST, SIGNIFICANT_DIGITS);
        let counts = made.unwrap_or_else(|_| unreachable!("the bounds are in order"));
        Self { counts, min: u64::MAX, max: 0, sum: 0 }
    }

    #[inline]
    fn record(&mut self, nanos: u64) {
        self.counts.saturating_record(nanos);
        self.min = self.min.min(nanos);
        self.max = self.max.max(nanos);
        self.sum += u128::from(nanos);
    }

    fn add(&mut self, other: &Self) {
        let added = self.counts.add(&other.counts);
        debug_assert!(added.is_ok(), "all have the same bounds");
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
    }

    /// Returns how many durations have been recorded.
    pub fn count(&self) -> u64 {
        self.counts.len()
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

    /// Returns a duration that this share of all durations does not exceed: 0.5 for the median, 0.99 for what
    /// one of a hundred exceeds. It is at most 64 nanoseconds or a hundredth too long, and never shorter than the
    /// shortest nor longer than the longest. A share below zero counts as zero, and one above one as
    /// one. `None` if nothing has been recorded.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        self.nonzero(|| {
            let share = if share >= 0.0 { share } else { 0.0 };
            let value = self.counts.value_at_quantile(share);
            // The value of the last bucket is its bound; beyond that only the largest is known.
            let is_last = value >= self.counts.highest_equivalent(HIGHEST);
            let value = if is_last { self.max } else { value };
            Duration::from_nanos(value.clamp(self.min, self.max))
        })
    }

    /// Returns how many durations were no longer than `limit`. A duration in the same bucket as the limit
    /// counts, so one that is at most 64 nanoseconds or a hundredth too long may be among them. Takes a few
    /// microseconds.
    pub fn count_within(&self, limit: Duration) -> u64 {
        let limit = saturating_nanos(limit);
        // The last bucket also counts values above the highest that is recorded.
        if limit < HIGHEST { self.counts.count_between(0, limit) } else { self.count() }
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
#[derive(Clone, Debug)]
pub struct RunHistograms {
    lateness: Histogram,
    run_time: Histogram,
}

impl RunHistograms {
    pub(crate) fn new() -> Self {
        Self { lateness: Histogram::new(), run_time: Histogram::new() }
    }

    /// Adds another snapshot to this one.
    pub(crate) fn add(&mut self, other: &Self) {
        self.lateness.add(&other.lateness);
        self.run_time.add(&other.run_time);
    }

    /// Returns how long after the moment for which it was planned each run started, as
    /// [`TaskContext::lateness`](crate::TaskContext::lateness) has it.
    #[must_use]
    pub fn lateness(&self) -> &Histogram {
        &self.lateness
    }

    /// Returns how long each run occupied its worker: from its start until the worker looked for the next task.
    /// That includes the hooks around the run, and the wake-ups of the threads that wait for its result.
    #[must_use]
    pub fn run_time(&self) -> &Histogram {
        &self.run_time
    }

    /// Returns how many runs have been recorded.
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

#[cfg(test)]
mod tests;
