//! An executor that its caller drives: whatever other threads do while the caller is about to sleep, it is woken.

use std::{sync::Arc, task::Waker, time::Duration};

use punctual::{CancelReason, DrivenExecutor, ScheduledThreadPoolExecutor, TaskError};
use shuttle::thread;

use crate::{
    support::{Count, Door, check, executor_with},
    timers::Signal,
};

const STEP: Duration = Duration::from_nanos(10);

fn driven() -> (DrivenExecutor, Arc<Signal>) {
    let clock = punctual::ManualClock::new();
    let builder = ScheduledThreadPoolExecutor::builder().clock(clock);
    let mut executor = builder.build_driven().expect("valid settings");
    let signal = Arc::<Signal>::default();
    executor.set_waker(Waker::from(Arc::clone(&signal)));
    (executor, signal)
}

/// An event loop on a clock that stands still, until `is_over`. It sleeps until it is woken, so a wake-up that is
/// lost ends the model. It asks before it sleeps, and not after it has said so.
fn drive(
    executor: &mut DrivenExecutor,
    signal: &Signal,
    is_over: impl Fn(&DrivenExecutor) -> bool,
) {
    loop {
        executor.run_due();
        let next = executor.time_until_next();
        if is_over(executor) {
            return;
        }
        if next != Some(Duration::ZERO) {
            signal.wait();
        }
    }
}

/// G58: threads submit while the caller is about to sleep, for ever or until a later moment.
#[test]
fn no_caller_sleeps_through_a_submission() {
    for has_later in [false, true] {
        check(move || {
            let (mut executor, signal) = driven();
            let later = has_later.then(|| executor.schedule(STEP, || ()).expect("it is open"));
            let runs = Count::default();
            let submitters = [1, 2].map(|tasks| {
                let (handle, runs) = (executor.handle(), runs.clone());
                thread::spawn(move || {
                    for _ in 0..tasks {
                        let runs = runs.clone();
                        let body = move || {
                            runs.add();
                        };
                        handle.execute(body).expect("it is open");
                    }
                })
            });
            drive(&mut executor, &signal, |_| runs.get() == 3);
            submitters.into_iter().for_each(|thread| thread.join().expect("nobody panics"));
            drop(later);
        });
    }
}

/// A task that is put off and brought forward again is due, and the caller learns of it.
#[test]
fn no_caller_sleeps_through_a_change() {
    check(|| {
        let (mut executor, signal) = driven();
        let task = executor.schedule(2 * STEP, || ()).expect("it is open");
        let moved = task.task_handle();
        let mover = thread::spawn(move || {
            assert!(moved.reschedule(3 * STEP) && moved.run_now());
        });
        drive(&mut executor, &signal, |_| task.is_done());
        mover.join().expect("nobody panics");
    });
}

/// A shutdown, and the cancellation of the last task after it, in any order with the calls: the executor
/// terminates, the caller learns of it, and what was admitted has run or was cancelled.
#[test]
fn the_caller_learns_of_the_end() {
    check(|| {
        let (mut executor, signal) = driven();
        let (handle, ends) = (executor.handle(), Count::default());
        let capture = ends.drop_of_one();
        let kept = executor.schedule(STEP, move || drop(capture)).expect("it is open");
        let stopper = thread::spawn(move || {
            handle.shutdown();
            assert!(kept.cancel());
        });
        let (handle, runs) = (executor.handle(), Count::default());
        let counted = runs.clone();
        let submitter = thread::spawn(move || {
            let task = handle.submit(move || counted.add());
            task.is_ok_and(|task| task.join().is_ok())
        });
        drive(&mut executor, &signal, |executor| executor.is_terminated());
        assert_eq!(ends.get(), 1, "no closure is left");
        stopper.join().expect("nobody panics");
        assert_eq!(runs.get(), usize::from(submitter.join().expect("nobody panics")));
    });
}

/// Two threads stop it at once, while the caller runs something.
#[test]
fn two_shutdowns_and_a_call_end_it_once() {
    check(|| {
        let ends = Count::default();
        let counted = ends.clone();
        let clock = punctual::ManualClock::new();
        let builder = ScheduledThreadPoolExecutor::builder().clock(clock);
        let builder = builder.terminated(move || {
            counted.add();
        });
        let mut executor = builder.build_driven().expect("valid settings");
        executor.execute(|| ()).expect("it is open");
        let stoppers = [true, false].map(|is_now| {
            let handle = executor.handle();
            thread::spawn(
                move || if is_now { drop(handle.shutdown_now()) } else { handle.shutdown() },
            )
        });
        executor.run_due();
        let end = executor.termination();
        executor.run_until(end);
        assert_eq!(ends.get(), 1);
        stoppers.into_iter().for_each(|thread| thread.join().expect("nobody panics"));
    });
}

/// The drop races a thread that submits and waits: that thread never waits for ever.
#[test]
fn nobody_waits_for_a_driver_that_is_gone() {
    check(|| {
        let (executor, _) = driven();
        let (handle, runs) = (executor.handle(), Count::default());
        let counted = runs.clone();
        let submitter = thread::spawn(move || match handle.submit(move || counted.add()) {
            Ok(task) => match task.join() {
                Ok(_) => 1,
                Err(TaskError::Cancelled(CancelReason::ExecutorDropped)) => 0,
                Err(error) => panic!("{error}"),
            },
            Err(_) => 0,
        });
        drop(executor);
        assert_eq!(runs.get(), submitter.join().expect("nobody panics"));
    });
}

/// A caller that waits for a task of another executor goes on when that has ended, and runs its own meanwhile.
#[test]
fn a_caller_waits_for_another_executor() {
    check(|| {
        let (mut executor, _) = driven();
        let (_, other) = executor_with(|builder| builder.core_pool_size(1));
        let (handle, door) = (executor.handle(), Door::default());
        let opened = door.clone();
        let task = other.submit(move || {
            handle.execute(move || opened.open()).expect("it is open");
            door.pass();
            7
        });
        assert_eq!(executor.run_until(task.expect("it is open")).expect("it has run"), 7);
        other.close().expect("not on a worker");
    });
}
