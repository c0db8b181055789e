//! The types in which queue, task and pool describe one queue entry.

use crate::time::Timestamp;

/// Identifies one entry of the queue: the slot leads to it, and the sequence proves that it is the same entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) slot: u32,
    pub(crate) sequence: u64,
}

impl Ticket {
    /// Returns the ticket of an entry that has no slot: it is found by its sequence, if at all.
    pub(crate) const fn without_slot(sequence: u64) -> Self {
        Self { slot: u32::MAX, sequence }
    }

    pub(crate) const fn has_slot(self) -> bool {
        self.slot != u32::MAX
    }

    /// Returns the ticket of the same entry after it has been queued again, into this slot.
    pub(crate) fn moved_to(self, slot: Option<u32>) -> Self {
        Self { slot: slot.unwrap_or(self.slot), ..self }
    }
}

/// Where an entry waits, and until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timing {
    /// In a heap, for this moment.
    At(Timestamp),
    /// Beside the heaps, until something moves it. `due` decides how it is shown, ordered and shut down.
    Parked { due: Timestamp },
}

impl Timing {
    #[inline]
    pub(crate) fn due(self) -> Timestamp {
        match self {
            Self::At(due) | Self::Parked { due } => due,
        }
    }

    /// Returns the same timing, but no later than `moment` if there is one. A parked entry stays parked.
    pub(crate) fn no_later_than(self, moment: Option<Timestamp>) -> Self {
        match (self, moment) {
            (Self::At(due), Some(moment)) => Self::At(due.min(moment)),
            _ => self,
        }
    }
}

/// An entry whose moment never comes is parked. (One that was submitted with `Duration::MAX` is `At` that moment.)
impl From<Timestamp> for Timing {
    #[inline]
    fn from(due: Timestamp) -> Self {
        if due < Timestamp::NEVER { Self::At(due) } else { Self::Parked { due } }
    }
}

/// Why an element is queued again. As a number each reason is a bit, so that a queue can list [those that it
/// admits](crate::queue::Admission).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Requeue {
    /// It is between two runs of its series.
    NextRun = 2,
    /// It runs once, and its run was put off, or its call is tried again.
    PutOff = 4,
    /// It runs once, is due, and has to wait for its turn.
    Turn = 8,
    /// The same for an element of a series.
    SeriesTurn = 16,
    /// Whatever it waits for, any shutdown that keeps anything keeps it.
    Kept = 32,
    /// Whatever it waits for, no shutdown keeps it.
    Unkept = 64,
}

/// The outcome of moving an entry.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moved {
    /// It waits for another moment, or is parked; in this slot, if that has changed.
    To(Option<u32>),
    /// It waits where it did: nothing else was chosen, or there was no room.
    Declined,
    Absent,
}

/// Moves the entry of one task, which is in this slot as far as the task knows; called under the task's lock. Under the
/// queue's locks, the second argument is told when the entry is due and whether its queue is open, and returns where
/// the entry goes, or `None` to leave it.
pub(crate) type MoveEntry<'a> =
    dyn FnMut(Option<u32>, &mut dyn FnMut(Timestamp, bool) -> Option<Timing>) -> Moved + 'a;
