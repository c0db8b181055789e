//! Ties between a body and its time limit: the limit comes first, whichever thread is faster. On a
//! manual clock every outcome is exact, so each of these is tried many times.

use std::time::Duration;

use punctual::{
    CancelReason, Cancelled, FailurePolicy, ManualClock, ScheduledThreadPoolExecutor as Executor,
    TaskState, current_task,
};

use crate::support::{Counter, Log, assert_cancelled, manual, ms};

const NANO: Duration = Duration::from_nanos(1);
const ROUNDS: usize = 100;

/// Sleeps on the clock whatever the token says.
fn sleeper(clock: &ManualClock) -> impl Fn(Duration) + Send + 'static {
    let endless = Executor::builder().clock(clock.clone()).build().unwrap();
    move |span| assert!(!endless.await_termination(span).unwrap())
}

/// G16: a body that sleeps on its token exactly until its limit is always timed out, and its sleep
/// is always interrupted, whether the clock jumps there or advances step by step.
#[test]
fn a_sleep_to_the_limit_is_interrupted() {
    for round in 0..ROUNDS {
        let (clock, executor) = manual(1);
        let slept = Log::new();
        let log = slept.clone();
        let future = executor.task().timeout(ms(5)).submit(move || {
            log.push(current_task().unwrap().token().sleep(ms(5)));
        });
        let future = future.unwrap();
        clock.run_until_idle();
        if round % 2 == 0 {
            clock.advance(ms(5))
        } else {
            clock.run_for(ms(5))
        }
        clock.run_until_idle();
        future.wait().unwrap();
        assert_cancelled(&future, CancelReason::TimedOut);
        assert!(matches!(slept.entries()[..], [Err(Cancelled { .. })]), "{slept:?}");
        assert_eq!(executor.statistics().timed_out, 1);
    }
}

/// G16: a body that returns exactly at its limit is timed out, and its value is dropped; one that
/// returns a nanosecond before has ended in time, and its token is not raised.
#[test]
fn a_body_that_ends_at_its_limit_is_timed_out() {
    for _ in 0..ROUNDS {
        let (clock, executor) = manual(3);
        let (sleep, sleep_too, sleep_less) = (sleeper(&clock), sleeper(&clock), sleeper(&clock));
        let task = || executor.task().timeout(ms(5));
        let plain = task().submit(move || sleep(ms(5))).unwrap();
        let valued = task().submit(move || {
            sleep_too(ms(5));
            "in time"
        });
        let in_time = task().submit(move || {
            let token = current_task().unwrap().token();
            sleep_less(ms(5) - NANO);
            token
        });
        let (valued, in_time) = (valued.unwrap(), in_time.unwrap());
        clock.run_for(ms(6));
        assert_cancelled(&plain, CancelReason::TimedOut);
        assert!(valued.join().unwrap_err().is_timeout());
        assert!(!in_time.join().unwrap().is_cancelled());
        let now = executor.statistics();
        assert_eq!((now.timed_out, now.completed, now.cancelled, now.active), (2, 1, 2, 0));
    }
}

/// G16: a task with a limit of zero never runs, on either clock, whether it is due at once or
/// later.
#[test]
fn a_task_with_no_time_never_runs() {
    for delay in [Duration::ZERO, ms(1)] {
        for _ in 0..ROUNDS {
            let (clock, executor) = manual(2);
            let ran = Counter::new();
            let task = |count: Counter| {
                executor.task().timeout(Duration::ZERO).schedule(delay, move || count.add())
            };
            let future = task(ran.clone()).unwrap();
            let task = executor.task().timeout(Duration::ZERO);
            let valued = task.schedule(delay, || 8).unwrap();
            clock.run_for(ms(2));
            assert_cancelled(&future, CancelReason::TimedOut);
            assert!(valued.join().unwrap_err().is_timeout());
            assert_eq!(ran.get(), 0);
            assert_eq!(executor.statistics().timed_out, 2);
        }
    }
    let executor = Executor::new(1);
    for _ in 0..ROUNDS {
        let never = executor.task().timeout(Duration::ZERO).submit(|| panic!("it ran"));
        let never = never.unwrap();
        never.wait().unwrap();
        assert_cancelled::<()>(&never, CancelReason::TimedOut);
    }
    assert_eq!(executor.statistics().runs, 0);
}

/// A run of a periodic task that ends exactly at its limit has exceeded it: it ends a task that
/// stops at the first failure, and is a failure of one that continues.
#[test]
fn a_run_that_ends_at_its_limit_has_exceeded_it() {
    for _ in 0..ROUNDS {
        let (clock, executor) = manual(2);
        let [stops, goes_on] = [FailurePolicy::stop(), FailurePolicy::resume()].map(|policy| {
            let sleep = sleeper(&clock);
            let task = executor.task().timeout(ms(5)).on_failure(policy);
            task.schedule_at_fixed_rate(ms(10), ms(10), move || sleep(ms(5))).unwrap()
        });
        clock.run_for(ms(25));
        assert_cancelled(&stops, CancelReason::TimedOut);
        assert_eq!(goes_on.state(), TaskState::Scheduled);
        assert_eq!(stops.last_failure().map(|failed| failed.run_number()), Some(1));
        assert_eq!(goes_on.last_failure().map(|failed| failed.run_number()), Some(2));
        let now = executor.statistics();
        assert_eq!((now.timed_out, now.failed_runs, now.runs), (3, 3, 3));
    }
}
