//! A heap that threads share: a [`PriorityQueue`], its lock, and its published head.
//!
//! Every change to the heap goes through [`LockedHeap`], which publishes the new head before the
//! lock is released; so the published head is never stale for a thread that has the lock. `S` is
//! what the owner keeps under the same lock: a stripe its sequences and counters, the single queue
//! its counter and its reservations.
//!
//! Under the lock entries only move within the heap. No element is dropped there and no user code
//! runs.
//!
//! # The published head
//!
//! [`PublishedHead`] is the deadline of the first entry of a heap or of the ready list, readable
//! without a lock. It is [`NEVER`](Timestamp::NEVER) if there is no entry.
//!
//! The head of a heap may be a mere *bound*: a moment that is no later than the first deadline, while the
//! first entry is in a large bucket of the heap's calendar. A thread that finds that moment come asks
//! [`is_settled`](LockedHeap::is_settled), which brings some entries of the bucket near and publishes the
//! new head. Each time it does, there is less in the calendar, so the thread comes to an end.
//!
//! It is written under the lock of the entries that it describes, and always before that lock is
//! released. So a thread that holds some heap's lock and reads a head, that heap's or another's,
//! sees every insertion that was over before it took the lock. Without a lock a reader may see a
//! value that is a moment old.
//!
//! A head that comes *nearer* is stored with sequential consistency, because this store is one half
//! of the argument that no wake-up is lost ([`waiters`](super::waiters)). A head that moves away
//! needs less: a reader that sees the old value looks once in vain.

use crossbeam_utils::CachePadded;

use super::{
    SnapshotEntry, UnderLock,
    priority_queue::{HeadChange, PriorityQueue, QueueEntry},
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

/// See the [module](self).
pub(super) struct SharedHeap<E, S> {
    head: PublishedHead,
    contents: Mutex<HeapContents<E, S>, { rank::STRIPE }>,
}

struct HeapContents<E, S> {
    heap: PriorityQueue<E>,
    state: S,
}

/// A [`SharedHeap`] whose lock is held.
pub(super) struct LockedHeap<'a, E, S> {
    head: &'a PublishedHead,
    contents: MutexGuard<'a, HeapContents<E, S>>,
}

impl<E, S> SharedHeap<E, S> {
    /// `number` is its place among the heaps of its queue, in which their locks are taken.
    pub(super) fn new(number: usize, state: S) -> Self {
        let contents = HeapContents { heap: PriorityQueue::new(), state };
        Self { head: PublishedHead::new(), contents: Mutex::numbered(number, contents) }
    }

    #[inline]
    pub(super) fn lock(&self) -> LockedHeap<'_, E, S> {
        LockedHeap { head: &self.head, contents: self.contents.lock() }
    }

    /// Returns the published deadline of the first entry; does not lock.
    #[inline]
    pub(super) fn head(&self) -> Timestamp {
        self.head.deadline()
    }
}

impl<E, S> LockedHeap<'_, E, S> {
    #[inline]
    pub(super) fn state(&self) -> &S {
        &self.contents.state
    }

    #[inline]
    pub(super) fn state_mut(&mut self) -> &mut S {
        &mut self.contents.state
    }

    /// Inserts an element. Returns its ticket, and `true` if it became the head; or the element, if
    /// the heap is full.
    #[inline(always)]
    pub(super) fn insert(
        &mut self,
        deadline: Timestamp,
        sequence: u64,
        element: UnderLock<E>,
    ) -> Result<(Ticket, bool), UnderLock<E>> {
        let (ticket, change) = self.contents.heap.insert(deadline, sequence, element)?;
        let is_head = match change {
            HeadChange::None => false,
            HeadChange::Nearer => self.head.publish_nearer(deadline),
            HeadChange::Renewed => {
                self.publish();
                false
            }
        };
        Ok((ticket, is_head))
    }

    /// Returns `true` if the first entry is known and due at `wanted`, or if nothing that is not known
    /// is due at `now`. Otherwise moves some entries out of the heap's calendar, and the caller has to
    /// ask again. The caller may release the lock in between.
    #[inline(always)]
    pub(super) fn is_settled(&mut self, wanted: Timestamp, now: Timestamp) -> bool {
        let is_settled = self.contents.heap.is_settled(wanted, now);
        if !is_settled {
            self.bring_near();
        }
        is_settled
    }

    /// Returns `true` if the first entry is known, whether it is due or not. Otherwise as
    /// [`is_settled`](Self::is_settled).
    pub(super) fn is_exact(&mut self) -> bool {
        let is_exact = self.contents.heap.is_exact();
        if !is_exact {
            self.bring_near();
        }
        is_exact
    }

    #[cold]
    fn bring_near(&mut self) {
        self.contents.heap.bring_near();
        self.publish();
    }

    /// Takes the first entry out.
    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<QueueEntry<E>> {
        let entry = self.contents.heap.pop();
        self.publish();
        entry.map(QueueEntry::owned)
    }

    /// Takes the first entry out if it is due.
    #[inline(always)]
    pub(super) fn pop_due(&mut self, now: Timestamp) -> Option<QueueEntry<E>> {
        if self.first_key()?.0 > now { None } else { self.pop() }
    }

    /// Takes the first entry out, and passes up to `limit` of the entries behind it to `receive` as
    /// long as they are due.
    pub(super) fn pop_batch(
        &mut self,
        limit: usize,
        now: Timestamp,
        mut receive: impl FnMut(QueueEntry<E>),
    ) -> Option<QueueEntry<E>> {
        let first = self.contents.heap.pop();
        for _ in 0..limit {
            if self.first_key().is_none_or(|(deadline, _)| deadline > now) {
                break;
            }
            if let Some(entry) = self.contents.heap.pop() {
                receive(entry.owned());
            }
        }
        // Not earlier: a thread that no longer finds an entry here must find it where it went.
        self.publish();
        first.map(QueueEntry::owned)
    }

    /// Takes the first element out if it is due, and keeps its slot reserved: the caller must
    /// [roll back](Self::roll_back) or [commit](Self::commit).
    pub(super) fn reserve_due(&mut self, now: Timestamp) -> Option<(Timestamp, Ticket, E)> {
        if self.first_key()?.0 > now {
            return None;
        }
        let reserved = self.contents.heap.reserve_first();
        self.publish();
        reserved
    }

    /// Ends a reservation by putting an element into the reserved slot.
    pub(super) fn roll_back(&mut self, deadline: Timestamp, ticket: Ticket, element: E) {
        self.contents.heap.roll_back(deadline, ticket, element);
        self.publish();
    }

    /// Ends a reservation by freeing the slot.
    pub(super) fn commit(&mut self, ticket: Ticket) {
        self.contents.heap.commit(ticket);
    }

    #[inline(always)]
    pub(super) fn remove(&mut self, ticket: Ticket) -> Option<QueueEntry<UnderLock<E>>> {
        let (entry, change) = self.contents.heap.remove(ticket)?;
        if change != HeadChange::None {
            self.publish();
        }
        Some(entry)
    }

    /// Moves an entry to another deadline. Returns `false` if there is no such entry.
    pub(super) fn reset(&mut self, ticket: Ticket, deadline: Timestamp) -> bool {
        let is_found = self.contents.heap.reset(ticket, deadline);
        self.publish();
        is_found
    }

    pub(super) fn remove_all(&mut self) -> PriorityQueue<E> {
        let removed = self.contents.heap.remove_all();
        self.publish();
        removed
    }

    pub(super) fn remove_where(
        &mut self,
        unwanted: impl FnMut((Timestamp, u64), &E) -> bool,
    ) -> Vec<QueueEntry<E>> {
        let removed = self.contents.heap.remove_where(unwanted);
        self.publish();
        removed
    }

    pub(super) fn len(&self) -> usize {
        self.contents.heap.len()
    }

    pub(super) fn remaining_capacity(&self) -> usize {
        self.contents.heap.remaining_capacity()
    }

    pub(super) fn deadline(&self, ticket: Ticket) -> Option<Timestamp> {
        self.contents.heap.deadline(ticket)
    }

    /// Returns the deadline and the sequence of the first entry.
    #[inline]
    pub(super) fn first_key(&self) -> Option<(Timestamp, u64)> {
        self.contents.heap.first_key()
    }

    /// Returns the deadlines of the first two entries, or moments before them.
    pub(super) fn first_two(&mut self) -> [Timestamp; 2] {
        let first_two = self.contents.heap.first_two();
        self.publish();
        first_two
    }

    /// Lists the entries that are due at `now`, in no particular order.
    pub(super) fn list_due(&mut self, now: Timestamp, list: &mut Vec<(Timestamp, Ticket)>) {
        self.contents.heap.list_due(now, list);
        self.publish();
    }

    pub(super) fn peek(&self) -> Option<(Timestamp, Ticket, &E)> {
        self.contents.heap.peek()
    }

    /// Iterates over all entries in no particular order, with what `view` makes of each element.
    pub(super) fn entries<V>(
        &self,
        view: impl Fn(&E) -> V,
    ) -> impl Iterator<Item = SnapshotEntry<V>> {
        self.contents.heap.entries().map(move |(deadline, ticket, element)| SnapshotEntry {
            deadline,
            ticket,
            element: view(element),
        })
    }

    #[inline]
    fn publish(&self) {
        self.head.publish(self.contents.heap.head());
    }
}

/// The deadline of the first entry of a heap or of the ready list; see the head of the module. It has
/// a cache line of its own, because it changes much less often than the lock beside it.
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

    /// As [`deadline`](Self::deadline), for a thread that holds the lock under which it is written.
    #[inline]
    fn current(&self) -> Timestamp {
        // Ordering: only written under the lock.
        Timestamp::from_nanos(self.0.load(Ordering::Relaxed))
    }

    /// Publishes the deadline of an entry that was inserted, if that is nearer than the head.
    /// Returns `true` if it is.
    #[inline]
    pub(super) fn publish_nearer(&self, deadline: Timestamp) -> bool {
        let is_nearer = deadline < self.current();
        if is_nearer {
            // Ordering: see `waiters`.
            self.0.store(deadline.as_nanos(), Ordering::SeqCst);
        }
        is_nearer
    }

    /// Publishes the deadline of the first entry, whichever it is now.
    #[inline]
    pub(super) fn publish(&self, deadline: Timestamp) {
        if !self.publish_nearer(deadline) {
            // Ordering: it is no nearer than what is there, and the lock orders it against other
            // writers. Release, so that a reader that misses an entry here sees where it has gone.
            self.0.store(deadline.as_nanos(), Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that makes a head nearer wakes somebody; an entry that is due together with the head
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
