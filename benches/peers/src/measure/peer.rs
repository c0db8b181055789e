//! What is asked of a peer: the least with which all can be driven alike.

use std::time::Duration;

/// A pool of threads that runs closures after a delay.
pub(super) trait Peer: Sized + Sync {
    /// Fewer for those that run callbacks on one thread only.
    const MAX_WORKERS: usize = usize::MAX;

    /// Cancels a one-shot task. Keeping it must keep the task.
    type Handle: Send;

    /// The result of [`submit`](Self::submit), to be waited for.
    type Future;

    /// Starts the threads that live as long as the process, so that nobody waits for their end.
    fn prepare() {}

    fn new(workers: usize) -> Self;

    /// A task that runs once, after `delay`.
    fn schedule<F: FnOnce() + Send + 'static>(&self, delay: Duration, task: F) -> Self::Handle;

    /// The same, when nobody wants the handle.
    fn schedule_detached<F: FnOnce() + Send + 'static>(&self, delay: Duration, task: F) {
        drop(self.schedule(delay, task));
    }

    fn cancel(&self, handle: Self::Handle);

    /// A task without delay, whose result is waited for.
    fn submit<F: FnOnce() -> u32 + Send + 'static>(&self, task: F) -> Self::Future;

    fn wait(&self, future: Self::Future) -> u32;

    /// A task that runs at a fixed rate until the end.
    fn schedule_at_fixed_rate<F: FnMut() + Send + 'static>(
        &self,
        initial: Duration,
        period: Duration,
        task: F,
    );

    /// Returns when what the calls before have left to do in the background is done; `live` tasks
    /// are still pending then. Nothing for those whose calls do all there is to do.
    fn settle(&self, _live: u64) {}

    /// Discards what is pending and starts to end. The threads may still be ending afterwards.
    fn shutdown_now(self);
}
