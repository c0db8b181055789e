//! A stripe: one of the heaps of a [`DelayedWorkQueue`](super::DelayedWorkQueue).
//!
//! The queue has several of these, so that threads that submit at the same time do not contend. A
//! stripe knows nothing of the others but its own number, which it writes into the sequence of
//! each element that it admits:
//!
//! ```text
//!   sequence = stamp of the submission (60 bits) │ number of the stripe (4 bits)
//! ```
//!
//! The stamp is the clock's (see [`Clock::submission_stamp`](crate::time::Clock::submission_stamp)).
//! If two are equal, or the clock should stand still, it is one more than the stripe's last stamp.
//! So no sequence is used twice, a ticket itself tells which stripe its element is in, and between
//! elements of different stripes the sequence tells which one was submitted first. (60 bits of
//! nanoseconds are 36 years, counted from when the clock was made.)
//!
//! # Held entries
//!
//! An entry that is held ([`Timing`]) is in the heap with a deadline that never comes. When it is due stands in
//! a table beside the heap, which is written in the step that writes the deadline, under the same lock. So a
//! thread that has this lock, and no task's, knows when each entry is due. A shutdown needs that: it decides
//! about all entries of a stripe in one step, and between two steps user code could move an entry from the
//! one to the other.

use std::{collections::BTreeMap, mem};

use super::super::{
    AdmissionState, QueueEntry, Refusal, RefusedElement, Return, SnapshotEntry, Ticket, UnderLock,
    priority_queue::PriorityQueue,
    shared_heap::{LockedHeap, SharedHeap},
};
use crate::time::{Timestamp, Timing};

/// The largest number of stripes that a queue can have.
pub(super) const MOST: usize = 1 << NUMBER_BITS;
const NUMBER_BITS: u32 = 4;
const LATEST: u64 = u64::MAX >> NUMBER_BITS;

/// See the [module](self).
pub(super) type Stripe<E> = SharedHeap<E, StripeState>;

/// A stripe whose lock is held.
pub(super) type LockedStripe<'a, E> = LockedHeap<'a, E, StripeState>;

/// What a stripe keeps under its lock, beside the heap.
pub(in crate::queue) struct StripeState {
    number: u64,
    last_stamp: u64,
    /// How many elements have been admitted, without those that came back.
    offered: u64,
    /// How many elements have been admitted again.
    returned: u64,
    held: HeldEntries,
}

/// When the held entries of a stripe are due, by their sequences.
#[derive(Default)]
struct HeldEntries(BTreeMap<u64, Timestamp>);

impl HeldEntries {
    /// Notes when an entry is due, if it is held. Most are not, and most stripes have none that is.
    #[inline]
    fn note(&mut self, sequence: u64, timing: Timing) {
        if timing.is_held() || !self.0.is_empty() {
            self.note_held(sequence, timing);
        }
    }

    #[cold]
    fn note_held(&mut self, sequence: u64, timing: Timing) {
        if timing.is_held() {
            self.0.insert(sequence, timing.due);
        } else {
            self.0.remove(&sequence);
        }
    }

    /// Returns when an entry with this key is due.
    fn due(&self, (deadline, sequence): (Timestamp, u64)) -> Timestamp {
        if deadline < Timestamp::NEVER {
            return deadline;
        }
        self.0.get(&sequence).copied().unwrap_or(deadline)
    }

    /// Forgets an entry that has left.
    #[inline]
    fn forget(&mut self, sequence: u64) {
        if !self.0.is_empty() {
            self.forget_held(sequence);
        }
    }

    #[cold]
    fn forget_held(&mut self, sequence: u64) {
        self.0.remove(&sequence);
    }
}

pub(super) fn new<E>(number: usize) -> Stripe<E> {
    let state = StripeState {
        number: number as u64,
        last_stamp: 0,
        offered: 0,
        returned: 0,
        held: HeldEntries::default(),
    };
    SharedHeap::new(number, state)
}

/// Returns the number of the stripe into which an element with this sequence went.
pub(super) fn number_of(sequence: u64) -> usize {
    sequence as usize & (MOST - 1)
}

impl<E> LockedStripe<'_, E> {
    /// Admits an element with this stamp, if the queue does. Returns its ticket, and `true` if it
    /// became the stripe's head.
    #[inline(always)]
    pub(super) fn offer(
        &mut self,
        admission: &AdmissionState,
        stamp: u64,
        deadline: Timestamp,
        element: UnderLock<E>,
    ) -> Result<(Ticket, bool), RefusedElement<UnderLock<E>>> {
        let sequence = self.next_sequence(stamp);
        if !admission.is_open() {
            return Err(RefusedElement { why: Refusal::Closed, sequence, element });
        }
        let inserted = self.insert(deadline, sequence, element);
        let full = |element| RefusedElement { why: Refusal::Full, sequence, element };
        let inserted = inserted.map_err(full)?;
        self.state_mut().offered += 1;
        Ok(inserted)
    }

    /// Uses up and returns the next sequence, for a submission with this stamp.
    #[inline]
    pub(super) fn next_sequence(&mut self, stamp: u64) -> u64 {
        let state = self.state_mut();
        let stamp = stamp.max(state.last_stamp + 1).min(LATEST);
        state.last_stamp = stamp;
        stamp << NUMBER_BITS | state.number
    }

    /// Admits an element that was taken out before, if the queue does.
    pub(super) fn offer_again(
        &mut self,
        admission: &AdmissionState,
        (timing, sequence): (Timing, u64),
        why: Return,
        element: E,
    ) -> Result<Ticket, RefusedElement<E>> {
        if admission.is_closed_to(why) {
            return Err(RefusedElement { why: Refusal::Closed, sequence, element });
        }
        let inserted = self.put_back(timing, sequence, element);
        let full = |element| RefusedElement { why: Refusal::Full, sequence, element };
        let ticket = inserted.map_err(full)?;
        self.state_mut().returned += 1;
        Ok(ticket)
    }

    /// Inserts an element that has been here before; returns it if there is no room.
    pub(super) fn put_back(
        &mut self,
        timing: Timing,
        sequence: u64,
        element: E,
    ) -> Result<Ticket, E> {
        let element = UnderLock::new(element);
        let inserted = self.insert(timing.deadline, sequence, element);
        let (ticket, _) = inserted.map_err(UnderLock::into_inner)?;
        self.state_mut().held.note(sequence, timing);
        Ok(ticket)
    }

    /// Moves an entry, which is there.
    pub(super) fn move_to(&mut self, ticket: Ticket, timing: Timing) {
        self.reset(ticket, timing.deadline);
        self.state_mut().held.note(ticket.sequence, timing);
    }

    /// Returns when an entry is due, held or not.
    pub(super) fn due(&self, ticket: Ticket) -> Option<Timestamp> {
        let deadline = self.deadline(ticket)?;
        Some(self.state().held.due((deadline, ticket.sequence)))
    }

    /// Takes an entry out, due or not.
    #[inline]
    pub(super) fn take_out(&mut self, ticket: Ticket) -> Option<QueueEntry<UnderLock<E>>> {
        let entry = self.remove(ticket);
        if entry.is_some() {
            self.state_mut().held.forget(ticket.sequence);
        }
        entry
    }

    /// Takes the first entry out, due or not.
    pub(super) fn take_first_out(&mut self) -> Option<QueueEntry<E>> {
        let entry = self.pop()?;
        self.state_mut().held.forget(entry.sequence);
        Some(entry)
    }

    /// Takes the entries out that are `unwanted` by when they are due.
    pub(super) fn take_out_where(
        &mut self,
        mut unwanted: impl FnMut(Timestamp, &E) -> bool,
    ) -> Vec<QueueEntry<E>> {
        let mut held = mem::take(&mut self.state_mut().held);
        let removed = self.remove_where(|key, element| unwanted(held.due(key), element));
        removed.iter().for_each(|entry| held.forget(entry.sequence));
        self.state_mut().held = held;
        removed
    }

    pub(super) fn take_all_out(&mut self) -> PriorityQueue<E> {
        self.state_mut().held = HeldEntries::default();
        self.remove_all()
    }

    /// Iterates over all entries, with when each is due, in no particular order.
    pub(super) fn listed<V>(
        &self,
        view: impl Fn(&E) -> V,
    ) -> impl Iterator<Item = SnapshotEntry<V>> {
        let held = &self.state().held;
        self.entries(view).map(|one| {
            let deadline = held.due((one.deadline, one.ticket.sequence));
            SnapshotEntry { deadline, ..one }
        })
    }

    /// Returns how many elements have been admitted, and how many of them again.
    pub(super) fn admitted(&self) -> (u64, u64) {
        (self.state().offered, self.state().returned)
    }
}

#[cfg(test)]
#[cfg(not(any(shuttle, loom)))]
mod tests {
    use super::*;

    /// Sequences grow also if the clock stands still, goes back, or is at its end.
    #[test]
    fn a_sequence_is_used_once_whatever_the_clock_says() {
        let stripe = new::<()>(3);
        let sequences = [5, 5, 4, 9].map(|stamp| stripe.lock().next_sequence(stamp));
        assert_eq!(sequences, [5, 6, 7, 9].map(|stamp| stamp << 4 | 3));
        assert_eq!(stripe.lock().next_sequence(u64::MAX), u64::MAX << 4 | 3);
        assert!(sequences.into_iter().all(|sequence| number_of(sequence) == 3));
    }
}
