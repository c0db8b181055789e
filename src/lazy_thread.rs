//! A thread that is started when it is first needed, and the queue that it takes from.
//!
//! The timeouts of a pool need a thread of their own only if there are any. How it is started is the caller's.
//!
//! ```text
//!             starting()                succeed()
//!   absent ──────────────▶ starting ──────────────▶ running
//!      ▲                      │ drop
//!      └──────────────────────┘
//! ```
//!
//! A caller that comes while the thread is being started *waits* for what comes of that. A start that fails leaves the queue
//! behind, and the next caller tries again with the same one.

use crate::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Clock,
    wait::{self, Place, Watched},
};

pub(crate) struct LazyThread<Q> {
    /// Made before the first attempt to start the thread.
    queue: OnceLock<Arc<Q>>,
    is_running: AtomicBool,
    is_starting: Watched<bool>,
}

/// The right to start the thread, which one caller has at a time, and none once the thread runs. Dropped
/// without [`succeed`](Self::succeed), it leaves the start to the next caller.
#[must_use = "no other caller can start the thread while this is alive"]
pub(crate) struct Starting<'a, Q>(&'a LazyThread<Q>);

impl<Q> LazyThread<Q> {
    pub(crate) fn new() -> Self {
        let (is_running, is_starting) = (AtomicBool::new(false), Watched::default());
        Self { queue: OnceLock::new(), is_running, is_starting }
    }

    /// Returns the queue, or `None` if no caller has tried to start the thread yet.
    pub(crate) fn queue(&self) -> Option<&Arc<Q>> {
        self.queue.get()
    }

    /// Returns the queue if the thread has been started.
    #[inline]
    pub(crate) fn running(&self) -> Option<&Arc<Q>> {
        // Ordering: pairs with the store in `succeed`, so a thread that sees it run sees the queue.
        if self.is_running.load(Ordering::Acquire) { self.queue.get() } else { None }
    }

    /// Makes the queue for a caller that takes from it itself. No thread will ever be started.
    pub(crate) fn do_without(&self, make_queue: impl FnOnce() -> Q) -> Arc<Q> {
        let queue = self.queue.get_or_init(|| Arc::new(make_queue()));
        // Ordering: see `running`.
        self.is_running.store(true, Ordering::Release);
        Arc::clone(queue)
    }

    /// Returns the right to start the thread, with the queue that it takes from. Blocks while another caller
    /// has it. `None` if the thread runs.
    pub(crate) fn starting(&self, make_queue: impl FnOnce() -> Q) -> Option<Starting<'_, Q>> {
        let mut place = Place::default();
        // The system's clock: on a manual one a worker that waits here would count as idle.
        let is_needed = wait::block_on(&Clock::system(), |waker| {
            self.is_starting.poll(&mut place, waker, |is_starting| {
                if self.running().is_some() {
                    return Some(false);
                }
                (!std::mem::replace(is_starting, true)).then_some(true)
            })
        });
        is_needed.then(|| {
            self.queue.get_or_init(|| Arc::new(make_queue()));
            Starting(self)
        })
    }
}

impl<Q> Starting<'_, Q> {
    /// Notes that the thread has been started. There will be no other.
    pub(crate) fn succeed(self) {
        // Ordering: see `running`.
        self.0.is_running.store(true, Ordering::Release);
    }
}

impl<Q> Drop for Starting<'_, Q> {
    fn drop(&mut self) {
        let mut is_starting = self.0.is_starting.lock();
        *is_starting = false;
        is_starting.wake_all();
    }
}

#[cfg(test)]
#[cfg(loom)]
#[path = "lazy_thread/tests/exhaustive.rs"]
mod exhaustive;
