//! Sizing: how many workers there are to be, changed while they work.
//!
//! *Growing* starts workers for tasks that wait, as many as there are of either. *Shrinking* ends
//! nothing: the workers that are now too many are roused once, see that they are surplus, and go
//! after the keep-alive if nothing comes ([`workers`](super)). Whoever runs a task finishes it.

use std::{io, time::Duration};

use super::{Answer, PoolView};
use crate::{ConfigError, pool::Pool, sync::Arc, time::Timestamp, trace, unwind::wake_all};

impl Pool {
    pub(crate) fn set_core_pool_size(self: &Arc<Self>, size: usize) {
        let before = self.workers.set_core(size);
        if size < before {
            self.queue.reconsider();
        }
        for _ in 0..size.saturating_sub(before).min(self.queue.len()) {
            // Also after a shutdown, for what that has left.
            match self.start_worker(|| self.workers.core()) {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => return trace::spawn_failed(&error),
            }
        }
    }

    /// Changes when idle workers go.
    pub(crate) fn set_times(
        &self,
        keep_alive: Option<Duration>,
        core_timeout: Option<bool>,
    ) -> Result<(), ConfigError> {
        if !self.workers.set_times(keep_alive, core_timeout) {
            return Err(ConfigError::ZeroKeepAlive);
        }
        self.queue.reconsider();
        Ok(())
    }

    /// Starts one worker that is still missing from the core. Whether there was one missing.
    pub(crate) fn start_core_worker(self: &Arc<Self>) -> io::Result<bool> {
        if self.queue.is_closed() {
            return Ok(false);
        }
        self.start_worker(|| self.workers.core())
    }

    /// Starts a worker if a task waits for which nobody will come, although the pool may have one
    /// more. Does not wait if somebody else is starting one. See [`workers`](super).
    #[inline]
    pub(in crate::pool) fn compensate(self: &Arc<Self>) -> io::Result<()> {
        // What is never due needs nobody.
        if self.workers.started() >= self.workers.wanted() || self.queue.seems_empty() {
            return Ok(());
        }
        self.compensate_slow()
    }

    #[cold]
    fn compensate_slow(self: &Arc<Self>) -> io::Result<()> {
        let is_left = || self.queue.takers() == 0 && !self.queue.seems_empty();
        // Again and again: who wanted to relieve meanwhile has left it to this thread.
        while let Some(permit) = self.workers.try_spawn_permit(is_left) {
            self.start_in(permit)?;
        }
        Ok(())
    }

    /// Until when a worker that has been idle since then waits for a task. Nothing if it has left the
    /// queue, to go.
    #[inline]
    pub(in crate::pool) fn idle_limit(&self, number: usize, since: Timestamp) -> Option<Timestamp> {
        if !self.workers.is_elastic() {
            return Some(Timestamp::NEVER);
        }
        // Perhaps others have stayed for the one that it has run.
        self.pending_decreased();
        let limit = since.after(self.workers.keep_alive());
        let is_over = limit <= self.clock().read();
        match self.workers.try_retire(number, is_over, || self.view(), || self.queue.leave()) {
            Answer::Stay => Some(Timestamp::NEVER),
            Answer::Later => Some(limit),
            Answer::Gone(waker) => {
                wake_all(waker);
                None
            }
        }
    }

    /// What a worker sees that is one of those who wait in the queue.
    pub(in crate::pool) fn view(&self) -> PoolView {
        let (joined, others) = (self.joins.len(), self.queue.takers().saturating_sub(1));
        PoolView { joined, idle: others, pending: self.queue.len() }
    }

    /// There may be fewer tasks now than somebody stays for.
    #[inline]
    pub(in crate::pool) fn pending_decreased(&self) {
        if self.workers.staying().ends_for_tasks(|count| self.queue.has_at_least(count)) {
            self.queue.reconsider();
        }
    }
}
