//! What it costs to run a task, from its submission to its end: `cargo bench --bench fire`. Tiny
//! tasks without delay, as fast as one thread can submit them; per task.

#![allow(clippy::disallowed_methods, clippy::expect_used, reason = "it measures")]

mod common;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use punctual::ScheduledThreadPoolExecutor;

fn fire(c: &mut Criterion) {
    let mut group = c.benchmark_group("fire");
    for workers in [1, 2] {
        let executor = ScheduledThreadPoolExecutor::new(workers);
        let ran = Arc::new(AtomicU64::new(0));
        group.bench_with_input(BenchmarkId::new("workers", workers), &workers, |b, _| {
            b.iter_custom(|iterations| {
                let before = ran.load(Ordering::Acquire);
                let start = Instant::now();
                for _ in 0..iterations {
                    let ran = Arc::clone(&ran);
                    let count = move || _ = ran.fetch_add(1, Ordering::Release);
                    executor.execute(count).expect("it is open");
                }
                while ran.load(Ordering::Acquire) < before + iterations {
                    std::thread::yield_now();
                }
                start.elapsed()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, fire);
criterion_main!(benches);
