//! A round trip of a task and its result, `submit` and `join`: `cargo bench --bench handoff`.
//!
//! * `handoff`: one after the other.
//! * `handoff_after_a_gap`: the same, each after a sleep of 300 µs, which is not counted; the
//!   workers are asleep by then.
//! * `handoff_in_windows`: 256 are submitted, then 256 joined; the time of a window.

#![allow(clippy::disallowed_methods, clippy::expect_used, reason = "it measures")]

mod common;

use std::{
    thread,
    time::{Duration, Instant},
};

use common::{for_each_pool, group_of_means};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use punctual::{ScheduledFuture, ScheduledThreadPoolExecutor};

/// How long the caller sleeps before each round trip.
const GAP: Duration = Duration::from_micros(300);

/// The number of tasks in a window.
const WINDOW: u64 = 256;

fn submit(executor: &ScheduledThreadPoolExecutor) -> ScheduledFuture<u64> {
    executor.submit(|| 7).expect("it is open")
}

fn handoff(c: &mut Criterion) {
    for_each_pool(c.benchmark_group("handoff"), |b, executor| b.iter(|| submit(executor).join()));
}

fn handoff_after_a_gap(c: &mut Criterion) {
    for_each_pool(group_of_means(c, "handoff_after_a_gap"), |b, executor| {
        b.iter_custom(|iterations| {
            let after_a_gap = |_| {
                thread::sleep(GAP);
                let start = Instant::now();
                submit(executor).join().expect("it ends");
                start.elapsed()
            };
            (0..iterations).map(after_a_gap).sum()
        });
    });
}

fn handoff_in_windows(c: &mut Criterion) {
    let mut group = c.benchmark_group("handoff_in_windows");
    group.throughput(Throughput::Elements(WINDOW));
    for_each_pool(group, |b, executor| {
        let mut futures = Vec::with_capacity(WINDOW as usize);
        b.iter(|| {
            futures.extend((0..WINDOW).map(|_| submit(executor)));
            futures.drain(..).map(|future| future.join().expect("it ends")).sum::<u64>()
        });
    });
}

criterion_group!(benches, handoff, handoff_after_a_gap, handoff_in_windows);
criterion_main!(benches);
