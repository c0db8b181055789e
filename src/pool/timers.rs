//! The entries of timers ([`crate::timer`]).
//!
//! A timer has nobody else who would own its node: the queue owns it alone, and the timer knows its entry
//! by the ticket. So it can be put in, moved and taken out with the queue's lock and no other.
//!
//! An entry that is not in the queue any more has gone off, or the pool has ended it. A timer that finds it
//! gone reads the clock *afterwards*: if the deadline has not come by then, it is the pool that has ended
//! it, since a worker takes no entry before its deadline.

use super::{
    Phase, Pool,
    admission::{Arrival, Permit},
};
use crate::{
    CancelReason, RejectionReason,
    entry::{Moved, Ticket},
    sync::Arc,
    task::Task,
    time::Timestamp,
    unwind::discard,
};

impl Pool {
    /// Puts an entry into the queue. It takes a permit even if that is one
    /// too many, and no rejection handler is asked: one that runs the task in the caller would end a wait
    /// too early, and one that blocks would block a thread that polls.
    ///
    /// # Errors
    ///
    /// The reason, if the queue admits it no more, or if there is no worker and none can be started.
    pub(super) fn admit_timer(
        self: &Arc<Self>,
        task: Arc<Task>,
        arrival: Arrival,
    ) -> Result<Ticket, RejectionReason> {
        self.force_acquire_capacity();
        self.offer(task, arrival, Permit::Acquired).map_err(|refused| {
            self.count_rejected();
            discard(refused.task);
            refused.reason
        })
    }

    /// Moves an entry to another deadline. Returns its ticket from then on, which is the same if it may not
    /// be put off because the queue is closed; `None` if it is not in the queue.
    pub(crate) fn move_timer(
        self: &Arc<Self>,
        ticket: Ticket,
        deadline: Timestamp,
    ) -> Option<Ticket> {
        let moved = self.with_entry(ticket, |entry| {
            entry.move_entry(None, &mut |before, is_open| {
                (is_open || deadline <= before).then_some(deadline.into())
            })
        });
        match moved {
            Moved::To(slot) => Some(ticket.moved_to(slot)),
            Moved::Declined => Some(ticket),
            Moved::Absent => None,
        }
    }

    /// Takes an entry out of the queue, if it is there.
    #[inline]
    pub(crate) fn remove_timer(&self, ticket: Ticket) {
        if self.remove(ticket) {
            self.shutdown.log().cancelled(ticket.sequence, || None);
        }
    }

    /// Returns why an entry is gone whose deadline has not come; `None` if it is in the queue. How the pool
    /// was shut down cannot be told once it has terminated, so that is not part of the answer.
    pub(crate) fn end_of_timer(&self, ticket: Ticket) -> Option<CancelReason> {
        if self.queue.deadline(ticket).is_some() {
            return None;
        }
        let was_shut_down = self.phase() > Phase::Running;
        Some(if was_shut_down { CancelReason::Shutdown } else { CancelReason::Rejected })
    }
}
