//! A shutdown with a deadline: which tasks it waits for, which it cancels, and what it reports.

use std::{
    sync::mpsc,
    time::{Duration, Instant},
};

use punctual::{
    CancelReason, DropPolicy, Grace, ManualClock, ScheduledThreadPoolExecutor, ShutdownReport,
    TaskSummary, Worker, WouldDeadlock, current_task, gate,
};

use crate::support::{
    Counter, HOUR, LONG, assert_cancelled, assert_shut_down, assert_terminated, elsewhere,
    eventually, in_time, manual, manual_with, ms, next_of, receive,
};

fn names(tasks: &[TaskSummary]) -> Vec<&str> {
    let mut names: Vec<_> = tasks.iter().map(|task| task.name().unwrap_or("nobody")).collect();
    names.sort_unstable();
    names
}

/// The names of the tasks that ran, that were cancelled, and that still run.
fn of(report: &ShutdownReport) -> [Vec<&str>; 3] {
    [names(&report.ran), names(&report.cancelled), names(&report.still_running)]
}

/// Calls it on a thread of its own, which the clock does not wait for.
fn shut_down(
    executor: ScheduledThreadPoolExecutor,
    patience: Duration,
    grace: Duration,
) -> crate::support::Elsewhere<(ScheduledThreadPoolExecutor, Result<ShutdownReport, WouldDeadlock>)>
{
    elsewhere(move || {
        let report = executor.shutdown_within(Grace::patience(patience).then(grace));
        (executor, report)
    })
}

/// Waits until a thread waits for exactly this moment, counted from now.
fn await_sleeper(clock: &ManualClock, until: Duration) {
    crate::support::eventually("somebody waits", || clock.next_deadline() == Some(until));
}

#[test]
fn an_idle_executor_ends_at_once() {
    for used in [false, true] {
        let (clock, executor) = manual(2);
        if used {
            executor.submit(|| ()).unwrap().join().unwrap();
            clock.run_until_idle();
        }
        let report =
            executor.shutdown_within(Grace::patience(LONG).then(LONG)).expect("no worker waits");
        assert!(report.is_terminated);
        assert_eq!(of(&report), [vec![], vec![], vec![] as Vec<&str>]);
        assert_terminated(&executor);
        assert_eq!(clock.elapsed(), Duration::ZERO);
    }
}

/// Tasks that the policies keep run if they fall due within the patience; the others are cancelled
/// at once, and reported.
#[test]
fn tasks_due_in_time_run() {
    let (clock, executor) = manual(1);
    let soon = executor.task().name("soon").schedule(ms(10), || "ran").unwrap();
    let panics = executor.task().name("panics").schedule(ms(10), || panic!("so what")).unwrap();
    let beat = executor.task().name("beat");
    let beat = beat.schedule_at_fixed_rate(ms(50), ms(50), || ()).unwrap();
    clock.run_until_idle();
    let call = shut_down(executor, ms(20), ms(20));
    crate::support::eventually("the policy has cancelled it", || beat.is_cancelled());
    await_sleeper(&clock, ms(10));
    clock.run_for(ms(10));
    let (executor, report) = call.get();
    let report = report.unwrap();
    assert!(report.is_terminated);
    assert_eq!(of(&report), [vec!["panics", "soon"], vec!["beat"], vec![]]);
    assert_eq!(soon.join().unwrap(), "ran");
    assert!(panics.join().unwrap_err().is_panic());
    assert_cancelled(&beat, CancelReason::Shutdown);
    assert_terminated(&executor);
}

/// When the patience is over, pending tasks are cancelled and running ones are asked to stop; a
/// task that checks its token ends within the grace.
#[test]
fn tasks_not_due_in_time_are_cancelled() {
    let (clock, executor) = manual(1);
    let started = Counter::new();
    let begins = started.clone();
    let obedient = executor.task().name("obedient").submit(move || {
        begins.add();
        current_task().unwrap().token().sleep(Duration::from_secs(3600)).is_err()
    });
    let late = executor.task().name("late").schedule(ms(60), || ()).unwrap();
    let unnamed = executor.schedule(ms(70), || ()).unwrap();
    started.wait_for(1);
    let call = shut_down(executor, ms(20), ms(20));
    await_sleeper(&clock, ms(20));
    assert!(!late.is_done());
    clock.advance(ms(20));
    let (_, report) = call.get();
    let report = report.unwrap();
    assert!(report.is_terminated);
    assert_eq!(of(&report), [vec!["obedient"], vec!["late", "nobody"], vec![]]);
    let ids: Vec<_> = report.cancelled.iter().map(TaskSummary::id).collect();
    assert!(ids.contains(&late.id()) && ids.contains(&unnamed.id()));
    assert!(obedient.unwrap().join().unwrap(), "its token was cancelled");
    assert_cancelled(&late, CancelReason::ShutdownNow);
}

/// A task that ignores its token is reported as still running, by name; the call waits no longer,
/// and the executor terminates when the task ends.
#[test]
fn tasks_that_do_not_stop_are_named() {
    let (clock, executor) = manual(2);
    let (open, gate) = mpsc::channel::<()>();
    let started = Counter::new();
    let begins = started.clone();
    let deaf = executor.task().name("deaf").submit(move || {
        begins.add();
        next_of(&gate, "it is let go").is_some()
    });
    started.wait_for(1);
    let call = shut_down(executor, ms(5), ms(7));
    await_sleeper(&clock, ms(5));
    clock.advance(ms(5));
    await_sleeper(&clock, ms(7));
    clock.advance(ms(7));
    let (executor, report) = call.get();
    let report = report.unwrap();
    assert!(!report.is_terminated);
    assert_eq!(of(&report), [vec![], vec![], vec!["deaf"]]);
    assert_eq!(report.still_running[0].id(), deaf.as_ref().unwrap().id());
    assert_shut_down(&executor);
    open.send(()).unwrap();
    assert!(deaf.unwrap().join().unwrap());
    assert_eq!(executor.await_termination(Duration::MAX), Ok(true));
    let again = executor.shutdown_within(Grace::patience(Duration::ZERO)).unwrap();
    assert_eq!(of(&again), [vec!["deaf"], vec![], vec![]], "what has ended since is added");
}

/// Without patience and grace the call does not wait: all pending tasks are cancelled.
#[test]
fn no_patience_is_no_wait() {
    let (clock, executor) = manual(1);
    let waits = executor.task().name("waits").schedule(LONG, || ()).unwrap();
    let report = executor.shutdown_within(Grace::patience(Duration::ZERO)).unwrap();
    assert_eq!(names(&report.cancelled), ["waits"]);
    assert!(waits.is_cancelled());
    assert_eq!(clock.elapsed(), Duration::ZERO);
    assert_eq!(executor.await_termination(LONG), Ok(true));
}

/// Tasks that another thread cancels meanwhile are reported as well.
#[test]
fn tasks_cancelled_by_others_meanwhile_are_reported() {
    let (clock, executor) = manual(1);
    let kept = executor.task().name("kept").schedule(ms(100), || ()).unwrap();
    let before = executor.task().name("before").schedule(ms(100), || ()).unwrap();
    before.cancel();
    let handle = executor.handle();
    let call = shut_down(executor, LONG, LONG);
    await_sleeper(&clock, ms(100));
    crate::support::eventually("it is shut down", || handle.is_shutdown());
    kept.cancel();
    let (_, report) = call.get();
    assert_eq!(of(&report.unwrap()), [vec![], vec!["kept"], vec![]]);
}

/// In one of the executor's own tasks the call would wait for itself: it shuts down, and returns an
/// error.
#[test]
fn a_task_cannot_wait_for_its_own_executor() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let handle = executor.handle();
    let outcome =
        executor.submit(move || handle.shutdown_within(Grace::patience(LONG).then(LONG))).unwrap();
    assert!(outcome.join().unwrap().is_err());
    assert_shut_down(&executor);
    assert_eq!(executor.await_termination(LONG), Ok(true));
}

/// A policy that changes while a shutdown waits takes effect at once.
#[test]
fn a_policy_that_changes_meanwhile_acts_at_once() {
    let (clock, executor) = manual(1);
    let handle = executor.handle();
    let kept = executor.task().name("kept").schedule(LONG, || ()).unwrap();
    let call = shut_down(executor, Duration::MAX, Duration::ZERO);
    crate::support::eventually("it is shut down", || handle.is_shutdown());
    assert!(!kept.is_done());
    handle.set_executes_existing_delayed_tasks_after_shutdown(false);
    let (_, report) = call.get();
    let report = report.unwrap();
    assert!(report.is_terminated);
    assert_eq!(of(&report), [vec![], vec!["kept"], vec![]]);
    assert_cancelled(&kept, CancelReason::Shutdown);
    assert_eq!(clock.elapsed(), Duration::ZERO);
}

/// After a shutdown that gave up the drop of the owner waits for nothing, whatever its policy; `close` does wait. The
/// executor terminates when its last task has ended.
#[test]
fn what_comes_after_a_shutdown_that_gave_up() {
    for policy in [DropPolicy::Stop, DropPolicy::Close, DropPolicy::ShutdownBackground] {
        for closes in [false, true] {
            let (_clock, executor) =
                manual_with(|builder| builder.core_pool_size(1).on_drop(policy));
            let (open, gate) = mpsc::channel::<()>();
            let started = Counter::new();
            let begins = started.clone();
            let deaf = executor.submit(move || {
                begins.add();
                next_of(&gate, "it is let go").is_some()
            });
            started.wait_for(1);
            let report = executor.shutdown_within(Grace::patience(Duration::ZERO)).unwrap();
            assert!(!report.is_terminated);
            let handle = executor.handle();
            if closes {
                let closed = elsewhere(move || executor.close());
                assert!(!handle.is_terminated());
                open.send(()).unwrap();
                closed.get().unwrap();
                assert!(handle.is_terminated());
            } else {
                in_time("the drop", move || drop(executor));
                assert_shut_down(&handle);
                assert!(!handle.is_terminated(), "{policy:?}");
                open.send(()).unwrap();
            }
            assert!(deaf.unwrap().join().unwrap());
            assert_eq!(handle.await_termination(Duration::MAX), Ok(true));
        }
    }
}

/// A shutdown whose limits were long enough has not given up: the drop of the owner joins the threads.
#[test]
fn after_a_shutdown_in_time_the_drop_joins() {
    struct Ends(Counter);
    impl Drop for Ends {
        fn drop(&mut self) {
            self.0.add();
        }
    }
    let ended = Counter::new();
    let factory_ended = ended.clone();
    let executor = ScheduledThreadPoolExecutor::builder()
        .core_pool_size(1)
        .thread_factory(move |worker: Worker| {
            let ends = Ends(factory_ended.clone());
            let work = move || {
                worker.run();
                drop(ends);
            };
            std::thread::Builder::new().spawn(work).map(Some)
        })
        .build()
        .unwrap();
    executor.submit(|| ()).unwrap().join().unwrap();
    assert!(executor.shutdown_within(Grace::patience(LONG).then(LONG)).unwrap().is_terminated);
    drop(executor);
    assert_eq!(ended.get(), 1);
}

/// An hour of patience is over when nothing can come in it: the only pending task is due later.
#[test]
fn what_cannot_come_is_not_waited_for() {
    for in_group in [false, true] {
        let executor = ScheduledThreadPoolExecutor::new(2);
        let (open, is_open) = mpsc::channel::<()>();
        let group = executor.group("all").build().unwrap();
        let task = |name: &'static str| group.task().name(name);
        let runs = task("runs").submit(move || _ = is_open.recv()).unwrap();
        let soon = task("soon").schedule(HOUR / 2, || "ran").unwrap();
        let late = task("late").schedule(2 * HOUR, || ()).unwrap();
        let (handle, stopped) = (executor.handle(), group.clone());
        let call = elsewhere(move || {
            let report = if in_group {
                group.shutdown_within(Grace::patience(HOUR).then(LONG))
            } else {
                executor.shutdown_within(Grace::patience(HOUR).then(LONG))
            };
            (executor, report)
        });
        eventually("it is shut down", || stopped.is_shutdown() || handle.is_shutdown());
        assert!(soon.run_now());
        assert_eq!(soon.join().unwrap(), "ran");
        assert!(!late.is_done(), "a body runs still");
        drop(open);
        let (_executor, report) = call.get();
        let report = report.unwrap();
        runs.join().unwrap();
        assert!(report.is_terminated);
        assert_eq!(of(&report), [vec!["runs", "soon"], vec!["late"], vec![]]);
        assert!(late.is_cancelled());
    }
}

/// The answer of a gate may come at any moment, so it is waited for.
#[test]
fn the_answer_of_a_gate_may_come() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let (tell, told) = mpsc::channel();
    let gate = gate::from_fn(move |_: &_| {
        let (reply, entry) = gate::later();
        tell.send(reply).unwrap();
        entry
    });
    let gated = executor.task().name("gated").gate(gate).submit(|| ()).unwrap();
    let reply = receive(&told, "the gate is asked");
    let patience = ms(50);
    let begun = Instant::now();
    let report = executor.shutdown_within(Grace::patience(patience).then(LONG)).unwrap();
    assert!(begun.elapsed() >= patience);
    assert_eq!(of(&report), [vec![], vec!["gated"], vec![]]);
    assert!(gated.is_cancelled());
    drop(reply);
}
