//! What one call to `schedule` costs, with so many tasks pending: `cargo bench --bench schedule`.

#![allow(clippy::disallowed_methods, clippy::expect_used, reason = "it measures")]

mod common;

use std::time::Instant;

use common::{cancel_all, for_each_size, schedule_far};
use criterion::{Criterion, criterion_group, criterion_main};

fn schedule(c: &mut Criterion) {
    for_each_size(c, "schedule", |executor, count, futures| {
        let start = Instant::now();
        schedule_far(executor, count, futures);
        let time = start.elapsed();
        cancel_all(futures);
        time
    });
}

criterion_group!(benches, schedule);
criterion_main!(benches);
