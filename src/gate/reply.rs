//! An answer that a gate gives later.
//!
//! The gate keeps the [`Reply`], and the task waits for the [`PendingEntry`]: two ends of one slot, whose lock orders an answer
//! and a task that waits no longer. Whichever comes second finds what the first has left. So an answer reaches
//! the run that it is for, or its lease is left; and it never reaches another run.

use std::{fmt, mem};

use super::{Entry, RunEnd};
use crate::{
    sync::{Arc, Mutex},
    unwind::{discard, shield},
};

/// Returns the two ends of an answer that comes later: the gate keeps the [`Reply`], and returns the [`Entry`].
///
/// Does not block. Costs one allocation.
///
/// ```
/// use std::thread;
/// use punctual::{ScheduledThreadPoolExecutor, gate::{self, Entry}};
///
/// let executor = ScheduledThreadPoolExecutor::new(1);
/// let gate = gate::from_fn(|_| {
///     let (reply, entry) = gate::later();
///     thread::spawn(|| reply.send(Entry::Run)); // it asks another machine
///     entry
/// });
/// assert_eq!(executor.task().gate(gate).submit(|| "it may")?.join()?, "it may");
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[must_use = "the entry is what the gate returns"]
pub fn later() -> (Reply, Entry) {
    let slot = Arc::new(ReplySlot(Mutex::new(ReplyState::Awaited(None))));
    (Reply(Arc::clone(&slot)), Entry::Later(PendingEntry(slot)))
}

/// Answers a question that a gate was asked before. Made by [`later`].
///
/// Dropping it without an answer skips the run, as a panic of the gate does.
#[derive(Debug)]
#[must_use = "dropping it skips the run"]
pub struct Reply(Arc<ReplySlot>);

/// An entry that is still to come. Made by [`later`]. The gate returns it as a part of [`Entry::Later`].
#[derive(Debug)]
pub struct PendingEntry(Arc<ReplySlot>);

struct ReplySlot(Mutex<ReplyState>);

enum ReplyState {
    /// Not there yet. This is called when it is.
    Awaited(Option<Box<dyn FnOnce() + Send>>),
    Given(Entry),
    /// The task has taken it, or waits for it no longer.
    Closed,
}

impl Reply {
    /// Answers, on any thread. The next free worker then acts on the answer. Does not block; it may start a worker.
    ///
    /// If the task waits no longer, since it was cancelled, paused or given another moment, or since its executor is gone,
    /// nothing happens, and a [lease](Entry::Hold) is left as that of a run that did not take place, by this call.
    pub fn send(self, entry: Entry) {
        self.0.answer(entry);
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        // Closed, or answered, unless it was never sent.
        self.0.answer(Entry::Skip);
    }
}

impl ReplySlot {
    fn answer(&self, entry: Entry) {
        let mut answer = self.0.lock();
        let ReplyState::Awaited(call) = &mut *answer else {
            drop(answer);
            return give_back(entry);
        };
        let call = call.take();
        *answer = ReplyState::Given(entry);
        drop(answer);
        if let Some(call) = call {
            call();
        }
    }
}

impl PendingEntry {
    pub(crate) fn is_given(&self) -> bool {
        !matches!(*self.0.0.lock(), ReplyState::Awaited(_))
    }

    /// Takes the answer, if it is there.
    pub(crate) fn take(&self) -> Option<Entry> {
        let mut answer = self.0.0.lock();
        match mem::replace(&mut *answer, ReplyState::Closed) {
            ReplyState::Given(entry) => Some(entry),
            other => {
                *answer = other;
                None
            }
        }
    }

    /// Sets the function that is called by the thread that gives the answer, unless the answer is there already.
    pub(crate) fn when_given(&self, call: impl FnOnce() + Send + 'static) {
        if let ReplyState::Awaited(place) = &mut *self.0.0.lock() {
            *place = Some(Box::new(call));
        }
    }
}

impl Drop for PendingEntry {
    fn drop(&mut self) {
        let answer = mem::replace(&mut *self.0.0.lock(), ReplyState::Closed);
        if let ReplyState::Given(entry) = answer {
            give_back(entry);
        }
    }
}

/// Drops the answer for a run that does not take place. User code: the caller holds no lock.
fn give_back(entry: Entry) {
    if let Entry::Hold(lease) = &entry {
        shield(|| lease.leave(RunEnd::NotRun, None));
    }
    discard(entry);
}

impl fmt::Debug for ReplySlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplySlot").finish_non_exhaustive()
    }
}
