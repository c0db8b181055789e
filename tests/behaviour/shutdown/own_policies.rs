//! The tasks that a shutdown keeps or cancels whatever the executor's policies are: calls with retries, and tasks and
//! groups with a policy of their own.

use std::{
    io,
    ops::ControlFlow,
    sync::{Arc, Mutex},
    time::Duration,
};

use punctual::{
    Backoff, CancelReason, Grace, Group, ScheduledFuture, ScheduledThreadPoolExecutor,
    ShutdownPolicy, TaskBuilder, trigger,
};

use crate::support::{HOUR, assert_cancelled, elsewhere, eventually, manual, manual_with};

const SECOND: Duration = Duration::from_secs(1);

/// The run with which a task ends.
const UNTIL: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// One-shot, due after a second.
    Once,
    /// A series that ends by itself with the third run.
    Series,
    /// A call that works at the third attempt.
    Call,
}

/// Submits a task that has ended after three seconds, if it is kept. Its runs are counted.
fn submit(
    task: TaskBuilder<'_>,
    kind: Kind,
    runs: Arc<Mutex<usize>>,
) -> ScheduledFuture<&'static str> {
    let count = move || {
        let mut runs = runs.lock().unwrap();
        *runs += 1;
        *runs
    };
    let task = match kind {
        Kind::Once => task.schedule(SECOND, move || {
            count();
            "done"
        }),
        Kind::Series => task.repeat(trigger::every(SECOND), move || {
            if count() < UNTIL { ControlFlow::Continue(()) } else { ControlFlow::Break("done") }
        }),
        Kind::Call => task.retry(Backoff::constant(SECOND), move || {
            if count() < UNTIL { Err(io::Error::other("busy")) } else { Ok("done") }
        }),
    };
    task.unwrap()
}

/// Which tasks a shutdown keeps, by the policies of the executor.
fn is_kept(kind: Kind, own: Option<ShutdownPolicy>, [delayed, periodic]: [bool; 2]) -> bool {
    match (own, kind) {
        (Some(policy), _) => policy == ShutdownPolicy::Keep,
        (None, Kind::Series) => periodic,
        (None, Kind::Once | Kind::Call) => delayed,
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Executor,
    Group,
}

/// Where the task has its policy from.
#[derive(Clone, Copy, Debug, PartialEq)]
enum From {
    Builder,
    Group,
    /// The group says the opposite.
    BuilderInGroup,
}

fn opposite(policy: ShutdownPolicy) -> ShutdownPolicy {
    match policy {
        ShutdownPolicy::Keep => ShutdownPolicy::Cancel,
        _ => ShutdownPolicy::Keep,
    }
}

fn group(executor: &ScheduledThreadPoolExecutor, from: From, own: Option<ShutdownPolicy>) -> Group {
    let group = executor.group("group");
    match (from, own) {
        (From::Group, Some(policy)) => group.on_shutdown(policy),
        (From::BuilderInGroup, Some(policy)) => group.on_shutdown(opposite(policy)),
        _ => group,
    }
    .build()
    .unwrap()
}

/// Every kind of task, with every policy from everywhere, in both shutdowns, before its first run and between two.
#[test]
fn each_task_is_kept_by_its_own_policy_first() {
    let policies = [None, Some(ShutdownPolicy::Keep), Some(ShutdownPolicy::Cancel)];
    for kind in [Kind::Once, Kind::Series, Kind::Call] {
        for own in policies {
            for from in [From::Builder, From::Group, From::BuilderInGroup] {
                for way in [Way::Executor, Way::Group] {
                    for (delayed, periodic) in [(true, true), (true, false), (false, true)] {
                        one(kind, own, from, way, [delayed, periodic]);
                    }
                }
            }
        }
    }
}

fn one(kind: Kind, own: Option<ShutdownPolicy>, from: From, way: Way, kept: [bool; 2]) {
    let what = format!("{kind:?} {own:?} {from:?} {way:?} {kept:?}");
    let (clock, executor) = manual_with(|builder| {
        builder
            .executes_existing_delayed_tasks_after_shutdown(kept[0])
            .continues_existing_periodic_tasks_after_shutdown(kept[1])
    });
    let (runs, group) = (Arc::default(), group(&executor, from, own));
    // The group alone makes it a member; the builder's policy is tried outside of it as well.
    let in_group = from != From::Builder || way == Way::Group;
    let mut task = if in_group { group.task() } else { executor.task() };
    if let (From::Builder | From::BuilderInGroup, Some(policy)) = (from, own) {
        task = task.on_shutdown(policy);
    }
    let task = submit(task, kind, Arc::clone(&runs));
    clock.run_until_idle();
    let ran_before = *runs.lock().unwrap();
    match way {
        Way::Executor => executor.shutdown(),
        Way::Group => group.shutdown(),
    }
    let is_kept = is_kept(kind, own, kept);
    assert_eq!(task.is_cancelled(), !is_kept, "{what}");
    clock.run_for(UNTIL as u32 * SECOND);
    if is_kept {
        assert_eq!(task.join().unwrap(), "done", "{what}");
    } else {
        assert_eq!(*runs.lock().unwrap(), ran_before, "{what}");
    }
    match way {
        Way::Executor => eventually(&what, || executor.is_terminated()),
        Way::Group => eventually(&what, || group.is_terminated()),
    }
}

/// An attempt that runs when the executor is shut down is followed by the next one.
#[test]
fn a_call_goes_on_that_runs_when_the_executor_is_shut_down() {
    let (clock, executor) = manual(1);
    let (handle, mut attempts) = (executor.handle(), 0);
    let call = executor.retry(Backoff::constant(SECOND), move || {
        handle.shutdown();
        attempts += 1;
        if attempts < UNTIL { Err(io::Error::other("busy")) } else { Ok(attempts) }
    });
    clock.run_for(UNTIL as u32 * SECOND);
    assert_eq!(call.unwrap().join().unwrap(), UNTIL);
    eventually("nothing is left", || executor.is_terminated());
}

/// A shutdown with a deadline waits for the call as long as its patience, and no longer.
#[test]
fn a_shutdown_with_a_deadline_has_patience_with_a_call() {
    let half = SECOND / 2;
    for (patience, is_in_time) in [(HOUR, true), (half, false)] {
        let (clock, executor) = manual(1);
        let call = submit(executor.task(), Kind::Call, Arc::default());
        clock.run_until_idle();
        let handle = executor.handle();
        let report =
            elsewhere(move || handle.shutdown_within(Grace::patience(patience).then(HOUR)));
        eventually("it waits", || {
            let next = clock.next_deadline();
            executor.is_shutdown() && (is_in_time || next == Some(half))
        });
        // No further than the end of the patience: the clock does not wait for the thread that acts on it.
        clock.run_for(if is_in_time { UNTIL as u32 * SECOND } else { half });
        let report = report.get().unwrap();
        assert!(report.is_terminated);
        let [ran, cancelled] = [report.ran.len(), report.cancelled.len()];
        if is_in_time {
            assert_eq!((call.join().unwrap(), ran, cancelled), ("done", 1, 0));
        } else {
            assert_cancelled(&call, CancelReason::ShutdownNow);
            assert_eq!((ran, cancelled), (0, 1));
        }
    }
}

/// A drop that stops the executor keeps what is due, and asks no policy.
#[test]
fn the_owners_drop_cancels_what_a_policy_keeps() {
    for kind in [Kind::Once, Kind::Series, Kind::Call] {
        let (clock, executor) = manual(1);
        let group = executor.group("kept").on_shutdown(ShutdownPolicy::Keep).build().unwrap();
        let tasks = [
            submit(executor.task().on_shutdown(ShutdownPolicy::Keep), kind, Arc::default()),
            submit(group.task(), kind, Arc::default()),
        ];
        clock.run_until_idle();
        drop(executor);
        tasks.iter().for_each(|task| assert_cancelled(task, CancelReason::ExecutorDropped));
    }
}
