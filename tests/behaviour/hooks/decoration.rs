//! Decoration: code around every run of a closure. It sees every submission and every run, and
//! affects neither the order nor the futures nor the effect of cancelling.

use std::{
    cell::Cell,
    panic::panic_any,
    thread::{self, ThreadId},
    time::Duration,
};

use punctual::{
    Builder, CancelReason, FailurePolicy, ManualClock, ScheduledFuture,
    ScheduledThreadPoolExecutor as Executor, Submission, TaskRun, TaskState, current_task,
};

use crate::support::{
    Counter, Drops, LONG, Log, assert_cancelled, eventually, hold, in_time, manual, manual_with, ms,
};

/// A decorator whose wrappers count their runs, and each hold a token.
pub fn counting(builder: Builder, runs: &Counter, wrappers: &Drops) -> Builder {
    let (runs, wrappers) = (runs.clone(), wrappers.clone());
    builder.decorate_task(move |_: &Submission<'_>| {
        let (runs, token) = (runs.clone(), wrappers.token());
        move |next: TaskRun<'_>| {
            hold(&token);
            runs.add();
            next.run()
        }
    })
}

/// HK-031: the decorator is called once for each submission, on the submitting thread, and is given
/// the submission; its wrapper is called on the worker, around the body and between the hooks.
#[test]
fn a_decorator_is_called_for_each_submission() {
    let log = Log::new();
    let [told, wrapped, before, after, inside] = [(); 5].map(|()| log.clone());
    let (clock, executor) = manual_with(|builder| {
        builder
            .before_execute(move |_| before.push("before".to_owned()))
            .after_execute(move |_, _| after.push("after".to_owned()))
            .decorate_task(move |task: &Submission<'_>| {
                told.push(said(task));
                let (log, submitter) = (wrapped.clone(), thread::current().id());
                move |next: TaskRun<'_>| {
                    log.push(format!("enters, elsewhere: {}", here_is_not(submitter)));
                    let done = next.run();
                    log.push("leaves".to_owned());
                    done
                }
            })
    });
    let body = move || {
        inside.push(format!("body {}", current_task().expect("inside").run_number()));
    };
    let (line, once) = (line!(), executor.task().name("once").schedule(ms(7), body.clone()));
    let once = once.expect("accepted");
    let run = ["before", "enters, elsewhere: true", "body 1", "leaves", "after"];
    assert_eq!(log.entries(), [format!("Some(\"once\"), false, 7ms, line {line}")]);
    clock.run_for(ms(7));
    assert_eq!(log.entries()[1..], run);
    assert!(matches!(once.try_join(), Some(Ok(()))));
    let (line, series) = (line!(), executor.schedule_at_fixed_rate(ms(3), ms(5), body));
    let series = series.expect("accepted");
    assert_eq!(log.entries()[6..], [format!("None, true, 3ms, line {line}")]);
    clock.run_for(ms(8));
    assert_eq!(log.entries()[7..12], run);
    let second = ["before", "enters, elsewhere: true", "body 2", "leaves", "after"];
    assert_eq!(log.entries()[12..], second);
    assert!(series.cancel());
}

fn here_is_not(thread: ThreadId) -> bool {
    thread::current().id() != thread
}

fn said(task: &Submission<'_>) -> String {
    assert_eq!(task.scheduled_at().file(), file!());
    let (name, delay, line) = (task.name(), task.delay(), task.scheduled_at().line());
    format!("{name:?}, {}, {delay:?}, line {line}", task.is_periodic())
}

/// SO-010: the decorator is given the delay as it was requested: zero for times in the past, and
/// `Duration::MAX` for a task that is never due.
#[test]
fn a_decorator_is_told_the_delay() {
    let log = Log::new();
    let told = log.clone();
    let (clock, executor) = manual_with(|builder| {
        builder.decorate_task(move |task: &Submission<'_>| {
            told.push(task.delay());
            |next: TaskRun<'_>| next.run()
        })
    });
    clock.advance(ms(20));
    executor.schedule(Duration::MAX, || ()).expect("accepted");
    executor.schedule_at(clock.now() + ms(3), || ()).expect("accepted");
    executor.schedule_at(clock.now() - ms(3), || ()).expect("accepted");
    executor.schedule_with_fixed_delay(Duration::MAX, ms(1), || ()).expect("accepted");
    executor.execute(|| ()).expect("accepted");
    let zero = Duration::ZERO;
    assert_eq!(log.entries(), [Duration::MAX, ms(3), zero, Duration::MAX, zero]);
}

thread_local! {
    static REQUEST: Cell<u32> = const { Cell::new(0) };
}

/// Carries the submitter's request into each run.
fn with_request(builder: Builder) -> Builder {
    builder.decorate_task(|_: &Submission<'_>| {
        let request = REQUEST.get();
        move |next: TaskRun<'_>| {
            let before = REQUEST.replace(request);
            let done = next.run();
            REQUEST.set(before);
            done
        }
    })
}

/// SO-010: the submitter's context can be carried into each run of its tasks, from task to task.
#[test]
fn a_context_is_brought_from_submitter_to_task() {
    let (clock, executor) = manual_with(with_request);
    let (seen, handle) = (Log::new(), executor.handle());
    for request in [1, 2] {
        REQUEST.set(request);
        let (log, inner_log, handle) = (seen.clone(), seen.clone(), handle.clone());
        let inner = move || inner_log.push(("inner", REQUEST.get()));
        let outer = move || {
            log.push(("outer", REQUEST.get()));
            handle.execute(inner.clone()).expect("accepted");
        };
        executor.schedule_with_fixed_delay(ms(10), ms(10), outer).expect("accepted");
    }
    REQUEST.set(0);
    clock.run_for(ms(20));
    let round = [("outer", 1), ("outer", 2), ("inner", 1), ("inner", 2)];
    assert_eq!(seen.entries(), [round, round].concat());
    let outside = executor.submit(|| REQUEST.get()).expect("accepted");
    clock.run_until_idle();
    assert!(matches!(outside.try_join(), Some(Ok(0))));
}

/// A fate of a task: how it ends.
type Fate = fn(&ManualClock, &Executor, &ScheduledFuture<i32>);

const FATES: [Fate; 6] = [
    |clock, _, _| clock.run_for(ms(10)),
    |_, _, task| assert!(task.cancel()),
    |_, executor, task| assert!(executor.remove(task)),
    |_, executor, _| drop(executor.shutdown_now()),
    |_, executor, _| executor.shutdown_now().for_each(punctual::DrainedTask::run),
    |clock, executor, _| {
        executor.shutdown();
        clock.run_for(ms(10));
    },
];

/// SO-010, SO-011: whatever happens to a task, its future, the statistics and the queue are the
/// same with a decorator and without; and a task that returned a value was run by its wrapper.
#[test]
fn a_decorated_task_ends_as_a_plain_one() {
    let bodies: [fn() -> i32; 2] = [|| 7, || panic_any("no")];
    for (fate, body) in FATES.into_iter().flat_map(|fate| bodies.map(|body| (fate, body))) {
        let (runs, wrappers) = (Counter::new(), Drops::new());
        let plain = live(manual(1), fate, body);
        let decorated = live(manual_with(|b| counting(b, &runs, &wrappers)), fate, body);
        assert_eq!(decorated, plain);
        let ran = plain.starts_with("Some(Ok") || plain.contains("Panic(");
        assert_eq!((runs.get(), wrappers.count()), (usize::from(ran), 1), "{plain}");
    }
}

/// How a task with this body and this fate ends, and what can be observed.
fn live((clock, executor): (ManualClock, Executor), fate: Fate, body: fn() -> i32) -> String {
    let task = executor.task().name("task").schedule(ms(10), body).expect("accepted");
    let before = (executor.pending_count(), task.delay(), task.state());
    fate(&clock, &executor, &task);
    eventually("it ends", || !executor.is_shutdown() || executor.is_terminated());
    let outcome = task.try_join();
    let after = (task.state(), task.delay(), executor.pending_count(), executor.statistics());
    format!("{outcome:?} {before:?} {after:?}")
}

/// HK-031, FR-006: a wrapper is called for every run of a periodic task, including the last run,
/// which panics; also with a period of a nanosecond and ten workers.
#[test]
fn a_wrapper_is_called_for_every_run() {
    for is_rate in [true, false] {
        let (wrapped, wrappers) = (Counter::new(), Drops::new());
        let builder = Executor::builder().core_pool_size(10);
        let executor = counting(builder, &wrapped, &wrappers).build().expect("good");
        let runs = Counter::new();
        let ran = runs.clone();
        let body = move || {
            ran.add();
            assert!(ran.get() < 100, "the last");
        };
        let (zero, shortest) = (Duration::ZERO, Duration::from_nanos(1));
        let series = if is_rate {
            executor.schedule_at_fixed_rate(zero, shortest, body)
        } else {
            executor.schedule_with_fixed_delay(zero, shortest, body)
        };
        let ended = series.expect("accepted").join_within(LONG).expect("it ends");
        assert_eq!(ended.expect_err("it panics").to_string(), "the task panicked: the last");
        executor.close().expect("not on a worker");
        assert_eq!((runs.get(), wrapped.get(), wrappers.count()), (100, 100, 1));
    }
}

/// FD-006: a decorated periodic task that never runs again does not delay a task that its run
/// submits.
#[test]
fn a_decorated_periodic_task_that_never_runs_again_delays_no_other() {
    let (runs, wrappers) = (Counter::new(), Drops::new());
    let (clock, executor) = manual_with(|builder| counting(builder, &runs, &wrappers));
    let (inner, handle) = (Counter::new(), executor.handle());
    let ran = inner.clone();
    let body = move || {
        let ran = ran.clone();
        handle.execute(move || ran.add()).expect("accepted");
    };
    let series = executor.schedule_with_fixed_delay(Duration::ZERO, Duration::MAX, body);
    clock.run_until_idle();
    assert_eq!((inner.get(), runs.get()), (1, 2));
    assert_eq!(series.expect("accepted").delay(), None);
}

/// SO-010: tasks with the same deadline start in the order in which they were submitted, decorated
/// or not. (Java's queue has no sequence number for a wrapped task.)
#[test]
fn decorated_tasks_with_equal_deadlines_keep_their_order() {
    let (runs, wrappers) = (Counter::new(), Drops::new());
    let (clock, executor) = manual_with(|builder| counting(builder, &runs, &wrappers));
    let order = Log::new();
    for number in 0..500_u64 {
        let log = order.clone();
        let delay = ms(10 + number % 3);
        executor.schedule(delay, move || log.push(number)).expect("accepted");
    }
    clock.run_for(ms(20));
    let expected: Vec<_> = (0..3).flat_map(|rest| (rest..500).step_by(3)).collect();
    assert_eq!(order.entries(), expected);
    assert_eq!((runs.get(), wrappers.count()), (500, 500));
}

/// CA-014, CA-015, HK-032: cancelling a decorated task removes it from the queue at once, and drops
/// closure and wrapper, whether its future is kept or not. (In Java the task that decorates stays
/// in the queue until it would have been due: an hour, for each of these thousand.)
#[test]
fn cancelled_decorated_tasks_do_not_stay_in_the_queue() {
    let hour = Duration::from_secs(3600);
    for (keep_futures, is_periodic) in [(true, false), (false, false), (true, true), (false, true)]
    {
        let (runs, wrappers, closures) = (Counter::new(), Drops::new(), Drops::new());
        let (clock, executor) = manual_with(|builder| counting(builder, &runs, &wrappers));
        let schedule = |seconds| {
            let (capture, delay) = (closures.token(), hour + Duration::from_secs(seconds));
            if is_periodic {
                executor.schedule_at_fixed_rate(delay, hour, move || hold(&capture))
            } else {
                executor.schedule(delay, move || hold(&capture))
            }
        };
        // Each is due before the one before it.
        let tasks: Vec<_> = (0..1000).rev().map(|n| schedule(n).expect("accepted")).collect();
        clock.run_until_idle();
        assert_eq!((executor.pending_count(), executor.pool_size()), (1000, 1));
        let mut kept = Vec::new();
        for (task, count) in tasks.into_iter().zip(1..) {
            assert!(task.cancel_and_signal());
            assert_eq!((wrappers.count(), closures.count()), (count, count));
            assert_eq!(executor.pending_count(), 1000 - count);
            kept.extend(keep_futures.then_some(task));
        }
        assert_eq!((executor.purge(), executor.pending_tasks().len()), (0, 0));
        clock.run_for(3 * hour);
        assert_eq!((runs.get(), executor.task_count(), executor.completed_task_count()), (0, 0, 0));
        in_time("close", move || executor.close()).expect("not on a worker");
    }
}

/// CA-014: scheduling and cancelling decorated tasks repeatedly retains nothing of them.
#[test]
fn cancelled_decorated_tasks_do_not_pile_up() {
    let (runs, wrappers) = (Counter::new(), Drops::new());
    let builder = counting(Executor::builder().core_pool_size(1), &runs, &wrappers);
    let executor = builder.build().expect("the settings are good");
    for round in 1..=20_000 {
        let task = executor.schedule(Duration::from_secs(600), || ()).expect("accepted");
        assert!(task.cancel_and_signal());
        assert_eq!(wrappers.count(), round);
        assert!(executor.pending_count() <= 1);
    }
    in_time("close", move || executor.close()).expect("not on a worker");
    assert_eq!(runs.get(), 0);
}

/// HK-032: a decorated task can be cancelled from inside its body, when it is no longer in the
/// queue; a periodic task then does not run again, and nothing is left of it.
#[test]
fn a_decorated_task_can_be_cancelled_from_its_body() {
    for is_periodic in [true, false] {
        let (runs, wrappers, closures) = (Counter::new(), Drops::new(), Drops::new());
        let (clock, executor) = manual_with(|builder| counting(builder, &runs, &wrappers));
        let (give, take) = std::sync::mpsc::channel::<ScheduledFuture<()>>();
        let (capture, answers, handle) = (closures.token(), Log::new(), executor.handle());
        let told = answers.clone();
        let body = move || {
            hold(&capture);
            let own = take.try_recv().expect("it is given");
            told.push((own.cancel(), handle.remove(&own), own.cancel()));
            told.push((own.is_cancelled(), handle.pending_count() == 0, false));
        };
        let task = if is_periodic {
            executor.schedule_at_fixed_rate(ms(10), ms(10), body)
        } else {
            executor.schedule(ms(10), body)
        };
        give.send(task.expect("accepted")).expect("it waits");
        clock.run_for(ms(50));
        assert_eq!(answers.entries(), [(true, false, false), (true, true, false)]);
        assert_eq!((runs.get(), wrappers.count(), closures.count()), (1, 1, 1));
    }
}

/// SO-010: a decorated task with a timeout ends at its timeout; for a periodic task the wrapper
/// runs outside the time limit of each run; closure and wrapper are dropped once.
#[test]
fn a_decorated_task_can_have_a_timeout() {
    let (runs, wrappers, closures) = (Counter::new(), Drops::new(), Drops::new());
    let (clock, executor) = manual_with(|builder| counting(builder, &runs, &wrappers));
    let sleep = |capture| {
        move || {
            hold(&capture);
            current_task().expect("inside a task").token().wait();
        }
    };
    let task = executor.task().timeout(ms(5));
    let once = task.clone().submit(sleep(closures.token())).expect("accepted");
    let series = task.schedule_at_fixed_rate(ms(50), ms(50), sleep(closures.token()));
    let series = series.expect("accepted");
    let budget = executor.task().timeout(ms(5)).on_failure(FailurePolicy::resume().stop_after(2));
    let thrice = budget.schedule_at_fixed_rate(ms(100), ms(50), sleep(closures.token()));
    let thrice = thrice.expect("accepted");
    clock.run_for(ms(300));
    assert_cancelled(&once, CancelReason::TimedOut);
    assert_cancelled(&series, CancelReason::TimedOut);
    assert_eq!(thrice.state(), TaskState::Failed);
    assert_eq!(thrice.last_failure().map(|failed| failed.run_number()), Some(2));
    assert_eq!((runs.get(), wrappers.count(), closures.count()), (4, 3, 3));
}
