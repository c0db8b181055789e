//! What one call to `schedule` costs, with so many tasks pending: `cargo bench --bench schedule`.

#![allow(clippy::disallowed_methods, clippy::expect_used, reason = "it measures")]

mod common;

use std::time::Instant;

use common::{BATCH, PENDING, far, filled};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};

fn schedule(c: &mut Criterion) {
    let mut group = c.benchmark_group("schedule");
    for pending in PENDING {
        let executor = filled(pending);
        group.bench_with_input(BenchmarkId::from_parameter(pending), &pending, |b, _| {
            b.iter_custom(|iterations| {
                common::in_batches(iterations, |count| {
                    let mut futures = Vec::with_capacity(BATCH);
                    let start = Instant::now();
                    for n in 0..count {
                        futures.push(executor.schedule(far(n), move || n).expect("it is open"));
                    }
                    let time = start.elapsed();
                    futures.iter().for_each(|future| assert!(future.cancel()));
                    time
                })
            });
        });
    }
    group.finish();
}

criterion_group!(benches, schedule);
criterion_main!(benches);
