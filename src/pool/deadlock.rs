//! Which workers wait for which tasks, to refuse the wait that would be for ever.
//!
//! A worker that waits for a task without a limit runs nothing meanwhile. Two such waits can be
//! seen to have no end:
//!
//! * a task that waits for itself (`Pool::enter_join` looks for that);
//! * one that would be the last: every other worker already waits, without a limit, for a task
//!   of this pool that has not ended. None of those tasks can end, because each runs on a worker
//!   that waits, or waits for one. If one of them does not run yet, and the pool may have another
//!   worker, that is started, and only if that fails the wait is refused.
//!
//! # Why nobody is refused wrongly
//!
//! A worker is on the list for as long as it waits, and each enters under the lock, so of two that
//! complete the circle only the second sees it whole. It then reads the list, and looks at each
//! awaited task outside the lock. Tasks do not come back from their end: one that has not ended
//! when it is looked at had not ended when the list was read, and its waiter was waiting. If that
//! holds for all, then at that moment all waited.
//!
//! # Why nobody relies on who is leaving
//!
//! A worker that waits is none for the others, so the last one that does not wait does not
//! [retire](super::workers), until one of the others waits no longer or there is another worker. Who
//! waits is on the list before it counts the workers, and who retires reads the list while it keeps
//! the count: one of the two sees the other.
//!
//! # What is not known to have no end
//!
//! Waits with a timeout, or with a token, end by themselves and are not on the list; a task of
//! another pool may be run by that pool's workers; and after `shutdown_now` a task may be run by
//! whoever holds its `DrainedTask`, so from then on nobody is refused. A task that has a time limit
//! ends by it, and one that the rejection handler has kept may be run in any thread: a wait for
//! such a task is on the list, because its worker runs nothing meanwhile, but it is no reason to
//! refuse anybody ([`is_stuck`]).

use super::Pool;
use crate::{
    TaskState, WouldDeadlock,
    sync::{Arc, Mutex},
    task::Runnable,
    trace,
    unwind::discard,
};

/// The tasks that workers wait for.
pub(super) struct JoinRegistry(Mutex<Vec<Arc<dyn Runnable>>>);

/// Who is left if another worker waits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    Somebody,
    /// Nobody, but what is waited for may be run by a worker that the pool may have.
    OneToBeStarted,
    Nobody,
}

/// One worker that waits; ends with its drop.
pub(crate) struct JoinGuard<'a> {
    pool: &'a Pool,
    task: Arc<dyn Runnable>,
}

impl JoinRegistry {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// How many workers wait.
    pub(super) fn len(&self) -> usize {
        self.0.lock().len()
    }
}

/// Whether a task has not ended, and only a worker of its pool can bring it to its end. Others may
/// cancel it, but nobody can know that they will.
pub(super) fn is_stuck(task: &dyn Runnable) -> bool {
    !task.state().is_done() && !task.may_end_without_worker()
}

impl Pool {
    /// Puts the calling worker on the list, unless nobody would be left.
    pub(super) fn register_join(
        self: &Arc<Self>,
        task: Arc<dyn Runnable>,
    ) -> Result<JoinGuard<'_>, WouldDeadlock> {
        let mut awaited = self.joins.0.lock();
        awaited.push(Arc::clone(&task));
        let waiting = awaited.len();
        drop(awaited);
        let joining = JoinGuard { pool: self, task };
        if waiting < self.workers.live() {
            return Ok(joining);
        }
        match self.left_by_joins() {
            Left::Somebody => Ok(joining),
            Left::Nobody => Err(WouldDeadlock(())),
            Left::OneToBeStarted => {
                let started = self.start_worker(|| self.workers.wanted()).map(drop);
                started.unwrap_or_else(|error| trace::spawn_failed(&error));
                let is_left = self.left_by_joins() == Left::Somebody;
                if is_left { Ok(joining) } else { Err(WouldDeadlock(())) }
            }
        }
    }

    /// Who does not wait for a task.
    fn left_by_joins(&self) -> Left {
        let all = self.joins.0.lock().clone();
        let stuck = all.iter().filter(|task| is_stuck(&***task));
        let stuck: Vec<_> = stuck.map(|task| task.state()).collect();
        let live = self.workers.live();
        discard(all);
        if stuck.len() < live {
            Left::Somebody
        } else if live < self.workers.wanted() && stuck.contains(&TaskState::Scheduled) {
            Left::OneToBeStarted
        } else {
            Left::Nobody
        }
    }
}

impl Drop for JoinGuard<'_> {
    fn drop(&mut self) {
        let mut awaited = self.pool.joins.0.lock();
        if let Some(index) = awaited.iter().position(|task| Arc::ptr_eq(task, &self.task)) {
            // Not the last handle: the one who waits has one.
            awaited.swap_remove(index);
        }
        drop(awaited);
        // Who stayed because it was the last that did not wait may go now.
        if self.pool.workers.staying().ends_beside_joins() {
            self.pool.queue.reconsider();
        }
    }
}
