//! How it ends: the calls after a shutdown, the drop, and the handles that are left.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc,
    thread,
    time::Duration,
};

use punctual::{CancelReason, DropPolicy, Grace, ScheduledThreadPoolExecutor, current_task};

use super::{SECOND, Wakes, driven, driven_with};
use crate::{
    shutdown::many_drained::{assert_alone, fill},
    support::{
        Counter, Drops, Log, assert_cancelled, assert_terminated, elsewhere, eventually, hold,
        in_time, next_of, receive,
    },
};

/// The call that runs the last task is the one in which the executor terminates.
#[test]
fn further_calls_carry_out_a_shutdown() {
    let ended = Log::new();
    let told = ended.clone();
    let (clock, mut executor) = driven_with(|builder| builder.terminated(move || told.push(())));
    let beat = executor.schedule_at_fixed_rate(SECOND, SECOND, || ()).unwrap();
    let kept = [1, 2].map(|seconds| executor.schedule(seconds * SECOND, move || seconds).unwrap());
    executor.shutdown();
    assert_cancelled(&beat, CancelReason::Shutdown);
    assert!(executor.execute(|| ()).is_err());
    for step in [SECOND, Duration::ZERO] {
        assert!(!executor.is_terminated());
        assert_eq!(executor.time_until_next(), Some(SECOND));
        clock.advance(SECOND);
        assert_eq!(executor.run_due(), 1);
        assert_eq!(executor.time_until_next(), Some(step).filter(|step| !step.is_zero()));
    }
    assert_terminated(&executor);
    assert_eq!((executor.run_due(), ended.entries().len()), (0, 1));
    assert_eq!(kept.map(|task| task.try_join().unwrap().unwrap()), [1, 2]);
    drop(executor);
    assert_eq!(ended.entries().len(), 1);
}

/// With nothing left, no shutdown waits for the next call.
#[test]
fn with_nothing_pending_it_terminates_at_once() {
    for has_run in [false, true] {
        let (_, mut executor) = driven();
        if has_run {
            executor.execute(|| ()).unwrap();
            executor.run_due();
        }
        executor.shutdown();
        assert_terminated(&executor);
        assert_eq!((executor.time_until_next(), executor.run_due()), (None, 0));
    }
}

/// M202: the last task is cancelled after the shutdown: the next call brings the end, and the caller is told to
/// make it.
#[test]
fn a_task_that_is_cancelled_last_leaves_the_end_to_the_next_call() {
    let (_, mut executor) = driven();
    let wakes = Wakes::of(&mut executor);
    let task = executor.schedule(SECOND, || ()).unwrap();
    executor.shutdown();
    assert_eq!(executor.time_until_next(), Some(SECOND));
    assert!(task.cancel());
    assert!(wakes.count() > 0, "it is woken");
    assert_eq!(executor.time_until_next(), Some(Duration::ZERO));
    assert_eq!(executor.run_due(), 0);
    assert_terminated(&executor);
}

#[test]
fn it_is_stopped_now() {
    let (clock, mut executor) = driven();
    let tasks = [0, 1].map(|seconds| executor.schedule(seconds * SECOND, move || seconds).unwrap());
    clock.advance(SECOND);
    let drained: Vec<_> = executor.shutdown_now().collect();
    assert_eq!(drained.len(), 2);
    assert_terminated(&executor);
    assert_eq!(executor.run_due(), 0);
    drop(drained);
    tasks.iter().for_each(|task| assert_cancelled(task, CancelReason::ShutdownNow));
}

/// In one of its tasks: the other one that is due is given back, the token is raised, and the call that runs the
/// task ends the executor.
#[test]
fn a_task_stops_its_executor() {
    let (_, mut executor) = driven();
    let handle = executor.handle();
    let task = executor.submit(move || {
        let drained = handle.shutdown_now().count();
        (drained, current_task().unwrap().token().is_cancelled(), handle.is_terminated())
    });
    let other = executor.submit(|| ()).unwrap();
    assert_eq!(executor.run_due(), 1);
    assert_terminated(&executor);
    assert_eq!(task.unwrap().try_join().unwrap().unwrap(), (1, true, false));
    assert_cancelled(&other, CancelReason::ShutdownNow);
}

/// Another thread waits for the end, with a time limit, while this one drives.
#[test]
fn another_thread_stops_it() {
    let (clock, mut executor) = driven();
    let task = executor.schedule(SECOND, || ()).unwrap();
    let handle = executor.handle();
    let report = elsewhere(move || {
        handle.shutdown_within(Grace::patience(2 * SECOND).then(SECOND)).unwrap()
    });
    eventually("it is shut down", || executor.is_shutdown());
    clock.advance(SECOND);
    while !executor.is_terminated() {
        executor.run_due();
        thread::yield_now();
    }
    let report = report.get();
    assert!(report.is_terminated && task.is_done());
    assert_eq!((report.ran.len(), report.cancelled.len()), (1, 0));
}

/// Blocks in its drop, until it is told to go on.
struct Blocks(mpsc::Sender<()>, mpsc::Receiver<()>);

impl Drop for Blocks {
    fn drop(&mut self) {
        self.0.send(()).unwrap_or_default();
        next_of(&self.1, "it is let go").unwrap_or_default();
    }
}

/// Another thread shuts it down with a deadline, and gives up because a third one is not over: the drop waits for
/// nothing.
#[test]
fn a_drop_after_a_shutdown_that_gave_up_waits_for_nothing() {
    for policy in [DropPolicy::Stop, DropPolicy::Close] {
        let (open, gate) = mpsc::channel();
        let (begin, begun) = mpsc::channel();
        let blocks = Blocks(begin, gate);
        in_time("the drop", move || {
            let (_, executor) = driven_with(|builder| builder.on_drop(policy));
            let beat = executor.schedule_at_fixed_rate(SECOND, SECOND, move || hold(&blocks));
            let (first, second) = (executor.handle(), executor.handle());
            let cancels = elsewhere(move || first.shutdown());
            receive(&begun, "it cancels the series");
            let gives_up = move || second.shutdown_within(Grace::patience(Duration::ZERO));
            assert!(!elsewhere(gives_up).get().unwrap().is_terminated);
            drop(executor);
            open.send(()).expect("it is blocked still");
            cancels.get();
            assert!(beat.unwrap().is_cancelled());
        });
    }
}

/// The fate of a task that is due, and of one that is not, if the executor is dropped.
fn after_the_drop(policy: DropPolicy, is_panicking: bool) -> (bool, bool, Duration) {
    let (clock, executor) = driven_with(|builder| builder.on_drop(policy));
    clock.set_auto_advance(true);
    let (drops, handle) = (Drops::new(), executor.handle());
    let [due, later] = [0, 1].map(|seconds| {
        let capture = drops.token();
        executor.schedule(seconds * SECOND, move || hold(&capture)).unwrap()
    });
    let beat = executor.schedule_at_fixed_rate(Duration::ZERO, SECOND, || ()).unwrap();
    if is_panicking {
        let dropped = catch_unwind(AssertUnwindSafe(move || {
            let _executor = executor;
            panic!("with an executor");
        }));
        assert!(dropped.is_err());
    } else {
        drop(executor);
    }
    assert_terminated(&handle);
    assert_eq!(drops.count(), 2, "no closure is left");
    assert!(beat.is_cancelled());
    let ran = [&due, &later].map(|task| task.try_join().unwrap().is_ok());
    (ran[0], ran[1], clock.elapsed())
}

/// M203: the drop runs what is due and cancels the rest, or does what its policy says.
#[test]
fn the_drop_runs_what_is_due() {
    for policy in [DropPolicy::Stop, DropPolicy::ShutdownBackground] {
        assert_eq!(after_the_drop(policy, false), (true, false, Duration::ZERO));
    }
    assert_eq!(after_the_drop(DropPolicy::Close, false), (true, true, SECOND));
    assert_eq!(after_the_drop(DropPolicy::ShutdownNow, false), (false, false, Duration::ZERO));
    for policy in [DropPolicy::Stop, DropPolicy::Close] {
        assert_eq!(after_the_drop(policy, true), (false, false, Duration::ZERO));
    }
}

/// The drop of a task's capture, in the drop of the executor, may drive another executor, and panic.
#[test]
fn the_drop_contains_what_it_drops() {
    let (_, executor) = driven();
    let (_, inner) = driven();
    let handle = inner.handle();
    let ran = inner.submit(|| ()).unwrap();
    executor.execute(|| panic!("in the drop")).unwrap();
    let capture = crate::support::Bomb("a capture");
    executor.schedule(SECOND, move || hold(&capture)).unwrap();
    drop(executor);
    drop(inner);
    assert!(handle.is_terminated() && ran.is_done());
}

/// Threads that wait for a task, or for the end, do not wait for ever if the executor is dropped.
#[test]
fn nobody_waits_for_an_executor_that_is_gone() {
    let (_, executor) = driven();
    let handle = executor.handle();
    let (later, waiting) = (executor.schedule(SECOND, || ()).unwrap(), Counter::new());
    let begun = waiting.clone();
    let waiter = elsewhere(move || {
        begun.add();
        (later.join().is_err(), handle.await_termination(Duration::MAX))
    });
    waiting.wait_for(1);
    drop(executor);
    assert_eq!(waiter.get(), (true, Ok(true)));
}

/// It ends although its last hour was spent in a thread that has no thread-locals any more.
#[test]
fn it_may_be_dropped_by_a_thread_that_ends() {
    let ran = Counter::new();
    let task = ran.clone();
    in_time("a thread with an executor", move || {
        thread_local!(static KEPT: std::cell::RefCell<Option<punctual::DrivenExecutor>> = const { std::cell::RefCell::new(None) });
        let (_, executor) = driven();
        executor.execute(move || task.add()).unwrap();
        KEPT.with(|kept| *kept.borrow_mut() = Some(executor));
    });
    ran.wait_for(1);
}

thread_local!(static OWNER: std::cell::RefCell<Option<punctual::DrivenExecutor>> = const { std::cell::RefCell::new(None) });

/// Ends the executor that its thread has, when it is dropped.
struct DropsOwner(fn(punctual::DrivenExecutor));

impl Drop for DropsOwner {
    fn drop(&mut self) {
        OWNER.with(std::cell::RefCell::take).map(self.0).unwrap_or_default();
    }
}

/// A shutdown cancels a task whose capture drops the owner, in the same thread: the drop waits for nothing, because the
/// shutdown goes on after it. What is due runs, and nothing is left.
#[test]
fn the_drop_within_a_shutdown_waits_for_nothing() {
    for policy in [DropPolicy::Stop, DropPolicy::ShutdownBackground, DropPolicy::Close] {
        in_time("a shutdown that drops the owner", move || {
            let (_, executor) = driven_with(|builder| builder.on_drop(policy));
            let handle = executor.handle();
            let due = executor.submit(|| ()).unwrap();
            let later = executor.schedule(SECOND, || ()).unwrap();
            let owns = DropsOwner(drop);
            let beat = executor.schedule_at_fixed_rate(SECOND, SECOND, move || hold(&owns));
            OWNER.with(|owner| owner.replace(Some(executor)));
            handle.shutdown();
            assert_terminated(&handle);
            assert_eq!(due.try_join().map(|end| end.is_ok()), Some(true));
            assert!(later.is_cancelled() && beat.unwrap().is_cancelled());
        });
    }
}

/// A thread cancels a task whose capture ends the executor, and which is parked or not due yet: the end does not wait for its
/// entry.
#[test]
fn the_end_within_a_cancel_does_not_wait_for_the_task() {
    let ends: [(fn(punctual::DrivenExecutor), DropPolicy); 3] = [
        (drop, DropPolicy::Stop),
        (drop, DropPolicy::Close),
        (punctual::DrivenExecutor::close, DropPolicy::Stop),
    ];
    for (ends, policy) in ends {
        for (delay, pauses) in [(Duration::ZERO, true), (SECOND, false)] {
            in_time("a cancel that ends the executor", move || {
                let (_, executor) = driven_with(|builder| builder.on_drop(policy));
                let (handle, group) = (executor.handle(), executor.group("group").build().unwrap());
                let due = executor.submit(|| ()).unwrap();
                assert!(!pauses || group.pause());
                let owns = DropsOwner(ends);
                let task = group.task().schedule(delay, move || hold(&owns)).unwrap();
                OWNER.with(|owner| owner.replace(Some(executor)));
                assert_eq!(group.cancel_all(), 1);
                assert_terminated(&handle);
                assert_eq!(due.try_join().map(|end| end.is_ok()), Some(true));
                assert_cancelled(&task, CancelReason::Requested);
            });
        }
    }
}

/// The drop runs what is due, and so waits for the answer of a gate to a task that is.
#[test]
fn the_drop_waits_for_the_answer_of_a_gate() {
    let (_, mut executor) = driven();
    let (tell, replies) = std::sync::mpsc::channel();
    let gate = punctual::gate::from_fn(move |_| {
        let (reply, entry) = punctual::gate::later();
        tell.send(reply).unwrap();
        entry
    });
    let task = executor.task().gate(gate).submit(|| 4).unwrap();
    assert_eq!(executor.run_due(), 0);
    let (handle, reply) = (executor.handle(), replies.try_recv().unwrap());
    let answers = std::thread::spawn(move || {
        while !handle.is_shutdown() {
            std::thread::yield_now();
        }
        reply.send(punctual::gate::Entry::Run);
    });
    drop(executor);
    assert!(task.is_done(), "its run precedes the end of the drop");
    answers.join().unwrap();
}

/// G57: the drop of many drained tasks starts no thread, which two threads share otherwise.
#[test]
fn the_drop_of_many_drained_tasks_starts_no_thread() {
    assert_alone(|noting| {
        let executor = ScheduledThreadPoolExecutor::builder().build_driven().unwrap();
        fill(&executor, noting);
        let drained = executor.shutdown_now();
        // Its thread acts for it until it is dropped.
        drop(executor);
        drop(drained);
    });
}
