//! A thread that is started when it is first needed, and the queue that it takes from.
//!
//! Three services of this crate need a thread of their own only if they are used: the timeouts of a pool,
//! the watch of the wall clock, and the alarms of the system's clock. Each hands its work to the thread
//! through a queue, and none may start it twice. That much is here; how the thread is started is the
//! caller's: a pool has its thread factory do it, the alarms spawn one themselves.
//!
//! # One thread
//!
//! ```text
//!             starting()                succeed()
//!   absent ──────────────▶ starting ──────────────▶ running
//!      ▲                      │ drop
//!      └──────────────────────┘
//! ```
//!
//! Only the holder of a [`Starting`] can have the thread run, and of two callers one is given it. So a
//! second thread is not a matter of what its callers have locked. What they have is for another purpose: a
//! caller that comes while the thread is being started has to *wait* for what comes of that. The threads of
//! a pool wait for the permit to spawn, which is returned after [`succeed`](Starting::succeed), and those
//! that set an alarm for a lock.
//!
//! A start that fails leaves the queue behind, and the next caller tries again with the same one.

use crate::sync::{
    Arc, OnceLock,
    atomic::{AtomicUsize, Ordering},
};

/// See the [module](self).
pub(crate) struct LazyThread<Q> {
    /// Made before the first attempt to start the thread.
    queue: OnceLock<Arc<Q>>,
    stage: AtomicUsize,
}

const ABSENT: usize = 0;
const STARTING: usize = 1;
const RUNNING: usize = 2;

/// The right to start the thread, which one caller has at a time, and none once the thread runs. Dropped
/// without [`succeed`](Self::succeed), it leaves the start to the next caller.
#[must_use = "no other caller can start the thread while this is alive"]
pub(crate) struct Starting<'a, Q> {
    thread: &'a LazyThread<Q>,
    queue: &'a Arc<Q>,
}

impl<Q> LazyThread<Q> {
    pub(crate) fn new() -> Self {
        Self { queue: OnceLock::new(), stage: AtomicUsize::new(ABSENT) }
    }

    /// Returns the queue, or `None` if no caller has tried to start the thread yet.
    pub(crate) fn queue(&self) -> Option<&Arc<Q>> {
        self.queue.get()
    }

    /// Returns the queue if the thread has been started.
    #[inline]
    pub(crate) fn running(&self) -> Option<&Arc<Q>> {
        // Ordering: pairs with the store in `succeed`, so a thread that sees the stage sees the queue.
        if self.stage.load(Ordering::Acquire) == RUNNING { self.queue.get() } else { None }
    }

    /// Makes the queue for a caller that takes from it itself. No thread will ever be started.
    pub(crate) fn do_without(&self, make_queue: impl FnOnce() -> Q) -> Arc<Q> {
        let queue = self.queue.get_or_init(|| Arc::new(make_queue()));
        // Ordering: see `running`.
        self.stage.store(RUNNING, Ordering::Release);
        Arc::clone(queue)
    }

    /// Returns the right to start the thread, with the queue that it takes from. `None` if the thread runs,
    /// or another caller is starting it.
    pub(crate) fn starting(&self, make_queue: impl FnOnce() -> Q) -> Option<Starting<'_, Q>> {
        // Ordering: of two callers one writes; and the next that may sees what a failed one has left.
        let (ours, seen) = (Ordering::AcqRel, Ordering::Relaxed);
        self.stage.compare_exchange(ABSENT, STARTING, ours, seen).ok()?;
        let queue = self.queue.get_or_init(|| Arc::new(make_queue()));
        Some(Starting { thread: self, queue })
    }
}

impl<Q> Starting<'_, Q> {
    /// Returns the queue that the thread takes from.
    pub(crate) fn queue(&self) -> Arc<Q> {
        Arc::clone(self.queue)
    }

    /// Notes that the thread has been started. There will be no other.
    pub(crate) fn succeed(self) {
        // Ordering: see `running`.
        self.thread.stage.store(RUNNING, Ordering::Release);
    }
}

impl<Q> Drop for Starting<'_, Q> {
    fn drop(&mut self) {
        // Ordering: see `starting`. After `succeed` there is nothing to give back.
        let (ours, seen) = (Ordering::Release, Ordering::Relaxed);
        let _ = self.thread.stage.compare_exchange(STARTING, ABSENT, ours, seen);
    }
}

#[cfg(test)]
#[cfg(loom)]
#[path = "lazy_thread/tests/exhaustive.rs"]
mod exhaustive;
