use std::time::Duration;

use super::*;
use crate::time::saturating_nanos;

fn recorded(values: impl IntoIterator<Item = Duration>) -> RunHistograms {
    let recorder = Recorder::new();
    for value in values {
        let nanos = saturating_nanos(value);
        recorder.record(Sample { lateness: nanos, run_time: nanos.saturating_mul(2) });
    }
    let mut sum = RunHistograms::new();
    recorder.add_to(&mut sum);
    sum
}

/// The memory of a distribution is as its page says, and stays so.
#[test]
fn a_distribution_has_all_its_buckets_from_the_beginning() {
    let mut histogram = Histogram::new();
    let buckets = histogram.counts.distinct_values();
    assert_eq!(buckets, 4_480);
    histogram.record(u64::MAX);
    histogram.record(0);
    assert_eq!(histogram.counts.distinct_values(), buckets);
}

/// A quantile is at most a hundredth too long, from the shortest to the longest that is counted.
#[test]
fn a_quantile_is_exact_to_a_hundredth() {
    let mut nanos = LOWEST * 128;
    while nanos < HIGHEST {
        let both = [nanos, 3 * nanos].map(Duration::from_nanos);
        let seen = recorded(both);
        let median = seen.lateness().quantile(0.5).expect("two were recorded");
        assert!(median >= both[0], "{median:?} for {:?}", both[0]);
        assert!(median <= both[0] + both[0] / 100, "{median:?} for {:?}", both[0]);
        nanos = nanos * 17 / 10;
    }
}

/// The values that the buckets do not hold are exact: the count, the shortest, the longest, the sum and the mean.
#[test]
fn count_mean_and_extremes_are_exact() {
    let seen = recorded([3, 1_000_003, 77].map(Duration::from_nanos));
    let lateness = seen.lateness();
    assert_eq!((lateness.count(), seen.runs()), (3, 3));
    assert_eq!(lateness.min(), Some(Duration::from_nanos(3)));
    assert_eq!(lateness.max(), Some(Duration::from_nanos(1_000_003)));
    assert_eq!(lateness.sum(), Duration::from_nanos(1_000_083));
    assert_eq!(lateness.mean(), Some(Duration::from_nanos(333_361)));
    assert_eq!(seen.run_time().max(), Some(Duration::from_nanos(2_000_006)));
    assert_eq!(lateness.quantile(1.0), lateness.max());
    assert_eq!(lateness.quantile(2.0), lateness.max());
    assert_eq!(lateness.quantile(f64::NAN), lateness.quantile(0.0));
}

/// A duration that is too long is counted as the longest, and is still the largest that was seen.
#[test]
fn what_is_too_long_is_counted_all_the_same() {
    let year = Duration::from_secs(365 * 24 * 3_600);
    let seen = recorded([Duration::from_nanos(1_000), year]);
    assert_eq!(seen.lateness().count(), 2);
    assert_eq!(seen.lateness().max(), Some(year));
    assert_eq!(seen.lateness().quantile(1.0), Some(year));
    assert!(seen.lateness().quantile(0.5) < Some(Duration::from_nanos(1_000 + 64)));
}

#[test]
fn nothing_has_no_quantile() {
    let nothing = recorded([]);
    let lateness = nothing.lateness();
    assert_eq!((lateness.count(), lateness.sum()), (0, Duration::ZERO));
    assert_eq!(
        [lateness.min(), lateness.max(), lateness.mean(), lateness.quantile(0.5)],
        [None; 4]
    );
    assert_eq!(lateness.count_within(Duration::MAX), 0);
}

/// The runs of a named task go to the recorder of its name in place of the worker's, and to that of its
/// group as well.
#[test]
fn a_run_is_recorded_once_for_the_pool() {
    let [own, name, group] = [(); 3].map(|()| Arc::new(Recorder::new()));
    let sample = Sample { lateness: 0, run_time: 0 };
    Recorders { of_name: Some(Arc::clone(&name)), of_group: None }.record(&own, sample);
    let grouped = Recorders { of_name: None, of_group: Some(Arc::clone(&group)) };
    grouped.record(&own, sample);
    grouped.record(&own, sample);
    let runs = [own, name, group].map(|recorder| {
        let mut sum = RunHistograms::new();
        recorder.add_to(&mut sum);
        sum.runs()
    });
    assert_eq!(runs, [2, 1, 2]);
}
