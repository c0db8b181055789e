//! Reservations: an element is taken out on trial, and goes back to its place if it is not wanted.
//!
//! A caller that drains the queue into a sink which may be full has an element in hand when it
//! learns that the sink refuses it. Inserting that element anew would put it behind others with the
//! same deadline, and its key would no longer name it. So the element is *reserved*: its key leaves
//! the heap, but its slot stays allocated. Then the reservation is either rolled back, and the
//! element has the same ticket and the same sequence as before, or committed, and the slot is
//! freed.
//!
//! To every other call a reserved element has been taken: it is not counted, not found, and not taken
//! by another thread. But the queue is not finished while there is a reservation, which the queue
//! counts under its lock: a thread that waits at a closed queue goes on waiting, and the end of the
//! last reservation wakes it if there is nothing left to wait for.

use super::{PriorityQueue, SingleQueue, Source};
use crate::{entry::Ticket, time::Timestamp, unwind::wake_all};

/// An element that is out on trial. Dropping this commits: the element is taken for good.
pub(crate) struct Reservation<'a, E> {
    queue: &'a SingleQueue<E>,
    deadline: Timestamp,
    ticket: Ticket,
    is_rolled_back: bool,
}

impl<E> SingleQueue<E> {
    /// Takes the first element out on trial if it was due at `now`.
    pub(crate) fn reserve_due(&self, now: Timestamp) -> Option<(E, Reservation<'_, E>)> {
        let mut heap = self.heap.lock();
        while !heap.settle(now, now) {
            drop(heap);
            heap = self.heap.lock();
        }
        if heap.first_key()?.0 > now {
            return None;
        }
        let (deadline, ticket, element) = heap.change(PriorityQueue::reserve_first)?;
        heap.state_mut().reserved += 1;
        drop(heap);
        Some((element, Reservation { queue: self, deadline, ticket, is_rolled_back: false }))
    }
}

impl<E> Reservation<'_, E> {
    pub(crate) fn deadline(&self) -> Timestamp {
        self.deadline
    }

    pub(crate) fn ticket(&self) -> Ticket {
        self.ticket
    }

    /// Puts the element back, or another one in its place.
    pub(crate) fn roll_back(mut self, element: E) {
        self.is_rolled_back = true;
        let mut heap = self.queue.heap.lock();
        heap.state_mut().reserved -= 1;
        heap.change(|heap| heap.roll_back(self.deadline, self.ticket, element));
        drop(heap);
        wake_all(self.queue.waiters.notify(self.deadline));
    }
}

impl<E> Drop for Reservation<'_, E> {
    /// Commits unless the reservation was rolled back.
    fn drop(&mut self) {
        if !self.is_rolled_back {
            let mut heap = self.queue.heap.lock();
            heap.state_mut().reserved -= 1;
            heap.change(|heap| heap.commit(self.ticket));
            drop(heap);
            self.queue.notify_all_if_finished();
        }
    }
}
