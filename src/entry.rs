//! The types with which the queue, the tasks and the pool describe a queue entry.

use crate::time::Timestamp;

/// Identifies one entry of the queue: the slot locates it, and the sequence number shows that it is still the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) slot: u32,
    pub(crate) sequence: u64,
}

impl Ticket {
    /// Makes a ticket without a slot: the entry, if it exists, can be found only by its sequence number.
    pub(crate) const fn without_slot(sequence: u64) -> Self {
        Self { slot: u32::MAX, sequence }
    }

    pub(crate) const fn has_slot(self) -> bool {
        self.slot != u32::MAX
    }

    /// Returns the ticket of the same entry in `slot`; this ticket if `slot` is `None`.
    pub(crate) fn moved_to(self, slot: Option<u32>) -> Self {
        Self { slot: slot.unwrap_or(self.slot), ..self }
    }
}

/// Where an entry waits, and until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timing {
    /// In a heap, for this moment.
    At(Timestamp),
    /// Beside the heaps, until a thread moves it. Listings, order and shutdown treat the entry as due at `due`.
    Parked { due: Timestamp },
}

impl Timing {
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

/// An entry whose moment never comes is parked. (A submission with `Duration::MAX` makes `At(Timestamp::NEVER)`
/// itself.)
impl From<Timestamp> for Timing {
    #[inline]
    fn from(due: Timestamp) -> Self {
        if due < Timestamp::NEVER { Self::At(due) } else { Self::Parked { due } }
    }
}

/// Why an element is queued again. The number of each reason is a single bit, so that a queue can list [the reasons
/// that it admits](crate::queue::Admission).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Requeue {
    /// The element is between two runs of its series.
    NextRun = 2,
    /// The element runs once, and its run was put off; or it is a `retry` between two attempts.
    PutOff = 4,
    /// The element runs once, is due, and has to wait for its turn, or for an answer.
    Turn = 8,
    /// Like `Turn`, for an element of a series.
    SeriesTurn = 16,
    /// By the element's own policy, every graceful shutdown keeps the element, whatever it waits for.
    Kept = 32,
    /// By the element's own policy, no shutdown keeps the element, whatever it waits for.
    Unkept = 64,
}

#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moved {
    /// The entry now waits for another moment, or is parked. Holds the new slot, if the slot has changed.
    To(Option<u32>),
    /// The entry waits where it did: no other place was chosen, or there was no room.
    Declined,
    Absent,
}

/// Moves the entry of one task; called under the task's lock. The first argument is the entry's slot, as far as the
/// task knows. The second, called under the queue's locks, is told when the entry is due and whether its queue is open,
/// and returns where the entry goes, or `None` to leave it there.
pub(crate) type MoveEntry<'a> =
    dyn FnMut(Option<u32>, &mut dyn FnMut(Timestamp, bool) -> Option<Timing>) -> Moved + 'a;
