//! Tolerance: a run may start a little late, so that tasks meet.

use std::{
    collections::BTreeSet,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use proptest::prelude::*;
use punctual::{
    Backoff, ManualClock, MissedRuns, ScheduledFuture, ScheduledThreadPoolExecutor as Executor,
    Trigger, current_task,
    trigger::{Due, at, every, fixed_delay, from_fn, on_demand},
};

use crate::support::{Log, Wrapped, manual, ms};

/// Submits a task with this trigger, and logs when its runs start.
fn logged(
    clock: &ManualClock,
    executor: &Executor,
    trigger: impl Trigger,
    log: &Log<Duration>,
) -> ScheduledFuture<()> {
    let (own, log) = (clock.clone(), log.clone());
    executor.repeat(trigger, move || log.push(own.elapsed())).expect("accepted")
}

/// Returns when the runs of one task start, in the first second.
fn starts(trigger: impl Trigger) -> Vec<Duration> {
    let ((clock, executor), log) = (manual(1), Log::new());
    let _task = logged(&clock, &executor, trigger, &log);
    clock.run_for(ms(1_000));
    log.entries()
}

#[test]
fn a_run_is_never_early_and_no_later_than_its_tolerance() {
    let runs = starts(every(ms(100)).first_in(ms(7)).tolerance(ms(5)));
    assert_eq!(runs.len(), 10);
    for (number, start) in (0..).zip(&runs) {
        let moment = ms(100 * number + 7);
        assert!((moment..=moment + ms(5)).contains(start), "run {number} at {start:?}");
    }
    let exact = starts(every(ms(100)).first_in(ms(7)).tolerance(Duration::ZERO));
    assert_eq!(exact, [7, 107, 207, 307, 407, 507, 607, 707, 807, 907].map(ms));
}

/// A thousand tasks with other phases and periods share their wake-ups, and each has all its runs.
#[test]
fn tasks_with_other_phases_meet() {
    let moments = |tolerance: Duration| {
        let ((clock, executor), log) = (manual(1), Log::new());
        let tasks: Vec<_> = (0..1_000_u64)
            .map(|number| {
                let phase = Duration::from_micros(100 * number + number % 7);
                let period = ms(100 + number % 3);
                let trigger = every(period).first_in(phase).tolerance(tolerance);
                logged(&clock, &executor, trigger, &log)
            })
            .collect();
        clock.run_for(ms(1_000));
        assert!(tasks.iter().all(|task| !task.is_done()));
        let runs = log.entries();
        (runs.len(), BTreeSet::from_iter(runs).len())
    };
    let ((exact, alone), (tolerant, together)) = (moments(Duration::ZERO), moments(ms(5)));
    assert!(exact.abs_diff(tolerant) <= 100, "{exact} runs, and {tolerant}");
    assert!(alone > 9_000, "{alone} wake-ups");
    assert!(together <= 260, "{together} wake-ups: one in four milliseconds is enough");
}

/// Two tolerances share moments too: the coarse grid is a part of the fine one.
#[test]
fn tasks_with_other_tolerances_meet() {
    let coarse = starts(every(ms(50)).tolerance(ms(40)));
    let fine = starts(every(ms(1)).tolerance(ms(3)));
    assert!(coarse.iter().all(|start| fine.contains(start)), "{coarse:?}");
}

/// Tasks that meet run in the order in which they were submitted, whichever of them is planned first.
#[test]
fn order_among_equal_deadlines_is_kept() {
    let ((clock, executor), log) = (manual(1), Log::new());
    let tasks: Vec<_> = [9, 3, 3, 6, 0]
        .into_iter()
        .enumerate()
        .map(|(number, phase)| {
            let (log, own) = (log.clone(), clock.clone());
            let trigger = every(ms(1_000)).first_in(ms(phase)).tolerance(ms(1_000));
            executor.repeat(trigger, move || log.push((own.elapsed(), number))).expect("accepted")
        })
        .collect();
    clock.run_for(ms(10_000));
    let runs = log.entries();
    assert!(runs.len() >= 45, "{runs:?}");
    for round in runs.chunks(5) {
        assert!(round.iter().all(|run| run.0 == round[0].0), "they meet: {round:?}");
        let numbers: Vec<_> = round.iter().map(|run| run.1).collect();
        assert!(numbers.is_sorted(), "{numbers:?}");
    }
    drop(tasks);
}

/// A pause counts from the end of the run, and a given moment is kept, each with the tolerance after it.
#[test]
fn every_trigger_has_a_tolerance() {
    let ((clock, executor), log) = (manual(1), Log::new());
    let (own, ends) = (clock.clone(), log.clone());
    let body = move || {
        let start = own.elapsed();
        own.advance(ms(30));
        ends.push((start, own.elapsed()));
    };
    let pauses = fixed_delay(ms(100)).first_in(ms(100)).tolerance(ms(20));
    let _task = executor.repeat(pauses, body).expect("accepted");
    clock.run_for(ms(1_000));
    let mut before = Duration::ZERO;
    for (start, end) in log.entries() {
        let moment = before + ms(100);
        assert!((moment..=moment + ms(20)).contains(&start), "{start:?} after {before:?}");
        before = end;
    }
    assert!(log.entries().len() >= 6);

    let ((clock, executor), log) = (manual(1), Log::new());
    let once = at([clock.now() + ms(333)]).tolerance(ms(50));
    let task = logged(&clock, &executor, once, &log);
    clock.run_for(ms(1_000));
    let [start] = log.entries()[..] else { panic!("one run: {log:?}") };
    assert!((ms(333)..=ms(383)).contains(&start), "{start:?}");
    assert!(task.is_done());
    assert!(starts(on_demand().tolerance(ms(50))).is_empty());
}

/// A moment of the wall clock is rounded on that clock, the same on every machine.
#[test]
fn a_moment_of_the_wall_clock_has_a_tolerance() {
    let run_of = |begin: Duration| {
        let ((clock, executor), log) = (manual(1), Log::new());
        let noon = UNIX_EPOCH + Duration::from_secs(1_774_612_800);
        clock.set_wall_time(noon - begin);
        let (own, wall) = (clock.clone(), log.clone());
        let body = move || wall.push((own.wall_time(), current_task().map(|run| run.lateness())));
        let _task = executor.repeat(at([noon]).tolerance(ms(500)), body).expect("accepted");
        clock.run_for(begin + ms(1_000));
        let [run] = log.entries()[..] else { panic!("one run: {log:?}") };
        assert!((noon..=noon + ms(500)).contains(&run.0), "{run:?}");
        run
    };
    let run: (SystemTime, _) = run_of(ms(100));
    assert_eq!(run.1, Some(Duration::ZERO));
    assert_eq!(run_of(ms(12_345)), run);
    let ancient = from_fn(|last| last.planned().is_none().then(|| Due::Wall(UNIX_EPOCH - ms(1))));
    assert_eq!(starts(ancient.tolerance(ms(500))), [Duration::ZERO]);
}

/// The readable moment is that of the run, and a moment that a caller asks for is exact.
#[test]
fn the_delay_shows_when_the_run_is_due() {
    let ((clock, executor), log) = (manual(1), Log::new());
    let task = logged(&clock, &executor, every(ms(100)).first_in(ms(100)).tolerance(ms(30)), &log);
    let due = task.delay().expect("it is pending");
    assert!((ms(100)..=ms(130)).contains(&due));
    clock.run_for(due);
    assert_eq!(log.entries(), [due]);
    assert!(task.reschedule(ms(11)));
    assert_eq!(task.delay(), Some(ms(11)));
    clock.run_for(ms(11));
    assert_eq!(log.entries()[1..], [due + ms(11)]);
    let next = clock.elapsed() + task.delay().expect("it is pending");
    let moment = due + ms(111);
    assert!((moment..=moment + ms(30)).contains(&next), "from there on: {next:?}");
}

/// A run within its tolerance is on time, for the policy for missed runs too, and the trigger inside is shown
/// the moments that it chose.
#[test]
fn a_tolerance_is_not_lateness() {
    let policies = [MissedRuns::Burst, MissedRuns::Skip, MissedRuns::Within(Duration::ZERO)];
    for missed in policies {
        let ((clock, executor), log) = (manual(1), Log::new());
        let (lates, planned) = (log.clone(), Log::new());
        let (shown, mut rate) = (planned.clone(), every(ms(10)));
        let own = clock.now();
        let spied = from_fn(move |last| {
            shown.push(last.planned().map(|planned| planned - own));
            rate.next(last)
        });
        let body = move || {
            let run = current_task().expect("inside a task");
            lates.push((run.lateness(), run.missed_runs()));
        };
        let task = executor.task().missed_runs(missed);
        let _task = task.repeat(spied.tolerance(ms(9)), body).expect("accepted");
        clock.run_for(ms(99));
        assert!(log.entries().len() >= 9, "{missed:?} {log:?}");
        assert!(
            log.entries().iter().all(|late| *late == (Duration::ZERO, 0)),
            "{missed:?} {log:?}"
        );
        let moments: Vec<_> = planned.entries().into_iter().flatten().collect();
        let grid: Vec<_> = (0..).map(|number| ms(10 * number)).take(moments.len()).collect();
        assert_eq!(moments, grid, "{missed:?}");
    }
}

/// After a stall, lateness counts from the moment at which the run was due, in the run and in its histogram.
#[cfg(feature = "histograms")]
#[test]
fn the_histogram_counts_from_the_due_moment() {
    let (clock, executor) = crate::support::manual_with(|builder| builder.histograms(0));
    let lates = Log::new();
    let log = lates.clone();
    let body = move || log.push(current_task().expect("inside a task").lateness());
    let once = every(ms(100)).first_in(ms(100)).tolerance(ms(30)).times(2);
    let task = executor.repeat(once, body).expect("accepted");
    let due = task.delay().expect("it is pending");
    clock.advance(due + ms(7));
    clock.run_until_idle();
    clock.run_for(ms(200));
    assert_eq!(lates.entries(), [ms(7), Duration::ZERO]);
    let seen = executor.histograms().expect("they are kept");
    assert_eq!(seen.pool().lateness().count(), 2);
    assert_eq!(seen.pool().lateness().max(), Some(ms(7)));
    assert_eq!(seen.pool().lateness().min(), Some(Duration::ZERO));
}

/// Other triggers around it and inside it keep their meaning.
#[test]
fn a_tolerance_combines_with_other_triggers() {
    let usual = starts(every(ms(100)).tolerance(ms(30)));
    let wrapped = |trigger: Wrapped| starts(trigger);
    assert_eq!(wrapped(Wrapped::new(every(ms(100)).tolerance(ms(30)))), usual);
    assert_eq!(starts(every(ms(100)).tolerance(ms(30)).times(3))[..], usual[..3]);
    assert_eq!(starts(every(ms(100)).times(3).tolerance(ms(30)))[..], usual[..3]);
    // The tolerance begins at the end of the jitter.
    let jitter = || every(ms(100)).jitter(ms(40)).seed(3);
    for (tolerant, exact) in starts(jitter().tolerance(ms(20))).iter().zip(starts(jitter())) {
        assert!((exact..=exact + ms(20)).contains(tolerant), "{tolerant:?} {exact:?}");
    }
    // An attempt is a run like others.
    let ((clock, executor), log) = (manual(1), Log::new());
    let (own, attempts) = (clock.clone(), log.clone());
    let trigger = every(ms(1_000)).retry(Backoff::constant(ms(100)).max_attempts(2));
    let body = move || {
        attempts.push(own.elapsed());
        if attempts.entries().len() == 1 { Err("once") } else { Ok(()) }
    };
    let _task = executor.repeat(trigger.tolerance(ms(20)), body).expect("accepted");
    clock.run_for(ms(900));
    let [first, second] = log.entries()[..] else { panic!("{log:?}") };
    assert!(first <= ms(20) && (first + ms(100)..=first + ms(120)).contains(&second), "{log:?}");
}

proptest! {
    /// Whatever moment and tolerance: never early, at most as late, and at the roundest moment between.
    #[test]
    fn the_run_is_at_the_roundest_moment(planned in 0..u64::MAX / 8, most in 0..u64::MAX / 8, bits in 0..60_u32) {
        let most = Duration::from_nanos(most >> bits);
        let planned = Duration::from_nanos(planned >> (bits / 2));
        let (clock, executor) = manual(1);
        let exact = executor.repeat(at([clock.now() + planned]), || ()).expect("accepted");
        let tolerant = executor.repeat(at([clock.now() + planned]).tolerance(most), || ());
        let tolerant = tolerant.expect("accepted");
        let (moment, due) = (exact.delay().expect("pending"), tolerant.delay().expect("pending"));
        prop_assert_eq!(moment, planned);
        prop_assert!(due >= moment && due <= moment + most, "{:?} {:?} {:?}", moment, due, most);
        // A task that is planned for the moment itself stays there, and so do all between.
        let again = executor.repeat(at([clock.now() + due]).tolerance(moment + most - due), || ());
        prop_assert_eq!(again.expect("accepted").delay(), Some(due));
    }

    /// Two tasks whose spans overlap enough meet: each span contains a multiple of the greatest power of two
    /// below its length.
    #[test]
    fn two_tasks_meet_in_one_moment(phase in 0..1_000_000_u64, other in 0..1_000_000_u64, micros in 1..1_000_u64) {
        let most = Duration::from_micros(micros);
        let (clock, executor) = manual(1);
        let due = |nanos| {
            let trigger = every(ms(100)).first_in(Duration::from_nanos(nanos)).tolerance(most);
            executor.repeat(trigger, || ()).expect("accepted").delay().expect("pending")
        };
        let (one, two) = (due(phase), due(other));
        let grid = most.as_nanos().next_power_of_two() / 2;
        prop_assert_eq!(one.abs_diff(two).as_nanos() % grid, 0, "{:?} {:?} {:?}", one, two, grid);
        drop(clock);
    }
}
