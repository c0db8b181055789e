//! Control: the entry of a task that is alive is moved to another deadline.
//!
//! [`PoolRef::control`](super::PoolRef::control) does so on request, under the two locks that re-arming takes and in
//! the same order ([`pool`](super)); [`control`](crate::task) has what that means for the task. After
//! `shutdown_now` nothing is changed any more: the holder of the drained task decides. In a queue that
//! is closed an entry may only come nearer. A shutdown decides by the deadlines that it finds once the
//! queue is closed, so no task that it waits for is put off afterwards. Beside the handles of a task
//! these move entries: a group that lets members go, a wall clock that was set, and a timer that is
//! reset.
//!
//! # The worker for an entry that has come near
//!
//! An entry may come from *never*: that of a task which was paused, held by its group, or on demand. A
//! submission has started a worker for it, but that worker may have retired since, or may run another
//! task. So a thread that has moved an entry does what a submission does for one that it has queued: it
//! wakes a waiter, and then looks whether a worker is left that would come ([`Pool::compensate`]). The
//! rule in [`workers`](super::workers) speaks of tasks with a moment, so one that gets a moment is to
//! that rule a task that has just been queued, and the same argument holds: its head is published before
//! the look.
//!
//! A thread that cannot be started is an event, and the task stays pending: there is no submission to
//! refuse. A worker that is free takes it, and the next step that looks for a worker tries again.

use std::task::Waker;

use super::{Phase, Pool};
use crate::{
    queue::{Reset, Ticket},
    sync::Arc,
    task::{Change, Changed, ChooseDeadline, MoveEntry, Moved, Task},
    trace,
    unwind::{discard, wake_all},
};

impl Pool {
    /// Changes when a task runs that is alive; see the head of the module.
    pub(super) fn change(self: &Arc<Self>, task: &Task, ticket: Ticket, change: Change) -> Changed {
        if self.phase() >= Phase::OwnerDropped {
            discard(change);
            return Changed::default();
        }
        self.with_entry(ticket, |move_entry| task.control(change, &self.clock, move_entry))
    }

    /// Passes what moves the entry of a task to `act`, and calls a worker if the entry was moved.
    pub(super) fn with_entry<A>(
        self: &Arc<Self>,
        ticket: Ticket,
        act: impl FnOnce(&mut MoveEntry<'_>) -> A,
    ) -> A {
        let (done, call) = self.moving(ticket, act);
        self.call_worker(call);
        done
    }

    /// Passes what moves the entry of a task to `act`. The caller makes the call that this returns, once
    /// it holds no lock.
    pub(super) fn moving<A>(
        &self,
        ticket: Ticket,
        act: impl FnOnce(&mut MoveEntry<'_>) -> A,
    ) -> (A, WorkerCall) {
        let mut call = WorkerCall::default();
        let mut move_entry = |slot, choose: &mut ChooseDeadline<'_>| {
            let asked = ticket.moved_to(slot);
            let reset = self.queue.reset(asked, &mut |before, is_open| {
                let (timing, is_put_off) = choose(before);
                (is_open || !is_put_off).then_some(timing)
            });
            match reset {
                Reset::Absent => Moved::Absent,
                Reset::Declined => Moved::Declined,
                Reset::Done(ticket, waker) => {
                    call = WorkerCall { is_needed: true, wake: waker };
                    Moved::To(Some(ticket.slot).filter(|slot| *slot != asked.slot))
                }
            }
        };
        (act(&mut move_entry), call)
    }

    /// Calls a worker for entries that have been moved, as a submission does for one that it has queued:
    /// wakes the waiter that has to know, and starts a worker if none would come. If that fails, the
    /// entries stay where they are, and the next step that looks for a worker tries again.
    pub(super) fn call_worker(self: &Arc<Self>, WorkerCall { is_needed, wake }: WorkerCall) {
        wake_all(wake);
        if is_needed {
            self.compensate().unwrap_or_else(|error| trace::spawn_failed(&error));
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
