//! Runs that were put off beside their entries, as those see them who look at the queue and take nothing.
//!
//! A worker finds out by itself that the run for which it has taken a task was put off, and queues the task again
//! ([`layers`](crate::layers::PutOff)). A driver that says when it has to be called next, and a watch that says which task
//! waits for a worker, look at the first entry alone. They have it follow first ([`Pool::settle_first`]), so that they speak of
//! runs that are to take place. A pool that has never had an extender is asked for one flag.
//!
//! # A shutdown
//!
//! A shutdown ends what is not kept by when the entries are due, and then looks at the entries that have come up and were put off
//! ([`Pool::remove_listed_where`]). It looks and removes in two steps, since a task is asked under its own lock. A worker that
//! takes the task between the two finds out by itself, and the closed queue does not admit the task for the later moment. A
//! caller that brings the run forward between the two is concurrent with the shutdown, and the task ends as if the request had
//! come first and the run been put off again: it is cancelled, and does not run.

use super::{Pool, control::QueuedEntry};
use crate::{
    entry::{EntryMover, Ticket},
    layers::AtShutdown,
    queue::SnapshotEntry,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Task,
    time::Timestamp,
    unwind::discard,
};

/// Whether some task of a pool may be put off beside its entry.
#[derive(Default)]
pub(crate) struct Extensions(AtomicBool);

impl Extensions {
    /// Notes that one may be from now on.
    pub(crate) fn note(&self) {
        // Ordering: relaxed. A thread that reads an older value sees the queue as before the extension.
        self.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_any(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Pool {
    /// Has the entries of a list, which is in order, show when their tasks are due, and brings them into order by that.
    pub(crate) fn settle_listed(&self, listed: &mut [SnapshotEntry<Arc<Task>>]) {
        if self.extensions.is_any() {
            for one in &mut *listed {
                one.deadline = self.due_of(&*one.element, one.ticket, one.deadline);
            }
            listed.sort_by_key(|one| (one.deadline, one.ticket.sequence));
        }
    }

    /// Returns when a task is due whose entry was due then when it was looked at.
    pub(crate) fn due_of(&self, task: &Task, ticket: Ticket, entry: Timestamp) -> Timestamp {
        let (mut entry, mut due) = (entry, task.due_by(entry));
        while self.extensions.is_any() {
            // If the entry has followed its run meanwhile, which was put off, the two do not belong together.
            match task.find_entry(ticket, |ticket| self.queue.deadline(ticket)) {
                Some(moved) if moved != entry => (entry, due) = (moved, task.due_by(moved)),
                _ => break,
            }
        }
        due
    }

    /// Takes those out of the closed queue that are unwanted by when they are due, and not by when their entries are: their
    /// entries have come up, and were to follow. If `asks_each` it takes out all that are unwanted. Each comes with its
    /// sequence.
    pub(super) fn remove_listed_where(
        &self,
        asks_each: bool,
        is_unwanted: impl Fn(Timestamp, AtShutdown) -> bool,
    ) -> Vec<(u64, Arc<Task>)> {
        if !asks_each && !self.extensions.is_any() {
            return Vec::new();
        }
        let mut removed = Vec::new();
        let listed = self.queue.snapshot(Arc::clone);
        for SnapshotEntry { deadline, ticket, element: task, .. } in &listed {
            let due = self.due_of(&**task, *ticket, *deadline);
            if (asks_each || due > *deadline) && is_unwanted(due, task.at_shutdown()) {
                removed.extend(self.queue.remove(*ticket).map(|task| (ticket.sequence, task)));
            }
        }
        // Second: a task that has ended meanwhile is dropped here, and that is user code.
        listed.into_iter().for_each(|entry| discard(entry.element));
        removed
    }

    /// Moves the first entry to where its task is due, if the run was put off, until the first one was not. The head comes no
    /// nearer by that, so no worker has to be started.
    pub(super) fn settle_first(&self) {
        while self.extensions.is_any() {
            let first = self.queue.first_due(Timestamp::NEVER, Arc::clone);
            let Some((_, ticket, task)) = first else { return };
            let follow = |entry: &mut dyn EntryMover| task.follow_extension(self.clock(), entry);
            let (has_followed, call) = QueuedEntry::moving(&self.queue, ticket, follow);
            call.only_wake();
            discard(task);
            if !has_followed {
                return;
            }
        }
    }
}
