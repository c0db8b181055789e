//! A heap that threads share: a [`PriorityQueue`], its lock, and its published head.
//!
//! Every change goes through [`LockedHeap`], which publishes the new head before releasing the lock. The lock also
//! guards a state, `S`. Under the lock, no element is dropped, and no user code runs except a cheap `clone`.
//!
//! # The published head
//!
//! [`PublishedHead`] can be read without a lock. It is the deadline of the first entry in a heap or in the ready list,
//! or [`NEVER`](Timestamp::NEVER) if there is no entry. It may also be a *bound*, which is no later than that deadline
//! ([`priority_queue`](super::priority_queue)). A thread that finds the bound due calls [`settle`](LockedHeap::settle).
//!
//! A head is written only under the lock of its heap or list. So a thread that takes any heap's lock and then reads any
//! head sees every insertion that ended before the thread took the lock.
//!
//! A head that comes *nearer* is stored with sequential consistency, because the argument that no wake-up is lost
//! ([`waiters`](super::waiters)) depends on this store. For a head that moves away, a weaker ordering is enough: a
//! reader that sees the old value merely looks once in vain.

use std::ops::Deref;

use crossbeam_utils::CachePadded;

use super::{
    UnderLock,
    priority_queue::{PriorityQueue, QueueEntry},
};
use crate::{
    entry::Ticket,
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
        rank,
    },
    time::Timestamp,
};

pub(super) struct SharedHeap<E, S> {
    head: PublishedHead,
    contents: Mutex<HeapContents<E, S>, { rank::STRIPE }>,
}

pub(super) struct HeapContents<E, S> {
    /// On cache lines of its own, because a thread that waits for the lock takes the lock's line away from the holder.
    heap: CachePadded<PriorityQueue<E>>,
    pub(super) state: S,
}

pub(super) struct LockedHeap<'a, E, S> {
    head: &'a PublishedHead,
    pub(super) contents: MutexGuard<'a, HeapContents<E, S>>,
}

impl<E, S> SharedHeap<E, S> {
    /// Makes the heap with this number. A thread that locks several heaps does so in the order of their numbers.
    pub(super) fn new(number: usize, state: S) -> Self {
        let contents = HeapContents { heap: CachePadded::new(PriorityQueue::new()), state };
        Self { head: PublishedHead::new(), contents: Mutex::numbered(number, contents) }
    }

    #[inline]
    pub(super) fn lock(&self) -> LockedHeap<'_, E, S> {
        LockedHeap { head: &self.head, contents: self.contents.lock() }
    }

    #[inline]
    pub(super) fn head(&self) -> Timestamp {
        self.head.deadline()
    }
}

impl<E, S> Deref for LockedHeap<'_, E, S> {
    type Target = PriorityQueue<E>;

    fn deref(&self) -> &PriorityQueue<E> {
        &self.contents.heap
    }
}

impl<E, S> LockedHeap<'_, E, S> {
    #[inline(always)]
    pub(super) fn change<R>(&mut self, change: impl FnOnce(&mut PriorityQueue<E>) -> R) -> R {
        let result = change(&mut self.contents.heap);
        self.publish();
        result
    }

    #[inline]
    fn publish(&self) {
        self.head.publish(self.contents.heap.head());
    }

    /// Inserts an element. Returns its ticket, and `true` if its deadline became the head.
    #[inline(always)]
    pub(super) fn insert(
        &mut self,
        deadline: Timestamp,
        sequence: u64,
        element: UnderLock<E>,
    ) -> (Ticket, bool) {
        let ticket = self.contents.heap.insert(deadline, sequence, element);
        // An entry never opens a bucket whose turn comes before the first near entry, so `deadline` is right even if
        // the head is only a bound.
        (ticket, self.head.publish_nearer(deadline))
    }

    #[inline(always)]
    pub(super) fn remove(&mut self, ticket: Ticket) -> Option<QueueEntry<UnderLock<E>>> {
        let (entry, is_news) = self.contents.heap.remove(ticket)?;
        if is_news {
            self.publish();
        }
        Some(entry)
    }

    /// Returns `true` if the first entry is known, or if the calendar's floor is later than `now`. Otherwise moves some
    /// entries out of the calendar; the caller then has to call again, and may release the lock in between.
    #[inline(always)]
    pub(super) fn settle(&mut self, now: Timestamp) -> bool {
        let is_settled = self.is_settled(now);
        if !is_settled {
            self.bring_near();
        }
        is_settled
    }

    #[cold]
    fn bring_near(&mut self) {
        self.change(PriorityQueue::bring_near);
    }

    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<QueueEntry<E>> {
        // Not through `change`, whose argument is not always inlined.
        let entry = self.contents.heap.pop();
        self.publish();
        entry.map(QueueEntry::owned)
    }

    /// Takes out the first entry and up to `limit` due ones behind it. Returns the first; the others go to `receive`.
    pub(super) fn pop_batch(
        &mut self,
        limit: usize,
        now: Timestamp,
        mut receive: impl FnMut(QueueEntry<E>),
    ) -> Option<QueueEntry<E>> {
        // The head is published last: a thread that misses an entry here must find it where it has gone.
        let first = self.change(|heap| {
            let first = heap.pop();
            for _ in 0..limit {
                if heap.first_key().is_none_or(|(deadline, _)| deadline > now) {
                    break;
                }
                if let Some(entry) = heap.pop() {
                    receive(entry.owned());
                }
            }
            first
        });
        first.map(QueueEntry::owned)
    }
}

/// A head, readable without the lock ([module](self)). On its own cache line: it changes less often than the lock.
pub(super) struct PublishedHead(CachePadded<AtomicU64>);

impl PublishedHead {
    pub(super) fn new() -> Self {
        Self(CachePadded::new(AtomicU64::new(Timestamp::NEVER.as_nanos())))
    }

    #[inline]
    pub(super) fn deadline(&self) -> Timestamp {
        // Ordering: see the head of the module, and `waiters`.
        Timestamp::from_nanos(self.0.load(Ordering::SeqCst))
    }

    /// If `deadline` is nearer than the head, publishes it and returns `true`. The caller holds the lock.
    #[inline]
    pub(super) fn publish_nearer(&self, deadline: Timestamp) -> bool {
        // Ordering: written only under the lock, which the caller holds.
        let is_nearer = deadline.as_nanos() < self.0.load(Ordering::Relaxed);
        if is_nearer {
            // Ordering: see `waiters`.
            self.0.store(deadline.as_nanos(), Ordering::SeqCst);
        }
        is_nearer
    }

    #[inline]
    pub(super) fn publish(&self, deadline: Timestamp) {
        if !self.publish_nearer(deadline) {
            // Ordering: the head comes no nearer, and the lock orders all writers. Release lets a reader that misses an
            // entry here see where it has gone.
            self.0.store(deadline.as_nanos(), Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that makes a head nearer may have to wake a waiter. An entry that is due at the same moment as the head
    /// needs no second wake-up.
    #[test]
    fn what_is_as_near_is_not_nearer() {
        let head = PublishedHead::new();
        let nearer = |nanos| head.publish_nearer(Timestamp::from_nanos(nanos));
        assert_eq!([5, 5, 6, 4].map(nearer), [true, false, false, true]);
        assert_eq!(head.deadline(), Timestamp::from_nanos(4));
        head.publish(Timestamp::from_nanos(9));
        assert_eq!(head.deadline(), Timestamp::from_nanos(9));
        head.publish(Timestamp::NEVER);
        assert_eq!(head.deadline(), Timestamp::NEVER);
    }
}
