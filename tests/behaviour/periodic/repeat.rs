//! Repeated closures that report how a run went: by an `Err`, which fails the run as a panic does,
//! and by a `ControlFlow`, which ends the series or says when the next run is.

use std::{
    error::Error,
    fmt,
    ops::ControlFlow::{self, Break, Continue},
    panic::resume_unwind,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use punctual::{
    FailurePolicy, ManualClock, MissedRuns, PanicLocation, ScheduledThreadPoolExecutor as Executor,
    TaskError, TaskHandle, TaskState, Trigger, current_task,
    trigger::{every, fixed_delay},
};

use crate::support::{DropToken, Drops, Log, manual, manual_with, ms};

/// An error that notes when it is dropped.
#[derive(Debug)]
struct Refused(&'static str);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "refused: {}", self.0)
    }
}

impl Error for Refused {}

/// An executor whose runs are noted in milliseconds.
fn subject() -> (ManualClock, Executor, Log<u64>) {
    let (clock, executor) = manual(1);
    (clock, executor, Log::new())
}

fn millis(clock: &ManualClock) -> u64 {
    u64::try_from(clock.elapsed().as_millis()).expect("a small number")
}

/// A run that succeeds is followed by the next, whatever it returns for that.
#[test]
fn each_success_is_followed_by_the_next_run() {
    let (clock, executor, runs) = subject();
    let note = |name: u64| {
        let runs = runs.clone();
        move || runs.push(name)
    };
    let (unit, ok, flow, nested) = (note(1), note(2), note(3), note(4));
    executor.repeat(every(ms(10)), unit).expect("accepted");
    executor
        .repeat(every(ms(10)), move || -> Result<(), Refused> {
            ok();
            Ok(())
        })
        .expect("accepted");
    executor
        .repeat(every(ms(10)), move || -> ControlFlow<u64> {
            flow();
            Continue(())
        })
        .expect("accepted");
    executor
        .repeat(every(ms(10)), move || -> Result<ControlFlow<u64>, String> {
            nested();
            Ok(Continue(()))
        })
        .expect("accepted");
    clock.run_for(ms(20));
    assert_eq!(runs.entries(), [1, 2, 3, 4].repeat(3));
    assert_eq!(executor.statistics().failed_runs, 0);
}

/// The value of a `Break` is the result of the task, which has completed, and its captures are
/// dropped.
#[test]
fn a_break_ends_the_series_with_its_value() {
    let (clock, executor, runs) = subject();
    let drops = Drops::new();
    let (log, time, guard) = (runs.clone(), clock.clone(), drops.token());
    let body = move || {
        let _guard = &guard;
        log.push(millis(&time));
        if time.elapsed() < ms(30) { Continue(()) } else { Break("ready") }
    };
    let future = executor.repeat(every(ms(10)), body).expect("accepted");
    clock.run_for(ms(100));
    assert_eq!(runs.entries(), [0, 10, 20, 30]);
    assert_eq!((future.state(), drops.count()), (TaskState::Completed, 1));
    assert_eq!(future.join().expect("it has ended with a value"), "ready");
    let now = executor.statistics();
    assert_eq!((now.completed, now.runs, now.failed_runs, now.pending), (1, 4, 0, 0));
}

/// A run that says when the next is to be is followed by it then, and the trigger goes on from
/// there.
#[test]
fn a_run_can_say_when_the_next_one_is() {
    let (clock, executor, runs) = subject();
    let (log, time) = (runs.clone(), clock.clone());
    let body = move || -> ControlFlow<(), Duration> {
        log.push(millis(&time));
        match log.entries().len() {
            5.. => Break(()),
            runs => Continue(ms(runs as u64)),
        }
    };
    let future = executor.repeat(every(ms(100)), body).expect("accepted");
    clock.run_for(ms(50));
    assert_eq!(runs.entries(), [0, 1, 3, 6, 10]);
    assert!(future.join().is_ok());
}

/// After a run that has named a moment, the grid goes on from that moment.
#[test]
fn the_grid_goes_on_from_a_moment_that_a_run_has_named() {
    let (clock, executor, runs) = subject();
    let (log, time) = (runs.clone(), clock.clone());
    let body = move || -> Result<ControlFlow<(), Duration>, &str> {
        log.push(millis(&time));
        // A run that fails leaves the next one to the trigger.
        if log.entries().len() == 1 { Ok(Continue(ms(3))) } else { Err("as planned") }
    };
    let task = executor.task().on_failure(FailurePolicy::resume());
    let _future = task.repeat(every(ms(10)), body).expect("accepted");
    clock.run_for(ms(30));
    assert_eq!(runs.entries(), [0, 3, 13, 23]);
}

/// A run can name the moment of the next one. Moments that have passed are made up for in the order of
/// their deadlines, with whatever else is due; the trigger goes on from the last of them.
#[test]
fn a_run_can_name_the_moment_of_the_next_one() {
    let (clock, executor, runs) = subject();
    let (log, time) = (runs.clone(), clock.clone());
    let mut moment = executor.clock().now();
    let body = move || -> Result<ControlFlow<(), Instant>, &str> {
        log.push(millis(&time));
        moment += ms(10);
        match log.entries().len() {
            2 => time.advance(ms(37)), // from 10 to 47
            8.. => return Err("so that the trigger decides"),
            _ => {}
        }
        Ok(Continue(moment))
    };
    let task = executor.task().on_failure(FailurePolicy::resume());
    let _future = task.repeat(every(ms(100)), body).expect("accepted");
    let between = runs.clone();
    executor.schedule(ms(35), move || between.push(1_000)).expect("accepted");
    clock.run_for(ms(180));
    assert_eq!(runs.entries(), [0, 10, 47, 47, 1_000, 47, 50, 60, 160]);
}

/// A run that has named its own moment is followed by one that has missed nothing.
#[test]
fn a_run_at_a_named_moment_has_missed_nothing() {
    let (clock, executor, missed) = subject();
    let (log, time) = (missed.clone(), clock.clone());
    let body = move || -> Result<ControlFlow<(), Duration>, &str> {
        log.push(current_task().expect("inside a task").missed_runs());
        if log.entries().len() > 1 {
            return Ok(Continue(ms(5)));
        }
        time.advance(ms(35));
        Err("so that the grid decides")
    };
    let task = executor.task().on_failure(FailurePolicy::resume()).missed_runs(MissedRuns::Skip);
    let _future = task.repeat(every(ms(10)), body).expect("accepted");
    clock.run_for(ms(60));
    assert_eq!(missed.entries()[..3], [0, 3, 0]);
}

/// An `Err` fails the run as a panic does: by default it ends the task, and the future has the error.
#[test]
fn an_error_ends_the_task_by_default() {
    let (clock, executor, _) = subject();
    let body = || -> Result<(), Refused> { Err(Refused("no paper")) };
    let future = executor.repeat(every(ms(10)), body).expect("accepted");
    clock.run_for(ms(30));
    assert_eq!(future.state(), TaskState::Failed);
    let failed = future.last_failure().expect("it has failed");
    assert_eq!((failed.run_number(), failed.message()), (1, "refused: no paper"));
    let error = future.join().expect_err("it has failed");
    assert_eq!(error.to_string(), "the task failed: refused: no paper");
    assert_eq!(error.source().expect("it has a source").to_string(), "refused: no paper");
    assert!(error.is_failure() && !error.is_panic() && !error.is_cancelled());
    let failure = error.into_failure().expect("it is a failure");
    assert!(failure.error().is_some_and(|error| error.is::<Refused>()));
    assert!(!failure.is_panic() && failure.location().is_none());
    let payload = failure.into_payload();
    assert!(payload.is::<Box<dyn Error + Send + Sync>>(), "the error itself");
    let now = executor.statistics();
    assert_eq!((now.failed, now.failed_runs, now.runs, now.completed), (1, 1, 1, 0));
}

/// Retry until it works, at most five times, then give up: in both ways.
#[test]
fn a_policy_counts_errors_as_it_counts_panics() {
    for works_at in [3, 9] {
        let (clock, executor, runs) = subject();
        let log = runs.clone();
        let patient = FailurePolicy::resume().stop_after(5);
        let body = move || {
            log.push(1);
            match log.entries().len() {
                run if run == works_at => Ok(Break(run)),
                run if run % 2 == 0 => resume_unwind(Box::new("a panic")),
                run => Err(format!("attempt {run}")),
            }
        };
        let body = move || -> Result<ControlFlow<usize>, String> { body() };
        let future =
            executor.task().on_failure(patient).repeat(every(ms(10)), body).expect("accepted");
        clock.run_for(ms(200));
        let now = executor.statistics();
        if works_at == 3 {
            assert_eq!(future.join().expect("it works in the end"), 3);
            assert_eq!((now.runs, now.failed_runs, now.completed), (3, 2, 1));
        } else {
            let failed = future.last_failure().expect("it has failed");
            assert_eq!((failed.in_a_row(), failed.message()), (5, "attempt 5"));
            let error = future.join().expect_err("it has given up");
            assert_eq!(error.to_string(), "the task failed: attempt 5");
            assert_eq!((now.runs, now.failed_runs, now.failed), (5, 5, 1));
        }
    }
}

/// A policy that backs off delays the run after an error, too.
#[test]
fn errors_back_off() {
    let (clock, executor, runs) = subject();
    let (log, time) = (runs.clone(), clock.clone());
    let policy = FailurePolicy::resume().back_off(ms(15)..=ms(40));
    let body = move || -> Result<(), &str> {
        log.push(millis(&time));
        if log.entries().len() < 4 { Err("not yet") } else { Ok(()) }
    };
    let _future = executor.task().on_failure(policy).repeat(every(ms(10)), body).expect("accepted");
    clock.run_for(ms(105));
    assert_eq!(runs.entries(), [0, 15, 45, 85, 95, 105]);
}

/// One handler is told of panics and of errors, with what the run was.
#[test]
fn an_error_is_reported_to_the_failure_handler() {
    let reports = Log::new();
    let told = reports.clone();
    let (clock, executor) = manual_with(|builder| {
        builder.core_pool_size(1).failure_handler(move |report| {
            let location: Option<&PanicLocation> = report.location();
            let about = (report.task_name(), report.run_number(), location.is_some());
            told.push((about, report.failure().is_panic(), report.to_string()));
        })
    });
    let policy = FailurePolicy::resume();
    let body = || -> Result<(), Refused> { Err(Refused("no paper")) };
    let printing = executor.task().name("print").on_failure(policy).repeat(every(ms(10)), body);
    let id = printing.expect("accepted").id();
    clock.run_for(ms(10));
    let expected = |run: u64| {
        let line =
            format!("task \"print\" ({id}), run {run}: failed: refused: no paper; again in 10ms");
        ((Some(Arc::from("print")), Some(run), false), false, line)
    };
    assert_eq!(reports.entries(), [expected(1), expected(2)]);
}

/// The hook after a run gets the error.
#[test]
fn the_hook_after_a_run_is_given_the_error() {
    let outcomes = Log::new();
    let log = outcomes.clone();
    let (clock, executor) = manual_with(|builder| {
        builder.core_pool_size(1).after_execute(move |_, outcome| {
            log.push(outcome.map_err(|failure| failure.message().to_owned()));
        })
    });
    let body = || -> Result<(), Refused> { Err(Refused("no paper")) };
    let _future = executor.repeat(every(ms(10)), body).expect("accepted");
    clock.run_until_idle();
    assert_eq!(outcomes.entries(), [Err("refused: no paper".to_owned())]);
}

/// A conversion or a message of an error that panics fails the run, as a panic of the body does.
#[test]
fn an_error_that_panics_is_contained() {
    struct Explosive;
    impl From<Explosive> for Box<dyn Error + Send + Sync> {
        fn from(_: Explosive) -> Self {
            resume_unwind(Box::new("in the conversion"))
        }
    }
    let (clock, executor, _) = subject();
    let body = || -> Result<(), Explosive> { Err(Explosive) };
    let future = executor.repeat(every(ms(10)), body).expect("accepted");
    clock.run_until_idle();
    let error = future.join().expect_err("it has failed");
    assert_eq!(error.to_string(), "the task panicked: in the conversion");
    let next = executor.submit(|| 7).expect("the worker lives");
    clock.run_until_idle();
    assert_eq!(next.join().expect("it has run"), 7);
}

/// A value that comes when the task has been cancelled is dropped, and no waiter gets it.
#[test]
fn a_break_that_comes_too_late_is_dropped() {
    let (clock, executor, _) = subject();
    let (drops, handle) = (Drops::new(), Arc::new(OnceLock::<TaskHandle>::new()));
    let (mut value, own) = (Some(drops.token()), Arc::clone(&handle));
    let body = move || -> ControlFlow<Option<DropToken>> {
        assert!(own.get().expect("it was set before the run").cancel());
        Break(value.take())
    };
    let future = executor.repeat(fixed_delay(ms(10)).first_in(ms(10)), body).expect("accepted");
    handle.set(future.task_handle()).expect("it is set once");
    clock.run_for(ms(10));
    assert_eq!((future.state(), drops.count()), (TaskState::Cancelled, 1));
    assert!(future.join().expect_err("it was cancelled").is_cancelled());
    let now = executor.statistics();
    assert_eq!((now.cancelled, now.completed, now.runs), (1, 0, 1));
}

/// The Java verbs treat missed runs as before; `repeat` makes up for them by one
/// run.
#[test]
fn repeat_makes_up_for_missed_runs_by_one() {
    let counted = |policy: Option<MissedRuns>| {
        let (clock, executor, _) = subject();
        let runs = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&runs);
        let task = executor.task();
        let task = match policy {
            Some(policy) => task.missed_runs(policy),
            None => task,
        };
        let body = move || {
            counter.fetch_add(1, Ordering::Relaxed);
        };
        let _future = task.repeat(every(ms(10)).first_in(ms(10)), body).expect("accepted");
        clock.advance(ms(100));
        clock.run_until_idle();
        runs.load(Ordering::Relaxed)
    };
    assert_eq!(counted(None), 1);
    assert_eq!(counted(Some(MissedRuns::Burst)), 10);
    // 100 is on time; the nine before it are overdue.
    assert_eq!(counted(Some(MissedRuns::Skip)), 0, "the next one is at 110");
    assert_eq!(counted(Some(MissedRuns::Within(ms(35)))), 4, "70, 80, 90, 100");
}

/// The error of a task whose trigger has ended without a value says so each time.
#[test]
fn a_series_that_must_break_and_does_not_is_exhausted() {
    let (clock, executor, _) = subject();
    let body = || -> ControlFlow<u64> { Continue(()) };
    let future = executor.repeat(every(ms(10)).times(2), body).expect("accepted");
    clock.run_for(ms(50));
    assert_eq!(future.state(), TaskState::Completed);
    assert!(matches!(future.try_join(), Some(Err(TaskError::Exhausted))));
    let now = executor.statistics();
    assert_eq!((now.runs, now.completed, now.failed, now.pending), (2, 1, 0, 0));
}
