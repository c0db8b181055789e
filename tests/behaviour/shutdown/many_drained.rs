//! The drop of many drained tasks, which a second thread shares if that can change no answer.

use std::{
    collections::HashSet,
    iter,
    sync::{Arc, Mutex},
    thread::{self, ThreadId},
    time::Duration,
};

use punctual::{CancelReason, Handle, ManualClock, ScheduledFuture, ScheduledThreadPoolExecutor};

use crate::support::{Bomb, Counter, assert_cancelled, eventually};

const DAY: Duration = Duration::from_secs(86_400);

/// A few more than those that two threads share.
const MANY: usize = 70_000;

/// Notes the thread that drops it.
#[derive(Clone, Default)]
pub(crate) struct Noting(Arc<Mutex<HashSet<ThreadId>>>);

/// Is not dropped before two threads drop such values.
struct Meeting(Noting);

impl Drop for Meeting {
    fn drop(&mut self) {
        let threads = &self.0.0;
        threads.lock().unwrap().insert(thread::current().id());
        eventually("a second thread drops some", || threads.lock().unwrap().len() == 2);
    }
}

impl Drop for Noting {
    fn drop(&mut self) {
        self.0.lock().unwrap().insert(thread::current().id());
    }
}

pub(crate) fn fill(executor: &Handle, noting: &Noting) {
    for _ in 0..MANY {
        let noting = noting.clone();
        executor.schedule(DAY, move || drop(noting)).unwrap();
    }
}

/// Asserts that `act`, which drops the drained tasks, drops all of them on this thread.
pub(crate) fn assert_alone(act: impl FnOnce(&Noting)) {
    let noting = Noting::default();
    act(&noting);
    assert_eq!(Arc::strong_count(&noting.0), 1, "all have been dropped");
    let own = HashSet::from_iter(iter::once(thread::current().id()));
    assert_eq!(*noting.0.lock().unwrap(), own);
}

/// Two threads share the drop. All captures are gone when it returns, and all futures have ended. A capture that panics in
/// its drop keeps none of the others, and is reported.
#[test]
fn all_are_dropped_when_it_returns() {
    let reports = Counter::new();
    let count = reports.clone();
    let builder = ScheduledThreadPoolExecutor::builder().failure_handler(move |_| count.add());
    let (executor, noting) = (builder.build().unwrap(), Noting::default());
    let submit = |number| {
        let meeting = Meeting(noting.clone());
        let captured = (meeting, (number % 10_000 == 0).then(|| Bomb("a capture")));
        executor.schedule(DAY, move || drop(captured)).unwrap()
    };
    let futures: Vec<ScheduledFuture<()>> = (0..MANY).map(submit).collect();
    // Where another test has a subscriber listen, each task is traced, by this thread.
    #[cfg(feature = "tracing")]
    let _quiet = tracing::subscriber::set_default(tracing::subscriber::NoSubscriber::default());
    drop(executor.shutdown_now());
    assert_eq!(Arc::strong_count(&noting.0), 1);
    futures.iter().for_each(|future| assert_cancelled(future, CancelReason::ShutdownNow));
    assert_eq!(reports.get(), 7);
}

/// A wait in the drop of a capture is refused by what its thread does. A second thread does nothing else, so a thread that
/// acts for a pool shares nothing: a worker, one that runs a task by hand, and one that drops the values of a task.
#[test]
fn a_thread_that_acts_for_a_pool_drops_them_alone() {
    let drained = |noting: &Noting| {
        let executor = ScheduledThreadPoolExecutor::new(1);
        fill(&executor, noting);
        executor.shutdown_now()
    };
    let outer = ScheduledThreadPoolExecutor::new(1);
    outer.submit(move || assert_alone(|noting| drop(drained(noting)))).unwrap().join().unwrap();

    let body = move || assert_alone(|noting| drop(drained(noting)));
    let by_hand = outer.schedule(DAY, body).unwrap();
    assert_alone(|noting| {
        let owned = drained(noting);
        assert!(outer.schedule(DAY, move || drop(owned)).unwrap().cancel());
    });
    outer.shutdown_now().next().unwrap().run();
    by_hand.join().unwrap();
}

/// On a manual clock nothing depends on which of two threads is faster.
#[test]
fn on_a_manual_clock_one_thread_drops_them() {
    assert_alone(|noting| {
        let clock = ManualClock::new();
        let executor = ScheduledThreadPoolExecutor::builder().clock(clock).build().unwrap();
        fill(&executor, noting);
        drop(executor.shutdown_now());
    });
}
