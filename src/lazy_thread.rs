//! A thread that is started when it is first needed, and the queue that it takes from.
//!
//! Two services of this crate need a thread of their own only if somebody uses them: the timeouts
//! of a pool, and the alarms of the system's clock. Both hand their work to the thread through a
//! queue, and both must not start it twice. That much is here; how the thread is started is the
//! caller's parameter: a pool has its thread factory do it, the alarms spawn one themselves.
//!
//! [`start`](LazyThread::start) is not exclusive by itself. The caller holds something that is: the
//! pool a permit to spawn, since its factory is user code and must not run under a lock, and the
//! alarms a lock, since spawning a plain thread runs no user code.
//!
//! A start that fails leaves the queue behind, and the next caller tries again with the same one.

use std::io;

use crate::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering},
};

/// See the [module](self).
pub(crate) struct LazyThread<Q> {
    /// Made before the first attempt to start the thread.
    queue: OnceLock<Arc<Q>>,
    is_running: AtomicBool,
}

impl<Q> LazyThread<Q> {
    pub(crate) fn new() -> Self {
        Self { queue: OnceLock::new(), is_running: AtomicBool::new(false) }
    }

    /// Returns the queue, or `None` if nobody has tried to start the thread yet.
    pub(crate) fn queue(&self) -> Option<&Arc<Q>> {
        self.queue.get()
    }

    /// Returns the queue if the thread has been started.
    #[inline]
    pub(crate) fn running(&self) -> Option<&Arc<Q>> {
        // Ordering: pairs with the store in `start`, so a thread that sees the flag sees the queue.
        if self.is_running.load(Ordering::Acquire) { self.queue.get() } else { None }
    }

    /// Makes the queue for a caller that takes from it itself. No thread will ever be started.
    pub(crate) fn do_without(&self, make_queue: impl FnOnce() -> Q) -> Arc<Q> {
        let queue = self.queue.get_or_init(|| Arc::new(make_queue()));
        // Ordering: see `running`.
        self.is_running.store(true, Ordering::Release);
        Arc::clone(queue)
    }

    /// Starts the thread by `spawn` unless it is running, and returns the queue. No two threads may
    /// call this at once.
    pub(crate) fn start(
        &self,
        make_queue: impl FnOnce() -> Q,
        spawn: impl FnOnce(Arc<Q>) -> io::Result<()>,
    ) -> io::Result<&Arc<Q>> {
        if let Some(queue) = self.running() {
            return Ok(queue);
        }
        let queue = self.queue.get_or_init(|| Arc::new(make_queue()));
        let spawned = spawn(Arc::clone(queue));
        // Ordering: see `running`.
        self.is_running.store(spawned.is_ok(), Ordering::Release);
        spawned.map(|()| queue)
    }
}
