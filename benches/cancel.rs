//! The cost of one `cancel` with `P` pending tasks: `cargo bench --bench cancel`.
//!
//! * `cancel/P`: with `P` tasks pending, one or two hours ahead; per call.
//! * `schedule_and_cancel/P`, `schedule_and_cancel_by_2_threads/P`, `…_by_4_threads/P`: both calls,
//!   the life of a timeout that is not needed; the time of all threads together over the tasks of
//!   all, so that two threads that do not disturb each other halve it. Each thread has scheduled
//!   its share of the pending tasks.

#![allow(clippy::disallowed_methods, clippy::expect_used, reason = "it measures")]

mod common;

use std::time::Instant;

use common::{cancel_all, far, for_each_size, in_batches, schedule_far, share_out};
use criterion::{Criterion, criterion_group, criterion_main};

fn cancel(c: &mut Criterion) {
    for_each_size(c.benchmark_group("cancel"), 1, |executor, count| {
        in_batches(count, |count| {
            let futures = schedule_far(executor, count);
            let start = Instant::now();
            cancel_all(&futures);
            start.elapsed()
        })
    });
}

fn schedule_and_cancel(c: &mut Criterion) {
    let names = [
        ("schedule_and_cancel", 1),
        ("schedule_and_cancel_by_2_threads", 2),
        ("schedule_and_cancel_by_4_threads", 4),
    ];
    for (name, threads) in names {
        for_each_size(c.benchmark_group(name), threads, |executor, count| {
            let executor = executor.clone();
            let work = move |share| {
                for n in 0..share {
                    let timeout = executor.schedule(far(n), move || n).expect("it is open");
                    assert!(timeout.cancel());
                }
            };
            share_out(threads, count, work).0
        });
    }
}

criterion_group!(benches, cancel, schedule_and_cancel);
criterion_main!(benches);
