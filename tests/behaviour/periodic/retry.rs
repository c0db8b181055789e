//! Retry: one task that is tried until it works, and series whose failed runs are tried again.

use std::{
    error::Error,
    fmt, io,
    ops::ControlFlow,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use punctual::{
    Backoff, CancelReason, FailurePolicy, ManualClock, MissedRuns, RejectionReason,
    ScheduledThreadPoolExecutor as Executor, TaskError, TaskState, Trigger, current_task,
    gate::{Entry, RunGate, from_fn as gate_fn},
    trigger::{Due, TriggerContext, every, fixed_delay},
    with_context,
};

use crate::support::{Drops, LONG, Log, Wrapped, assert_cancelled, manual, manual_with, ms};

/// An error with a number, and no text of its own.
#[derive(Debug, PartialEq, Eq)]
struct Attempt(u32);

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "attempt {}", self.0)
    }
}

impl Error for Attempt {}

fn millis(clock: &ManualClock) -> u64 {
    u64::try_from(clock.elapsed().as_millis()).expect("a small number")
}

/// A body that notes when it runs, and which attempt it is. It fails in these runs.
fn failing_if<F: Fn(u64) -> bool + Send + 'static>(
    clock: &ManualClock,
    log: &Log<(u64, u32)>,
    fails: F,
) -> impl FnMut() -> Result<(), Attempt> + Send + use<F> {
    let (clock, log) = (clock.clone(), log.clone());
    with_context(move |run| {
        log.push((millis(&clock), run.attempt()));
        if fails(run.run_number()) { Err(Attempt(run.attempt())) } else { Ok(()) }
    })
}

fn moments(log: &Log<(u64, u32)>) -> Vec<u64> {
    log.entries().into_iter().map(|(moment, _)| moment).collect()
}

/// Starts a series that fails in these runs, and returns when it has run up to `until`.
fn runs_of(
    trigger: impl Trigger,
    fails: impl Fn(u64) -> bool + Send + 'static,
    until: u64,
) -> Vec<u64> {
    let (clock, executor) = manual(1);
    let log = Log::new();
    executor.repeat(trigger, failing_if(&clock, &log, fails)).expect("accepted");
    clock.run_for(ms(until));
    moments(&log)
}

fn exponential(first: u64, longest: u64) -> Backoff {
    Backoff::exponential(ms(first)..=ms(longest))
}

/// It is tried at once, and then after the delays, until it works; no entry is left.
#[test]
fn it_is_tried_until_it_works() {
    let (clock, executor) = manual(1);
    let log = Log::new();
    let mut fail = failing_if(&clock, &log, |run| run < 4);
    let page = executor.retry(exponential(1, 100), move || fail().map(|()| "the page"));
    let page = page.expect("accepted");
    clock.run_for(ms(6));
    assert!(!page.is_done());
    clock.run_for(ms(1));
    assert_eq!(log.entries(), [(0, 1), (1, 2), (3, 3), (7, 4)]);
    assert_eq!((page.state(), page.join().expect("it worked")), (TaskState::Completed, "the page"));
    let now = executor.statistics();
    assert_eq!(
        (now.runs, now.failed_runs, now.completed, now.failed, now.pending),
        (4, 3, 1, 0, 0)
    );
}

/// When no further attempt may be made the future has the last error, of its own type.
#[test]
fn the_last_error_is_returned_as_what_it_is() {
    let (clock, executor) = manual(1);
    let log = Log::new();
    let in_vain = exponential(1, 4).max_attempts(5);
    let future = executor.retry(in_vain, failing_if(&clock, &log, |_| true)).expect("accepted");
    clock.run_for(ms(1_000));
    assert_eq!(moments(&log), [0, 1, 3, 7, 11]);
    assert_eq!(future.state(), TaskState::Failed);
    let failed = future.last_failure().expect("it failed");
    assert_eq!((failed.run_number(), failed.in_a_row(), failed.message()), (5, 5, "attempt 5"));
    let error = future.join().expect_err("it failed");
    assert_eq!(error.to_string(), "the task failed: attempt 5");
    let error = error.downcast::<io::Error>().expect_err("it is no such error");
    assert_eq!(error.to_string(), "the task failed: attempt 5");
    assert_eq!(error.downcast::<Attempt>().expect("it is"), Attempt(5));
    let now = executor.statistics();
    assert_eq!((now.runs, now.failed_runs, now.failed, now.pending), (5, 5, 1, 0));

    let once = exponential(1, 1).max_attempts(0);
    let future = executor.retry(once, || Err::<u32, _>("no")).expect("accepted");
    clock.run_for(ms(10));
    let error = future.join().expect_err("zero is one");
    assert_eq!(error.to_string(), "the task failed: no");
    assert_eq!(executor.statistics().runs, 6);
    // A result that is no error of the body comes back unchanged.
    let error = future.join().expect_err("it is taken");
    assert!(matches!(error.downcast::<Attempt>(), Err(TaskError::ResultTaken)));
}

/// No attempt is due later than the limit says; the last error is there as soon as that is known.
#[test]
fn the_time_has_a_limit() {
    for (limit, expected) in
        [(47, &[0, 1, 3, 7, 15, 31, 47][..]), (46, &[0, 1, 3, 7, 15, 31]), (0, &[0])]
    {
        let (clock, executor) = manual(1);
        let log = Log::new();
        let backoff = exponential(1, 16).max_elapsed(ms(limit));
        let body = failing_if(&clock, &log, |_| true);
        clock.run_for(ms(0));
        let future = executor.retry(backoff, body).expect("accepted");
        clock.run_for(ms(*expected.last().expect("one")));
        assert!(future.is_done(), "{limit}");
        clock.run_for(ms(100));
        assert_eq!(moments(&log), expected, "{limit}");
    }
    // The delay that would be too long for a clock is no end.
    let (clock, executor) = manual(1);
    let future = executor.retry(Backoff::constant(Duration::MAX), || Err::<(), _>("no"));
    let future = future.expect("accepted");
    clock.run_for(LONG);
    assert_eq!((future.state(), future.delay()), (TaskState::Scheduled, None));
    assert!(future.run_now());
    clock.run_until_idle();
    assert_eq!(executor.statistics().runs, 2);
}

/// A panic is a failed attempt, and the last one is the result.
#[test]
fn a_panic_is_a_failed_attempt() {
    let (clock, executor) = manual(1);
    let body = with_context(|run| -> Result<u32, Attempt> { panic!("no {}", run.attempt()) });
    let future = executor.retry(exponential(1, 1).max_attempts(3), body).expect("accepted");
    clock.run_for(ms(10));
    let error = future.join().expect_err("it panics");
    assert!(error.is_panic());
    let error = error.downcast::<Attempt>().expect_err("a panic is no error");
    assert_eq!(error.to_string(), "the task panicked: no 3");
}

/// A cancel or a shutdown between two attempts, and one during an attempt, ends it; what it captured is dropped.
#[test]
fn it_is_cancelled_between_two_attempts_and_in_one() {
    for shuts_down in [false, true] {
        let (clock, executor) = manual(1);
        let drops = Drops::new();
        let guard = drops.token();
        let future = executor.retry(Backoff::constant(ms(10)), move || {
            let _guard = &guard;
            Err::<u32, _>("no")
        });
        let future = future.expect("accepted");
        clock.run_for(ms(5));
        let reason = if shuts_down {
            executor.set_executes_existing_delayed_tasks_after_shutdown(false);
            executor.shutdown();
            CancelReason::Shutdown
        } else {
            assert!(future.cancel());
            CancelReason::Requested
        };
        assert_cancelled(&future, reason);
        assert_eq!((drops.count(), executor.statistics().pending), (1, 0));
    }
    let (clock, executor) = manual(1);
    let body = with_context(|run| {
        run.token().cancel();
        Err::<u32, _>("stopped")
    });
    let future = executor.retry(Backoff::constant(ms(10)), body).expect("accepted");
    clock.run_for(ms(100));
    assert_cancelled(&future, CancelReason::Requested);
    assert_eq!(executor.statistics().runs, 1);
}

/// A policy that keeps periodic tasks lets it go on after a shutdown, which then ends.
#[test]
fn a_policy_lets_it_go_on_after_a_shutdown() {
    let (clock, executor) = manual_with(|builder| {
        builder.core_pool_size(1).continues_existing_periodic_tasks_after_shutdown(true)
    });
    let log = Log::new();
    let body = failing_if(&clock, &log, |run| run < 3);
    let future = executor.retry(Backoff::constant(ms(10)), body).expect("accepted");
    clock.run_for(ms(5));
    executor.shutdown();
    clock.run_for(ms(20));
    assert_eq!(moments(&log), [0, 10, 20]);
    assert!(future.join().is_ok());
    assert!(executor.await_termination(LONG).expect("no worker waits"));
}

/// An attempt can say when the next one is, and a caller can bring it forward, or hold it up.
#[test]
fn the_next_attempt_can_be_moved() {
    let (clock, executor) = manual(1);
    let log = Log::new();
    let mut fail = failing_if(&clock, &log, |run| run < 5);
    let body = move || {
        let run = current_task().expect("inside a task");
        if run.attempt() == 2 {
            assert!(run.reschedule(ms(50)), "as the server says");
        }
        fail()
    };
    let future = executor.retry(Backoff::constant(ms(10)), body).expect("accepted");
    clock.run_for(ms(61));
    assert_eq!(moments(&log), [0, 10, 60]);
    assert!(future.run_now());
    clock.run_until_idle();
    assert_eq!(log.entries().last(), Some(&(61, 4)));
    assert!(future.pause());
    clock.run_for(ms(50));
    assert!(future.resume());
    clock.run_until_idle();
    assert_eq!(moments(&log), [0, 10, 60, 61, 111]);
    assert!(future.join().is_ok());
}

/// Each attempt has the time limit for itself, and one that exceeds it has failed.
#[test]
fn a_time_limit_is_one_for_each_attempt() {
    let (clock, executor) = manual(1);
    let time = clock.clone();
    let body = with_context(move |run| {
        if run.attempt() < 3 {
            time.advance(ms(7));
        }
        Ok::<_, Attempt>(run.attempt())
    });
    let task = executor.task().timeout(ms(5)).retry(Backoff::constant(ms(10)), body);
    let task = task.expect("accepted");
    clock.run_for(ms(60));
    assert_eq!(task.join().expect("the third is quick"), 3);
    assert_eq!(executor.statistics().failed_runs, 2);
}

/// A policy that is given by name ends a task earlier than the back-off would.
#[test]
fn an_explicit_policy_comes_first() {
    for (policy, runs) in [
        (FailurePolicy::stop(), 1),
        (FailurePolicy::resume().stop_after(3), 3),
        (FailurePolicy::resume(), 4),
    ] {
        let (clock, executor) = manual(1);
        let task = executor.task().on_failure(policy);
        let task = task.retry(exponential(1, 1).max_attempts(4), || Err::<(), _>("no"));
        let task = task.expect("accepted");
        clock.run_for(ms(100));
        assert!(task.join().is_err());
        assert_eq!(executor.statistics().runs, runs);
    }
}

/// In a group with a limit, a task between two attempts leaves its permit to others.
#[test]
fn between_two_attempts_others_of_its_group_run() {
    let (clock, executor) = manual(2);
    let group = executor.group("one").limit(1).build().expect("it can be built");
    let log = Log::new();
    let body = failing_if(&clock, &log, |run| run < 3);
    let future = group.task().retry(Backoff::constant(ms(10)), body).expect("accepted");
    let (other, time) = (log.clone(), clock.clone());
    group.task().schedule(ms(5), move || other.push((millis(&time), 0))).expect("accepted");
    clock.run_for(ms(30));
    assert_eq!(log.entries(), [(0, 1), (5, 0), (10, 2), (20, 3)]);
    assert!(future.join().is_ok());
    assert_eq!(group.statistics().pending, 0);
}

/// Delays are random if they are to be, within half of what they are otherwise; a seed makes them the same.
#[test]
fn jitter_takes_off_up_to_a_half() {
    let plain = exponential(100, 1_000);
    let seeded = |seed| {
        let backoff = plain.jitter_seed(seed);
        (1..40).map_while(move |failures| backoff.delay_after(failures)).collect::<Vec<_>>()
    };
    assert_eq!(seeded(7), seeded(7));
    assert_ne!(seeded(7), seeded(8));
    for (failures, delay) in (1..).zip(seeded(7)) {
        let most = plain.delay_after(failures).expect("there is no limit");
        assert!(most / 2 <= delay && delay <= most, "{failures}: {delay:?}");
    }
    let random: Vec<_> = (0..20).map(|_| plain.jitter().delay_after(5)).collect();
    assert!(random.iter().any(|delay| *delay != random[0]), "{random:?}");
    assert!(random.iter().flatten().all(|delay| ms(500) <= *delay && *delay <= ms(1_000)));
    assert_eq!(Backoff::constant(Duration::ZERO).jitter().delay_after(1), Some(Duration::ZERO));
    let endless = Backoff::exponential(Duration::MAX..=Duration::MAX);
    assert_eq!(endless.delay_after(u32::MAX), Some(Duration::from_nanos(u64::MAX)));
    assert!(endless.jitter_seed(0).delay_after(1).is_some());
}

/// No delay is longer than the end of the range, even if the range begins with a longer one.
#[test]
fn the_end_of_the_range_bounds_each_delay() {
    let reversed = exponential(40, 20);
    for failures in [1, 2, u32::MAX] {
        assert_eq!(reversed.delay_after(failures), Some(ms(20)));
    }
}

/// A failed run of a series is tried again sooner than its period, and then its grid goes on, where it was.
#[test]
fn a_failed_run_is_tried_again_and_the_grid_goes_on() {
    let backoff = exponential(5, 20).max_attempts(4);
    let all = runs_of(every(ms(60)).retry(backoff), |_| true, 120);
    assert_eq!(all, [0, 5, 15, 35, 60, 65, 75, 95, 120]);
    let second = runs_of(every(ms(60)).retry(backoff), |run| run == 2 || run == 3, 180);
    assert_eq!(second, [0, 60, 65, 75, 120, 180]);
    let delays = runs_of(fixed_delay(ms(60)).retry(backoff), |run| run == 2, 190);
    assert_eq!(delays, [0, 60, 65, 125, 185]);
}

/// A delay that is longer than the period is kept as well; moments that pass meanwhile are left out, under
/// every policy for missed runs, and the grid does not move.
#[test]
fn a_retry_may_be_later_than_the_next_moment() {
    use MissedRuns::{Burst, Coalesce, Delay, Skip, Within};
    for missed in [Burst, Coalesce, Delay, Skip, Within(ms(100))] {
        let (clock, executor) = manual(1);
        let log = Log::new();
        let body = failing_if(&clock, &log, |run| run == 2 || run == 3);
        let task = executor.task().missed_runs(missed);
        let task = task.repeat(every(ms(10)).retry(Backoff::constant(ms(25))), body);
        task.expect("accepted");
        clock.run_for(ms(80));
        assert_eq!(moments(&log), [0, 10, 35, 60, 70, 80], "{missed:?}");
    }
}

/// Called after `retry`, `until` and `times` apply to retries, and called before it they do not.
#[test]
fn ends_apply_to_what_they_are_called_on() {
    let (clock, executor) = manual(1);
    let end = clock.now() + ms(20);
    let twice = Backoff::constant(ms(7)).max_attempts(2);
    let cases = [
        (Wrapped::new(every(ms(10)).retry(twice).until(end)), &[0, 7, 10, 17, 20][..]),
        (Wrapped::new(every(ms(10)).until(end).retry(twice)), &[0, 7, 10, 17, 20, 27]),
        (Wrapped::new(every(ms(10)).retry(twice).times(3)), &[0, 7, 10]),
        (Wrapped::new(every(ms(10)).times(3).retry(twice)), &[0, 7, 10, 17, 20, 27]),
    ];
    let tasks: Vec<_> = cases
        .into_iter()
        .map(|(trigger, expected)| {
            let log = Log::new();
            let body = failing_if(&clock, &log, |_| true);
            (executor.repeat(trigger, body).expect("accepted"), log, expected)
        })
        .collect();
    clock.run_for(ms(100));
    for (future, log, expected) in tasks {
        assert_eq!(moments(&log), expected);
        assert_eq!(future.state(), TaskState::Failed, "{expected:?}");
    }
}

/// The arguments of a trigger: the moments for which it had planned its last run, and how many it had.
type Shown = Arc<Mutex<Vec<(Option<Duration>, u64)>>>;

/// Each full ten milliseconds, on the wall clock if it is to be; it notes what it is shown.
struct Tens {
    start: SystemTime,
    shown: Shown,
}

impl Trigger for Tens {
    fn next(&mut self, last: &TriggerContext<'_>) -> Option<Due> {
        let planned = last.planned_wall().map(|planned| {
            planned.duration_since(self.start).expect("it was planned after the start")
        });
        self.shown.lock().expect("no panic").push((planned, last.runs()));
        let since = last.after_wall().duration_since(self.start).ok()?;
        let tens = u32::try_from(since.as_millis() / 10 + 1).ok()?;
        Some(Due::Wall(self.start + tens * ms(10)))
    }

    fn is_asked_again(&mut self) -> bool {
        true
    }
}

/// The trigger inside is shown its own runs and no retries, on the wall clock as well, and also when that is set back.
#[test]
fn the_trigger_inside_does_not_learn_of_it() {
    let (clock, executor) = manual(1);
    let (log, shown) = (Log::new(), Shown::default());
    let start = clock.wall_time();
    let tens = Tens { start, shown: Arc::clone(&shown) };
    let backoff = Backoff::constant(ms(3)).max_attempts(3);
    let body = failing_if(&clock, &log, |run| run == 2 || run == 3);
    let _future = executor.repeat(tens.retry(backoff), body).expect("accepted");
    clock.run_for(ms(32));
    assert_eq!(moments(&log), [10, 20, 23, 26, 30]);
    let plans = |planned: &[u64]| -> Vec<_> {
        planned.iter().map(|planned| Some(ms(*planned))).zip(1..).collect()
    };
    let before = shown.lock().expect("no panic").split_off(0);
    assert_eq!(before[0], (None, 0));
    assert_eq!(before[1..], plans(&[10, 20, 30])[..]);

    // The clock is set back while the moment at 40 is waited for.
    clock.set_wall_time(start + ms(15));
    clock.run_for(ms(15));
    assert_eq!(moments(&log).last(), Some(&47), "seen at 40, and at 30 by the wall clock");
    assert_eq!(shown.lock().expect("no panic")[0], (Some(ms(30)), 3));
}

/// A gate that skips the runs of these questions, of which 1 is the first.
fn skipping(skips: impl Fn(u64) -> bool + Send + Sync + 'static) -> impl RunGate {
    let asked = Mutex::new(0);
    gate_fn(move |_| {
        let mut asked = asked.lock().expect("no panic");
        *asked += 1;
        if skips(*asked) { Entry::Skip } else { Entry::Run }
    })
}

/// A retry that a gate leaves out is no failure: the trigger goes on.
#[test]
fn a_gate_may_leave_a_retry_out() {
    let (clock, executor) = manual(1);
    let log = Log::new();
    let gate = skipping(|asked| asked == 2);
    let body = failing_if(&clock, &log, |run| run <= 2);
    let backoff = Backoff::constant(ms(3));
    let task = executor.task().gate(gate).repeat(every(ms(10)).retry(backoff), body);
    task.expect("accepted");
    clock.run_for(ms(30));
    assert_eq!(moments(&log), [0, 10, 13, 20, 30]);
}

/// Runs that name the next one themselves begin a new count.
#[test]
fn a_success_begins_a_new_count() {
    let (clock, executor) = manual(1);
    let (log, time) = (Log::new(), clock.clone());
    let moments = log.clone();
    let body = with_context(move |run| -> Result<ControlFlow<(), Duration>, Attempt> {
        moments.push(millis(&time));
        match run.run_number() {
            2 | 4 => Ok(ControlFlow::Continue(ms(100))),
            6 => Ok(ControlFlow::Break(())),
            _ => Err(Attempt(run.attempt())),
        }
    });
    let future = executor.repeat(every(ms(1_000)).retry(exponential(1, 100)), body);
    let future = future.expect("accepted");
    clock.run_for(ms(500));
    // 1 fails; 2 names the next; 3 fails; 4 names the next; 5 fails; 6 ends.
    assert_eq!(log.entries(), [0, 1, 101, 102, 202, 203]);
    assert!(future.join().is_ok());
}

/// A series whose retries a gate always leaves out, as it does when another replica has made up for the tick, returns to
/// its own moments.
#[test]
fn a_series_whose_retries_are_all_left_out_goes_on() {
    let (clock, executor) = manual(1);
    let log = Log::new();
    let own = clock.clone();
    let gate = gate_fn(move |_| if millis(&own) % 10 == 0 { Entry::Run } else { Entry::Skip });
    let body = failing_if(&clock, &log, |_| true);
    let backoff = Backoff::constant(ms(3));
    let task = executor.task().gate(gate).repeat(every(ms(10)).retry(backoff), body);
    task.expect("accepted");
    clock.run_for(ms(30));
    assert_eq!(moments(&log), [0, 10, 20, 30]);
}

/// A run that was asked for by hand is not taken for the one that was left out behind it: that has not failed.
#[test]
fn a_run_by_hand_before_one_that_is_left_out_is_not_tried_again() {
    let at_once = Backoff::constant(Duration::ZERO);
    let (clock, executor) = manual(1);
    let log = Log::new();
    let task = executor.task().missed_runs(MissedRuns::Skip);
    let task =
        task.repeat(every(ms(30)).retry(at_once), failing_if(&clock, &log, |run| run % 2 == 1));
    let task = task.expect("accepted");
    clock.run_until_idle();
    assert!(task.run_now());
    clock.run_until_idle();
    clock.advance(ms(60));
    clock.run_for(ms(30));
    assert_eq!(moments(&log), [0, 0, 0, 90], "the extra run fails, and that of 30 is left out");

    // A trigger that is set later has planned none of the runs before.
    let (clock, executor) = manual(1);
    let log = Log::new();
    let task = executor.task().missed_runs(MissedRuns::Skip).on_failure(FailurePolicy::resume());
    let task = task.repeat(every(ms(30)), failing_if(&clock, &log, |run| run == 1));
    let task = task.expect("accepted");
    clock.run_until_idle();
    assert!(task.set_trigger(every(ms(30)).first_in(ms(30)).retry(at_once)));
    clock.advance(ms(60));
    clock.run_for(ms(30));
    assert_eq!(moments(&log), [0, 90]);
}

/// A skipped attempt is no end of the retries, and none of those that may be made.
#[test]
fn an_attempt_that_its_gate_skips_is_none() {
    for skipped in [1, 2, 3] {
        let (clock, executor) = manual(1);
        let log = Log::new();
        let gate = skipping(move |asked| asked == skipped);
        let backoff = Backoff::constant(ms(10)).max_attempts(3);
        let body = failing_if(&clock, &log, |run| run < 3);
        let task = executor.task().gate(gate).retry(backoff, body).expect("accepted");
        clock.run_for(ms(100));
        assert!(task.join().is_ok(), "{skipped}");
        let mut left = vec![0, 10, 20, 30];
        left.retain(|moment| *moment != (skipped - 1) * 10);
        assert_eq!(moments(&log), left);
    }
}

/// With no delay between them two attempts are at one moment, and are two all the same.
#[test]
fn an_attempt_that_its_gate_skips_may_be_at_the_moment_of_the_last() {
    let (clock, executor) = manual(1);
    let log = Log::new();
    let gate = skipping(|asked| asked == 2);
    let body = failing_if(&clock, &log, |run| run < 2);
    let backoff = Backoff::constant(Duration::ZERO);
    let task = executor.task().gate(gate).retry(backoff, body).expect("accepted");
    clock.run_until_idle();
    assert!(task.join().is_ok());
    assert_eq!(log.entries(), [(0, 1), (0, 2)]);
}

/// If a skipped attempt was the last for which there is time, the task has failed with the error of the one before.
#[test]
fn a_retry_that_ends_with_a_skipped_attempt_has_failed() {
    let (clock, executor) = manual(1);
    let log = Log::new();
    let gate = skipping(|asked| asked >= 3);
    let backoff = Backoff::constant(ms(10)).max_elapsed(ms(25));
    let body = failing_if(&clock, &log, |_| true);
    let task = executor.task().gate(gate).retry(backoff, body).expect("accepted");
    clock.run_for(ms(100));
    let error = task.join().expect_err("no attempt has worked");
    assert_eq!(error.downcast::<Attempt>().expect("as what it is"), Attempt(2));
    let counts = executor.statistics();
    assert_eq!((counts.completed, counts.failed, counts.runs), (0, 1, 2));
    assert_eq!(moments(&log), [0, 10]);
}

/// A retry has a starting deadline if it is given one, as every series has.
#[test]
fn an_attempt_that_is_too_late_is_none() {
    let (clock, executor) = manual(1);
    let log = Log::new();
    let body = failing_if(&clock, &log, |run| run < 2);
    let retry = executor.task().missed_runs(MissedRuns::Within(ms(1)));
    let task = retry.retry(Backoff::constant(ms(10)), body).expect("accepted");
    clock.run_until_idle();
    clock.advance(ms(15));
    clock.run_for(ms(10));
    assert!(task.join().is_ok());
    assert_eq!(moments(&log), [0, 25], "that of 10 was five late");
}

/// Whether a trigger retries is asked of the one that the task has.
#[test]
fn a_trigger_that_retries_brings_that_with_it_when_it_is_set() {
    let (clock, executor) = manual(1);
    let log = Log::new();
    let body = failing_if(&clock, &log, |run| run == 1 || run > 3);
    let task = executor.repeat(every(ms(10)).first_in(ms(10)), body).expect("accepted");
    assert!(task.set_trigger(every(ms(10)).first_in(ms(10)).retry(Backoff::constant(ms(2)))));
    clock.run_for(ms(22));
    assert_eq!(moments(&log), [10, 12, 20]);
    assert!(task.set_trigger(every(ms(10)).first_in(ms(10))));
    clock.run_for(ms(30));
    assert_eq!(moments(&log), [10, 12, 20, 32], "no policy lets it go on");
    assert_eq!(task.state(), TaskState::Failed);
}

/// The same of an attempt that exceeds its time limit.
#[test]
fn a_time_limit_asks_the_trigger_that_the_task_has() {
    let (clock, executor) = manual(1);
    let (own, log) = (clock.clone(), Log::new());
    let runs = log.clone();
    let body = move || {
        runs.push((millis(&own), 0));
        if runs.entries().len() == 1 {
            own.advance(ms(5));
        }
    };
    let limited = executor.task().timeout(ms(3));
    let task = limited.schedule_at_fixed_rate(ms(10), ms(10), body).expect("accepted");
    assert!(task.set_trigger(every(ms(10)).first_in(ms(10)).retry(Backoff::constant(ms(2)))));
    clock.run_for(ms(21));
    assert_eq!(moments(&log), [10, 17, 20]);
    assert_eq!(task.last_failure().expect("the first").run_number(), 1);
}

/// Another trigger that is set goes on by its own rules.
#[test]
fn a_trigger_with_retries_can_be_set() {
    let (clock, executor) = manual(1);
    let log = Log::new();
    let body = failing_if(&clock, &log, |run| run >= 2);
    let task = executor.task().on_failure(FailurePolicy::resume());
    let task = task.repeat(every(ms(100)), body).expect("accepted");
    clock.run_until_idle();
    let backoff = Backoff::constant(ms(3)).max_attempts(2);
    assert!(task.set_trigger(every(ms(10)).first_in(ms(10)).retry(backoff)));
    clock.run_for(ms(23));
    assert_eq!(moments(&log), [0, 10, 13, 20, 23]);
}

/// Everything that is called where a `Result` is meant is understood without an annotation, by each of the verbs.
#[test]
#[allow(clippy::redundant_closure, reason = "it is what users write")]
fn types_are_inferred() {
    fn fetch() -> io::Result<u32> {
        Ok(7)
    }
    fn dynamic() -> Result<u32, Box<dyn Error + Send + Sync>> {
        Ok(fetch()?)
    }
    let (clock, executor): (_, Executor) = manual(1);
    let group = executor.group("all").build().expect("it can be built");
    let backoff = Backoff::constant(ms(1));
    let futures = [
        executor.retry(backoff, || fetch()),
        executor.retry(backoff, fetch),
        executor.retry(backoff, dynamic),
        executor.task().name("named").retry(backoff, || "7".parse()),
        group.task().retry(backoff, || {
            let seven = fetch()?;
            Ok::<_, io::Error>(seven)
        }),
        executor.retry(backoff, with_context(|_| fetch())),
    ];
    clock.run_until_idle();
    for future in futures {
        assert_eq!(future.expect("accepted").join().expect("it worked"), 7);
    }
}

/// A back-off that never exceeds the period would do nothing, and is refused where the period is known.
#[test]
fn a_back_off_in_vain_is_refused() {
    let (clock, executor) = manual(1);
    let task = |first, longest| {
        executor.task().on_failure(FailurePolicy::resume().back_off(ms(first)..=ms(longest)))
    };
    for (first, longest) in [(5, 40), (60, 60), (0, 100), (100, 60)] {
        let refused = [
            task(first, longest).schedule_at_fixed_rate(ms(0), ms(60), || ()).map(drop),
            task(first, longest).schedule_with_fixed_delay(ms(0), ms(60), || ()).map(drop),
            task(first, longest).repeat(every(ms(60)), || ()).map(drop),
        ];
        for refused in refused {
            let error = refused.expect_err("it would do nothing");
            assert!(matches!(error.reason(), RejectionReason::BackOffWithinPeriod));
            assert!(error.to_string().contains("give the trigger a `retry`"), "{error}");
        }
    }
    task(5, 61).schedule_at_fixed_rate(ms(0), ms(60), || ()).expect("it does something");
    task(5, 40).repeat(every(ms(60)).times(2), || ()).expect("nothing is known of that period");
    clock.run_for(ms(60));
    assert_eq!(executor.statistics().rejected, 0, "as with a period of zero");
}
