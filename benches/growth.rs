//! The cost of growth: `cargo bench --bench growth`. Schedules ten million tasks that capture eight
//! bytes each, and prints the slowest calls, the memory that a pending task takes, and the memory
//! that is left after all have been cancelled.
//!
//! A call is slow because of the library (an array that grows, under the queue's lock) or because
//! of the machine (the thread lost its core, the kernel had to find memory). To tell these apart,
//! the benchmark prints the same figures for a loop that only reads the clock, and for one that
//! allocates as much and no more.

#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::print_stdout)]

mod common;

use std::{fs, hint::black_box, time::Instant};

use punctual::ScheduledThreadPoolExecutor;

const TASKS: u64 = 10_000_000;

fn main() {
    let tasks = common::sized(TASKS);
    report("clock alone", tasks, |n| _ = black_box(common::far(n)));

    let mut boxes: Vec<Option<Box<[u64; 12]>>> = Vec::new();
    boxes.resize_with(tasks as usize, || None);
    report("allocation alone", tasks, |n| boxes[n as usize] = Some(Box::new([n; 12])));
    drop(boxes);

    let executor = ScheduledThreadPoolExecutor::new(1);
    let mut futures = Vec::with_capacity(tasks as usize);
    // This memory is touched beforehand, so that the caller's own list costs nothing below.
    futures.resize_with(tasks as usize, || None);
    let before = resident();
    report("schedule", tasks, |n| {
        let future = executor.schedule(common::far(n), move || _ = black_box(n));
        futures[n as usize] = Some(future.expect("it is open"));
    });
    let pending = resident();
    let per_task = pending.saturating_sub(before) as f64 / tasks as f64;
    println!("memory: {per_task:.1} bytes for each pending task, everything included");

    report("cancel", tasks, |n| _ = futures[n as usize].take().map(|future| future.cancel()));
    let left = resident().saturating_sub(before) as f64 / 1e6;
    println!("memory: {left:.1} MB left after all were cancelled (the allocator keeps some)");
}

/// Calls `step` for each number and prints the mean and the slowest.
fn report(what: &str, count: u64, mut step: impl FnMut(u64)) {
    let mut slowest = [0; 5];
    let start = Instant::now();
    let mut last = start;
    for n in 0..count {
        step(n);
        let now = Instant::now();
        let nanos = now.duration_since(last).as_nanos();
        if nanos > slowest[0] {
            slowest[0] = nanos;
            slowest.sort_unstable();
        }
        last = now;
    }
    let mean = start.elapsed().as_nanos() as f64 / count as f64;
    let slowest: Vec<_> =
        slowest.iter().rev().map(|ns| format!("{:.0}", *ns as f64 / 1e3)).collect();
    println!("{what}: {count} calls, {mean:.0} ns each, slowest {} us", slowest.join(", "));
}

/// The resident memory of the process in bytes; zero where the system does not report it.
fn resident() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split_whitespace().nth(1).and_then(|pages| pages.parse().ok());
    pages.unwrap_or(0_u64) * 4096
}
