//! Sizing: how many workers there are to be, changed while they work.
//!
//! *Growing* starts workers for tasks that wait, as many as there are of either. *Shrinking* ends
//! nothing: the workers that are now too many are roused once, see that they are surplus, and go
//! after the keep-alive if nothing comes ([`crew`](super::crew)). Whoever runs a task finishes it.

use std::{io, time::Duration};

use super::Pool;
use crate::{ConfigError, sync::Arc, time::Deadline, trace};

impl Pool {
    pub(crate) fn set_core_pool_size(self: &Arc<Self>, size: usize) {
        let before = self.crew.set_core(size);
        if size < before {
            self.queue.reconsider();
        }
        for _ in 0..size.saturating_sub(before).min(self.queue.len()) {
            match self.start_core_worker() {
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
        if !self.crew.set_times(keep_alive, core_timeout) {
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
        self.start_worker(|| self.crew.core())
    }

    /// Until when a worker that has been idle since then waits for a task.
    #[inline]
    pub(super) fn idle_limit(&self, since: Deadline) -> Deadline {
        if !self.crew.is_elastic() {
            return Deadline::NEVER;
        }
        let waiting = self.joins.len();
        let is_last = self.crew.settled() <= waiting + 1;
        if is_last && (waiting > 0 || self.queue.len() > 0) {
            // The last one stays for what waits.
            return Deadline::NEVER;
        }
        since.after(self.crew.keep_alive())
    }
}
