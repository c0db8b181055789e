//! A stripe of a [`DelayedWorkQueue`](super::DelayedWorkQueue): a heap and its lock. The stripe writes its number into
//! the sequence number of each element that it admits:
//!
//! ```text
//!   sequence = stamp of the submission (60 bits) │ number of the stripe (4 bits)
//! ```
//!
//! The stamp is the clock's ([`Clock::submission_stamp`](crate::time::Clock::submission_stamp)) or, if larger, the
//! stripe's last stamp plus one. So no sequence number is used twice, a ticket names its stripe, and sequence numbers
//! order the submissions to different stripes. (60 bits of nanoseconds last for 36 years.)
//!
//! # Parked entries
//!
//! A task that waits for its turn, or that runs on request, is *parked* in a second heap: a thread has to move it to
//! the first heap before the task can run. The first heap alone decides which entry is next, how long a thread sleeps
//! and how many idle workers stay. The entries of both heaps are pending, and a shutdown treats them alike. A parked
//! entry is still *due* at the moment for which its run was planned; a task that runs on request is never due.

use super::super::{
    AdmissionState, InsertError, QueueEntry, RefusedElement, UnderLock,
    priority_queue::{CAPACITY, PriorityQueue},
    shared_heap::{LockedHeap, SharedHeap},
};
use crate::{
    entry::{Moved, Requeue, Ticket, Timing},
    time::Timestamp,
};

pub(super) const MOST: usize = 1 << NUMBER_BITS;
const NUMBER_BITS: u32 = 4;
const LATEST: u64 = u64::MAX >> NUMBER_BITS;

pub(super) type Stripe<E> = SharedHeap<E, StripeState<E>>;

pub(super) type LockedStripe<'a, E> = LockedHeap<'a, E, StripeState<E>>;

pub(in crate::queue) struct StripeState<E> {
    number: u64,
    last_stamp: u64,
    /// How many offers were admitted; `requeued` counts the elements queued again.
    pub(super) offered: u64,
    pub(super) requeued: u64,
    pub(super) parked: PriorityQueue<E>,
}

pub(super) fn new<E>(number: usize) -> Stripe<E> {
    let (parked, stripe) = (PriorityQueue::new(), number as u64);
    let state = StripeState { number: stripe, last_stamp: 0, offered: 0, requeued: 0, parked };
    SharedHeap::new(number, state)
}

pub(super) fn number_of(sequence: u64) -> usize {
    sequence as usize & (MOST - 1)
}

impl<E> LockedStripe<'_, E> {
    #[inline(always)]
    pub(super) fn offer(
        &mut self,
        admission: &AdmissionState,
        stamp: u64,
        timing: Timing,
        element: UnderLock<E>,
    ) -> Result<(Ticket, bool), RefusedElement<E>> {
        let sequence = self.next_sequence(stamp);
        if !admission.is_open() || self.pending() >= CAPACITY {
            let why = if admission.is_open() { InsertError::Full } else { InsertError::Closed };
            return Err(RefusedElement { why, sequence, element: UnderLock::into_inner(element) });
        }
        self.contents.state.offered += 1;
        Ok(self.place(timing, sequence, element))
    }

    #[inline]
    pub(super) fn next_sequence(&mut self, stamp: u64) -> u64 {
        let state = &mut self.contents.state;
        let stamp = stamp.max(state.last_stamp + 1).min(LATEST);
        state.last_stamp = stamp;
        stamp << NUMBER_BITS | state.number
    }

    pub(super) fn requeue(
        &mut self,
        admission: &AdmissionState,
        (timing, sequence): (Timing, u64),
        why: Requeue,
        element: E,
    ) -> Result<Ticket, RefusedElement<E>> {
        if admission.is_closed_to(why) {
            return Err(RefusedElement { why: InsertError::Closed, sequence, element });
        }
        self.contents.state.requeued += 1;
        Ok(self.restore(timing, sequence, element))
    }

    /// Puts an element into the heap for its `timing`. Returns its ticket, and `true` if its deadline became the head.
    #[inline(always)]
    fn place(&mut self, timing: Timing, sequence: u64, element: UnderLock<E>) -> (Ticket, bool) {
        match timing {
            Timing::At(deadline) => self.insert(deadline, sequence, element),
            Timing::Parked { due } => (self.park(due, sequence, element), false),
        }
    }

    #[cold]
    fn park(&mut self, due: Timestamp, sequence: u64, element: UnderLock<E>) -> Ticket {
        self.contents.state.parked.insert(due, sequence, element)
    }

    pub(super) fn restore(&mut self, timing: Timing, sequence: u64, element: E) -> Ticket {
        self.place(timing, sequence, UnderLock::new(element)).0
    }

    pub(super) fn move_to(&mut self, ticket: Ticket, timing: Timing) -> Moved {
        if let Timing::At(deadline) = timing {
            if self.change(|heap| heap.reset(ticket, deadline)) {
                return Moved::To(None);
            }
        }
        self.take_out(ticket).map_or(Moved::Absent, |entry| {
            Moved::To(Some(self.restore(timing, entry.sequence, entry.element).slot))
        })
    }

    pub(super) fn due(&self, ticket: Ticket) -> Option<Timestamp> {
        self.deadline(ticket).or_else(|| self.contents.state.parked.deadline(ticket))
    }

    #[inline(never)]
    pub(super) fn take_out(&mut self, ticket: Ticket) -> Option<QueueEntry<E>> {
        let parked = |stripe: &mut Self| Some(stripe.contents.state.parked.remove(ticket)?.0);
        self.remove(ticket).or_else(|| parked(self)).map(QueueEntry::owned)
    }

    pub(super) fn first_parked(&mut self) -> Option<(Timestamp, u64)> {
        let parked = &mut self.contents.state.parked;
        while !parked.is_settled(Timestamp::NEVER) {
            parked.bring_near();
        }
        parked.first_key()
    }

    /// Returns how many entries there are, parked or not.
    pub(super) fn pending(&self) -> usize {
        self.len() + self.contents.state.parked.len()
    }
}

#[cfg(test)]
#[cfg(not(any(shuttle, loom)))]
mod tests {
    use super::*;

    /// Until the stamp is the largest possible, sequence numbers grow even if the clock stands still or goes back.
    #[test]
    fn a_sequence_is_used_once_whatever_the_clock_says() {
        let stripe = new::<()>(3);
        let sequences = [5, 5, 4, 9].map(|stamp| stripe.lock().next_sequence(stamp));
        assert_eq!(sequences, [5, 6, 7, 9].map(|stamp| stamp << 4 | 3));
        assert_eq!(stripe.lock().next_sequence(u64::MAX), u64::MAX << 4 | 3);
        assert!(sequences.into_iter().all(|sequence| number_of(sequence) == 3));
    }
}
