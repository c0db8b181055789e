//! The `Err` of a task that runs once is its result. If nobody can take it any more it is reported, and what can be
//! taken is not.

use std::io;

use punctual::{
    FailureKind, FailureSource, Handle, ManualClock, ScheduledFuture,
    ScheduledThreadPoolExecutor as Executor, TaskError,
};

use crate::support::{Counter, Log, manual_with};

#[derive(Debug)]
struct Mine;

/// An executor whose handler records what it is told.
fn telling() -> (ManualClock, Executor, Log<String>) {
    let log = Log::new();
    let told = log.clone();
    let (clock, executor) = manual_with(|builder| {
        builder.failure_handler(move |report| {
            assert_eq!(report.source(), FailureSource::Task);
            assert_eq!(report.failure().kind(), FailureKind::Error);
            told.push(report.message().to_owned());
        })
    });
    (clock, executor, log)
}

/// Returns what the failure handler says of the result of a closure whose future is dropped, before the run or after it.
fn told_of<T: Send + Unpin + 'static>(body: fn() -> T) -> Vec<String> {
    let (clock, executor, log) = telling();
    drop(executor.submit(body).expect("accepted"));
    clock.run_until_idle();
    let before = log.entries();
    let (clock, executor, log) = telling();
    let future = executor.submit(body).expect("accepted");
    clock.run_until_idle();
    assert_eq!(log.entries(), [""; 0], "its owner may take it");
    drop(future);
    assert_eq!(log.entries(), before, "it is told in either order");
    before
}

#[test]
fn an_error_that_nobody_takes_is_told_with_its_text() {
    assert_eq!(told_of(|| Err::<(), _>(io::Error::other("disk full"))), ["disk full"]);
    assert_eq!(
        told_of(|| Err::<(), Box<dyn std::error::Error + Send + Sync>>("boxed".into())),
        ["boxed"]
    );
    assert_eq!(told_of(|| Err::<(), _>("owned".to_owned())), ["owned"]);
    assert_eq!(told_of(|| Err::<(), _>("lent")), ["lent"]);
}

/// Of an error of another type, and of one beside a value, the name of the type is told.
#[test]
fn an_error_of_any_type_is_told() {
    for told in [
        told_of(|| Err::<(), _>(Mine)),
        told_of(|| Err::<String, _>(Mine)),
        told_of(|| Err::<u64, _>(7_u8)),
        told_of(|| Err::<(), ()>(())),
        told_of(|| Err::<Box<u8>, Box<u8>>(Box::new(7))),
        told_of(|| Err::<Result<(), Mine>, _>(Mine)),
    ] {
        let [told] = &told[..] else { panic!("one report: {told:?}") };
        assert!(told.starts_with("the `Err` of a `core::result::Result<"), "{told}");
    }
}

#[test]
fn no_other_result_is_told() {
    let nothing = [""; 0];
    assert_eq!(told_of(|| ()), nothing);
    assert_eq!(told_of(|| Ok::<(), io::Error>(())), nothing);
    assert_eq!(told_of(|| Ok::<String, Mine>(String::new())), nothing);
    assert_eq!(told_of(|| Ok::<Box<u8>, ()>(Box::new(7))), nothing);
    assert_eq!(told_of(|| Ok::<Result<(), Mine>, Mine>(Err(Mine))), nothing);
    assert_eq!(told_of(|| Some(7)), nothing);
    assert_eq!(told_of(|| std::ops::ControlFlow::<u8>::Break(7)), nothing);
    assert_eq!(told_of(|| Some(Err::<(), _>(Mine))), nothing);
}

fn fails(executor: &Handle) -> ScheduledFuture<Result<(), &'static str>> {
    executor.submit(|| Err("no route")).expect("accepted")
}

#[test]
fn an_error_that_was_taken_is_not_told() {
    let (clock, executor, log) = telling();
    let (joined, awaited) = (fails(&executor), fails(&executor));
    clock.run_until_idle();
    assert!(matches!(joined.join(), Ok(Err("no route"))));
    assert!(matches!(joined.join(), Err(TaskError::ResultTaken)));
    drop(joined);
    assert!(matches!(smol::block_on(awaited), Ok(Err("no route"))));
    assert_eq!(log.entries(), [""; 0]);
    assert_eq!(executor.statistics().failed_runs, 0, "it is a result");
}

/// Whatever holds the future gives its result up: a guard, the pair of a handle.
#[test]
fn an_error_is_told_whoever_has_given_it_up() {
    let (clock, executor, log) = telling();
    let guard = fails(&executor).cancel_on_drop();
    let future = fails(&executor);
    let handle = future.task_handle();
    clock.run_until_idle();
    assert_eq!(log.entries(), [""; 0]);
    drop(guard);
    assert_eq!(log.entries().len(), 1);
    drop(future);
    assert_eq!(log.entries(), ["no route"; 2], "the handle keeps nothing that could be taken");
    assert!(handle.is_done());
}

/// A task that was cancelled while it ran has a future without a result.
#[test]
fn the_error_of_a_cancelled_task_is_told() {
    let (_clock, executor, log) = telling();
    let (started, cancelled) = (Counter::new(), Counter::new());
    let (starts, is_cancelled) = (started.clone(), cancelled.clone());
    let task = executor.submit(move || {
        starts.add();
        is_cancelled.wait_for(1);
        Err::<(), _>("half done")
    });
    started.wait_for(1);
    assert!(task.expect("accepted").cancel());
    cancelled.add();
    executor.close().expect("not on a worker");
    assert_eq!(log.entries(), ["half done"]);
}
