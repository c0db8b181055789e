//! Sizing: how many workers there are to be, changed while they work.
//!
//! *Growing* starts workers for pending tasks, as many as there are of either. *Shrinking* ends
//! nothing by itself: the workers that are now too many are woken once, see that they are surplus,
//! and retire after the keep-alive if no task comes ([`workers`](super)). A worker that runs a task
//! finishes it.

use std::{io, time::Duration};

use super::Workers;
use crate::{
    pool::Pool,
    sync::{Arc, atomic::Ordering},
    time::saturating_nanos,
};

impl Workers {
    // Relaxed, in all of these: settings are changed under the lock, and a thread that decides by
    // them holds it, or asks again when the queue's locks have ordered it after the change.

    #[inline]
    pub(crate) fn core_size(&self) -> usize {
        self.core_size.load(Ordering::Relaxed)
    }

    /// Returns how many workers there may be, as long as there is work for them.
    #[inline]
    pub(in crate::pool) fn wanted(&self) -> usize {
        self.core_size().max(1)
    }

    /// Changes the core size. Returns what it was before.
    pub(in crate::pool) fn set_core_size(&self, size: usize) -> usize {
        let _roster = self.roster.lock();
        self.core_size.swap(size, Ordering::Relaxed)
    }

    pub(crate) fn keep_alive(&self) -> Duration {
        Duration::from_nanos(self.keep_alive.load(Ordering::Relaxed))
    }

    pub(crate) fn core_timeout(&self) -> bool {
        self.core_timeout.load(Ordering::Relaxed)
    }

    /// Changes when idle workers retire. Returns `false`, and changes nothing, if core threads would
    /// time out at once.
    pub(crate) fn set_times(&self, keep_alive: Option<Duration>, timeout: Option<bool>) -> bool {
        let _roster = self.roster.lock();
        let keep_alive = keep_alive.unwrap_or_else(|| self.keep_alive());
        let timeout = timeout.unwrap_or_else(|| self.core_timeout());
        if timeout && keep_alive.is_zero() {
            return false;
        }
        self.keep_alive.store(saturating_nanos(keep_alive), Ordering::Relaxed);
        self.core_timeout.store(timeout, Ordering::Relaxed);
        true
    }
}

impl Pool {
    pub(crate) fn set_core_pool_size(self: &Arc<Self>, size: usize) {
        if self.is_driven {
            return;
        }
        let before = self.workers.set_core_size(size);
        if size < before {
            self.queue.reconsider();
        }
        // Of two threads that do so at once the one that has the lock of a group later reads the newer number.
        self.groups.tell(|roll| roll.limits.workers = self.workers.wanted());
        for _ in 0..size.saturating_sub(before).min(self.queue.len()) {
            // Also after a shutdown, for the tasks that it has left.
            match self.start_worker(|| self.workers.core_size()) {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => return self.go_without_worker(&error),
            }
        }
    }

    /// Starts one worker that the core still lacks. Returns `true` if it started one.
    pub(crate) fn start_core_worker(self: &Arc<Self>) -> io::Result<bool> {
        if self.queue.is_closed() {
            return Ok(false);
        }
        self.start_worker(|| self.workers.core_size())
    }
}
