//! Cases in which `invoke_all` and `invoke_any` cannot continue: refusals, panics, and waits
//! without end.

use std::{
    error::Error,
    iter,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use punctual::{
    CancelReason, CancellationToken, Handle, InvokeError, RejectedExecutionError, RejectionReason,
    ScheduledThreadPoolExecutor, TaskError,
};

use crate::{
    groups::invoke::{Body, DAY, Naps, Tried},
    support::throw,
    support::{LONG, elsewhere, eventually, in_time, manual, ms},
};

/// IV-002: if the iterator panics half-way, the submitted tasks are cancelled and asked to stop,
/// and the panic propagates.
#[test]
fn an_iterator_that_panics_leaves_nothing_running() {
    type Half<'a> = &'a mut dyn Iterator<Item = Body<Tried>>;
    let forms: [fn(&Handle, Half<'_>); 6] = [
        |handle, half| drop(handle.invoke_all(half)),
        |handle, half| drop(handle.invoke_all_within(half, LONG)),
        |handle, half| drop(handle.invoke_all_within(half, CancellationToken::new())),
        |handle, half| drop(handle.invoke_any(half)),
        |handle, half| drop(handle.invoke_any_within(half, LONG)),
        |handle, half| drop(handle.invoke_any_within(half, CancellationToken::new())),
    ];
    for form in forms {
        let executor = ScheduledThreadPoolExecutor::new(1);
        let (running, waiting) = (Naps::default(), Naps::default());
        let begun = running.begun.clone();
        let bodies = [&running, &waiting].map(|naps| naps.body(DAY, || Ok(1)));
        let mut half = bodies.into_iter().chain(iter::once_with(|| {
            begun.wait_for(1);
            throw(7)
        }));
        let panic = catch_unwind(AssertUnwindSafe(|| form(&executor, &mut half))).unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&7));
        running.signalled.wait_for(1);
        in_time("close", || executor.close()).unwrap();
        assert_eq!(waiting.begun.get(), 0);
    }
}

/// If a closure is not accepted, the tasks before it are cancelled and asked to stop.
#[test]
fn a_refusal_leaves_nothing_running() {
    for is_all in [true, false] {
        let executor = ScheduledThreadPoolExecutor::new(1);
        let (running, waiting) = (Naps::default(), Naps::default());
        let begun = running.begun.clone();
        let bodies = [&running, &waiting].map(|naps| naps.body(DAY, || Ok(1)));
        let bodies = bodies.into_iter().chain(iter::once_with(|| {
            begun.wait_for(1);
            executor.shutdown();
            waiting.body(DAY, || Tried::Ok(1))
        }));
        let error: Box<dyn Error> = match is_all {
            true => executor.invoke_all(bodies).unwrap_err().into(),
            false => executor.invoke_any(bodies).unwrap_err().into(),
        };
        assert_eq!(error.to_string(), RejectionReason::Shutdown.to_string());
        running.signalled.wait_for(1);
        in_time("close", || executor.close()).unwrap();
        assert_eq!(waiting.begun.get(), 0);
    }
}

fn is_shutdown(refused: &RejectedExecutionError) -> bool {
    matches!(refused.reason(), RejectionReason::Shutdown)
}

/// RJ-015: after a shutdown nothing is invoked, with a limit or without.
#[test]
fn after_a_shutdown_nothing_is_invoked() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    executor.shutdown();
    let all = || [|| 1, || 2];
    let any = || [|| Ok::<_, ()>(1), || Ok(2)];
    for refused in [executor.invoke_all(all()), executor.invoke_all_within(all(), LONG)] {
        let error = refused.expect_err("it was shut down");
        assert!(matches!(error, InvokeError::Rejected(it) if is_shutdown(&it)));
    }
    for refused in [executor.invoke_any(any()), executor.invoke_any_within(any(), LONG)] {
        let error = refused.expect_err("it was shut down");
        assert!(matches!(error, InvokeError::Rejected(it) if is_shutdown(&it)));
    }
    assert_eq!(executor.await_termination(LONG), Ok(true));
}

/// The only worker cannot wait for tasks that no other thread would run: the call is refused and
/// leaves nothing behind. With a limit, or a second worker, it is not refused.
#[test]
fn the_last_worker_does_not_wait() {
    type Call = fn(&Handle, &Naps) -> bool;
    let bodies = |naps: &Naps| [naps.body(Duration::ZERO, || Tried::Ok(1))];
    let refused: [Call; 2] = [
        |handle, naps| {
            let all = handle.invoke_all([naps.body(Duration::ZERO, || 1)]);
            matches!(all, Err(InvokeError::WouldDeadlock))
        },
        |handle, naps| {
            let any = handle.invoke_any([naps.body(Duration::ZERO, || Tried::Ok(1))]);
            matches!(any, Err(InvokeError::WouldDeadlock))
        },
    ];
    for call in refused {
        for (workers, expected) in [(1, true), (2, false)] {
            let executor = ScheduledThreadPoolExecutor::new(workers);
            let (handle, naps) = (executor.handle(), Naps::default());
            let inside = naps.clone();
            let task = executor.submit(move || call(&handle, &inside)).unwrap();
            assert_eq!(task.join_within(LONG).unwrap().unwrap(), expected);
            in_time("close", || executor.close()).unwrap();
            assert_eq!(naps.begun.get(), usize::from(!expected));
        }
    }
    let executor = ScheduledThreadPoolExecutor::new(1);
    let (handle, naps) = (executor.handle(), Naps::default());
    let timed = executor.submit(move || handle.invoke_any_within(bodies(&naps), ms(1))).unwrap();
    let timed = timed.join_within(LONG).unwrap().unwrap();
    assert!(matches!(timed, Err(InvokeError::TimedOut)));
}

/// A task that is cancelled from outside ends the wait like any other; `invoke_any` reports it if
/// all its tasks are lost.
#[test]
fn a_shutdown_ends_the_wait() {
    let (_clock, executor) = manual(1);
    let naps = Naps::default();
    let calls = [true, false].map(|is_all| {
        let (handle, bodies) = (executor.handle(), [naps.body(DAY, || Tried::Ok(1))]);
        elsewhere(move || match is_all {
            true => handle.invoke_all(bodies).is_ok_and(|all| all[0].state().is_done()),
            false => matches!(
                handle.invoke_any(bodies),
                Err(InvokeError::Task(TaskError::Cancelled(CancelReason::ShutdownNow))) | Ok(1)
            ),
        })
    });
    naps.begun.wait_for(1);
    eventually("both are submitted", || executor.pending_count() == 1);
    drop(executor.shutdown_now());
    calls.into_iter().for_each(|call| assert!(call.get()));
}

/// Each error says what has happened and what to do, and works with `?`, whatever error type the
/// tasks have.
#[test]
fn the_errors_speak_for_themselves() {
    let failed: InvokeError<String> = InvokeError::Failed("no answer".to_owned());
    assert_eq!(failed.to_string(), "every task failed; the last error: no answer");
    let error: Box<dyn Error + Send + Sync> = failed.into();
    assert!(error.source().is_none());
    let cancelled = TaskError::Cancelled(CancelReason::Requested);
    let cancelled: InvokeError<String> = InvokeError::Task(cancelled);
    assert!(cancelled.to_string().ends_with("the task was cancelled: cancellation was requested"));
    for error in [InvokeError::NoTasks, InvokeError::TimedOut, InvokeError::Interrupted] {
        let error: InvokeError<String> = error;
        assert!(error.to_string().contains("task"), "{error}");
    }
    let executor = ScheduledThreadPoolExecutor::new(1);
    executor.shutdown();
    let refused: InvokeError = executor.submit(|| 7).expect_err("it was shut down").into();
    assert_eq!(refused.to_string(), RejectionReason::Shutdown.to_string());
    assert!(InvokeError::<String>::WouldDeadlock.to_string().contains("use more workers"));
}
