//! The cost of a timeout on every request: `cargo bench --bench timeouts`.
//!
//! `timeouts/threads/T`: ten thousand timeouts are outstanding; `T` threads make requests. Each
//! request schedules a timeout of 30 s, which is cancelled at once or in one of the next hundred
//! requests of the same thread. The time of all threads together over the requests of all.

#![allow(clippy::disallowed_methods, clippy::expect_used, reason = "it measures")]

mod common;

use std::{iter, time::Duration};

use common::{cancel_all, scattered, share_out, sized};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use punctual::{Handle, ScheduledFuture, ScheduledThreadPoolExecutor};

/// The number of timeouts that are pending meanwhile.
const OUTSTANDING: u64 = 10_000;

/// A timeout is cancelled within this many requests, counting its own.
const LIFE: u64 = 101;

/// A timeout after 30 seconds.
const TIMEOUT: Duration = Duration::from_secs(30);

fn timeout(executor: &Handle, delay: Duration, request: u64) -> ScheduledFuture<u64> {
    executor.schedule(delay, move || request).expect("it is open")
}

/// Schedules `count` timeouts, as if over the last five seconds.
fn outstanding(executor: &Handle, count: u64) -> Vec<ScheduledFuture<u64>> {
    let ago = |n| Duration::from_micros(scattered(n) % 5_000_000);
    (0..count).map(|n| timeout(executor, TIMEOUT - ago(n), n)).collect()
}

/// Makes `count` requests, and cancels all their timeouts.
fn requests(executor: &Handle, count: u64) {
    let mut ending: Vec<_> = iter::repeat_with(Vec::new).take(LIFE as usize).collect();
    for n in 0..count {
        let end = n + scattered(n) % LIFE;
        ending[(end % LIFE) as usize].push(timeout(executor, TIMEOUT, n));
        let ended = &mut ending[(n % LIFE) as usize];
        cancel_all(ended);
        ended.clear();
    }
    ending.iter().for_each(|rest| cancel_all(rest));
}

/// Returns the time in which the threads make that many requests together.
fn measure(executor: &Handle, threads: usize, count: u64) -> Duration {
    let (before, during) = (executor.clone(), executor.clone());
    // They are scheduled anew each time: in a long measurement they would fall due.
    let (_, outstanding) =
        share_out(threads, sized(OUTSTANDING), move |share| outstanding(&before, share));
    let (time, _) = share_out(threads, count, move |share| requests(&during, share));
    outstanding.iter().for_each(|some| cancel_all(some));
    time
}

fn timeouts(c: &mut Criterion) {
    let mut group = c.benchmark_group("timeouts");
    for threads in [1, 2] {
        let executor = ScheduledThreadPoolExecutor::new(1);
        group.bench_function(BenchmarkId::new("threads", threads), |b| {
            b.iter_custom(|iterations| measure(&executor, threads, iterations));
        });
    }
}

criterion_group!(benches, timeouts);
criterion_main!(benches);
