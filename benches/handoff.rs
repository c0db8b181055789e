//! A task and its result, there and back: `submit` and `join`, one after the other, while the
//! workers sleep in between: `cargo bench --bench handoff`.

#![allow(clippy::disallowed_methods, clippy::expect_used, reason = "it measures")]

mod common;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use punctual::ScheduledThreadPoolExecutor;

fn handoff(c: &mut Criterion) {
    let mut group = c.benchmark_group("handoff");
    for workers in [1, 2] {
        let executor = ScheduledThreadPoolExecutor::new(workers);
        group.bench_with_input(BenchmarkId::new("workers", workers), &workers, |b, _| {
            b.iter(|| executor.submit(|| 7).expect("it is open").join());
        });
    }
    group.finish();
}

criterion_group!(benches, handoff);
criterion_main!(benches);
