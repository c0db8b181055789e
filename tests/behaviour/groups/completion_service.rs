//! Futures in the order in which their tasks end: which taker gets which, which taker is woken, and
//! what a dropped service leaves behind.

use std::{
    collections::HashSet,
    future::Future,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

use punctual::{
    CancelReason, CancellationToken, ExecutorCompletionService, LimitReached, RejectionReason,
    ScheduledFuture, ScheduledThreadPoolExecutor, TaskError, TaskState, current_task,
};

use crate::{
    support::awaiting::{Wakes, block_on},
    support::{
        Counter, Drops, LONG, assert_cancelled, elsewhere, eventually, in_time, manual, ms, receive,
    },
    support::{Outcome, throw},
};

type Wait = fn(&ExecutorCompletionService<i32>) -> Option<ScheduledFuture<i32>>;

fn value(future: Option<ScheduledFuture<i32>>) -> i32 {
    let future = future.expect("something has ended");
    assert!(future.is_done());
    future.join().unwrap()
}

/// IV-022: a submitted task that is taken is done, has its value, and is the same task.
#[test]
fn a_submitted_task_is_taken() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let service = ExecutorCompletionService::new(&executor);
    for _ in 0..2 {
        let id = service.submit(|| 7).unwrap();
        assert_eq!(service.len(), 1);
        let future = service.take().unwrap().unwrap();
        assert_eq!((future.id(), future.state()), (id, TaskState::Completed));
        assert_eq!(future.join().unwrap(), 7);
        assert!(service.is_empty() && service.take().unwrap().is_none());
    }
}

/// IV-023: a poll finds nothing before a task has ended, not even a poll that waits; afterwards it
/// finds the task, once.
#[test]
fn a_poll_finds_only_tasks_that_have_ended() {
    let (clock, executor) = manual(1);
    let service = ExecutorCompletionService::new(&executor);
    service.push(executor.schedule(ms(20), || 7).unwrap());
    assert!(service.poll().is_none());
    assert!(service.take_within(Duration::ZERO).ok().flatten().is_none());
    let service = Arc::new(service);
    let (waiting, end) = (Arc::clone(&service), clock.now() + ms(12));
    let call = elsewhere(move || waiting.take_within(ms(12)).ok().flatten().is_none());
    eventually("the call waits", || clock.next_deadline() == Some(ms(12)));
    clock.run_for(ms(12));
    assert!(call.get() && clock.now() == end);
    clock.run_for(ms(8));
    assert_eq!(value(service.poll()), 7);
    assert!(service.poll().is_none() && service.take_within(LONG).ok().flatten().is_none());
}

/// A wait with a limit, or with a token, returns when a task ends, if that is first.
#[test]
fn a_wait_with_an_end_is_ended_by_a_task() {
    let waits: [Wait; 3] = [
        |service| service.take().unwrap(),
        |service| service.take_within(LONG).ok().flatten(),
        |service| service.take_within(CancellationToken::new()).expect("not raised"),
    ];
    for wait in waits {
        let (clock, executor) = manual(1);
        let service = Arc::new(ExecutorCompletionService::new(&executor));
        service.push(executor.schedule(ms(10), || 7).unwrap());
        let waiting = Arc::clone(&service);
        let call = elsewhere(move || value(wait(&waiting)));
        clock.run_for(ms(10));
        assert_eq!(call.get(), 7);
    }
}

/// A raised token ends a wait, but only after ended tasks have been returned.
#[test]
fn a_token_ends_a_wait() {
    let (clock, executor) = manual(1);
    let service = Arc::new(ExecutorCompletionService::new(&executor));
    service.submit(|| 7).unwrap();
    service.push(executor.schedule(Duration::MAX, || 8).unwrap());
    clock.run_until_idle();
    let token = CancellationToken::new();
    let (waiting, raised) = (Arc::clone(&service), token.clone());
    assert_eq!(value(service.take_within(&token).unwrap()), 7);
    let call = elsewhere(move || waiting.take_within(&token).is_err());
    raised.cancel();
    assert!(call.get());
    assert_eq!(service.take_within(&raised).unwrap_err(), LimitReached::Cancelled);
    service.submit(|| 9).unwrap();
    clock.run_until_idle();
    assert_eq!(value(service.take_within(&raised).unwrap()), 9);
    assert_eq!(service.len(), 1);
}

/// IV-024: values and failures come out alike, as many as were submitted, and then nothing.
#[test]
fn failures_come_out_like_values() {
    let executor = ScheduledThreadPoolExecutor::new(2);
    let service = ExecutorCompletionService::new(&executor);
    let (mut values, mut failures) = (0, 0);
    for _ in 0..2 {
        service.submit(|| 1).unwrap();
        service.submit(|| throw(2)).unwrap();
        service.submit(|| throw(3)).unwrap();
    }
    while let Some(future) = service.take().unwrap() {
        match Outcome::from(future.join()) {
            Outcome::Value(1) => values += 1,
            Outcome::Panicked(2 | 3) => failures += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((values, failures), (2, 4));
    assert!(service.poll().is_none() && service.is_empty());
}

/// IV-025: a service yields all results of several solvers; or the first success, and the others
/// are cancelled.
#[test]
fn solvers_are_all_heard_or_the_first() {
    let (clock, executor) = manual(1);
    let solve = || {
        let service = ExecutorCompletionService::new(&executor);
        for (delay, answer) in [(50, None), (30, Some(3)), (10, None), (20, Some(2)), (40, Some(1))]
        {
            service.push(executor.schedule(ms(delay), move || answer).unwrap());
        }
        service
    };
    let all = solve();
    clock.run_for(ms(50));
    let answers = || all.poll().map(|future| future.join().unwrap());
    let answers: Vec<_> = std::iter::from_fn(answers).flatten().collect();
    assert_eq!(answers, [2, 3, 1], "in the order in which they end");

    let first = solve();
    clock.run_for(ms(25));
    assert_eq!(first.poll().unwrap().join().unwrap(), None);
    assert_eq!(first.poll().unwrap().join().unwrap(), Some(2));
    assert_eq!((first.cancel_all(), first.len()), (3, 3));
    while let Some(future) = first.poll() {
        assert_cancelled(&future, CancelReason::Requested);
    }
    assert!(first.is_empty());
    assert_eq!(executor.pending_count(), 0);
}

/// IV-027: of many tasks on many workers each result is taken once, by one of several takers.
#[test]
fn every_result_is_taken_once() {
    let executor = ScheduledThreadPoolExecutor::new(10);
    for count in [1, 2, 4, 7].map(|factor| 2_000 * factor) {
        let service = Arc::new(ExecutorCompletionService::new(&executor));
        let taken = Arc::new(AtomicUsize::new(0));
        let takers = [0, 1, 2].map(|kind| {
            let (service, taken) = (Arc::clone(&service), Arc::clone(&taken));
            elsewhere(move || {
                let mut mine = Vec::new();
                while taken.load(Ordering::SeqCst) < count {
                    let future = match kind {
                        0 => service.take().unwrap(),
                        1 => service.take_within(LONG).ok().flatten(),
                        _ => block_on(service.next()),
                    };
                    // An empty service may be filled again.
                    let Some(future) = future else {
                        thread::yield_now();
                        continue;
                    };
                    taken.fetch_add(1, Ordering::SeqCst);
                    mine.push(future.join().unwrap());
                }
                mine
            })
        });
        for number in 0..count {
            service.submit(move || number).unwrap();
        }
        let results: Vec<_> = takers.into_iter().flat_map(|taker| taker.get()).collect();
        assert_eq!(results.len(), count);
        assert_eq!(results.into_iter().collect::<HashSet<_>>().len(), count);
    }
}

/// When the last future is taken, every other waiting thread learns that none is left.
#[test]
fn the_end_wakes_every_other_waiter() {
    let (clock, executor) = manual(1);
    let service = Arc::new(ExecutorCompletionService::new(&executor));
    service.push(executor.schedule(ms(10), || 7).unwrap());
    let calls = [0, 1, 2, 3].map(|kind| {
        let service = Arc::clone(&service);
        elsewhere(move || match kind {
            0 => block_on(service.next()).is_some(),
            1 => service.take_within(LONG).ok().flatten().is_some(),
            _ => service.take().unwrap().is_some(),
        })
    });
    clock.run_for(ms(10));
    let taken = calls.map(|call| call.get());
    assert_eq!(taken.into_iter().filter(|&is_some| is_some).count(), 1);
}

/// The news that no task is left is passed from one waiter to the next, also past one that leaves.
#[test]
fn the_end_is_passed_on() {
    let (clock, executor) = manual(1);
    let service = ExecutorCompletionService::new(&executor);
    service.push(executor.schedule(ms(10), || 7).unwrap());
    let wakes = [(); 4].map(|()| Wakes::new());
    let counts = || wakes.each_ref().map(|wakes| wakes.count());
    let mut calls = wakes.each_ref().map(|wakes| {
        let mut call = Box::pin(service.next());
        assert!(poll_next(call.as_mut(), wakes).is_pending());
        call
    });
    clock.run_for(ms(10));
    assert_eq!(counts(), [1, 0, 0, 0]);
    assert_eq!(value(service.poll()), 7);
    assert_eq!(counts(), [1, 1, 0, 0]);
    assert!(matches!(poll_next(calls[0].as_mut(), &wakes[0]), Poll::Ready(None)));
    assert_eq!(counts(), [1, 1, 1, 0]);
    drop(calls);
    assert_eq!(counts(), [1, 1, 1, 1]);
}

/// A future can be added whether its task has ended or not, and from any executor; it comes out
/// once.
#[test]
fn any_future_may_join() {
    let (clock, executor) = manual(1);
    let other = ScheduledThreadPoolExecutor::new(1);
    let service = ExecutorCompletionService::new(&executor);
    let ended = executor.submit(|| 1).unwrap();
    clock.run_until_idle();
    let taken = other.submit(|| 2).unwrap();
    taken.wait().unwrap();
    assert_eq!(taken.try_join().unwrap().unwrap(), 2);
    let ids = [&ended, &taken].map(|task| task.id());
    assert_eq!([service.push(ended), service.push(taken)], ids);
    let outcome = || Outcome::from(service.poll().unwrap().join());
    assert_eq!([outcome(), outcome()], [Outcome::Value(1), Outcome::Taken]);
    let tick = executor.schedule_at_fixed_rate(ms(10), ms(10), || ()).unwrap();
    let (ticks, handle) = (ExecutorCompletionService::new(&other), tick.task_handle());
    ticks.push(tick);
    clock.run_for(ms(30));
    assert!(ticks.poll().is_none());
    assert!(handle.cancel());
    assert!(ticks.poll().is_some_and(|tick| tick.is_cancelled()) && ticks.is_empty());
}

/// A task that a shutdown cancels comes out as cancelled, and a refused one is not added.
#[test]
fn a_shutdown_empties_a_service() {
    let (_clock, executor) = manual(1);
    let service = ExecutorCompletionService::new(&executor);
    service.push(executor.schedule(ms(10), || 7).unwrap());
    drop(executor.shutdown_now());
    assert!(
        matches!(service.submit(|| 8), Err(ref error) if matches!(error.reason(), RejectionReason::Shutdown))
    );
    assert_eq!(service.len(), 1);
    assert_cancelled(&service.take().unwrap().unwrap(), CancelReason::ShutdownNow);
    assert!(service.take().unwrap().is_none());
}

/// All tasks of a service are cancelled together; running ones are asked to stop if that is wanted,
/// and ended ones stay as they are.
#[test]
fn a_service_is_cancelled_as_one() {
    for signal in [false, true] {
        let executor = ScheduledThreadPoolExecutor::new(1);
        let service = ExecutorCompletionService::new(&executor);
        let (begun, gate) = (Counter::new(), Counter::new());
        let (begins, opened) = (begun.clone(), gate.clone());
        let (tell, told) = mpsc::channel();
        let ended = executor.submit(|| 1).unwrap();
        ended.wait().unwrap();
        service.push(ended);
        let body = move || {
            begins.add();
            opened.wait_for(1);
            tell.send(current_task().unwrap().token().is_cancelled()).unwrap();
            2
        };
        service.submit(body).unwrap();
        service.push(executor.schedule(LONG, || 3).unwrap());
        begun.wait_for(1);
        let cancelled = if signal { service.cancel_and_signal_all() } else { service.cancel_all() };
        gate.add();
        assert_eq!((cancelled, service.len()), (2, 3));
        assert_eq!(value(service.poll()), 1);
        for _ in 0..2 {
            assert_cancelled(&service.poll().unwrap(), CancelReason::Requested);
        }
        assert_eq!(receive(&told, "it goes on"), signal);
    }
}

/// Dropping a service detaches its tasks: they run, and results that were not taken are dropped, at
/// once or as soon as they exist.
#[test]
fn a_dropped_service_detaches() {
    let (clock, executor) = manual(1);
    let service = ExecutorCompletionService::new(&executor);
    let (results, captures) = (Drops::new(), Drops::new());
    for delay in [0, 10] {
        let (result, capture) = (results.token(), captures.token());
        let body = move || {
            drop(capture);
            result
        };
        service.push(executor.schedule(ms(delay), body).unwrap());
    }
    clock.run_until_idle();
    assert_eq!((results.count(), captures.count()), (0, 1));
    drop(service);
    assert_eq!((results.count(), captures.count()), (1, 1));
    clock.run_for(ms(10));
    assert_eq!((results.count(), captures.count()), (2, 2));
}

/// The service can be awaited to its end on a plain thread.
#[test]
fn a_service_can_be_awaited() {
    let executor = ScheduledThreadPoolExecutor::new(2);
    let service = ExecutorCompletionService::new(&executor);
    for number in 1..=10 {
        service.push(executor.schedule(ms(number % 3), move || number).unwrap());
    }
    let sum = block_on(async {
        let mut sum = 0;
        while let Some(future) = service.next().await {
            sum += future.await?;
        }
        Ok::<_, TaskError>(sum)
    });
    assert_eq!(sum.unwrap(), 55);
}

fn poll_next<F: Future>(next: Pin<&mut F>, wakes: &Arc<Wakes>) -> Poll<F::Output> {
    let waker = Waker::from(Arc::clone(wakes));
    next.poll(&mut Context::from_waker(&waker))
}

/// The end of a task wakes one async waiter, the one that came first, through the waker of its last
/// poll; if that waiter is dropped instead of polled, the next is woken.
#[test]
fn a_wake_up_is_passed_on() {
    let (clock, executor) = manual(1);
    let service = ExecutorCompletionService::new(&executor);
    let wakes = [(); 4].map(|()| Wakes::new());
    let counts = || wakes.each_ref().map(|wakes| wakes.count());
    service.push(executor.schedule(ms(10), || 1).unwrap());
    service.push(executor.schedule(Duration::MAX, || 2).unwrap());
    let mut first = Box::pin(service.next());
    let mut second = pin!(service.next());
    let mut third = pin!(service.next());
    assert!(poll_next(first.as_mut(), &wakes[0]).is_pending());
    assert!(poll_next(second.as_mut(), &wakes[1]).is_pending());
    assert!(poll_next(third.as_mut(), &wakes[2]).is_pending());
    assert!(poll_next(first.as_mut(), &wakes[3]).is_pending());
    assert_eq!(Arc::strong_count(&wakes[0]), 1, "the waker of an earlier poll is let go of");

    clock.run_for(ms(10));
    assert_eq!(counts(), [0, 0, 0, 1]);
    drop(first);
    assert_eq!(counts(), [0, 1, 0, 1]);
    let Poll::Ready(taken) = poll_next(second.as_mut(), &wakes[1]) else { panic!("it has ended") };
    assert_eq!(value(taken), 1);
    assert_eq!(counts(), [0, 1, 0, 1]);

    assert_eq!(service.cancel_all(), 1);
    assert_eq!(counts(), [0, 1, 1, 1]);
    assert!(service.poll().is_some());
    assert!(matches!(poll_next(third.as_mut(), &wakes[2]), Poll::Ready(None)));
    assert!(wakes.iter().all(|wakes| Arc::strong_count(wakes) == 1));
}

/// Two calls of one async task share a waker; if one is dropped, the other is still woken.
#[test]
fn calls_that_share_a_waker_do_not_share_a_place() {
    let (clock, executor) = manual(1);
    let service = ExecutorCompletionService::new(&executor);
    let wakes = Wakes::new();
    service.push(executor.schedule(ms(10), || 7).unwrap());
    let (mut given_up, mut kept) = (Box::pin(service.next()), pin!(service.next()));
    assert!(poll_next(given_up.as_mut(), &wakes).is_pending());
    assert!(poll_next(kept.as_mut(), &wakes).is_pending());
    drop(given_up);
    assert_eq!(wakes.count(), 0);
    clock.run_for(ms(10));
    assert_eq!(wakes.count(), 1);
    assert!(matches!(poll_next(kept.as_mut(), &wakes), Poll::Ready(Some(_))));
}

/// A taker whose limit is reached just as it is woken passes the wake-up on to the taker that waits
/// without a limit.
#[test]
fn no_wake_up_is_lost_with_a_taker_that_leaves() {
    in_time("the rounds", || {
        let executor = ScheduledThreadPoolExecutor::new(1);
        let service = Arc::new(ExecutorCompletionService::new(&executor));
        let (begin, begun) = mpsc::channel::<()>();
        let patient = Arc::clone(&service);
        let taker = elsewhere(move || {
            let take = |()| patient.take().unwrap().is_some();
            begun.into_iter().filter(|&round| take(round)).count()
        });
        let mut taken = 0;
        for round in 0..500 {
            service.push(executor.schedule(Duration::from_micros(20 + round % 40), || ()).unwrap());
            begin.send(()).unwrap();
            let hasty = service.take_within(Duration::from_micros(20 + round % 50)).ok().flatten();
            taken += usize::from(hasty.is_some());
            eventually("it is taken", || service.is_empty());
        }
        drop(begin);
        assert_eq!(taken + taker.get(), 500);
    });
}
