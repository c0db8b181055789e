//! Tasks that run once, at a moment of the wall clock.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use punctual::{FailurePolicy, MissedRuns, TaskError, TaskHandle, trigger::every};

use crate::support::{HOUR, Log, manual, manual_with};

/// How long after the wall clock was set a task has followed it.
const LOOK: Duration = Duration::from_secs(30);

#[test]
fn it_runs_when_the_wall_clock_shows_its_moment() {
    let (clock, executor) = manual(1);
    let midnight = clock.wall_time();
    let task = executor.schedule_at(midnight + HOUR, || 7).expect("accepted");
    assert_eq!(task.delay(), Some(HOUR));
    clock.set_wall_time(midnight - HOUR);
    clock.run_for(HOUR + LOOK);
    assert!(!task.is_done());
    clock.set_wall_time(midnight + HOUR);
    clock.run_for(LOOK);
    assert_eq!(task.join().expect("it has run"), 7);
    let passed = executor.schedule_at(midnight, || 8).expect("accepted");
    clock.run_until_idle();
    assert_eq!(passed.join().expect("it has run"), 8);
}

/// It is one task and no series: a shutdown keeps it as it keeps what is delayed, no policy lets it go on after its run, and
/// an `Err` that nobody can take is reported.
#[test]
fn it_is_no_series() {
    let failures = Log::new();
    let told = failures.clone();
    let (clock, executor) = manual_with(|builder| {
        builder.failure_handler(move |report| told.push(report.message().to_owned()))
    });
    let moment = clock.wall_time() + HOUR;
    let kept = executor.schedule_at(moment, || 7).expect("accepted");
    let resumed = executor.task().on_failure(FailurePolicy::resume());
    let fails = resumed.schedule_at(moment, || -> u32 { panic!("its only run") });
    let fails = fails.expect("accepted");
    drop(executor.schedule_at(moment, || Err::<(), _>("an error")).expect("accepted"));
    executor.shutdown();
    clock.run_for(HOUR);
    assert_eq!(kept.join().expect("it is kept"), 7);
    assert!(matches!(fails.join(), Err(TaskError::Failed(_))));
    executor.close().expect("no worker");
    assert_eq!(failures.entries(), ["its only run", "an error"]);
}

/// A starting deadline is for series. It used to leave the task out, which then had no value.
#[test]
fn it_runs_however_late_it_is() {
    for policy in [MissedRuns::Skip, MissedRuns::Within(LOOK)] {
        let (clock, executor) = manual(1);
        let task = executor.task().missed_runs(policy);
        let task = task.schedule_at(clock.wall_time() + HOUR, || 7).expect("accepted");
        clock.advance(2 * HOUR);
        assert_eq!(task.join().expect("it has run"), 7);
    }
}

/// No other run is to come, and no other trigger: a request says so that comes when its closure is called, and a pause ends
/// when the run is asked for. All were taken for those to a series.
#[test]
fn a_request_is_one_to_a_task_that_runs_once() {
    let (clock, executor) = manual(1);
    let itself = Arc::new(OnceLock::<TaskHandle>::new());
    let own = Arc::clone(&itself);
    let body = move || {
        let own = own.get().expect("it is set before");
        [own.reschedule(HOUR), own.run_within(HOUR), own.run_now(), own.pause(), own.resume()]
    };
    let task = executor.schedule_at(clock.wall_time() + HOUR, body).expect("accepted");
    itself.set(task.task_handle()).expect("it is set once");
    assert!(!task.set_trigger(every(HOUR)));
    assert!(task.pause() && task.run_now());
    assert!(!task.resume(), "it is not paused any more");
    assert_eq!(task.join().expect("it has run"), [false; 5]);
}
