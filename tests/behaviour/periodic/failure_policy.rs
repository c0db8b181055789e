//! Periodic tasks whose runs panic: when they continue, when they end, and what is known about the
//! failure.

use std::{
    panic::resume_unwind,
    sync::{Arc, Mutex},
    time::Duration,
};

use punctual::{
    FailurePolicy, ManualClock, MissedRuns, ScheduledFuture,
    ScheduledThreadPoolExecutor as Executor, TaskState, current_task,
};

use crate::{
    support::POLICIES,
    support::{Counter, Drops, Log, hold, manual, manual_with, ms},
};

const RESUME: FailurePolicy = FailurePolicy::resume();

/// How a periodic task is timed: at a fixed rate, by policy, or with a fixed delay.
type Timing = Option<MissedRuns>;

fn timings() -> impl Iterator<Item = Timing> {
    POLICIES.into_iter().map(Some).chain([None])
}

/// The behaviour of a periodic task's runs.
#[derive(Clone, Copy)]
struct Play {
    /// The numbers of the runs that fail.
    fails: fn(u64) -> bool,
    /// How many milliseconds they take.
    takes: fn(u64) -> u64,
}

impl Play {
    fn failing(fails: fn(u64) -> bool) -> Self {
        Self { fails, takes: |_| 0 }
    }
}

/// A periodic task with a period of ten milliseconds, on a clock that stands still.
struct Series {
    clock: ManualClock,
    executor: Executor,
    future: ScheduledFuture<()>,
    /// The runs: number, start in milliseconds, and how many were missed before.
    runs: Log<(u64, u64, u64)>,
}

impl Series {
    fn start(timing: Timing, policy: FailurePolicy, play: Play) -> Self {
        let (clock, executor) = manual(1);
        let (runs, time) = (Log::new(), clock.clone());
        let log = runs.clone();
        let body = move || {
            let task = current_task().expect("inside a task");
            let run = task.run_number();
            log.push((run, millis(time.elapsed()), task.missed_runs()));
            time.advance(ms((play.takes)(run)));
            if (play.fails)(run) {
                resume_unwind(Box::new(format!("run {run}")));
            }
        };
        let task = executor.task().on_failure(policy);
        let future = match timing {
            Some(missed) => task.missed_runs(missed).schedule_at_fixed_rate(ms(10), ms(10), body),
            None => task.schedule_with_fixed_delay(ms(10), ms(10), body),
        };
        let future = future.expect("accepted");
        Self { clock, executor, future, runs }
    }

    /// When the runs of the first so many milliseconds started.
    fn starts(timing: Timing, policy: FailurePolicy, play: Play, span: u64) -> Vec<u64> {
        let series = Self::start(timing, policy, play);
        series.clock.run_for(ms(span));
        let runs = series.runs.entries();
        assert!(runs.iter().zip(1..).all(|((number, ..), expected)| *number == expected));
        runs.into_iter().map(|(_, start, _)| start).collect()
    }

    /// The last failure: the number of the run, how many in a row, and the message.
    fn failure(&self) -> Option<(u64, u32, String)> {
        let failed = self.future.last_failure()?;
        Some((failed.run_number(), failed.in_a_row(), failed.message().to_owned()))
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).expect("a small number")
}

fn failure(run: u64, in_a_row: u32) -> Option<(u64, u32, String)> {
    Some((run, in_a_row, format!("run {run}")))
}

/// HK-038, FR-009: by default the first failure ends a periodic task, however it is timed, and so
/// it does under a policy that says the same explicitly.
#[test]
fn the_first_failure_ends_the_task_by_default() {
    let long = Duration::from_secs(1);
    let policies = [
        FailurePolicy::default(),
        FailurePolicy::stop(),
        FailurePolicy::stop().back_off(long..=long),
        RESUME.stop_after(1),
        RESUME.stop_after(0),
        RESUME.back_off(long..=long).stop_after(1),
    ];
    for (timing, policy) in timings().flat_map(|timing| policies.map(|policy| (timing, policy))) {
        let series = Series::start(timing, policy, Play::failing(|run| run == 3));
        series.clock.run_for(ms(100));
        assert_eq!(series.runs.entries().len(), 3, "{timing:?} {policy:?}");
        assert_eq!(series.failure(), failure(3, 1));
        assert_eq!(series.executor.pending_count(), 0);
        let panic = series.future.join().expect_err("it failed").into_failure();
        assert_eq!(panic.expect("a panic").message(), "run 3");
    }
}

/// F2, HK-038: a periodic task that resumes runs at exactly the times at which it would run without
/// failures, also if runs are missed, under any policy for these.
#[test]
fn a_periodic_task_that_resumes_keeps_its_grid() {
    let plays: [fn(u64) -> u64; 4] =
        [|_| 0, |_| 3, |run| if run < 5 { 35 } else { 0 }, |run| if run == 2 { 47 } else { 0 }];
    for (timing, takes) in timings().flat_map(|timing| plays.map(|takes| (timing, takes))) {
        let starts = |fails| Series::starts(timing, RESUME, Play { fails, takes }, 200);
        let expected = starts(|_| false);
        assert_eq!(starts(|_| true), expected, "{timing:?}");
        assert_eq!(starts(|run| run % 2 == 0), expected, "{timing:?}");
    }
    let every_ten = Series::starts(None, RESUME, Play::failing(|_| true), 50);
    assert_eq!(every_ten, [10, 20, 30, 40, 50]);
}

/// HK-038: after a failure the next run is at least this far away, and twice as far after the next
/// failure; the runs that follow are planned from there, and none is made up for. A success resets
/// the back-off.
#[test]
fn failures_in_a_row_put_the_next_run_off() {
    let policy = RESUME.back_off(ms(15)..=ms(100));
    for timing in timings() {
        // Three fail, two do not, and two fail again.
        let play = Play::failing(|run| run <= 3 || run == 6 || run == 7);
        let starts = Series::starts(timing, policy, play, 215);
        assert_eq!(starts, [10, 25, 55, 115, 125, 135, 150, 180, 190, 200, 210], "{timing:?}");
    }
}

/// HK-038: the back-off is capped at its maximum, and has no effect while it is shorter than the
/// regular wait.
#[test]
fn putting_off_has_an_end_and_never_hastens() {
    const LONGEST_FIRST: FailurePolicy =
        RESUME.back_off(Duration::from_millis(40)..=Duration::from_millis(20));
    for timing in timings() {
        let all_fail = Play::failing(|_| true);
        let starts = Series::starts(timing, RESUME.back_off(ms(3)..=ms(30)), all_fail, 170);
        // The first waits would be 3 and 6, less than ten; then 12, 24, and 30 from then on.
        assert_eq!(starts, [10, 20, 30, 42, 66, 96, 126, 156], "{timing:?}");
        assert_eq!(Series::starts(timing, LONGEST_FIRST, all_fail, 60), [10, 30, 50]);
        let never = RESUME.back_off(Duration::MAX..=Duration::MAX);
        let series = Series::start(timing, never, all_fail);
        series.clock.run_for(Duration::from_secs(1_000_000));
        assert_eq!(series.runs.entries().len(), 1);
        assert_eq!(series.future.delay(), None);
        assert!(series.future.cancel());
    }
}

/// HK-038: the wait after a failure begins when the run ends, not when it started.
#[test]
fn putting_off_counts_from_the_end_of_the_run() {
    let play = Play { fails: |run| run == 1, takes: |run| if run == 1 { 7 } else { 0 } };
    for timing in timings() {
        let starts = Series::starts(timing, RESUME.back_off(ms(25)..=ms(25)), play, 60);
        assert_eq!(starts, [10, 42, 52], "{timing:?}");
    }
}

/// HK-038: a postponed periodic task is on time again, whatever runs it missed because of the
/// back-off: only a run that starts late for another reason counts as late.
#[test]
fn a_periodic_task_that_was_put_off_is_not_late() {
    for timing in timings() {
        let policy = RESUME.back_off(ms(55)..=ms(55));
        let series = Series::start(timing, policy, Play::failing(|run| run == 1));
        series.clock.run_for(ms(90));
        assert_eq!(series.runs.entries(), [(1, 10, 0), (2, 65, 0), (3, 75, 0), (4, 85, 0)]);
    }
}

/// HK-038: a number of failures in a row ends a periodic task; the same number with a success in
/// between does not.
#[test]
fn so_many_failures_in_a_row_end_the_periodic_task() {
    for timing in timings() {
        for policy in [RESUME.stop_after(3), FailurePolicy::stop().stop_after(3)] {
            // The failing runs are 2, 3; 5, 6; 8, 9, 10.
            let series =
                Series::start(timing, policy, Play::failing(|run| run % 3 != 1 || run > 7));
            series.clock.run_for(ms(95));
            assert_eq!((series.failure(), series.future.is_done()), (failure(9, 2), false));
            series.clock.run_for(ms(100));
            assert_eq!(series.runs.entries().len(), 10, "{timing:?}");
            assert_eq!(series.failure(), failure(10, 3));
            assert_eq!(series.future.state(), TaskState::Failed);
            let now = series.executor.statistics();
            assert_eq!((now.failed, now.completed, now.runs), (1, 0, 10));
        }
    }
}

/// HK-038: the last failure is available as soon as its run has ended, and stays: through
/// successes, and after the periodic task has been cancelled.
#[test]
fn the_last_failure_stays() {
    let series = Series::start(None, RESUME, Play::failing(|run| run == 2 || run == 3));
    let expected = [None, failure(2, 1), failure(3, 2), failure(3, 2)];
    assert_eq!(series.failure(), None);
    for expected in expected {
        series.clock.run_for(ms(10));
        assert_eq!(series.failure(), expected);
        assert_eq!(series.future.state(), TaskState::Scheduled);
    }
    assert!(series.future.cancel());
    assert_eq!(series.failure(), failure(3, 2));
    let (future, runs) = (series.future, series.runs.entries().len());
    drop(series.executor);
    assert_eq!(future.last_failure().map(|failed| failed.run_number()), Some(3));
    assert_eq!(runs, 4);
}

/// HK-038: the failure of a run that was cancelled meanwhile is recorded as well; the task stays
/// cancelled.
#[test]
fn a_cancelled_run_that_fails_is_kept() {
    for policy in [FailurePolicy::stop(), RESUME] {
        let (clock, executor) = manual(1);
        let (own, handle) = (Arc::new(Mutex::new(None)), executor.handle());
        let cancel = Arc::clone(&own);
        let body = move || {
            let series: Option<ScheduledFuture<()>> = cancel.lock().expect("free").take();
            let series = series.expect("it runs once");
            assert!(series.cancel());
            *cancel.lock().expect("free") = Some(series);
            resume_unwind(Box::new("after its cancelling"));
        };
        let series = handle.task().on_failure(policy).schedule_with_fixed_delay(ms(1), ms(1), body);
        *own.lock().expect("free") = Some(series.expect("accepted"));
        clock.run_for(ms(10));
        let series = own.lock().expect("free").take().expect("it is given back");
        let failed = series.last_failure().expect("it failed");
        assert_eq!((failed.run_number(), failed.message()), (1, "after its cancelling"));
        assert!(series.is_cancelled());
        let now = executor.statistics();
        assert_eq!((now.cancelled, now.failed, now.pending), (1, 0, 0));
    }
}

/// HK-038: a one-shot task has no last failure, and no policy: its panic is its result.
#[test]
fn a_one_shot_task_has_its_panic_and_no_failure() {
    let (clock, executor) = manual(1);
    let runs = Counter::new();
    let ran = runs.clone();
    let body = move || {
        ran.add();
        resume_unwind(Box::new("once"));
    };
    let future = executor.task().on_failure(RESUME).submit::<()>(body).expect("accepted");
    clock.run_for(ms(10));
    assert_eq!((runs.get(), future.state()), (1, TaskState::Failed));
    assert!(future.last_failure().is_none());
    let panic = future.join().expect_err("panicked").into_failure().expect("a panic");
    assert_eq!(panic.message(), "once");
}

/// HK-038: a periodic task that continues after a panic finds a lock that it held poisoned, and its
/// captures where they were; the pool continues as before.
#[test]
fn a_periodic_task_that_resumes_finds_its_lock_poisoned() {
    let (clock, executor) = manual(1);
    let (lock, seen, drops) = (Arc::new(Mutex::new(0)), Log::new(), Drops::new());
    let (shared, sees, capture) = (Arc::clone(&lock), seen.clone(), drops.token());
    let mut runs = 0;
    let body = move || {
        hold(&capture);
        runs += 1;
        let guard = shared.lock();
        sees.push((runs, guard.is_err()));
        let mut count = guard.unwrap_or_else(|poisoned| poisoned.into_inner());
        *count += 1;
        assert!(runs != 2, "while the lock is held");
    };
    let series = executor.task().on_failure(RESUME).schedule_at_fixed_rate(ms(1), ms(1), body);
    clock.run_for(ms(4));
    assert_eq!(seen.entries(), [(1, false), (2, false), (3, true), (4, true)]);
    assert!(lock.is_poisoned());
    let other = executor.submit(|| 7).expect("accepted");
    clock.run_until_idle();
    assert!(matches!(other.try_join(), Some(Ok(7))));
    assert_eq!(drops.count(), 0);
    assert!(series.expect("accepted").cancel());
    assert_eq!(drops.count(), 1);
}

/// HK-038: a panic of the hook before a run is a failure of that run: a periodic task that resumes
/// continues, and the hooks see the number of each run.
#[test]
fn a_hook_that_panics_is_a_failure_by_policy() {
    let (hooked, bodies) = (Log::new(), Counter::new());
    let (before, after, ran) = (hooked.clone(), hooked.clone(), bodies.clone());
    let (clock, executor) = manual_with(|builder| {
        builder
            .before_execute(move |task| {
                before.push(("before", task.run_number()));
                assert!(task.run_number() != 2, "before");
            })
            .after_execute(move |task, outcome| {
                after.push((if outcome.is_ok() { "done" } else { "failed" }, task.run_number()));
            })
    });
    let body = move || {
        ran.add();
        assert!(ran.get() != 2, "body");
    };
    let series = executor.task().on_failure(RESUME).schedule_at_fixed_rate(ms(1), ms(1), body);
    clock.run_for(ms(4));
    let calls = [
        ("before", 1),
        ("done", 1),
        ("before", 2),
        ("before", 3),
        ("failed", 3),
        ("before", 4),
        ("done", 4),
    ];
    assert_eq!(hooked.entries(), calls);
    let failed = series.expect("accepted").last_failure().expect("two failed");
    assert_eq!((failed.run_number(), failed.in_a_row(), failed.message()), (3, 2, "body"));
}
