//! How late runs start and how long they take, as histograms with buckets.
//!
//! A quantile since the start is of no use to an alert, because it hardly moves after a day, and quantiles of several
//! processes cannot be added up. So what is published are counts: for each bound, how many runs
//! did not exceed it. A monitoring system takes the difference of two scrapes, and works out the quantiles of the time between
//! them, of one process or of all (in Prometheus, `histogram_quantile` of a `rate`).
//!
//! # Why these are counters
//!
//! A histogram of the crate `metrics` is handed one value after the other, so to publish twice would count twice, and for each
//! recorder it would have to be remembered what that one has been told. And what becomes of the values is the recorder's affair:
//! that for Prometheus makes quantiles of them unless it is told the bounds. A counter is set to an absolute value, which is
//! right for any recorder and any number of threads that publish. The names and the label `le` are those that Prometheus gives a
//! histogram, so its functions work on them.
//!
//! The sum is a counter of whole microseconds for the same reason: a gauge could go back if two threads publish.

use std::time::Duration;

use metrics::{Label, Unit, counter, describe_counter};

use super::with;
use crate::histogram::{Histogram, RunHistograms};

/// The bounds, with the values of their label, which are in seconds.
const BOUNDS: [(Duration, &str); 19] = [
    (Duration::from_micros(100), "0.0001"),
    (Duration::from_micros(250), "0.00025"),
    (Duration::from_micros(500), "0.0005"),
    (Duration::from_millis(1), "0.001"),
    (Duration::from_micros(2_500), "0.0025"),
    (Duration::from_millis(5), "0.005"),
    (Duration::from_millis(10), "0.01"),
    (Duration::from_millis(25), "0.025"),
    (Duration::from_millis(50), "0.05"),
    (Duration::from_millis(100), "0.1"),
    (Duration::from_millis(250), "0.25"),
    (Duration::from_millis(500), "0.5"),
    (Duration::from_secs(1), "1"),
    (Duration::from_millis(2_500), "2.5"),
    (Duration::from_secs(5), "5"),
    (Duration::from_secs(10), "10"),
    (Duration::from_secs(30), "30"),
    (Duration::from_secs(60), "60"),
    (Duration::from_secs(300), "300"),
];

/// The bound that nothing exceeds.
const ALL: &str = "+Inf";

/// The label whose value is a bound.
const BOUND: &str = "le";

/// The metrics of the runs of an executor, or of a group.
pub(super) struct Family {
    lateness: Names,
    run_time: Names,
}

/// The metrics of one histogram, each with its meaning.
struct Names {
    bucket: (&'static str, &'static str),
    count: (&'static str, &'static str),
    sum: (&'static str, &'static str),
}

#[rustfmt::skip]
pub(super) const OF_EXECUTOR: Family = Family {
    lateness: Names {
        bucket: ("punctual_run_lateness_seconds_bucket", "Runs that started no later than this after they were due."),
        count: ("punctual_run_lateness_seconds_count", "Runs of which the lateness was recorded."),
        sum: ("punctual_run_lateness_microseconds_total", "The lateness of all runs together."),
    },
    run_time: Names {
        bucket: ("punctual_run_time_seconds_bucket", "Runs that took no longer than this."),
        count: ("punctual_run_time_seconds_count", "Runs of which the time was recorded."),
        sum: ("punctual_run_time_microseconds_total", "The time of all runs together."),
    },
};

#[rustfmt::skip]
pub(super) const OF_GROUP: Family = Family {
    lateness: Names {
        bucket: ("punctual_group_run_lateness_seconds_bucket", "Runs of the group's tasks that started no later than this after they were due."),
        count: ("punctual_group_run_lateness_seconds_count", "Runs of the group's tasks of which the lateness was recorded."),
        sum: ("punctual_group_run_lateness_microseconds_total", "The lateness of all runs of the group's tasks together."),
    },
    run_time: Names {
        bucket: ("punctual_group_run_time_seconds_bucket", "Runs of the group's tasks that took no longer than this."),
        count: ("punctual_group_run_time_seconds_count", "Runs of the group's tasks of which the time was recorded."),
        sum: ("punctual_group_run_time_microseconds_total", "The time of all runs of the group's tasks together."),
    },
};

/// Publishes all runs so far.
pub(super) fn publish(family: &Family, runs: &RunHistograms, labels: &[Label]) {
    family.lateness.publish(runs.lateness(), labels);
    family.run_time.publish(runs.run_time(), labels);
}

impl Names {
    fn publish(&self, seen: &Histogram, labels: &[Label]) {
        let (bucket, count, sum) = (self.bucket.0, self.count.0, self.sum.0);
        describe_counter!(bucket, Unit::Count, self.bucket.1);
        describe_counter!(count, Unit::Count, self.count.1);
        describe_counter!(sum, Unit::Microseconds, self.sum.1);
        let series = |bound, runs| counter!(bucket, with(labels, BOUND, bound)).absolute(runs);
        for (bound, label) in BOUNDS {
            series(label, seen.count_within(bound));
        }
        series(ALL, seen.count());
        counter!(count, labels.to_vec()).absolute(seen.count());
        let micros = u64::try_from(seen.sum().as_micros()).unwrap_or(u64::MAX);
        counter!(sum, labels.to_vec()).absolute(micros);
    }
}
