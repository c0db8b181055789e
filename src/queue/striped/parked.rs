//! The parked entries of a stripe: they wait for no moment.
//!
//! A task that waits for its turn, one that runs on request: something has to move each of them
//! before it can run, and what that is, is not known here. So they are beside the heap, by their sequences, and
//! the heap has only entries with a moment. What is first or due, whether anything is to come, how long a
//! thread sleeps and how many threads stay is asked of the heap alone. What is pending, in which order it is
//! shown, and what a shutdown keeps is asked of both.
//!
//! A parked entry is *due* all the same: the task that waits for its turn was to run at some moment, and a
//! shutdown that keeps what is due keeps it. One that runs on request is never due.
//!
//! An entry moves between heap and table under the lock of its stripe, in one step. So a thread that has the
//! lock finds it in one of them.

use std::{collections::BTreeMap, mem};

use super::LockedStripe;
use crate::{
    entry::Ticket,
    queue::{QueueEntry, SnapshotEntry},
    time::Timestamp,
};

/// See the [module](self).
pub(in crate::queue) struct Parked<E>(BTreeMap<u64, ParkedEntry<E>>);

struct ParkedEntry<E> {
    due: Timestamp,
    element: E,
}

impl<E> Default for Parked<E> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<E> ParkedEntry<E> {
    fn entry(self, sequence: u64) -> QueueEntry<E> {
        QueueEntry { deadline: self.due, sequence, element: self.element }
    }
}

impl<E> Parked<E> {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns all entries, each with when it is due.
    pub(in crate::queue) fn into_entries(self) -> impl Iterator<Item = QueueEntry<E>> {
        self.0.into_iter().map(|(sequence, parked)| parked.entry(sequence))
    }
}

impl<E> LockedStripe<'_, E> {
    /// Parks an element. Returns its ticket.
    #[cold]
    pub(super) fn park(&mut self, due: Timestamp, sequence: u64, element: E) -> Ticket {
        self.state_mut().parked.0.insert(sequence, ParkedEntry { due, element });
        Ticket::without_slot(sequence)
    }

    /// Takes a parked entry out.
    #[cold]
    pub(super) fn take_parked(&mut self, sequence: u64) -> Option<QueueEntry<E>> {
        Some(self.state_mut().parked.0.remove(&sequence)?.entry(sequence))
    }

    /// Returns when a parked entry is due.
    pub(super) fn parked_due(&self, sequence: u64) -> Option<Timestamp> {
        Some(self.state().parked.0.get(&sequence)?.due)
    }

    /// Returns the parked entry that is due first: when it is, and its sequence.
    pub(super) fn first_parked(&self) -> Option<(Timestamp, u64)> {
        self.state().parked.0.iter().map(|(sequence, parked)| (parked.due, *sequence)).min()
    }

    /// Takes the parked entries out that are `unwanted` by when they are due.
    pub(super) fn take_parked_where(
        &mut self,
        mut unwanted: impl FnMut(Timestamp, &E) -> bool,
    ) -> Vec<QueueEntry<E>> {
        let all = mem::take(&mut self.state_mut().parked.0).into_iter();
        let (out, kept) = all.partition(|(_, parked)| unwanted(parked.due, &parked.element));
        self.state_mut().parked.0 = kept;
        Parked(out).into_entries().collect()
    }

    /// Iterates over the parked entries.
    pub(super) fn parked_entries(&self) -> impl Iterator<Item = SnapshotEntry<&E>> {
        self.state().parked.0.iter().map(|(sequence, ParkedEntry { due, element })| SnapshotEntry {
            deadline: *due,
            ticket: Ticket::without_slot(*sequence),
            element,
        })
    }
}
