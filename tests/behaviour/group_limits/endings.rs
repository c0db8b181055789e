//! Cancelling all tasks of a group, and the end of a group.

use std::{
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use punctual::{CancelReason, Grace, RejectionReason, WouldDeadlock, current_task};

use super::support::{Busy, assert_sound, noting, until_held};
use crate::support::{
    Counter, Drops, LONG, Log, assert_cancelled, elsewhere, eventually, hold, in_time, manual,
    manual_with, ms,
};

/// All that are there are cancelled, and the running ones are asked to stop. The group goes on.
#[test]
fn all_are_cancelled() {
    let (clock, executor) = manual(2);
    let group = executor.group("g").limit(1).build().unwrap();
    let (started, drops) = (Counter::new(), Drops::new());
    let starts = started.clone();
    let runs = group.task().submit(move || {
        starts.add();
        current_task().unwrap().token().wait();
    });
    let runs = runs.unwrap();
    started.wait_for(1);
    let pending: Vec<_> = (0..10)
        .map(|number| {
            let token = drops.token();
            group.task().schedule(ms(number), move || hold(&token)).unwrap()
        })
        .collect();
    let rate = group.task().schedule_at_fixed_rate(ms(1), ms(1), || ()).unwrap();
    clock.advance(ms(5));
    until_held(&group, 7);
    assert_eq!(group.cancel_all(), 12);
    assert_eq!((drops.count(), executor.pending_count()), (10, 0));
    pending.iter().for_each(|task| assert_cancelled(task, CancelReason::Requested));
    assert_cancelled(&rate, CancelReason::Requested);
    assert_cancelled(&runs, CancelReason::Requested);
    assert_eq!(group.cancel_all(), 0);
    assert_eq!(group.task().submit(|| 7).unwrap().join().unwrap(), 7);
    let now = group.statistics();
    assert_eq!((now.cancelled, now.completed), (12, 1));
    assert_sound(now);
}

/// No pending task starts while the others are cancelled one by one.
#[test]
fn none_starts_while_all_are_cancelled() {
    for _ in 0..200 {
        let (_clock, executor) = manual(2);
        let group = executor.group("g").limit(1).build().unwrap();
        let busy = Busy::start(&group);
        let runs = Counter::new();
        let tasks: Vec<_> = (0..20)
            .map(|_| {
                let counted = runs.clone();
                group.task().submit(move || counted.add()).unwrap()
            })
            .collect();
        let ended = group.clone();
        let cancelled = elsewhere(move || ended.cancel_all());
        // The permit is released while the others are being cancelled.
        busy.let_go();
        let count = cancelled.get();
        assert!(count + runs.get() >= 20, "those that were pending, and perhaps one that ran");
        let ran = runs.get();
        let cancelled = tasks.iter().filter(|task| task.join().is_err()).count();
        eventually("all bodies have returned", || group.statistics().active == 0);
        // One may have been running when they were cancelled.
        assert!((20..=21).contains(&(cancelled + runs.get())) && runs.get() <= ran + 1);
    }
}

/// A group that was shut down refuses tasks, and gives the closure back; what is there runs.
#[test]
fn a_shutdown_refuses_and_keeps() {
    let (clock, executor) = manual(1);
    let group = executor.group("g").build().unwrap();
    let log = Log::new();
    let later = noting(&group, &log, ms(10), 1);
    let rate = group.task().schedule_at_fixed_rate(ms(5), ms(5), || ()).unwrap();
    group.shutdown();
    group.shutdown();
    assert!(group.is_shutdown() && !group.is_terminated() && !executor.is_shutdown());
    assert_cancelled(&rate, CancelReason::GroupShutdown);
    let runs = Counter::new();
    let counted = runs.clone();
    let refused = group.task().submit(move || counted.add()).unwrap_err();
    assert!(matches!(refused.reason(), RejectionReason::GroupShutdown));
    assert!(refused.to_string().contains("its group was shut down"));
    refused.into_task().run();
    assert_eq!((runs.get(), group.statistics().rejected), (1, 1));
    let waiter = group.clone();
    let waits = elsewhere(move || waiter.await_termination(Duration::MAX));
    clock.run_for(ms(10));
    assert_eq!((log.entries(), waits.get()), (vec![1], Ok(true)));
    assert!(later.is_done() && group.is_terminated());
    assert_eq!(executor.submit(|| 7).unwrap().join().unwrap(), 7);
}

/// The executor's policies hold for a group that is shut down.
#[test]
fn the_policies_decide() {
    let (clock, executor) = manual_with(|builder| {
        builder
            .executes_existing_delayed_tasks_after_shutdown(false)
            .continues_existing_periodic_tasks_after_shutdown(true)
    });
    let group = executor.group("g").build().unwrap();
    let later = group.task().schedule(ms(10), || ()).unwrap();
    let rate = group.task().schedule_at_fixed_rate(ms(5), ms(5), || ()).unwrap();
    group.shutdown();
    assert_cancelled(&later, CancelReason::GroupShutdown);
    clock.run_for(ms(20));
    assert_eq!((group.statistics().runs, group.is_terminated()), (4, false));
    rate.cancel();
    assert!(group.is_terminated());
}

/// G64: a paused group that is shut down is resumed, and so comes to its end.
#[test]
fn a_paused_group_is_resumed_by_its_shutdown() {
    let (clock, executor) = manual(1);
    let group = executor.group("g").limit(1).build().unwrap();
    let log = Log::new();
    group.pause();
    for number in 0..3 {
        noting(&group, &log, ms(1), number);
    }
    clock.run_for(ms(5));
    assert_eq!(group.statistics().waiting, 3);
    group.shutdown();
    assert!(!group.is_paused() && !group.pause());
    in_time("the end", {
        let group = group.clone();
        move || assert_eq!(group.await_termination(Duration::MAX), Ok(true))
    });
    assert_eq!(log.entries(), [0, 1, 2]);
}

/// A periodic task that runs when its group is shut down finishes its run, and is not put back.
#[test]
fn a_shutdown_lets_a_periodic_run_finish() {
    let (_clock, executor) = manual(1);
    let group = executor.group("g").build().unwrap();
    let (started, go_on, drops) = (Counter::new(), Counter::new(), Drops::new());
    let (starts, goes, token) = (started.clone(), go_on.clone(), drops.token());
    let rate = group.task().schedule_at_fixed_rate(ms(0), ms(10), move || {
        starts.add();
        goes.wait_for(1);
        assert!(!current_task().unwrap().token().is_cancelled());
        hold(&token);
    });
    let rate = rate.unwrap();
    started.wait_for(1);
    group.shutdown();
    assert_cancelled(&rate, CancelReason::GroupShutdown);
    assert!(!group.is_terminated());
    go_on.add();
    assert_eq!(group.await_termination(LONG), Ok(true));
    assert_eq!((drops.count(), group.statistics().runs, group.statistics().failed_runs), (1, 1, 0));
}

/// A group that is shut down at once gives its pending tasks back, and asks the others to stop.
#[test]
fn a_group_is_shut_down_at_once() {
    let (clock, executor) = manual(2);
    let group = executor.group("g").limit(1).build().unwrap();
    let started = Counter::new();
    let starts = started.clone();
    let runs = group.task().submit(move || {
        starts.add();
        current_task().unwrap().token().wait();
        "stopped"
    });
    let runs = runs.unwrap();
    started.wait_for(1);
    let waits = executor.task().name("waits").group(&group).schedule(ms(1), || 1).unwrap();
    let later = group.task().schedule(ms(100), || 2).unwrap();
    let planned = clock.now() + ms(1);
    clock.advance(ms(5));
    until_held(&group, 1);
    let mut drained = group.shutdown_now().into_iter();
    assert_eq!(drained.len(), 2);
    let first = drained.next().unwrap();
    assert_eq!((first.name().as_deref(), first.deadline()), (Some("waits"), Some(planned)));
    assert!(first.is_due());
    first.run();
    assert_eq!(waits.join().unwrap(), 1);
    drop(drained);
    assert_cancelled(&later, CancelReason::GroupShutdown);
    assert_eq!(runs.join().unwrap(), "stopped");
    assert_eq!(group.await_termination(LONG), Ok(true));
    let now = group.statistics();
    assert_eq!((now.completed, now.cancelled, executor.pending_count()), (1, 2, 0));
    assert_sound(now);
    assert_eq!(executor.submit(|| 7).unwrap().join().unwrap(), 7);
}

/// A worker may wait for a task that was given back: its holder may run it.
#[test]
fn a_worker_may_wait_for_what_was_given_back() {
    let (_clock, executor) = manual(1);
    let group = executor.group("g").build().unwrap();
    let later = group.task().schedule(ms(100), || 7).unwrap();
    let mut drained = group.shutdown_now();
    let started = Counter::new();
    let tells = started.clone();
    let joins = executor.submit(move || {
        tells.add();
        later.join()
    });
    let joins = joins.unwrap();
    started.wait_for(1);
    drained.pop().unwrap().run();
    assert_eq!(joins.join().unwrap().unwrap(), 7);
}

/// A shutdown with a deadline reports what ran, what was cancelled, and what does not stop.
#[test]
fn a_shutdown_with_a_deadline() {
    let (clock, executor) = manual(2);
    let group = executor.group("g").limit(1).build().unwrap();
    let named = |name: &str| executor.task().name(name.to_owned()).group(&group);
    named("in time").schedule(ms(1), || ()).unwrap();
    named("series").schedule_at_fixed_rate(ms(1), ms(1), || ()).unwrap();
    named("late").schedule(ms(100), || ()).unwrap();
    let (started, go_on) = (Counter::new(), Counter::new());
    let (starts, goes) = (started.clone(), go_on.clone());
    named("stubborn")
        .schedule(ms(2), move || {
            starts.add();
            goes.wait_for(1);
        })
        .unwrap();
    let stopping = group.clone();
    let report = elsewhere(move || stopping.shutdown_within(Grace::patience(ms(10)).then(ms(10))));
    eventually("it is shut down", || group.is_shutdown());
    clock.run_for(ms(1));
    clock.advance(ms(1));
    started.wait_for(1);
    // As long as the other thread may not have read the clock yet.
    eventually("the time of the shutdown is up", || {
        clock.advance(ms(10));
        report.has_ended()
    });
    let report = report.get().unwrap();
    let names = |list: &[punctual::TaskSummary]| {
        list.iter().map(|task| task.name().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    assert!(!report.is_terminated && !group.is_terminated());
    assert_eq!(names(&report.ran), ["in time"]);
    let mut cancelled = names(&report.cancelled);
    cancelled.sort();
    assert_eq!(cancelled, ["late", "series"]);
    assert_eq!(names(&report.still_running), ["stubborn"]);
    go_on.add();
    assert_eq!(group.await_termination(LONG), Ok(true));
    let again = group.shutdown_within(Grace::patience(ms(1)).then(ms(1))).unwrap();
    assert!(again.is_terminated && again.still_running.is_empty());
}

/// A wait that would be for the calling task is refused.
#[test]
fn a_task_does_not_wait_for_its_group() {
    let (_clock, executor) = manual(1);
    let group = executor.group("g").build().unwrap();
    let own = group.clone();
    let refused = group.task().submit(move || own.await_termination(ms(1))).unwrap();
    assert!(matches!(refused.join().unwrap(), Err(WouldDeadlock { .. })));
}

/// A wait that takes too long ends.
#[test]
fn a_wait_for_the_end_has_a_limit() {
    let (clock, executor) = manual(1);
    let group = executor.group("g").build().unwrap();
    clock.set_auto_advance(true);
    assert_eq!(group.await_termination(ms(5)), Ok(false));
    assert!(clock.elapsed() >= ms(5));
    group.shutdown();
    assert!(group.is_terminated(), "there was nothing in it");
    assert_eq!(group.await_termination(Duration::ZERO), Ok(true));
}

struct Woken(Counter);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.add();
    }
}

/// The end can be awaited, by several, and one may give up.
#[test]
fn the_end_is_awaited() {
    let (clock, executor) = manual(1);
    let group = executor.group("g").build().unwrap();
    let last = group.task().schedule(ms(10), || ()).unwrap();
    let wakes = Counter::new();
    let waker = Waker::from(Arc::new(Woken(wakes.clone())));
    let mut context = Context::from_waker(&waker);
    let mut end = pin!(group.termination());
    {
        let mut given_up = pin!(group.termination());
        assert_eq!(given_up.as_mut().poll(&mut context), Poll::Pending);
        assert_eq!(end.as_mut().poll(&mut context), Poll::Pending);
    }
    group.shutdown();
    clock.run_for(ms(10));
    last.join().unwrap();
    wakes.wait_for(1);
    assert_eq!(end.as_mut().poll(&mut context), Poll::Ready(()));
    assert!(format!("{end:?}").contains("GroupTermination { group: Group"));
}

/// G64: handles and tasks of a group are dropped in any order.
#[test]
fn dropped_in_any_order() {
    for order in 0..6 {
        let (clock, executor) = manual(1);
        let group = executor.group("g").limit(1).build().unwrap();
        let log = Log::new();
        let future = noting(&group, &log, ms(1), 1);
        noting(&group, &log, ms(1), 2);
        if order % 2 == 0 {
            group.pause();
            clock.run_for(ms(1));
            assert_eq!(group.statistics().waiting, 2);
            group.resume();
        }
        match order / 2 {
            0 => {
                drop(group);
                drop(future);
                clock.run_for(ms(1));
                assert_eq!(log.entries(), [1, 2]);
            }
            1 => {
                drop(executor);
                assert!(group.statistics().pending == 0);
                drop((future, group));
            }
            _ => {
                drop((future, executor));
                assert!(group.task().submit(|| ()).is_err());
                drop(group);
            }
        }
    }
}
