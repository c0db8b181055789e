//! The ready list: entries that are due, on their way from a stripe to the thread that takes them.
//!
//! Handing a stripe's lock from core to core for each element costs more than running a small task. So a thread that
//! takes the first element of a stripe also moves some of the due elements behind it to this list, in one step.
//!
//! There is **one** list for all workers. If each worker had its own, a task could wait behind a running one while
//! other workers were idle or ran tasks that were due later.
//!
//! # The pause
//!
//! Without a pause, workers that are as fast as the submitters would find only one or two entries for each batch. So a
//! pause of a few microseconds ([`PAUSE`]) follows each batch that is neither empty nor full. During the pause, a
//! worker that begins a take and finds the list empty leaves the stripes alone. An entry that is taken alone starts no
//! pause.
//!
//! # Locks
//!
//! Every take holds the list's lock, so no thread takes an element while an entry is between a stripe and the list.
//! Entries move only from a stripe to the list, with one exception: an entry that gets another moment, or is parked,
//! goes back to its stripe. It moves in one step under both locks, and gets another slot.
//!
//! If a thread looks for an entry, or reads the published heads, *without* the list's lock, it looks at the stripes
//! first, then at the list. An entry appears on the list before it leaves its stripe, so the thread sees it at least
//! once. Either thread may miss an entry that is moving back to its stripe. Then a notification follows for the reader
//! of the heads; the other thread looks again, because the slot has changed. A thread that asks what the queue
//! contains, or whether the queue is finished, holds the list's lock.

use std::{collections::VecDeque, task::Waker, time::Duration};

use super::DelayedWorkQueue;
use crate::{
    entry::{Moved, Ticket, Timing},
    queue::{
        PriorityQueue, QueueEntry, SnapshotEntry, UnderLock, Unwanted, shared_heap::PublishedHead,
    },
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
        rank, spin_loop,
    },
    time::{Clock, Timestamp},
};

/// How long the workers leave the stripes alone after a small batch.
const PAUSE: Duration = Duration::from_micros(3);

pub(super) struct Ready<E> {
    head: PublishedHead,
    pause: AtomicU64,
    contents: Mutex<ReadyContents<E>, { rank::READY_LIST }>,
}

pub(super) struct ReadyContents<E> {
    list: VecDeque<QueueEntry<E>>,
    /// How many elements have been taken from the queue, through the list or not.
    pub(super) taken: u64,
}

/// The list while a thread has it locked. Every method that changes the first entry publishes the new head.
pub(super) struct LockedReady<'a, E> {
    head: &'a PublishedHead,
    pub(super) contents: MutexGuard<'a, ReadyContents<E>>,
}

impl<E> Ready<E> {
    pub(super) fn new() -> Self {
        let contents = Mutex::new(ReadyContents { list: VecDeque::new(), taken: 0 });
        Self { head: PublishedHead::new(), pause: AtomicU64::new(0), contents }
    }

    #[inline]
    pub(super) fn lock(&self) -> LockedReady<'_, E> {
        LockedReady { head: &self.head, contents: self.contents.lock() }
    }

    /// Returns `true` if the list is empty. If so, an entry that the caller did not find in the entry's stripe has left
    /// the queue or moved back to the stripe.
    pub(super) fn is_empty(&self) -> bool {
        self.head() == Timestamp::NEVER
    }

    pub(super) fn pause_after(&self, now: Timestamp) {
        // Ordering: relaxed, since it orders no other access.
        self.pause.store(now.after(PAUSE).as_nanos(), Ordering::Relaxed);
    }

    /// Spins until the pause is over or the list has an entry. Does not spin on a manual clock. Returns the time.
    #[inline]
    pub(super) fn pause(&self, clock: &Clock) -> Timestamp {
        loop {
            let now = clock.read();
            // Ordering: as in `pause_after`.
            let is_over = now.as_nanos() >= self.pause.load(Ordering::Relaxed);
            if is_over || clock.is_manual() || !self.is_empty() {
                return now;
            }
            spin_loop();
        }
    }

    #[inline]
    pub(super) fn head(&self) -> Timestamp {
        self.head.deadline()
    }
}

impl<E> LockedReady<'_, E> {
    #[inline]
    pub(super) fn first_key(&self) -> Option<(Timestamp, u64)> {
        self.contents.list.front().map(|entry| (entry.deadline, entry.sequence))
    }

    pub(super) fn first_two(&self) -> [Timestamp; 2] {
        let nth = |index| self.contents.list.get(index);
        [nth(0), nth(1)].map(|entry| entry.map_or(Timestamp::NEVER, |entry| entry.deadline))
    }

    pub(super) fn len(&self) -> usize {
        self.contents.list.len()
    }

    /// Returns the entries. Their tickets have no slots, because an entry on the list is found by its sequence number.
    pub(super) fn entries(&self) -> impl Iterator<Item = SnapshotEntry<&E>> {
        self.contents.list.iter().map(|QueueEntry { deadline, sequence, element }| {
            let ticket = Ticket::without_slot(*sequence);
            SnapshotEntry { deadline: *deadline, ticket, element }
        })
    }

    #[inline]
    pub(super) fn push(&mut self, entry: QueueEntry<E>) {
        let is_first = self.contents.list.is_empty();
        self.contents.list.push_back(entry);
        if is_first {
            self.publish();
        }
    }

    /// Takes the first entry if it was due at `now` and its sequence number is below `end`. An entry on the list may be
    /// due later than `now`: the thread that put it there may have read the clock later than the caller did.
    #[inline]
    pub(super) fn pop_due(&mut self, now: Timestamp, end: u64) -> Option<QueueEntry<E>> {
        let first = self.contents.list.front()?;
        if first.deadline > now || first.sequence >= end {
            return None;
        }
        let entry = self.contents.list.pop_front();
        self.publish();
        entry
    }

    pub(super) fn remove(&mut self, ticket: Ticket) -> Option<QueueEntry<E>> {
        let index = self.index_of(ticket)?;
        let entry = self.contents.list.remove(index);
        self.publish();
        entry
    }

    pub(super) fn deadline(&self, ticket: Ticket) -> Option<Timestamp> {
        Some(self.contents.list[self.index_of(ticket)?].deadline)
    }

    pub(super) fn remove_all(&mut self) -> PriorityQueue<E> {
        let mut removed = PriorityQueue::new();
        while let Some(QueueEntry { deadline, sequence, element }) = self.contents.list.pop_front()
        {
            removed.insert(deadline, sequence, UnderLock::new(element));
        }
        self.publish();
        removed
    }

    pub(super) fn remove_where(
        &mut self,
        unwanted: Unwanted<'_, E>,
        removed: &mut Vec<QueueEntry<E>>,
    ) {
        for _ in 0..self.len() {
            let Some(entry) = self.contents.list.pop_front() else { break };
            if unwanted(entry.deadline, &entry.element) {
                removed.push(entry);
            } else {
                self.contents.list.push_back(entry);
            }
        }
        self.publish();
    }

    fn index_of(&self, ticket: Ticket) -> Option<usize> {
        self.contents.list.iter().position(|entry| entry.sequence == ticket.sequence)
    }

    #[inline]
    fn publish(&self) {
        self.head.publish(self.first_key().map_or(Timestamp::NEVER, |(deadline, _)| deadline));
    }
}

impl<E> DelayedWorkQueue<E> {
    /// Like [`reset`](Self::reset), for an entry that is not in its stripe but may be on the list ([module](self)).
    #[cold]
    pub(super) fn reset_ready(
        &self,
        ticket: Ticket,
        choose: &mut dyn FnMut(Timestamp, bool) -> Option<Timing>,
    ) -> (Moved, Option<Waker>) {
        if self.ready.is_empty() {
            return (Moved::Absent, None);
        }
        let mut ready = self.ready.lock();
        let Some(before) = ready.deadline(ticket) else { return (Moved::Absent, None) };
        // No thread can close the queue while this one holds the stripe's lock.
        let mut stripe = self.lock_of(ticket.sequence);
        let Some(timing) = choose(before, self.admission.is_open()) else {
            return (Moved::Declined, None);
        };
        // An entry that keeps its moment stays on the list, where the driver's current round finds it.
        if timing == Timing::At(before) {
            return (Moved::To(None), None);
        }
        let Some(entry) = ready.remove(ticket) else { return (Moved::Absent, None) };
        let ticket = stripe.restore(timing, entry.sequence, entry.element);
        drop((stripe, ready));
        (Moved::To(Some(ticket.slot)), self.notify(timing))
    }
}

#[cfg(test)]
#[cfg(not(any(shuttle, loom)))]
mod tests;
