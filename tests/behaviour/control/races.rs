//! Requests race with runs, with each other and with the end, on the system clock.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use punctual::{ScheduledThreadPoolExecutor as Executor, TaskHandle, trigger::every};

use crate::support::{Counter, HOUR, eventually, ms};

fn us(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

/// Whatever is asked of a series by four threads, it goes on to run, and no two runs are at once.
#[test]
fn a_series_survives_all_requests() {
    let executor = Executor::new(2);
    let runs = Counter::new();
    let (noted, is_running) = (runs.clone(), AtomicBool::new(false));
    let series = executor.repeat(every(us(50)), move || {
        assert!(!is_running.swap(true, Ordering::SeqCst), "two runs at once");
        thread::yield_now();
        is_running.store(false, Ordering::SeqCst);
        noted.add();
    });
    let series = series.expect("accepted");
    let request = |number: u64, handle: &TaskHandle| match number % 7 {
        0 => handle.reschedule(us(number % 90)),
        1 => handle.run_within(us(number % 30)),
        2 => handle.run_now(),
        3 => handle.pause(),
        4 => handle.resume(),
        5 => handle.set_trigger(every(us(20 + number % 50))),
        _ => handle.delay().is_some(),
    };
    thread::scope(|scope| {
        for seed in 0..4_u64 {
            let handle = series.task_handle();
            scope.spawn(move || {
                for step in 0..300 {
                    request(seed + step * 5, &handle);
                }
            });
        }
    });
    series.resume();
    let before = runs.get();
    assert!(series.reschedule(Duration::ZERO), "it is alive");
    runs.wait_for(before + 3);
    assert!(series.cancel_and_wait().expect("outside of the pool"));
    let after = runs.get();
    assert!(!series.run_now());
    assert_eq!((runs.get(), executor.pending_count()), (after, 0));
}

/// A one-shot task runs once, or is cancelled; a request that had an effect is not lost.
#[test]
fn a_one_shot_task_runs_once_whatever_is_asked() {
    let executor = Executor::new(2);
    for round in 0..300_u64 {
        let runs = Arc::new(AtomicU64::new(0));
        let noted = Arc::clone(&runs);
        let task = executor.schedule(us(round % 60), move || noted.fetch_add(1, Ordering::SeqCst));
        let task = task.expect("accepted");
        let handles = [task.task_handle(), task.task_handle()];
        thread::scope(|scope| {
            for handle in &handles {
                scope.spawn(move || {
                    handle.reschedule(us(round % 40));
                    if handle.pause() {
                        handle.reschedule(us(5));
                    }
                    handle.resume();
                    handle.run_within(us(10));
                });
            }
        });
        handles[0].resume();
        assert!(task.join().is_ok());
        assert_eq!(runs.load(Ordering::SeqCst), 1);
    }
    assert_eq!(executor.pending_count(), 0);
}

/// A task that was put off does not run before: never early, also for what is asked.
#[test]
fn what_was_put_off_is_not_early() {
    let executor = Executor::new(2);
    for round in 0..200_u64 {
        let task = executor.schedule(us(round % 50), std::time::Instant::now);
        let task = task.expect("accepted");
        let begin = std::time::Instant::now();
        if task.reschedule(us(200)) {
            let ran = task.join().expect("it runs");
            assert!(ran >= begin + us(200), "{:?}", ran - begin);
        }
    }
}

/// The limit is that of the last request, whichever thread was faster.
#[test]
fn a_time_limit_follows_all_requests() {
    let executor = Executor::new(1);
    for _ in 0..100 {
        let task = executor.task().timeout(ms(1)).schedule(3 * HOUR, || ());
        let task = task.expect("accepted");
        let handles = [task.task_handle(), task.task_handle()];
        thread::scope(|scope| {
            scope.spawn(|| handles[0].reschedule(2 * HOUR));
            scope.spawn(|| handles[1].reschedule(HOUR));
        });
        // A paused task does not run, so only the limit can end it.
        assert!(task.pause());
        assert!(task.reschedule(Duration::ZERO));
        assert!(task.join().expect_err("it is paused").is_timeout());
    }
    eventually("the last entry has gone", || executor.pending_count() == 0);
}
