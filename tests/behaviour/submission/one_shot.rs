//! Tasks that run once: when they start, in which order, and what their futures return.

use std::{
    thread,
    time::{Duration, Instant},
};

use punctual::{RejectionReason, ScheduledThreadPoolExecutor, TaskState, current_task};

use crate::{
    support::for_some_span,
    support::{Counter, LONG, Log, manual, ms},
};

/// Wraps a closure as a program does that decorates all its tasks; counts the calls.
fn decorated<F, T>(calls: &Counter, closure: F) -> impl FnOnce() -> T + use<F, T>
where
    F: FnOnce() -> T,
{
    let calls = calls.clone();
    move || {
        calls.add();
        closure()
    }
}

/// SO-001: a closure that is executed runs.
#[test]
fn an_executed_closure_runs() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let ran = Counter::new();
    let count = ran.clone();
    executor.execute(move || count.add()).unwrap();
    ran.wait_for(1);
}

/// SO-002: on the system clock neither the task nor its result comes before the delay is over.
#[test]
fn a_delay_is_waited_for() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let (delay, ran) = (ms(12), Counter::new());
    let count = ran.clone();
    let begin = Instant::now();
    let future = executor
        .schedule(delay, move || {
            count.add();
            begin.elapsed()
        })
        .unwrap();
    let started = future.join_within(LONG).unwrap().unwrap();
    let joined = begin.elapsed();
    assert!(started >= delay, "started after {started:?}");
    assert!(joined >= delay, "joined after {joined:?}");
    assert_eq!(ran.get(), 1);
}

/// SO-002: a task starts exactly at its deadline, and not a nanosecond before.
#[test]
fn a_task_starts_at_its_deadline() {
    let (clock, executor) = manual(1);
    let delay = ms(12);
    let after = executor.schedule(delay, || 7).unwrap();
    let at = executor.schedule_at(clock.now() + delay, || 8).unwrap();

    clock.advance(delay - Duration::from_nanos(1));
    clock.run_until_idle();
    assert_eq!(after.state(), TaskState::Scheduled);
    assert_eq!(at.state(), TaskState::Scheduled);
    assert_eq!(after.delay(), Some(Duration::from_nanos(1)));

    clock.advance(Duration::from_nanos(1));
    clock.run_until_idle();
    assert_eq!(after.try_join().unwrap().unwrap(), 7);
    assert_eq!(at.try_join().unwrap().unwrap(), 8);
}

/// A task without a deadline waits for ever, by every method that takes an instant: queries do not
/// start it, and it can be cancelled.
#[test]
fn a_task_without_a_deadline_never_starts() {
    let (clock, executor) = manual(1);
    let tasks = [
        executor.schedule_at(None, || 7).unwrap(),
        executor.task().schedule_at(None, || 7).unwrap(),
        executor.task().name("some day").schedule_at(None, || 7).unwrap(),
    ];
    let some = executor.schedule_at(Some(clock.now() + ms(1)), || 8).unwrap();
    clock.run_for(Duration::from_secs(1_000_000_000));
    assert_eq!(some.try_join().unwrap().unwrap(), 8);
    for task in tasks {
        assert_eq!((task.state(), task.delay()), (TaskState::Scheduled, None));
        assert!(task.cancel());
    }
    assert_eq!(executor.pending_count(), 0);
}

/// SO-005, SO-006, SO-007: the future of a submitted task returns the closure's result, whether
/// that is a value, nothing, or a value made beforehand.
#[test]
fn the_future_returns_the_closures_value() {
    let executor = ScheduledThreadPoolExecutor::new(2);
    let value = executor.submit(|| 6 * 7).unwrap();
    let unit = executor.submit(|| ()).unwrap();
    let preset = String::from("made beforehand");
    let address = preset.as_ptr();
    let given = executor.submit(move || preset).unwrap();

    assert_eq!(value.join_within(LONG).unwrap().unwrap(), 42);
    unit.join_within(LONG).unwrap().unwrap();
    assert_eq!(unit.state(), TaskState::Completed);
    let given = given.join_within(LONG).unwrap().unwrap();
    assert_eq!(given.as_ptr(), address, "moved, not copied");
}

/// SO-008: a task that the caller runs on its own thread has ended when that call returns.
#[test]
fn a_task_can_be_run_by_the_caller() {
    let (_, executor) = manual(1);
    let whose = || thread::current().id();
    let waited = executor.schedule(LONG, whose).unwrap();
    let polled = executor.schedule(LONG, whose).unwrap();
    for task in executor.shutdown_now() {
        task.run();
    }
    for future in [&waited, &polled] {
        assert!(future.is_done());
        assert!(!future.is_cancelled());
    }
    assert_eq!(waited.join().unwrap(), whose());
    let polled = polled.join_within(Duration::ZERO).unwrap();
    assert_eq!(polled.unwrap(), whose());
}

/// SO-010, SO-011: a decorated closure ends as the plain one does, and its decorator is called
/// before the result is available.
#[test]
fn decorating_a_closure_changes_nothing() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let bodies: [fn() -> i32; 2] = [|| 7, || panic!("no")];
    for body in bodies {
        let calls = Counter::new();
        let plain = [executor.submit(body).unwrap(), executor.schedule(ms(1), body).unwrap()];
        let wrapped = [
            executor.submit(decorated(&calls, body)).unwrap(),
            executor.schedule(ms(1), decorated(&calls, body)).unwrap(),
        ];
        for (number, (plain, wrapped)) in plain.into_iter().zip(wrapped).enumerate() {
            let expected = plain.join_within(LONG).unwrap();
            let outcome = wrapped.join_within(LONG).unwrap();
            assert!(calls.get() > number);
            assert_eq!(wrapped.state(), plain.state());
            assert_eq!(format!("{outcome:?}"), format!("{expected:?}"));
        }
        assert_eq!(calls.get(), 2);
    }
}

/// SO-010: a decorated closure that is cancelled in time is not called.
#[test]
fn cancelling_reaches_behind_a_decorator() {
    let (clock, executor) = manual(1);
    let calls = Counter::new();
    let future = executor.schedule(ms(1), decorated(&calls, || ())).unwrap();
    assert!(future.cancel());
    clock.run_for(ms(2));
    assert_eq!(calls.get(), 0);
    assert_eq!(future.state(), TaskState::Cancelled);
}

/// SO-012: ten submissions to an executor of ten start ten workers and run ten tasks, and after
/// a shutdown there is no worker left.
#[test]
fn each_submission_starts_a_worker_until_there_are_enough() {
    let executor = ScheduledThreadPoolExecutor::new(10);
    let calls = Counter::new();
    for _ in 0..10 {
        executor.submit(decorated(&calls, || ())).unwrap();
    }
    assert_eq!(executor.pool_size(), 10);
    calls.wait_for(10);
    executor.shutdown();
    assert!(executor.await_termination(LONG).unwrap());
    assert_eq!(executor.pool_size(), 0);
    assert_eq!(calls.get(), 10);
}

/// SO-013: a refused task can be run by another executor, and the same closure can be submitted any
/// number of times: it runs as often as it was accepted.
#[test]
fn a_closure_runs_as_often_as_it_is_accepted() {
    let (open, closed) = (ScheduledThreadPoolExecutor::new(2), ScheduledThreadPoolExecutor::new(2));
    closed.shutdown();
    let ran = Counter::new();
    let count = ran.clone();
    let closure = move || count.add();
    for number in 0..1_000 {
        if number % 3 == 0 {
            let task = closed.execute(closure.clone()).unwrap_err().into_task();
            open.execute(move || task.run()).unwrap();
        } else {
            open.execute(closure.clone()).unwrap();
        }
    }
    open.shutdown();
    assert!(open.await_termination(LONG).unwrap());
    assert_eq!(ran.get(), 1_000);
}

/// SO-013: the same with a bound, which refuses a closure as long as there is no room: it is submitted again, and runs
/// as often as it was accepted.
#[test]
fn a_closure_that_was_refused_for_want_of_room_is_submitted_again() {
    let executor = ScheduledThreadPoolExecutor::builder().core_pool_size(2).max_pending(30).build();
    let executor = executor.unwrap();
    let (ran, go_on) = (Counter::new(), Counter::new());
    let (count, wait) = (ran.clone(), go_on.clone());
    let closure = move || {
        wait.wait_for(1);
        count.add();
    };
    let (mut accepted, mut refused) = (0, 0);
    while accepted < 1_000 {
        match executor.execute(closure.clone()) {
            Ok(()) => accepted += 1,
            Err(error) => {
                assert!(matches!(error.reason(), RejectionReason::Saturated), "{error}");
                refused += 1;
                go_on.add();
                drop(error);
                thread::yield_now();
            }
        }
    }
    assert!(refused > 0, "thirty wait, and two run");
    executor.shutdown();
    assert!(executor.await_termination(LONG).unwrap());
    assert_eq!(ran.get(), 1_000);
}

/// SO-015: whichever task is cancelled, the others start in the order of their delays.
#[test]
fn cancelling_one_task_leaves_the_others_in_order() {
    let delays = [3000, 3400, 3900, 3800, 3700, 3600, 3430, 3420, 3310, 3500, 3200];
    for cancelled in 0..delays.len() {
        let (clock, executor) = manual(1);
        let started = Log::new();
        let futures = delays.map(|delay| {
            let started = started.clone();
            let task = move || started.push(delay);
            executor.schedule(ms(delay), task).unwrap()
        });
        clock.advance(ms(1500));
        assert!(futures[cancelled].cancel());
        clock.advance(ms(3000));
        clock.run_until_idle();

        let mut expected = delays.to_vec();
        expected.remove(cancelled);
        expected.sort_unstable();
        assert_eq!(started.entries(), expected, "without {}", delays[cancelled]);
    }
}

/// SO-016: tasks with the same deadline start in the order in which they were submitted, whether
/// the deadline was given as a delay or as an instant.
#[test]
fn equal_deadlines_keep_the_order_of_submission() {
    let (clock, executor) = manual(1);
    let started = Log::new();
    for number in 0..1_000 {
        let started = started.clone();
        let task = move || started.push(number);
        if number % 2 == 0 {
            executor.schedule(ms(10), task).unwrap();
        } else {
            executor.schedule_at(clock.now() + ms(10), task).unwrap();
        }
    }
    clock.run_for(ms(10));
    assert!(started.entries().into_iter().eq(0..1_000));
}

/// SO-017: on the system clock tasks a few microseconds apart start in order, and none early.
#[test]
fn close_deadlines_are_kept_apart() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    for_some_span(|lead| {
        let (handle, started) = (executor.handle(), Log::new());
        let log = started.clone();
        let base = Instant::now() + lead;
        let due = move |number: u64| base + Duration::from_micros(number * number * 7 % 32);
        // The only worker submits them, so none starts before all are submitted.
        let submission = executor.submit(move || {
            let submit = |number| {
                let log = log.clone();
                let task = move || log.push((number, Instant::now()));
                handle.schedule_at(due(number), task).unwrap()
            };
            let futures: Vec<_> = (0..32).map(submit).collect();
            (futures, Instant::now() < base)
        });
        let (futures, in_time) = submission.unwrap().join_within(LONG).unwrap().unwrap();
        for future in futures {
            future.join_within(LONG).unwrap().unwrap();
        }

        let started = started.entries();
        assert!(started.iter().all(|&(number, at)| at >= due(number)));
        let order: Vec<_> = started.into_iter().map(|(number, _)| number).collect();
        let mut expected: Vec<_> = (0..32).collect();
        expected.sort_by_key(|&number| due(number));
        // A task whose deadline has passed when it is submitted is due at once, and so comes in a
        // different order.
        assert!(!in_time || order == expected, "{order:?}");
        in_time
    });
}

/// A one-shot task can read its planned time and its lateness; it has run number one and has missed
/// no run.
#[test]
fn a_task_knows_its_plan_and_its_lateness() {
    let (clock, executor) = manual(1);
    let planned = clock.now() + ms(10);
    let seen = executor.schedule(ms(10), current_task).unwrap();
    clock.advance(ms(25));
    clock.run_until_idle();
    let task = seen.try_join().unwrap().unwrap().unwrap();
    assert_eq!(task.id(), seen.id());
    assert_eq!(task.planned(), Some(planned));
    assert_eq!(task.lateness(), ms(15));
    assert_eq!((task.run_number(), task.missed_runs()), (1, 0));
}
