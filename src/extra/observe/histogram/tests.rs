use std::time::Duration;

use super::*;

fn recorded(values: impl IntoIterator<Item = Duration>) -> RunHistograms {
    let mut recorded = RunHistograms::default();
    values.into_iter().for_each(|value| recorded.record(value, value.saturating_mul(2)));
    recorded
}

/// A histogram takes as much memory as its module says, and never more.
#[test]
fn a_distribution_has_all_its_buckets_from_the_beginning() {
    let mut histogram = Histogram::default();
    assert_eq!(histogram.buckets.len(), 4_382);
    histogram.record(u64::MAX);
    histogram.record(0);
    assert_eq!(histogram.buckets.len(), 4_382);
}

/// The buckets follow one another without a gap.
#[test]
fn each_bucket_ends_where_the_next_begins() {
    let mut first = 0;
    for bucket in 0..bucket_of(HIGHEST) {
        let last = highest_in(bucket);
        assert_eq!(
            (bucket_of(first), bucket_of(last), bucket_of(last + 1)),
            (bucket, bucket, bucket + 1)
        );
        let width = last + 1 - first;
        assert!(width == 64 || width * 100 <= first, "{width} from {first} on");
        first = last + 1;
    }
}

/// A quantile is at most a hundredth too long, from 8 microseconds to a day.
#[test]
fn a_quantile_is_exact_to_a_hundredth() {
    let mut nanos = 8_192_u64;
    while nanos < HIGHEST {
        let both = [nanos, 3 * nanos].map(Duration::from_nanos);
        let seen = recorded(both);
        let median = seen.lateness().quantile(0.5).expect("two were recorded");
        assert!(median >= both[0], "{median:?} for {:?}", both[0]);
        assert!(median <= both[0] + both[0] / 100, "{median:?} for {:?}", both[0]);
        nanos = nanos * 17 / 10;
    }
}

/// The values kept beside the buckets are exact: the count, the shortest, the longest, the sum and the mean.
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

/// A duration beyond the last bound counts in the last bucket, and is still the longest seen.
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
