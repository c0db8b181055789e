//! What the queue knows of one entry: its key, and the entry itself once it has been taken out.
//!
//! A *key* is one 128-bit number that orders by deadline and then by submission:
//!
//! ```text
//!   key = deadline (64 bits, nanoseconds) │ sequence (64 bits, never used twice)
//! ```
//!
//! So entries with equal deadlines leave strictly in the order of submission, the comparison of two
//! numbers is the only rule, and nothing ever wraps around.
//!
//! A [`Ticket`](crate::entry::Ticket) is what an insertion returns: slot and sequence. The slot leads to the entry,
//! and the sequence, compared with the key found there, proves that it is still the same entry. So the
//! ticket of an entry that has left finds nothing, even after its slot has been reused.

use std::mem::ManuallyDrop;

use crate::time::Timestamp;

/// An entry that has been taken out.
#[derive(Debug)]
pub(crate) struct QueueEntry<E> {
    pub(crate) deadline: Timestamp,
    pub(crate) sequence: u64,
    pub(crate) element: E,
}

/// What an insertion or a removal means for the deadline of the first entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeadChange {
    /// Nothing: another entry is first.
    None,
    /// The entry was inserted, and may be the first.
    Nearer,
    /// It may be another deadline, or another bound where it is a mere bound.
    Renewed,
}

/// An element that a thread moves under the lock. It is not dropped there, even if the thread should panic. So the
/// compiler has no cause to keep it in memory at each step, where a drop would find it.
pub(crate) type UnderLock<E> = ManuallyDrop<E>;

impl<E> QueueEntry<UnderLock<E>> {
    /// Returns the entry as one that drops its element, for a thread that has moved it.
    #[inline(always)]
    pub(crate) fn owned(self) -> QueueEntry<E> {
        let Self { deadline, sequence, element } = self;
        QueueEntry { deadline, sequence, element: UnderLock::into_inner(element) }
    }
}

impl<E> QueueEntry<E> {
    #[inline(always)]
    pub(super) const fn of(key: u128, element: E) -> Self {
        Self { deadline: deadline_of(key), sequence: sequence_of(key), element }
    }
}

#[inline]
pub(super) const fn key(deadline: Timestamp, sequence: u64) -> u128 {
    (deadline.as_nanos() as u128) << 64 | sequence as u128
}

#[inline]
pub(super) const fn deadline_of(key: u128) -> Timestamp {
    Timestamp::from_nanos((key >> 64) as u64)
}

#[inline]
pub(super) const fn sequence_of(key: u128) -> u64 {
    key as u64
}
