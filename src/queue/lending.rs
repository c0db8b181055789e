//! Lending: an element goes out on trial, and comes back to its place if it is not wanted.
//!
//! Who drains the queue into something that can be full has an element in hand when it learns
//! that. To insert it again would put it behind others of its moment, and its key would be dead.
//! So it is *lent*: its key leaves the heap, but its slot is kept for it. Then it either comes
//! back, under the same ticket and with the same number, or its slot is freed.
//!
//! While it is out it is taken, for everyone who looks: it is not counted, not found, not taken
//! by another. But the queue is not at its end while something is out, which the stripe counts:
//! who waits at a closed queue waits on, and whoever ends the last loan ends the waiting, too.
//!
//! Only plain queues lend, so there is one stripe to speak of.

use super::{DelayedWorkQueue, Ticket};
use crate::{time::Timestamp, unwind::wake_all};

/// An element that is out on loan. It is taken for good if this is dropped.
pub(crate) struct Loan<'a, E> {
    queue: &'a DelayedWorkQueue<E>,
    deadline: Timestamp,
    ticket: Ticket,
    is_over: bool,
}

impl<E> DelayedWorkQueue<E> {
    /// Takes the first element out on trial, if it was due at `now`.
    pub(crate) fn lend_due(&self, now: Timestamp) -> Option<(E, Loan<'_, E>)> {
        let (deadline, ticket, element) = self.stripes[0].lock().lend_due(now)?;
        Some((element, Loan { queue: self, deadline, ticket, is_over: false }))
    }
}

impl<E> Loan<'_, E> {
    pub(crate) fn deadline(&self) -> Timestamp {
        self.deadline
    }

    pub(crate) fn ticket(&self) -> Ticket {
        self.ticket
    }

    /// Puts the element back, or another one in its place.
    pub(crate) fn put_back(mut self, element: E) {
        self.is_over = true;
        self.queue.stripes[0].lock().put_back_lent(self.deadline, self.ticket, element);
        wake_all(self.queue.takers.rouse(self.deadline));
    }
}

impl<E> Drop for Loan<'_, E> {
    fn drop(&mut self) {
        if !self.is_over {
            self.queue.stripes[0].lock().forget_lent(self.ticket);
            self.queue.end_if_finished();
        }
    }
}
