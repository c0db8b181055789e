//! What a task with a fixed rate does about missed runs: the starts of real runs, as the policies make them.
//!
//! For each policy the same task runs on a manual clock. It has a period, its body takes a little time, and one
//! of its runs takes far too long. Everything that is drawn was recorded by the body.

use std::{sync::mpsc, time::Duration};

use punctual::{ManualClock, MissedRuns, ScheduledThreadPoolExecutor, current_task};

use crate::{
    palette::{CALM, FAINT, GRID, GROUND, STRONG, TEXT},
    svg::{Anchor, Letters, Picture, Point},
};

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

/// The policies, with what each does.
const POLICIES: [(MissedRuns, &str, &str); 5] = [
    (MissedRuns::Burst, "Burst", "makes up for each run that was missed"),
    (MissedRuns::Coalesce, "Coalesce", "runs once for all of them"),
    (MissedRuns::Skip, "Skip", "goes on with the next moment to come"),
    (MissedRuns::Delay, "Delay", "runs at once, and moves the grid"),
    (MissedRuns::Within(seconds(20)), "Within(20 s)", "makes up for those no later than that"),
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

const LEFT: f32 = 24.0;
const SCALE: f32 = 6.0;
const FIRST_ROW: f32 = 70.0;
const ROW: f32 = 66.0;

fn across(second: u64) -> f32 {
    LEFT + SCALE * second as f32
}

pub(crate) fn draw() -> String {
    let rows = POLICIES.len() as f32;
    let foot = FIRST_ROW + ROW * rows;
    let mut picture = Picture::new(
        foot + 92.0,
        "What happens to missed runs",
        "The runs of a task with a period of 10 s, one of which takes 35 s, with each of the policies for missed runs.",
    );
    picture.text((20.0, 34.0), Anchor::Start, Letters::Title, TEXT, "What happens to missed runs");
    for second in (0..=END).step_by(PERIOD as usize) {
        let x = across(second);
        picture.line(&[(x, FIRST_ROW - 14.0), (x, foot)], GRID, false);
        picture.text((x, foot + 20.0), Anchor::Middle, Letters::Words, FAINT, &second.to_string());
    }
    picture.text((584.0, foot + 20.0), Anchor::End, Letters::Words, FAINT, "s");
    for (row, (policy, name, says)) in POLICIES.into_iter().enumerate() {
        draw_row(&mut picture, FIRST_ROW + ROW * row as f32, name, says, &record(policy));
    }
    legend(&mut picture, foot + 46.0);
    picture.finish()
}

fn draw_row(picture: &mut Picture, top: f32, name: &str, says: &str, runs: &[Run]) {
    let base = top + 50.0;
    // The lines of the grid do not cross what is written.
    picture.bar((LEFT - 6.0, top - 9.0), (560.0, 25.0), GROUND);
    picture.text((20.0, top + 8.0), Anchor::Start, Letters::Code, TEXT, name);
    picture.text((146.0, top + 8.0), Anchor::Start, Letters::Words, FAINT, says);
    picture.line(&[(across(0), base), (across(END), base)], FAINT, false);
    for run in runs {
        let ink = if run.start > run.planned { STRONG } else { CALM };
        let (x, width) = (across(run.start), SCALE * (run.end.min(END) - run.start) as f32);
        // Neighbours are told apart.
        picture.bar((x + 0.5, base - 20.0), (width - 1.0, 19.0), ink);
    }
    for moment in left_out(runs) {
        cross(picture, (across(moment), base));
    }
}

/// The mark of a run that did not take place.
fn cross(picture: &mut Picture, (x, y): Point) {
    for side in [4.5, -4.5] {
        picture.line(&[(x - 4.5, y - side), (x + 4.5, y + side)], TEXT, false);
    }
}

fn legend(picture: &mut Picture, y: f32) {
    let words = |picture: &mut Picture, x, y, text| {
        picture.text((x, y), Anchor::Start, Letters::Words, FAINT, text);
    };
    picture.bar((24.0, y - 12.0), (12.0, 14.0), CALM);
    words(picture, 42.0, y, "a run on time");
    picture.bar((186.0, y - 12.0), (12.0, 14.0), STRONG);
    words(picture, 204.0, y, "a run that is late");
    cross(picture, (370.0, y - 5.0));
    words(picture, 382.0, y, "a moment without a run");
    words(
        picture,
        24.0,
        y + 26.0,
        "The period is 10 s. A run takes 2 s, and the one at 20 s takes 35 s.",
    );
}

/// What the documents say of runs that are late because the worker is busy: two policies leave them out.
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

/// What the documents say of the policies, in numbers.
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
