//! A periodic task that ends without its user's doing does not end silently: the handler is called,
//! the last failure is kept, and the hook after the run sees the failure.

use punctual::{
    Builder, CancelReason, DiscardOldestPolicy, Failure, FailureKind, FailurePolicy, FailureSource,
    ManualClock, ScheduledThreadPoolExecutor as Executor, TaskContext,
};

use crate::support::{Counter, Log, assert_cancelled, eventually, manual_with, ms};

/// An executor with one worker whose handler records source and line.
fn telling(
    settings: impl FnOnce(Builder) -> Builder,
) -> (ManualClock, Executor, Log<(FailureSource, String)>) {
    let log = Log::new();
    let told = log.clone();
    let (clock, executor) = manual_with(|builder| {
        settings(builder.failure_handler(move |report| {
            let id = report.task_id().expect("it is a task's").to_string();
            // With what is before it: an id is letters, and may be a part of a word of the line.
            let line = report.to_string().replace(&format!("({id})"), "(7)");
            let kind = report.failure().kind();
            let expected = match report.source() {
                FailureSource::TimeLimit => FailureKind::TimeLimit,
                FailureSource::Displaced => FailureKind::Displaced,
                _ => FailureKind::Panic,
            };
            assert_eq!((kind, report.failure().is_panic()), (expected, kind == FailureKind::Panic));
            assert!(report.failure().is_panic() || report.location().is_none());
            told.push((report.source(), line));
        }))
    });
    (clock, executor, log)
}

/// The line that the handler must get, once.
fn assert_told(log: &Log<(FailureSource, String)>, source: FailureSource, line: &str) {
    eventually("the handler is told", || !log.entries().is_empty());
    assert_eq!(log.entries(), [(source, line.to_owned())]);
}

/// G17: with the default policy a run that takes too long ends the task. The handler is called at
/// that time, while the body still runs, and not again when the body returns; the hook after the
/// run sees the failure.
#[test]
fn a_task_that_its_time_limit_ends_is_reported() {
    let after = Log::new();
    let seen = after.clone();
    let (clock, executor, log) = telling(|builder| {
        builder.after_execute(move |_: &TaskContext, outcome: Result<(), &Failure>| {
            seen.push(outcome.map_err(|panic| panic.message().to_owned()));
        })
    });
    let (begun, gate) = (Counter::new(), Counter::new());
    let (begins, opened) = (begun.clone(), gate.clone());
    let body = move || {
        begins.add();
        if begins.get() == 2 {
            opened.wait_for(1);
        }
    };
    let task = executor.task().name("poller").timeout(ms(5));
    let poller = task.schedule_at_fixed_rate(ms(10), ms(10), body).unwrap();
    clock.run_for(ms(10));
    clock.advance(ms(10));
    begun.wait_for(2);
    clock.advance(ms(5));
    poller.wait().unwrap();
    assert_cancelled(&poller, CancelReason::TimedOut);
    let why = "exceeded its time limit of 5ms";
    let line = format!("task \"poller\" (7), run 2: {why}");
    assert_told(&log, FailureSource::TimeLimit, &line);
    let failed = poller.last_failure().expect("it is kept");
    assert_eq!((failed.run_number(), failed.in_a_row(), failed.message()), (2, 1, why));
    gate.add();
    clock.run_until_idle();
    assert_eq!(after.entries(), [Ok(()), Err(why.to_owned())]);
    assert_told(&log, FailureSource::TimeLimit, &line);
}

/// A body that panics on its own after the limit has ended its task is reported as well, because
/// these are two events.
#[test]
fn a_late_panic_is_reported_beside_the_end() {
    let (clock, executor, log) = telling(|builder| builder);
    let gate = Counter::new();
    let opened = gate.clone();
    let task = executor.task().timeout(ms(5));
    let body = move || {
        opened.wait_for(1);
        panic!("late");
    };
    let poller = task.schedule_at_fixed_rate(ms(0), ms(10), body).unwrap();
    eventually("it runs", || executor.active_count() == 1);
    clock.advance(ms(5));
    poller.wait().unwrap();
    eventually("the end is told", || log.entries().len() == 1);
    gate.add();
    clock.run_until_idle();
    let sources: Vec<_> = log.entries().into_iter().map(|(source, _)| source).collect();
    assert_eq!(sources, [FailureSource::TimeLimit, FailureSource::Task]);
}

/// A task that continues, by its policy, after a run that took too long has not ended: the run has
/// failed, by its time limit and not by a panic, and the handler is called for it.
#[test]
fn a_task_that_goes_on_has_not_ended() {
    let (clock, executor, log) = telling(|builder| builder);
    let gate = Counter::new();
    let opened = gate.clone();
    let task = executor.task().timeout(ms(5)).on_failure(FailurePolicy::resume());
    let poller = task.schedule_at_fixed_rate(ms(0), ms(10), move || opened.wait_for(1)).unwrap();
    eventually("it runs", || executor.active_count() == 1);
    clock.advance(ms(5));
    gate.add();
    clock.run_until_idle();
    assert!(!poller.is_done());
    let line = "task (7), run 1: exceeded its time limit of 5ms; again in 5ms";
    assert_told(&log, FailureSource::TimeLimit, line);
    let failed = poller.last_failure().expect("it is kept");
    assert_eq!((failed.kind(), failed.in_a_row()), (FailureKind::TimeLimit, 1));
}

/// G17: the handler is called for a periodic task that another task displaces from a bounded queue;
/// for a one-shot task, whose user waits for its result, it is not.
#[test]
fn a_displaced_periodic_task_is_reported() {
    let (_clock, executor, log) =
        telling(|builder| builder.max_pending(1).rejected_execution_handler(DiscardOldestPolicy));
    let beat = executor.task().name("beat").schedule_at_fixed_rate(ms(10), ms(10), || ()).unwrap();
    let once = executor.schedule(ms(20), || ()).unwrap();
    assert_cancelled(&beat, CancelReason::Rejected);
    let why = "it was discarded for another task";
    let line = format!("task \"beat\" (7): was ended: {why}");
    assert_told(&log, FailureSource::Displaced, &line);
    executor.schedule(ms(20), || ()).unwrap();
    assert_cancelled(&once, CancelReason::Rejected);
    assert_told(&log, FailureSource::Displaced, &line);
}

/// An end that the user causes, of whichever kind, is not reported.
#[test]
fn an_end_by_the_user_is_not_reported() {
    type End = fn(&ManualClock, Executor);
    let ends: [End; 4] = [
        |_, executor| executor.pending_tasks().iter().for_each(|task| _ = task.cancel()),
        |_, executor| executor.shutdown(),
        |_, executor| drop(executor.shutdown_now()),
        |_, executor| drop(executor),
    ];
    for end in ends {
        let (clock, executor, log) = telling(|builder| builder);
        let beat = executor.schedule_at_fixed_rate(ms(10), ms(10), || ()).unwrap();
        clock.run_for(ms(25));
        end(&clock, executor);
        beat.wait().unwrap();
        assert!(log.entries().is_empty(), "{log:?}");
    }
}
