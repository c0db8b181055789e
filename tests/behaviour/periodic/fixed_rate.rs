//! Fixed rate: the grid on which the runs are planned, what happens to missed runs, and how a
//! periodic task ends.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use punctual::{
    CancelReason, ManualClock, MissedRuns, RejectionReason, ScheduledThreadPoolExecutor, TaskError,
    TaskState, current_task,
};

use crate::support::{Counter, Drops, LONG, Log, POLICIES, for_some_span, manual, ms};

/// One run of a periodic task, as it saw itself.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    number: u64,
    planned: Duration,
    lateness: Duration,
    missed: u64,
    /// The time that the clock showed.
    started: Duration,
}

/// A body for a periodic task that records what each run sees. The runs take as many milliseconds
/// as `lengths` says, and later runs take no time.
pub fn recorder(
    clock: &ManualClock,
    runs: &Log<Run>,
    lengths: &'static [u64],
) -> impl FnMut() + Send + use<> {
    let (clock, runs) = (clock.clone(), runs.clone());
    let origin = clock.now() - clock.elapsed();
    let mut lengths = lengths.iter();
    move || {
        let task = current_task().expect("inside a task");
        runs.push(Run {
            number: task.run_number(),
            planned: task.planned().expect("it is due") - origin,
            lateness: task.lateness(),
            missed: task.missed_runs(),
            started: clock.elapsed(),
        });
        if let Some(length) = lengths.next() {
            clock.advance(ms(*length));
        }
    }
}

/// The runs as (planned, started, missed), in milliseconds; checks that they are numbered, and
/// late by just that difference.
pub fn summary(runs: &Log<Run>) -> Vec<(u64, u64, u64)> {
    let millis = |span: Duration| u64::try_from(span.as_millis()).expect("a small number");
    let runs = runs.entries();
    for (run, number) in runs.iter().zip(1..) {
        assert_eq!(run.number, number);
        assert_eq!(run.planned + run.lateness, run.started, "{run:?}");
    }
    runs.iter().map(|run| (millis(run.planned), millis(run.started), run.missed)).collect()
}

/// The runs of a task on a grid of 10, 20, 30, … milliseconds, if nothing happens before the
/// moment `stall`, and its runs take as long as `lengths` says.
fn runs_after(
    stall: u64,
    lengths: &'static [u64],
    policy: MissedRuns,
) -> impl Iterator<Item = (u64, u64, u64)> {
    let (clock, executor) = manual(1);
    let runs = Log::new();
    let body = recorder(&clock, &runs, lengths);
    let task = executor.task().missed_runs(policy);
    task.schedule_at_fixed_rate(ms(10), ms(10), body).expect("accepted");
    clock.advance(ms(stall));
    clock.run_for(ms(200));
    summary(&runs).into_iter()
}

/// The executor, with all its workers started.
fn staffed(executor: ScheduledThreadPoolExecutor) -> ScheduledThreadPoolExecutor {
    for _ in 0..executor.core_pool_size() {
        executor.execute(|| ()).expect("the executor is open");
    }
    assert_eq!(executor.pool_size(), executor.core_pool_size());
    executor
}

/// FR-001, FR-002: the first run starts at the initial delay, the next a period later, each exactly
/// to the nanosecond.
#[test]
fn each_run_starts_at_its_moment() {
    for (initial_delay, period) in [(ms(12), LONG), (Duration::ZERO, ms(12))] {
        let (clock, executor) = manual(1);
        let runs = Counter::new();
        let count = runs.clone();
        let series =
            executor.schedule_at_fixed_rate(initial_delay, period, move || count.add()).unwrap();
        for (wait, number) in [initial_delay, period, period].into_iter().zip(1..) {
            if let Some(almost) = wait.checked_sub(Duration::from_nanos(1)) {
                clock.run_for(almost);
                assert_eq!(runs.get(), number - 1);
                clock.advance(Duration::from_nanos(1));
            }
            clock.run_until_idle();
            assert_eq!(runs.get(), number);
        }
        assert_eq!(series.delay(), Some(period));
        assert!(series.cancel());
    }
}

/// FR-003, FR-004: on the system clock eight runs take no less than seven periods, and there is a
/// period with which they take no more than eight, with one worker and with several.
#[test]
fn a_rate_is_kept() {
    for workers in [1, 4] {
        let executor = staffed(ScheduledThreadPoolExecutor::new(workers));
        for_some_span(|period| {
            let runs = Counter::new();
            let count = runs.clone();
            let begin = Instant::now();
            let series = executor
                .schedule_at_fixed_rate(Duration::ZERO, period, move || count.add())
                .unwrap();
            runs.wait_for(8);
            let elapsed = begin.elapsed();
            series.cancel();
            assert!(elapsed >= 7 * period, "8 runs in {elapsed:?}");
            elapsed <= 8 * period
        });
    }
}

/// FR-004: a periodic task that is never cancelled ends with the shutdown.
#[test]
fn a_periodic_task_does_not_outlive_a_shutdown() {
    let (clock, executor) = manual(4);
    let executor = staffed(executor);
    let runs = Counter::new();
    let count = runs.clone();
    let series =
        executor.schedule_at_fixed_rate(Duration::ZERO, ms(1), move || count.add()).unwrap();
    clock.run_for(ms(7));
    executor.shutdown();
    clock.run_for(LONG);
    assert_eq!(runs.get(), 8);
    assert!(executor.is_terminated());
    assert!(matches!(
        series.try_join().unwrap(),
        Err(TaskError::Cancelled(CancelReason::Shutdown))
    ));
}

/// FR-005, G4: however late a periodic task is and however many workers there are, its runs do not
/// overlap, and each sees the effects of the run before.
#[test]
fn runs_do_not_overlap() {
    let executor = staffed(ScheduledThreadPoolExecutor::new(8));
    let is_inside = Arc::new(AtomicBool::new(false));
    let mut runs = 0;
    let series = executor
        .schedule_at_fixed_rate(Duration::ZERO, Duration::from_nanos(1), move || {
            // Relaxed, so that only the executor orders the runs.
            assert!(!is_inside.swap(true, Ordering::Relaxed), "two at once");
            runs += 1;
            assert_eq!(current_task().map(|task| task.run_number()), Some(runs));
            thread::yield_now();
            assert!(runs < 1_000, "enough");
            is_inside.store(false, Ordering::Relaxed);
        })
        .unwrap();
    let ending = series.join_within(LONG).unwrap().unwrap_err();
    assert_eq!(ending.into_failure().unwrap().message(), "enough");
}

/// FR-006: when a periodic task runs continuously, the run that panics is the last, on ten workers
/// as well, and a decorator around the body was called as often as the body.
#[test]
fn the_run_that_panics_is_the_last_among_many_workers() {
    let executor = staffed(ScheduledThreadPoolExecutor::new(10));
    let (calls, runs) = (Counter::new(), Counter::new());
    let body = {
        let runs = runs.clone();
        move || {
            runs.add();
            assert!(runs.get() < 100, "the last");
        }
    };
    let count = calls.clone();
    let decorated = move || {
        count.add();
        body();
    };
    let series = executor
        .schedule_at_fixed_rate(Duration::ZERO, Duration::from_nanos(1), decorated)
        .unwrap();
    let ending = series.join_within(LONG).unwrap().unwrap_err();
    assert_eq!(ending.into_failure().unwrap().message(), "the last");
    executor.shutdown();
    assert!(executor.await_termination(LONG).unwrap());
    assert_eq!((runs.get(), calls.get()), (100, 100));
}

/// FR-007: a period of zero is refused, nothing is queued, no thread is started, and the closure is
/// returned unharmed.
#[test]
fn a_period_of_zero_is_refused() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let refused = executor.schedule_at_fixed_rate(LONG, Duration::ZERO, || ());
    assert!(
        matches!(refused, Err(ref error) if matches!(error.reason(), RejectionReason::ZeroPeriod))
    );

    let (ran, drops) = (Counter::new(), Drops::new());
    let (count, captured) = (ran.clone(), drops.token());
    let closure = move || {
        let _ = &captured;
        count.add();
    };
    let task = executor.task();
    let refused = task.schedule_at_fixed_rate(LONG, Duration::ZERO, closure).unwrap_err();
    assert_eq!((ran.get(), drops.count()), (0, 0));
    refused.into_task().run();
    assert_eq!((ran.get(), drops.count()), (1, 1));
    assert_eq!((executor.pending_count(), executor.pool_size()), (0, 0));
}

/// FR-009: a panic in any run ends the periodic task: its future has the panic, its queue entry and its
/// captures are gone, and it does not run again.
#[test]
fn a_panic_ends_the_periodic_task() {
    for last in [1, 2, 100] {
        let (clock, executor) = manual(1);
        let (runs, drops) = (Counter::new(), Drops::new());
        let (count, captured) = (runs.clone(), drops.token());
        let series = executor
            .schedule_at_fixed_rate(Duration::ZERO, ms(10), move || {
                let _ = &captured;
                count.add();
                assert!(count.get() < last, "the last");
            })
            .unwrap();
        clock.run_for(ms(2_000));
        assert_eq!(runs.get(), last);
        assert_eq!(series.state(), TaskState::Failed);
        let ending = series.try_join().unwrap().unwrap_err();
        assert_eq!(ending.into_failure().unwrap().message(), "the last");
        assert_eq!((executor.pending_count(), drops.count()), (0, 1));
    }
}

/// F41, FR-011: after a leap of the clock every missed run is made up for, or one run stands for
/// all of them, on the grid or on a new one, or all are left out, depending on the policy.
#[test]
fn a_leap_of_the_clock_is_dealt_with_by_policy() {
    let after_the_leap = |policy| runs_after(1_004, &[], policy);
    let burst = (1..=100).map(|point| (10 * point, 1_004, 0));
    let back_on_time = [(1_010, 1_010, 0), (1_020, 1_020, 0)];
    assert!(after_the_leap(MissedRuns::Burst).take(102).eq(burst.chain(back_on_time)));
    let policies = [
        (MissedRuns::Coalesce, [(10, 1_004, 99), (1_010, 1_010, 0), (1_020, 1_020, 0)]),
        (MissedRuns::Skip, [(1_010, 1_010, 100), (1_020, 1_020, 0), (1_030, 1_030, 0)]),
        (MissedRuns::Delay, [(10, 1_004, 99), (1_014, 1_014, 0), (1_024, 1_024, 0)]),
    ];
    for (policy, expected) in policies {
        let runs: Vec<_> = after_the_leap(policy).take(3).collect();
        assert_eq!(runs, expected, "{policy:?}");
    }
}

/// FR-011: after one run that takes three and a half periods the periodic task is back on time at
/// once or gradually, depending on the policy.
#[test]
fn one_long_run_is_dealt_with_by_policy() {
    let policies: [(_, [_; 5]); 4] = [
        (MissedRuns::Burst, [(10, 10, 0), (20, 45, 0), (30, 45, 0), (40, 45, 0), (50, 50, 0)]),
        (MissedRuns::Coalesce, [(10, 10, 0), (20, 45, 2), (50, 50, 0), (60, 60, 0), (70, 70, 0)]),
        (MissedRuns::Skip, [(10, 10, 0), (50, 50, 3), (60, 60, 0), (70, 70, 0), (80, 80, 0)]),
        (MissedRuns::Delay, [(10, 10, 0), (20, 45, 2), (55, 55, 0), (65, 65, 0), (75, 75, 0)]),
    ];
    for (policy, expected) in policies {
        let runs: Vec<_> = runs_after(10, &[35], policy).take(5).collect();
        assert_eq!(runs, expected, "{policy:?}");
    }
}

/// FR-005, FR-011: if each run takes three and a half periods, the next one follows at once, or at
/// the next time of the grid, depending on the policy.
#[test]
fn runs_that_are_all_too_long_are_dealt_with_by_policy() {
    let policies = [
        (MissedRuns::Burst, [(10, 10, 0), (20, 45, 0), (30, 80, 0)]),
        (MissedRuns::Coalesce, [(10, 10, 0), (20, 45, 2), (50, 80, 3)]),
        (MissedRuns::Skip, [(10, 10, 0), (50, 50, 3), (90, 90, 3)]),
        (MissedRuns::Delay, [(10, 10, 0), (20, 45, 2), (55, 80, 2)]),
    ];
    for (policy, expected) in policies {
        let runs: Vec<_> = runs_after(10, &[35, 35], policy).take(3).collect();
        assert_eq!(runs, expected, "{policy:?}");
    }
}

/// FR-012, G5: runs that are late by less than a period shift nothing: under every policy the next
/// ones are planned on the grid, and none is missed.
#[test]
fn a_little_lateness_does_not_add_up() {
    for policy in POLICIES {
        let (clock, executor) = manual(1);
        let runs = Log::new();
        let body = recorder(&clock, &runs, &[]);
        let task = executor.task().missed_runs(policy);
        task.schedule_at_fixed_rate(ms(10), ms(10), body).unwrap();
        for step in [17, 10, 9, 8, 6] {
            clock.advance(ms(step));
            clock.run_until_idle();
        }
        let expected = [(10, 17, 0), (20, 27, 0), (30, 36, 0), (40, 44, 0), (50, 50, 0)];
        assert_eq!(summary(&runs), expected, "{policy:?}");
    }
}
