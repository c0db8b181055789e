//! The [`SingleQueue`]: one heap, for the public [`DelayQueue`](crate::DelayQueue). Three things are cheaper here than
//! with several stripes.
//!
//! * **Taking** needs only the heap's lock, because the heap's first entry is the queue's first entry.
//! * **Sequence numbers** come from a counter under that lock, so an insertion need not read the clock.
//! * **The clock** is read less often. Time does not go back, so a thread need not read the clock to take an entry that
//!   was due at an earlier reading (`last_reading`).

use std::time::Duration;

use super::{
    Admission, AdmissionState, Drained, InsertError, QueueEntry, RefusedElement, SnapshotEntry,
    UnderLock, in_order,
    priority_queue::{CAPACITY, PriorityQueue},
    shared_heap::{LockedHeap, SharedHeap},
    waiters::Waiters,
    waiting::Source,
};
use crate::{
    entry::Ticket,
    sync::atomic::{AtomicU64, Ordering},
    time::{Clock, Timestamp},
    unwind::wake_all,
};

pub(crate) struct SingleQueue<E> {
    clock: Clock,
    heap: SharedHeap<E, SingleState>,
    waiters: Waiters,
    admission: AdmissionState,
    /// A past reading of the clock, in nanoseconds.
    last_reading: AtomicU64,
}

/// The reason for a refusal, and the refused elements with their deadlines.
type AllRefused<E> = (InsertError, Vec<(Timestamp, E)>);

pub(super) struct SingleState {
    last_sequence: u64,
}

impl<E> SingleQueue<E> {
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            clock,
            heap: SharedHeap::new(0, SingleState { last_sequence: 0 }),
            waiters: Waiters::new(Duration::ZERO),
            admission: AdmissionState::new(),
            last_reading: AtomicU64::new(0),
        }
    }

    #[inline(always)]
    pub(crate) fn insert(
        &self,
        deadline: Timestamp,
        element: E,
    ) -> Result<Ticket, RefusedElement<E>> {
        let admitted = self.admit(&mut self.heap.lock(), deadline, element)?;
        Ok(self.announce(deadline, admitted))
    }

    #[inline(always)]
    fn announce(&self, deadline: Timestamp, (ticket, is_head): (Ticket, bool)) -> Ticket {
        if is_head {
            wake_all(self.waiters.notify(deadline));
        }
        ticket
    }

    pub(crate) fn insert_all(
        &self,
        elements: Vec<(Timestamp, E)>,
    ) -> Result<Vec<Ticket>, AllRefused<E>> {
        let mut tickets = Vec::with_capacity(elements.len());
        let Some(nearest) = elements.iter().map(|(deadline, _)| *deadline).min() else {
            return Ok(tickets);
        };
        let mut heap = self.heap.lock();
        if let Some(why) = self.refusal(&heap, elements.len()) {
            return Err((why, elements));
        }
        for (deadline, element) in elements {
            // No element is refused: this thread has held the lock since `refusal`.
            let admitted = self.admit(&mut heap, deadline, element).ok();
            tickets.extend(admitted.map(|(ticket, _)| ticket));
        }
        drop(heap);
        wake_all(self.waiters.notify(nearest));
        Ok(tickets)
    }

    #[inline(always)]
    fn admit(
        &self,
        heap: &mut LockedHeap<'_, E, SingleState>,
        deadline: Timestamp,
        element: E,
    ) -> Result<(Ticket, bool), RefusedElement<E>> {
        heap.contents.state.last_sequence += 1;
        let sequence = heap.contents.state.last_sequence;
        if !self.admission.is_open() || heap.len() >= CAPACITY {
            if let Some(why) = self.refusal(heap, 1) {
                return Err(RefusedElement { why, sequence, element });
            }
        }
        Ok(heap.insert(deadline, sequence, UnderLock::new(element)))
    }

    #[inline]
    pub(crate) fn try_take_by(&self, now: Timestamp) -> Option<QueueEntry<E>> {
        let taken = self.take_due(now);
        self.notify_all_if_finished();
        taken
    }

    #[inline]
    pub(crate) fn remove(&self, ticket: Ticket) -> Option<E> {
        let removed = self.heap.lock().remove(ticket);
        self.notify_all_if_finished();
        removed.map(|entry| entry.owned().element)
    }

    /// Gives the element another deadline; the ticket stays valid. Returns `false` if the queue has no such element.
    pub(crate) fn reset(&self, ticket: Ticket, deadline: Timestamp) -> bool {
        let is_found = self.heap.lock().change(|heap| heap.reset(ticket, deadline));
        if is_found {
            wake_all(self.waiters.notify(deadline));
        }
        is_found
    }

    pub(crate) fn deadline(&self, ticket: Ticket) -> Option<Timestamp> {
        self.heap.lock().deadline(ticket)
    }

    pub(crate) fn len(&self) -> usize {
        self.heap.lock().len()
    }

    /// Returns the first entry, due or not, with what `view` returns for its element. `view` runs under the lock, so it
    /// must be no more than a cheap `clone`.
    pub(crate) fn peek<V>(&self, view: impl Fn(&E) -> V) -> Option<SnapshotEntry<V>> {
        let mut heap = self.heap.lock();
        while !heap.settle(Timestamp::NEVER) {
            drop(heap);
            heap = self.heap.lock();
        }
        heap.peek().map(|first| first.viewed(view))
    }

    /// Returns all entries, in the order in which they would be taken. Uses `view` as [`peek`](Self::peek) does.
    pub(crate) fn snapshot<V>(&self, view: impl Fn(&E) -> V) -> Vec<SnapshotEntry<V>> {
        let heap = self.heap.lock();
        let mut entries = Vec::with_capacity(heap.len());
        heap.for_each(&mut |entry| entries.push(entry.viewed(&view)));
        drop(heap);
        in_order(entries)
    }

    pub(crate) fn drain(&self) -> Drained<E> {
        let heap = self.heap.lock().change(PriorityQueue::remove_all);
        self.notify_all_if_finished();
        Drained::new(vec![heap])
    }

    /// Closes the queue to insertions. Elements inside can still be taken; once none are left, `take` returns `None`.
    pub(crate) fn close(&self) {
        let heap = self.heap.lock();
        self.admission.restrict_to(Admission::CLOSED);
        drop(heap);
        self.notify_all_if_finished();
    }

    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        !self.admission.is_open()
    }

    fn read_clock(&self) -> Timestamp {
        let now = self.clock.read();
        // Ordering: relaxed, since every time that was ever stored has come.
        self.last_reading.store(now.as_nanos(), Ordering::Relaxed);
        now
    }

    /// Returns the reason why `count` more elements would be refused; `None` if they would be admitted.
    #[cold]
    fn refusal(&self, heap: &LockedHeap<'_, E, SingleState>, count: usize) -> Option<InsertError> {
        if self.is_closed() {
            return Some(InsertError::Closed);
        }
        (CAPACITY - heap.len() < count).then_some(InsertError::Full)
    }
}

impl<E> Source for SingleQueue<E> {
    type Element = E;

    fn clock(&self) -> &Clock {
        &self.clock
    }

    fn waiters(&self) -> &Waiters {
        &self.waiters
    }

    #[inline]
    fn head(&self) -> Timestamp {
        self.heap.head()
    }

    fn first_two(&self) -> [Timestamp; 2] {
        self.heap.lock().change(PriorityQueue::first_two)
    }

    #[inline]
    fn is_finished(&self) -> bool {
        self.is_closed() && self.len() == 0
    }

    #[inline]
    fn notify_all_if_finished(&self) {
        if self.is_finished() {
            wake_all(self.waiters.notify_all());
        }
    }

    // Always inlined, like everything on this path: see `PriorityQueue::entry`.
    #[inline(always)]
    fn take_due(&self, now: Timestamp) -> Option<QueueEntry<E>> {
        while self.head() <= now {
            let mut heap = self.heap.lock();
            if heap.settle(now) {
                return if heap.first_key()?.0 > now { None } else { heap.pop() };
            }
        }
        None
    }

    #[inline(always)]
    fn take_now(&self) -> (Option<QueueEntry<E>>, Timestamp) {
        // Ordering: as in `read_clock`.
        let known = Timestamp::from_nanos(self.last_reading.load(Ordering::Relaxed));
        let now = if self.head() <= known { known } else { self.read_clock() };
        match self.take_due(now) {
            // Another thread was faster, or the head was only a bound: an entry may be due nevertheless.
            None if now == known => {
                let now = self.read_clock();
                (self.take_due(now), now)
            }
            taken => (taken, now),
        }
    }
}

#[cfg(test)]
#[cfg(not(any(shuttle, loom)))]
mod tests;
