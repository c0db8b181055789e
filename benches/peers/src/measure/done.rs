//! Waits until a number of tasks have run.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    thread::{self, Thread},
    time::Duration,
};

pub(super) struct Done {
    count: AtomicU64,
    target: u64,
    waiter: Thread,
}

impl Done {
    /// Creates it for this thread to wait for. It is leaked: a task then captures one word and
    /// modifies no count but this one, and the process is about to end.
    pub(super) fn new(target: u64) -> &'static Self {
        let waiter = thread::current();
        Box::leak(Box::new(Self { count: AtomicU64::new(0), target, waiter }))
    }

    #[inline]
    pub(super) fn hit(&self) {
        if self.count.fetch_add(1, Ordering::AcqRel) + 1 == self.target {
            self.waiter.unpark();
        }
    }

    pub(super) fn wait(&self) {
        while self.count.load(Ordering::Acquire) < self.target {
            thread::park_timeout(Duration::from_millis(500));
        }
    }
}
