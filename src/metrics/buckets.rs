//! How late runs start and how long they take, as histograms with buckets.
//!
//! The crate publishes a count for each bound: how many runs did not exceed it. A monitoring system takes the difference of
//! two scrapes, and works out the quantiles of the time between them, of one process or of all.
//!
//! All of them are counters, and the sum is one of whole microseconds, because a counter is set to an absolute value, which is
//! right for any recorder and any number of threads that publish; a histogram of the crate `metrics` would count twice what is
//! published twice. The names and the label `le` are those that Prometheus gives a histogram, so its functions work on them.

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

/// Publishes all runs so far. The names begin with `prefix`, and `of` says whose the runs are, if not those of all tasks.
pub(super) fn publish(prefix: &str, of: &str, runs: &RunHistograms, labels: &[Label]) {
    let lateness = [
        format!("Runs{of} that started no later than this after they were due."),
        format!("Runs{of} of which the lateness was recorded."),
        format!("The lateness of all runs{of} together."),
    ];
    let run_time = [
        format!("Runs{of} that took no longer than this."),
        format!("Runs{of} of which the time was recorded."),
        format!("The time of all runs{of} together."),
    ];
    publish_one(&format!("{prefix}_lateness"), lateness, runs.lateness(), labels);
    publish_one(&format!("{prefix}_time"), run_time, runs.run_time(), labels);
}

fn publish_one(name: &str, meanings: [String; 3], seen: &Histogram, labels: &[Label]) {
    let [bucket, count] = ["bucket", "count"].map(|part| format!("{name}_seconds_{part}"));
    let sum = format!("{name}_microseconds_total");
    let [of_bucket, of_count, of_sum] = meanings;
    describe_counter!(bucket.clone(), Unit::Count, of_bucket);
    describe_counter!(count.clone(), Unit::Count, of_count);
    describe_counter!(sum.clone(), Unit::Microseconds, of_sum);
    let series = |bound, runs| counter!(bucket.clone(), with(labels, "le", bound)).absolute(runs);
    for (bound, label) in BOUNDS {
        series(label, seen.count_within(bound));
    }
    // Nothing exceeds this one.
    series("+Inf", seen.count());
    counter!(count, labels.to_vec()).absolute(seen.count());
    let micros = u64::try_from(seen.sum().as_micros()).unwrap_or(u64::MAX);
    counter!(sum, labels.to_vec()).absolute(micros);
}
