//! The starting deadlines of `Skip` and `Within`: an overdue run is left out, whatever made it late.

use std::time::Duration;

use punctual::{
    FailurePolicy, ManualClock, MissedRuns, Trigger, current_task,
    gate::{Entry, from_fn as gate_fn},
    trigger::{Due, TriggerContext, at, every, fixed_delay, from_fn, on_demand},
};

use crate::support::{Counter, Log, manual, manual_with, ms};

const SECOND: Duration = Duration::from_secs(1);

/// When each run started, in milliseconds, how late it was, and how many were left out before it.
type Runs = Log<(u64, u64, u64)>;

fn noting(clock: &ManualClock) -> (Runs, impl FnMut() + Send + 'static) {
    let (runs, clock) = (Log::new(), clock.clone());
    let log = runs.clone();
    let body = move || {
        let task = current_task().expect("inside a task");
        let millis = |span: Duration| span.as_millis() as u64;
        log.push((millis(clock.elapsed()), millis(task.lateness()), task.missed_runs()));
    };
    (runs, body)
}

/// The ways in which a run can be made late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    BusyWorker,
    Stall,
    Pause,
    GroupIsFull,
    GroupPause,
    GatePutsOff,
    SlowGate,
}

const CAUSES: [Cause; 7] = [
    Cause::BusyWorker,
    Cause::Stall,
    Cause::Pause,
    Cause::GroupIsFull,
    Cause::GroupPause,
    Cause::GatePutsOff,
    Cause::SlowGate,
];

/// The runs of a task until 60 s, whose first run is planned for 10 s and cannot start before `free`, in seconds;
/// and how many were counted as missed by then, and at the end.
fn runs_after(cause: Cause, policy: MissedRuns, trigger: impl Trigger, free: u32) -> Seen {
    let (clock, executor) = manual(if cause == Cause::GroupIsFull { 2 } else { 1 });
    let group = executor.group("all").limit(1).build().expect("a group");
    let (runs, body) = noting(&clock);
    let free = clock.now() + free * SECOND;
    let own = clock.clone();
    let block = move || own.advance(free.saturating_duration_since(own.now()));
    let task = match cause {
        Cause::GroupIsFull | Cause::GroupPause => group.task(),
        _ => executor.task(),
    };
    let task = task.missed_runs(policy);
    let task = match cause {
        Cause::GatePutsOff => task.gate(gate_fn(move |tick| {
            let left = free.saturating_duration_since(tick.clock().now());
            if left.is_zero() { Entry::Run } else { Entry::Again(left) }
        })),
        Cause::SlowGate => {
            let block = block.clone();
            task.gate(gate_fn(move |_| {
                block();
                Entry::Run
            }))
        }
        _ => task,
    };
    let task = task.repeat(trigger, body).expect("accepted");
    match cause {
        Cause::BusyWorker => drop(executor.schedule(9 * SECOND, block).expect("accepted")),
        Cause::GroupIsFull => drop(group.task().schedule(9 * SECOND, block).expect("accepted")),
        Cause::Stall => clock.advance(free - clock.now()),
        Cause::Pause => assert!(task.pause()),
        Cause::GroupPause => assert!(group.pause()),
        Cause::GatePutsOff | Cause::SlowGate => {}
    }
    clock.run_for(free.saturating_duration_since(clock.now()));
    match cause {
        Cause::Pause => assert!(task.resume()),
        Cause::GroupPause => assert!(group.resume()),
        _ => {}
    }
    clock.run_until_idle();
    let at_once = executor.statistics().missed_runs;
    clock.run_for((60 * SECOND).saturating_sub(clock.elapsed()));
    (runs.entries(), [at_once, executor.statistics().missed_runs])
}

/// The runs, and two counts of the statistics.
type Seen = (Vec<(u64, u64, u64)>, [u64; 2]);

/// A fixed rate, which is the crate's own, or a trigger that it does not look into.
fn rate(is_trigger: bool) -> Box<dyn Fn(Cause, MissedRuns, u32) -> Seen> {
    let ten = || every(10 * SECOND).first_in(10 * SECOND);
    match is_trigger {
        false => Box::new(move |cause, policy, free| runs_after(cause, policy, ten(), free)),
        true => {
            Box::new(move |cause, policy, free| runs_after(cause, policy, ten().times(99), free))
        }
    }
}

/// `Skip` leaves an overdue run out, whatever has made it late, and counts it at once.
#[test]
fn skip_leaves_out_what_is_overdue() {
    for (is_trigger, cause) in [false, true].into_iter().flat_map(|one| CAUSES.map(|it| (one, it)))
    {
        let runs = rate(is_trigger);
        let left_out = (vec![(50_000, 0, 4), (60_000, 0, 0)], [4, 4]);
        assert_eq!(runs(cause, MissedRuns::Skip, 45), left_out, "{cause:?} {is_trigger}");
        // The next run is due at this very moment.
        let next = (vec![(30_000, 0, 2), (40_000, 0, 0), (50_000, 0, 0), (60_000, 0, 0)], [2, 2]);
        assert_eq!(runs(cause, MissedRuns::Skip, 20), next, "{cause:?} {is_trigger}");
        // It is not, and the run is late but not missed.
        let (late, missed) = runs(cause, MissedRuns::Skip, 19);
        assert_eq!((late[0], late[1], missed), ((19_000, 9_000, 0), (20_000, 0, 0), [0, 0]));
    }
}

/// With `Within` no run is later than that, whatever has made it late.
#[test]
fn within_starts_nothing_later_than_that() {
    for (is_trigger, cause) in [false, true].into_iter().flat_map(|one| CAUSES.map(|it| (one, it)))
    {
        let within =
            |seconds: u32| rate(is_trigger)(cause, MissedRuns::Within(seconds * SECOND), 45);
        let none = (vec![(50_000, 0, 4), (60_000, 0, 0)], [4, 4]);
        assert_eq!(within(4), none, "{cause:?} {is_trigger}");
        let one = (vec![(45_000, 5_000, 3), (50_000, 0, 0), (60_000, 0, 0)], [3, 3]);
        assert_eq!(within(5), one, "{cause:?} {is_trigger}: exactly so late is not too late");
        let (all, missed) = within(35);
        let starts: Vec<_> = all.iter().map(|(start, ..)| *start).collect();
        assert_eq!(starts, [45_000, 45_000, 45_000, 45_000, 50_000, 60_000], "{cause:?}");
        assert_eq!((all[0].1, missed), (35_000, [0, 0]));
    }
}

/// The other policies have no deadline.
#[test]
fn the_others_start_however_late_they_are() {
    for cause in CAUSES {
        for policy in [MissedRuns::Burst, MissedRuns::Coalesce, MissedRuns::Delay] {
            let (runs, _) = rate(false)(cause, policy, 45);
            assert_eq!((runs[0].0, runs[0].1), (45_000, 35_000), "{cause:?} {policy:?}");
        }
    }
}

/// A trigger that does not count its moments, whose next one is not known before it is asked.
fn silent() -> impl Trigger {
    from_fn(|last| {
        let next = last.planned().unwrap_or(last.after()) + 10 * SECOND;
        let behind = last.after().saturating_duration_since(next).as_secs() / 10;
        let next = next + Duration::from_secs(10 * behind);
        Some(Due::At(if next > last.after() { next } else { next + 10 * SECOND }))
    })
}

/// `Skip` leaves out a run whose next moment is not known when it is more than ten seconds late.
#[test]
fn without_a_known_successor_skip_has_ten_seconds() {
    let skip = |trigger: Box<dyn Fn(u32) -> Seen>| (trigger(20).0[0], trigger(21));
    let by_function = Box::new(|free| runs_after(Cause::Stall, MissedRuns::Skip, silent(), free));
    let (late, (runs, missed)) = skip(by_function);
    assert_eq!((late, runs[0], missed), ((20_000, 10_000, 0), (30_000, 0, 1), [1, 1]));
    let pause = || fixed_delay(10 * SECOND).first_in(10 * SECOND);
    let by_delay = Box::new(move |free| runs_after(Cause::Stall, MissedRuns::Skip, pause(), free));
    let (late, (runs, missed)) = skip(by_delay);
    assert_eq!((late, runs[0], missed), ((20_000, 10_000, 0), (31_000, 0, 1), [1, 1]));
    let by_rate = |free| {
        let hourly = every(360 * SECOND).first_in(10 * SECOND);
        runs_after(Cause::Stall, MissedRuns::Skip, hourly, free)
    };
    let (late, (runs, missed)) = skip(Box::new(by_rate));
    assert_eq!((late, runs, missed), ((20_000, 10_000, 0), vec![], [1, 1]));
}

/// A run that is less than a millisecond late is on time, however short the period is: else a task that is faster
/// than threads wake up would never run.
#[test]
fn less_than_a_millisecond_is_on_time() {
    let (clock, executor) = manual(1);
    let task = executor.task().missed_runs(MissedRuns::Skip);
    let tenth = ms(1) / 10;
    task.schedule_at_fixed_rate(tenth, tenth, || ()).expect("accepted");
    clock.run_until_idle();
    clock.advance(ms(1));
    clock.run_until_idle();
    assert_eq!(executor.statistics().runs, 1);
    clock.advance(ms(1) + 2 * tenth);
    clock.run_until_idle();
    assert_eq!((executor.statistics().runs, executor.statistics().missed_runs), (1, 21));
}

/// A series whose last run is left out has ended, as one whose last run is skipped by a gate.
#[test]
fn a_series_may_end_with_a_run_that_is_left_out() {
    let (clock, executor) = manual(1);
    for policy in [MissedRuns::Skip, MissedRuns::Within(SECOND)] {
        let before = executor.statistics();
        let moments = [clock.now() + SECOND];
        let task = || executor.task().missed_runs(policy);
        let series = task().repeat(at(moments), || ()).expect("accepted");
        let searching = task()
            .repeat(at(moments), || std::ops::ControlFlow::<u32>::Continue(()))
            .expect("accepted");
        clock.advance(20 * SECOND);
        clock.run_until_idle();
        assert!(series.join().is_ok());
        assert!(matches!(searching.join(), Err(punctual::TaskError::Exhausted)));
        let after = executor.statistics();
        assert_eq!((after.runs, after.completed - before.completed), (0, 2));
        assert_eq!(after.missed_runs - before.missed_runs, 2);
    }
}

/// A run that was asked for beside the schedule takes place, however late; and so does one that was due already
/// when it was asked for, if it is not late since then.
#[test]
fn what_is_asked_for_is_not_left_out() {
    for policy in [MissedRuns::Skip, MissedRuns::Within(2 * SECOND)] {
        let (clock, executor) = manual(1);
        let (runs, body) = noting(&clock);
        let task = executor.task().missed_runs(policy);
        let task = task.schedule_at_fixed_rate(10 * SECOND, 10 * SECOND, body).expect("accepted");
        let own = clock.clone();
        let busy = executor.schedule(SECOND, move || own.advance(5 * SECOND)).expect("accepted");
        assert!(task.run_now(), "at 0");
        clock.run_for(SECOND);
        assert_eq!(runs.entries(), [(0, 0, 0)]);
        assert!(busy.is_done() && clock.elapsed() == 6 * SECOND);
        // Another one waits for the worker, and is five seconds late.
        clock.advance(20 * SECOND);
        let (own, other) = (clock.clone(), task.task_handle());
        drop(executor.submit(move || {
            assert!(other.run_now(), "due since 10, at 26");
            own.advance(2 * SECOND);
        }));
        clock.run_until_idle();
        let seen = runs.entries();
        // Either the worker has taken the run before it was asked for, and left it out: then it is one more.
        let (start, _, _) = seen[1];
        assert!((26_000..=28_000).contains(&start), "{seen:?}");
    }
}

/// A run that was due, and late, when it was asked for is the one that was asked for. Its lateness counts from
/// then.
#[test]
fn a_run_that_is_due_and_asked_for_takes_place() {
    type Ask = fn(&punctual::TaskHandle) -> bool;
    let asks: [Ask; 2] = [|task| task.run_now(), |task| task.run_within(Duration::ZERO)];
    for ask in asks {
        for policy in [MissedRuns::Skip, MissedRuns::Within(2 * SECOND)] {
            let (clock, executor) = manual(1);
            let (runs, body) = noting(&clock);
            let (started, release) = (Counter::new(), Counter::new());
            let (starts, gate) = (started.clone(), release.clone());
            drop(executor.submit(move || {
                starts.add();
                gate.wait_for(1);
            }));
            started.wait_for(1);
            let task = executor.task().missed_runs(policy);
            let task = task.repeat(every(10 * SECOND).first_in(10 * SECOND), body);
            let task = task.expect("accepted").task_handle();
            clock.advance(35 * SECOND);
            assert!(ask(&task));
            clock.advance(SECOND);
            release.add();
            clock.run_until_idle();
            let (start, lateness, _) = runs.entries()[0];
            assert_eq!((start, lateness), (36_000, 26_000), "{policy:?}");
            clock.run_for(4 * SECOND);
            assert_eq!(runs.entries().last().map(|run| run.0), Some(40_000));
        }
    }
}

/// An extra run in between takes nothing of that away.
#[test]
fn a_late_run_that_is_asked_for_takes_place_behind_an_extra_run() {
    let (clock, executor) = manual(1);
    let (runs, body) = noting(&clock);
    let task = executor.task().missed_runs(MissedRuns::Within(3 * SECOND));
    let task = task.schedule_at_fixed_rate(10 * SECOND, 10 * SECOND, body).expect("accepted");
    assert!(task.pause());
    clock.run_for(20 * SECOND);
    assert!(task.run_within(Duration::ZERO));
    clock.run_for(SECOND);
    assert!(task.run_now());
    clock.run_for(SECOND);
    assert!(task.resume());
    clock.run_until_idle();
    let starts: Vec<_> = runs.entries().into_iter().map(|(start, ..)| start).collect();
    assert_eq!(starts, [21_000, 22_000, 22_000], "that of 10 s, and that of 20 s is on time");
}

/// A run by hand is the caller's decision.
#[test]
fn a_run_by_hand_is_not_left_out() {
    let (clock, executor) = manual(1);
    let (runs, body) = noting(&clock);
    let task = executor.task().missed_runs(MissedRuns::Within(SECOND));
    drop(task.schedule_at_fixed_rate(SECOND, SECOND, body).expect("accepted"));
    let drained = executor.shutdown_now();
    clock.advance(60 * SECOND);
    drained.for_each(|task| task.run());
    assert_eq!(runs.entries().len(), 1);
}

/// Leaving a run out keeps the task's wrapper and token, calls no hook, and does not reset the count of failures in a
/// row.
#[test]
fn the_task_is_as_it_was() {
    let calls = Log::new();
    let (around, before) = (calls.clone(), calls.clone());
    let (clock, executor) = manual_with(|builder| {
        builder.before_execute(move |_| before.push("before")).decorate_task(
            move |_: &punctual::Submission<'_>| {
                let around = around.clone();
                move |run: punctual::TaskRun<'_>| {
                    around.push("around");
                    run.run()
                }
            },
        )
    });
    let task = executor.task().missed_runs(MissedRuns::Skip).timeout(SECOND);
    let task = task.on_failure(FailurePolicy::resume().stop_after(2));
    let task = task.schedule_at_fixed_rate(SECOND, SECOND, || panic!("no")).expect("accepted");
    clock.run_for(SECOND);
    assert_eq!(calls.entries(), ["before", "around"]);
    clock.advance(3 * SECOND);
    clock.run_until_idle();
    assert_eq!(calls.entries().len(), 2);
    clock.run_for(SECOND);
    assert_eq!(calls.entries(), ["before", "around", "before", "around"]);
    assert_eq!(task.last_failure().map(|failed| failed.in_a_row()), Some(2));
    assert!(task.is_done());
}

/// The first moment of a trigger means now if it has passed.
#[test]
fn a_first_moment_that_has_passed_means_now() {
    let (clock, executor) = manual(1);
    clock.advance(60 * SECOND);
    let past = clock.wall_time() - 60 * SECOND;
    let task = executor.task().missed_runs(MissedRuns::Within(SECOND));
    let once = from_fn(move |last| last.started().is_none().then_some(Due::Wall(past)));
    assert!(task.repeat(once, || ()).expect("accepted").join().is_ok());
    assert_eq!(executor.statistics().runs, 1);
}

/// A trigger that panics when it counts.
struct Miscounts;

impl Trigger for Miscounts {
    fn next(&mut self, last: &TriggerContext<'_>) -> Option<Due> {
        Some(Due::At(last.after() + SECOND))
    }

    fn between(&mut self, _: Due, _: Due) -> u64 {
        std::panic::resume_unwind(Box::new("too many"))
    }
}

#[test]
fn a_panic_of_the_question_ends_the_task() {
    let (clock, executor) = manual(1);
    let task = executor.task().missed_runs(MissedRuns::Skip).repeat(Miscounts, || ());
    clock.advance(2 * SECOND);
    clock.run_until_idle();
    let error = task.expect("accepted").join().expect_err("its trigger panics");
    assert!(error.to_string().contains("too many"), "{error}");
    assert_eq!((executor.pending_count(), executor.statistics().active), (0, 0));
}

/// A run on demand has a deadline as well: it is the policy of the task.
#[test]
fn a_run_on_demand_may_be_left_out() {
    let (clock, executor) = manual(1);
    let task = executor.task().missed_runs(MissedRuns::Within(SECOND));
    let task = task.repeat(on_demand(), || ()).expect("accepted");
    assert!(task.reschedule(SECOND));
    clock.advance(3 * SECOND);
    clock.run_until_idle();
    assert_eq!((executor.statistics().runs, executor.statistics().missed_runs), (0, 1));
    assert!(task.run_now());
    clock.run_until_idle();
    assert_eq!(executor.statistics().runs, 1);
}
