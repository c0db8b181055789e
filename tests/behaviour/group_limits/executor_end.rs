//! The fate of tasks that wait for their group when the executor is stopped.

use std::time::Duration;

use punctual::{CancelReason, DropPolicy, MissedRuns, ScheduledThreadPoolExecutor};

use super::support::{Busy, assert_sound, noting, until_held};
use crate::support::{
    LONG, Log, assert_cancelled, assert_terminated, elsewhere, eventually, in_time, manual,
    manual_with, ms,
};

/// M183: the drop of the owner runs what is due and waits for its group, in its turn, and cancels the rest.
#[test]
fn a_drop_runs_what_is_due() {
    let (clock, executor) = manual(3);
    let group = executor.group("g").limit(1).build().unwrap();
    let busy = Busy::start(&group);
    let log = Log::new();
    let due: Vec<_> = (0..10).map(|number| noting(&group, &log, ms(1), number)).collect();
    let later = noting(&group, &log, ms(100), 99);
    let ticks = log.clone();
    let rate = group.task().missed_runs(MissedRuns::Coalesce);
    let rate = rate.schedule_at_fixed_rate(ms(2), ms(1), move || ticks.push(50)).unwrap();
    clock.advance(ms(5));
    until_held(&group, 11);
    let handle = executor.handle();
    let dropped = elsewhere(move || drop(executor));
    eventually("it is dropped", || handle.is_shutdown());
    busy.end();
    dropped.get();
    let mut expected: Vec<_> = (0..10).collect();
    expected.push(50);
    assert_eq!(log.entries(), expected);
    assert!(due.iter().all(|task| task.join().is_ok()));
    assert_cancelled(&later, CancelReason::ExecutorDropped);
    assert_cancelled(&rate, CancelReason::ExecutorDropped);
    assert_terminated(&handle);
    assert!(group.is_terminated() && !group.is_shutdown());
    assert_sound(group.statistics());
}

/// M182: a task that has to wait only after the drop has begun runs as well.
#[test]
fn a_drop_runs_what_has_yet_to_wait() {
    let (clock, executor) = manual(2);
    let (group, other) =
        (executor.group("g").limit(1).build().unwrap(), executor.group("h").build().unwrap());
    let (busy, beside) = (Busy::start(&group), Busy::start(&other));
    let task = group.task().schedule(ms(1), || 7).unwrap();
    let later = executor.schedule(ms(100), || ()).unwrap();
    clock.advance(ms(5));
    let handle = executor.handle();
    let dropped = elsewhere(move || drop(executor));
    eventually("it is dropped", || later.is_done() && handle.is_shutdown());
    beside.end();
    eventually("it waits or has ended", || task.is_done() || group.statistics().waiting == 1);
    busy.end();
    assert_eq!(task.join().unwrap(), 7);
    dropped.get();
}

/// A task that was moved away while it waited is not due.
#[test]
fn a_drop_cancels_what_was_moved_away() {
    let (clock, executor) = manual(2);
    let group = executor.group("g").limit(1).build().unwrap();
    let busy = Busy::start(&group);
    let log = Log::new();
    let (moved, due) = (noting(&group, &log, ms(1), 1), noting(&group, &log, ms(1), 2));
    clock.advance(ms(5));
    until_held(&group, 2);
    assert!(moved.reschedule(ms(100)));
    let handle = executor.handle();
    let dropped = elsewhere(move || drop(executor));
    eventually("it is dropped", || moved.is_done());
    assert!(!due.pause() && !due.reschedule(ms(100)) && handle.is_shutdown());
    busy.end();
    dropped.get();
    assert_eq!(log.entries(), [2]);
    assert_cancelled(&moved, CancelReason::ExecutorDropped);
}

/// M185: after a shutdown nothing that waits for its group is put off.
#[test]
fn a_shutdown_lets_nothing_be_put_off() {
    let (clock, executor) = manual(2);
    let group = executor.group("g").limit(1).build().unwrap();
    let busy = Busy::start(&group);
    let task = group.task().schedule(ms(1), || 7).unwrap();
    clock.advance(ms(5));
    until_held(&group, 1);
    executor.shutdown();
    assert!(!task.reschedule(ms(100)) && !task.pause());
    assert!(!group.pause(), "nor is the group paused");
    busy.end();
    assert_eq!(task.join().unwrap(), 7);
    assert_eq!(executor.await_termination(LONG), Ok(true));
}

/// A shutdown that does not keep delayed tasks keeps those that are due and wait for their group.
#[test]
fn a_shutdown_keeps_what_is_due() {
    for keeps in [false, true] {
        let (clock, executor) = manual_with(|builder| {
            builder.core_pool_size(2).executes_existing_delayed_tasks_after_shutdown(keeps)
        });
        let group = executor.group("g").limit(1).build().unwrap();
        let busy = Busy::start(&group);
        let (due, later) = (
            group.task().schedule(ms(1), || 1).unwrap(),
            group.task().schedule(ms(20), || 2).unwrap(),
        );
        let rate = group.task().schedule_at_fixed_rate(ms(2), ms(1), || ()).unwrap();
        clock.advance(ms(5));
        until_held(&group, 2);
        executor.shutdown();
        assert_cancelled(&rate, CancelReason::Shutdown);
        busy.end();
        assert_eq!(due.join().unwrap(), 1);
        if keeps {
            clock.run_for(ms(20));
            assert_eq!(later.join().unwrap(), 2);
        } else {
            assert_cancelled(&later, CancelReason::Shutdown);
        }
        assert_eq!(executor.await_termination(LONG), Ok(true));
        assert!(group.is_terminated());
    }
}

/// `shutdown_now` gives back what waits for its group, with its plan; the limit does not hold for it any more.
#[test]
fn shutdown_now_gives_back_what_waits() {
    let (clock, executor) = manual(2);
    let group = executor.group("g").limit(1).build().unwrap();
    let busy = Busy::start(&group);
    let task = group.task().schedule(ms(1), || 7).unwrap();
    let planned = clock.now() + ms(1);
    clock.advance(ms(5));
    until_held(&group, 1);
    let drained: Vec<_> = executor.shutdown_now().collect();
    assert_eq!(
        (drained.len(), drained[0].deadline(), drained[0].is_due()),
        (1, Some(planned), true)
    );
    let now = group.statistics();
    assert_eq!((now.pending, now.active, now.cancelled, group.is_terminated()), (0, 1, 1, false));
    drained.into_iter().for_each(punctual::DrainedTask::run);
    assert_eq!(task.join().unwrap(), 7);
    busy.end();
    eventually("it ends", || group.is_terminated());
    assert_sound(group.statistics());
}

/// M184: a paused group keeps no executor from its end where a paused task would not.
#[test]
fn a_paused_group_is_as_good_as_paused_tasks() {
    for policy in [DropPolicy::Stop, DropPolicy::Close, DropPolicy::ShutdownNow] {
        for is_group in [false, true] {
            let (clock, executor) = manual_with(|builder| {
                let builder = builder.core_pool_size(2).on_drop(policy);
                builder.executes_existing_delayed_tasks_after_shutdown(false)
            });
            let group = executor.group("g").limit(1).build().unwrap();
            let tasks = [1, 1, 100].map(|delay| group.task().schedule(ms(delay), || ()).unwrap());
            if is_group {
                group.pause();
            } else {
                tasks.iter().for_each(|task| assert!(task.pause()));
            }
            clock.run_for(ms(5));
            let handle = executor.handle();
            in_time("the drop", move || drop(executor));
            eventually("it ends", || handle.is_terminated());
            assert!(tasks.iter().all(|task| task.join().is_err_and(|error| error.is_cancelled())));
            assert_eq!(group.statistics().cancelled, 3);
            assert!(group.is_terminated());
        }
    }
}

/// A due task of a paused group that no worker has looked at yet is ended as well.
#[test]
fn a_drop_ends_what_nobody_has_looked_at() {
    let (clock, executor) = manual(1);
    let (group, other) =
        (executor.group("g").build().unwrap(), executor.group("other").build().unwrap());
    let busy = Busy::start(&other);
    let task = group.task().schedule(ms(1), || ()).unwrap();
    group.pause();
    clock.advance(ms(5));
    let handle = executor.handle();
    let dropped = elsewhere(move || drop(executor));
    eventually("it is dropped", || handle.is_shutdown());
    busy.end();
    dropped.get();
    assert_cancelled(&task, CancelReason::ExecutorDropped);
}

/// A shutdown that keeps delayed tasks waits for a paused group until it is resumed, and does so for a paused
/// task.
#[test]
fn a_shutdown_waits_for_a_paused_group() {
    let (clock, executor) = manual(1);
    let group = executor.group("g").limit(1).build().unwrap();
    let log = Log::new();
    group.pause();
    noting(&group, &log, ms(1), 1);
    noting(&group, &log, ms(10), 2);
    clock.run_for(ms(5));
    executor.shutdown();
    clock.run_for(ms(50));
    assert!(!executor.is_terminated() && log.entries().is_empty());
    assert!(group.resume() && !group.pause());
    clock.run_until_idle();
    assert_eq!(log.entries(), [1, 2]);
    assert_eq!(executor.await_termination(LONG), Ok(true));
}

/// A policy that is changed after the shutdown ends what a paused group keeps.
#[test]
fn a_changed_policy_ends_a_paused_group() {
    let (clock, executor) = manual(1);
    let group = executor.group("g").build().unwrap();
    group.pause();
    let task = group.task().schedule(ms(1), || ()).unwrap();
    clock.run_for(ms(5));
    executor.shutdown();
    executor.set_executes_existing_delayed_tasks_after_shutdown(false);
    assert_cancelled(&task, CancelReason::Shutdown);
    assert_eq!(executor.await_termination(LONG), Ok(true));
}

/// A group can be made after the shutdown, and is over at once; a submission says that the executor was shut down.
#[test]
fn a_group_of_an_executor_that_was_shut_down() {
    let (_clock, executor) = manual(1);
    let before = executor.group("g").build().unwrap();
    executor.shutdown();
    let after = executor.group("h").build().unwrap();
    for group in [before, after] {
        let refused = group.task().submit(|| ()).unwrap_err();
        assert!(matches!(refused.reason(), punctual::RejectionReason::Shutdown));
        assert!(group.is_terminated() && !group.pause());
        assert_eq!(group.cancel_all(), 0);
    }
}

/// A capture that stops the executor and waits for its end when it is dropped.
struct Closes(Option<ScheduledThreadPoolExecutor>);

impl Drop for Closes {
    fn drop(&mut self) {
        self.0.take().expect("dropped once").close().expect("this is no worker");
    }
}

/// A thread that cancels a task drops its closure. If that waits for the end of the executor, it does not wait for the
/// entry of this task, which is parked because its group is paused.
#[test]
fn the_capture_of_a_parked_task_may_wait_for_the_end() {
    let (_clock, executor) =
        manual_with(|it| it.executes_existing_delayed_tasks_after_shutdown(false));
    let (handle, group) = (executor.handle(), executor.group("g").build().unwrap());
    group.pause();
    let owner = Closes(Some(executor));
    let task = group.task().submit(move || drop(owner)).unwrap();
    eventually("it is parked", || group.statistics().waiting == 1);
    assert!(in_time("the cancelling thread goes on", move || task.cancel()));
    assert_terminated(&handle);
}

/// The same, for a task that is due in an hour, and that the executor would keep until then.
#[test]
fn the_capture_of_a_task_that_is_kept_may_wait_for_the_end() {
    let (_clock, executor) = manual(1);
    let handle = executor.handle();
    let owner = Closes(Some(executor));
    let task = handle.schedule(Duration::from_secs(3_600), move || drop(owner)).unwrap();
    assert!(in_time("the cancelling thread goes on", move || task.cancel()));
    assert_terminated(&handle);
}

/// The same, for one that waits for its turn, with the owner dropped and not closed.
#[test]
fn the_capture_of_a_task_that_waits_its_turn_may_drop_the_owner() {
    let (_clock, executor) = manual(2);
    let (handle, group) = (executor.handle(), executor.group("g").limit(1).build().unwrap());
    let busy = Busy::start(&group);
    let task = group.task().submit(move || drop(executor)).unwrap();
    eventually("it is parked", || group.statistics().waiting == 1);
    let cancelling = elsewhere(move || task.cancel());
    eventually("the owner is being dropped", || handle.is_shutdown());
    busy.end();
    assert!(cancelling.get());
    assert_terminated(&handle);
}
