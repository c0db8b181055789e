//! The lateness of tasks: `cargo bench --bench lateness`. The time that criterion reports per
//! iteration is the mean lateness: from the requested time to the first line of the task.
//!
//! * `lateness/isolated`: single tasks, one every 5 ms, somewhere in them.
//! * `lateness/dense`: 10,000 of them a second.
//! * `lateness/fixed_rate`: a hundred periodic tasks with a period of 10 ms, each run against the
//!   plan that was made before the first.
//!
//! There are two workers. No sample is left out: one run that loses its core for long moves the
//! mean.

#![allow(clippy::disallowed_methods, clippy::expect_used, reason = "it measures")]

mod common;

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use common::{Countdown, group_of_means, scattered};
use criterion::{Criterion, criterion_group, criterion_main};
use punctual::{ScheduledFuture, ScheduledThreadPoolExecutor};

/// The number of periodic tasks.
const BEATS: u64 = 100;

/// The number of runs of each.
const PERIOD: Duration = Duration::from_millis(10);

/// The total lateness of the runs.
struct Lateness {
    nanos: AtomicU64,
    runs: &'static Countdown,
}

impl Lateness {
    /// Creates the total for `runs` runs. It is leaked, like its countdown.
    fn leaked(runs: u64) -> &'static Self {
        Box::leak(Box::new(Self { nanos: AtomicU64::new(0), runs: Countdown::leaked(runs) }))
    }

    /// Records the beginning of a run that should have begun at `due`.
    fn hit(&self, due: Instant) {
        let late = Instant::now().saturating_duration_since(due);
        // Ordering: the countdown orders this.
        self.nanos.fetch_add(late.as_nanos() as u64, Ordering::Relaxed);
        self.runs.hit();
    }

    /// Blocks until the last run.
    fn wait(&self) -> Duration {
        self.runs.wait();
        Duration::from_nanos(self.nanos.load(Ordering::Relaxed))
    }
}

/// A random time in the `n`th of the intervals of this length that begin at `base`.
fn somewhere(base: Instant, n: u64, length: Duration) -> Instant {
    let length = length.as_nanos() as u64;
    base + Duration::from_nanos(n * length + scattered(n) % length)
}

/// The lateness of `count` tasks, one at a random time in each gap.
fn single(executor: &ScheduledThreadPoolExecutor, count: u64, gap: Duration) -> Duration {
    let lateness = Lateness::leaked(count);
    // This is far enough ahead for all to be submitted by then.
    let base = Instant::now() + Duration::from_millis(2) + Duration::from_micros(count);
    for n in 0..count {
        let due = somewhere(base, n, gap);
        drop(executor.schedule_at(due, move || lateness.hit(due)).expect("it is open"));
    }
    lateness.wait()
}

/// The lateness of that many runs of all periodic tasks together.
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

/// A periodic task, of whose runs the first `runs` are counted.
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
