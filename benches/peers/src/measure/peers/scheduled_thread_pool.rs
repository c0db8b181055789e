//! `scheduled-thread-pool`: a pool of the same kind, without futures.

use std::time::Duration;

use scheduled_thread_pool::{JobHandle, OnPoolDropBehavior};

use crate::measure::{
    oneshot::{Oneshot, oneshot},
    peer::Peer,
};

pub(in crate::measure) struct ScheduledThreadPool(scheduled_thread_pool::ScheduledThreadPool);

impl Peer for ScheduledThreadPool {
    type Handle = JobHandle;
    type Future = Oneshot;

    fn new(workers: usize) -> Self {
        let builder = scheduled_thread_pool::ScheduledThreadPool::builder()
            .num_threads(workers)
            .on_drop_behavior(OnPoolDropBehavior::DiscardPendingScheduled);
        Self(builder.build())
    }

    fn schedule<F: FnOnce() + Send + 'static>(&self, delay: Duration, task: F) -> Self::Handle {
        self.0.execute_after(delay, task)
    }

    fn cancel(&self, handle: Self::Handle) {
        handle.cancel();
    }

    fn submit<F: FnOnce() -> u32 + Send + 'static>(&self, task: F) -> Self::Future {
        let (sender, result) = oneshot();
        self.0.execute(move || sender.send(task()));
        result
    }

    fn wait(&self, future: Self::Future) -> u32 {
        future.wait()
    }

    fn schedule_at_fixed_rate<F: FnMut() + Send + 'static>(
        &self,
        initial: Duration,
        period: Duration,
        task: F,
    ) {
        self.0.execute_at_fixed_rate(initial, period, task);
    }

    /// The drop stops it.
    fn shutdown_now(self) {}
}
