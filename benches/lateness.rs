//! How late tasks start: `cargo bench --bench lateness`. What criterion calls the time of an
//! iteration is the mean lateness: from the moment that was asked for to the first line of the
//! task.
//!
//! * `lateness/isolated`: single tasks, one every 5 ms, somewhere in them.
//! * `lateness/dense`: 10,000 of them a second.
//! * `lateness/fixed_rate`: a hundred periodic tasks with a period of 10 ms, each run against the
//!   plan that was made before the first.
//!
//! Two workers. No sample is left out: one run that loses its core for long moves the mean.

#![allow(clippy::disallowed_methods, clippy::expect_used, reason = "it measures")]

mod common;

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use common::{Countdown, group_of_means, scattered};
use criterion::{Criterion, criterion_group, criterion_main};
use punctual::{ScheduledFuture, ScheduledThreadPoolExecutor};

/// So many periodic tasks.
const BEATS: u64 = 100;

/// How often each of them runs.
const PERIOD: Duration = Duration::from_millis(10);

/// How late runs were, all together.
struct Lateness {
    nanos: AtomicU64,
    runs: &'static Countdown,
}

impl Lateness {
    /// Of so many runs. It is leaked, as what it counts with.
    fn leaked(runs: u64) -> &'static Self {
        Box::leak(Box::new(Self { nanos: AtomicU64::new(0), runs: Countdown::leaked(runs) }))
    }

    /// A run begins that should have begun at `due`.
    fn hit(&self, due: Instant) {
        let late = Instant::now().saturating_duration_since(due);
        // Ordering: the countdown's.
        self.nanos.fetch_add(late.as_nanos() as u64, Ordering::Relaxed);
        self.runs.hit();
    }

    /// Blocks until the last run.
    fn wait(&self) -> Duration {
        self.runs.wait();
        Duration::from_nanos(self.nanos.load(Ordering::Relaxed))
    }
}

/// A moment somewhere in the `n`th of the stretches of this length that begin at `base`.
fn somewhere(base: Instant, n: u64, length: Duration) -> Instant {
    let length = length.as_nanos() as u64;
    base + Duration::from_nanos(n * length + scattered(n) % length)
}

/// The lateness of so many tasks, one somewhere in each gap.
fn single(executor: &ScheduledThreadPoolExecutor, count: u64, gap: Duration) -> Duration {
    let lateness = Lateness::leaked(count);
    // Far enough ahead to have submitted them all by then.
    let base = Instant::now() + Duration::from_millis(2) + Duration::from_micros(count);
    for n in 0..count {
        let due = somewhere(base, n, gap);
        drop(executor.schedule_at(due, move || lateness.hit(due)).expect("it is open"));
    }
    lateness.wait()
}

/// The lateness of so many runs of all beats together.
fn fixed_rate(executor: &ScheduledThreadPoolExecutor, count: u64) -> Duration {
    let lateness = Lateness::leaked(count);
    let base = Instant::now() + Duration::from_millis(2);
    let beats: Vec<_> = (0..BEATS)
        .map(|n| {
            let share = count / BEATS + u64::from(n < count % BEATS);
            beat(executor, base + Duration::from_nanos(scattered(n) % 10_000_000), share, lateness)
        })
        .collect();
    let late = lateness.wait();
    beats.iter().for_each(|beat| assert!(beat.cancel()));
    late
}

/// A periodic task whose first runs, so many, are counted.
fn beat(
    executor: &ScheduledThreadPoolExecutor,
    first: Instant,
    mut left: u64,
    lateness: &'static Lateness,
) -> ScheduledFuture<()> {
    let mut due = first;
    let run = move || {
        if left > 0 {
            lateness.hit(due);
            due += PERIOD;
            left -= 1;
        }
    };
    let delay = first.saturating_duration_since(Instant::now());
    executor.schedule_at_fixed_rate(delay, PERIOD, run).expect("it is open")
}

fn lateness(c: &mut Criterion) {
    let executor = ScheduledThreadPoolExecutor::new(2);
    let mut group = group_of_means(c, "lateness");
    group.bench_function("isolated", |b| {
        b.iter_custom(|count| single(&executor, count, Duration::from_millis(5)));
    });
    group.bench_function("dense", |b| {
        b.iter_custom(|count| single(&executor, count, Duration::from_micros(100)));
    });
    group.bench_function("fixed_rate", |b| b.iter_custom(|count| fixed_rate(&executor, count)));
}

criterion_group!(benches, lateness);
criterion_main!(benches);
