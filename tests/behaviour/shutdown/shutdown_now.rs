//! `shutdown_now`: pending tasks are returned, running ones are asked to stop, and every future
//! completes.

use std::{thread, time::Duration};

use punctual::{
    CancelReason, Cancelled, DrainedTask, Handle, InvokeError, RejectedExecutionError,
    ScheduledFuture, ScheduledThreadPoolExecutor, TaskError, TaskId, TaskState, current_task,
};

use crate::{
    rounds::rounds,
    support::{Counter, Drops, LONG, Log, elsewhere, eventually, manual, ms},
};

const DAY: Duration = Duration::from_secs(86_400);

/// Sleeps for a day, unless the task is asked to stop.
fn sleep_for_a_day() -> Result<(), Cancelled> {
    current_task().expect("in a task").token().sleep(DAY)
}

fn ids<'a, T: 'a>(futures: impl IntoIterator<Item = &'a ScheduledFuture<T>>) -> Vec<TaskId> {
    futures.into_iter().map(|task| task.id()).collect()
}

/// The tasks are given back in no particular order.
fn sorted_ids(pending: &[DrainedTask]) -> Vec<TaskId> {
    let mut ids: Vec<_> = pending.iter().map(DrainedTask::id).collect();
    ids.sort();
    ids
}

/// Asserts that the task has ended without a result, like one that was drained and dropped.
fn assert_given_up<T: std::fmt::Debug>(outcome: Option<Result<T, TaskError>>) {
    assert!(
        matches!(outcome, Some(Err(TaskError::Cancelled(CancelReason::ShutdownNow)))),
        "{outcome:?}"
    );
}

/// SN-001, G22: with two of five tasks running, `shutdown_now` returns the other three, empties the
/// queue and stops the running two, and the executor terminates.
#[test]
fn it_returns_waiting_tasks_and_signals_running_ones() {
    let executor = ScheduledThreadPoolExecutor::new(2);
    let ran = Counter::new();
    let futures: Vec<_> = (0..5)
        .map(|_| {
            let ran = ran.clone();
            let body = move || {
                ran.add();
                sleep_for_a_day()
            };
            executor.submit(body).unwrap()
        })
        .collect();
    ran.wait_for(2);
    let pending: Vec<_> = executor.shutdown_now().collect();
    assert_eq!(sorted_ids(&pending), ids(&futures[2..]));
    assert_eq!(executor.pending_count(), 0);
    assert!(executor.is_shutdown());
    assert_eq!(executor.await_termination(LONG), Ok(true));
    assert_eq!(ran.get(), 2);
    for stopped in &futures[..2] {
        assert!(matches!(stopped.try_join(), Some(Ok(Err(_)))));
    }
}

/// SN-002, SN-003: `shutdown_now` returns every delayed and periodic task that was queued; the
/// future of each stays pending until the task is dropped, and is cancelled then.
#[test]
fn it_returns_delayed_and_periodic_tasks_whose_futures_end_with_them() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let delay = LONG;
    let mut futures = Vec::new();
    for _ in 0..3 {
        futures.push(executor.schedule(delay, || ()).unwrap());
        futures.push(executor.schedule_at_fixed_rate(delay, delay, || ()).unwrap());
        futures.push(executor.schedule_with_fixed_delay(delay, delay, || ()).unwrap());
    }
    assert_eq!(executor.pending_count(), 9);
    assert!(futures.iter().all(|future| future.delay().is_some()));
    let pending: Vec<_> = executor.shutdown_now().collect();
    assert_eq!(sorted_ids(&pending), ids(&futures));
    assert_eq!(executor.pending_count(), 0);
    assert_eq!(executor.await_termination(LONG), Ok(true));
    assert!(futures.iter().all(|future| !future.is_done()));
    drop(pending);
    for future in &futures {
        assert_given_up(future.join_within(LONG));
    }
}

/// SN-005: `shutdown_now` raises the token of a running task, however the task was submitted.
#[test]
fn it_raises_the_token_of_every_running_task() {
    type Body = Box<dyn FnMut() + Send>;
    type Entry = fn(&Handle, Body) -> Result<(), RejectedExecutionError>;
    let entries: [Entry; 5] = [
        |on, body| on.execute(body),
        |on, body| on.submit(body).map(drop),
        |on, body| on.schedule(ms(1), body).map(drop),
        |on, body| on.schedule_at_fixed_rate(ms(0), ms(1), body).map(drop),
        |on, body| on.schedule_with_fixed_delay(ms(0), ms(1), body).map(drop),
    ];
    for enter in entries {
        let executor = ScheduledThreadPoolExecutor::new(1);
        let (started, stopped) = (Counter::new(), Counter::new());
        let body = {
            let (started, stopped) = (started.clone(), stopped.clone());
            move || {
                started.add();
                if sleep_for_a_day().is_err() {
                    stopped.add();
                }
            }
        };
        enter(&executor, Box::new(body)).unwrap();
        started.wait_for(1);
        assert!(executor.shutdown_now().is_empty());
        assert_eq!(executor.await_termination(LONG), Ok(true));
        assert_eq!((started.get(), stopped.get()), (1, 1));
    }
}

/// SN-006: a thread that waits for a task that runs for a day, without a limit or with one of an
/// hour, is released as soon as another thread calls `shutdown_now`.
#[test]
fn it_ends_the_wait_for_a_running_task() {
    type Outcome = Option<Result<Result<(), Cancelled>, TaskError>>;
    type Wait = fn(ScheduledFuture<Result<(), Cancelled>>) -> Outcome;
    let waits: [Wait; 2] =
        [|future| Some(future.join()), |future| future.join_within(Duration::from_secs(3600))];
    for (workers, wait) in [1, 8].into_iter().flat_map(|n| waits.map(|wait| (n, wait))) {
        let executor = ScheduledThreadPoolExecutor::new(workers);
        let (started, waits) = (Counter::new(), Counter::new());
        let has_started = started.clone();
        let body = move || {
            has_started.add();
            sleep_for_a_day()
        };
        let future = executor.submit(body).unwrap();
        let waiter = elsewhere({
            let waits = waits.clone();
            move || {
                waits.add();
                wait(future)
            }
        });
        started.wait_for(1);
        waits.wait_for(1);
        assert!(executor.shutdown_now().is_empty());
        let outcome = waiter.get();
        assert!(matches!(outcome, Some(Ok(Err(_)))), "{outcome:?}");
    }
}

/// SN-007, SN-008: a thread that waits for one running and several queued tasks sees the end of
/// each, and none has succeeded, whenever the shutdown comes.
#[test]
fn it_ends_every_wait_for_running_and_waiting_tasks() {
    for round in rounds("waits for all that are shut down", 2_000) {
        wait_for_all_while_shutting_down(2 + round % 3, round % 2 == 0);
    }
}

fn wait_for_all_while_shutting_down(tasks: usize, is_timed: bool) {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let started = Counter::new();
    let body = || {
        let started = started.clone();
        move || {
            started.add();
            sleep_for_a_day()
        }
    };
    let futures: Vec<_> = (0..tasks).map(|_| executor.submit(body()).unwrap()).collect();
    let waiter = elsewhere(move || {
        let wait = |future: ScheduledFuture<_>| match is_timed {
            true => future.join_within(LONG),
            false => Some(future.join()),
        };
        futures.into_iter().map(wait).collect::<Vec<_>>()
    });
    started.wait_for(1);
    drop(executor.shutdown_now());
    let mut outcomes = waiter.get().into_iter();
    assert!(matches!(outcomes.next(), Some(Some(Ok(Err(_))))));
    outcomes.for_each(assert_given_up);
}

/// SN-007: a call for all of several closures returns every future, and each has ended without a value; a call for any of
/// them fails.
#[test]
fn it_ends_a_call_for_several() {
    for is_all in [true, false] {
        let executor = ScheduledThreadPoolExecutor::new(1);
        let handle = executor.handle();
        let caller = elsewhere(move || call_for_three(&handle, is_all));
        eventually("one runs, and two wait", || {
            let now = executor.statistics();
            (now.active, now.pending) == (1, 2)
        });
        drop(executor.shutdown_now());
        caller.get();
    }
}

fn call_for_three(handle: &Handle, is_all: bool) {
    let bodies = [sleep_for_a_day; 3];
    if is_all {
        let futures = handle.invoke_all(bodies).expect("they were submitted");
        assert!(futures.iter().all(|task| task.is_done()));
        let mut outcomes = futures.iter().map(ScheduledFuture::join);
        assert!(matches!(outcomes.next(), Some(Ok(Err(_)))), "it was asked to stop");
        outcomes.for_each(|outcome| assert!(outcome.is_err_and(|error| error.is_cancelled())));
    } else {
        assert!(handle.invoke_any(bodies).is_err());
    }
}

/// SN-008: a call for any of two to four closures fails, with a time limit or without, whenever the shutdown comes once one
/// of them runs. It does not wait for its limit.
#[test]
fn it_ends_a_call_for_any_whenever_it_comes() {
    for round in rounds("a call for any that is shut down", 2_000) {
        let executor = ScheduledThreadPoolExecutor::new(1);
        let (handle, started) = (executor.handle(), Counter::new());
        let begins = started.clone();
        let body = move || {
            begins.add();
            sleep_for_a_day()
        };
        let bodies = vec![body; 2 + round % 3];
        let caller = elsewhere(move || match round % 2 {
            0 => matches!(handle.invoke_any(bodies), Err(error) if !is_timed_out(&error)),
            _ => {
                let outcome = handle.invoke_any_within(bodies, DAY);
                matches!(outcome, Err(error) if !is_timed_out(&error))
            }
        });
        started.wait_for(1);
        drop(executor.shutdown_now());
        assert!(caller.get());
    }
}

fn is_timed_out<E>(error: &InvokeError<E>) -> bool {
    matches!(error, InvokeError::TimedOut)
}

/// SN-010: on a terminated executor a second shutdown of either kind returns nothing and changes
/// nothing.
#[test]
fn after_the_end_it_does_nothing() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    executor.execute(|| ()).unwrap();
    executor.shutdown();
    assert_eq!(executor.await_termination(LONG), Ok(true));
    for _ in 0..2 {
        executor.shutdown();
        assert!(executor.shutdown_now().is_empty());
        assert!(executor.is_terminated());
        assert!(!executor.is_terminating());
    }
}

/// SN-011: running periodic tasks finish their runs, are not queued again, and are cancelled, even
/// where the policy would keep them.
#[test]
fn running_periodic_tasks_finish_the_run_and_no_more() {
    let executor = ScheduledThreadPoolExecutor::new(2);
    executor.set_continues_existing_periodic_tasks_after_shutdown(true);
    let (begun, ended, gate) = (Counter::new(), Counter::new(), Counter::new());
    let body = || {
        let (begun, ended, gate) = (begun.clone(), ended.clone(), gate.clone());
        move || {
            begun.add();
            gate.wait_for(1);
            ended.add();
        }
    };
    let futures = [
        executor.schedule_at_fixed_rate(ms(0), ms(1), body()).unwrap(),
        executor.schedule_with_fixed_delay(ms(0), ms(1), body()).unwrap(),
    ];
    begun.wait_for(2);
    assert!(executor.shutdown_now().is_empty());
    assert!(futures.iter().all(|future| !future.is_done()));
    gate.add();
    assert_eq!(executor.await_termination(LONG), Ok(true));
    assert_eq!((begun.get(), ended.get()), (2, 2));
    assert_eq!(executor.pending_count(), 0);
    for future in &futures {
        assert_eq!(future.state(), TaskState::Cancelled);
    }
}

/// F38, SN-012: `shutdown` can be followed by `shutdown_now`, which stops more, and not the other
/// way round: the state never goes back.
#[test]
fn the_state_only_moves_forward() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let (begun, gate, tokens) = (Counter::new(), Counter::new(), Log::new());
    let body = {
        let (begun, gate, tokens) = (begun.clone(), gate.clone(), tokens.clone());
        move || {
            tokens.push(current_task().expect("in a task").token());
            begun.add();
            gate.wait_for(1);
        }
    };
    executor.execute(body).unwrap();
    let kept = executor.schedule(LONG, || ()).unwrap();
    begun.wait_for(1);
    let token = tokens.entries().remove(0);

    executor.shutdown();
    assert!(executor.is_terminating() && !token.is_cancelled() && !kept.is_done());
    let pending: Vec<_> = executor.shutdown_now().collect();
    assert_eq!(sorted_ids(&pending), [kept.id()]);
    assert!(executor.is_terminating() && token.is_cancelled());
    executor.shutdown();
    executor.set_executes_existing_delayed_tasks_after_shutdown(true);
    assert!(executor.is_terminating() && token.is_cancelled());
    assert!(executor.shutdown_now().is_empty());

    gate.add();
    assert_eq!(executor.await_termination(LONG), Ok(true));
    executor.shutdown();
    assert!(executor.is_terminated() && executor.is_shutdown() && !executor.is_terminating());
}

/// The reason for which a running periodic task ends is `shutdown_now`.
#[test]
fn a_running_periodic_task_ends_with_the_reason_of_a_shutdown_now() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    executor.set_continues_existing_periodic_tasks_after_shutdown(true);
    let started = Counter::new();
    let has_started = started.clone();
    let body = move || {
        has_started.add();
        sleep_for_a_day().ok();
    };
    let future = executor.schedule_at_fixed_rate(ms(0), DAY, body).unwrap();
    started.wait_for(1);
    drop(executor.shutdown_now());
    assert_given_up(future.join_within(LONG));
}

/// A drained task has its number, its name, whether it is periodic, and the time it was planned
/// for, if there is one.
#[test]
fn a_pending_task_says_which_one_it_is() {
    let (clock, executor) = manual(1);
    let start = clock.now();
    let never = executor.schedule(Duration::MAX, || ()).unwrap();
    let named = executor.task().name("report");
    let named = named.schedule_at_fixed_rate(ms(5), ms(1), || ()).unwrap();
    let mut pending: Vec<_> = executor.shutdown_now().collect();
    pending.sort_by_key(DrainedTask::id);
    let [first, second] = pending.try_into().expect("two tasks");
    assert_eq!((first.id(), second.id()), (never.id(), named.id()));
    assert_eq!((first.name(), second.name()), (None, Some("report".into())));
    assert_eq!((first.is_periodic(), second.is_periodic()), (false, true));
    assert_eq!(first.deadline(), None);
    assert_eq!(second.deadline(), Some(start + ms(5)));
    for shown in ["report", "is_periodic: true"] {
        assert!(format!("{second:?}").contains(shown), "{second:?}");
    }
}

/// The caller can run a drained task, on its own thread and long before it is due, as a task with a
/// number and a token of its own, and the task's future has the result.
#[test]
fn a_pending_task_can_be_run() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let body = || {
        let task = current_task().expect("in a task");
        (task.id(), task.token().is_cancelled(), thread::current().id())
    };
    let future = executor.schedule(DAY, body).unwrap();
    run_all(executor.shutdown_now().collect());
    let outcome = future.try_join().expect("it has ended").unwrap();
    assert_eq!(outcome, (future.id(), false, thread::current().id()));
    assert!(current_task().is_none());
}

/// The panic of a task that the caller runs goes to its future, not to the caller.
#[test]
fn a_pending_task_that_panics_ends_its_future() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let body = || std::panic::resume_unwind(Box::new("planted"));
    let future: ScheduledFuture<()> = executor.schedule(DAY, body).unwrap();
    run_all(executor.shutdown_now().collect());
    let Some(Err(TaskError::Failed(panic))) = future.try_join() else {
        panic!("it has not panicked");
    };
    assert_eq!(panic.message(), "planted");
}

/// A periodic task that the caller runs runs once, and is then cancelled.
#[test]
fn a_pending_periodic_task_runs_once() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let (runs, drops) = (Counter::new(), Drops::new());
    let (counted, token) = (runs.clone(), drops.token());
    let body = move || {
        let _captured = &token;
        counted.add();
    };
    let future = executor.schedule_at_fixed_rate(DAY, DAY, body).unwrap();
    run_all(executor.shutdown_now().collect());
    assert_eq!((runs.get(), drops.count()), (1, 1));
    assert_given_up(future.try_join());
}

/// A drained task that is dropped drops its closure and is cancelled, and a waiting thread is
/// released.
#[test]
fn a_pending_task_that_is_dropped_is_cancelled() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let drops = Drops::new();
    let token = drops.token();
    let future = executor.schedule(DAY, move || token).unwrap();
    let waits = Counter::new();
    let waiter = elsewhere({
        let waits = waits.clone();
        move || {
            waits.add();
            future.join_within(LONG)
        }
    });
    waits.wait_for(1);
    let pending: Vec<_> = executor.shutdown_now().collect();
    assert_eq!(drops.count(), 0);
    drop(pending);
    assert_eq!(drops.count(), 1);
    assert_given_up(waiter.get());
}

/// All captures are dropped once, also if some of the drops panic.
#[test]
fn a_hundred_thousand_pending_tasks_have_ended_when_the_drop_returns() {
    const TASKS: usize = 100_000;
    let executor = ScheduledThreadPoolExecutor::new(1);
    let drops = Counter::new();
    let futures: Vec<_> = (0..TASKS)
        .map(|number| {
            let capture = Capture { drops: drops.clone(), panics: number % 10_000 == 7 };
            executor.schedule(DAY, move || drop(capture)).unwrap()
        })
        .collect();
    drop(executor.shutdown_now());
    assert_eq!(drops.get(), TASKS);
    for future in futures {
        assert!(future.is_cancelled());
        assert_given_up(Some(future.join()));
    }
}

/// Counts its drop, which may panic.
struct Capture {
    drops: Counter,
    panics: bool,
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.drops.add();
        assert!(!self.panics, "a drop that panics");
    }
}

/// A drained task that is then cancelled through its future does not run any more.
#[test]
fn a_pending_task_that_was_cancelled_does_not_run() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let runs = Counter::new();
    let counted = runs.clone();
    let future = executor.schedule(DAY, move || counted.add()).unwrap();
    let pending: Vec<_> = executor.shutdown_now().collect();
    assert!(future.cancel());
    run_all(pending);
    assert_eq!(runs.get(), 0);
    let outcome = future.try_join();
    assert!(matches!(outcome, Some(Err(TaskError::Cancelled(CancelReason::Requested)))));
}

/// Drained tasks can be run after their executor is gone.
#[test]
fn a_pending_task_outlives_its_executor() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let future = executor.schedule(DAY, || "written").unwrap();
    let pending: Vec<_> = executor.shutdown_now().collect();
    drop(executor);
    run_all(pending);
    assert!(matches!(future.try_join(), Some(Ok("written"))));
}

fn run_all(pending: Vec<DrainedTask>) {
    pending.into_iter().for_each(DrainedTask::run);
}

/// A drained task that runs elsewhere may wait for another: no worker waits.
#[test]
fn a_drained_task_run_elsewhere_may_join_another() {
    let (_clock, executor) = manual(1);
    let second = executor.schedule(ms(20), || 7).expect("it is open");
    let first = executor.schedule(ms(10), move || second.join()).expect("it is open");
    let mut given_back: Vec<_> = executor.shutdown_now().collect();
    given_back.sort_by_key(DrainedTask::deadline);
    let threads = given_back.into_iter().map(|task| thread::spawn(|| task.run()));
    threads.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().expect("no panic"));
    assert_eq!(first.join().expect("it has run").expect("it has run"), 7);
}
