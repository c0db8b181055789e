//! Self-reference: tasks, drops and wakers that call back into the executor they belong to.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Receiver, Sender},
    },
    task::{Wake, Waker},
    time::{Duration, Instant},
};

use punctual::{
    CancelReason, CancellationToken, Handle, ScheduledFuture, ScheduledThreadPoolExecutor,
    TaskError, TaskHandle, TaskState,
};

use crate::support::{Counter, Drops, LONG, hold, in_time, manual, ms, poll, receive, worker_of};

/// A channel through which a running task receives a value.
fn passage<T>() -> (Sender<T>, impl FnOnce() -> T + Send)
where
    T: Send + 'static,
{
    let (give, take): (_, Receiver<T>) = mpsc::channel();
    (give, move || receive(&take, "it is given"))
}

/// F13: a one-shot task that cancels itself is cancelled at once, its body runs to its end, and its
/// value is dropped.
#[test]
fn a_one_shot_task_can_cancel_itself() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let drops = Drops::new();
    let (token, reached_end) = (drops.token(), Counter::new());
    let (give, own_handle) = passage::<TaskHandle>();
    let end = reached_end.clone();
    let future = executor.submit(move || {
        let handle = own_handle();
        let seen = (handle.cancel(), handle.state(), handle.cancel());
        end.add();
        (token, seen).1
    });
    let future = future.expect("accepted");
    give.send(future.task_handle()).expect("it runs");
    reached_end.wait_for(1);
    worker_of(&executor);
    assert_eq!(drops.count(), 1);
    let error = future.try_join().expect("ended").expect_err("cancelled");
    assert!(matches!(error, TaskError::Cancelled(CancelReason::Requested)));
}

/// F13: a task that cancels itself sees that it is cancelled, and can do it only once.
#[test]
fn a_task_that_cancels_itself_sees_it_at_once() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let (give, own_handle) = passage::<TaskHandle>();
    let (tell, told) = mpsc::channel();
    let future = executor.submit(move || {
        let handle = own_handle();
        let seen = (handle.cancel(), handle.state(), handle.cancel());
        tell.send(seen).expect("the test waits");
    });
    let future = future.expect("accepted");
    give.send(future.task_handle()).expect("it runs");
    let seen = receive(&told, "it runs");
    assert_eq!(seen, (true, TaskState::Cancelled, false));
}

/// F13, F17: a task that has cancelled itself has ended, so it may wait for its own end.
#[test]
fn a_task_that_has_cancelled_itself_waits_for_nothing() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let (give, own_future) = passage::<ScheduledFuture<()>>();
    let (tell, told) = mpsc::channel();
    let future = executor.submit(move || {
        let own = own_future();
        tell.send((own.wait(), own.cancel(), own.wait())).expect("the test waits");
    });
    give.send(future.expect("accepted")).expect("it runs");
    let seen = receive(&told, "it runs");
    assert!(matches!(seen, (Err(TaskError::WouldDeadlock), true, Ok(()))), "{seen:?}");
}

/// F13, CA-019: a periodic task that cancels itself is not run again.
#[test]
fn a_periodic_task_can_cancel_itself() {
    let (clock, executor) = manual(1);
    let (give, own_handle) = mpsc::channel::<TaskHandle>();
    let runs = Counter::new();
    let count = runs.clone();
    let future = executor
        .schedule_at_fixed_rate(ms(1), ms(1), move || {
            count.add();
            if count.get() == 3 {
                assert!(own_handle.try_recv().expect("it is given").cancel());
            }
        })
        .expect("accepted");
    give.send(future.task_handle()).expect("it waits");
    in_time("run", move || clock.run_for(ms(9)));
    assert_eq!(runs.get(), 3);
    assert!(future.is_cancelled());
    assert_eq!(executor.pending_count(), 0);
}

/// An action that one of an executor's own tasks performs on it.
type Act = Box<dyn FnOnce(ScheduledThreadPoolExecutor) + Send>;

/// A place in the life of a task where the action can be performed. The task waits for the gate
/// first.
type Place = fn(ScheduledThreadPoolExecutor, Counter, Act) -> ScheduledFuture<i32>;

const PLACES: [(&str, Place); 3] =
    [("body", in_body), ("capture drop", in_capture_drop), ("waker", in_waker)];

fn in_body(executor: ScheduledThreadPoolExecutor, gate: Counter, act: Act) -> ScheduledFuture<i32> {
    let body = move |executor| {
        gate.wait_for(1);
        act(executor);
        7
    };
    let handle = executor.handle();
    handle.submit(move || body(executor)).expect("accepted")
}

fn in_capture_drop(
    executor: ScheduledThreadPoolExecutor,
    gate: Counter,
    act: Act,
) -> ScheduledFuture<i32> {
    let handle = executor.handle();
    let capture = Late::new(executor, act);
    let future = handle.submit(move || {
        hold(&capture);
        gate.wait_for(1);
        7
    });
    future.expect("accepted")
}

fn in_waker(
    executor: ScheduledThreadPoolExecutor,
    gate: Counter,
    act: Act,
) -> ScheduledFuture<i32> {
    let future = executor.submit(move || {
        gate.wait_for(1);
        7
    });
    let mut future = future.expect("accepted");
    let waker = Waker::from(Arc::new(Late::new(executor, act)));
    assert!(poll(&mut future, &waker).is_pending());
    future
}

/// Acts once: when it is woken, or else when it is dropped.
struct Late(Mutex<Option<(ScheduledThreadPoolExecutor, Act)>>);

impl Late {
    fn new(executor: ScheduledThreadPoolExecutor, act: Act) -> Self {
        Self(Mutex::new(Some((executor, act))))
    }

    fn act(&self) {
        let taken = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((executor, act)) = taken {
            act(executor);
        }
    }
}

impl Wake for Late {
    fn wake(self: Arc<Self>) {
        self.act();
    }
}

impl Drop for Late {
    fn drop(&mut self) {
        self.act();
    }
}

/// Ends an executor with one worker from inside one of its tasks, which runs to its end; returns
/// the outcome of the task behind it.
fn end_from_inside(where_from: &str, place: Place, act: Act) -> Result<i32, TaskError> {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let (handle, gate) = (executor.handle(), Counter::new());
    let first = place(executor, gate.clone(), act);
    let second = handle.submit(|| 8).expect("accepted");
    gate.add();
    let outcomes = [first, second].map(|future| future.join_within(LONG).expect("it ends"));
    assert!(matches!(handle.await_termination(LONG), Ok(true)));
    assert!(handle.submit(|| 9).is_err());
    let [first, second] = outcomes;
    assert!(matches!(first, Ok(7)), "{where_from}: {first:?}");
    second
}

/// Ends it from each place, in a way that lets due tasks run.
fn end_gently_from_inside(act: impl Fn(ScheduledThreadPoolExecutor) + Clone + Send + 'static) {
    for (where_from, place) in PLACES {
        let second = end_from_inside(where_from, place, Box::new(act.clone()));
        assert!(matches!(second, Ok(8)), "{where_from}: {second:?}");
    }
}

/// F14: a task can shut its executor down; both run to their ends.
#[test]
fn a_task_can_shut_its_executor_down() {
    end_gently_from_inside(ScheduledThreadPoolExecutor::close_background);
}

/// F14: a task can call `shutdown_now` on its executor; the task runs to its end, and the others do
/// not run.
#[test]
fn a_task_can_shut_its_executor_down_now() {
    for (where_from, place) in PLACES {
        let act = |executor: ScheduledThreadPoolExecutor| drop(executor.shutdown_now());
        let second = end_from_inside(where_from, place, Box::new(act));
        assert!(
            matches!(second, Err(TaskError::Cancelled(CancelReason::ShutdownNow))),
            "{where_from}: {second:?}"
        );
    }
}

/// F16: one of the executor's own tasks can drop it; due tasks still run.
#[test]
fn a_task_can_drop_its_executor() {
    end_gently_from_inside(drop);
}

/// F15, AT-021: a task that waits for the termination of its own executor, in whichever way, gets
/// an error at once.
#[test]
fn a_task_cannot_wait_for_its_own_executor() {
    let (tell, told) = mpsc::channel();
    end_gently_from_inside(move |executor| {
        let waits = [ms(1), LONG, Duration::MAX];
        let waited = waits.map(|timeout| executor.await_termination(timeout).is_err());
        tell.send((waited, executor.close().is_err())).expect("the test waits");
    });
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [([true; 3], true); 3]);
}

/// F15: a task that closes its own executor gets an error at once, if the executor was not told to
/// do otherwise.
#[test]
fn a_task_cannot_close_its_own_executor_unless() {
    let (tell, told) = mpsc::channel();
    end_gently_from_inside(move |executor| {
        let closed = executor.close_within(CancellationToken::new());
        tell.send(closed.is_err()).expect("the test waits");
    });
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [true; 3]);
}

/// F18: tasks, captures and wakers can schedule, and read everything that can be read.
#[test]
fn scheduling_is_possible_from_inside() {
    let done = Counter::new();
    let count = done.clone();
    end_gently_from_inside(move |executor| {
        let count = count.clone();
        executor.execute(move || count.add()).expect("accepted");
        assert!(format!("{executor:?}").contains("pending"));
        executor.close_background();
    });
    assert_eq!(done.get(), 3);
}

/// F19: an executor that a task of its own captures is dropped when that task is cancelled.
#[test]
fn cancelling_breaks_a_cycle() {
    assert_cycle_breaks("cancelled", |_, future| assert!(future.cancel()));
}

/// F19: an executor that a task of its own captures is dropped when it is shut down.
#[test]
fn a_shutdown_breaks_a_cycle() {
    assert_cycle_breaks("shut down", |handle, _| handle.shutdown());
}

/// F19: an executor that a task of its own captures is dropped when `shutdown_now` is called.
#[test]
fn a_shutdown_now_breaks_a_cycle() {
    assert_cycle_breaks("shut down now", |handle, _| drop(handle.shutdown_now()));
}

/// Breaks the cycle of an executor and a periodic task that owns it, from outside.
fn assert_cycle_breaks(how: &str, act: fn(&Handle, &ScheduledFuture<()>)) {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let (handle, drops) = (executor.handle(), Drops::new());
    let captures = (executor, drops.token());
    let beat = handle.schedule_at_fixed_rate(LONG, LONG, move || hold(&captures));
    let beat = beat.expect("accepted");
    let (inside, beat) = (handle.clone(), Arc::new(beat));
    let future = Arc::clone(&beat);
    in_time(how, move || act(&inside, &future));
    assert!(matches!(handle.await_termination(LONG), Ok(true)));
    assert!(beat.is_cancelled());
    assert_eq!(drops.count(), 1);
}

/// F15: a capture that waits for the executor that is dropping it, on whichever thread, gets an
/// error and does not hang.
#[test]
fn a_capture_can_wait_for_the_executor_that_drops_it() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    executor.set_executes_existing_delayed_tasks_after_shutdown(false);
    let (handle, waited) = (executor.handle(), Counter::new());
    let count = waited.clone();
    let act = Box::new(move |executor: ScheduledThreadPoolExecutor| {
        let _ = executor.await_termination(Duration::MAX);
        count.add();
        executor.close_background();
    });
    let capture = Late::new(executor, act);
    let future = handle.schedule(LONG, move || hold(&capture));
    drop(future.expect("accepted"));
    in_time("shut down", move || handle.shutdown());
    assert_eq!(waited.get(), 1);
}

/// F17: a task that joins itself gets an error at once, however many workers there are.
#[test]
fn a_task_cannot_join_itself() {
    for workers in [1, 3] {
        let executor = ScheduledThreadPoolExecutor::new(workers);
        let (give, own_future) = passage::<ScheduledFuture<()>>();
        let (tell, told) = mpsc::channel();
        let future = executor.submit(move || {
            let future = own_future();
            let waited = future.wait();
            tell.send([waited, future.join()]).expect("the test waits");
        });
        let sent = give.send(future.expect("accepted"));
        sent.expect("it runs");
        for answer in receive(&told, "it does not hang") {
            assert!(matches!(answer, Err(TaskError::WouldDeadlock)), "{answer:?}");
        }
        worker_of(&executor);
    }
}

/// F17, G19: of two tasks on two workers that join each other one is refused, and the other gets
/// that one's value.
#[test]
fn two_tasks_cannot_join_each_other() {
    let executor = ScheduledThreadPoolExecutor::new(2);
    let (tell, told) = mpsc::channel();
    let (give_a, other_of_a) = passage::<ScheduledFuture<()>>();
    let (give_b, other_of_b) = passage::<ScheduledFuture<()>>();
    let tell_b = tell.clone();
    let a = executor.submit(move || tell.send(other_of_a().join()).expect("the test waits"));
    let b = executor.submit(move || tell_b.send(other_of_b().join()).expect("the test waits"));
    give_a.send(b.expect("accepted")).expect("it runs");
    give_b.send(a.expect("accepted")).expect("it runs");
    let answers = [(); 2].map(|()| receive(&told, "it does not hang"));
    assert!(matches!(answers, [Err(TaskError::WouldDeadlock), Ok(())]), "{answers:?}");
}

/// The outcome for a task that submits another one to its own executor and joins it.
fn join_inside(workers: usize) -> (Result<i32, TaskError>, Counter) {
    let executor = ScheduledThreadPoolExecutor::new(workers);
    let (handle, inner_ran) = (executor.handle(), Counter::new());
    let ran = inner_ran.clone();
    let outer = executor.submit(move || {
        let inner = handle.submit(move || {
            ran.add();
            7
        });
        inner.expect("accepted").join()
    });
    let answer = outer.expect("accepted").join_within(LONG);
    let answer = answer.expect("it does not hang").expect("no panic");
    (answer, inner_ran)
}

/// F17: the only worker cannot wait for a task that is queued behind it; the task runs later.
#[test]
fn the_only_worker_cannot_join_a_queued_task() {
    let (answer, inner_ran) = join_inside(1);
    assert!(matches!(answer, Err(TaskError::WouldDeadlock)), "{answer:?}");
    inner_ran.wait_for(1);
}

/// F17: a worker can wait for a queued task while another worker is free.
#[test]
fn a_worker_can_join_if_another_is_free() {
    let (answer, _) = join_inside(2);
    assert!(matches!(answer, Ok(7)), "{answer:?}");
}

/// F17: a worker can wait for a queued task while another worker is busy with a task that ends.
#[test]
fn a_worker_can_join_if_another_is_only_busy() {
    let executor = ScheduledThreadPoolExecutor::new(2);
    let (gate, busy, joins) = (Counter::new(), Counter::new(), Counter::new());
    let (opened, is_busy) = (gate.clone(), busy.clone());
    let body = move || {
        is_busy.add();
        opened.wait_for(1);
    };
    executor.execute(body).expect("accepted");
    busy.wait_for(1);
    let (handle, about_to_join) = (executor.handle(), joins.clone());
    let outer = executor.submit(move || {
        let inner = handle.submit(|| 7).expect("accepted");
        about_to_join.add();
        inner.join()
    });
    joins.wait_for(1);
    gate.add();
    let answer = outer.expect("accepted").join_within(LONG);
    assert!(matches!(answer, Some(Ok(Ok(7)))), "{answer:?}");
}

/// F17: the only worker can join a task that has ended, however it has.
#[test]
fn the_only_worker_can_join_a_task_that_has_ended() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let completed = executor.submit(|| 7).expect("accepted");
    let cancelled = executor.schedule(LONG, || 8).expect("accepted");
    assert!(cancelled.cancel());
    let outer = executor.submit(move || (completed.join(), cancelled.join()));
    let answers = outer.expect("accepted").join_within(LONG);
    assert!(
        matches!(answers, Some(Ok((Ok(7), Err(TaskError::Cancelled(CancelReason::Requested)))))),
        "{answers:?}"
    );
}

/// F17: a worker can join a task of another executor, whose only worker is free.
#[test]
fn a_worker_can_join_a_task_of_another_executor() {
    let (executor, other) =
        (ScheduledThreadPoolExecutor::new(1), ScheduledThreadPoolExecutor::new(1));
    let inner = other.submit(|| 7).expect("accepted");
    let outer = executor.submit(move || inner.join()).expect("accepted");
    let answer = outer.join_within(LONG);
    assert!(matches!(answer, Some(Ok(Ok(7)))), "{answer:?}");
}

/// F17: a join that ends by itself, by its limit or its token, is not refused to the only worker.
#[test]
fn the_only_worker_can_join_for_a_while() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let handle = executor.handle();
    let outer = executor.submit(move || {
        let inner = handle.submit(|| 7).expect("accepted");
        let start = Instant::now();
        let timed = inner.join_within(ms(2));
        let waited = start.elapsed();
        let token = CancellationToken::new();
        token.cancel();
        (timed, waited, inner.join_within(&token), inner)
    });
    let outer = outer.expect("accepted").join_within(LONG);
    let (timed, waited, unless, inner) = outer.expect("it ends").expect("no panic");
    assert!(timed.is_none() && unless.is_none());
    assert!(waited >= ms(2), "{waited:?}");
    assert!(matches!(inner.join_within(LONG), Some(Ok(7))));
}
