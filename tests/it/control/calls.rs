//! Debounce and throttle: one run for many calls.

use std::{thread, time::Duration};

use punctual::{FailurePolicy, ScheduledThreadPoolExecutor as Executor, TaskState};

use crate::support::{Counter, Drops, Log, eventually, manual, ms};

/// The moments of runs, if the executor's clock is moved on by one millisecond at a time, and `calls`
/// says at which there is a call.
fn runs_of(
    subject: impl Fn(&Executor, Log<u64>, punctual::ManualClock) -> Box<dyn Fn()>,
    calls: impl Fn(u64) -> bool,
) -> Vec<u64> {
    let (clock, executor) = manual(1);
    let runs = Log::new();
    let call = subject(&executor, runs.clone(), clock.clone());
    for now in 0..100 {
        if calls(now) {
            call();
            clock.run_until_idle();
        }
        clock.run_for(ms(1));
    }
    runs.entries()
}

fn debounced(
    quiet: Duration,
    max_wait: Duration,
) -> impl Fn(&Executor, Log<u64>, punctual::ManualClock) -> Box<dyn Fn()> {
    move |executor, runs, clock| {
        let body = move || runs.push(clock.elapsed().as_millis() as u64);
        let task = executor.debounce(quiet, body).expect("accepted").max_wait(max_wait);
        Box::new(move || assert!(task.call()))
    }
}

fn throttled(
    period: Duration,
) -> impl Fn(&Executor, Log<u64>, punctual::ManualClock) -> Box<dyn Fn()> {
    move |executor, runs, clock| {
        let body = move || runs.push(clock.elapsed().as_millis() as u64);
        let task = executor.throttle(period, body).expect("accepted");
        Box::new(move || assert!(task.call()))
    }
}

#[test]
fn a_debounced_task_runs_when_it_has_been_quiet() {
    let calls = |now| [5, 10, 14, 40, 49].contains(&now);
    assert_eq!(runs_of(debounced(ms(10), Duration::MAX), calls), [24, 59]);
    assert_eq!(runs_of(debounced(ms(10), Duration::MAX), |_| false), [0; 0]);
}

#[test]
fn the_wait_of_a_debounced_task_has_a_limit() {
    let calls = |now| now < 50 && now % 2 == 0;
    assert_eq!(runs_of(debounced(ms(5), ms(20)), calls), [20, 40, 53]);
    assert_eq!(runs_of(debounced(ms(5), Duration::MAX), calls), [53]);
}

/// M145.
#[test]
fn a_throttled_task_runs_at_once_and_then_once_in_a_period() {
    assert_eq!(runs_of(throttled(ms(10)), |now| now < 25), [0, 10, 20, 30]);
    assert_eq!(runs_of(throttled(ms(10)), |now| [3, 7, 30, 31].contains(&now)), [3, 13, 30, 40]);
}

#[test]
fn a_call_during_a_run_has_a_run_after_it() {
    let (clock, executor) = manual(1);
    let (started, release) = (Counter::new(), Counter::new());
    let body = || {
        let (is_started, gate) = (started.clone(), release.clone());
        move || {
            is_started.add();
            gate.wait_for(is_started.get());
        }
    };
    let debounced = executor.debounce(ms(10), body()).expect("accepted");
    assert!(debounced.call());
    clock.advance(ms(10));
    started.wait_for(1);
    assert!(debounced.call());
    release.add();
    clock.advance(ms(10));
    started.wait_for(2);
    release.add();
    let throttled = executor.throttle(ms(10), body()).expect("accepted");
    assert!(throttled.call());
    started.wait_for(3);
    assert!(throttled.call());
    release.add();
    clock.run_until_idle();
    assert_eq!(throttled.task_handle().delay(), Some(ms(10)));
    drop(throttled);
    assert_eq!(executor.pending_count(), 1);
}

/// M143.
#[test]
fn what_waits_can_be_flushed() {
    let (clock, executor) = manual(1);
    let runs = Counter::new();
    let noted = runs.clone();
    let task = executor.debounce(ms(10), move || noted.add()).expect("accepted");
    assert!(!task.flush(), "no call yet");
    assert!(task.call());
    assert!(task.flush());
    clock.run_until_idle();
    assert_eq!(runs.get(), 1);
    assert!(!task.flush());
    clock.run_for(ms(20));
    assert_eq!(runs.get(), 1, "that call has had its run");
}

#[test]
fn a_call_waits_until_its_run_begins_or_the_task_ends() {
    let (clock, executor) = manual(1);
    let task = executor.debounce(ms(10), || ()).expect("accepted");
    assert!(!task.is_waiting(), "no call yet");
    assert!(task.call());
    assert!(task.is_waiting());
    clock.run_for(ms(9));
    assert!(task.is_waiting());
    clock.run_for(ms(1));
    assert!(!task.is_waiting(), "that call has had its run");
    assert!(task.call());
    assert!(task.task_handle().cancel());
    assert!(!task.is_waiting(), "there will be no run");
}

#[test]
fn dropping_it_cancels_the_task() {
    let (_, executor) = manual(1);
    let drops = Drops::default();
    let (one, other) = (drops.token(), drops.token());
    let debounced = executor.debounce(ms(10), move || _ = &one).expect("accepted");
    let throttled = executor.throttle(ms(10), move || _ = &other).expect("accepted");
    let handle = debounced.task_handle().clone();
    assert!(debounced.call());
    drop((debounced, throttled));
    assert_eq!((drops.count(), executor.pending_count()), (2, 0));
    assert_eq!(handle.state(), TaskState::Cancelled);
}

#[test]
fn a_failure_ends_it_if_the_policy_says_so() {
    let (clock, executor) = manual(1);
    let ends = executor.debounce(ms(1), || Err::<(), _>("no")).expect("accepted");
    let policy = FailurePolicy::resume();
    let goes_on = executor.task().on_failure(policy).throttle(ms(1), || Err::<(), _>("no"));
    let goes_on = goes_on.expect("accepted");
    assert!(ends.call() && goes_on.call());
    clock.run_for(ms(1));
    assert!(!ends.call());
    assert!(goes_on.call());
    assert_eq!(ends.task_handle().last_failure().expect("it has failed").message(), "no");
}

/// Many threads call at once: no call is without a run after it.
#[test]
fn no_call_is_lost() {
    let executor = Executor::new(2);
    let (calls, seen) = (Counter::new(), Counter::new());
    let noting = || {
        let (calls, seen) = (calls.clone(), seen.clone());
        move || (seen.get()..calls.get()).for_each(|_| seen.add())
    };
    let debounced = executor.debounce(Duration::from_micros(50), noting()).expect("accepted");
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    calls.add();
                    assert!(debounced.call());
                }
            });
        }
    });
    eventually("every call was seen", || seen.get() == calls.get());
    let throttled = executor.throttle(Duration::from_micros(50), noting()).expect("accepted");
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    calls.add();
                    assert!(throttled.call());
                }
            });
        }
    });
    eventually("every call was seen", || seen.get() == calls.get());
}
