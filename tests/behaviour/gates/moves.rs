//! Requests for a task while its gate has put it off, or is asked.

use std::sync::{Arc, OnceLock};

use punctual::{
    ManualClock, ScheduledFuture, ScheduledThreadPoolExecutor as Executor, TaskHandle, TaskState,
    gate::{Entry, from_fn},
    trigger::{every, on_demand},
};

use super::support::{Question, patient, script};
use crate::support::{Counter, Log, eventually, manual, ms};

/// A rate of 100 whose first tick is put off from 10 until 30.
fn put_off() -> (ManualClock, Executor, Log<Question>, ScheduledFuture<()>) {
    let (clock, executor) = manual(1);
    let asked = Log::new();
    let gate = patient(&clock, &asked, 1, ms(20));
    let rate = executor.task().gate(gate).schedule_at_fixed_rate(ms(10), ms(100), || ()).unwrap();
    clock.run_for(ms(15));
    assert_eq!((asked.entries(), rate.delay()), (vec![(10, 10, 1, 1)], Some(ms(15))));
    (clock, executor, asked, rate)
}

/// A request for another moment makes another tick.
#[test]
fn another_moment_is_another_tick() {
    let (clock, _executor, asked, rate) = put_off();
    assert!(rate.reschedule(ms(5)));
    clock.run_for(ms(5));
    assert_eq!(asked.entries().last(), Some(&(20, 20, 1, 1)));
    let (clock, _executor, asked, rate) = put_off();
    assert!(rate.run_within(ms(1)));
    clock.run_for(ms(1));
    assert_eq!(asked.entries().last(), Some(&(16, 16, 1, 1)));
    let (clock, _executor, asked, rate) = put_off();
    assert!(rate.set_trigger(every(ms(3)).first_in(ms(3))));
    clock.run_for(ms(3));
    assert_eq!(asked.entries().last(), Some(&(18, 18, 1, 1)));
}

/// A plan that is asked for is another tick, also if its moment is the one at which the gate was to be asked again, and
/// the grid goes on from there.
#[test]
fn another_plan_for_the_same_moment_is_another_tick() {
    let requests: [fn(&ScheduledFuture<()>); 3] = [
        |rate| assert!(rate.reschedule(ms(15))),
        |rate| assert!(rate.reschedule(ms(20)) && rate.run_within(ms(15))),
        |rate| assert!(rate.set_trigger(every(ms(100)).first_in(ms(15)))),
    ];
    for request in requests {
        let (clock, _executor, asked, rate) = put_off();
        request(&rate);
        clock.run_for(ms(15));
        assert_eq!(asked.entries()[1..], [(30, 30, 1, 1)]);
        clock.run_for(ms(20));
        assert_eq!(asked.entries()[2..], [(50, 30, 1, 2)]);
        assert_eq!(rate.delay(), Some(ms(80)), "one period after 30");
    }
}

/// The same for a request during the question that puts the tick off.
#[test]
fn a_request_during_the_question_may_name_the_same_moment() {
    let (clock, executor) = manual(1);
    let asked = Log::new();
    let own: Arc<OnceLock<TaskHandle>> = Arc::default();
    let task = Arc::clone(&own);
    let gate = script(&clock, &asked, move |tick| match tick.planned() {
        Some(planned) if planned == tick.clock().now() && tick.run_number() == 1 => {
            let is_first = task.get().is_some_and(|task| task.reschedule(ms(20)));
            if is_first { Entry::Again(ms(20)) } else { Entry::Run }
        }
        _ => Entry::Run,
    });
    let rate = executor.task().gate(gate).schedule_at_fixed_rate(ms(10), ms(100), || ()).unwrap();
    own.set(rate.task_handle()).unwrap();
    clock.run_for(ms(50));
    assert_eq!(asked.entries(), [(10, 10, 1, 1), (30, 30, 1, 1), (50, 50, 1, 1)]);
}

/// A request that changes nothing leaves the tick as it is.
#[test]
fn a_later_moment_at_the_latest_changes_nothing() {
    let (clock, _executor, asked, rate) = put_off();
    assert!(rate.run_within(ms(500)));
    clock.run_for(ms(15));
    assert_eq!(asked.entries().last(), Some(&(30, 10, 1, 2)));
}

/// A pause keeps the tick.
#[test]
fn a_pause_keeps_the_tick() {
    let (clock, executor, asked, rate) = put_off();
    assert!(rate.pause());
    clock.run_for(ms(50));
    assert_eq!((rate.state(), asked.entries().len()), (TaskState::Paused, 1));
    assert!(rate.resume());
    clock.run_until_idle();
    assert_eq!(asked.entries().last(), Some(&(65, 10, 1, 2)));
    assert_eq!(executor.statistics().runs, 1);
    clock.run_for(ms(45));
    assert_eq!(asked.entries().last(), Some(&(110, 110, 2, 1)));
}

/// A run that is asked for beside the schedule is a tick of its own, planned for the moment of the call. The
/// one that waits goes on to wait.
#[test]
fn a_run_beside_the_schedule_is_a_tick_of_its_own() {
    let (clock, executor, asked, rate) = put_off();
    assert!(rate.run_now());
    clock.run_until_idle();
    assert_eq!(asked.entries()[1..], [(15, 15, 1, 1)]);
    assert_eq!(rate.delay(), Some(ms(15)), "the tick that waits");
    clock.run_for(ms(15));
    assert_eq!(asked.entries()[2..], [(30, 10, 1, 2)]);
    clock.run_for(ms(5));
    assert_eq!(asked.entries()[3..], [(35, 15, 2, 2)]);
    clock.run_for(ms(75));
    assert_eq!(asked.entries()[4..], [(110, 110, 3, 1)]);
    assert_eq!(executor.statistics().runs, 2);
}

/// A run beside the schedule that is put off past the planned one is asked about after it.
#[test]
fn a_run_beside_the_schedule_may_be_put_off() {
    let (clock, executor) = manual(1);
    let asked = Log::new();
    let gate = script(&clock, &asked, |tick| match (tick.run_number(), tick.attempt()) {
        (1, 1) => Entry::Again(ms(30)),
        _ => Entry::Run,
    });
    let rate = executor.task().gate(gate).schedule_at_fixed_rate(ms(20), ms(20), || ()).unwrap();
    clock.run_for(ms(5));
    assert!(rate.run_now());
    clock.run_until_idle();
    assert_eq!(rate.delay(), Some(ms(15)), "the planned run");
    clock.run_for(ms(60));
    let extra = [(5, 5, 1, 1), (35, 5, 1, 2)];
    let planned = [(20, 20, 1, 1), (50, 20, 2, 2), (50, 40, 3, 1), (60, 60, 4, 1)];
    let asked = asked.entries();
    assert_eq!(asked, [extra[0], planned[0], extra[1], planned[1], planned[2], planned[3]]);
}

/// A skip of a run beside the schedule leaves the schedule as it is.
#[test]
fn a_run_beside_the_schedule_may_be_skipped() {
    let (clock, executor) = manual(1);
    let asked = Log::new();
    let gate = script(&clock, &asked, |_| Entry::Skip);
    let rate = executor.task().gate(gate).schedule_at_fixed_rate(ms(20), ms(20), || ()).unwrap();
    clock.run_for(ms(5));
    assert!(rate.run_now());
    clock.run_for(ms(35));
    assert_eq!(asked.entries(), [(5, 5, 1, 1), (20, 20, 1, 1), (40, 40, 1, 1)]);
    assert_eq!(executor.statistics().gate_skips, 3);
}

/// A task without a schedule has the tick that is asked for as its next.
#[test]
fn a_run_on_demand_is_put_off() {
    let (clock, executor) = manual(1);
    let asked = Log::new();
    let gate = patient(&clock, &asked, 1, ms(5));
    let task = executor.task().gate(gate).repeat(on_demand(), || ()).unwrap();
    clock.run_for(ms(3));
    assert!(task.run_now());
    clock.run_for(ms(10));
    assert_eq!(asked.entries(), [(3, 3, 1, 1), (8, 3, 1, 2)]);
    assert_eq!((executor.statistics().runs, task.delay()), (1, None));
}

/// A one-shot task that waits is moved as any other, and its time limit with it.
#[test]
fn a_one_shot_task_that_waits_is_moved() {
    let (clock, executor) = manual(1);
    let asked = Log::new();
    let gate = script(&clock, &asked, |tick| match tick.planned() {
        Some(planned) if planned == tick.clock().now() => Entry::Again(ms(30)),
        _ => Entry::Run,
    });
    let task = executor.task().gate(gate).timeout(ms(50)).submit(|| ()).unwrap();
    clock.run_for(ms(10));
    assert!(task.reschedule(ms(30)));
    clock.run_for(ms(60));
    assert_eq!(asked.entries(), [(0, 0, 1, 1), (40, 40, 1, 1), (70, 40, 1, 2)]);
    task.join().expect("its limit has moved to 90");
}

/// A change that is asked of a task while its gate is asked holds for the run after: a series is moved, and the tick
/// in question is given up if it was to wait.
#[test]
fn a_request_during_the_question_is_kept() {
    let (clock, executor) = manual(1);
    let (asked, asking, go_on) = (Log::new(), Counter::new(), Counter::new());
    let (begun, wait) = (asking.clone(), go_on.clone());
    let gate = script(&clock, &asked, move |tick| {
        begun.add();
        wait.wait_for(1);
        if tick.attempt() == 1 && tick.run_number() == 1 {
            Entry::Again(ms(20))
        } else {
            Entry::Run
        }
    });
    let rate = executor.task().gate(gate).schedule_at_fixed_rate(ms(0), ms(100), || ()).unwrap();
    asking.wait_for(1);
    assert_eq!(rate.state(), TaskState::Running);
    assert!(rate.reschedule(ms(7)));
    go_on.add();
    eventually("it waits", || rate.state() == TaskState::Scheduled && rate.delay().is_some());
    assert_eq!(rate.delay(), Some(ms(7)));
    clock.run_for(ms(27));
    assert_eq!(asked.entries(), [(0, 0, 1, 1), (7, 7, 1, 1), (27, 7, 1, 2)]);
}

/// A one-shot task whose gate is asked has been taken, so a request comes too late.
#[test]
fn a_request_for_a_one_shot_task_comes_too_late() {
    let (_, executor) = manual(1);
    let (asking, go_on) = (Counter::new(), Counter::new());
    let (begun, wait) = (asking.clone(), go_on.clone());
    let gate = from_fn(move |_| {
        begun.add();
        wait.wait_for(1);
        Entry::Run
    });
    let task = executor.task().gate(gate).submit(|| 7).unwrap();
    asking.wait_for(1);
    assert!(!task.reschedule(ms(7)) && !task.pause() && !task.run_now());
    go_on.add();
    assert_eq!(task.join().unwrap(), 7);
}
