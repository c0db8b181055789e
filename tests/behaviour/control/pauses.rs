//! A pause is lateness: what falls due meanwhile is late, and the policy for missed runs says what
//! becomes of it.

use punctual::{
    ManualClock, MissedRuns, ScheduledThreadPoolExecutor as Executor, TaskState, current_task,
    gate::{Entry, from_fn},
    trigger::{at, every, on_demand},
};

use crate::support::{Counter, Log, manual, ms};

/// The runs of a task every ten milliseconds that is paused at 15 and resumed at 45, with how many each
/// stands for that were missed.
fn around_a_pause(missed: MissedRuns) -> Vec<(u64, u64)> {
    let (clock, executor) = manual(1);
    let runs = Log::new();
    let (own, own_runs) = (clock.clone(), runs.clone());
    let task =
        executor.task().missed_runs(missed).schedule_at_fixed_rate(ms(10), ms(10), move || {
            let now = u64::try_from(own.elapsed().as_millis()).expect("a small number");
            own_runs.push((now, current_task().expect("inside").missed_runs()));
        });
    let task = task.expect("accepted");
    clock.run_for(ms(15));
    assert!(task.pause());
    assert_eq!(task.state(), TaskState::Paused);
    clock.run_for(ms(30));
    assert!(task.resume());
    clock.run_for(ms(20));
    assert_eq!(task.state(), TaskState::Scheduled);
    runs.entries()
}

#[test]
fn each_policy_sees_a_pause_as_a_stall() {
    use MissedRuns::{Burst, Coalesce, Delay, Skip, Within};
    let made_up = [(10, 0), (45, 0), (45, 0), (45, 0), (50, 0), (60, 0)];
    assert_eq!(around_a_pause(Burst), made_up);
    assert_eq!(around_a_pause(Coalesce), [(10, 0), (45, 2), (50, 0), (60, 0)]);
    assert_eq!(around_a_pause(Skip), [(10, 0), (50, 3), (60, 0)], "20 is overdue");
    assert_eq!(around_a_pause(Delay), [(10, 0), (45, 2), (55, 0), (65, 0)]);
    assert_eq!(around_a_pause(Within(ms(5))), [(10, 0), (45, 2), (50, 0), (60, 0)]);
}

#[test]
fn a_moment_that_has_not_come_stands() {
    let (clock, executor) = manual(1);
    let once = executor.schedule(ms(10), || ()).expect("accepted");
    assert!(once.pause());
    assert!(!once.pause(), "it is paused already");
    clock.run_for(ms(5));
    assert!(once.resume());
    assert!(!once.resume(), "it is not paused");
    assert_eq!((once.delay(), once.state()), (Some(ms(5)), TaskState::Scheduled));
    clock.run_for(ms(5));
    assert!(once.is_done());
}

/// M141.
#[test]
fn a_one_shot_task_that_was_due_meanwhile_runs_at_once() {
    let (clock, executor) = manual(1);
    let once = executor.schedule(ms(10), || current_task().expect("inside").lateness());
    let once = once.expect("accepted");
    assert!(once.task_handle().pause());
    clock.run_for(ms(25));
    assert!(!once.is_done());
    assert_eq!(executor.pending_count(), 1);
    assert!(once.task_handle().resume());
    clock.run_until_idle();
    assert_eq!(once.join().expect("it has run"), ms(15));
}

/// M140.
#[test]
fn a_running_task_is_paused_after_its_run() {
    let (clock, executor) = manual(1);
    let (started, release) = (Counter::new(), Counter::new());
    let (is_started, gate) = (started.clone(), release.clone());
    let body = move || {
        is_started.add();
        gate.wait_for(is_started.get());
    };
    let once = executor.schedule(ms(5), body.clone()).expect("accepted");
    clock.advance(ms(5));
    started.wait_for(1);
    assert!(!once.pause(), "it will not run again");
    release.add();
    let series = executor.schedule_at_fixed_rate(ms(5), ms(10), body).expect("accepted");
    clock.advance(ms(5));
    started.wait_for(2);
    assert!(series.pause());
    assert_eq!(series.state(), TaskState::Running);
    release.add();
    clock.run_for(ms(25));
    assert_eq!((started.get(), series.state()), (2, TaskState::Paused));
    (0..3).for_each(|_| release.add());
    assert!(series.resume());
    clock.run_until_idle();
    assert_eq!(started.get(), 4, "two runs were missed, and are made up for");
}

#[test]
fn a_pause_can_be_taken_back_during_the_run() {
    let (clock, executor) = manual(1);
    let (started, release) = (Counter::new(), Counter::new());
    let (is_started, gate) = (started.clone(), release.clone());
    let series = executor.schedule_at_fixed_rate(ms(10), ms(10), move || {
        is_started.add();
        gate.wait_for(is_started.get());
    });
    let series = series.expect("accepted");
    clock.advance(ms(10));
    started.wait_for(1);
    assert!(series.pause() && series.resume() && !series.resume());
    (0..2).for_each(|_| release.add());
    clock.run_for(ms(10));
    assert_eq!((started.get(), series.state()), (2, TaskState::Scheduled));
}

/// Other requests change what the task comes back to, and it stays paused.
#[test]
fn a_paused_task_can_be_moved() {
    let (clock, executor) = manual(1);
    let (put_off, within, reset) = (
        executor.schedule(ms(10), || ()).expect("accepted"),
        executor.schedule(ms(100), || ()).expect("accepted"),
        executor.repeat(every(ms(100)).first_in(ms(100)), || ()).expect("accepted"),
    );
    assert!(put_off.pause() && within.pause() && reset.pause());
    assert!(put_off.reschedule(ms(60)));
    assert!(within.run_within(ms(50)));
    assert!(reset.set_trigger(every(ms(40)).first_in(ms(40))));
    clock.run_for(ms(30));
    assert_eq!(executor.statistics().runs, 0);
    assert!(put_off.resume() && within.resume() && reset.resume());
    assert_eq!(put_off.delay(), Some(ms(30)));
    assert_eq!(within.delay(), Some(ms(20)));
    assert_eq!(reset.delay(), Some(ms(10)));
}

/// A caller that asks for a run gets one, and the pause goes on.
#[test]
fn a_paused_task_runs_when_it_is_told() {
    let (clock, executor) = manual(1);
    let series = executor.schedule_at_fixed_rate(ms(10), ms(10), || ()).expect("accepted");
    let once = executor.schedule(ms(10), || ()).expect("accepted");
    let on_demand = executor.repeat(on_demand(), || ()).expect("accepted");
    assert!(series.pause() && once.pause() && on_demand.pause());
    clock.run_for(ms(25));
    assert!(series.run_now() && once.run_now() && on_demand.run_now());
    clock.run_until_idle();
    assert_eq!(executor.statistics().runs, 3);
    assert!(once.is_done());
    assert_eq!([series.state(), on_demand.state()], [TaskState::Paused; 2]);
    assert!(series.resume() && on_demand.resume());
    clock.run_until_idle();
    assert_eq!(executor.statistics().runs, 5, "the two runs that were missed, at 10 and at 20");
    assert_eq!((series.delay(), on_demand.delay()), (Some(ms(5)), None));
}

#[test]
fn a_time_limit_goes_on_counting() {
    let (clock, executor) = manual(1);
    let task = executor.task().timeout(ms(10)).schedule(ms(10), || ()).expect("accepted");
    assert!(task.pause());
    clock.run_for(ms(20));
    assert!(task.join().expect_err("its time is over").is_timeout());
    assert_eq!((task.state(), executor.pending_count()), (TaskState::Cancelled, 0));
}

#[test]
fn a_paused_task_can_be_cancelled_listed_and_drained() {
    let (_, executor) = manual(1);
    let paused = || {
        let task = executor.schedule(ms(10), || ()).expect("accepted");
        assert!(task.pause());
        task
    };
    let (cancelled, removed, listed) = (paused(), paused(), paused());
    assert!(cancelled.cancel() && executor.remove(&removed));
    assert_eq!(executor.pending_tasks().iter().map(|t| t.id()).collect::<Vec<_>>(), [listed.id()]);
    assert_eq!(executor.shutdown_now().count(), 1);
    assert!(executor.await_termination(crate::support::LONG).expect("not a worker"));
}

/// A shutdown waits for a paused task as for every delayed one, and its owner's drop does not.
#[test]
fn a_shutdown_waits_until_it_is_resumed() {
    let (clock, executor) = manual(1);
    let task = executor.schedule(ms(10), || 7).expect("accepted");
    assert!(task.pause());
    executor.shutdown();
    clock.run_for(ms(20));
    assert!(!executor.is_terminated());
    assert!(task.resume());
    clock.run_until_idle();
    assert_eq!(task.join().expect("it has run"), 7);
    assert!(executor.await_termination(crate::support::LONG).expect("not a worker"));

    let (_, executor): (ManualClock, Executor) = manual(1);
    let task = executor.schedule(ms(10), || ()).expect("accepted");
    assert!(task.pause());
    drop(executor);
    assert!(task.is_cancelled());
}

#[test]
fn the_policy_holds_for_every_trigger() {
    let (clock, executor) = manual(1);
    let moments = [10, 20, 30, 90].map(|millis| clock.now() + ms(millis));
    let task = executor.repeat(at(moments), || ()).expect("accepted");
    assert!(task.pause());
    clock.run_for(ms(50));
    assert!(task.resume());
    clock.run_until_idle();
    assert_eq!((executor.statistics().runs, task.delay()), (1, Some(ms(40))), "one for all three");
}

/// Where a request and the plan meet at one moment, the one is still the request and the other the plan.
#[test]
fn an_extra_run_of_a_paused_task_leaves_the_plan_whenever_it_is_asked_for() {
    for asked in [9, 10, 11] {
        let (clock, executor) = manual(1);
        let runs = Log::new();
        let (own, log) = (clock.clone(), runs.clone());
        let note = move || log.push(own.elapsed().as_millis());
        let task = executor.schedule_at_fixed_rate(ms(10), ms(10), note).expect("accepted");
        assert!(task.pause());
        clock.run_for(ms(asked));
        assert!(task.run_now());
        clock.run_until_idle();
        assert_eq!(runs.entries(), [u128::from(asked)]);
        clock.run_for(ms(25 - asked));
        assert!(task.resume());
        clock.run_for(ms(10));
        assert_eq!(runs.entries(), [u128::from(asked), 25, 25, 30], "asked for at {asked}");
    }
}

/// A gate puts the extra run off to the moment of the plan.
#[test]
fn an_extra_run_that_waits_until_the_plan_is_one_run_more() {
    let (clock, executor) = manual(1);
    let gate = from_fn(|tick| match (tick.run_number(), tick.attempt()) {
        (1, 1) => Entry::Again(ms(10)),
        _ => Entry::Run,
    });
    let (runs, task) = (Counter::new(), executor.task().gate(gate));
    let counted = runs.clone();
    let task = task.schedule_at_fixed_rate(ms(10), ms(10), move || counted.add());
    let task = task.expect("accepted");
    assert!(task.run_now());
    clock.run_for(ms(9));
    assert_eq!(runs.get(), 0);
    clock.run_for(ms(1));
    assert_eq!((runs.get(), task.delay()), (2, Some(ms(10))));
}
