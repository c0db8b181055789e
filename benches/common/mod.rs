//! The tools that the benchmarks share.

#![allow(dead_code, unused_imports, reason = "each benchmark uses a part of it")]

mod countdown;
mod together;

use std::{cell::LazyCell, env, time::Duration};

use criterion::{
    Bencher, BenchmarkGroup, BenchmarkId, Criterion, SamplingMode, measurement::WallTime,
};
use punctual::{Handle, ScheduledFuture, ScheduledThreadPoolExecutor};

pub(crate) use self::{countdown::Countdown, together::share_out};

/// The numbers of tasks that are pending during the measured calls.
const PENDING: [u64; 3] = [1_000, 100_000, 1_000_000];

/// The number of calls that are measured in one go.
const BATCH: u64 = 1_000;

/// Returns `true` if nothing is measured: `cargo test --benches` only checks that the benchmark
/// runs.
pub(crate) fn is_trial() -> bool {
    let has = |flag| env::args().any(|arg| arg == flag);
    !has("--bench") || has("--test")
}

/// Returns `count`, or at most a thousand if nothing is measured.
pub(crate) fn sized(count: u64) -> u64 {
    if is_trial() { count.min(1_000) } else { count }
}

/// A number below 2^32 that looks random.
pub(crate) fn scattered(n: u64) -> u64 {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32
}

/// A scattered delay between one and two hours.
pub(crate) fn far(n: u64) -> Duration {
    Duration::from_micros(3_600_000_000 + scattered(n) % 3_600_000_000)
}

/// An executor with the given numbers of workers and of pending tasks. As many threads as given
/// have scheduled the tasks; [`share_out`] uses the same threads.
pub(crate) fn filled(workers: usize, threads: usize, pending: u64) -> ScheduledThreadPoolExecutor {
    let executor = ScheduledThreadPoolExecutor::new(workers);
    let handle = executor.handle();
    share_out(threads, sized(pending), move |share| drop(schedule_far(&handle, share)));
    executor
}

/// Measures calls for each number of pending tasks, scheduled by the given number of threads.
/// `measure` makes the given number of calls, and returns the time they took.
pub(crate) fn for_each_size(
    mut group: BenchmarkGroup<'_, WallTime>,
    threads: usize,
    measure: impl Fn(&Handle, u64) -> Duration,
) {
    for pending in PENDING {
        // The executor is not filled if the command line excludes this size.
        let executor = LazyCell::new(|| filled(1, threads, pending));
        group.bench_function(BenchmarkId::from_parameter(pending), |b| {
            let handle = executor.handle();
            b.iter_custom(|iterations| measure(&handle, iterations));
        });
    }
}

/// Measures with one worker and with two.
pub(crate) fn for_each_pool(
    mut group: BenchmarkGroup<'_, WallTime>,
    measure: impl Fn(&mut Bencher<'_>, &ScheduledThreadPoolExecutor),
) {
    for workers in [1, 2] {
        let executor = ScheduledThreadPoolExecutor::new(workers);
        group.bench_function(BenchmarkId::new("workers", workers), |b| measure(b, &executor));
    }
}

/// Creates a group in which every iteration has the same weight: criterion's estimate is then the
/// plain mean.
pub(crate) fn group_of_means<'a>(c: &'a mut Criterion, name: &str) -> BenchmarkGroup<'a, WallTime> {
    let mut group = c.benchmark_group(name);
    group.sampling_mode(SamplingMode::Flat);
    group
}

/// Schedules that many tasks for far ahead.
pub(crate) fn schedule_far(executor: &Handle, count: u64) -> Vec<ScheduledFuture<u64>> {
    let mut futures = Vec::with_capacity(count as usize);
    futures.extend((0..count).map(|n| executor.schedule(far(n), move || n).expect("it is open")));
    futures
}

/// Cancels them.
pub(crate) fn cancel_all(futures: &[ScheduledFuture<u64>]) {
    futures.iter().for_each(|future| assert!(future.cancel()));
}

/// The time of `count` calls, which `measure` makes in batches.
pub(crate) fn in_batches(count: u64, mut measure: impl FnMut(u64) -> Duration) -> Duration {
    let (whole, rest) = (count / BATCH, count % BATCH);
    let sizes = (0..whole).map(|_| BATCH).chain((rest > 0).then_some(rest));
    sizes.map(&mut measure).sum()
}
