//! The parked entries of a stripe: they wait for no moment.
//!
//! A task that waits for its turn, one that runs on request: something else has to move it
//! before it can run. So it is beside the heap, by its sequence. What is first or due, how long a
//! thread sleeps and how many threads stay is asked of the heap alone; what is pending, in which order it is
//! shown, and what a shutdown keeps is asked of both.
//!
//! A parked entry is *due* all the same: the task that waits for its turn was to run at some moment, and a
//! shutdown that keeps what is due keeps it. One that runs on request is never due.
//!
//! An entry moves between heap and table under the lock of its stripe, in one step.

use std::{collections::BTreeMap, mem};

use super::LockedStripe;
use crate::{
    entry::Ticket,
    queue::{QueueEntry, SnapshotEntry},
    time::Timestamp,
};

/// By sequence, when each is due, and its element.
pub(in crate::queue) type Parked<E> = BTreeMap<u64, (Timestamp, E)>;

/// Returns an entry of the table as one of the queue.
pub(super) fn entry<E>((sequence, (deadline, element)): (u64, (Timestamp, E))) -> QueueEntry<E> {
    QueueEntry { deadline, sequence, element }
}

impl<E> LockedStripe<'_, E> {
    #[cold]
    pub(super) fn park(&mut self, due: Timestamp, sequence: u64, element: E) -> Ticket {
        self.state_mut().parked.insert(sequence, (due, element));
        Ticket::without_slot(sequence)
    }

    #[cold]
    pub(super) fn take_parked(&mut self, sequence: u64) -> Option<QueueEntry<E>> {
        self.state_mut().parked.remove_entry(&sequence).map(entry)
    }

    pub(super) fn first_parked(&self) -> Option<(Timestamp, u64)> {
        self.state().parked.iter().map(|(sequence, (due, _))| (*due, *sequence)).min()
    }

    pub(super) fn take_parked_where(
        &mut self,
        mut unwanted: impl FnMut(Timestamp, &E) -> bool,
    ) -> Vec<QueueEntry<E>> {
        let all = mem::take(&mut self.state_mut().parked).into_iter();
        let (out, kept): (Parked<E>, _) = all.partition(|(_, (due, it))| unwanted(*due, it));
        self.state_mut().parked = kept;
        out.into_iter().map(entry).collect()
    }

    pub(super) fn parked_entries(&self) -> impl Iterator<Item = SnapshotEntry<&E>> {
        self.state().parked.iter().map(|(sequence, (due, element))| SnapshotEntry {
            deadline: *due,
            ticket: Ticket::without_slot(*sequence),
            element,
        })
    }
}
