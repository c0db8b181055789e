//! Views of the queue that take nothing out.
//!
//! Each step is counted under the lock that is held there anyway: an admission by its stripe, a taking by the ready
//! list. To read the counts, all these locks are held at once. Removals need no count of their own:
//!
//! ```text
//!   offered + requeued = taken + removed + len
//! ```

use super::{DelayedWorkQueue, LockedStripe, Source};
use crate::{
    entry::Ticket,
    queue::{SnapshotEntry, in_order},
    time::Timestamp,
    unwind::discard,
};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueueCounts {
    pub(crate) len: u64,
    pub(crate) offered: u64,
    pub(crate) requeued: u64,
    pub(crate) taken: u64,
}

impl QueueCounts {
    /// Returns how many elements have left by other ways than by being taken.
    pub(crate) fn removed(&self) -> u64 {
        self.offered + self.requeued - self.taken - self.len
    }
}

impl<E: Clone> DelayedWorkQueue<E> {
    /// Returns `true` if no entry is visible that waits for a moment; does not lock.
    pub(crate) fn seems_empty(&self) -> bool {
        self.head() == Timestamp::NEVER
    }

    /// Returns the deadline, the ticket and a clone of the element that would be taken first, if it was due at `now`.
    pub(crate) fn first_due(&self, now: Timestamp) -> Option<(Timestamp, Ticket, E)> {
        if self.head() > now {
            return None;
        }
        let ready = self.ready.lock();
        let stripes = self.lock_exact();
        let firsts = stripes.iter().filter_map(|stripe| stripe.peek()).chain(ready.entries());
        let first = firsts.min_by_key(|first| (first.deadline, first.ticket.sequence));
        let first = first.filter(|first| first.deadline <= now)?;
        Some((first.deadline, first.ticket, first.element.clone()))
    }

    pub(crate) fn list_due(&self, now: Timestamp) -> Vec<(Timestamp, Ticket)> {
        let mut list = Vec::new();
        let ready = self.ready.lock();
        let listed = ready.entries().filter(|entry| entry.deadline <= now);
        list.extend(listed.map(|entry| (entry.deadline, entry.ticket)));
        for stripe in &self.stripes {
            stripe.lock().change(|heap| heap.list_due(now, &mut list));
        }
        drop(ready);
        list.sort_unstable_by_key(|(deadline, ticket)| (*deadline, ticket.sequence));
        list
    }

    pub(crate) fn len(&self) -> usize {
        let ready = self.ready.lock();
        ready.len() + self.stripes.iter().map(|stripe| stripe.lock().pending()).sum::<usize>()
    }

    /// Returns the number of elements that wait for a moment.
    pub(crate) fn scheduled(&self) -> usize {
        let ready = self.ready.lock();
        ready.len() + self.stripes.iter().map(|stripe| stripe.lock().len()).sum::<usize>()
    }

    /// Returns `true` if at least `count` elements wait for a moment. It takes no more locks than it
    /// needs to see that.
    #[inline(never)]
    pub(crate) fn has_at_least(&self, count: usize) -> bool {
        let stripes = self.stripes.iter().filter(|stripe| stripe.head() < Timestamp::NEVER);
        let mut seen = 0;
        // An element that has left its stripe meanwhile is on the list, hence the second look.
        stripes.map(|stripe| stripe.lock().len()).any(|len| {
            seen += len;
            seen >= count
        }) || self.scheduled() >= count
    }

    /// Returns how many threads wait for an element, asleep or awake.
    pub(crate) fn waiting(&self) -> usize {
        self.waiters.count()
    }

    pub(crate) fn sleeping(&self) -> usize {
        self.waiters.listed()
    }

    /// Returns `true` if an element is due at `moment` or before, whether it waits for its moment or is parked.
    pub(crate) fn has_any_until(&self, moment: Timestamp) -> bool {
        if let Some((.., first)) = self.first_due(moment) {
            discard(first);
            return true;
        }
        let mut parked = self.stripes.iter().filter_map(|stripe| stripe.lock().first_parked());
        parked.any(|(due, _)| due <= moment)
    }

    /// Returns the counts. While `meanwhile` runs, nothing is admitted or taken.
    pub(crate) fn counts<R>(&self, meanwhile: impl FnOnce() -> R) -> (QueueCounts, R) {
        let ready = self.ready.lock();
        let stripes = self.lock_all();
        let mut counts =
            QueueCounts { taken: ready.taken(), len: ready.len() as u64, ..QueueCounts::default() };
        for stripe in &stripes {
            counts.len += stripe.pending() as u64;
            counts.offered += stripe.state().offered;
            counts.requeued += stripe.state().requeued;
        }
        (counts, meanwhile())
    }

    /// Returns all entries in the order in which they are due, with a clone of each element. It is cloned under the locks,
    /// so that is no user code.
    pub(crate) fn snapshot(&self) -> Vec<SnapshotEntry<E>> {
        let ready = self.ready.lock();
        let stripes = self.lock_all();
        let len = ready.len() + stripes.iter().map(|stripe| stripe.pending()).sum::<usize>();
        let mut entries = Vec::with_capacity(len);
        let listed = stripes.iter().flat_map(LockedStripe::all_entries).chain(ready.entries());
        entries.extend(listed.map(|entry| entry.viewed(E::clone)));
        drop(stripes);
        drop(ready);
        in_order(entries)
    }
}
