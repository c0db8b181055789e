//! Another schedule for a task that is alive, from outside and from inside of it.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, OnceLock},
};

use punctual::{
    MissedRuns, TaskContext, TaskHandle, TaskState, Trigger, current_task,
    trigger::{Due, at, every, fixed_delay, from_fn},
};

use crate::support::{Counter, DropToken, Drops, Log, manual, ms};

#[test]
fn another_trigger_takes_over_at_once() {
    let (clock, executor) = manual(1);
    let runs = Log::new();
    let (own, own_runs) = (clock.clone(), runs.clone());
    let task = executor.schedule_at_fixed_rate(ms(10), ms(10), move || {
        own_runs.push(u64::try_from(own.elapsed().as_millis()).expect("a small number"));
    });
    let task = task.expect("accepted");
    clock.run_for(ms(12));
    assert!(task.set_trigger(fixed_delay(ms(3)).first_in(ms(4))));
    clock.run_for(ms(8));
    assert!(task.task_handle().set_trigger(at([clock.now() + ms(5)])));
    clock.run_for(ms(50));
    assert_eq!(runs.entries(), [10, 16, 19, 25]);
    assert!(task.join().is_ok(), "that trigger had one run");
    assert!(!task.set_trigger(every(ms(1))));
}

#[test]
fn what_no_task_can_have_changes_nothing() {
    let (_, executor) = manual(1);
    let series = executor.schedule_at_fixed_rate(ms(10), ms(10), || ()).expect("accepted");
    let once = executor.schedule(ms(10), || ()).expect("accepted");
    assert!(!series.set_trigger(every(ms(0))));
    assert!(!series.set_trigger(fixed_delay(ms(0))));
    assert!(!series.set_trigger(at([Due::OnDemand; 0])));
    assert!(!once.set_trigger(every(ms(1))), "it runs once");
    let panics = from_fn(|_| panic!("no calendar"));
    assert!(catch_unwind(AssertUnwindSafe(|| series.set_trigger(panics))).is_err());
    assert_eq!([series.delay(), once.delay()], [Some(ms(10)); 2]);
}

/// A trigger that is the user's, and that is dropped once.
struct Every10(DropToken);

impl Trigger for Every10 {
    fn next(&mut self, last: &punctual::trigger::TriggerContext<'_>) -> Option<Due> {
        let _ = &self.0;
        Some(Due::At(last.after() + ms(10)))
    }
}

#[test]
fn each_trigger_is_dropped_when_it_is_replaced() {
    let (clock, executor) = manual(1);
    let drops = Drops::default();
    let (started, release) = (Counter::new(), Counter::new());
    let (is_started, gate) = (started.clone(), release.clone());
    let task = executor.repeat(Every10(drops.token()), move || {
        is_started.add();
        gate.wait_for(1);
    });
    let task = task.expect("accepted");
    assert!(task.set_trigger(Every10(drops.token())));
    assert_eq!(drops.count(), 1);
    clock.advance(ms(10));
    started.wait_for(1);
    assert!(task.set_trigger(Every10(drops.token())));
    assert_eq!(drops.count(), 1, "the worker has the one that is in use");
    assert!(task.set_trigger(Every10(drops.token())));
    assert_eq!(drops.count(), 2, "the last wish holds");
    release.add();
    clock.run_until_idle();
    assert_eq!(drops.count(), 3);
    assert_eq!(task.delay(), Some(ms(10)));
    assert!(task.cancel());
    assert_eq!(drops.count(), 4);
    assert!(!task.set_trigger(Every10(drops.token())));
    assert_eq!(drops.count(), 5);
}

#[test]
fn the_policy_for_missed_runs_is_kept() {
    for (policy, expected) in [(MissedRuns::Burst, 6), (MissedRuns::Coalesce, 2)] {
        let (clock, executor) = manual(1);
        let (started, release) = (Counter::new(), Counter::new());
        let (is_started, gate) = (started.clone(), release.clone());
        let task = executor.task().missed_runs(policy).repeat(Every10(Drops::default().token()), {
            move || {
                is_started.add();
                gate.wait_for(1);
            }
        });
        let task = task.expect("accepted");
        clock.advance(ms(10));
        started.wait_for(1);
        assert!(task.set_trigger(every(ms(10)).first_in(ms(10))));
        clock.advance(ms(50));
        release.add();
        clock.run_until_idle();
        assert_eq!(started.get(), expected, "{policy:?}");
    }
}

#[test]
fn a_task_moves_itself() {
    let (clock, executor) = manual(1);
    let runs = Log::new();
    let (own, own_runs) = (clock.clone(), runs.clone());
    let task = executor.schedule_at_fixed_rate(ms(10), ms(10), move || {
        own_runs.push(u64::try_from(own.elapsed().as_millis()).expect("a small number"));
        let task = current_task().expect("inside a task");
        match task.run_number() {
            1 => assert!(task.reschedule(ms(25))),
            2 => assert!(task.set_trigger(every(ms(2)).first_in(ms(1)))),
            5 => assert!(task.pause() && !task.pause()),
            _ => {}
        }
    });
    let task = task.expect("accepted");
    clock.run_for(ms(60));
    assert_eq!(runs.entries(), [10, 35, 36, 38, 40]);
    assert_eq!(task.state(), TaskState::Paused);
}

/// A task can use what it knows of itself in its run only.
#[test]
fn a_context_moves_nothing_outside_of_its_run() {
    let (clock, executor) = manual(1);
    let kept: Arc<OnceLock<TaskContext>> = Arc::default();
    let keep = Arc::clone(&kept);
    let series = executor.schedule_at_fixed_rate(ms(10), ms(10), move || {
        _ = keep.set(current_task().expect("inside a task"));
    });
    clock.run_for(ms(10));
    let context = kept.get().expect("it has run");
    assert!(!context.reschedule(ms(1)) && !context.pause() && !context.set_trigger(every(ms(1))));
    assert_eq!(series.expect("accepted").delay(), Some(ms(10)));
    let once = executor.submit(|| {
        let task = current_task().expect("inside a task");
        task.reschedule(ms(1)) || task.pause() || task.set_trigger(every(ms(1)))
    });
    assert!(!once.expect("accepted").join().expect("it has run"), "it runs once");
}

/// A task that has its own handle.
#[test]
fn a_task_asks_for_a_run_more_from_inside() {
    let (clock, executor) = manual(1);
    let own: Arc<OnceLock<TaskHandle>> = Arc::default();
    let handle = Arc::clone(&own);
    let task = executor.schedule_at_fixed_rate(ms(10), ms(10), move || {
        if current_task().expect("inside a task").run_number() < 3 {
            assert!(handle.get().expect("it is set").run_now());
        }
    });
    let task = task.expect("accepted");
    own.set(task.task_handle()).expect("it is not set");
    clock.run_for(ms(10));
    assert_eq!((executor.statistics().runs, task.delay()), (3, Some(ms(10))));
    assert!(task.cancel());
}
