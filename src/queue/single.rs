//! The [`SingleQueue`]: one heap, and nothing beside it.
//!
//! A queue of values is emptied by the user's own threads, which do with each element what they like. So it would not
//! pay to keep them away from the submitters by a ready list. An element is in the heap or
//! it is not, and its ticket is good until it is taken. It serves the public
//! [`DelayQueue`](crate::DelayQueue) and its alarms.
//!
//! Three things are cheaper here than in a queue with several stripes.
//!
//! * **Taking** needs the heap's lock alone, because the first entry of the heap is the first of all.
//! * **Sequences** come from a counter behind that lock, so an insertion need not read the clock.
//! * **Due once is due for ever.** Time does not go back, so the last reading of the clock
//!   (`last_reading`) proves as well as a new one that an earlier deadline has come. The clock is
//!   read only if the head is later than that. So a queue that lags behind is emptied without a
//!   reading for each element.
//!
//! There may be a bound ([`room`]). Waiting, wake-ups and the end are those of every queue ([`waiting`]).

mod room;

use std::{
    collections::VecDeque,
    ops::Deref,
    task::{Poll, Waker},
    time::Duration,
};

use super::{
    Admission, AdmissionState, AsyncWaiter, Drained, QueueEntry, Refusal, RefusedElement,
    SnapshotEntry, UnderLock, in_order,
    priority_queue::{CAPACITY, PriorityQueue},
    shared_heap::{LockedHeap, SharedHeap},
    waiters::Waiters,
    waiting::{self, Source},
};
use crate::{
    entry::Ticket,
    sync::{
        Parker,
        atomic::{AtomicU64, Ordering},
    },
    time::{Clock, Timestamp},
    unwind::wake_all,
    wait::WaitList,
};

pub(crate) struct SingleQueue<E> {
    clock: Clock,
    heap: SharedHeap<E, SingleState>,
    waiters: Waiters,
    admission: AdmissionState,
    /// A time that has come.
    last_reading: AtomicU64,
}

/// Elements that were to be admitted together, and why they were not.
type AllRefused<E> = (Refusal, Vec<(Timestamp, E)>);

pub(super) struct SingleState {
    last_sequence: u64,
    /// How many elements are admitted; no fewer than `CAPACITY` if there is no bound.
    bound: usize,
    submitters: WaitList,
}

impl<E> SingleQueue<E> {
    /// Returns a queue that admits so many elements, or without a bound if that is `usize::MAX`.
    pub(crate) fn new(clock: Clock, bound: usize) -> Self {
        let submitters = WaitList::default();
        let state = SingleState { last_sequence: 0, bound: bound.min(CAPACITY), submitters };
        Self {
            clock,
            heap: SharedHeap::new(0, state),
            waiters: Waiters::new(),
            admission: AdmissionState::new(bound < CAPACITY),
            last_reading: AtomicU64::new(0),
        }
    }

    /// Admits an element that can be taken once `deadline` has come, after those with the same
    /// deadline that were admitted before.
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
            // None is refused: that was asked above, and the lock has been held since.
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
        let state = heap.state_mut();
        state.last_sequence += 1;
        let sequence = state.last_sequence;
        match self.refusal(heap, 1) {
            None => Ok(heap.insert(deadline, sequence, UnderLock::new(element))),
            Some(why) => Err(RefusedElement { why, sequence, element }),
        }
    }

    /// Waits for an element to become due and takes it. Returns `None` once the queue is closed and
    /// empty.
    pub(crate) fn take(&self) -> Option<QueueEntry<E>> {
        self.take_until_by(Parker::current, || Timestamp::NEVER)
    }

    /// Like [`take`](Self::take), but waits no longer than until `limit`, which is asked for again after each wake-up. The
    /// thread sleeps by the parker that `parker` returns, which others may know and wake.
    #[inline]
    pub(crate) fn take_until_by<P: Deref<Target = Parker>>(
        &self,
        parker: impl FnOnce() -> P,
        limit: impl Fn() -> Timestamp,
    ) -> Option<QueueEntry<E>> {
        let (entry, _) = waiting::take_until_by(self, parker, |_| Some(limit()))?;
        Some(entry)
    }

    pub(crate) fn try_take(&self) -> Option<QueueEntry<E>> {
        let (taken, _) = self.take_now();
        self.notify_all_if_finished();
        taken
    }

    #[inline]
    pub(crate) fn try_take_by(&self, now: Timestamp) -> Option<QueueEntry<E>> {
        let taken = self.take_due(now);
        self.notify_all_if_finished();
        taken
    }

    /// Like [`take`](Self::take), as the poll of a future; see [`waiting`].
    pub(crate) fn poll_take<A>(
        &self,
        waiter: &mut AsyncWaiter<A>,
        waker: &Waker,
        set_alarm: impl Fn(Timestamp, Waker) -> A,
    ) -> Poll<Option<QueueEntry<E>>> {
        waiting::poll_take(self, waiter, waker, set_alarm)
    }

    pub(crate) fn cancel_wait<A>(&self, waiter: &mut AsyncWaiter<A>) {
        waiting::cancel_wait(self, waiter);
    }

    #[inline]
    pub(crate) fn remove(&self, ticket: Ticket) -> Option<E> {
        let removed = self.heap.lock().remove(ticket);
        self.notify_all_if_finished();
        removed.map(|entry| entry.owned().element)
    }

    /// Moves an element to another deadline; its ticket stays good. Returns `false` if the element is
    /// not in the queue.
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

    /// Returns the first entry, due or not, with what `view` makes of its element. `view` runs under
    /// the lock, so it is no user code.
    pub(crate) fn peek<V>(&self, view: impl Fn(&E) -> V) -> Option<SnapshotEntry<V>> {
        let mut heap = self.heap.lock();
        while !heap.settle(Timestamp::NEVER) {
            drop(heap);
            heap = self.heap.lock();
        }
        heap.peek().map(|first| first.viewed(view))
    }

    /// Returns all entries in the order in which they would be taken, with what `view` makes of each
    /// element. `view` runs under the lock, so it is no user code.
    pub(crate) fn snapshot<V>(&self, view: impl Fn(&E) -> V) -> Vec<SnapshotEntry<V>> {
        let heap = self.heap.lock();
        let mut entries = Vec::with_capacity(heap.len());
        entries.extend(heap.entries().map(|entry| entry.viewed(&view)));
        drop(heap);
        in_order(entries)
    }

    pub(crate) fn drain(&self) -> Drained<E> {
        let heap = self.heap.lock().change(PriorityQueue::remove_all);
        self.notify_all_if_finished();
        Drained::new(VecDeque::new(), vec![heap])
    }

    /// Admits nothing from now on. Elements that are inside can still be taken; once there are none,
    /// `take` ends.
    pub(crate) fn close(&self) {
        let mut heap = self.heap.lock();
        self.admission.restrict_to(Admission::CLOSED);
        let submitters = heap.state_mut().submitters.take();
        drop(heap);
        wake_all(submitters);
        self.notify_all_if_finished();
    }

    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.admission.is_closed()
    }

    #[inline]
    pub(crate) fn is_finished(&self) -> bool {
        self.is_closed() && self.len() == 0
    }

    fn read_clock(&self) -> Timestamp {
        let now = self.clock.read();
        // Ordering: any time that was ever stored has come.
        self.last_reading.store(now.as_nanos(), Ordering::Relaxed);
        now
    }

    #[cold]
    fn take_by_new_reading(&self) -> (Option<QueueEntry<E>>, Timestamp) {
        let now = self.read_clock();
        (self.take_due(now), now)
    }
}

impl<E> Source for SingleQueue<E> {
    type Element = E;

    fn clock(&self) -> &Clock {
        &self.clock
    }

    #[inline]
    fn waiters(&self) -> &Waiters {
        &self.waiters
    }

    fn lead(&self) -> Duration {
        Duration::ZERO
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
        Self::is_finished(self)
    }

    #[inline]
    fn notify_all_if_finished(&self) {
        if !self.admission.is_open() {
            self.notify_of_exit();
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
            // Another thread was faster, and the entry that is first now may be due as well.
            None if now == known => self.take_by_new_reading(),
            taken => (taken, now),
        }
    }
}

#[cfg(test)]
#[cfg(not(any(shuttle, loom)))]
mod tests;
