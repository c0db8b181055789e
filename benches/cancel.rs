//! What one `cancel` costs, with so many tasks pending: `cargo bench --bench cancel`. Also
//! `schedule` and `cancel` together, the life of a timeout that is not needed.

#![allow(clippy::disallowed_methods, clippy::expect_used, reason = "it measures")]

mod common;

use std::time::Instant;

use common::{BATCH, PENDING, far, filled};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};

fn cancel(c: &mut Criterion) {
    let mut group = c.benchmark_group("cancel");
    for pending in PENDING {
        let executor = filled(pending);
        group.bench_with_input(BenchmarkId::from_parameter(pending), &pending, |b, _| {
            b.iter_custom(|iterations| {
                common::in_batches(iterations, |count| {
                    let mut futures = Vec::with_capacity(BATCH);
                    for n in 0..count {
                        futures.push(executor.schedule(far(n), move || n).expect("it is open"));
                    }
                    let start = Instant::now();
                    futures.iter().for_each(|future| assert!(future.cancel()));
                    start.elapsed()
                })
            });
        });
    }
    group.finish();
}

fn schedule_and_cancel(c: &mut Criterion) {
    let mut group = c.benchmark_group("schedule_and_cancel");
    for pending in PENDING {
        let executor = filled(pending);
        let mut n = 0;
        group.bench_with_input(BenchmarkId::from_parameter(pending), &pending, |b, _| {
            b.iter(|| {
                n += 1;
                let captured = n;
                executor.schedule(far(n), move || captured).expect("it is open").cancel()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, cancel, schedule_and_cancel);
criterion_main!(benches);
