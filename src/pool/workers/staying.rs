//! Staying: idle workers that sleep without a limit, because of what they have seen.
//!
//! A worker that may retire wakes up after the keep-alive. One that may not has nothing to wake for,
//! so it sleeps until it is woken, and an idle pool makes no wake-ups. What it has seen may change,
//! and then somebody has to have it ask again. There are two reasons to stay:
//!
//! * **Tasks are pending**, and too few others are idle. That is over when there are fewer tasks. A
//!   thread that takes out a task that is not run checks for this (`Pool::entry_removed`), and so
//!   does a worker that has run one, when it becomes idle itself. It does not check before, because
//!   a periodic task is pending again by then.
//! * **All others wait for tasks** to end. That is over when one of them no longer waits, or when
//!   there is another worker.
//!
//! # Why no worker stays for a reason that is gone
//!
//! A worker that stays notes the reason and looks *then*; a thread that changes something does so
//! and reads the note then. What is looked at is behind locks. If the look came before the change,
//! the note was made before the change too, and is found; otherwise the look has seen the change.
//! Since the reason is known only after the look, the note says at first that it may be either one
//! ([`note_any`](Staying::note_any)).
//!
//! A note is withdrawn by the thread that finds that its reason is gone, and *all* workers are woken
//! after that; one that still has to stay makes a new note.

use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The most workers that stay for pending tasks. For the first two tasks the queue has a leader and a
/// deputy, which are awake when these are due. For a third that is due with them a worker is started
/// (`Pool::compensate`).
pub(super) const MOST: usize = 2;

/// See the [module](self). Notes are made under the lock of the workers.
#[derive(Default)]
pub(in crate::pool) struct Staying {
    /// A worker stays until fewer tasks are pending than this; zero if none does.
    tasks: AtomicUsize,
    /// A worker stays because all others wait for tasks.
    joins: AtomicBool,
}

/// Why a worker has to stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// There are more tasks than other idle workers.
    Tasks { more_than: usize },
    /// All other workers wait for tasks.
    Joins,
}

impl Staying {
    /// Notes that a worker may have either reason. Returns what was noted before.
    pub(super) fn note_any(&self) -> (usize, bool) {
        // Relaxed, in all of this file: ordered by the locks behind which the workers look.
        let noted = (self.tasks.load(Ordering::Relaxed), self.joins.load(Ordering::Relaxed));
        self.tasks.store(MOST, Ordering::Relaxed);
        self.joins.store(true, Ordering::Relaxed);
        noted
    }

    /// Notes the reason, if there is one, beside what was noted before.
    pub(super) fn note(&self, (tasks, joins): (usize, bool), reason: Option<Reason>) {
        let own = match reason {
            Some(Reason::Tasks { more_than }) => more_than + 1,
            _ => 0,
        };
        self.tasks.store(tasks.max(own), Ordering::Relaxed);
        self.joins.store(joins || reason == Some(Reason::Joins), Ordering::Relaxed);
    }

    /// Returns `true` if the workers that stay for tasks are to ask again. `has_at_least` returns
    /// whether that many tasks are pending.
    #[inline]
    pub(in crate::pool) fn ends_for_tasks(&self, has_at_least: impl FnOnce(usize) -> bool) -> bool {
        let tasks = self.tasks.load(Ordering::Relaxed);
        let is_over = tasks > 0 && !has_at_least(tasks);
        if is_over {
            self.tasks.store(0, Ordering::Relaxed);
        }
        is_over
    }

    /// Returns `true` if the workers that stay because all others wait for tasks are to ask again.
    /// Called when this is no longer so.
    pub(in crate::pool) fn ends_beside_joins(&self) -> bool {
        self.joins.load(Ordering::Relaxed) && self.joins.swap(false, Ordering::Relaxed)
    }
}
