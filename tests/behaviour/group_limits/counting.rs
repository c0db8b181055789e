//! The counts of a group.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use punctual::{
    CallerRunsPolicy, DiscardPolicy, FailurePolicy, RejectedTask, RejectionReason, Trigger,
    current_task,
    gate::{self, Entry},
    trigger::{Due, TriggerContext},
};

use super::support::{Busy, assert_sound};
use crate::support::{Counter, eventually, manual, manual_with, ms};

/// Each way in which a task ends is counted in one place.
#[test]
fn each_end_is_counted_once() {
    let (clock, executor) = manual(2);
    let group = executor.group("g").limit(1).build().unwrap();
    group.task().submit(|| 1).unwrap().join().unwrap();
    assert!(group.task().submit(|| panic!("no")).unwrap().join().is_err());
    let busy = Busy::start(&group);
    let (cancelled, waits) =
        (group.task().submit(|| ()).unwrap(), group.task().submit(|| ()).unwrap());
    cancelled.cancel();
    let now = group.statistics();
    assert_eq!((now.submitted, now.pending, now.active), (5, 1, 1));
    assert_eq!((now.completed, now.failed, now.cancelled), (1, 1, 1));
    busy.end();
    waits.join().unwrap();
    let failing = group.task().on_failure(FailurePolicy::resume());
    let failing = failing.schedule_at_fixed_rate(ms(10), ms(10), || panic!("again")).unwrap();
    clock.run_for(ms(30));
    failing.cancel();
    let now = group.statistics();
    assert_eq!((now.runs, now.failed_runs, now.completed, now.cancelled), (7, 4, 3, 2));
    assert_sound(now);
}

/// A trigger that answers once, and then panics; it is asked again when the wall clock is set back.
struct Touchy {
    answers: usize,
    on_wall: bool,
}

impl Trigger for Touchy {
    fn next(&mut self, context: &TriggerContext<'_>) -> Option<Due> {
        assert!(self.answers > 0, "on purpose");
        self.answers -= 1;
        Some(match self.on_wall {
            true => Due::Wall(context.after_wall() + ms(10)),
            false => Due::At(context.after() + ms(10)),
        })
    }

    fn is_asked_again(&mut self) -> bool {
        self.on_wall
    }
}

/// A trigger that panics ends its task as failed, also where no run has just ended: when a gate has skipped the
/// run, and when the wall clock was set back. The group counts that as a failed run, as the executor does, so it has
/// never a task that failed without one.
#[test]
fn a_trigger_that_panics_between_runs_is_a_failed_run() {
    for on_wall in [false, true] {
        let (clock, executor) = manual(1);
        let group = executor.group("g").limit(1).build().unwrap();
        let trigger = Touchy { answers: 1, on_wall };
        let series = match on_wall {
            true => group.task().repeat(trigger, || ()),
            false => group.task().gate(gate::from_fn(|_| Entry::Skip)).repeat(trigger, || ()),
        };
        if on_wall {
            clock.set_wall_time(clock.wall_time() - ms(1_000));
        }
        clock.run_for(ms(20));
        assert!(series.unwrap().join().unwrap_err().is_panic());
        let (now, all) = (group.statistics(), executor.statistics());
        assert_sound(now);
        assert_eq!((now.failed, now.failed_runs, now.runs), (1, 1, 1), "{now:?}");
        assert_eq!((all.failed, all.failed_runs, all.runs), (1, 1, 1), "{all:?}");
    }
}

/// A task has been counted when a thread that joins it goes on.
#[test]
fn a_join_finds_the_task_counted() {
    let (_clock, executor) = manual(2);
    let group = executor.group("g").limit(1).build().unwrap();
    for number in 1..200 {
        let task = group.task().submit(|| ()).unwrap();
        task.join().unwrap();
        let now = group.statistics();
        assert_eq!((now.completed, now.active, now.pending), (number, 0, 0));
    }
}

/// M180, M181: a task that is cancelled while it runs is active, and keeps its permit, until its body has returned.
#[test]
fn a_cancelled_body_keeps_its_permit() {
    let (_clock, executor) = manual(2);
    let group = executor.group("g").limit(1).build().unwrap();
    let busy = Busy::start(&group);
    assert!(busy.future.cancel());
    let (next, started) = Busy::submit(&group);
    eventually("it waits", || group.statistics().waiting == 1);
    let now = group.statistics();
    assert_eq!((now.active, now.cancelled, started.get()), (1, 0, 0));
    busy.let_go();
    started.wait_for(1);
    next.end();
    let now = group.statistics();
    assert_eq!((now.active, now.cancelled, now.completed), (0, 1, 1));
}

/// A periodic body that was cancelled keeps its permit as well.
#[test]
fn a_cancelled_periodic_body_keeps_its_permit() {
    let (_clock, executor) = manual(2);
    let group = executor.group("g").limit(1).build().unwrap();
    let (started, go_on) = (Counter::new(), Counter::new());
    let (starts, goes) = (started.clone(), go_on.clone());
    let rate = group.task().schedule_at_fixed_rate(ms(0), ms(10), move || {
        starts.add();
        goes.wait_for(1);
    });
    let rate = rate.unwrap();
    started.wait_for(1);
    assert!(rate.cancel());
    let (next, next_started) = Busy::submit(&group);
    eventually("it waits", || group.statistics().waiting == 1);
    assert_eq!((next_started.get(), group.statistics().active), (0, 1));
    go_on.add();
    next_started.wait_for(1);
    next.end();
    let now = group.statistics();
    assert_eq!((now.cancelled, now.completed, now.runs), (1, 1, 2));
}

/// The counts agree with each other whenever they are read.
#[test]
fn the_counts_agree_at_any_time() {
    let (_clock, executor) = manual(3);
    let group = executor.group("g").limit(2).build().unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                let now = group.statistics();
                assert_sound(now);
                assert!(now.active <= 2, "{now:?}");
            }
        });
        for round in 0..2_000 {
            let task = group.task().submit(move || assert_ne!(round % 7, 0)).unwrap();
            if round % 3 == 0 {
                task.cancel();
            }
        }
        eventually("all have ended", || {
            let now = group.statistics();
            now.pending == 0 && now.active == 0
        });
        is_over.store(true, Ordering::SeqCst);
    });
    let now = group.statistics();
    assert_eq!((now.submitted, now.completed + now.failed + now.cancelled), (2_000, 2_000));
}

/// A submission that is not admitted is no member, whatever becomes of it.
#[test]
fn a_rejected_task_is_no_member() {
    let bound = |builder: punctual::Builder| builder.core_pool_size(2).max_pending(1);
    let (_clock, executor) = manual_with(bound);
    let group = executor.group("g").limit(1).build().unwrap();
    let busy = Busy::start(&group);
    let waits = group.task().submit(|| ()).unwrap();
    eventually("it waits", || group.statistics().waiting == 1);
    let refused = group.task().submit(|| ()).unwrap_err();
    assert!(matches!(refused.reason(), RejectionReason::Saturated));
    refused.into_task().run();
    executor.set_rejected_execution_handler(DiscardPolicy);
    assert!(group.task().submit(|| ()).unwrap().join().is_err());
    executor.set_rejected_execution_handler(CallerRunsPolicy);
    let own = std::thread::current().id();
    let ran = group.task().submit(|| std::thread::current().id()).unwrap();
    assert_eq!(ran.join().unwrap(), own, "beside the limit");
    let (send, kept) = std::sync::mpsc::channel();
    executor.set_rejected_execution_handler(move |task: RejectedTask<'_>| {
        let (task, answer) = task.keep();
        send.send(task).unwrap();
        answer
    });
    let later = group.task().submit(|| 7).unwrap();
    kept.recv().unwrap().run();
    assert_eq!(later.join().unwrap(), 7);
    let now = group.statistics();
    assert_eq!((now.submitted, now.active, now.pending), (2, 1, 1));
    busy.end();
    waits.join().unwrap();
    assert_sound(group.statistics());
}

/// A submitter that waits for room holds up no member of its group.
#[test]
fn a_submitter_that_waits_for_room_is_not_in_the_order() {
    let (_clock, executor) = manual_with(|builder| {
        builder.max_pending(1).rejected_execution_handler(punctual::BlockPolicy::new(Duration::MAX))
    });
    let group = executor.group("g").limit(1).build().unwrap();
    let busy = Busy::start(&group);
    let first = group.task().submit(|| 1).unwrap();
    let submitter = group.clone();
    let second = thread::spawn(move || submitter.task().submit(|| 2).unwrap().join().unwrap());
    eventually("it is refused at first", || executor.statistics().rejected == 0);
    busy.end();
    assert_eq!(first.join().unwrap(), 1);
    assert_eq!(second.join().unwrap(), 2);
}

/// A run sees the same of itself as without a group.
#[test]
fn a_run_sees_its_plan() {
    let (clock, executor) = manual(2);
    let group = executor.group("g").limit(1).build().unwrap();
    let busy = Busy::start(&group);
    let planned = clock.now() + ms(10);
    let task = group.task().schedule(ms(10), || {
        let task = current_task().unwrap();
        (task.planned(), task.lateness(), task.run_number())
    });
    let task = task.unwrap();
    clock.advance(ms(17));
    eventually("it waits", || group.statistics().waiting == 1);
    assert_eq!(task.delay(), Some(Duration::ZERO));
    busy.end();
    assert_eq!(task.join().unwrap(), (Some(planned), ms(7), 1));
}
