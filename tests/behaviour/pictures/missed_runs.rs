//! The missed runs of a task with a fixed rate: the picture shows the runs that the policies make.
//!
//! For each policy the same task runs on a manual clock. It has a period, its body takes a little time, and one
//! of its runs takes far too long.

use std::{sync::mpsc, time::Duration};

use punctual::{ManualClock, MissedRuns, ScheduledThreadPoolExecutor, current_task};

use super::svg::picture;

/// All in seconds.
const PERIOD: u64 = 10;
const BODY: u64 = 2;
/// How long the run takes that is planned for [`STALLED`].
const STALL: u64 = 35;
const STALLED: u64 = 20;
const END: u64 = 90;

const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// One run; in seconds since the clock began.
#[derive(Debug, PartialEq)]
struct Run {
    planned: u64,
    start: u64,
    end: u64,
    /// How many runs were left out before this one.
    missed: u64,
}

/// The policies, in the order of the picture.
const POLICIES: [MissedRuns; 5] = [
    MissedRuns::Burst,
    MissedRuns::Coalesce,
    MissedRuns::Skip,
    MissedRuns::Delay,
    MissedRuns::Within(seconds(20)),
];

/// Runs a task with that policy, and returns its runs.
fn record(policy: MissedRuns) -> Vec<Run> {
    let clock = ManualClock::new();
    let builder = ScheduledThreadPoolExecutor::builder().clock(clock.clone());
    let executor = builder.core_pool_size(1).build().expect("one worker");
    let (tell, told) = mpsc::channel();
    let inside = clock.clone();
    let body = move || {
        let task = current_task().expect("a task runs");
        let start = inside.elapsed().as_secs();
        let planned = start - task.lateness().as_secs();
        inside.advance(seconds(if planned == STALLED { STALL } else { BODY }));
        let end = inside.elapsed().as_secs();
        let run = Run { planned, start, end, missed: task.missed_runs() };
        tell.send(run).expect("the test listens");
    };
    let task = executor.task().missed_runs(policy);
    let series = task.schedule_at_fixed_rate(Duration::ZERO, seconds(PERIOD), body).expect("open");
    clock.run_until(|| clock.elapsed() > seconds(END));
    assert!(series.cancel());
    drop(executor);
    told.try_iter().filter(|run| run.start < END).collect()
}

/// The moments of the grid before that run for which there was no run.
fn left_out(runs: &[Run]) -> Vec<u64> {
    let before = |pair: &[Run]| {
        let [one, next] = pair else { unreachable!("a pair") };
        let first = one.planned + PERIOD;
        (0..next.missed).map(move |count| first + count * PERIOD)
    };
    runs.windows(2).flat_map(before).collect()
}

/// Each bar of the picture is a run, and strong if the run is late; there is no other bar.
#[test]
fn the_bars_are_the_runs() {
    let elements = picture("missed-runs");
    for (row, policy) in POLICIES.into_iter().enumerate() {
        let top = 100.0 + 66.0 * row as f32;
        let bars = elements.iter().filter(|it| it.name == "rect" && it.at().1 == top);
        let bars = bars.filter(|bar| bar.size().1 == 19.0);
        // A second is six units wide, and neighbours are told apart by one.
        let bars = bars.map(|bar| (bar.at().0, bar.size().0, bar.has_class("strong")));
        let runs = record(policy).into_iter().map(|run| {
            let seconds = run.end.min(END) - run.start;
            (24.5 + 6.0 * run.start as f32, 6.0 * seconds as f32 - 1.0, run.start > run.planned)
        });
        assert_eq!(bars.collect::<Vec<_>>(), runs.collect::<Vec<_>>(), "{policy:?}");
    }
}

/// As the documents say of runs that are late because the worker is busy, two policies leave them out.
#[test]
fn an_overdue_run_is_left_out() {
    let starts = |policy, busy: u64| {
        let clock = ManualClock::new();
        let builder = ScheduledThreadPoolExecutor::builder().clock(clock.clone());
        let executor = builder.core_pool_size(1).build().expect("one worker");
        let (tell, told) = mpsc::channel();
        let inside = clock.clone();
        let body = move || tell.send(inside.elapsed().as_secs()).expect("the test listens");
        let task = executor.task().missed_runs(policy);
        task.schedule_at_fixed_rate(seconds(PERIOD), seconds(PERIOD), body).expect("open");
        let inside = clock.clone();
        executor.schedule(seconds(5), move || inside.advance(seconds(busy))).expect("open");
        clock.run_for(seconds(60));
        told.try_iter().collect::<Vec<_>>()
    };
    assert_eq!(starts(MissedRuns::Burst, 38), [43, 43, 43, 43, 50, 60]);
    assert_eq!(starts(MissedRuns::Coalesce, 38), [43, 50, 60]);
    assert_eq!(starts(MissedRuns::Skip, 38), [50, 60]);
    assert_eq!(starts(MissedRuns::Within(seconds(20)), 38), [43, 43, 50, 60]);
}

/// The statements of the documents about the policies, in numbers.
#[test]
fn each_policy_does_what_it_says() {
    let late = |policy| -> Vec<(u64, u64)> {
        let runs = record(policy).into_iter().filter(|run| run.start > STALLED);
        runs.map(|run| (run.planned, run.start)).take(5).collect()
    };
    assert_eq!(late(MissedRuns::Burst), [(30, 55), (40, 57), (50, 59), (60, 61), (70, 70)]);
    assert_eq!(late(MissedRuns::Skip), [(60, 60), (70, 70), (80, 80)]);
    assert_eq!(
        late(MissedRuns::Within(seconds(20))),
        [(40, 55), (50, 57), (60, 60), (70, 70), (80, 80)]
    );
    assert_eq!(left_out(&record(MissedRuns::Skip)), [30, 40, 50]);
    assert_eq!(left_out(&record(MissedRuns::Burst)), []);
}
