//! Tasks on the wall clock: they follow that clock when it is set, whichever way, and when the machine has
//! slept; nothing else does.

use std::{
    sync::mpsc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use punctual::{
    FailurePolicy, ManualClock, MissedRuns, ScheduledFuture,
    ScheduledThreadPoolExecutor as Executor, TaskState, Trigger,
    trigger::{Due, TriggerContext, at, every, fixed_delay, from_fn},
};

use crate::rounds::rounds;
use crate::support::{Log, Wrapped, eventually, manual, manual_with, ms};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);
/// How long it may take until a task follows the clock.
const LOOK: Duration = Duration::from_secs(30);

/// The midnight with which a manual clock begins.
fn midnight() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(946_684_800)
}

/// A time of that day.
fn day_time(hour: u32, minute: u32) -> SystemTime {
    midnight() + hour * HOUR + minute * MINUTE
}

/// At the multiples of a period of the wall clock, as a calendar has them. It can be asked again.
struct Calendar(Duration);

impl Trigger for Calendar {
    fn next(&mut self, last: &TriggerContext<'_>) -> Option<Due> {
        let since = last.after_wall().duration_since(midnight()).ok()?;
        let periods = since.as_nanos() / self.0.as_nanos() + 1;
        Some(Due::Wall(midnight() + self.0 * u32::try_from(periods).ok()?))
    }

    fn is_asked_again(&mut self) -> bool {
        true
    }
}

/// Every day at 02:00.
fn at_two() -> impl Trigger {
    from_fn(|last| {
        let since = last.after_wall().duration_since(day_time(2, 0)).ok();
        let days = since.map_or(0, |since| since.as_secs() / DAY.as_secs() + 1);
        Some(Due::Wall(day_time(2, 0) + DAY * u32::try_from(days).ok()?))
    })
}

/// A task, as a test sees it: the wall times at which it ran, in minutes since midnight.
struct Seen {
    clock: ManualClock,
    executor: Executor,
    runs: Log<u64>,
    future: ScheduledFuture<()>,
}

impl Seen {
    fn of(trigger: impl Trigger) -> Self {
        Self::with(MissedRuns::Coalesce, midnight(), trigger)
    }

    /// On a clock that shows this wall time first.
    fn with(policy: MissedRuns, begin: SystemTime, trigger: impl Trigger) -> Self {
        let (clock, executor) = manual(1);
        clock.set_wall_time(begin);
        let (runs, time) = (Log::new(), clock.clone());
        let log = runs.clone();
        let body = move || log.push(minutes(time.wall_time()));
        let future = executor.task().missed_runs(policy).repeat(trigger, body).expect("accepted");
        clock.run_until_idle();
        Self { clock, executor, runs, future }
    }

    /// Sets the clock, and lets what follows from that come to an end.
    fn set(&self, wall: SystemTime) {
        self.clock.set_wall_time(wall);
        self.clock.run_until_idle();
    }

    /// Lets the clock go on until it shows this time.
    fn until(&self, wall: SystemTime) {
        let left = wall.duration_since(self.clock.wall_time()).expect("it is to come");
        self.clock.run_for(left);
    }
}

fn minutes(wall: SystemTime) -> u64 {
    wall.duration_since(midnight()).expect("it is after midnight").as_secs() / 60
}

const fn of_day(hour: u64, minute: u64) -> u64 {
    60 * hour + minute
}

/// A moment of the wall clock comes when that clock shows it, and not a nanosecond earlier.
#[test]
fn a_moment_of_the_wall_clock_comes_on_time() {
    let seen = Seen::of(at([day_time(2, 0), day_time(3, 0)]));
    assert_eq!(seen.future.delay(), Some(2 * HOUR));
    seen.until(day_time(2, 0) - Duration::from_nanos(1));
    assert!(seen.runs.entries().is_empty());
    seen.until(day_time(5, 0));
    assert_eq!(seen.runs.entries(), [of_day(2, 0), of_day(3, 0)]);
    assert_eq!(seen.future.state(), TaskState::Completed);
}

/// F39, W1: the clock is set ahead, past the moment. The run is due at the next look, and ten minutes late by then.
#[test]
fn a_clock_that_is_set_ahead_makes_what_has_passed_due_within_half_a_minute() {
    let (clock, executor) = manual(1);
    let (tell, told) = mpsc::channel();
    let body = move || {
        let lateness = punctual::current_task().map(|task| task.lateness());
        tell.send(lateness).unwrap_or_default();
    };
    let _future = executor.repeat(at([day_time(2, 0)]), body).expect("accepted");
    clock.run_for(HOUR + 50 * MINUTE);
    assert!(told.try_recv().is_err());
    clock.set_wall_time(day_time(2, 10) - LOOK);
    clock.run_for(LOOK - Duration::from_nanos(1));
    assert!(told.try_recv().is_err());
    clock.run_for(Duration::from_nanos(1));
    assert_eq!(told.try_recv(), Ok(Some(10 * MINUTE)));
}

/// A look is no run, no missed run and no attempt, and asks no trigger. What is shown of the task is its plan.
#[test]
fn a_look_is_no_run() {
    let asked = Log::new();
    let (log, mut inner) = (asked.clone(), at([day_time(2, 0)]));
    let trigger = from_fn(move |last| {
        log.push(minutes(last.after_wall()));
        inner.next(last)
    });
    let seen = Seen::with(MissedRuns::Skip, midnight(), trigger);
    for minutes in 1..=119 {
        seen.clock.run_for(MINUTE);
        let left = 2 * HOUR - minutes * MINUTE;
        assert_eq!((seen.future.delay(), seen.clock.next_deadline()), (Some(left), Some(LOOK)));
        assert_eq!(seen.executor.pending_tasks()[0].delay, left);
    }
    let statistics = seen.executor.statistics();
    assert_eq!((statistics.runs, statistics.missed_runs, statistics.active), (0, 0, 0));
    assert_eq!((asked.entries(), seen.future.state()), (vec![0], TaskState::Scheduled));
    seen.until(day_time(2, 0));
    assert_eq!((seen.runs.entries(), asked.entries()), (vec![of_day(2, 0)], vec![0, 120]));
}

/// Without a task on the wall clock there is nothing to look at: no thread wakes.
#[test]
fn without_a_task_on_the_wall_clock_nothing_wakes() {
    let (clock, executor) = manual(2);
    executor.submit(|| ()).expect("accepted").join().expect("it runs");
    assert_eq!(clock.next_deadline(), None);
    let rate = executor.repeat(every(DAY).first_in(DAY), || ()).expect("accepted");
    clock.run_until_idle();
    assert_eq!(clock.next_deadline(), Some(DAY));
    assert!(rate.set_trigger(at_two()));
    clock.run_until_idle();
    assert_eq!((clock.next_deadline(), rate.delay()), (Some(LOOK), Some(2 * HOUR)));
    assert!(rate.pause());
    clock.run_for(LOOK);
    assert_eq!(clock.next_deadline(), None, "a paused task is not looked at");
    assert!(rate.resume());
    clock.run_until_idle();
    assert_eq!(clock.next_deadline(), Some(LOOK));
    assert!(rate.cancel());
    clock.run_for(LOOK);
    assert_eq!(clock.next_deadline(), None);
}

/// F39, W2: the clock is set back. The run is at 02:00 by the wall, forty minutes later, and not at the
/// moment at which that was to come before.
#[test]
fn a_clock_that_is_set_back_puts_the_run_off() {
    for trigger in [true, false] {
        let moments = at([day_time(2, 0)]);
        let seen = if trigger { Seen::of(moments) } else { Seen::of(Calendar(2 * HOUR).times(1)) };
        seen.until(day_time(1, 50));
        seen.set(day_time(1, 20));
        assert_eq!(seen.future.delay(), Some(40 * MINUTE));
        let before = seen.clock.elapsed();
        seen.until(day_time(2, 0));
        assert_eq!(seen.runs.entries(), [of_day(2, 0)]);
        assert_eq!(seen.clock.elapsed() - before, 40 * MINUTE);
    }
}

/// W4: a calendar is asked again when the clock was set back, and is not silent for 45 minutes. The plan of
/// a trigger that is not asked again stands.
#[test]
fn a_calendar_is_asked_again_when_the_clock_was_set_back() {
    let quarters = || Calendar(15 * MINUTE);
    let seen = Seen::with(MissedRuns::Coalesce, day_time(1, 55), quarters());
    seen.until(day_time(2, 5));
    seen.set(day_time(1, 30));
    assert_eq!(seen.executor.statistics().runs, 1, "to ask is no run");
    seen.until(day_time(2, 1));
    assert_eq!(seen.runs.entries(), [of_day(2, 0), of_day(1, 45), of_day(2, 0)]);

    let mut inner = quarters();
    let stands = from_fn(move |last| inner.next(last));
    let seen = Seen::with(MissedRuns::Coalesce, day_time(1, 55), stands);
    seen.until(day_time(2, 5));
    seen.set(day_time(1, 30));
    seen.until(day_time(2, 16));
    assert_eq!(seen.runs.entries(), [of_day(2, 0), of_day(2, 15)]);
}

/// W4, for each combination: what is asked again is the trigger inside.
#[test]
fn a_combined_calendar_is_asked_again() {
    let quarters = || Calendar(15 * MINUTE);
    let runs = |trigger: Box<dyn FnOnce() -> Seen>| {
        let seen = trigger();
        seen.until(day_time(2, 5));
        seen.set(day_time(1, 30));
        seen.until(day_time(2, 2));
        seen.runs.entries()
    };
    let begin = day_time(1, 55);
    let with = |trigger| Seen::with(MissedRuns::Coalesce, begin, trigger);
    let twice = [of_day(2, 0), of_day(1, 45), of_day(2, 0)];
    assert_eq!(runs(Box::new(move || with(quarters().times(9)))), twice);
    assert_eq!(runs(Box::new(move || with(quarters().times(2)))), twice[..2]);
    let with = |trigger| Seen::with(MissedRuns::Coalesce, begin, trigger);
    assert_eq!(runs(Box::new(move || with(quarters().until(day_time(3, 0))))), twice);
    let with = |trigger| Seen::with(MissedRuns::Coalesce, begin, trigger);
    assert_eq!(runs(Box::new(move || with(quarters().jitter(MINUTE).seed(7)))), twice);
    let with = |trigger| Seen::with(MissedRuns::Coalesce, begin, trigger);
    assert_eq!(runs(Box::new(move || with(Wrapped::new(quarters())))), twice);
}

/// The clock is set back a little, and shows a later time than that of the last run: the plan stands, and
/// no run comes twice.
#[test]
fn a_small_step_back_repeats_nothing() {
    let seen = Seen::with(MissedRuns::Coalesce, day_time(1, 55), Calendar(15 * MINUTE));
    seen.until(day_time(2, 5));
    seen.set(day_time(2, 1));
    seen.until(day_time(2, 16));
    assert_eq!(seen.runs.entries(), [of_day(2, 0), of_day(2, 15)]);
}

/// A trigger that is asked again and has no answer keeps its plan.
#[test]
fn without_another_answer_the_plan_stands() {
    struct Once(bool);
    impl Trigger for Once {
        fn next(&mut self, _: &TriggerContext<'_>) -> Option<Due> {
            (!std::mem::replace(&mut self.0, true)).then_some(Due::Wall(day_time(2, 0)))
        }

        fn is_asked_again(&mut self) -> bool {
            true
        }
    }
    let seen = Seen::with(MissedRuns::Coalesce, day_time(1, 0), Once(false));
    seen.set(day_time(0, 30));
    assert_eq!(seen.future.delay(), Some(90 * MINUTE));
    seen.until(day_time(2, 0));
    assert_eq!(seen.runs.entries(), [of_day(2, 0)]);
    assert_eq!(seen.future.state(), TaskState::Completed);
}

/// A trigger that panics when it is asked again ends its task as failed.
#[test]
fn a_panic_of_a_trigger_that_is_asked_again_ends_the_task() {
    struct Touchy;
    impl Trigger for Touchy {
        fn next(&mut self, last: &TriggerContext<'_>) -> Option<Due> {
            assert!(last.after_wall() >= day_time(1, 0), "so early");
            Some(Due::Wall(day_time(2, 0)))
        }

        fn is_asked_again(&mut self) -> bool {
            true
        }
    }
    let reports = Log::new();
    let log = reports.clone();
    let (clock, executor) = manual_with(|builder| {
        builder.failure_handler(move |report| log.push((report.source(), report.run_number())))
    });
    clock.set_wall_time(day_time(1, 0));
    let future = executor.repeat(Touchy, || ()).expect("accepted");
    clock.set_wall_time(day_time(0, 30));
    clock.run_for(LOOK);
    assert!(future.try_join().expect("it has ended").is_err());
    assert_eq!(reports.entries(), [(punctual::FailureSource::Trigger, Some(1))]);
    let statistics = executor.statistics();
    assert_eq!((statistics.failed, statistics.active, statistics.pending), (1, 0, 0));
}

/// W6: the clock is set ahead by two days. The policy decides what becomes of the runs between: the one that
/// waits is late, as after a stall, and stands for the others, is alone, or is followed by them.
#[test]
fn after_two_days_the_policy_for_missed_runs_decides() {
    let runs = |policy| {
        let seen = Seen::with(policy, day_time(1, 0), at_two());
        seen.set(day_time(3, 0) + DAY);
        seen.clock.run_for(LOOK);
        let at_once = seen.runs.entries();
        assert!(at_once.iter().all(|run| *run == of_day(27, 0)), "{at_once:?}");
        seen.until(day_time(2, 0) + 2 * DAY);
        assert_eq!(seen.runs.entries().last(), Some(&of_day(50, 0)), "and then on time");
        at_once.len()
    };
    assert_eq!(runs(MissedRuns::Burst), 2);
    assert_eq!(runs(MissedRuns::Coalesce), 1);
    assert_eq!(runs(MissedRuns::Skip), 0, "both are overdue");
    assert_eq!(runs(MissedRuns::Delay), 1);
    assert_eq!(runs(MissedRuns::Within(2 * HOUR)), 1, "the second is an hour late");
    assert_eq!(runs(MissedRuns::Within(30 * MINUTE)), 0);
}

/// F40, W7: the machine sleeps from 01:00 to 09:00, in which the wall clock goes on and the other stands still.
#[test]
fn after_the_machine_has_slept_the_run_is_due() {
    let seen = Seen::of(at_two());
    seen.until(day_time(1, 0));
    let before = seen.clock.elapsed();
    seen.set(day_time(9, 0));
    seen.clock.run_for(LOOK);
    assert_eq!(seen.runs.entries(), [of_day(9, 0)]);
    assert_eq!(seen.clock.elapsed(), before + LOOK);
    assert_eq!(seen.future.delay(), Some(17 * HOUR - LOOK));
}

/// W8: the wall clock is 500 millionths faster than the other for a day, in small steps. The run is at its
/// moment by the wall.
#[test]
fn a_clock_that_is_slewed_is_followed() {
    let seen = Seen::of(at([midnight() + DAY]));
    let start = seen.clock.elapsed();
    while seen.clock.wall_time() < midnight() + DAY {
        assert!(seen.runs.entries().is_empty());
        seen.clock.run_for(SECOND);
        seen.set(seen.clock.wall_time() + SECOND / 2_000);
        if seen.clock.elapsed() - start > HOUR {
            // The rest of the day in one step each.
            let left = (midnight() + DAY).duration_since(seen.clock.wall_time()).expect("to come");
            let most = left - left / 1_000;
            seen.clock.run_for(most);
            seen.set(seen.clock.wall_time() + most / 2_000);
            seen.until(midnight() + DAY);
        }
    }
    assert_eq!(seen.runs.entries(), [of_day(24, 0)]);
    let real = seen.clock.elapsed() - start;
    assert!(DAY - real > 43 * SECOND && DAY - real < 44 * SECOND, "{real:?}");
}

/// F39, W9: rates and delays are on the other clock. Nothing that is done to the wall clock moves them.
#[test]
fn rates_and_delays_do_not_follow_the_wall_clock() {
    let (clock, executor) = manual(1);
    let (runs, time) = (Log::new(), clock.clone());
    let log = runs.clone();
    let body = move || log.push(time.elapsed().as_secs());
    let ten = 10 * SECOND;
    let rate = executor.repeat(every(ten).first_in(ten), body.clone()).expect("accepted");
    let _delay = executor.repeat(fixed_delay(ten).first_in(ten), body.clone()).expect("accepted");
    let _java = executor.schedule_at_fixed_rate(ten, ten, body.clone()).expect("accepted");
    let moment = executor.repeat(at([clock.now() + 3 * ten]), body).expect("accepted");
    for wall in [day_time(9, 0), day_time(1, 0), midnight() + 2 * DAY, midnight()] {
        clock.set_wall_time(wall);
        clock.run_until_idle();
        assert_eq!((rate.delay(), moment.delay()), (Some(ten), Some(3 * ten)));
    }
    clock.run_for(3 * ten);
    assert_eq!(runs.entries(), [10, 10, 10, 20, 20, 20, 30, 30, 30, 30]);
}

/// The clock is set while the task runs: the next run is planned by what it shows then.
#[test]
fn a_clock_that_is_set_during_a_run_is_followed() {
    let (back, ahead) = (day_time(1, 31), day_time(5, 1));
    let (late, next) = (of_day(5, 1), of_day(5, 15));
    for (policy, target, expected) in [
        (MissedRuns::Coalesce, back, vec![of_day(1, 45)]),
        (MissedRuns::Burst, back, vec![of_day(1, 45)]),
        (MissedRuns::Skip, back, vec![of_day(1, 45)]),
        (MissedRuns::Within(HOUR), back, vec![of_day(1, 45)]),
        (MissedRuns::Coalesce, ahead, vec![late, next]),
        (MissedRuns::Skip, ahead, vec![next]),
        (MissedRuns::Within(20 * MINUTE), ahead, vec![late, late, next]),
        (MissedRuns::Within(MINUTE), ahead, vec![late, next]),
    ] {
        let (clock, executor) = manual(1);
        clock.set_wall_time(day_time(1, 50));
        let (runs, time) = (Log::new(), clock.clone());
        let log = runs.clone();
        let body = move || {
            log.push(minutes(time.wall_time()));
            if log.entries().len() == 1 {
                time.set_wall_time(target);
            }
        };
        let task = executor.task().missed_runs(policy);
        let _future = task.repeat(Calendar(15 * MINUTE), body).expect("accepted");
        clock.run_for(25 * MINUTE);
        assert_eq!(runs.entries()[0], of_day(2, 0));
        assert_eq!(runs.entries()[1..], expected, "{policy:?} {target:?}");
    }
}

/// A trigger that is delayed by jitter is shown the moments that it chose itself.
#[test]
fn jitter_does_not_drift_on_the_wall_clock() {
    for policy in [MissedRuns::Burst, MissedRuns::Coalesce, MissedRuns::Skip] {
        let told = Log::new();
        let log = told.clone();
        let mut inner = Calendar(HOUR);
        let calendar = from_fn(move |last| {
            log.push(last.planned_wall().map(minutes));
            inner.next(last)
        });
        let seen = Seen::with(policy, midnight(), calendar.jitter(50 * MINUTE).seed(3));
        seen.until(day_time(10, 59));
        let runs = seen.runs.entries();
        assert_eq!(runs.len(), 10, "{policy:?}");
        for (number, run) in (1..).zip(&runs) {
            assert!((60 * number..60 * number + 50).contains(run), "{policy:?} {run}");
        }
        let planned: Vec<_> = (1..=10).map(|hour| Some(60 * hour)).collect();
        assert_eq!(told.entries()[1..], planned, "{policy:?}");
    }
}

/// An end on either clock limits runs on either.
#[test]
fn an_end_may_be_on_either_clock() {
    let ends = |hours: u32| {
        let clock = ManualClock::new();
        (Due::Wall(midnight() + hours * HOUR), Due::At(clock.now() + hours * HOUR))
    };
    let seen = Seen::of(Calendar(HOUR).until(ends(3).0));
    seen.until(day_time(9, 0));
    assert_eq!(seen.runs.entries(), [60, 120, 180]);
    let (clock, executor) = manual(1);
    let hourly = every(HOUR).first_in(HOUR);
    let rate = executor.repeat(hourly.until(day_time(3, 0)), || ()).expect("accepted");
    let calendar = Calendar(HOUR).until(clock.now() + 2 * HOUR);
    let calendar = executor.repeat(calendar, || ()).expect("accepted");
    clock.run_for(9 * HOUR);
    assert!(rate.is_done() && calendar.is_done());
    assert_eq!(executor.statistics().runs, 3 + 2);
}

/// A request beside the plan is for a moment of the executor's clock, and does not follow the wall clock.
#[test]
fn what_is_asked_beside_the_plan_does_not_follow() {
    let seen = Seen::of(at_two());
    assert!(seen.future.reschedule(30 * MINUTE));
    seen.set(day_time(1, 0));
    assert_eq!(seen.future.delay(), Some(30 * MINUTE));
    seen.clock.run_for(30 * MINUTE);
    assert_eq!(seen.runs.entries(), [of_day(1, 30)]);
    assert_eq!(seen.future.delay(), Some(30 * MINUTE), "and then by the plan");
    seen.set(day_time(1, 45));
    assert_eq!(seen.future.delay(), Some(15 * MINUTE));
    // One run more leaves the plan on the wall clock.
    assert!(seen.future.run_now());
    seen.clock.run_until_idle();
    assert_eq!(seen.runs.entries(), [of_day(1, 30), of_day(1, 45)]);
    seen.set(day_time(1, 15));
    assert_eq!(seen.future.delay(), Some(45 * MINUTE));
}

/// A pause is lateness, by the wall clock as well: what passes meanwhile is due at the end.
#[test]
fn a_paused_task_follows_the_wall_clock() {
    let seen = Seen::of(at_two());
    assert!(seen.future.pause());
    seen.set(day_time(1, 0));
    assert!(seen.future.resume());
    assert_eq!(seen.future.delay(), Some(HOUR));
    assert!(seen.future.pause());
    seen.set(day_time(3, 0));
    assert!(seen.runs.entries().is_empty());
    assert!(seen.future.resume());
    seen.clock.run_until_idle();
    assert_eq!(seen.runs.entries(), [of_day(3, 0)]);
}

/// A task may be put on the wall clock, and taken off it, while it waits.
#[test]
fn a_task_changes_its_clock() {
    let seen = Seen::of(every(HOUR).first_in(HOUR));
    assert!(seen.future.set_trigger(at_two()));
    seen.set(day_time(1, 0));
    assert_eq!(seen.future.delay(), Some(HOUR));
    seen.until(day_time(2, 0));
    assert_eq!(seen.runs.entries(), [of_day(2, 0)]);
    assert!(seen.future.set_trigger(every(HOUR).first_in(HOUR)));
    seen.set(day_time(9, 0));
    assert_eq!(seen.future.delay(), Some(HOUR));
}

/// A run that fails and is put off by its policy is on the other clock until it has taken place.
#[test]
fn back_off_does_not_follow_the_wall_clock() {
    let (clock, executor) = manual(1);
    let (runs, time) = (Log::new(), clock.clone());
    let log = runs.clone();
    let body = move || -> Result<(), &'static str> {
        log.push(minutes(time.wall_time()));
        if log.entries().len() == 1 { Err("no") } else { Ok(()) }
    };
    let policy = FailurePolicy::resume().back_off(3 * HOUR..=3 * HOUR);
    let task = executor.task().on_failure(policy);
    let future = task.repeat(Calendar(HOUR), body).expect("accepted");
    clock.run_for(HOUR);
    assert_eq!(future.delay(), Some(3 * HOUR));
    clock.set_wall_time(day_time(1, 30));
    clock.run_until_idle();
    assert_eq!(future.delay(), Some(3 * HOUR));
    clock.run_for(3 * HOUR);
    assert_eq!(runs.entries(), [of_day(1, 0), of_day(4, 30)]);
    assert_eq!(future.delay(), Some(30 * MINUTE));
}

/// Many tasks on both clocks: all that are on the wall clock follow it, and the counts stay right.
#[test]
fn all_that_are_on_the_wall_clock_follow_it() {
    let (clock, executor) = manual(2);
    let on_wall: Vec<_> = (1..=200)
        .map(|hour: u32| executor.repeat(at([midnight() + hour * HOUR]), || ()).expect("accepted"))
        .collect();
    let others: Vec<_> = (1..=200)
        .map(|hour: u32| executor.schedule(hour * HOUR, || ()).expect("accepted"))
        .collect();
    clock.set_wall_time(midnight() + 100 * HOUR);
    clock.run_for(LOOK);
    assert_eq!(on_wall.iter().filter(|future| future.is_done()).count(), 100);
    assert_eq!(on_wall[100].delay(), Some(HOUR - LOOK));
    assert!(others.iter().all(|future| !future.is_done()));
    let statistics = executor.statistics();
    assert_eq!((statistics.completed, statistics.pending, statistics.cancelled), (100, 300, 0));
    assert_eq!(statistics.submitted, 400);
}

/// Threads that set the clock, submit, cancel and put off at the same time: in the end every task waits for
/// its moment by what the clock shows.
#[test]
fn a_task_that_is_queued_while_the_clock_is_set_follows_it() {
    for round in rounds("setting the clock", 1_000) {
        let (clock, executor) = manual(2);
        let setter = {
            let clock = clock.clone();
            std::thread::spawn(move || {
                for step in 0..20_u32 {
                    clock.set_wall_time(midnight() + step * MINUTE);
                    std::thread::yield_now();
                }
            })
        };
        let futures: Vec<_> =
            (0..20).map(|_| executor.repeat(Calendar(HOUR), || ()).expect("accepted")).collect();
        for future in futures.iter().step_by(3) {
            future.pause();
            future.resume();
        }
        setter.join().expect("it does not panic");
        clock.run_until_idle();
        let left = HOUR - 19 * MINUTE;
        for future in &futures {
            assert_eq!(future.delay(), Some(left), "round {round}");
        }
        clock.run_for(left);
        assert_eq!(executor.statistics().runs, 20, "round {round}");
    }
}

/// On the system's clock: a moment of the wall clock comes, and never early by that clock.
#[test]
fn on_the_system_clock_no_run_is_early() {
    let executor = Executor::new(1);
    let clock = executor.clock();
    // A moment that has passed when the task is submitted has no run, and the machine may be slow.
    let moments: Vec<_> = (1..=20).map(|number| clock.wall_time() + ms(200 + number)).collect();
    let (runs, time) = (Log::new(), clock.clone());
    let log = runs.clone();
    let future = executor
        .task()
        .missed_runs(MissedRuns::Burst)
        .repeat(at(moments.clone()), move || log.push(time.wall_time()))
        .expect("accepted");
    eventually("the last moment", || future.is_done());
    assert_eq!(runs.entries().len(), moments.len());
    for (run, moment) in runs.entries().iter().zip(&moments) {
        assert!(run >= moment);
    }
}
