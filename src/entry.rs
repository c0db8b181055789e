//! The types with which the queue, the tasks and the pool describe a queue entry.

use crate::time::Timestamp;

/// Identifies one entry of the queue: the slot locates it, and the sequence number shows whether the slot still
/// contains that entry.
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

    /// Returns the entry's ticket after a move to `slot`, or this ticket if `slot` is `None`.
    pub(crate) fn moved_to(self, slot: Option<u32>) -> Self {
        Self { slot: slot.unwrap_or(self.slot), ..self }
    }
}

/// Where an entry waits, and until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timing {
    /// In a heap, until this moment.
    At(Timestamp),
    /// In a separate heap, until a thread moves the entry. Listings, sorting and shutdowns treat it as due at `due`.
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

/// `Timestamp::NEVER` becomes `Parked`, any other timestamp `At`. (A submission with `Duration::MAX` does not use this
/// conversion, and is not parked: its timing is `At(Timestamp::NEVER)`.)
impl From<Timestamp> for Timing {
    #[inline]
    fn from(due: Timestamp) -> Self {
        if due < Timestamp::NEVER { Self::At(due) } else { Self::Parked { due } }
    }
}

/// Why an element is queued again. The discriminant of each reason is a single bit, so that an
/// [`Admission`](crate::queue::Admission) can be a set of reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Requeue {
    /// The element is between two runs of its series.
    NextRun = 2,
    /// The element runs once, and its run was put off; or it is a `retry` between two attempts.
    PutOff = 4,
    /// The element is due, and has to wait for its turn or for an answer. It runs once, is a `retry`, or is kept by its
    /// own policy.
    Turn = 8,
    /// Like `Turn`, for any other element of a series.
    SeriesTurn = 16,
    /// The element is between two runs, or its run was put off. The element's policy keeps it at a graceful shutdown.
    Kept = 32,
    /// The element's policy keeps it at no shutdown, whatever the element waits for.
    Unkept = 64,
}

#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moved {
    /// The entry now waits for the chosen moment, or is parked. Holds the new slot, if the slot has changed.
    To(Option<u32>),
    /// The entry stays where it was, because no other place was chosen.
    Declined,
    Absent,
}

/// Moves the entry of one task; called under the task's lock. The first argument is the entry's slot, as far as the
/// task knows. The second is a function that chooses where the entry goes. It is called under the queue's locks, with
/// the moment at which the entry is due and with `true` if the queue is open; it returns `None` to leave the entry
/// where it is.
pub(crate) type MoveEntry<'a> =
    dyn FnMut(Option<u32>, &mut dyn FnMut(Timestamp, bool) -> Option<Timing>) -> Moved + 'a;
