//! What one `cancel` costs, with so many tasks pending: `cargo bench --bench cancel`. Also
//! `schedule` and `cancel` together, the life of a timeout that is not needed.

#![allow(clippy::disallowed_methods, clippy::expect_used, reason = "it measures")]

mod common;

use std::time::Instant;

use common::{PENDING, cancel_all, far, filled, for_each_size, schedule_far};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};

fn cancel(c: &mut Criterion) {
    for_each_size(c, "cancel", |executor, count, futures| {
        schedule_far(executor, count, futures);
        let start = Instant::now();
        cancel_all(futures);
        start.elapsed()
    });
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
