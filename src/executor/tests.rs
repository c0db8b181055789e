//! How many threads wake for a task: counted by the manual clock, on which nobody wakes unseen.

use std::time::Duration;

use crate::{ManualClock, ScheduledThreadPoolExecutor};

const PERIOD: Duration = Duration::from_millis(10);

fn executor(workers: usize) -> (ManualClock, ScheduledThreadPoolExecutor) {
    let clock = ManualClock::new();
    let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(workers);
    let executor = builder.clock(clock.clone()).build().expect("the settings are good");
    (clock, executor)
}

/// ST-001: of a hundred workers one task of a fixed rate keeps one or two awake, not all: a
/// thousand runs, and at most two wake-ups for each.
#[test]
fn one_periodic_task_does_not_wake_a_hundred_workers() {
    const RUNS: usize = 1_000;
    let (clock, executor) = executor(100);
    assert_eq!(executor.prestart_all_core_threads().expect("there are threads"), 100);
    clock.run_until_idle();
    let beat = executor.schedule_at_fixed_rate(PERIOD, PERIOD, || ()).expect("it is open");
    clock.run_until_idle();
    let parks = clock.parks();
    for _ in 0..RUNS {
        clock.advance(PERIOD);
        clock.run_until_idle();
    }
    assert_eq!(executor.statistics().runs, RUNS as u64);
    let wake_ups = clock.parks() - parks;
    assert!(wake_ups <= 2 * RUNS, "{wake_ups} wake-ups for {RUNS} runs");
    beat.cancel();
}

/// CN-041: with no core threads and a task an hour away there is one worker, and it sleeps: a
/// thousand keep-alives go by and it does not wake.
#[test]
fn the_last_worker_sleeps_until_the_task_is_due() {
    let clock = ManualClock::new();
    let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(0).clock(clock.clone());
    let executor = builder.build().expect("the settings are good");
    let hour = Duration::from_secs(3_600);
    let task = executor.schedule(hour, || "ran").expect("it is open");
    clock.run_until_idle();
    let parks = clock.parks();
    for _ in 0..1_000 {
        clock.advance(executor.keep_alive());
        clock.run_until_idle();
    }
    assert_eq!(clock.parks(), parks);
    let now = executor.statistics();
    assert_eq!((now.pool_size, now.largest_pool_size, now.pending), (1, 1, 1));
    assert_eq!((executor.task_count(), executor.completed_task_count()), (1, 0));
    clock.advance(hour);
    assert_eq!(task.join().expect("it runs"), "ran");
    // Nothing waits any more, so the keep-alive is its last.
    clock.run_until_idle();
    clock.advance(executor.keep_alive());
    clock.run_until_idle();
    assert_eq!(executor.pool_size(), 0);
}

/// When the last task is cancelled, the worker that stayed for it goes: at once, if it has been
/// idle for the keep-alive, and not when the task would have been due.
#[test]
fn a_cancelled_task_does_not_keep_the_last_worker() {
    let clock = ManualClock::new();
    let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(2).clock(clock.clone());
    let executor = builder.allow_core_thread_timeout(true).build().expect("the settings are good");
    let task = executor.schedule(Duration::MAX, || ()).expect("it is open");
    clock.run_until_idle();
    clock.advance(10 * executor.keep_alive());
    clock.run_until_idle();
    assert_eq!(executor.pool_size(), 1);
    assert!(task.cancel());
    clock.run_until_idle();
    assert_eq!(executor.pool_size(), 0);
    let again = executor.schedule(Duration::MAX, || ()).expect("it is open");
    clock.run_until_idle();
    assert!(again.cancel());
    clock.run_until_idle();
    assert_eq!((executor.pool_size(), clock.next_deadline()), (1, Some(executor.keep_alive())));
}
