//! Refusals around a shutdown: by busy executors, by full ones, and during a race.

use std::{
    sync::{Arc, Mutex},
    thread,
};

use punctual::{
    CancelReason, Handle, RejectionReason, ScheduledThreadPoolExecutor as Executor, TaskError,
    current_task,
};

use crate::{
    rejection::policies::{AT_ONCE, HOUR, Why, why},
    support::{Counter, LONG, assert_shut_down, ms},
};

/// The two ways to shut down; drained tasks are dropped.
const SHUTDOWNS: [fn(&Handle); 2] = [Handle::shutdown, |executor| drop(executor.shutdown_now())];

/// RJ-001, RJ-002: while every worker is busy with a task that heeds no token, however it was
/// submitted and however the executor is shut down, each submission is refused, and after
/// termination as well; only the busy tasks have run.
#[test]
fn a_busy_executor_that_was_shut_down_refuses() {
    for workers in [1, 4] {
        for ((_, submit), shut_down) in
            AT_ONCE.into_iter().flat_map(|it| SHUTDOWNS.map(|s| (it, s)))
        {
            let executor = Executor::new(workers);
            let (busy, gate) = (Counter::new(), Counter::new());
            for _ in 0..workers {
                let (busy, gate) = (busy.clone(), gate.clone());
                let body = move || {
                    busy.add();
                    gate.wait_for(1);
                };
                assert!(submit(&executor, Box::new(body)).is_ok());
            }
            busy.wait_for(workers);
            shut_down(&executor);
            assert!(!executor.is_terminated());
            for _ in 0..2 {
                for (name, verb) in AT_ONCE {
                    let refused = verb(&executor, Box::new(|| ())).expect_err(name);
                    assert_eq!(why(&refused), Why::Shutdown, "{name}");
                }
                gate.add();
                assert!(executor.await_termination(LONG).unwrap());
            }
            assert_eq!(executor.completed_task_count(), workers as u64);
        }
    }
}

/// RJ-010: one worker and a bound of one are exhausted by two tasks; then every submission is
/// refused as saturated, and after either shutdown as shut down; and all admitted tasks ran, except
/// the one that `shutdown_now` took.
#[test]
fn a_full_executor_refuses_and_then_is_shut_down() {
    for (shut_down, ran) in SHUTDOWNS.into_iter().zip([2, 1]) {
        let executor = Executor::builder().core_pool_size(1).max_pending(1).build().unwrap();
        let (busy, gate) = (Counter::new(), Counter::new());
        let task = || {
            let (busy, gate) = (busy.clone(), gate.clone());
            move || {
                busy.add();
                gate.wait_for(1);
            }
        };
        executor.execute(task()).unwrap();
        busy.wait_for(1);
        executor.execute(task()).unwrap();
        for expected in [Why::Saturated, Why::Shutdown] {
            for _ in 0..5 {
                let refused = executor.submit(task()).unwrap_err();
                assert_eq!(why(&refused), expected);
            }
            shut_down(&executor);
        }
        gate.add();
        assert!(executor.await_termination(LONG).unwrap());
        assert_eq!(executor.completed_task_count(), ran);
        assert_shut_down(&executor);
    }
}

/// RJ-013: an executor that ended before any task was scheduled refuses new tasks.
#[test]
fn an_executor_that_ended_unused_refuses() {
    let executor = Executor::new(1);
    executor.shutdown();
    assert!(executor.await_termination(LONG).unwrap());
    let refused = executor.schedule(ms(1), || ()).unwrap_err();
    assert!(matches!(refused.reason(), RejectionReason::Shutdown));
    assert_eq!(executor.largest_pool_size(), 0);
}

/// The outcome of a race between a task's submission and a shutdown.
#[derive(Default)]
struct Tally {
    refused: usize,
    signalled: usize,
    given_back: usize,
}

/// Submits tasks that sleep until they are asked to stop, to whichever executor there is.
fn submit_sleepers(current: &Mutex<Option<Handle>>) -> Tally {
    let (mut tally, mut futures) = (Tally::default(), Vec::new());
    loop {
        let Some(executor) = current.lock().unwrap().clone() else { break };
        let sleeper = || current_task().unwrap().token().sleep(HOUR).is_err();
        match executor.submit(sleeper) {
            Ok(future) => futures.push(future),
            Err(error)
                if matches!(
                    error.reason(),
                    RejectionReason::Shutdown | RejectionReason::Saturated
                ) =>
            {
                tally.refused += 1;
                thread::yield_now();
            }
            Err(error) => panic!("{error}"),
        }
    }
    for future in futures {
        match future.join_within(LONG).expect("it ends") {
            Ok(was_signalled) => {
                assert!(was_signalled);
                tally.signalled += 1;
            }
            Err(TaskError::Cancelled(CancelReason::ShutdownNow)) => tally.given_back += 1,
            Err(error) => panic!("{error}"),
        }
    }
    tally
}

/// F34, RJ-016: while a thread submits continuously to one executor after another, on each of which
/// `shutdown_now` is called, all of them terminate, and each submission was refused, drained, or
/// ran and was signalled.
#[test]
fn submissions_race_with_shutdown_now() {
    let current = Arc::new(Mutex::new(None));
    let new = || Executor::builder().core_pool_size(10).max_pending(10).build().unwrap();
    let mut executor = new();
    *current.lock().unwrap() = Some(executor.handle());
    let submitter = thread::spawn({
        let current = Arc::clone(&current);
        move || submit_sleepers(&current)
    });
    for round in 0..256 {
        if round % 2 == 0 {
            executor.submit(|| ()).ok();
        }
        drop(executor.shutdown_now());
        assert!(executor.await_termination(LONG).unwrap(), "round {round}");
        executor = new();
        *current.lock().unwrap() = Some(executor.handle());
    }
    *current.lock().unwrap() = None;
    drop(executor.shutdown_now());
    let tally = submitter.join().unwrap();
    assert!(tally.refused + tally.signalled + tally.given_back > 0);
    assert!(executor.await_termination(LONG).unwrap());
}
