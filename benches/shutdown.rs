//! What `shutdown_now` costs with 100,000 tasks pending: `cargo bench --bench shutdown`. From the
//! call until every task and what it captured is dropped and the two threads are gone.

#![allow(clippy::disallowed_methods, clippy::expect_used, reason = "it measures")]

mod common;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

/// So many tasks wait.
const PENDING: u64 = 100_000;

fn shutdown(c: &mut Criterion) {
    let mut group = c.benchmark_group("shutdown_now");
    group.throughput(Throughput::Elements(common::sized(PENDING)));
    group.bench_function(BenchmarkId::from_parameter(PENDING), |b| {
        let end = |executor: punctual::ScheduledThreadPoolExecutor| {
            drop(executor.shutdown_now());
            // Waits for the threads.
            drop(executor);
        };
        b.iter_batched(|| common::filled(2, 1, PENDING), end, BatchSize::PerIteration);
    });
}

criterion_group!(benches, shutdown);
criterion_main!(benches);
