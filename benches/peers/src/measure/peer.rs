//! The interface of a peer: the minimum with which all of them can be driven alike.

use std::time::{Duration, Instant};

/// A pool of threads that runs closures after a delay.
pub(super) trait Peer: Sized + Sync {
    /// Peers that run callbacks on one thread only have fewer.
    const MAX_WORKERS: usize = usize::MAX;

    /// A handle that cancels a one-shot task. Keeping the handle must keep the task.
    type Handle: Send;

    /// The result of [`submit`](Self::submit), to be waited for.
    type Future;

    /// Starts the threads that live as long as the process, so that no measurement waits for their
    /// end.
    fn prepare() {}

    fn new(workers: usize) -> Self;

    /// A task that runs once, after `delay`.
    fn schedule<F: FnOnce() + Send + 'static>(&self, delay: Duration, task: F) -> Self::Handle;

    /// The same, when the handle is not needed.
    fn schedule_detached<F: FnOnce() + Send + 'static>(&self, delay: Duration, task: F) {
        drop(self.schedule(delay, task));
    }

    /// A task that runs once, at `due`. A peer that only knows delays is given what is left until then.
    fn schedule_at<F: FnOnce() + Send + 'static>(&self, due: Instant, task: F) {
        self.schedule_detached(due.saturating_duration_since(Instant::now()), task);
    }

    fn cancel(&self, handle: Self::Handle);

    /// Puts a pending task off, or brings it forward, to `delay` from now. `task` makes a task in its
    /// place, for a peer that cannot move one.
    fn reschedule<F: FnOnce() + Send + 'static>(
        &self,
        handle: Self::Handle,
        delay: Duration,
        task: impl FnOnce() -> F,
    ) -> Self::Handle {
        self.cancel(handle);
        self.schedule(delay, task())
    }

    /// Puts a timeout off to `delay` from now, so many times, and cancels it.
    fn extend_often(&self, delay: Duration, count: u64, task: fn()) {
        let mut handle = self.schedule(delay, task);
        for _ in 0..count {
            handle = self.reschedule(handle, delay, || task);
        }
        self.cancel(handle);
    }

    /// A task without delay, whose result is waited for.
    fn submit<F: FnOnce() -> u32 + Send + 'static>(&self, task: F) -> Self::Future;

    fn wait(&self, future: Self::Future) -> u32;

    /// A task that runs at a fixed rate until the pool is shut down.
    fn schedule_at_fixed_rate<F: FnMut() + Send + 'static>(
        &self,
        initial: Duration,
        period: Duration,
        task: F,
    );

    /// The same, where each run reports that it has succeeded. A peer without reports has no other runs.
    fn repeat_with_report<F: FnMut() + Send + 'static>(
        &self,
        initial: Duration,
        period: Duration,
        task: F,
    ) {
        self.schedule_at_fixed_rate(initial, period, task);
    }

    /// Returns when the background work of earlier calls is done; `live` tasks are still pending
    /// then. A peer without background work does nothing.
    fn settle(&self, _live: u64) {}

    /// Discards the pending tasks and begins to shut down. The threads may still be ending
    /// afterwards.
    fn shutdown_now(self);
}
