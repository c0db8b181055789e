//! What the benchmarks share.

#![allow(dead_code, reason = "each benchmark uses a part of it")]

use std::time::Duration;

use criterion::{BenchmarkId, Criterion};
use punctual::{ScheduledFuture, ScheduledThreadPoolExecutor};

/// So many tasks wait while the measured calls are made.
pub(crate) const PENDING: [u64; 3] = [1_000, 100_000, 1_000_000];

/// So many calls are measured in one go.
pub(crate) const BATCH: usize = 1_000;

/// A delay between one and two hours, scattered.
pub(crate) fn far(n: u64) -> Duration {
    let scattered = n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    Duration::from_micros(3_600_000_000 + scattered % 3_600_000_000)
}

/// An executor of one worker in which so many tasks wait.
pub(crate) fn filled(pending: u64) -> ScheduledThreadPoolExecutor {
    let executor = ScheduledThreadPoolExecutor::new(1);
    for n in 0..pending {
        drop(executor.schedule(far(n), move || n).expect("it is open"));
    }
    executor
}

/// Measures a call for each number of pending tasks: `measure` makes a batch of so many calls on
/// the executor, with a list to keep the futures in, and gives the time they took.
pub(crate) fn for_each_size(
    c: &mut Criterion,
    name: &str,
    measure: impl Fn(&ScheduledThreadPoolExecutor, u64, &mut Vec<ScheduledFuture<u64>>) -> Duration,
) {
    let mut group = c.benchmark_group(name);
    for pending in PENDING {
        let executor = filled(pending);
        group.bench_with_input(BenchmarkId::from_parameter(pending), &pending, |b, _| {
            b.iter_custom(|iterations| {
                in_batches(iterations, |count| {
                    measure(&executor, count, &mut Vec::with_capacity(BATCH))
                })
            });
        });
    }
    group.finish();
}

/// Schedules so many tasks for far ahead.
pub(crate) fn schedule_far(
    executor: &ScheduledThreadPoolExecutor,
    count: u64,
    futures: &mut Vec<ScheduledFuture<u64>>,
) {
    futures.extend((0..count).map(|n| executor.schedule(far(n), move || n).expect("it is open")));
}

/// Cancels them.
pub(crate) fn cancel_all(futures: &[ScheduledFuture<u64>]) {
    futures.iter().for_each(|future| assert!(future.cancel()));
}

/// The time of `iterations` calls that `measure` makes in batches of a size of its own.
fn in_batches(iterations: u64, mut measure: impl FnMut(u64) -> Duration) -> Duration {
    let (whole, rest) = (iterations / BATCH as u64, iterations % BATCH as u64);
    let sizes = (0..whole).map(|_| BATCH as u64).chain((rest > 0).then_some(rest));
    sizes.map(&mut measure).sum()
}
