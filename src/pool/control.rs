//! Control: the entry of a task that is alive is moved to another deadline.
//!
//! [`PoolRef::control`](super::PoolRef::control) does so on request, under the two locks that queuing a task
//! again takes and in the same order ([`pool`](super)); [`layers::control`](crate::layers) says what that
//! means for the task. Once the owner has been dropped, or the pool was shut down at once, nothing is changed
//! any more: what is pending is due, or its holder decides. In a queue that is closed an entry may only come
//! nearer: a shutdown decides by the deadlines that it finds once the queue is closed. A group that lets
//! members go moves entries as well, and so does a timer that is reset.
//!
//! # The worker for an entry that has come near
//!
//! An entry may have been parked: that of a task which was paused, waited for its group, or is on demand. No
//! worker stays for it. So a thread that has moved an entry does what a submission does for one that it has
//! queued: it wakes a waiter, and then looks whether a worker is left that would come ([`Pool::compensate`]).
//! To the rule in [`workers`](super::workers) a task that gets a moment has just been queued, and the same
//! argument holds.
//!
//! A thread that cannot be started is an event, and the task stays pending: a worker that is free takes it,
//! and the next step that looks for a worker tries again. Once the executor is shut down there may be no such
//! step. Then, if no worker lives, the task ends as one that the shutdown has not kept
//! (`Pool::end_stranded`); otherwise the executor would never end.

use std::task::Waker;

use super::Pool;
use crate::{
    entry::{EntryMover, Moved, Ticket, Timing},
    queue::DelayedWorkQueue,
    sync::Arc,
    task::Task,
    time::Timestamp,
    unwind::wake_all,
};

impl Pool {
    /// Passes the mover of a task's entry to `act`, and calls a worker if the entry was moved.
    pub(crate) fn with_entry<A>(
        self: &Arc<Self>,
        ticket: Ticket,
        act: impl FnOnce(&mut dyn EntryMover) -> A,
    ) -> A {
        let (done, call) = QueuedEntry::moving(&self.queue, ticket, act);
        self.call_worker(call);
        done
    }

    /// Calls a worker for entries that have been moved: wakes the waiter that has to know, and starts a
    /// worker if none would come.
    pub(super) fn call_worker(self: &Arc<Self>, WorkerCall { is_needed, wake }: WorkerCall) {
        wake_all(wake);
        if is_needed {
            self.compensate().unwrap_or_else(|error| self.go_without_worker(&error));
        }
    }
}

/// The wake-up that a thread owes after it has moved entries; see [`Pool::call_worker`].
#[must_use = "a task that is due would wait"]
#[derive(Default)]
pub(super) struct WorkerCall {
    is_needed: bool,
    wake: Option<Waker>,
}

/// The entry of one task, as the task moves it.
pub(super) struct QueuedEntry<'a> {
    queue: &'a DelayedWorkQueue<Arc<Task>>,
    /// The one with which the task was submitted.
    ticket: Ticket,
    call: WorkerCall,
}

impl<'a> QueuedEntry<'a> {
    /// Passes the entry of a task to `act`, which may move it. The caller makes the call that this returns, once
    /// it holds no lock.
    pub(super) fn moving<A>(
        queue: &'a DelayedWorkQueue<Arc<Task>>,
        ticket: Ticket,
        act: impl FnOnce(&mut dyn EntryMover) -> A,
    ) -> (A, WorkerCall) {
        let mut entry = Self { queue, ticket, call: WorkerCall::default() };
        let done = act(&mut entry);
        (done, entry.call)
    }
}

impl EntryMover for QueuedEntry<'_> {
    fn move_entry(
        &mut self,
        slot: Option<u32>,
        choose: &mut dyn FnMut(Timestamp, bool) -> Option<Timing>,
    ) -> Moved {
        let (moved, wake) = self.queue.reset(self.ticket.moved_to(slot), choose);
        if let Moved::To(_) = moved {
            self.call = WorkerCall { is_needed: true, wake };
        }
        moved
    }
}
