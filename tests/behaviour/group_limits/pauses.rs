//! A paused group: nothing of it starts, and afterwards everything is late.

use punctual::{MissedRuns, TaskState, current_task};

use super::support::{Busy, assert_sound, noting};
use crate::support::{Log, eventually, manual, ms};

/// M177: none of its tasks starts during a pause, and all of them afterwards, in order.
#[test]
fn nothing_starts_during_a_pause() {
    let (clock, executor) = manual(2);
    let group = executor.group("g").build().unwrap();
    let log = Log::new();
    for (delay, number) in [(10, 2), (5, 1), (0, 0), (100, 3)] {
        noting(&group, &log, ms(delay), number);
        if delay == 0 {
            clock.run_until_idle();
        }
    }
    assert_eq!(log.entries(), [0]);
    assert!(group.pause() && !group.pause() && group.is_paused());
    group.set_limit(1).unwrap();
    clock.run_for(ms(50));
    assert_eq!((log.entries().len(), group.statistics().waiting), (1, 2));
    assert!(group.resume() && !group.resume() && !group.is_paused());
    clock.run_until_idle();
    assert_eq!(log.entries(), [0, 1, 2]);
    clock.run_for(ms(50));
    assert_eq!(log.entries(), [0, 1, 2, 3]);
    assert_sound(group.statistics());
}

/// Runs that are under way go on.
#[test]
fn a_run_is_not_interrupted() {
    let (_clock, executor) = manual(1);
    let group = executor.group("g").build().unwrap();
    let busy = Busy::start(&group);
    assert!(group.pause());
    assert_eq!(group.statistics().active, 1);
    busy.end();
}

/// After a pause the policy for missed runs sees what it sees after a stall.
#[test]
fn the_policy_for_missed_runs_decides() {
    use MissedRuns::{Burst, Coalesce, Delay, Skip};
    for (policy, expected) in [
        (Burst, vec![10, 55, 55, 55, 55, 60, 70]),
        (Coalesce, vec![10, 55, 60, 70]),
        (Skip, vec![10, 60, 70]),
        (Delay, vec![10, 55, 65, 75]),
        (MissedRuns::Within(ms(20)), vec![10, 55, 55, 60, 70]),
    ] {
        let run = |is_group: bool| {
            let (clock, executor) = manual(1);
            let group = executor.group("g").build().unwrap();
            let log = Log::new();
            let (noted, own) = (log.clone(), clock.clone());
            let rate = group.task().missed_runs(policy);
            let rate = rate
                .schedule_at_fixed_rate(ms(10), ms(10), move || {
                    let task = current_task().unwrap();
                    noted.push((own.elapsed(), task.missed_runs(), task.lateness()));
                })
                .unwrap();
            clock.run_for(ms(15));
            assert!(if is_group { group.pause() } else { rate.pause() });
            clock.run_for(ms(40));
            assert!(if is_group { group.resume() } else { rate.resume() });
            clock.run_until_idle();
            clock.run_for(ms(20));
            (log.entries(), executor.statistics().missed_runs)
        };
        let by_group = run(true);
        assert_eq!(by_group, run(false), "{policy:?}: as a pause of the task");
        let starts: Vec<_> = by_group.0.iter().map(|(start, ..)| start.as_millis()).collect();
        assert_eq!(starts, expected, "{policy:?}");
    }
}

/// A fixed delay counts from the end of the run after the pause.
#[test]
fn a_fixed_delay_counts_from_the_run_after_the_pause() {
    let (clock, executor) = manual(1);
    let group = executor.group("g").build().unwrap();
    let (log, own) = (Log::new(), clock.clone());
    let noted = log.clone();
    let tick = move || noted.push(own.elapsed());
    group.task().schedule_with_fixed_delay(ms(10), ms(10), tick).unwrap();
    group.pause();
    clock.run_for(ms(33));
    group.resume();
    clock.run_until_idle();
    clock.run_for(ms(10));
    assert_eq!(log.entries(), [ms(33), ms(43)]);
}

/// The pause of a task and that of its group are two, and a task that is paused itself stops no other.
#[test]
fn both_pauses_have_to_end() {
    let (clock, executor) = manual(1);
    let group = executor.group("g").limit(1).build().unwrap();
    let log = Log::new();
    let first = noting(&group, &log, ms(10), 1);
    noting(&group, &log, ms(20), 2);
    assert!(group.pause() && first.pause());
    clock.run_for(ms(30));
    assert_eq!((first.state(), log.entries().len()), (TaskState::Paused, 0));
    group.resume();
    clock.run_until_idle();
    assert_eq!(log.entries(), [2]);
    group.pause();
    assert!(first.resume());
    clock.run_until_idle();
    assert_eq!(log.entries(), [2]);
    group.resume();
    clock.run_until_idle();
    assert_eq!(log.entries(), [2, 1]);
}

/// A task that waits for its group is shown with its plan.
#[test]
fn a_plan_is_shown_while_it_waits() {
    let (clock, executor) = manual(1);
    let group = executor.group("g").build().unwrap();
    let late = executor.task().name("late").group(&group).schedule(ms(10), || {
        let task = current_task().unwrap();
        (task.lateness(), task.planned())
    });
    let late = late.unwrap();
    let planned = clock.now() + ms(10);
    executor.task().name("later").schedule(ms(60), || ()).unwrap();
    group.pause();
    clock.run_for(ms(25));
    eventually("it waits", || group.statistics().waiting == 1);
    assert_eq!((late.delay(), late.state()), (Some(ms(0)), TaskState::Scheduled));
    let pending = executor.pending_tasks();
    assert_eq!((pending[0].name().as_deref(), pending[0].next_run), (Some("late"), Some(planned)));
    assert_eq!((pending[0].delay, pending[1].delay), (ms(0), ms(35)));
    group.resume();
    clock.run_until_idle();
    assert_eq!(late.join().unwrap(), (ms(15), Some(planned)));
}
