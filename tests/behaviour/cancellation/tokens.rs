//! Tokens: which calls ask a running task to stop, and which do not.

use std::{
    sync::mpsc::{self, Receiver},
    thread,
    time::{Duration, Instant},
};

use punctual::{
    CancelReason, CancellationToken, FailurePolicy, Handle, ScheduledFuture,
    ScheduledThreadPoolExecutor, current_task,
};

use crate::support::{
    Counter, Drops, LONG, Log, assert_cancelled, eventually, hold, manual, ms, receive, worker_of,
};

fn own_token() -> CancellationToken {
    current_task().expect("inside a task").token()
}

/// A new token is not raised; once raised, it stays raised.
#[test]
fn a_token_is_raised_once_and_for_all() {
    for token in [CancellationToken::new(), CancellationToken::default()] {
        assert!(!token.is_cancelled());
        for _ in 0..2 {
            token.cancel();
            assert!(token.is_cancelled());
        }
    }
}

/// Raising a token raises its clones, and raising a clone raises the original.
#[test]
fn clones_are_one_token() {
    let first = CancellationToken::new();
    let second = first.clone();
    second.cancel();
    assert!(first.is_cancelled());
    assert!(first.clone().is_cancelled());
}

/// Starts a thread that blocks on a token, and reports when it returns.
fn in_thread<R: Send + 'static>(
    token: &CancellationToken,
    block: fn(&CancellationToken) -> R,
) -> Receiver<R> {
    let (tell, told) = mpsc::channel();
    let token = token.clone();
    thread::spawn(move || tell.send(block(&token)));
    told
}

/// Threads that wait for a token block until it is raised, and are woken then.
#[test]
fn raising_a_token_wakes_every_waiter() {
    let token = CancellationToken::new();
    let waiters = [(); 4].map(|()| in_thread(&token, CancellationToken::wait));
    let sleepers = [(); 4].map(|()| in_thread(&token, |token| token.sleep(Duration::MAX)));
    for waiter in &waiters {
        assert!(waiter.recv_timeout(ms(1)).is_err());
    }
    token.cancel();
    for waiter in waiters {
        receive(&waiter, "it is woken");
    }
    for sleeper in sleepers {
        let slept = receive(&sleeper, "it is woken");
        assert!(slept.is_err());
    }
}

/// A wait for a token that was raised before returns at once.
#[test]
fn waits_on_a_raised_token_return_at_once() {
    let token = CancellationToken::new();
    token.cancel();
    let waiter = in_thread(&token, CancellationToken::wait);
    receive(&waiter, "it does not wait");
    let sleeper = in_thread(&token, |token| token.sleep(Duration::MAX));
    let slept = receive(&sleeper, "it does not wait");
    let error = slept.expect_err("raised");
    assert_eq!(error.to_string(), "the wait was interrupted: its token was cancelled");
}

/// A sleep on a token that is not raised lasts its full time.
#[test]
fn a_sleep_lasts_its_time() {
    let token = CancellationToken::new();
    for span in [Duration::ZERO, ms(2)] {
        let start = Instant::now();
        assert!(token.sleep(span).is_ok());
        assert!(start.elapsed() >= span);
    }
}

/// In a task on the manual clock a sleep is measured by that clock, and the clock counts as idle
/// meanwhile.
#[test]
fn a_sleep_in_a_task_counts_the_clock_of_its_executor() {
    let (clock, executor) = manual(1);
    let body = || own_token().sleep(Duration::from_secs(3_600));
    let future = executor.submit(body).expect("accepted");
    clock.run_until_idle();
    assert_eq!(clock.next_deadline(), Some(Duration::from_secs(3_600)));
    clock.advance(Duration::from_secs(3_599));
    clock.run_until_idle();
    assert!(!future.is_done());
    clock.advance(Duration::from_secs(1));
    clock.run_until_idle();
    assert!(matches!(future.try_join(), Some(Ok(Ok(())))));
}

/// A sleep on the manual clock ends when the token is raised, and takes no time.
#[test]
fn a_sleep_on_the_manual_clock_ends_with_the_token() {
    let (clock, executor) = manual(1);
    let ended = Counter::new();
    let has_ended = ended.clone();
    let body = move || {
        assert!(own_token().sleep(LONG).is_err());
        has_ended.add();
    };
    let future = executor.submit(body).expect("accepted");
    clock.run_until_idle();
    assert!(future.cancel_and_signal());
    ended.wait_for(1);
    assert_eq!(clock.elapsed(), Duration::ZERO);
}

/// A running task and its token; the task ends when its gate is opened.
struct Running {
    executor: ScheduledThreadPoolExecutor,
    future: ScheduledFuture<()>,
    token: CancellationToken,
    gate: Counter,
}

impl Running {
    fn new() -> Self {
        let executor = ScheduledThreadPoolExecutor::new(1);
        let (tell, told) = mpsc::channel();
        let gate = Counter::new();
        let opened = gate.clone();
        let body = move || {
            tell.send(own_token()).expect("the test waits");
            opened.wait_for(1);
        };
        let future = executor.submit(body).expect("accepted");
        let token = receive(&told, "it runs");
        Self { executor, future, token, gate }
    }
}

/// Requests to stop raise a running task's token, and nothing else does.
#[test]
fn only_a_request_to_stop_raises_a_tasks_token() {
    type Act = fn(&Handle, &ScheduledFuture<()>);
    let acts: [(&str, Act, bool); 6] = [
        ("nothing", |_, _| {}, false),
        ("cancel", |_, future| assert!(future.cancel()), false),
        ("shutdown", |handle, _| handle.shutdown(), false),
        ("cancel_and_signal", |_, future| assert!(future.cancel_and_signal()), true),
        (
            "cancel_and_signal of the handle",
            |_, future| assert!(future.task_handle().cancel_and_signal()),
            true,
        ),
        ("shutdown_now", |handle, _| drop(handle.shutdown_now()), true),
    ];
    for (name, act, raises) in acts {
        let running = Running::new();
        assert!(!running.token.is_cancelled(), "{name}");
        act(&running.executor, &running.future);
        assert_eq!(running.token.is_cancelled(), raises, "{name}");
        running.gate.add();
    }
}

/// A body that runs on after a plain `cancel` can still be signalled, by the future or by its
/// handle; neither call cancels the task, and both return `false`. A body that has returned cannot
/// be signalled.
#[test]
fn a_cancelled_body_that_runs_on_can_be_signalled() {
    type Signal = fn(&Running) -> bool;
    let signals: [Signal; 2] = [
        |running| running.future.cancel_and_signal(),
        |running| running.future.task_handle().cancel_and_signal(),
    ];
    for signal in signals {
        let running = Running::new();
        assert!(running.future.cancel());
        assert!(!running.token.is_cancelled());
        assert!(!signal(&running));
        assert!(running.token.is_cancelled());
        running.gate.add();
    }
    let ended = Running::new();
    assert!(ended.future.cancel());
    ended.gate.add();
    worker_of(&ended.executor);
    assert!(!ended.future.cancel_and_signal());
    assert!(!ended.token.is_cancelled());
}

/// A guard that signals asks a running body to stop; a plain guard does not.
#[test]
fn a_guard_can_signal() {
    for signals in [false, true] {
        let Running { executor: _executor, future, token, gate } = Running::new();
        let guard =
            if signals { future.cancel_and_signal_on_drop() } else { future.cancel_on_drop() };
        drop(guard);
        assert_eq!(token.is_cancelled(), signals);
        gate.add();
        let Running { executor: _executor, future, token, gate } = Running::new();
        drop(future.cancel_and_signal_on_drop().detach());
        assert!(!token.is_cancelled());
        gate.add();
    }
}

/// A periodic task whose token is raised does not run again, whether the body itself raised it or a
/// holder of the token between two runs. Its future is cancelled on request, its captures are
/// dropped, and its last run is counted.
#[test]
fn a_raised_token_ends_a_periodic_task() {
    for raises_itself in [true, false] {
        let (clock, executor) = manual(1);
        let (drops, tokens) = (Drops::new(), Log::new());
        let (capture, kept) = (drops.token(), tokens.clone());
        let body = move || {
            hold(&capture);
            let task = current_task().expect("inside a task");
            kept.push(task.token());
            if raises_itself && task.run_number() == 3 {
                task.token().cancel();
            }
        };
        let beat = executor.schedule_at_fixed_rate(ms(10), ms(10), body).unwrap();
        clock.run_for(ms(25));
        assert!(!beat.is_done());
        if !raises_itself {
            tokens.entries()[0].cancel();
        }
        clock.run_for(ms(100));
        assert_cancelled(&beat, CancelReason::Requested);
        let now = executor.statistics();
        let runs = if raises_itself { 3 } else { 2 };
        assert_eq!((now.runs, now.cancelled, now.pending, now.active), (runs, 1, 0, 0));
        assert_eq!((drops.count(), clock.next_deadline()), (1, None));
    }
}

/// A periodic body with a time limit has a token per run, and ends its task by raising one as well;
/// a token that the limit raises does not end a task that continues after a failure.
#[test]
fn a_raised_token_ends_a_task_with_a_limit_for_each_run() {
    for policy in [FailurePolicy::stop(), FailurePolicy::resume()] {
        let (clock, executor) = manual(1);
        let task = executor.task().timeout(ms(5)).on_failure(policy);
        let body = || {
            let task = current_task().expect("inside a task");
            if task.run_number() == 2 {
                task.token().cancel();
            }
        };
        let beat = task.schedule_at_fixed_rate(ms(10), ms(10), body).unwrap();
        clock.run_for(ms(100));
        assert_cancelled(&beat, CancelReason::Requested);
        assert_eq!(executor.statistics().runs, 2);
    }
}

/// Asking an ended task to stop raises no token.
#[test]
fn a_task_that_is_over_is_not_asked_to_stop() {
    let ended = Running::new();
    ended.gate.add();
    worker_of(&ended.executor);
    assert!(!ended.future.cancel_and_signal());
    assert!(!ended.token.is_cancelled());
}

/// Threads that wait for a task's token are woken by each of the two calls that raise it.
#[test]
fn a_tasks_token_wakes_its_waiters() {
    type Act = fn(&Running);
    let acts: [Act; 2] = [
        |running| assert!(running.future.cancel_and_signal()),
        |running| drop(running.executor.shutdown_now()),
    ];
    for act in acts {
        let running = Running::new();
        let waiters = [(); 2].map(|()| in_thread(&running.token, CancellationToken::wait));
        assert!(waiters[0].recv_timeout(ms(1)).is_err());
        act(&running);
        for waiter in waiters {
            receive(&waiter, "it is woken");
        }
        running.gate.add();
    }
}

/// Each task has a token of its own; raising it by hand signals that task alone.
#[test]
fn each_task_has_its_own_token() {
    let (first, second) = (Running::new(), Running::new());
    first.token.cancel();
    assert!(first.token.is_cancelled() && !second.token.is_cancelled());
    first.gate.add();
    let next = first.executor.submit(|| own_token().is_cancelled());
    let next = next.expect("accepted").join_within(LONG);
    assert!(matches!(next, Some(Ok(false))), "{next:?}");
    assert!(!first.future.is_cancelled());
    second.gate.add();
}

/// `shutdown_now` raises the tokens of all running tasks, including tokens that are first requested
/// afterwards.
#[test]
fn a_shutdown_now_raises_every_token() {
    let executor = ScheduledThreadPoolExecutor::new(2);
    let (started, gate) = (Counter::new(), Counter::new());
    let body = |asks_before: bool| {
        let (started, gate) = (started.clone(), gate.clone());
        move || {
            let early = asks_before.then(own_token);
            started.add();
            gate.wait_for(1);
            early.unwrap_or_else(own_token).is_cancelled()
        }
    };
    let futures = [true, false].map(|early| executor.submit(body(early)).expect("accepted"));
    started.wait_for(2);
    assert!(executor.shutdown_now().is_empty());
    gate.add();
    for future in futures {
        assert!(matches!(future.join_within(LONG), Some(Ok(true))));
    }
}

/// All runs of a periodic task have one token.
#[test]
fn the_runs_of_a_task_share_its_token() {
    let (clock, executor) = manual(1);
    let (tell, told) = mpsc::channel();
    let body = move || tell.send(own_token()).expect("the test waits");
    let beat = executor.schedule_at_fixed_rate(ms(1), ms(1), body);
    clock.run_for(ms(2));
    let tokens: Vec<_> = told.try_iter().collect();
    assert_eq!(tokens.len(), 2);
    tokens[0].cancel();
    assert!(tokens[1].is_cancelled());
    assert!(!beat.expect("accepted").is_cancelled());
}

/// A wait for a token never misses that it is raised.
#[test]
fn no_raise_is_missed() {
    for _ in 0..500 {
        let token = CancellationToken::new();
        let waiter = in_thread(&token, |token| token.sleep(Duration::MAX));
        token.cancel();
        let slept = receive(&waiter, "it is woken");
        assert!(slept.is_err());
    }
}

/// A closed executor waits for a task that sleeps on its token only until the token is raised.
#[test]
fn a_close_can_be_called_off() {
    let (clock, executor) = manual(1);
    let future = executor.submit(|| own_token().sleep(LONG).is_err());
    clock.run_until_idle();
    let (token, handle) = (CancellationToken::new(), executor.handle());
    let raiser = token.clone();
    let (tell, told) = mpsc::channel();
    thread::spawn(move || tell.send(executor.close_within(&token)));
    eventually("the close has begun", || handle.is_shutdown());
    raiser.cancel();
    let closed = receive(&told, "it does not wait for time");
    assert!(closed.is_ok() && handle.is_terminated());
    let answer = future.expect("accepted").try_join();
    assert!(matches!(answer, Some(Ok(true))), "{answer:?}");
}
