//! The cost of the delay queue: `cargo bench --bench delay_queue`.
//!
//! * `delay_queue/fifo/N`: `N` elements are inserted with growing delays, all expire, and all are
//!   taken, one by one; the time of both over `N`.
//! * `delay_queue/drain/N`: the same, drained.
//! * `delay_queue/random/N`: `N` elements wait; one is inserted somewhere among them and removed
//!   by its key.
//! * `delay_queue/reset/N`: `N` elements wait; one of them is given a later deadline.

#![allow(clippy::disallowed_methods, clippy::expect_used, reason = "it measures")]

mod common;

use std::{
    hint::black_box,
    thread,
    time::{Duration, Instant},
};

use common::{far, scattered, sized};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use punctual::{DelayQueue, delay_queue::Key};

const SIZES: [u64; 2] = [1_000, 1_000_000];

/// Returns the time to fill the queue with growing delays and to empty it when all have expired.
fn fill_and_empty(queue: &DelayQueue<u64>, count: u64, empty: impl Fn()) -> Duration {
    let start = Instant::now();
    for n in 0..count {
        queue.insert(Duration::from_nanos(n), n).expect("it is open");
    }
    let filled = start.elapsed();
    let last = start + filled + Duration::from_nanos(count);
    thread::sleep(last.saturating_duration_since(Instant::now()));
    let start = Instant::now();
    empty();
    filled + start.elapsed()
}

fn fifo(c: &mut Criterion) {
    let mut group = c.benchmark_group("delay_queue");
    for size in SIZES {
        let count = sized(size);
        group.throughput(Throughput::Elements(count));
        let queue = DelayQueue::new();
        let take = || (0..count).for_each(|_| _ = black_box(queue.take()));
        let drain = || _ = black_box(queue.drain().count());
        group.bench_function(BenchmarkId::new("fifo", size), |b| {
            b.iter_custom(|times| (0..times).map(|_| fill_and_empty(&queue, count, take)).sum());
        });
        group.bench_function(BenchmarkId::new("drain", size), |b| {
            b.iter_custom(|times| (0..times).map(|_| fill_and_empty(&queue, count, drain)).sum());
        });
    }
}

fn waiting(count: u64) -> (DelayQueue<u64>, Vec<Key>) {
    let queue = DelayQueue::new();
    let keys = queue.insert_all((0..count).map(|n| (far(n), n))).expect("it is open");
    (queue, keys)
}

fn by_key(c: &mut Criterion) {
    let mut group = c.benchmark_group("delay_queue");
    for size in SIZES {
        let count = sized(size);
        let (queue, keys) = waiting(count);
        let mut n = 0;
        group.bench_function(BenchmarkId::new("random", size), |b| {
            b.iter(|| {
                n += 1;
                let key = queue.insert(far(n), n).expect("it is open");
                black_box(queue.remove(key))
            });
        });
        group.bench_function(BenchmarkId::new("reset", size), |b| {
            b.iter(|| {
                n += 1;
                black_box(queue.reset(keys[(scattered(n) % count) as usize], far(n)))
            });
        });
    }
}

criterion_group!(benches, fifo, by_key);
criterion_main!(benches);
