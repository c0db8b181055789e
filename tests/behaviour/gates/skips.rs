//! A run that is let through, and one that is skipped.

use std::{sync::Arc, time::Duration};

use punctual::{
    CancelReason, FailurePolicy, MissedRuns, RunGate, TaskState, Trigger, current_task,
    gate::{Entry, from_fn},
    trigger::{at, every, from_fn as trigger_fn},
};

use super::support::script;
use crate::support::{Drops, Log, assert_cancelled, hold, manual, manual_with, ms};

/// A gate is asked before each run, of any kind of task, and told about it.
#[test]
fn a_gate_is_told_which_run_it_is() {
    let (clock, executor) = manual(1);
    let told = Log::new();
    let (log, time) = (told.clone(), clock.clone());
    let gate: Arc<dyn RunGate> = Arc::new(from_fn(move |tick| {
        let inside = current_task().expect("the gate is asked within the task");
        assert_eq!((inside.id(), inside.run_number()), (tick.task_id(), tick.run_number()));
        assert_eq!(tick.clock().now(), time.now());
        assert_eq!(tick.planned_wall(), time.wall_time());
        assert!(!tick.is_on_wall());
        let name = tick.name().map(str::to_owned);
        log.push((tick.task_id(), name, tick.run_number(), tick.attempt(), tick.is_periodic()));
        Entry::Run
    }));
    let once = executor.task().name("once").gate(Arc::clone(&gate)).schedule(ms(5), || 7).unwrap();
    let rate = executor.task().gate(gate).schedule_at_fixed_rate(ms(10), ms(10), || ()).unwrap();
    clock.run_for(ms(20));
    assert_eq!(once.join().unwrap(), 7);
    let of_once = (once.id(), Some("once".to_owned()), 1, 1, false);
    let of_rate = |run| (rate.id(), None, run, 1, true);
    assert_eq!(told.entries(), [of_once, of_rate(1), of_rate(2)]);
    assert_eq!((executor.statistics().runs, executor.statistics().gate_skips), (3, 0));
}

/// G53, M161: a tick that is skipped is no run: the numbers of the runs go on without it, and it is counted
/// apart. A fixed rate stays on its grid.
#[test]
fn a_fixed_rate_goes_on_after_a_skip() {
    let (clock, executor) = manual(1);
    let (asked, runs) = (Log::new(), Log::new());
    let gate =
        script(
            &clock,
            &asked,
            |tick| {
                if tick.run_number() == 1 { Entry::Run } else { Entry::Skip }
            },
        );
    let log = runs.clone();
    let body = move || log.push(current_task().unwrap().run_number());
    let future = executor.task().gate(gate).schedule_at_fixed_rate(ms(10), ms(10), body).unwrap();
    clock.run_for(ms(45));
    assert_eq!(asked.entries(), [(10, 10, 1, 1), (20, 20, 2, 1), (30, 30, 2, 1), (40, 40, 2, 1)]);
    assert_eq!(runs.entries(), [1]);
    let seen = executor.statistics();
    assert_eq!((seen.runs, seen.failed_runs, seen.gate_skips, seen.missed_runs), (1, 0, 3, 0));
    assert_eq!((future.state(), future.delay()), (TaskState::Scheduled, Some(ms(5))));
}

/// After a skip a fixed delay counts from now.
#[test]
fn a_fixed_delay_goes_on_after_a_skip() {
    let (clock, executor) = manual(1);
    let asked = Log::new();
    let gate = script(&clock, &asked, |_| Entry::Skip);
    executor.task().gate(gate).schedule_with_fixed_delay(ms(5), ms(10), || ()).unwrap();
    clock.advance(ms(7));
    clock.run_until_idle();
    clock.run_for(ms(20));
    assert_eq!(asked.entries(), [(7, 5, 1, 1), (17, 17, 1, 1), (27, 27, 1, 1)]);
}

/// After a skip a trigger is asked with what it is asked after a run; only no run has been counted.
#[test]
fn a_trigger_is_asked_after_a_skip() {
    let (clock, executor) = manual(1);
    let (told, time) = (Log::new(), clock.clone());
    let log = told.clone();
    let begin = clock.now();
    let trigger = trigger_fn(move |last| {
        let since = |moment: std::time::Instant| moment.duration_since(begin);
        log.push((last.planned().map(since), last.ended().map(since), last.runs()));
        Some((time.now() + ms(10)).into())
    });
    let gate = from_fn(|_| Entry::Skip);
    executor.task().gate(gate).repeat(trigger, || ()).unwrap();
    clock.run_for(ms(25));
    let after = |millis| (Some(ms(millis)), Some(ms(millis)), 0);
    assert_eq!(told.entries(), [(None, None, 0), after(10), after(20)]);
}

/// `times` counts runs, so a tick that is skipped does not use one up.
#[test]
fn a_number_of_runs_does_not_include_skips() {
    let (clock, executor) = manual(1);
    let asked = Log::new();
    let gate = script(&clock, &asked, {
        let log = asked.clone();
        move |_| if log.entries().len() % 2 == 1 { Entry::Skip } else { Entry::Run }
    });
    let trigger = every(ms(10)).first_in(ms(10)).times(2);
    let series = executor.task().gate(gate).repeat(trigger, || ()).unwrap();
    clock.run_for(ms(100));
    assert_eq!(asked.entries(), [(10, 10, 1, 1), (20, 20, 1, 1), (30, 30, 2, 1), (40, 40, 2, 1)]);
    assert!(series.join().is_ok());
    assert_eq!((executor.statistics().runs, executor.statistics().gate_skips), (2, 2));
}

/// A series whose last moment is skipped has ended, without a result if only a run can return one.
#[test]
fn a_series_may_end_with_a_skip() {
    let (clock, executor) = manual(1);
    let moments = [clock.now() + ms(1), clock.now() + ms(2)];
    let series = executor.task().gate(from_fn(|_| Entry::Skip)).repeat(at(moments), || ()).unwrap();
    let searching = executor
        .task()
        .gate(from_fn(|_| Entry::Skip))
        .repeat(at(moments), || std::ops::ControlFlow::<u32>::Continue(()))
        .unwrap();
    clock.run_for(ms(10));
    assert!(series.join().is_ok());
    assert!(matches!(searching.join(), Err(punctual::TaskError::Exhausted)));
    let seen = executor.statistics();
    assert_eq!((seen.completed, seen.runs, seen.gate_skips), (2, 0, 4));
}

/// A one-shot task that is skipped has been cancelled, for a reason of its own. Its closure is dropped, and
/// no hook is called.
#[test]
fn a_one_shot_task_that_is_skipped_is_cancelled() {
    let hooks = Log::new();
    let (before, after) = (hooks.clone(), hooks.clone());
    let (clock, executor) = manual_with(|builder| {
        builder
            .before_execute(move |_| before.push("before"))
            .after_execute(move |_, _| after.push("after"))
    });
    let drops = Drops::new();
    let capture = drops.token();
    let body = move || hold(&capture);
    let task = executor.task().gate(from_fn(|_| Entry::Skip)).schedule(ms(5), body).unwrap();
    clock.run_for(ms(5));
    assert_cancelled(&task, CancelReason::SkippedByGate);
    assert_eq!(
        task.try_join().unwrap().unwrap_err().to_string(),
        "the task was cancelled: its gate skipped the run"
    );
    assert_eq!((drops.count(), hooks.entries().len()), (1, 0));
    let seen = executor.statistics();
    assert_eq!((seen.cancelled, seen.runs, seen.gate_skips, seen.active), (1, 0, 1, 0));
}

/// A skip is neither a success nor a failure: failures in a row are those of the runs.
#[test]
fn a_skip_does_not_end_a_row_of_failures() {
    let (clock, executor) = manual(1);
    let asked = Log::new();
    let gate = script(&clock, &asked, {
        let log = asked.clone();
        move |_| if log.entries().len() == 2 { Entry::Skip } else { Entry::Run }
    });
    let task = executor
        .task()
        .gate(gate)
        .on_failure(FailurePolicy::resume().stop_after(2))
        .schedule_at_fixed_rate(ms(10), ms(10), || panic!("no"))
        .unwrap();
    clock.run_for(ms(50));
    assert_eq!(asked.entries().len(), 3);
    assert_eq!(task.last_failure().map(|failed| failed.in_a_row()), Some(2));
    assert!(task.is_done());
}

/// The moments for which a gate is asked that skips all of them, if the clock leaps to 34, and how many
/// runs were missed.
fn asked_after_a_leap(policy: MissedRuns, is_trigger: bool) -> (Vec<u64>, u64) {
    let (clock, executor) = manual(1);
    let asked = Log::new();
    let task = executor.task().missed_runs(policy).gate(script(&clock, &asked, |_| Entry::Skip));
    if is_trigger {
        // Under jitter a rate is a trigger as others are.
        let trigger = every(ms(10)).first_in(ms(10)).jitter(Duration::ZERO).seed(1);
        task.repeat(trigger, || ()).unwrap();
    } else {
        task.schedule_at_fixed_rate(ms(10), ms(10), || ()).unwrap();
    }
    clock.run_until_idle();
    clock.advance(ms(34));
    clock.run_until_idle();
    clock.run_for(ms(11));
    let planned = asked.entries().into_iter().map(|(_, planned, ..)| planned);
    (planned.collect(), executor.statistics().missed_runs)
}

/// A skip that is late is followed by what follows a late run, and the runs that it stands for are counted.
#[test]
fn missed_runs_are_those_of_the_policy() {
    for is_trigger in [false, true] {
        let asked = |policy| asked_after_a_leap(policy, is_trigger);
        assert_eq!(asked(MissedRuns::Burst), (vec![10, 20, 30, 40], 0));
        assert_eq!(asked(MissedRuns::Coalesce), (vec![10, 40], 2));
        assert_eq!(asked(MissedRuns::Skip), (vec![40], 3), "10 is overdue");
        assert_eq!(asked(MissedRuns::Within(ms(5))), (vec![30, 40], 2));
    }
    assert_eq!(asked_after_a_leap(MissedRuns::Delay, false), (vec![10, 44], 2));
}
