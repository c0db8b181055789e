//! Tasks in groups, for the tests of this room.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use punctual::{Group, GroupStatistics, ScheduledFuture};

use crate::support::{Counter, Log, eventually, next_of};

/// A task that runs until it is let go, and notes that it has begun.
pub struct Busy {
    pub future: ScheduledFuture<()>,
    go: mpsc::Sender<()>,
}

impl Busy {
    /// Submits one, and waits until it runs.
    pub fn start(group: &Group) -> Self {
        let (busy, started) = Self::submit(group);
        started.wait_for(1);
        busy
    }

    pub fn submit(group: &Group) -> (Self, Counter) {
        let (go, gone) = mpsc::channel();
        let started = Counter::new();
        let starts = started.clone();
        let future = group
            .task()
            .submit(move || {
                starts.add();
                next_of(&gone, "it is let go").unwrap_or_default();
            })
            .expect("the group is open");
        (Self { future, go }, started)
    }

    pub fn end(self) {
        self.go.send(()).unwrap_or_default();
        assert!(self.future.join().is_ok());
    }

    /// Lets the body return, which may have been cancelled.
    pub fn let_go(&self) {
        self.go.send(()).unwrap_or_default();
    }
}

/// Submits a task that notes that it runs.
pub fn noting<T: Clone + Send + 'static>(
    group: &Group,
    log: &Log<T>,
    delay: Duration,
    entry: T,
) -> ScheduledFuture<()> {
    let log = log.clone();
    group.task().schedule(delay, move || log.push(entry)).expect("the group is open")
}

/// Waits until so many tasks wait for the group and are in the queue: a worker has put back each one that it has taken. Nothing
/// else may run.
pub fn until_held(group: &Group, count: usize) {
    eventually("they wait", || {
        let now = group.statistics();
        now.waiting == count && group.handle().statistics().active == now.active
    });
}

/// Asserts that the counts of a group agree with each other.
pub fn assert_sound(now: GroupStatistics) {
    let ended = now.completed + now.failed + now.cancelled;
    assert_eq!(now.submitted, now.pending as u64 + now.active as u64 + ended, "{now:?}");
    assert!(now.waiting <= now.pending, "{now:?}");
    assert!(now.failed <= now.failed_runs && now.failed_runs <= now.runs, "{now:?}");
}

/// Counts how many bodies run at once, and the most there have been.
#[derive(Clone, Default)]
pub struct Overlap(Arc<(AtomicUsize, AtomicUsize)>);

impl Overlap {
    pub fn run<R>(&self, body: impl FnOnce() -> R) -> R {
        let now = self.0.0.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.1.fetch_max(now, Ordering::SeqCst);
        let result = body();
        self.0.0.fetch_sub(1, Ordering::SeqCst);
        result
    }

    pub fn most(&self) -> usize {
        self.0.1.load(Ordering::SeqCst)
    }
}
