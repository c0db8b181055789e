//! Histograms of lateness and run time, exact on the manual clock.

use std::time::Duration;

use punctual::{
    FailurePolicy, Histogram, RunHistograms, ScheduledThreadPoolExecutor,
    gate::{self, Entry},
};

use crate::support::{in_time, manual_with, ms};

const NS: Duration = Duration::from_nanos(1);

/// The count, the sum and the longest.
fn facts(histogram: &Histogram) -> (u64, Duration, Option<Duration>) {
    (histogram.count(), histogram.sum(), histogram.max())
}

fn run_times(histograms: &RunHistograms) -> (u64, Duration, Option<Duration>) {
    facts(histograms.run_time())
}

/// Lateness counts from the planned moment to the start, and run time from there to the end, to the nanosecond.
#[test]
fn lateness_and_run_time_are_exact() {
    let (clock, executor) = manual_with(|builder| builder.histograms(0));
    let time = clock.clone();
    executor.schedule(ms(2), move || time.advance(ms(3) + NS)).unwrap();
    clock.advance(ms(2) + 250 * NS);
    clock.run_until_idle();
    let seen = executor.histograms().unwrap();
    assert_eq!(facts(seen.pool().lateness()), (1, 250 * NS, Some(250 * NS)));
    assert_eq!(run_times(seen.pool()), (1, ms(3) + NS, Some(ms(3) + NS)));
    assert_eq!(seen.names().len(), 0);
}

/// A worker that finds its next task at once records the run before it.
#[test]
fn runs_in_a_row_are_recorded_one_by_one() {
    let (clock, executor) = manual_with(|builder| builder.histograms(0));
    for step in [1, 2, 4] {
        let time = clock.clone();
        executor.schedule(ms(1), move || time.advance(ms(step))).unwrap();
    }
    clock.advance(ms(1));
    clock.run_until_idle();
    let seen = executor.histograms().unwrap();
    assert_eq!(run_times(seen.pool()), (3, ms(7), Some(ms(4))));
    // The second is as late as the first took, and the third as both.
    assert_eq!(facts(seen.pool().lateness()), (3, ms(1 + 3), Some(ms(3))));
}

/// Lateness is not what a slow run hides: each run that it has delayed is as late as it was.
#[test]
fn a_stall_is_seen_in_every_run_that_it_delays() {
    let (clock, executor) = manual_with(|builder| builder.histograms(0));
    let (time, mut is_first) = (clock.clone(), true);
    let beat = executor.schedule_at_fixed_rate(ms(1), ms(1), move || {
        if std::mem::take(&mut is_first) {
            time.advance(ms(5));
        }
    });
    let beat = beat.unwrap();
    clock.run_for(ms(1));
    beat.cancel();
    clock.run_until_idle();
    let seen = executor.histograms().unwrap();
    // Planned for 1, 2, 3, 4, 5 and 6 ms; the first starts on time, the others at 6 ms.
    assert_eq!(facts(seen.pool().lateness()), (6, ms(4 + 3 + 2 + 1), Some(ms(4))));
    assert_eq!(run_times(seen.pool()), (6, ms(5), Some(ms(5))));
}

/// G67, M193: a name has histograms of its own, and its runs count for the pool as well, each once.
#[test]
fn names_are_kept_apart_and_count_for_the_pool() {
    let (clock, executor) = manual_with(|builder| builder.histograms(2));
    for (name, step) in [("b", 1), ("a", 2), ("b", 4), ("too many", 8)] {
        let time = clock.clone();
        executor.task().name(name).execute(move || time.advance(ms(step))).unwrap();
        clock.run_until_idle();
    }
    let time = clock.clone();
    executor.execute(move || time.advance(ms(16))).unwrap();
    clock.run_until_idle();
    let seen = executor.histograms().unwrap();
    let names: Vec<_> = seen.names().map(|(name, own)| (name, own.runs())).collect();
    assert_eq!(names, [("a", 1), ("b", 2)]);
    assert_eq!(run_times(seen.named("b").unwrap()), (2, ms(5), Some(ms(4))));
    assert_eq!(run_times(seen.named("a").unwrap()), (1, ms(2), Some(ms(2))));
    assert!(seen.named("too many").is_none());
    assert_eq!(run_times(seen.pool()), (5, ms(31), Some(ms(16))));
}

/// G67, M194: a run that fails is recorded; what does not run is not.
#[test]
fn exactly_the_runs_are_recorded() {
    let (clock, executor) = manual_with(|builder| builder.histograms(9));
    let named = |name: &'static str| executor.task().name(name);
    let policy = FailurePolicy::resume();
    let mut failing = named("fails").on_failure(policy);
    failing = failing.timeout(ms(50));
    let failing = failing.schedule_at_fixed_rate(ms(1), ms(1), || panic!("as it should"));
    let skipped = named("skipped").gate(gate::from_fn(|_| Entry::Skip)).schedule(ms(1), || ());
    let cancelled = named("cancelled").schedule(ms(1), || ());
    assert!(cancelled.unwrap().cancel());
    clock.run_for(ms(3));
    failing.unwrap().cancel();
    drop(skipped);
    executor.execute(|| ()).unwrap();
    clock.run_until_idle();
    let seen = executor.histograms().unwrap();
    let names: Vec<_> = seen.names().map(|(name, own)| (name, own.runs())).collect();
    assert_eq!(names, [("fails", 3)]);
    assert_eq!(seen.pool().runs(), executor.statistics().runs);
}

/// The time that a gate takes counts as lateness and not as run time, and a run that it has put off is late from
/// the moment for which it was planned.
#[test]
fn a_gate_makes_late() {
    let (clock, executor) = manual_with(|builder| builder.histograms(1));
    let (time, mut asked) = (clock.clone(), 0);
    let asks = std::sync::Mutex::new(move || {
        asked += 1;
        time.advance(ms(1));
        if asked == 1 { Entry::Again(ms(10)) } else { Entry::Run }
    });
    let (time, task) = (clock.clone(), executor.task().name("gated"));
    let task = task.gate(gate::from_fn(move |_| (asks.lock().unwrap())()));
    task.schedule(ms(1), move || time.advance(ms(3))).unwrap();
    clock.run_for(ms(20));
    let seen = executor.histograms().unwrap();
    let gated = seen.named("gated").unwrap();
    // Asked at 1 ms, which took until 2 ms; again at 12 ms, which took until 13 ms.
    assert_eq!(facts(gated.lateness()), (1, ms(12), Some(ms(12))));
    assert_eq!(run_times(gated), (1, ms(3), Some(ms(3))));
}

/// The records of a worker stay when the worker has gone.
#[test]
fn workers_come_and_go_and_their_runs_stay() {
    let settings = |builder: punctual::Builder| {
        builder.histograms(0).allows_core_thread_timeout(true).keep_alive(ms(5))
    };
    let (clock, executor) = manual_with(settings);
    for _ in 0..3 {
        let time = clock.clone();
        executor.execute(move || time.advance(ms(1))).unwrap();
        clock.run_until_idle();
        clock.run_for(ms(20));
        assert_eq!(executor.pool_size(), 0);
    }
    assert_eq!(run_times(executor.histograms().unwrap().pool()), (3, ms(3), Some(ms(1))));
}

/// G67: with many workers and a name that they share, each run is recorded once.
#[test]
fn many_workers_record_each_run_once() {
    const TASKS: u64 = 4_000;
    let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(4).histograms(1);
    let executor = builder.build().unwrap();
    for number in 0..TASKS {
        match number % 2 {
            0 => executor.task().name("shared").execute(|| ()),
            _ => executor.execute(|| ()),
        }
        .unwrap();
    }
    let handle = executor.handle();
    in_time("it closes", move || executor.close().unwrap());
    let seen = handle.histograms().unwrap();
    assert_eq!((seen.pool().runs(), seen.named("shared").unwrap().runs()), (TASKS, TASKS / 2));
    assert_eq!(seen.pool().lateness().count(), TASKS);
}

/// An executor that was not asked to keep them has none.
#[test]
fn there_are_none_unless_they_are_asked_for() {
    let (clock, executor) = manual_with(|builder| builder);
    executor.task().name("unseen").execute(|| ()).unwrap();
    clock.run_until_idle();
    assert!(executor.histograms().is_none());
}

/// G67: the runs of a group's tasks are recorded for the group as well, with a name and without, and count for the pool once.
#[test]
fn groups_are_recorded_beside_the_pool() {
    let (clock, executor) = manual_with(|builder| builder.histograms(1));
    let group = executor.group("mail").limit(1).build().unwrap();
    assert_eq!(group.histograms().unwrap().runs(), 0);
    for (name, step) in [(Some("a"), 1), (None, 2)] {
        let time = clock.clone();
        let task = name.map_or(group.task(), |name| group.task().name(name));
        task.execute(move || time.advance(ms(step))).unwrap();
    }
    let time = clock.clone();
    executor.task().name("a").execute(move || time.advance(ms(4))).unwrap();
    clock.run_until_idle();
    let seen = executor.histograms().unwrap();
    assert_eq!(run_times(&group.histograms().unwrap()), (2, ms(3), Some(ms(2))));
    assert_eq!(run_times(seen.named("a").unwrap()), (2, ms(5), Some(ms(4))));
    assert_eq!(run_times(seen.pool()), (3, ms(7), Some(ms(4))));
    let without = ScheduledThreadPoolExecutor::new(1);
    assert!(without.group("mail").build().unwrap().histograms().is_none());
}
