//! Properties that cannot be seen from outside: how many threads wake for a task, counted by the manual clock, which
//! sees every wake-up; where in the queue a periodic task is; and the full queue, whose capacity is small in the
//! crate's own tests.

use std::{
    sync::{
        Arc, Barrier,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use crate::{
    ManualClock, RejectionReason, ScheduledThreadPoolExecutor,
    patience::{eventually, receive},
};

const PERIOD: Duration = Duration::from_millis(10);

fn executor(workers: usize) -> (ManualClock, ScheduledThreadPoolExecutor) {
    let clock = ManualClock::new();
    let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(workers);
    let executor = builder.clock(clock.clone()).build().expect("the settings are good");
    (clock, executor)
}

/// ST-001: one fixed-rate task keeps one or two of a hundred workers awake, not all: a thousand runs cause at most two
/// wake-ups each.
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

/// G9: several threads wait on an auto-advancing clock, some for less time than their task takes. Each times out at its
/// own limit or gets its result, because the clock does not advance to the next deadline before a thread that it has
/// woken has returned from its wait.
#[test]
fn each_waiter_gets_its_own_answer() {
    const THREADS: u64 = 8;
    for _ in 0..20 {
        let (clock, executor) = executor(2);
        let (tell, told) = mpsc::channel();
        for number in 0..THREADS {
            let due = Duration::from_millis(10 * number + 5);
            let future = executor.schedule(due, || ()).expect("it is open");
            let is_patient = number % 2 == 0;
            let slack = Duration::from_nanos(1);
            let limit = if is_patient { due + slack } else { due - slack };
            let tell = tell.clone();
            #[allow(clippy::disallowed_methods, reason = "a test")]
            std::thread::spawn(move || {
                let has_ended = future.join_within(limit).is_some();
                tell.send((number, has_ended, is_patient)).expect("the test waits");
            });
        }
        eventually("all wait", || clock.sleepers().len() >= THREADS as usize + 2);
        clock.set_auto_advance(true);
        for _ in 0..THREADS {
            let (number, has_ended, is_patient) = receive(&told, "each wait ends");
            assert_eq!(has_ended, is_patient, "{number}");
        }
        clock.set_auto_advance(false);
    }
}

/// CN-041: with no core threads and a task that is due in an hour there is one worker, and it sleeps: it does not wake
/// while a thousand keep-alives pass.
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
    // No task is pending, so the worker retires after this keep-alive.
    clock.run_until_idle();
    clock.advance(executor.keep_alive());
    clock.run_until_idle();
    assert_eq!(executor.pool_size(), 0);
}

/// For two periodic tasks, two of four core threads that may time out stay: the leader and the deputy. They are the
/// same two throughout; each run wakes one of them, and between the runs no thread wakes.
#[test]
fn two_periodic_tasks_keep_two_workers_and_wake_one_per_run() {
    let clock = ManualClock::new();
    let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(4).clock(clock.clone());
    let executor = builder.allows_core_thread_timeout(true).build().expect("the settings are good");
    executor.prestart_all_core_threads().expect("there are threads");
    let periods = [10 * PERIOD, 15 * PERIOD];
    let beats = periods
        .map(|period| executor.schedule_at_fixed_rate(period, period, || ()).expect("it is open"));
    clock.run_until_idle();
    for _ in 0..5 {
        clock.advance(executor.keep_alive());
        clock.run_until_idle();
    }
    let parks = clock.parks();
    for _ in 0..1_000 {
        clock.advance(PERIOD);
        clock.run_until_idle();
    }
    let now = executor.statistics();
    assert_eq!((now.pool_size, now.largest_pool_size), (2, 4));
    assert_eq!(now.runs, 100 + 67);
    let wake_ups = clock.parks() - parks;
    assert!(wake_ups <= 2 * now.runs as usize, "{wake_ups} wake-ups for {} runs", now.runs);
    drop(beats);
}

/// When the last task is cancelled, the worker that stayed for it retires: at once if it has been idle for the
/// keep-alive, not when the task would have been due.
#[test]
fn a_cancelled_task_does_not_keep_the_last_worker() {
    let clock = ManualClock::new();
    let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(2).clock(clock.clone());
    let executor = builder.allows_core_thread_timeout(true).build().expect("the settings are good");
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

/// Schedules tasks until the queue is full and returns how many are pending.
fn fill(executor: &ScheduledThreadPoolExecutor) -> usize {
    let hour = Duration::from_secs(3_600);
    let ran = Arc::new(AtomicUsize::new(0));
    let schedule = |n| {
        let ran = Arc::clone(&ran);
        executor.schedule(hour, move || ran.store(n, Ordering::Relaxed)).err()
    };
    let (refused, n) = (0..).find_map(|n| Some((schedule(n)?, n))).expect("it has an end");
    assert!(matches!(refused.reason(), RejectionReason::Full), "{refused}");
    refused.into_task().run();
    assert_eq!(ran.load(Ordering::Relaxed), n);
    executor.pending_count()
}

/// F21: a full queue returns the closure and is unchanged; it has room again once a task has left.
#[test]
fn a_full_queue_returns_the_closure() {
    let (clock, executor) = executor(1);
    let full = fill(&executor);
    let first = executor.pending_tasks().remove(0);
    assert!(first.cancel());
    assert_eq!(fill(&executor), full);
    let now = executor.statistics();
    assert_eq!((now.pending, now.submitted), (full, full as u64 + 1));
    assert_eq!((now.cancelled, now.rejected), (1, 2));
    clock.advance(Duration::from_secs(3_600));
    executor.close().expect("not on a worker");
}

/// M49: while a periodic task runs, another task takes its former slot in the queue.
#[test]
fn a_periodic_task_is_found_in_its_new_slot() {
    let (clock, executor) = executor(1);
    let (meeting, there) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let [begun, may_end] = [Arc::clone(&meeting), Arc::clone(&there)];
    let body = move || {
        begun.wait();
        may_end.wait();
    };
    let beat = executor.schedule_at_fixed_rate(PERIOD, PERIOD, body).expect("it is open");
    clock.run_until_idle();
    clock.advance(PERIOD);
    meeting.wait();
    // The same thread submitted the periodic task, so both are in one stripe.
    drop(executor.schedule(Duration::MAX, || ()).expect("it is open"));
    there.wait();
    clock.run_until_idle();
    assert_eq!((beat.delay(), executor.pending_count()), (Some(PERIOD), 2));
    let runs = executor.pending_tasks().into_iter().map(|task| task.run_count).max();
    assert_eq!(runs, Some(1));
    assert!(beat.cancel());
    assert_eq!(executor.pending_count(), 1);
}
