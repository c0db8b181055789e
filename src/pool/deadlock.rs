//! Deadlock detection: the pool refuses a wait that could never end.
//!
//! A worker that waits for other workers runs nothing meanwhile. The pool refuses a wait without a time limit in two
//! cases:
//!
//! * *A task waits for itself*, which the waiter detects (`TaskHandle::wait`).
//! * *No worker is left to do the awaited work*: every other worker is already waiting, without a limit, for something
//!   that has not happened, and the pool has as many workers as it may have, or cannot start another.
//!
//! The pool detects no other cycles; [`WouldDeadlock`] names them. The [`JoinRegistry`](super::workers) lists what
//! workers wait for: a task to end, a body to return, or whatever a user announces
//! ([`Handle::enter_wait`](crate::Handle::enter_wait)). Each [`Awaited`] says whether its wait is *stuck*: only a
//! worker of this pool can end it, and none has yet.
//!
//! # Why no wait is refused wrongly
//!
//! A worker is on the registry's list for as long as it waits, and is added under the list's lock. So of two workers
//! whose waits complete a cycle, only the one added second sees the whole cycle. That worker copies the list, and
//! checks each entry outside the lock. What a listed worker waits for happens once and cannot be undone. So if it has
//! not happened when the entry is checked, it had not happened when the list was copied, and the listed worker was
//! waiting then. If that holds for all entries, all workers were waiting when the list was copied.
//!
//! # Why no wait relies on a worker that never comes
//!
//! Only workers that have [started](super::workers) count. If another thread is starting a worker, the thread that
//! completes the cycle waits for the outcome. A thread factory may return `Ok` and later drop the worker without
//! running it. If all remaining workers are waiting, the thread that drops the worker starts another. If that fails,
//! the pool logs an event, and these workers wait until the next submission starts a worker.
//!
//! # Why no thread relies on a worker that is retiring
//!
//! The last worker that is not on the list does not [retire](super::workers) until another worker leaves the list or a
//! new one starts. A waiting worker enters the list before it counts the workers, and a retiring worker reads the list
//! under the lock that protects this count, so one of the two sees the other ([`queue::waiters`](crate::queue)).
//!
//! # Waits that may still end
//!
//! The list has no waits with a timeout or a token, because the timeout or a cancellation may end them. Nor does it
//! have waits for tasks of another pool, because that pool's workers may run these tasks. After `shutdown_now` the
//! holder of a `DrainedTask` may run it, so from then on only a task's wait for itself is refused. Two kinds of tasks
//! can end without a worker: those whose time limit a timer thread enforces, and those that a rejection handler has
//! kept, which any thread may run. Because the waiting worker runs nothing meanwhile, a wait for such a task is on the
//! list, but it does not count as stuck (`Task::needs_worker`).

use std::fmt;

use super::{Phase, Pool, Role, workers::Awaited};
use crate::{
    WouldDeadlock,
    sync::Arc,
    trace,
    unwind::{Callback, Contained, discard},
};

/// Keeps a worker's wait registered until dropped; from [`Handle::enter_wait`](crate::Handle::enter_wait).
#[must_use = "the wait ends when this is dropped"]
pub struct WaitGuard<'a> {
    pool: &'a Pool,
    awaited: Callback<Awaited>,
}

impl Pool {
    /// Registers an unlimited wait of the calling worker. Dropping the returned guard ends the registration. Fails if
    /// the wait could never end. Returns `None` if the caller is not a worker of this pool, and after `shutdown_now`.
    pub(crate) fn enter_wait(
        self: &Arc<Self>,
        awaited: impl FnOnce() -> Arc<Awaited>,
    ) -> Result<Option<WaitGuard<'_>>, WouldDeadlock> {
        if !self.lifecycle.has_caller_as(Role::Worker) || self.lifecycle.phase() >= Phase::Stopping
        {
            return Ok(None);
        }
        self.register_join(awaited()).map(Some)
    }

    /// Adds the calling worker's wait to the registry. If no other worker could end it, starts one or fails.
    pub(super) fn register_join(
        self: &Arc<Self>,
        awaited: Arc<Awaited>,
    ) -> Result<WaitGuard<'_>, WouldDeadlock> {
        let waiting = self.workers.joins.add(Arc::clone(&awaited));
        let guard = WaitGuard { pool: self, awaited: Contained::new(awaited) };
        if waiting < self.workers.size() || self.is_worker_left() {
            return Ok(guard);
        }
        let started = self.start_worker().map(drop);
        started.unwrap_or_else(|error| trace::spawn_failed(&error));
        if self.is_worker_left() { Ok(guard) } else { Err(WouldDeadlock(())) }
    }

    /// Returns `true` if at least one worker has started and all started workers are waiting without a time limit.
    pub(super) fn has_only_waiting_workers(&self) -> bool {
        let waiting = self.workers.joins.len();
        waiting > 0 && waiting >= self.workers.size()
    }

    /// Returns `true` if at least one started worker is not in a stuck wait.
    fn is_worker_left(&self) -> bool {
        let all = self.workers.joins.all();
        let stuck = all.iter().filter(|awaited| awaited(!self.is_driven)).count();
        let is_left = stuck < self.workers.size();
        discard(all);
        is_left
    }
}

impl fmt::Debug for WaitGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitGuard").finish_non_exhaustive()
    }
}

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        let Pool { workers, queue, .. } = self.pool;
        workers.joins.remove(&self.awaited);
        // A worker that stayed because all others waited may retire now.
        workers.joins_decreased(queue);
    }
}
