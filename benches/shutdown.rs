//! The cost of `shutdown_now` with 100,000 pending tasks: `cargo bench --bench shutdown`. Measured
//! from the call until every task and its captures are dropped and the two threads are gone.

#![allow(clippy::disallowed_methods, clippy::expect_used, reason = "it measures")]

mod common;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

/// The number of pending tasks.
const PENDING: u64 = 100_000;

fn shutdown(c: &mut Criterion) {
    let mut group = c.benchmark_group("shutdown_now");
    group.throughput(Throughput::Elements(common::sized(PENDING)));
    group.bench_function(BenchmarkId::from_parameter(PENDING), |b| {
        let end = |executor: punctual::ScheduledThreadPoolExecutor| {
            drop(executor.shutdown_now());
            // The drop waits for the threads.
            drop(executor);
        };
        b.iter_batched(|| common::filled(2, 1, PENDING), end, BatchSize::PerIteration);
    });
}

criterion_group!(benches, shutdown);
criterion_main!(benches);
