//! Waiting for the last of many runs.

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, Thread},
    time::Instant,
};

/// Counts runs, and notes the moment of the last, for which the thread that made it can wait.
pub(crate) struct Countdown {
    left: AtomicU64,
    last: OnceLock<Instant>,
    waiter: Thread,
}

impl Countdown {
    /// For so many runs. It is leaked: a task then captures a plain reference, and what is
    /// measured does not count references.
    pub(crate) fn leaked(runs: u64) -> &'static Self {
        let (left, last) = (AtomicU64::new(runs), OnceLock::new());
        Box::leak(Box::new(Self { left, last, waiter: thread::current() }))
    }

    /// One more has run.
    pub(crate) fn hit(&self) {
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.last.get_or_init(Instant::now);
            self.waiter.unpark();
        }
    }

    /// Blocks until the last has run, and says when that was.
    pub(crate) fn wait(&self) -> Instant {
        loop {
            match self.last.get() {
                Some(last) => return *last,
                None => thread::park(),
            }
        }
    }
}
