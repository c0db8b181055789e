//! The census: what is in the queue, and how much has come and gone, at one moment.
//!
//! Each count is kept where its step is made, under the lock that is held there anyway: what
//! comes in by the stripe, what is taken by the ready list, whose lock everyone who takes has, or
//! by the stripe, if that is all there is.
//! The census holds all of these locks at once, so nothing moves while it counts. What was
//! removed needs no count of its own:
//!
//! ```text
//!   offered + returned = taken + removed + len
//! ```

use super::{DelayedWorkQueue, Ticket, stripe::Locked};
use crate::time::Timestamp;

/// How much there is, was admitted, was admitted again, and was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Census {
    pub(crate) len: u64,
    pub(crate) offered: u64,
    pub(crate) returned: u64,
    pub(crate) taken: u64,
}

impl Census {
    /// How much was taken out by other ways than by taking.
    pub(crate) fn removed(&self) -> u64 {
        self.offered + self.returned - self.taken - self.len
    }
}

/// What is in the queue.
#[derive(Debug)]
pub(crate) struct Listed<E> {
    pub(crate) deadline: Timestamp,
    pub(crate) ticket: Ticket,
    pub(crate) element: E,
}

impl<E> DelayedWorkQueue<E> {
    /// Whether no published head is ahead of never.
    pub(crate) fn seems_empty(&self) -> bool {
        self.head() == Timestamp::NEVER
    }

    /// Whether as many elements are here; no more locks are taken than are needed to see that.
    pub(crate) fn has_at_least(&self, count: usize) -> bool {
        let stripes = self.stripes.iter().filter(|stripe| stripe.head() < Timestamp::NEVER);
        let mut seen = 0;
        // What is never due stands behind no published head.
        stripes.map(|stripe| stripe.lock().len()).any(|len| {
            seen += len;
            seen >= count
        }) || self.len() >= count
    }

    /// How many threads wait for an element, asleep or awake.
    pub(crate) fn takers(&self) -> usize {
        self.takers.count()
    }

    /// Counts. While `meanwhile` runs, nothing is admitted or taken.
    pub(crate) fn census<R>(&self, meanwhile: impl FnOnce() -> R) -> (Census, R) {
        let ready = self.ready.lock();
        let stripes: Vec<_> = self.stripes.iter().map(|stripe| stripe.lock()).collect();
        let mut census =
            Census { taken: ready.taken(), len: ready.len() as u64, ..Census::default() };
        for stripe in &stripes {
            let (offered, returned, taken) = stripe.counts();
            census.len += stripe.len() as u64;
            census.offered += offered;
            census.returned += returned;
            census.taken += taken;
        }
        (census, meanwhile())
    }

    /// What is in the queue, in the order in which it would be taken; of each element what `view`
    /// makes of it. That runs under the locks: no user code.
    pub(crate) fn list<V>(&self, view: impl Fn(&E) -> V) -> Vec<Listed<V>> {
        let ready = self.ready.lock();
        let stripes: Vec<_> = self.stripes.iter().map(|stripe| stripe.lock()).collect();
        let len = ready.len() + stripes.iter().map(Locked::len).sum::<usize>();
        let mut listed = Vec::with_capacity(len);
        listed.extend(ready.entries().map(|entry| Listed {
            deadline: entry.deadline,
            // Who is on the list is found by its sequence.
            ticket: Ticket { slot: u32::MAX, sequence: entry.sequence },
            element: view(&entry.element),
        }));
        for stripe in &stripes {
            let entries = stripe.heap().entries();
            listed.extend(entries.map(|(deadline, ticket, element)| Listed {
                deadline,
                ticket,
                element: view(element),
            }));
        }
        drop(stripes);
        drop(ready);
        listed.sort_unstable_by_key(|one| (one.deadline, one.ticket.sequence));
        listed
    }
}
