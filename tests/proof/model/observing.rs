//! The watch over the pool: whatever a look for starvation races with, a pool that starves is reported.

use std::time::Duration;

use punctual::{ManualClock, ScheduledThreadPoolExecutor};
use shuttle::thread;

use crate::support::{Count, Door, check, executor_with};

const STEP: Duration = Duration::from_nanos(10);

/// An executor that counts its reports.
fn watched(workers: usize) -> (ManualClock, ScheduledThreadPoolExecutor, Count) {
    let reports = Count::default();
    let told = reports.clone();
    let (clock, executor) = executor_with(|builder| {
        builder.core_pool_size(workers).on_starvation(STEP, move |_| _ = told.add())
    });
    (clock, executor, reports)
}

/// Moves the clock until there is a report. If no look is armed, this goes on for ever, which is a failure.
fn until_reported(clock: &ManualClock, reports: &Count) {
    while reports.get() == 0 {
        clock.advance(STEP);
        thread::yield_now();
    }
}

/// G65, M186: a worker that was idle takes a task while a look finds it idle, and keeps it: from then on all are
/// busy, and a look is armed.
#[test]
fn a_worker_takes_a_task_while_a_look_ends() {
    check(|| {
        let (clock, executor, reports) = watched(1);
        executor.submit(|| ()).expect("it is open").join().expect("it has run");
        let moved = clock.clone();
        let mover = thread::spawn(move || moved.advance(STEP));
        let door = Door::default();
        let opened = door.clone();
        executor.execute(move || opened.pass()).expect("it is open");
        executor.execute(|| ()).expect("it is open");
        mover.join().expect("nobody panics");
        until_reported(&clock, &reports);
        door.open();
        executor.close().expect("not on a worker");
    });
}

/// G65, M186: an idle worker retires while a look finds it idle: the one that is left is busy, and a look is armed.
#[test]
fn a_worker_retires_while_a_look_ends() {
    check(|| {
        let (clock, executor, reports) = watched(2);
        let (door, opened) = (Door::default(), Door::default());
        let (close, begun) = (door.clone(), opened.clone());
        executor
            .execute(move || {
                begun.open();
                close.pass();
            })
            .expect("it is open");
        opened.pass();
        executor.submit(|| ()).expect("it is open").join().expect("it has run");
        let moved = clock.clone();
        let mover = thread::spawn(move || moved.advance(STEP));
        executor.set_core_pool_size(1);
        mover.join().expect("nobody panics");
        while executor.pool_size() > 1 {
            // Its keep-alive, counted from when it became idle.
            clock.advance(Duration::from_millis(10));
            thread::yield_now();
        }
        executor.execute(|| ()).expect("it is open");
        until_reported(&clock, &reports);
        door.open();
        executor.close().expect("not on a worker");
    });
}

/// G66: a run ends while its time is over: it is named once, by the watcher or by the worker.
#[test]
fn a_run_ends_while_its_time_is_over() {
    check(|| {
        let named = Count::default();
        let told = named.clone();
        let (clock, executor) =
            executor_with(|builder| builder.core_pool_size(1).on_slow_run(move |_| _ = told.add()));
        let moved = clock.clone();
        let task = executor.task().warn_after(STEP);
        task.execute(move || moved.advance(STEP)).expect("it is open");
        executor.close().expect("not on a worker");
        // The end of the executor does not wait for the watcher.
        while named.get() == 0 {
            thread::yield_now();
        }
        (0..8).for_each(|_| thread::yield_now());
        assert_eq!(named.get(), 1);
    });
}
