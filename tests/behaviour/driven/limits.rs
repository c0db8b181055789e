//! Time limits without a timer thread.

use punctual::{
    CancelReason, FailurePolicy, current_task,
    gate::{Entry, from_fn},
};

use super::{SECOND, driven, run_for};
use crate::support::{Drops, Log, assert_cancelled, hold, ms};

/// The last word of a closure that is dropped without having run.
struct LastWord(&'static str, Log<&'static str>);

impl Drop for LastWord {
    fn drop(&mut self) {
        self.1.push(self.0);
    }
}

/// M197: the caller is told of a limit that comes before the next task, and it expires then.
#[test]
fn a_limit_is_a_moment_to_wake_for() {
    let (clock, mut executor) = driven();
    let again = from_fn(|_| Entry::Again(10 * SECOND));
    let drops = Drops::new();
    let capture = drops.token();
    let limited = executor.task().gate(again).timeout(2 * SECOND);
    let task = limited.schedule(SECOND, move || hold(&capture)).unwrap();
    assert_eq!(executor.time_until_next(), Some(SECOND));
    clock.advance(SECOND);
    assert_eq!(executor.run_due(), 0, "the gate puts it off");
    assert_eq!(executor.time_until_next(), Some(2 * SECOND), "until its limit");
    clock.advance(2 * SECOND - ms(1));
    assert_eq!((executor.run_due(), task.is_done(), drops.count()), (0, false, 0));
    clock.advance(ms(1));
    assert_eq!((executor.run_due(), drops.count()), (0, 1), "no task has run");
    assert_cancelled(&task, CancelReason::TimedOut);
    assert_eq!((executor.time_until_next(), executor.pending_count()), (None, 0));
    assert_eq!(executor.statistics().timed_out, 1);
}

/// M198: a caller that comes late finds tasks and limits in the order of their moments, and of the two at one
/// moment the limit first.
#[test]
fn limits_expire_in_the_order_of_the_moments() {
    let (clock, mut executor) = driven();
    let log = Log::new();
    let note = |what| {
        let log = log.clone();
        move || log.push(what)
    };
    for (limit, word) in [(2, "limit at 2"), (4, "limit at 4")] {
        let again = from_fn(|_| Entry::Again(10 * SECOND));
        let capture = LastWord(word, log.clone());
        let task = executor.task().gate(again).timeout(limit * SECOND);
        task.execute(move || hold(&capture)).unwrap();
    }
    for (moment, word) in [(1, "task at 1"), (2, "task at 2"), (3, "task at 3"), (5, "task at 5")] {
        executor.schedule(moment * SECOND, note(word)).unwrap();
    }
    executor.run_due();
    clock.advance(9 * SECOND);
    assert_eq!(executor.run_due(), 4);
    let expected = ["task at 1", "limit at 2", "task at 2", "task at 3", "limit at 4", "task at 5"];
    assert_eq!(log.entries(), expected);
}

/// A task whose limit has come when the caller comes at last does not run.
#[test]
fn a_task_that_is_past_its_limit_does_not_run() {
    let (clock, mut executor) = driven();
    let late = executor.task().timeout(SECOND).schedule(SECOND, || "never").unwrap();
    let none = executor.task().timeout(ms(0)).submit(|| "never").unwrap();
    clock.advance(2 * SECOND);
    executor.run_due();
    assert_cancelled(&late, CancelReason::TimedOut);
    assert_cancelled(&none, CancelReason::TimedOut);
    assert_eq!((executor.statistics().timed_out, executor.statistics().runs), (2, 0));
}

/// No thread raises the token of a body that runs in the only thread, but it counts as raised from the limit on.
#[test]
fn a_body_sees_its_limit() {
    let (clock, mut executor) = driven();
    let moved = clock.clone();
    let task = executor.task().timeout(SECOND).submit(move || {
        let token = current_task().unwrap().token().clone();
        moved.advance(SECOND - ms(1));
        let before = token.is_cancelled();
        moved.advance(ms(1));
        assert!(!before && token.is_cancelled());
    });
    assert_eq!(executor.run_due(), 1);
    assert_cancelled(&task.unwrap(), CancelReason::TimedOut);
}

/// A run of a periodic task that takes longer than it may has failed, when it returns.
#[test]
fn a_run_has_a_budget() {
    let (clock, mut executor) = driven();
    let (moved, mut run) = (clock.clone(), 0);
    let policy = executor.task().timeout(ms(100)).on_failure(FailurePolicy::resume());
    let beat = policy.schedule_at_fixed_rate(SECOND, SECOND, move || {
        run += 1;
        moved.advance(ms(if run == 2 { 100 } else { 99 }));
    });
    let beat = beat.unwrap();
    run_for(&clock, &mut executor, 4 * SECOND);
    let seen = executor.statistics();
    assert_eq!((seen.runs, seen.failed_runs, seen.timed_out), (4, 1, 1));
    assert_eq!(beat.last_failure().map(|run| run.run_number()), Some(2));
    assert!(executor.time_until_next() < Some(SECOND), "no limit of a run that is over is left");
}
