//! Awaits the termination of an executor, and the raise of a token: which waker is woken, how
//! often, and when it is dropped.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use punctual::{
    CancellationToken, Handle, ScheduledThreadPoolExecutor, Termination, WaitForCancellation,
    current_task,
};

use crate::{
    support::awaiting::{Wakes, block_on},
    support::{Counter, LONG, elsewhere, eventually, in_time, manual, manual_with, ms, receive},
};

/// Polls once, as a runtime would that is woken through `waker`.
fn poll<F: Future + Unpin>(future: &mut F, waker: &Arc<Wakes>) -> Poll<F::Output> {
    let waker = Waker::from(Arc::clone(waker));
    Pin::new(future).poll(&mut Context::from_waker(&waker))
}

/// How often each waker was woken, and how many references to it exist beside the test's.
fn state_of(wakes: &Arc<Wakes>) -> (usize, usize) {
    (wakes.count(), Arc::strong_count(wakes) - 1)
}

/// A future, and an action that ends its wait.
struct Scene<F> {
    future: Box<dyn Fn() -> F>,
    end: Box<dyn Fn()>,
}

/// The termination of an executor that still has a task.
fn termination() -> Scene<Termination> {
    let (clock, executor) = manual(1);
    executor.schedule(ms(5), || ()).expect("accepted");
    executor.shutdown();
    let handle = executor.handle();
    let end = move || {
        clock.advance(ms(5));
        assert_eq!(executor.await_termination(Duration::MAX), Ok(true));
    };
    Scene { future: Box::new(move || handle.termination()), end: Box::new(end) }
}

/// A token that belongs to no task.
fn own_token() -> Scene<WaitForCancellation> {
    let token = CancellationToken::new();
    let raises = token.clone();
    Scene { future: Box::new(move || token.cancelled()), end: Box::new(move || raises.cancel()) }
}

/// The token of a running task, which is raised alone or with its executor.
fn token_of_a_task(by_executor: bool) -> Scene<WaitForCancellation> {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let (tell, told) = std::sync::mpsc::channel();
    let task = executor.submit(move || {
        let token = current_task().expect("inside a task").token();
        tell.send(token.clone()).expect("the test waits");
        token.wait();
    });
    let token = receive(&told, "it runs");
    let task = task.expect("accepted");
    let end = move || {
        if by_executor {
            drop(executor.shutdown_now());
        } else {
            assert!(task.cancel_and_signal());
        }
    };
    Scene { future: Box::new(move || token.cancelled()), end: Box::new(end) }
}

/// Runs the test with each kind of future.
macro_rules! with_each {
    ($check:ident) => {{
        $check(termination());
        $check(own_token());
        $check(token_of_a_task(false));
        $check(token_of_a_task(true));
    }};
}

/// G24: the future is pending until the end, then its waker is woken once, and it stays ready.
#[test]
fn a_task_that_awaits_the_end_is_woken_once() {
    fn check<F: Future<Output = ()> + Unpin>(scene: Scene<F>) {
        let (mut future, wakes) = ((scene.future)(), Wakes::new());
        for _ in 0..10 {
            assert!(poll(&mut future, &wakes).is_pending());
        }
        let (woken, held) = state_of(&wakes);
        assert!(woken == 0 && (1..=2).contains(&held), "once for each list");
        (scene.end)();
        eventually("it is woken", || wakes.count() >= 1);
        for _ in 0..2 {
            assert!(poll(&mut future, &wakes).is_ready());
        }
        eventually("it is let go of", || state_of(&wakes) == (1, 0));
        assert!(poll(&mut (scene.future)(), &wakes).is_ready(), "at once");
        assert_eq!(state_of(&wakes), (1, 0));
    }
    with_each!(check);
}

/// F49: only the waker of the last poll is woken, and earlier wakers are dropped at once.
#[test]
fn the_last_waker_that_awaits_the_end_wins() {
    fn check<F: Future<Output = ()> + Unpin>(scene: Scene<F>) {
        let (mut future, first, last) = ((scene.future)(), Wakes::new(), Wakes::new());
        for wakes in [&first, &last, &first, &last] {
            assert!(poll(&mut future, wakes).is_pending());
        }
        assert_eq!(state_of(&first), (0, 0));
        (scene.end)();
        eventually("it is woken", || last.count() >= 1);
        assert_eq!((first.count(), last.count()), (0, 1));
    }
    with_each!(check);
}

/// F49: a future that is dropped drops its waker without waking it.
#[test]
fn a_dropped_wait_for_the_end_is_forgotten() {
    fn check<F: Future<Output = ()> + Unpin>(scene: Scene<F>) {
        let (mut future, wakes) = ((scene.future)(), Wakes::new());
        assert!(poll(&mut future, &wakes).is_pending());
        drop(future);
        assert_eq!(state_of(&wakes), (0, 0));
        (scene.end)();
        assert_eq!(wakes.count(), 0);
    }
    with_each!(check);
}

/// G24: several futures that one async task awaits share a waker: if one of them is dropped, the
/// others are woken all the same.
#[test]
fn each_that_one_task_awaits_is_woken() {
    fn check<F: Future<Output = ()> + Unpin>(scene: Scene<F>) {
        let wakes = Wakes::new();
        let mut futures = [(scene.future)(), (scene.future)(), (scene.future)()];
        for future in &mut futures {
            assert!(poll(future, &wakes).is_pending());
        }
        let [first, mut second, third] = futures;
        drop((first, third));
        (scene.end)();
        eventually("the one that is left is woken", || wakes.count() >= 1);
        assert!(poll(&mut second, &wakes).is_ready());
        eventually("it is let go of", || state_of(&wakes) == (1, 0));
    }
    with_each!(check);
}

/// An executor is stopped in async code, without blocking the thread: due tasks run, others are
/// cancelled, and after the wait it has terminated.
#[test]
fn an_executor_can_be_stopped_in_async_code() {
    let executor = ScheduledThreadPoolExecutor::new(2);
    let gate = Counter::new();
    let opened = gate.clone();
    let due = executor.submit(move || opened.wait_for(1)).expect("accepted");
    let later = executor.schedule(LONG, || ()).expect("accepted");
    let stopped = async move {
        let handle = executor.handle();
        executor.shutdown_background();
        let mut termination = handle.termination();
        let at_first =
            poll_fn(|context| Poll::Ready(Pin::new(&mut termination).poll(context).is_pending()));
        let is_pending = at_first.await;
        gate.add();
        termination.await;
        (is_pending, handle.is_terminated())
    };
    assert_eq!(block_on(stopped), (true, true));
    assert!(due.is_done() && later.is_cancelled());
}

/// The termination hook is called first, and tasks that await termination are woken afterwards.
#[test]
fn the_end_is_not_there_before_its_hook_has_returned() {
    let (inside, gate) = (Counter::new(), Counter::new());
    let (enters, opened) = (inside.clone(), gate.clone());
    let (_clock, executor) = manual_with(|builder| {
        builder.terminated(move || {
            enters.add();
            opened.wait_for(1);
        })
    });
    let (handle, wakes) = (executor.handle(), Wakes::new());
    let stopping = elsewhere(move || drop(executor));
    inside.wait_for(1);
    let mut termination = handle.termination();
    assert!(poll(&mut termination, &wakes).is_pending());
    gate.add();
    stopping.get();
    assert!(poll(&mut termination, &wakes).is_ready());
}

/// Like a handle, the future keeps no executor alive, and outlives it.
#[test]
fn the_future_of_the_end_keeps_nothing_alive() {
    fn of(handle: &Handle) -> Termination {
        handle.termination()
    }
    let executor = ScheduledThreadPoolExecutor::new(1);
    executor.execute(|| ()).expect("accepted");
    let [awaited, never_awaited] = [of(&executor), of(&executor)];
    assert!(format!("{awaited:?}").contains("state: Running"));
    in_time("drop", move || drop(executor));
    block_on(awaited);
    assert!(format!("{never_awaited:?}").contains("state: Terminated"));
    let token = CancellationToken::new();
    let shown = format!("{:?}", token.cancelled());
    assert!(shown.contains("is_cancelled: false"), "{shown}");
}

/// One of an executor's own tasks may poll the termination, and pass the future on to a task that
/// awaits it.
#[test]
fn a_task_may_pass_the_end_on() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let (handle, wakes) = (executor.handle(), Wakes::new());
    let looks = Arc::clone(&wakes);
    let task = executor.submit(move || {
        let mut end = handle.termination();
        assert!(poll(&mut end, &looks).is_pending());
        end
    });
    let mut end = task.expect("accepted").join().expect("it does not wait");
    executor.close().expect("this is no worker");
    eventually("who polled is woken", || wakes.count() == 1);
    assert!(poll(&mut end, &wakes).is_ready());
}

/// A termination that races the wait for it is not missed.
#[test]
fn no_end_is_missed() {
    for _ in 0..500 {
        let executor = ScheduledThreadPoolExecutor::new(2);
        let token = CancellationToken::new();
        let (raises, handle) = (token.clone(), executor.handle());
        executor.execute(move || raises.cancel()).expect("accepted");
        let awaits = elsewhere(move || {
            block_on(async move {
                token.cancelled().await;
                handle.termination().await;
            });
        });
        executor.shutdown_background();
        awaits.get();
    }
}
