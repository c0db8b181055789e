//! Awaits futures without a runtime, with hand-made wakers: which waker is woken, how often, and
//! when it is dropped.

use std::{
    error::Error,
    future::Future,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
};

use punctual::{ScheduledFuture, ScheduledThreadPoolExecutor, TaskError};

use crate::support::{
    Counter, LONG, Log, Outcome,
    awaiting::{Wakes, block_on, poll},
    eventually, manual, ms, throw,
};

/// Calls its closure when it is woken or dropped.
struct Call<F: Fn()>(F);

impl<F: Fn()> Drop for Call<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

impl<F: Fn()> Wake for Call<F> {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }
}

/// Futures can be awaited one after the other on a plain thread.
#[test]
fn awaiting_needs_no_runtime() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let product = block_on(async {
        let at_once = executor.submit(|| 6)?;
        let later = executor.schedule(ms(2), || 7)?;
        Ok::<_, Box<dyn Error>>(at_once.await? * later.await?)
    });
    assert_eq!(product.expect("both complete"), 42);
}

/// A guard is awaited like its future, and cancels its task if it is dropped while it waits.
#[test]
fn a_guard_can_be_awaited() {
    let (clock, executor) = manual(1);
    let at_once = executor.submit(|| 6).expect("the executor is open").cancel_on_drop();
    assert_eq!(block_on(at_once).expect("it completes"), 6);
    let mut given_up =
        Box::pin(executor.schedule(ms(10), || 7).expect("the executor is open").cancel_on_drop());
    let waker = Waker::from(Wakes::new());
    assert!(given_up.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    drop(given_up);
    assert_eq!((executor.pending_count(), clock.advance_to_next_deadline()), (0, None));
}

/// F49: only the waker of the last poll is woken, and earlier wakers are dropped at once.
#[test]
fn the_last_waker_wins() {
    let (clock, executor) = manual(1);
    let (first, last) = (Wakes::new(), Wakes::new());
    let mut future = executor.schedule(ms(10), || 7).expect("the executor is open");
    for waker in [&first, &last, &first, &last] {
        assert!(poll(&mut future, waker).is_pending());
    }
    assert_eq!(Arc::strong_count(&first), 1);
    clock.run_for(ms(10));
    assert_eq!((first.count(), last.count()), (0, 1));
    assert!(matches!(poll(&mut future, &last), Poll::Ready(Ok(7))));
    assert_eq!(Arc::strong_count(&last), 1);
}

/// A waker that polls repeatedly is kept once, and woken once.
#[test]
fn polling_often_registers_once() {
    let (clock, executor) = manual(1);
    let wakes = Wakes::new();
    let mut future = executor.schedule(ms(10), || 7).expect("the executor is open");
    assert!(poll(&mut future, &wakes).is_pending());
    let held = Arc::strong_count(&wakes);
    for _ in 0..100 {
        assert!(poll(&mut future, &wakes).is_pending());
        assert_eq!(Arc::strong_count(&wakes), held);
    }
    clock.run_for(ms(10));
    assert_eq!(wakes.count(), 1);
}

/// F49: a future that is dropped drops its waker without waking it; its task still runs.
#[test]
fn a_dropped_future_drops_its_waker() {
    let (clock, executor) = manual(1);
    let (runs, wakes) = (Counter::new(), Wakes::new());
    let ran = runs.clone();
    let future = executor.schedule(ms(10), move || ran.add());
    let mut future = future.expect("the executor is open");
    assert!(poll(&mut future, &wakes).is_pending());
    drop(future);
    assert_eq!(Arc::strong_count(&wakes), 1);
    clock.run_for(ms(10));
    assert_eq!((runs.get(), wakes.count()), (1, 0));
}

/// F49: a future whose task has ended is ready at the first poll and keeps no waker; the value is
/// returned once.
#[test]
fn a_future_that_has_ended_is_ready_at_once() {
    let (clock, executor) = manual(1);
    let wakes = Wakes::new();
    let mut future = executor.submit(|| 7).expect("the executor is open");
    clock.run_until_idle();
    assert!(matches!(poll(&mut future, &wakes), Poll::Ready(Ok(7))));
    for _ in 0..2 {
        let again = poll(&mut future, &wakes);
        assert!(matches!(again, Poll::Ready(Err(TaskError::ResultTaken))));
    }
    assert_eq!((Arc::strong_count(&wakes), wakes.count()), (1, 0));
}

/// The drop of a capture may use the executor, and so may a waker when it is woken and when it is
/// dropped.
#[test]
fn captures_of_a_task_may_call_back() {
    let (_clock, executor) = manual(1);
    let calls = Log::new();
    let call_back = |from: &'static str| {
        let (handle, calls) = (executor.handle(), calls.clone());
        Call(move || {
            handle.submit(|| ()).expect("the executor is open");
            calls.push(from);
        })
    };
    let (capture, waker) = (call_back("capture"), Arc::new(call_back("waker")));
    let future = executor.schedule(ms(10), move || drop(capture));
    let mut future = future.expect("the executor is open");
    assert!(poll(&mut future, &waker).is_pending());
    assert!(future.cancel());
    assert_eq!(calls.entries(), ["waker", "capture"]);
    drop(waker);
    drop(future);
    assert_eq!(calls.entries(), ["waker", "capture", "waker"]);
}

/// A waker that panics.
struct Bad;

impl Wake for Bad {
    fn wake(self: Arc<Self>) {
        throw(0)
    }
}

/// How a task that is due in 10 ms ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Value,
    Panic,
    Cancel,
    CancelTwice,
    CancelAfterwards,
}

const ENDS: [(End, Outcome); 5] = [
    (End::Value, Outcome::Value(7)),
    (End::Panic, Outcome::Panicked(13)),
    (End::Cancel, Outcome::Cancelled),
    (End::CancelTwice, Outcome::Cancelled),
    (End::CancelAfterwards, Outcome::Value(7)),
];

/// Ends a task that is awaited through `waker` in this way; returns its future.
fn ended<W>(end: End, waker: &Arc<W>) -> ScheduledFuture<i32>
where
    W: Wake + Send + Sync + 'static,
{
    let (clock, executor) = manual(1);
    let body = [|| 7, || throw(13)][usize::from(matches!(end, End::Panic))];
    let mut task = executor.schedule(ms(10), body).expect("the executor is open");
    assert!(poll(&mut task, waker).is_pending());
    if matches!(end, End::Cancel | End::CancelTwice) {
        assert!(task.cancel());
    }
    clock.run_for(ms(10));
    if matches!(end, End::CancelTwice | End::CancelAfterwards) {
        assert!(!task.cancel() && !task.cancel_and_signal());
    }
    let next = executor.submit(|| ()).expect("the executor is open");
    clock.run_until_idle();
    assert!(next.is_done(), "the worker is well");
    task
}

/// F8, FG-018: a waker that panics affects neither the end of the task nor the worker.
#[test]
fn a_waker_that_panics_changes_nothing() {
    for (end, outcome) in ENDS {
        let task = ended(end, &Arc::new(Bad));
        assert_eq!(Outcome::from(task.join()), outcome, "{end:?}");
    }
}

/// FG-018: a waker that panics does not affect the end of a periodic task either.
#[test]
fn a_waker_that_panics_does_not_change_the_end_of_a_periodic_task() {
    for cancelled in [true, false] {
        let (clock, executor) = manual(1);
        let task = executor.schedule_at_fixed_rate(ms(10), ms(10), || throw::<()>(13));
        let mut task = task.expect("the executor is open");
        assert!(poll(&mut task, &Arc::new(Bad)).is_pending());
        assert_eq!(cancelled && task.cancel(), cancelled);
        clock.run_for(ms(10));
        let outcome = task.join().map(|()| 0);
        let expected = if cancelled { Outcome::Cancelled } else { Outcome::Panicked(13) };
        assert_eq!(Outcome::from(outcome), expected);
    }
}

/// FG-019, FG-027: however a task ends, its waker is woken once, the next poll returns the outcome,
/// and the waker is dropped.
#[test]
fn every_end_wakes_once() {
    for (end, expected) in ENDS {
        let wakes = Wakes::new();
        let mut task = ended(end, &wakes);
        assert_eq!(wakes.count(), 1, "{end:?}");
        let Poll::Ready(outcome) = poll(&mut task, &wakes) else {
            panic!("{end:?} is an end");
        };
        assert_eq!(Outcome::from(outcome), expected, "{end:?}");
        assert_eq!(Arc::strong_count(&wakes), 1, "{end:?}");
    }
}

/// FG-019: a cancel that races the run decides the outcome if it returns `true`, and in any case
/// there is one end.
#[test]
fn a_cancel_that_races_the_run_leaves_one_end() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let (wakes, mut awaited) = (Wakes::new(), 0);
    for round in 0..2_000 {
        let body = [|| 7, || throw(13)][round % 2];
        let mut task = executor.submit(body).expect("the executor is open");
        match poll(&mut task, &wakes) {
            Poll::Pending => awaited += 1,
            Poll::Ready(_) => continue,
        }
        let cancelled = task.cancel();
        let outcome = task.join_within(LONG).map(Outcome::from);
        let uncancelled = [Outcome::Value(7), Outcome::Panicked(13)][round % 2];
        let expected = if cancelled { Outcome::Cancelled } else { uncancelled };
        assert_eq!(outcome, Some(expected));
        // The next round polls through the same waker. If the future were dropped before the worker
        // is done with this round, that would hide a second wake-up.
        eventually("it is woken", || wakes.count() >= awaited);
        assert_eq!(wakes.count(), awaited);
    }
    executor.close().expect("this is no worker");
    assert_eq!(wakes.count(), awaited);
}
