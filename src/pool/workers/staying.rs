//! Who stays: idle workers that sleep without a limit, because of what they have seen.
//!
//! A worker that may go wakes up after the keep-alive. One that may not has nothing to wake for, so
//! it sleeps until it is roused; and an idle pool makes no wake-ups. What it has seen may change,
//! and then somebody has to let it ask again. There are two reasons to stay:
//!
//! * **Tasks wait**, and too few others are idle. That is over when there are fewer tasks. Whoever
//!   takes one out that is not run looks (`Pool::has_removed`), and whoever has run one, when it
//!   becomes idle itself: not before, because a periodic task then waits again.
//! * **All others wait for tasks** to end. That is over when one of them no longer does, or when
//!   there is another worker.
//!
//! # Why nobody stays for what is no more
//!
//! A worker that stays notes why, and *then* looks; a thread that changes something does so, and
//! then reads the note.
//! What is looked at stands behind locks. If the look came before the change the note was made
//! before it, and is found; else the look has seen the change. As the reason is known only after
//! the look, the note says at first that it may be any ([`suspect`](Staying::suspect)).
//!
//! A note is taken back by whoever finds that it is over, and *everyone* is roused after that: who
//! still has to stay makes a new one.

use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// For more tasks than this nobody stays: for the first two the queue has a leader and a deputy,
/// who are awake when these are due. A third that is due with them is started for
/// (`Pool::relieve`).
pub(super) const MOST: usize = 2;

/// See the [module](self). Notes are made under the crew's lock.
#[derive(Default)]
pub(in crate::pool) struct Staying {
    /// Somebody stays until fewer tasks wait than this.
    tasks: AtomicUsize,
    /// Somebody stays because all others wait for tasks.
    joins: AtomicBool,
}

/// Why a worker has to stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// There are more tasks than others who are idle.
    Tasks { more_than: usize },
    /// All others wait for tasks.
    Joins,
}

impl Staying {
    /// Notes that somebody may have any reason. Gives what was noted before.
    pub(super) fn suspect(&self) -> (usize, bool) {
        // Ordering: the locks behind which it is looked; so everywhere in this file.
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

    /// Whether those who stay for tasks are to ask again: `has_at_least` says whether as many wait.
    #[inline]
    pub(in crate::pool) fn ends_for_tasks(&self, has_at_least: impl FnOnce(usize) -> bool) -> bool {
        let tasks = self.tasks.load(Ordering::Relaxed);
        let is_over = tasks > 0 && !has_at_least(tasks);
        if is_over {
            self.tasks.store(0, Ordering::Relaxed);
        }
        is_over
    }

    /// Whether those who stay because all others wait for tasks are to ask again, now that this is
    /// no longer so.
    pub(in crate::pool) fn ends_beside_joins(&self) -> bool {
        self.joins.load(Ordering::Relaxed) && self.joins.swap(false, Ordering::Relaxed)
    }
}
