//! Histograms of how late runs start and how long they take: how a run is recorded.
//!
//! A [`Recorder`] has two distributions, of lateness and of run time, under one lock of its own. A worker
//! has one for itself, which only a snapshot ever contends for, and each name that is kept apart has one, for which
//! two workers contend if they run tasks of that name at once. To record a run is to take that lock and
//! to increment two counts.
//!
//! # No run is counted twice
//!
//! A task that is recorded apart has [`Recorders`]: one for its name, and that of the group that it is
//! in. Its runs go to the recorder of its name *in place of* the worker's own, since what a pool has done is the
//! sum of the workers' recorders and of those of the names; and they go to the group's *as well*, which
//! that sum leaves out. So a run costs one recorder whether or not its task has a name, and two in a group.
//!
//! # Memory
//!
//! A distribution has all its buckets from the beginning and never grows, so nothing is allocated where
//! a run is recorded, and the memory is known: [`LOWEST`] to [`HIGHEST`] with two significant digits are 4,480 counts of
//! eight bytes, 35 KiB, and twice that for a recorder. What is longer than the longest counts as the
//! longest; the smallest, the largest and the sum are kept beside the counts, and are exact.

mod snapshot;

pub use self::snapshot::{Histogram, HistogramBucket, RunHistograms};
use crate::sync::{Arc, Mutex};

/// Shorter durations share one bucket with zero.
const LOWEST: u64 = 64;
/// A day, in nanoseconds. What is longer counts as this.
const HIGHEST: u64 = 24 * 3_600 * 1_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 2;

/// What a run is recorded as: nanoseconds, which is what a worker has and what a bucket is chosen by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) lateness: u64,
    pub(crate) run_time: u64,
}

/// One distribution, with what its buckets do not say exactly.
#[derive(Clone)]
struct Tally {
    counts: hdrhistogram::Histogram<u64>,
    min: u64,
    max: u64,
    sum: u128,
}

impl Tally {
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
}

/// Where runs are recorded; see the [module](self).
pub(crate) struct Recorder(Mutex<Tallies>);

struct Tallies {
    lateness: Tally,
    run_time: Tally,
}

impl Recorder {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Tallies { lateness: Tally::new(), run_time: Tally::new() }))
    }

    #[inline]
    pub(crate) fn record(&self, sample: Sample) {
        let mut tallies = self.0.lock();
        tallies.lateness.record(sample.lateness);
        tallies.run_time.record(sample.run_time);
    }

    /// Adds what has been recorded here to a snapshot.
    pub(crate) fn add_to(&self, sum: &mut RunHistograms) {
        let tallies = self.0.lock();
        sum.lateness.0.add(&tallies.lateness);
        sum.run_time.0.add(&tallies.run_time);
    }
}

/// Where the runs of one task are recorded; see the [module](self).
pub(crate) struct Recorders {
    /// The one of the task's name, in place of the worker's own.
    pub(crate) of_name: Option<Arc<Recorder>>,
    /// The one of the task's group, beside the one above.
    pub(crate) of_group: Option<Arc<Recorder>>,
}

impl Recorders {
    pub(crate) fn of_name(recorder: Arc<Recorder>) -> Self {
        Self { of_name: Some(recorder), of_group: None }
    }

    /// Records a run that a worker has made, whose own recorder is `own`.
    pub(crate) fn record(&self, own: &Recorder, sample: Sample) {
        self.of_name.as_deref().unwrap_or(own).record(sample);
        if let Some(recorder) = &self.of_group {
            recorder.record(sample);
        }
    }
}

#[cfg(test)]
mod tests;
