//! Termination: waiting for it, closing, and dropping, whatever the executor is doing.

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use punctual::{
    Builder, CancelReason, CancellationToken, Cancelled, Handle, ScheduledThreadPoolExecutor,
    WouldDeadlock, current_task,
};

use crate::support::{
    Counter, LONG, Log, assert_cancelled, assert_shut_down, assert_terminated, elsewhere,
    eventually, ms,
};

const HOUR: Duration = Duration::from_secs(3600);

/// A body that blocks, and reports that it has begun.
#[derive(Clone, Default)]
struct Blocker {
    begun: Counter,
    gate: Counter,
}

impl Blocker {
    fn body(&self) -> impl FnMut() + Send + use<> {
        let Self { begun, gate } = self.clone();
        move || {
            begun.add();
            gate.wait_for(1);
        }
    }
}

/// AT-002, AT-003, AT-005, AT-006, AT-019: an executor is terminating from its shutdown to its end,
/// and terminated after that, as seen from a task and from outside.
#[test]
fn the_end_comes_after_the_shutdown_and_the_last_task() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let blocker = Blocker::default();
    let (handle, mut block) = (executor.handle(), blocker.body());
    let look = |handle: &Handle| (handle.is_terminating(), handle.is_terminated());
    let seen_inside = executor.submit(move || {
        let before = look(&handle);
        block();
        (before, look(&handle))
    });
    blocker.begun.wait_for(1);
    assert_eq!(look(&executor), (false, false));
    assert_eq!(executor.await_termination(Duration::ZERO), Ok(false));
    executor.shutdown();
    assert_shut_down(&executor);
    assert_eq!(look(&executor), (true, false));
    blocker.gate.add();
    assert_eq!(executor.await_termination(LONG), Ok(true));
    assert_terminated(&executor);
    let seen_inside = seen_inside.unwrap().try_join();
    assert!(matches!(seen_inside, Some(Ok(((false, false), (true, false))))));
}

/// A wait for termination with a limit lasts until the limit, in vain, while a task runs.
#[test]
fn a_wait_for_the_end_gives_up_after_its_limit() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let blocker = Blocker::default();
    executor.execute(blocker.body()).unwrap();
    executor.shutdown();
    let start = Instant::now();
    assert_eq!(executor.await_termination(ms(3)), Ok(false));
    assert!(start.elapsed() >= ms(3));
    blocker.gate.add();
}

/// F38, G24: every thread that waits for termination is woken.
#[test]
fn every_thread_that_waits_for_the_end_is_woken() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let blocker = Blocker::default();
    executor.execute(blocker.body()).unwrap();
    let waiters: Vec<_> = [LONG, LONG, Duration::MAX]
        .map(|timeout| (executor.handle(), timeout))
        .map(|(handle, timeout)| elsewhere(move || handle.await_termination(timeout)))
        .into();
    executor.shutdown();
    blocker.gate.add();
    for waiter in waiters {
        assert_eq!(waiter.get(), Ok(true));
    }
}

/// AT-004: an executor that was never used has terminated when the call that stops it returns.
#[test]
fn an_executor_that_was_never_used_ends_at_once() {
    let stops: [fn(ScheduledThreadPoolExecutor); 6] = [
        |executor| {
            executor.shutdown();
            assert_terminated(&executor);
        },
        |executor| {
            assert!(executor.shutdown_now().is_empty());
            assert_terminated(&executor);
        },
        drop,
        |executor| executor.close().unwrap(),
        ScheduledThreadPoolExecutor::close_background,
        ScheduledThreadPoolExecutor::shutdown_background,
    ];
    for (stop, workers) in stops.into_iter().flat_map(|stop| [(stop, 0), (stop, 4)]) {
        let executor = ScheduledThreadPoolExecutor::new(workers);
        let handle = executor.handle();
        assert!(!handle.is_shutdown());
        stop(executor);
        assert_terminated(&handle);
    }
}

/// AT-008, AT-009, AT-011, AT-015, AT-020: closing and dropping wait for running tasks and for due
/// tasks behind them; the results are available afterwards, the token that could have ended the
/// wait is unchanged, and an earlier shutdown makes no difference.
#[test]
fn closing_and_dropping_wait_for_due_tasks() {
    let ways: [fn(ScheduledThreadPoolExecutor); 5] = [
        drop,
        |executor| executor.close().unwrap(),
        |executor| {
            let token = CancellationToken::new();
            executor.close_within(&token).unwrap();
            assert!(!token.is_cancelled());
        },
        |executor| {
            executor.shutdown();
            executor.close().unwrap();
        },
        |executor| {
            executor.shutdown();
            drop(executor);
        },
    ];
    for (end, tasks) in ways.into_iter().flat_map(|end| [1, 2, 3].map(|n| (end, n))) {
        let executor = ScheduledThreadPoolExecutor::new(2);
        let handle = executor.handle();
        let gate = Counter::new();
        let body = |n| {
            let gate = gate.clone();
            move || (gate.wait_for(1), n).1
        };
        let futures: Vec<_> = (0..tasks).map(|n| executor.submit(body(n)).unwrap()).collect();
        let ended = elsewhere(move || end(executor));
        eventually("it is shutting down", || handle.is_shutdown());
        assert!(!handle.is_terminated());
        gate.add();
        ended.get();
        assert_terminated(&handle);
        for (n, future) in futures.iter().enumerate() {
            assert!(matches!(future.try_join(), Some(Ok(value)) if value == n));
        }
    }
}

/// AT-012: closing a terminated executor returns at once.
#[test]
fn an_executor_that_has_ended_can_be_closed() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    executor.execute(|| ()).unwrap();
    executor.shutdown();
    assert_eq!(executor.await_termination(LONG), Ok(true));
    let handle = executor.handle();
    executor.close().unwrap();
    assert_terminated(&handle);
}

/// AT-013, AT-014: a token that is raised before or during the wait in `close_within` turns it into
/// `shutdown_now`, and stays raised.
#[test]
fn closing_is_cut_short_by_a_token() {
    for is_raised_before in [true, false] {
        let executor = ScheduledThreadPoolExecutor::new(1);
        let handle = executor.handle();
        let begun = Counter::new();
        let has_begun = begun.clone();
        let running = executor.submit(move || -> Result<(), Cancelled> {
            has_begun.add();
            current_task().expect("in a task").token().sleep(24 * HOUR)
        });
        let queued = executor.schedule(HOUR, || ()).unwrap();
        begun.wait_for(1);
        let token = CancellationToken::new();
        if is_raised_before {
            token.cancel();
        }
        let given = token.clone();
        let closing = elsewhere(move || executor.close_within(&given));
        eventually("it is shut down", || handle.is_shutdown());
        token.cancel();
        assert_eq!(closing.get(), Ok(()));
        assert!(token.is_cancelled());
        assert_terminated(&handle);
        assert!(matches!(running.unwrap().try_join(), Some(Ok(Err(_)))));
        assert_cancelled(&queued, CancelReason::ShutdownNow);
    }
}

/// AT-021, G25: an executor's own task that waits for the executor's termination gets an error at
/// once, and the executor is shut down and terminates by itself.
#[test]
fn a_task_cannot_wait_for_the_end_of_its_own_executor() {
    type End = fn(ScheduledThreadPoolExecutor) -> Result<(), WouldDeadlock>;
    let refused: [End; 5] = [
        ScheduledThreadPoolExecutor::close,
        |executor| executor.close_within(CancellationToken::new()),
        |executor| {
            let raised = CancellationToken::new();
            raised.cancel();
            executor.close_within(&raised)
        },
        |executor| executor.await_termination(Duration::ZERO).map(drop),
        |executor| executor.await_termination(Duration::MAX).map(drop),
    ];
    let allowed: [fn(ScheduledThreadPoolExecutor); 3] = [
        drop,
        ScheduledThreadPoolExecutor::close_background,
        ScheduledThreadPoolExecutor::shutdown_background,
    ];
    for end in refused {
        assert!(end_from_inside(end).is_err());
    }
    for end in allowed {
        end_from_inside(end);
    }
}

/// Returns what `end` returns in a task of the executor, with another task due behind it.
fn end_from_inside<R: Unpin + Send + 'static>(end: fn(ScheduledThreadPoolExecutor) -> R) -> R {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let handle = executor.handle();
    let gate = Counter::new();
    let opened = gate.clone();
    let ending = handle.submit(move || {
        opened.wait_for(1);
        end(executor)
    });
    let behind = handle.submit(|| ()).unwrap();
    gate.add();
    let outcome = ending.unwrap().join_within(LONG);
    assert_eq!(handle.await_termination(LONG), Ok(true));
    assert_terminated(&handle);
    assert!(matches!(behind.try_join(), Some(Ok(()))));
    outcome.expect("it returns at once").unwrap()
}

/// AT-021, G25: in the termination hook, and in the callbacks at the start and end of a thread, a
/// wait for the executor's termination is refused, with a limit or without.
#[test]
fn a_callback_cannot_wait_for_the_end_of_its_executor() {
    type Place = fn(Builder, Box<dyn Fn() + Send + Sync>) -> Builder;
    let places: [(&str, Place); 3] = [
        ("start", |builder, call| builder.on_thread_start(call)),
        ("stop", |builder, call| builder.on_thread_stop(call)),
        ("end", |builder, call| builder.terminated(call)),
    ];
    for (name, place) in places {
        let (own, answers) = (Arc::new(OnceLock::<Handle>::new()), Log::new());
        let (handle, log) = (Arc::clone(&own), answers.clone());
        let call = move || {
            let handle = handle.get().expect("it is given");
            log.push([Duration::ZERO, Duration::MAX].map(|it| handle.await_termination(it)));
        };
        let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(1);
        let executor = place(builder, Box::new(call)).build().unwrap();
        let handle = executor.handle();
        own.set(executor.handle()).expect("it is given once");
        executor.execute(|| ()).unwrap();
        elsewhere(move || executor.close()).get().unwrap();
        assert!(handle.is_terminated());
        let [answer] = &answers.entries()[..] else { panic!("{name}: one call") };
        assert!(answer.iter().all(Result::is_err), "{name}: {answer:?}");
    }
}

/// A capture whose drop blocks.
struct DropsSlowly(Blocker);

impl Drop for DropsSlowly {
    fn drop(&mut self) {
        let mut block = self.0.body();
        block();
    }
}

/// The executor does not end while another thread drops the closure of a task that it cancels, however often one asks.
#[test]
fn the_end_waits_for_a_closure_that_another_thread_drops() {
    let (executor, blocker) = (ScheduledThreadPoolExecutor::new(1), Blocker::default());
    let capture = DropsSlowly(blocker.clone());
    let task = executor.schedule(HOUR, move || drop(capture)).unwrap();
    let cancelling = elsewhere(move || task.cancel());
    blocker.begun.wait_for(1);
    executor.shutdown();
    for _ in 0..100 {
        assert_eq!(executor.await_termination(ms(1)), Ok(false), "the capture is alive");
    }
    blocker.gate.add();
    assert!(cancelling.get());
    assert_eq!(executor.await_termination(LONG), Ok(true));
    assert_terminated(&executor);
}
