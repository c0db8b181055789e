//! The cost of one call to `schedule`: `cargo bench --bench schedule`.
//!
//! * `schedule/P`: with `P` tasks pending, one or two hours ahead; per call.
//! * `schedule_growing/threads/T`: `T` threads fill an executor with 100,000 tasks; the time of
//!   all, and the calls per second of all threads together.

#![allow(clippy::disallowed_methods, clippy::expect_used, reason = "it measures")]

mod common;

use std::time::{Duration, Instant};

use common::{
    cancel_all, for_each_size, group_of_means, in_batches, schedule_far, share_out, sized,
};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use punctual::ScheduledThreadPoolExecutor;

/// The number of tasks that each executor grows to.
const GROWN: u64 = 100_000;

fn schedule(c: &mut Criterion) {
    for_each_size(c.benchmark_group("schedule"), 1, |executor, count| {
        in_batches(count, |count| {
            let start = Instant::now();
            let futures = schedule_far(executor, count);
            let time = start.elapsed();
            cancel_all(&futures);
            time
        })
    });
}

fn schedule_growing(c: &mut Criterion) {
    let mut group = group_of_means(c, "schedule_growing");
    group.throughput(Throughput::Elements(sized(GROWN)));
    for threads in [1, 2] {
        group.bench_function(BenchmarkId::new("threads", threads), |b| {
            b.iter_custom(|iterations| (0..iterations).map(|_| grow(threads)).sum());
        });
    }
}

/// Returns the time in which `threads` threads fill an executor whose worker is already started.
fn grow(threads: usize) -> Duration {
    let executor = ScheduledThreadPoolExecutor::new(1);
    executor.submit(|| ()).expect("it is open").join().expect("it ends");
    let handle = executor.handle();
    let (time, _futures) =
        share_out(threads, sized(GROWN), move |share| schedule_far(&handle, share));
    time
}

criterion_group!(benches, schedule, schedule_growing);
criterion_main!(benches);
