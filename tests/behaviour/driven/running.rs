//! The tasks that one call runs, in which order, and how long the caller may sleep.

use std::{thread, time::Duration};

use punctual::{CallerRunsPolicy, EndedRun, FailurePolicy, Handle, MissedRuns, Observer};

use super::{NANO, SECOND, driven, driven_with, run_for, runs};
use crate::support::Log;

#[test]
fn what_is_due_runs_in_order_on_the_calling_thread() {
    let (clock, mut executor) = driven();
    let log = Log::new();
    let note = |what: u32| {
        let log = log.clone();
        move || log.push((what, thread::current().id()))
    };
    let late = executor.schedule(3 * SECOND, note(3)).unwrap();
    executor.schedule(2 * SECOND, note(1)).unwrap();
    executor.schedule(2 * SECOND, note(2)).unwrap();
    executor.execute(note(0)).unwrap();
    clock.advance(3 * SECOND - NANO);
    assert_eq!(executor.run_due(), 3);
    assert_eq!((executor.run_due(), late.is_done()), (0, false), "not a nanosecond early");
    clock.advance(NANO);
    assert_eq!(executor.run_due(), 1);
    let here = thread::current().id();
    assert_eq!(log.entries(), [0, 1, 2, 3].map(|what| (what, here)));
    let seen = executor.statistics();
    assert_eq!((seen.submitted, seen.completed, seen.runs, seen.pending), (4, 4, 4, 0));
    assert_eq!((seen.pool_size, seen.largest_pool_size, seen.active), (1, 1, 0));
}

/// Submits a task that does the same, at the moment that `moment` says.
fn again(handle: &Handle, log: &Log<Duration>, back: Duration) {
    let (next, clock) = (handle.clone(), handle.clock().clone());
    let (log, begin) = (log.clone(), clock.now());
    let moment = begin.checked_sub(back).unwrap();
    let body = move || {
        log.push(clock.now() - begin);
        again(&next, &log, back);
    };
    handle.schedule_at(moment, body).map(drop).unwrap_or_default();
}

/// G59, M196: a task that submits itself again, without delay or even in the past, does not keep the caller.
#[test]
fn a_call_ends_although_a_task_submits_itself_again() {
    for back in [Duration::ZERO, NANO, SECOND] {
        let (clock, mut executor) = driven();
        let (log, others) = (Log::new(), Log::new());
        again(&executor.handle(), &log, back);
        for call in 1..20 {
            let others = others.clone();
            executor.execute(move || others.push(call)).unwrap();
            let _ = executor.run_due();
            assert_eq!(log.entries().len(), call);
            assert_eq!(executor.time_until_next(), Some(Duration::ZERO), "the next one is due");
            clock.advance(SECOND);
        }
        let expected = if back.is_zero() { 19 } else { 0 };
        assert!(others.entries().len() >= expected, "{:?}", others.entries());
    }
}

/// A clock that has leapt: a fixed rate makes up for its runs, one in each call, and the caller is told to come back
/// at once. A fixed delay runs once, and of a rate that skips what it has missed there is no run.
#[test]
fn missed_runs_are_made_up_for_one_in_each_call() {
    let (clock, mut executor) = driven();
    let skip = executor.task().missed_runs(MissedRuns::Skip);
    skip.schedule_at_fixed_rate(SECOND, SECOND, || ()).unwrap();
    executor.schedule_at_fixed_rate(SECOND, SECOND, || ()).unwrap();
    executor.schedule_with_fixed_delay(SECOND, SECOND, || ()).unwrap();
    clock.advance(10 * SECOND);
    assert_eq!(executor.run_due(), 2);
    for _ in 1..10 {
        assert_eq!(executor.time_until_next(), Some(Duration::ZERO));
        assert_eq!(executor.run_due(), 1);
    }
    assert_eq!((executor.statistics().runs, executor.statistics().missed_runs), (11, 10));
    assert_eq!(runs(&executor), [0, 10, 1]);
    assert_eq!(executor.time_until_next(), Some(SECOND));
}

#[test]
fn the_caller_is_told_how_long_to_sleep() {
    let (clock, mut executor) = driven();
    assert_eq!(executor.time_until_next(), None);
    let never = executor.schedule(Duration::MAX, || ()).unwrap();
    assert_eq!(executor.time_until_next(), None, "never is nothing to wait for");
    let spans = [400 * 86_400 * SECOND, 86_400 * SECOND, 3_600 * SECOND, SECOND, NANO];
    for span in spans {
        executor.schedule(span, || ()).unwrap();
        assert_eq!(executor.time_until_next(), Some(span));
    }
    let now = executor.submit(|| ()).unwrap();
    assert_eq!(executor.time_until_next(), Some(Duration::ZERO));
    assert!(now.cancel());
    let begin = clock.now();
    for span in spans.into_iter().rev() {
        let step = executor.time_until_next().unwrap();
        assert_eq!((clock.now() + step) - begin, span);
        clock.advance(step);
        assert_eq!(executor.time_until_next(), Some(Duration::ZERO));
        assert_eq!(executor.run_due(), 1);
    }
    assert_eq!(executor.time_until_next(), None);
    assert!(never.cancel());
}

/// Late, a moment has passed: the answer is zero, and not an error.
#[test]
fn who_is_late_need_not_sleep() {
    let (clock, mut executor) = driven();
    let task = executor.schedule(SECOND, || ()).unwrap();
    clock.advance(3 * SECOND);
    assert_eq!(executor.time_until_next(), Some(Duration::ZERO));
    assert!(task.cancel());
    assert_eq!(executor.time_until_next(), None);
}

/// A panic ends its task, and neither the call nor the tasks behind it.
#[test]
fn a_panic_does_not_leave_the_call() {
    let (clock, mut executor) = driven();
    let lost = executor.submit(|| panic!("overboard")).unwrap();
    let policy = executor.task().on_failure(FailurePolicy::resume());
    policy.schedule_at_fixed_rate(SECOND, SECOND, || panic!("again")).unwrap();
    let after = executor.submit(|| 7).unwrap();
    assert_eq!(executor.run_due(), 2);
    assert!(lost.try_join().unwrap().is_err_and(|error| error.is_panic()));
    assert_eq!(after.try_join().unwrap().unwrap(), 7);
    run_for(&clock, &mut executor, 3 * SECOND);
    assert_eq!(runs(&executor), [3]);
    assert_eq!(executor.statistics().failed_runs, 4);
}

/// Tasks that are put off, brought forward, paused and resumed run when they are due then.
#[test]
fn control_moves_what_the_caller_is_told() {
    let (clock, mut executor) = driven();
    let task = executor.schedule(SECOND, || ()).unwrap();
    assert!(task.reschedule(5 * SECOND));
    assert_eq!(executor.time_until_next(), Some(5 * SECOND));
    assert!(task.run_within(2 * SECOND));
    assert_eq!(executor.time_until_next(), Some(2 * SECOND));
    assert!(task.pause());
    clock.advance(4 * SECOND);
    assert_eq!((executor.run_due(), executor.time_until_next()), (0, None));
    assert!(task.resume());
    assert_eq!(executor.run_due(), 1);
    assert!(task.is_done());
}

/// Settings that are about threads have no effect, also while it works.
#[test]
fn it_has_one_worker_whatever_is_set() {
    let (_, mut executor) = driven_with(|builder| {
        let factory = |_| -> std::io::Result<Option<thread::JoinHandle<()>>> {
            panic!("no thread is to be started")
        };
        let builder = builder.core_pool_size(0).prestart_core_threads(true);
        builder.keep_alive(SECOND).allows_core_thread_timeout(true).thread_factory(factory)
    });
    assert_eq!((executor.pool_size(), executor.core_pool_size()), (1, 1));
    executor.set_core_pool_size(8);
    assert_eq!(executor.prestart_all_core_threads().unwrap(), 0);
    assert!(!executor.prestart_core_thread().unwrap());
    executor.set_allows_core_thread_timeout(true).unwrap();
    let tasks: Vec<_> = (0..20).map(|n| executor.submit(move || n).unwrap()).collect();
    executor.set_core_pool_size(3);
    assert_eq!((executor.pool_size(), executor.core_pool_size()), (1, 1));
    assert_eq!(executor.run_due(), 20);
    assert!(tasks.iter().enumerate().all(|(n, task)| task.try_join().unwrap().unwrap() == n));
}

/// A bound on pending tasks, with the handler that runs the others at once.
#[test]
fn a_bound_is_kept() {
    let (_, mut executor) =
        driven_with(|builder| builder.max_pending(2).rejected_execution_handler(CallerRunsPolicy));
    let tasks: Vec<_> = (0..5).map(|n| executor.submit(move || n).unwrap()).collect();
    assert_eq!((executor.pending_count(), executor.statistics().caller_runs), (2, 3));
    assert_eq!(executor.run_due(), 2);
    assert!(tasks.iter().all(|task| task.is_done()));
    assert!(executor.submit(|| ()).is_ok_and(|task| !task.is_done()), "there is room again");
}

/// A run is told of before the call returns that ran it: the driver reads the clock at the end of its round.
#[test]
fn an_observer_hears_of_each_run_in_its_round() {
    struct Hears(Log<(Duration, Duration)>);
    impl Observer for Hears {
        fn run_ended(&self, run: &EndedRun<'_>) {
            self.0.push((run.lateness(), run.run_time()));
        }
    }
    let log = Log::new();
    let (clock, mut executor) = driven_with(|builder| builder.observer(Hears(log.clone())));
    for _ in 0..2 {
        let time = clock.clone();
        executor.schedule(SECOND, move || time.advance(2 * SECOND)).unwrap();
    }
    clock.advance(SECOND);
    assert_eq!(executor.run_due(), 2);
    let seconds = [(0, 2), (2, 2)].map(|(late, took)| (late * SECOND, took * SECOND));
    assert_eq!(log.entries(), seconds);
}
