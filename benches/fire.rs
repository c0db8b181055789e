//! The cost of running a task, from its submission to its end: `cargo bench --bench fire`. One
//! thread submits tiny tasks, to one worker and to two.
//!
//! * `fire`: without delay, as fast as the thread can submit them; per task.
//! * `fire_at_once`: all due at the same instant, a little ahead; from that instant to the last
//!   run, per task.
//! * `fire_spread`: 100,000 of them, spread over 100 ms; from the first call to the last run, so
//!   that 100 ms means that the workers keep up.

#![allow(clippy::disallowed_methods, clippy::expect_used, reason = "it measures")]

mod common;

use std::time::{Duration, Instant};

use common::{Countdown, for_each_pool, group_of_means, scattered, sized};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use punctual::ScheduledThreadPoolExecutor;

/// The number of tasks that are spread.
const SPREAD: u64 = 100_000;

/// The time over which they are spread.
const SPAN: Duration = Duration::from_millis(100);

fn fire(c: &mut Criterion) {
    for_each_pool(c.benchmark_group("fire"), |b, executor| {
        b.iter_custom(|iterations| {
            let countdown = Countdown::leaked(iterations);
            let start = Instant::now();
            for _ in 0..iterations {
                executor.execute(|| countdown.hit()).expect("it is open");
            }
            countdown.wait() - start
        });
    });
}

fn fire_at_once(c: &mut Criterion) {
    for_each_pool(c.benchmark_group("fire_at_once"), |b, executor| {
        b.iter_custom(|iterations| {
            let countdown = Countdown::leaked(iterations);
            // This is far enough ahead for all to be submitted by then.
            let ahead = Duration::from_millis(2) + Duration::from_micros(iterations);
            let deadline = Instant::now() + ahead;
            for _ in 0..iterations {
                drop(executor.schedule_at(deadline, || countdown.hit()).expect("it is open"));
            }
            countdown.wait() - deadline
        });
    });
}

fn fire_spread(c: &mut Criterion) {
    let tasks = sized(SPREAD);
    let mut group = group_of_means(c, "fire_spread");
    group.sample_size(10).throughput(Throughput::Elements(tasks));
    for_each_pool(group, |b, executor| {
        b.iter_custom(|iterations| (0..iterations).map(|_| spread(executor, tasks)).sum());
    });
}

/// Returns the time in which `count` tasks run that are spread over the span.
fn spread(executor: &ScheduledThreadPoolExecutor, tasks: u64) -> Duration {
    let countdown = Countdown::leaked(tasks);
    let start = Instant::now();
    for n in 0..tasks {
        let deadline = start + Duration::from_nanos(scattered(n) % SPAN.as_nanos() as u64);
        drop(executor.schedule_at(deadline, || countdown.hit()).expect("it is open"));
    }
    countdown.wait() - start
}

criterion_group!(benches, fire, fire_at_once, fire_spread);
criterion_main!(benches);
