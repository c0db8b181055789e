//! Fixed delay: the pause between the end of one run and the start of the next.

use std::time::{Duration, Instant};

use punctual::{RejectionReason, ScheduledThreadPoolExecutor, TaskState, current_task};

use crate::{
    periodic::fixed_rate::{recorder, summary},
    support::{Counter, LONG, Log, POLICIES, for_some_span, manual, ms},
};

/// FD-002: the first run starts at the initial delay, the next a delay after the end of the one
/// before, each exactly to the nanosecond.
#[test]
fn each_run_starts_at_its_moment() {
    let (clock, executor) = manual(1);
    let runs = Counter::new();
    let count = runs.clone();
    let series =
        executor.schedule_with_fixed_delay(Duration::ZERO, ms(12), move || count.add()).unwrap();
    clock.run_for(ms(12) - Duration::from_nanos(1));
    assert_eq!(runs.get(), 1);
    assert_eq!(series.delay(), Some(Duration::from_nanos(1)));
    clock.run_for(Duration::from_nanos(1));
    assert_eq!(runs.get(), 2);
    assert_eq!(series.delay(), Some(ms(12)));
}

/// FD-003: on the system clock no pause between two of eight runs is shorter than the delay, and
/// there is a delay with which the first run is prompt and all pauses are shorter than two delays.
#[test]
fn a_delay_is_kept() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    for_some_span(|delay| {
        let (runs, times) = (Counter::new(), Log::new());
        let (count, log) = (runs.clone(), times.clone());
        let begin = Instant::now();
        let series = executor
            .schedule_with_fixed_delay(Duration::ZERO, delay, move || {
                let started = Instant::now();
                log.push((started, Instant::now()));
                count.add();
            })
            .unwrap();
        runs.wait_for(8);
        series.cancel();

        let times = times.entries();
        let pauses: Vec<_> = times[..8].windows(2).map(|pair| pair[1].0 - pair[0].1).collect();
        assert!(pauses.iter().all(|pause| *pause >= delay), "{pauses:?}");
        times[0].0 - begin < delay && pauses.iter().all(|pause| *pause < 2 * delay)
    });
}

/// FD-006, DO-021: on the system clock a task that never runs again after its first run delays no
/// other: tasks that the run submitted still run.
#[test]
fn the_longest_delay_delays_no_other_task() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let (handle, ran) = (executor.handle(), Counter::new());
    let count = ran.clone();
    let series = executor
        .schedule_with_fixed_delay(Duration::ZERO, Duration::MAX, move || {
            let count = count.clone();
            handle.execute(move || count.add()).unwrap();
        })
        .unwrap();
    ran.wait_for(1);
    assert_eq!(series.delay(), None);
    assert_eq!(series.state(), TaskState::Scheduled);
    assert!(series.cancel());
}

/// FD-007: a delay of zero is refused, nothing is queued, and the closure is returned.
#[test]
fn a_delay_of_zero_is_refused() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let refused = executor.schedule_with_fixed_delay(LONG, Duration::ZERO, || ());
    assert!(
        matches!(refused, Err(ref error) if matches!(error.reason(), RejectionReason::ZeroPeriod))
    );

    let ran = Counter::new();
    let count = ran.clone();
    let task = executor.task();
    let refused = task.schedule_with_fixed_delay(LONG, Duration::ZERO, move || count.add());
    refused.unwrap_err().into_task().run();
    assert_eq!(ran.get(), 1);
    assert_eq!((executor.pending_count(), executor.pool_size()), (0, 0));
}

/// FD-008: each run is planned one delay after the end of the run before, however long that took
/// and however late it was; no run is ever missed, under any policy.
#[test]
fn the_delay_counts_from_the_end_of_a_run() {
    for policy in POLICIES {
        let (clock, executor) = manual(2);
        let runs = Log::new();
        let body = recorder(&clock, &runs, &[35, 0, 4]);
        let task = executor.task().missed_runs(policy);
        task.schedule_with_fixed_delay(ms(5), ms(10), body).unwrap();
        clock.advance(ms(100));
        clock.run_for(ms(100));
        let expected = [(5, 100, 0), (145, 145, 0), (155, 155, 0), (169, 169, 0), (179, 179, 0)];
        assert_eq!(summary(&runs)[..5], expected, "{policy:?}");
    }
}

/// A panic ends the periodic task: its future has the panic, and its queue entry is gone.
#[test]
fn a_panic_ends_the_periodic_task() {
    let (clock, executor) = manual(1);
    let runs = Counter::new();
    let count = runs.clone();
    let series = executor
        .schedule_with_fixed_delay(ms(1), ms(1), move || {
            count.add();
            let number = current_task().map(|task| task.run_number());
            assert!(number < Some(3), "the last");
        })
        .unwrap();
    clock.run_for(ms(100));
    assert_eq!(runs.get(), 3);
    assert_eq!(series.state(), TaskState::Failed);
    let ending = series.try_join().unwrap().unwrap_err();
    assert_eq!(ending.into_failure().unwrap().message(), "the last");
    assert_eq!(executor.pending_count(), 0);
}

/// F41, M52: a pause that is much longer than the delay causes one late run; the next one is a
/// delay after it.
#[test]
fn a_long_pause_is_one_run() {
    let (clock, executor) = manual(1);
    let late = Log::new();
    let log = late.clone();
    let series = executor.schedule_with_fixed_delay(ms(10), ms(10), move || {
        log.push(current_task().unwrap().lateness());
    });
    clock.run_for(ms(10));
    clock.advance(ms(1_000));
    clock.run_until_idle();
    assert_eq!(late.entries(), [Duration::ZERO, ms(990)]);
    assert_eq!(series.unwrap().delay(), Some(ms(10)));
}
