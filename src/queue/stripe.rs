//! A stripe: one heap, its lock, and the deadline of its head for everyone to read.
//!
//! The queue has several of these, so that threads that submit at once do not meet. A stripe
//! knows nothing of the others but its own number, which it writes into the sequence of every
//! element that comes in:
//!
//! ```text
//!   sequence = moment of submission (60 bits) │ number of the stripe (4 bits)
//! ```
//!
//! The moment is the clock's (see [`Clock::moment`](crate::time::Clock::moment)); where two fall
//! together, or a clock were to stand still, it is one more than the last one of this stripe. So
//! no sequence is used twice, a ticket says by itself where its element is, and between elements
//! of different stripes the sequence tells which was submitted first. (60 bits of nanoseconds
//! are 36 years, counted from when the clock was made.)

use super::{
    Admission, Refusal, Refused,
    head::Head,
    heap::{DelayHeap, Entry, Ticket},
};
use crate::{
    sync::{Mutex, MutexGuard, rank},
    time::Timestamp,
};

/// The most stripes a queue can have.
pub(super) const MOST: usize = 1 << NUMBER_BITS;
const NUMBER_BITS: u32 = 4;
const LATEST: u64 = u64::MAX >> NUMBER_BITS;

/// See the [module](self).
pub(super) struct Stripe<E> {
    head: Head,
    inner: Mutex<Inner<E>, { rank::STRIPE }>,
}

struct Inner<E> {
    heap: DelayHeap<E>,
    admission: Admission,
    number: u64,
    last_moment: u64,
    /// How many elements have been admitted, and in again.
    offered: u64,
    returned: u64,
    /// How many were taken from here, and not by way of the ready list.
    taken: u64,
    /// How many are out on loan.
    lent: usize,
}

/// A stripe whose lock is held. What changes the heap also publishes the head.
pub(super) struct Locked<'a, E> {
    head: &'a Head,
    inner: MutexGuard<'a, Inner<E>>,
}

/// The stripe that a ticket's element is in.
pub(super) fn number_of(sequence: u64) -> usize {
    sequence as usize & (MOST - 1)
}

impl<E> Stripe<E> {
    pub(super) fn new(number: usize) -> Self {
        let inner = Inner {
            heap: DelayHeap::new(),
            admission: Admission::Open,
            number: number as u64,
            last_moment: 0,
            offered: 0,
            returned: 0,
            taken: 0,
            lent: 0,
        };
        Self { head: Head::new(), inner: Mutex::numbered(number, inner) }
    }

    #[inline]
    pub(super) fn lock(&self) -> Locked<'_, E> {
        Locked { head: &self.head, inner: self.inner.lock() }
    }

    /// The deadline of the head.
    #[inline]
    pub(super) fn head(&self) -> Timestamp {
        self.head.deadline()
    }
}

impl<E> Locked<'_, E> {
    /// Admits an element that was submitted at `moment`. Says whether it became the head.
    #[inline(always)]
    pub(super) fn offer(
        &mut self,
        moment: u64,
        deadline: Timestamp,
        element: E,
    ) -> Result<(Ticket, bool), Refused<E>> {
        let sequence = self.number(moment);
        if self.inner.admission != Admission::Open {
            return Err(Refused { why: Refusal::Closed, sequence, element });
        }
        let inserted = self.inner.heap.insert(deadline, sequence, element);
        let full = |element| Refused { why: Refusal::Full, sequence, element };
        let ticket = inserted.map_err(full)?;
        self.inner.offered += 1;
        Ok((ticket, self.head.publish_nearer(deadline)))
    }

    /// The next number, for what is submitted at `moment`.
    #[inline]
    pub(super) fn number(&mut self, moment: u64) -> u64 {
        let moment = moment.max(self.inner.last_moment + 1).min(LATEST);
        self.inner.last_moment = moment;
        moment << NUMBER_BITS | self.inner.number
    }

    /// Admits an element that was taken out before.
    pub(super) fn offer_again(
        &mut self,
        deadline: Timestamp,
        sequence: u64,
        element: E,
    ) -> Result<Ticket, Refused<E>> {
        if self.inner.admission == Admission::Closed {
            return Err(Refused { why: Refusal::Closed, sequence, element });
        }
        let inserted = self.inner.heap.insert(deadline, sequence, element);
        let full = |element| Refused { why: Refusal::Full, sequence, element };
        let ticket = inserted.map_err(full)?;
        self.inner.returned += 1;
        self.head.publish_nearer(deadline);
        Ok(ticket)
    }

    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<Entry<E>> {
        let entry = self.inner.heap.pop();
        self.publish();
        entry
    }

    /// Takes the first entry, if it is due.
    #[inline(always)]
    pub(super) fn pop_due(&mut self, now: Timestamp) -> Option<Entry<E>> {
        if self.head()?.0 > now {
            return None;
        }
        self.inner.taken += 1;
        self.pop()
    }

    /// Takes the first element, if it is due, and keeps its slot for it.
    pub(super) fn lend_due(&mut self, now: Timestamp) -> Option<(Timestamp, Ticket, E)> {
        if self.head()?.0 > now {
            return None;
        }
        let lent = self.inner.heap.lend()?;
        self.inner.lent += 1;
        self.publish();
        Some(lent)
    }

    /// An element that was lent is back.
    pub(super) fn put_back_lent(&mut self, deadline: Timestamp, ticket: Ticket, element: E) {
        self.inner.lent -= 1;
        self.inner.heap.put_back(deadline, ticket, element);
        self.publish();
    }

    /// An element that was lent is not coming back.
    pub(super) fn forget_lent(&mut self, ticket: Ticket) {
        self.inner.lent -= 1;
        self.inner.taken += 1;
        self.inner.heap.forget(ticket);
    }

    pub(super) fn has_lent(&self) -> bool {
        self.inner.lent > 0
    }

    /// Takes the first entry out, and gives away up to `room` of those behind it that are
    /// `wanted`.
    pub(super) fn pop_along(
        &mut self,
        room: usize,
        wanted: impl Fn(Timestamp) -> bool,
        mut give: impl FnMut(Entry<E>),
    ) -> Option<Entry<E>> {
        let first = self.inner.heap.pop();
        for _ in 0..room {
            if !self.head().is_some_and(|(deadline, _)| wanted(deadline)) {
                break;
            }
            self.inner.heap.pop().into_iter().for_each(&mut give);
        }
        // Not before: who no longer finds an entry here is to find it where it was given.
        self.publish();
        first
    }

    pub(super) fn remove(&mut self, ticket: Ticket) -> Option<Entry<E>> {
        let entry = self.inner.heap.remove(ticket);
        self.publish();
        entry
    }

    pub(super) fn reset(&mut self, ticket: Ticket, deadline: Timestamp) -> bool {
        let was_there = self.inner.heap.reset(ticket, deadline);
        self.publish();
        was_there
    }

    /// Lets an entry in that was on the ready list, even if the stripe is closed.
    pub(super) fn put_back(
        &mut self,
        deadline: Timestamp,
        entry: Entry<E>,
    ) -> Result<Ticket, Entry<E>> {
        let Entry { deadline: before, sequence, element } = entry;
        let inserted = self.inner.heap.insert(deadline, sequence, element);
        self.publish();
        inserted.map_err(|element| Entry { deadline: before, sequence, element })
    }

    pub(super) fn remove_all(&mut self) -> DelayHeap<E> {
        let removed = self.inner.heap.remove_all();
        self.publish();
        removed
    }

    pub(super) fn remove_where(
        &mut self,
        unwanted: impl FnMut(Timestamp, &E) -> bool,
    ) -> Vec<Entry<E>> {
        let removed = self.inner.heap.remove_where(unwanted);
        self.publish();
        removed
    }

    pub(super) fn close(&mut self, admission: Admission) {
        self.inner.admission = self.inner.admission.max(admission);
    }

    pub(super) fn len(&self) -> usize {
        self.inner.heap.len()
    }

    /// How many elements have been admitted, in again, and taken from here.
    pub(super) fn counts(&self) -> (u64, u64, u64) {
        (self.inner.offered, self.inner.returned, self.inner.taken)
    }

    pub(super) fn heap(&self) -> &DelayHeap<E> {
        &self.inner.heap
    }

    pub(super) fn deadline(&self, ticket: Ticket) -> Option<Timestamp> {
        self.inner.heap.deadline(ticket)
    }

    /// The deadline and the sequence of the head.
    #[inline]
    pub(super) fn head(&self) -> Option<(Timestamp, u64)> {
        self.inner.heap.head()
    }

    /// Why so many new elements would not be admitted, if so.
    pub(super) fn refusal(&self, count: usize) -> Option<Refusal> {
        if self.inner.admission != Admission::Open {
            Some(Refusal::Closed)
        } else if self.inner.heap.room() < count {
            Some(Refusal::Full)
        } else {
            None
        }
    }

    /// The deadlines of the first two entries.
    pub(super) fn first_two(&self) -> [Timestamp; 2] {
        self.inner.heap.first_two()
    }

    /// Whether there is, and will be, nothing here to take.
    pub(super) fn is_finished(&self) -> bool {
        self.inner.admission != Admission::Open && self.len() == 0 && !self.has_lent()
    }

    /// The head may have changed.
    #[inline]
    fn publish(&self) {
        self.head.publish(self.head());
    }
}
