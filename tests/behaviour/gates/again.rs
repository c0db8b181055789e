//! A run that is put off: the task waits in the queue, and its tick stays what it is.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use punctual::{
    CancelReason, MissedRuns, TaskState, Trigger, current_task,
    gate::{Entry, from_fn},
    trigger::{Due, from_fn as trigger_fn},
};

use super::support::{patient, script};
use crate::support::{Counter, Drops, Log, assert_cancelled, hold, manual, ms};

const MINUTE: Duration = Duration::from_secs(60);

/// A one-shot task waits in the queue as any other: it is pending, can be cancelled, and has its moment.
#[test]
fn a_one_shot_task_waits_and_runs() {
    let (clock, executor) = manual(1);
    let asked = Log::new();
    let body = || current_task().map(|task| (task.run_number(), task.lateness()));
    let gate = patient(&clock, &asked, 2, ms(7));
    let task = executor.task().gate(gate).schedule(ms(5), body).unwrap();
    clock.run_for(ms(5));
    assert_eq!((task.state(), task.delay()), (TaskState::Scheduled, Some(ms(7))));
    let seen = executor.statistics();
    assert_eq!((seen.pending, seen.active, seen.runs, seen.submitted), (1, 0, 0, 1));
    clock.run_for(ms(14));
    assert_eq!(asked.entries(), [(5, 5, 1, 1), (12, 5, 1, 2), (19, 5, 1, 3)]);
    assert_eq!(task.join().unwrap(), Some((1, ms(14))));
    assert_eq!(executor.statistics().completed, 1);
}

/// M167: a task that was put off is found in the queue and taken out of it, also if others have the place
/// there that it had.
#[test]
fn a_task_that_waits_is_cancelled() {
    let (clock, executor) = manual(1);
    let (drops, asking, go_on) = (Drops::new(), Counter::new(), Counter::new());
    let (begun, wait) = (asking.clone(), go_on.clone());
    let gate = from_fn(move |_| {
        begun.add();
        wait.wait_for(1);
        Entry::Again(MINUTE)
    });
    let capture = drops.token();
    let task = executor.task().gate(gate).submit(move || hold(&capture)).unwrap();
    asking.wait_for(1);
    let others: Vec<_> = (0..5).map(|_| executor.schedule(MINUTE, || ()).unwrap()).collect();
    go_on.add();
    clock.run_until_idle();
    assert_eq!((executor.pending_count(), task.delay()), (6, Some(MINUTE)));
    assert!(task.cancel());
    assert_eq!((executor.pending_count(), drops.count()), (5, 1));
    assert!(others.iter().all(|task| task.cancel()));
    assert_eq!(executor.statistics().cancelled, 6);
}

/// G55, M160: the planned moment, the number and the lateness of the run are those of the tick, and a fixed rate
/// stays on its grid.
#[test]
fn a_tick_that_is_put_off_stays_the_same() {
    let (clock, executor) = manual(1);
    let (asked, runs) = (Log::new(), Log::new());
    let log = runs.clone();
    let gate = patient(&clock, &asked, 2, ms(3));
    let body = move || {
        let task = current_task().unwrap();
        log.push((task.run_number(), task.lateness(), task.missed_runs()));
    };
    executor.task().gate(gate).schedule_at_fixed_rate(ms(10), ms(10), body).unwrap();
    clock.run_for(ms(26));
    let first = [(10, 10, 1, 1), (13, 10, 1, 2), (16, 10, 1, 3)];
    let second = [(20, 20, 2, 1), (23, 20, 2, 2), (26, 20, 2, 3)];
    assert_eq!(asked.entries(), [first, second].concat());
    assert_eq!(runs.entries(), [(1, ms(6), 0), (2, ms(6), 0)]);
}

/// The planned moments of the runs of a rate, and the missed runs, if its first tick is put off for 25.
fn after_a_long_wait(policy: MissedRuns) -> (Vec<u64>, u64) {
    let (clock, executor) = manual(1);
    let asked = Log::new();
    let gate = script(&clock, &asked, |tick| match (tick.run_number(), tick.attempt()) {
        (1, 1) => Entry::Again(ms(25)),
        _ => Entry::Run,
    });
    let task = executor.task().missed_runs(policy).gate(gate);
    task.schedule_at_fixed_rate(ms(10), ms(10), || ()).unwrap();
    clock.run_for(ms(45));
    let planned = asked.entries().into_iter().skip(1).map(|(_, planned, ..)| planned);
    (planned.collect(), executor.statistics().missed_runs)
}

/// Whether a run counts as missed depends on the moment for which it was planned. A run that is overdue when the gate
/// is to be asked again is left out, and the gate is not asked.
#[test]
fn missed_runs_refer_to_the_planned_moment() {
    assert_eq!(after_a_long_wait(MissedRuns::Burst), (vec![10, 20, 30, 40], 0));
    assert_eq!(after_a_long_wait(MissedRuns::Coalesce), (vec![10, 40], 2));
    assert_eq!(after_a_long_wait(MissedRuns::Skip), (vec![40], 3));
    assert_eq!(after_a_long_wait(MissedRuns::Delay), (vec![10, 45], 2));
}

#[test]
fn a_fixed_delay_counts_from_the_run() {
    let (clock, executor) = manual(1);
    let asked = Log::new();
    let gate = patient(&clock, &asked, 1, ms(4));
    executor.task().gate(gate).schedule_with_fixed_delay(ms(10), ms(10), || ()).unwrap();
    clock.run_for(ms(28));
    assert_eq!(asked.entries(), [(10, 10, 1, 1), (14, 10, 1, 2), (24, 24, 2, 1), (28, 24, 2, 2)]);
}

/// The midnight with which a manual clock begins.
fn midnight() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(946_684_800)
}

/// Each full minute of the wall clock.
fn minutes() -> impl Trigger {
    trigger_fn(|last| {
        let since = last.after_wall().duration_since(midnight()).ok()?;
        let next = u32::try_from(since.as_secs() / 60 + 1).ok()?;
        Some(Due::Wall(midnight() + MINUTE * next))
    })
}

/// G55, M168: a moment of the wall clock is told exactly, however late the run is, and whatever became of that clock
/// since.
#[test]
fn a_moment_of_the_wall_clock_is_exact() {
    let (clock, executor) = manual(1);
    clock.set_wall_time(midnight());
    let told = Log::new();
    let log = told.clone();
    let gate = from_fn(move |tick| {
        assert!(tick.is_on_wall());
        let planned = tick.planned_wall().duration_since(midnight()).unwrap();
        log.push((planned.as_secs(), tick.attempt()));
        match tick.attempt() {
            1 => Entry::Again(Duration::from_secs(7)),
            _ => Entry::Run,
        }
    });
    let task = executor.task().gate(gate).repeat(minutes(), || ()).unwrap();
    clock.run_for(MINUTE);
    assert_eq!((told.entries(), task.delay()), (vec![(60, 1)], Some(Duration::from_secs(7))));
    // The wait is not one of the wall clock, and does not follow it.
    clock.set_wall_time(midnight() + 2 * MINUTE + Duration::from_secs(30));
    clock.run_until_idle();
    assert_eq!(task.delay(), Some(Duration::from_secs(7)));
    clock.run_for(Duration::from_secs(7));
    assert_eq!(told.entries(), [(60, 1), (60, 2)]);
    assert_eq!(executor.statistics().runs, 1);
    clock.run_for(Duration::from_secs(23));
    assert_eq!(told.entries().last(), Some(&(180, 1)));
}

/// M168: if the wall clock does not show the moment any more, the task waits for it, and is asked anew.
#[test]
fn a_wall_clock_that_is_set_back_makes_the_tick_wait() {
    let (clock, executor) = manual(1);
    clock.set_wall_time(midnight());
    let told = Log::new();
    let log = told.clone();
    let gate = from_fn(move |tick| {
        log.push(tick.attempt());
        if log.entries().len() == 1 { Entry::Again(Duration::from_secs(5)) } else { Entry::Run }
    });
    let task = executor.task().gate(gate).repeat(minutes(), || ()).unwrap();
    clock.run_for(MINUTE);
    clock.set_wall_time(midnight() + Duration::from_secs(40));
    clock.run_for(Duration::from_secs(5));
    assert_eq!((told.entries().len(), task.delay()), (1, Some(Duration::from_secs(15))));
    clock.run_for(Duration::from_secs(15));
    assert_eq!(told.entries(), [1, 1]);
    assert_eq!(executor.statistics().runs, 1);
}

/// Zero is at once, but everything that was due before has its turn first.
#[test]
fn at_once_is_behind_what_is_due() {
    let (clock, executor) = manual(1);
    let order = Log::new();
    let release = Counter::new();
    let opens = release.clone();
    let busy = executor.submit(move || opens.wait_for(1)).unwrap();
    let (log, asked) = (order.clone(), order.clone());
    let gate = from_fn(move |tick| {
        asked.push("asked");
        if tick.attempt() < 3 { Entry::Again(Duration::ZERO) } else { Entry::Run }
    });
    let gated = executor.task().gate(gate).schedule(ms(1), move || log.push("gated")).unwrap();
    let log = order.clone();
    executor.schedule(ms(2), move || log.push("other")).unwrap();
    clock.advance(ms(3));
    release.add();
    busy.join().unwrap();
    clock.run_until_idle();
    assert!(gated.is_done());
    assert_eq!(order.entries(), ["asked", "other", "asked", "asked", "gated"]);
}

/// The longest delay is never: the task waits until a caller gives it a moment, or cancels it.
#[test]
fn never_is_until_somebody_asks() {
    let (clock, executor) = manual(1);
    let asked = Log::new();
    let never = script(&clock, &asked, |_| Entry::Again(Duration::MAX));
    let rate = executor.task().gate(never).schedule_at_fixed_rate(ms(10), ms(10), || ()).unwrap();
    clock.run_for(MINUTE);
    assert_eq!((asked.entries(), rate.delay()), (vec![(10, 10, 1, 1)], None));
    assert!(rate.run_now());
    clock.run_until_idle();
    assert_eq!(asked.entries().last(), Some(&(60_000, 60_000, 1, 1)), "another tick");
    assert!(rate.cancel());
    assert_eq!(executor.pending_count(), 0);
}

/// The time limit of a one-shot task goes on counting, and ends the task at its moment.
#[test]
fn a_time_limit_goes_on() {
    let (clock, executor) = manual(1);
    let asked = Log::new();
    let gate = patient(&clock, &asked, 9, ms(4));
    let task = executor.task().gate(gate).timeout(ms(10)).schedule(ms(5), || ()).unwrap();
    clock.run_for(ms(9));
    assert!(!task.is_done());
    clock.run_for(ms(6));
    assert_cancelled(&task, CancelReason::TimedOut);
    clock.run_for(MINUTE);
    assert_eq!(asked.entries(), [(5, 5, 1, 1), (9, 5, 1, 2), (13, 5, 1, 3)]);
    let seen = executor.statistics();
    assert_eq!((seen.timed_out, seen.cancelled, seen.pending), (1, 1, 0));
}
