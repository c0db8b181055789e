//! Waits for the last of many runs.

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, Thread},
    time::Instant,
};

/// Counts runs and notes the time of the last, for which the thread that created it can wait.
pub(crate) struct Countdown {
    left: AtomicU64,
    last: OnceLock<Instant>,
    waiter: Thread,
}

impl Countdown {
    /// Creates a countdown of `runs` runs. It is leaked: a task then captures a plain reference,
    /// and the measurement includes no reference counting.
    pub(crate) fn leaked(runs: u64) -> &'static Self {
        let (left, last) = (AtomicU64::new(runs), OnceLock::new());
        Box::leak(Box::new(Self { left, last, waiter: thread::current() }))
    }

    /// Counts one run.
    pub(crate) fn hit(&self) {
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.last.get_or_init(Instant::now);
            self.waiter.unpark();
        }
    }

    /// Blocks until the last run, and returns when it was.
    pub(crate) fn wait(&self) -> Instant {
        loop {
            match self.last.get() {
                Some(last) => return *last,
                None => thread::park(),
            }
        }
    }
}
