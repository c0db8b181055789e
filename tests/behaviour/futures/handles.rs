//! The handles of a task: the future, which can be shared, waited for with a token, and
//! outlives its executor; and the handle and the guard, which cancel.

use std::{
    cell::Cell, error::Error, marker::PhantomPinned, panic, task::Poll, thread, time::Duration,
};

use punctual::{
    Builder, CancelReason, CancellationToken, Cancelled, Clock, ConfigError, DelayQueue,
    DrainedTask, Failure, Handle, ManualClock, MissedRuns, RejectedExecutionError, RejectionReason,
    ScheduledFuture, ScheduledThreadPoolExecutor, TaskBuilder, TaskContext, TaskError, TaskHandle,
    TaskId, TaskState, Termination, WaitForCancellation, WouldDeadlock, current_task,
    delay_queue::{self, ExpirationStream, Key, NextExpired},
};

use crate::{
    support::awaiting::{Wakes, poll},
    support::{Counter, LONG, Log, manual, ms},
};

/// A result that is `Send`, but neither `Sync` nor `Unpin`.
struct Lonely(#[allow(dead_code)] Cell<i32>, #[allow(dead_code)] PhantomPinned);

/// All public types can be sent, shared and unpinned, whatever the result of the task is.
const _: fn() = || {
    fn shared<T: Send + Sync + Unpin + 'static>() {}
    fn error<E: Error + Send + Sync + Unpin + 'static>() {}
    shared::<(ScheduledFuture<Lonely>, TaskHandle)>();
    shared::<(ScheduledThreadPoolExecutor, Handle, Builder)>();
    shared::<(TaskBuilder<'static>, DrainedTask, RejectionReason)>();
    shared::<(Clock, ManualClock, CancellationToken, TaskContext)>();
    shared::<(Termination, WaitForCancellation)>();
    shared::<(TaskId, TaskState, MissedRuns, CancelReason, Failure)>();
    shared::<(DelayQueue<i32>, Key)>();
    shared::<(NextExpired<'static, i32>, ExpirationStream<'static, i32>, delay_queue::Iter<i32>)>();
    error::<TaskError>();
    error::<RejectedExecutionError>();
    error::<ConfigError>();
    error::<WouldDeadlock>();
    error::<Cancelled>();
};

/// Waiting threads and an awaiting task are all released, and the value is still there.
#[test]
fn several_threads_can_wait_for_one_task() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let (gate, wakes) = (Counter::new(), Wakes::new());
    let opened = gate.clone();
    let future = executor.submit(move || {
        opened.wait_for(1);
        7
    });
    let mut future = future.expect("the executor is open");
    assert!(poll(&mut future, &wakes).is_pending());
    thread::scope(|scope| {
        let waiters = [(); 4].map(|()| scope.spawn(|| future.wait()));
        gate.add();
        for waiter in waiters {
            assert!(waiter.join().expect("no panic").is_ok());
        }
    });
    assert!(future.wait().is_ok());
    assert!(matches!(future.join_within(LONG), Some(Ok(7))));
    executor.close().expect("this is no worker");
    assert_eq!(wakes.count(), 1);
}

/// Raising a token releases every thread that joins with it, and does not affect the tasks.
#[test]
fn one_token_releases_every_join_that_uses_it() {
    let (clock, executor) = manual(1);
    let token = CancellationToken::new();
    let futures = [7, 8].map(|value| {
        let future = executor.schedule(ms(10), move || value);
        future.expect("the executor is open")
    });
    thread::scope(|scope| {
        let (futures, token) = (&futures, &token);
        let joiners = [0, 0, 1, 1]
            .map(|index: usize| scope.spawn(move || futures[index].join_within(token).is_none()));
        token.cancel();
        for joiner in joiners {
            assert!(joiner.join().expect("no panic"));
        }
    });
    assert!(!futures.iter().any(|future| future.is_done()));
    clock.run_for(ms(10));
    let values = futures.map(|future| future.join().expect("it has run"));
    assert_eq!(values, [7, 8]);
}

/// A task that joins another with its own token gives up when `shutdown_now` is called on the
/// executor.
#[test]
fn a_task_that_joins_with_its_own_token_can_be_stopped() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let begun = Counter::new();
    let never = executor.schedule(Duration::MAX, || ()).expect("the executor is open");
    let begins = begun.clone();
    let joiner = executor.submit(move || {
        let token = current_task().expect("inside a task").token();
        begins.add();
        never.join_within(&token).is_none()
    });
    begun.wait_for(1);
    let drained: Vec<_> = executor.shutdown_now().collect();
    let gave_up = joiner.expect("the executor is open").join_within(LONG);
    assert!(matches!(gave_up, Some(Ok(true))));
    assert_eq!(drained.len(), 1);
}

/// All cancel handles of a task are equivalent: they outlive the future, any of them can cancel,
/// once, and dropping one has no effect.
#[test]
fn task_handles_of_a_task_are_one() {
    let (_clock, executor) = manual(1);
    let future = executor.task().name("report").schedule(ms(10), || ());
    let future = future.expect("the executor is open");
    let handles = [future.task_handle(), future.task_handle().clone()];
    drop(future.task_handle());
    for handle in &handles {
        assert_eq!((handle.id(), handle.name()), (future.id(), future.name()));
        assert_eq!(handle.state(), TaskState::Scheduled);
        assert!(!handle.is_done() && !handle.is_cancelled());
    }
    drop(future);
    assert_eq!(executor.pending_count(), 1);
    assert!(handles[1].cancel());
    assert!(!handles[0].cancel() && !handles[0].cancel_and_signal());
    assert!(handles.iter().all(|handle| handle.is_done() && handle.is_cancelled()));
    assert_eq!(executor.pending_count(), 0);
}

/// Dropping the future of a running task cancels the task only if that was asked for, and raises
/// its token only if that was asked for too.
#[test]
fn letting_go_of_a_running_task_cancels_and_signals_only_if_asked() {
    type LetGo = fn(ScheduledFuture<()>);
    let ways: [(LetGo, TaskState, bool); 5] = [
        (|it| drop(it), TaskState::Running, false),
        (|it| drop(it.cancel_on_drop().detach()), TaskState::Running, false),
        (|it| drop(it.cancel_on_drop()), TaskState::Cancelled, false),
        (|it| assert!(it.task_handle().cancel()), TaskState::Cancelled, false),
        (|it| assert!(it.task_handle().cancel_and_signal()), TaskState::Cancelled, true),
    ];
    for (let_go, state, signalled) in ways {
        let executor = ScheduledThreadPoolExecutor::new(1);
        let (begun, gate, raised) = (Counter::new(), Counter::new(), Log::new());
        let (begins, opened, sees) = (begun.clone(), gate.clone(), raised.clone());
        let future = executor.submit(move || {
            begins.add();
            opened.wait_for(1);
            sees.push(current_task().expect("inside a task").token().is_cancelled());
        });
        let future = future.expect("the executor is open");
        let handle = future.task_handle();
        begun.wait_for(1);
        let_go(future);
        assert_eq!(handle.state(), state);
        gate.add();
        executor.close().expect("this is no worker");
        assert_eq!(raised.entries(), [signalled]);
    }
}

/// A guard does everything that its future does, and cancels when a panic drops it.
#[test]
fn a_guard_cancels_when_it_is_unwound() {
    let (clock, executor) = manual(1);
    let done = executor.submit(|| 7).expect("the executor is open").cancel_on_drop();
    let waiting = executor.schedule(ms(10), || 8).expect("the executor is open");
    let handle = waiting.task_handle();
    let guard = waiting.cancel_on_drop();
    clock.run_until_idle();
    let unwound = thread::spawn(move || {
        let _guard = guard;
        panic::resume_unwind(Box::new("takes the guard along"));
    });
    assert!(unwound.join().is_err());
    assert!(handle.is_cancelled());
    assert_eq!(executor.pending_count(), 0);
    assert!(matches!(done.try_join(), Some(Ok(7))));
    let handle = done.task_handle();
    drop(done);
    assert_eq!(handle.state(), TaskState::Completed);
}

/// A future that outlives its executor is woken when its task ends, and returns the outcome.
#[test]
fn a_future_outlives_its_executor() {
    let (clock, executor) = manual(1);
    let wakes = Wakes::new();
    let done = executor.submit(|| 7).expect("the executor is open");
    let mut waiting = executor.schedule(ms(10), || 8).expect("the executor is open");
    let handle = waiting.task_handle();
    assert!(poll(&mut waiting, &wakes).is_pending());
    clock.run_until_idle();
    drop(executor);
    assert_eq!(wakes.count(), 1);
    assert_eq!(waiting.delay(), None);
    assert!(!waiting.cancel() && !handle.cancel_and_signal());
    for _ in 0..2 {
        let outcome = poll(&mut waiting, &wakes);
        let dropped = TaskError::Cancelled(CancelReason::ExecutorDropped).to_string();
        assert!(matches!(outcome, Poll::Ready(Err(error)) if error.to_string() == dropped));
    }
    assert!(matches!(done.join(), Ok(7)));
}
