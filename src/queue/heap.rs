//! The heap: which entry is due next. It is plain data and knows no lock, no clock and no task.
//!
//! It is a four-ary heap in an array. Each entry has a *key*, one 128-bit number that orders by
//! deadline and then by submission:
//!
//! ```text
//!   key = deadline (64 bits, nanoseconds) │ sequence (64 bits, never used twice)
//! ```
//!
//! So entries with equal deadlines leave strictly in the order of submission, the comparison of two
//! numbers is the only rule, and nothing ever wraps around.
//!
//! # Near and far
//!
//! ```text
//!   near part   heap │ sorted run       in order
//!   calendar    bucket, bucket, …       without order, until a bucket's time comes near
//! ```
//!
//! Entries that are a second or more behind the first one go to the [calendar], where insertion and removal
//! cost the same however many there are. Most of them are timeouts that are cancelled there. The others
//! come to the near part, bucket by bucket ([`settling`]). While the near part has only a few entries it
//! admits every entry.
//!
//! # Layout of the heap
//!
//! ```text
//!   groups   [· · · 0] [1 2 3 4] [5 6 7 8] …   keys; four siblings fill one cache line
//!   slots    [· · · a] [b c d e] [f g h i] …   the slot of the element of each key
//!   table    slot ─▶ (position, element)       see `slots`
//! ```
//!
//! The root is at position 3, so that the children of each node begin at a multiple of four and
//! share a cache line. Unused places hold the largest number, so the smallest of four siblings is
//! found by comparing all four, without testing which of them exist. Sifting moves keys and slots
//! and writes positions; it follows no pointer into an element. The arrays grow by chunks
//! ([`tables`]), so no insertion ever copies a whole array.
//!
//! # The sorted run
//!
//! Entries that arrive in the order in which they become due need no heap. They go to the
//! [sorted run](sorted_run) beside it; one bit of a position tells which of the two holds the
//! entry. The first entry of the near part is the smaller of the heap's root and the first of the run. An
//! entry goes to the heap if the run ends with a larger key. It moves from the run to the heap in
//! two cases: one with a nearer deadline arrives, and the run has only this entry or a few that are far
//! behind; or removals have left the run with many more holes than entries.
//!
//! # Tickets
//!
//! An insertion returns a [`Ticket`]: slot and sequence. The slot leads to the entry, and the
//! sequence, compared with the key found there, proves that it is still the same entry. So the
//! ticket of an entry that has left finds nothing, even after its slot has been reused.
//!
//! # Invariants
//!
//! 1. No key is smaller than its parent's.
//! 2. `table[slots[p]].position == p` for every position in use, and likewise for the run's.
//! 3. There are as many elements as keys, and every unused place of a group is `VACANT`.
//! 4. `first` is the smallest key of heap and run.
//! 5. If the first near entry is due before every bucket of the calendar begins, it is the first of all.
//!    Otherwise the nearest bucket has several chunks, or more than one chunk of entries was moved just now.
//! 6. The keys of the run increase. The run is never longer than twice the number of entries that
//!    it once had, and once most of these have been removed the rest is in the heap.

mod calendar;
mod settling;
mod sifting;
mod slots;
mod sorted_run;
mod tables;

use self::{
    calendar::Calendar,
    sifting::Group,
    slots::{Slots, chunk_of},
    sorted_run::SortedRun,
    tables::Chunks,
};
use crate::time::Timestamp;

/// The largest number of entries: a position has 31 bits, and one that tells heap from run. The
/// crate's own tests have a smaller limit, so that they can fill a heap.
const CAPACITY: usize = if cfg!(test) { 1 << 17 } else { (i32::MAX - 4 * ARITY as i32) as usize };
/// When the run has this many more holes than entries, entries move from it to the heap.
const TOLERANCE: usize = 64;
/// With this many entries or fewer the near part admits every entry: a heap of two levels costs
/// little, and a small queue needs no calendar.
const FEW: usize = if SMALL { 2 } else { 16 };
/// The crate's own tests and the models see a calendar that begins a few nanoseconds ahead and consists of
/// small chunks. So the few entries that they have are in all parts of the queue.
const SMALL: bool = cfg!(any(test, shuttle, loom));
const ARITY: usize = 4;
const ROOT: usize = 3;
/// The difference between two keys of which one is far behind the other.
const DISTANT: u128 = 1 << (64 + calendar::NEAREST);
const VACANT: u128 = u128::MAX;

/// Identifies one entry for as long as it is in the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) slot: u32,
    pub(crate) sequence: u64,
}

impl Ticket {
    /// Returns the ticket of the same entry after it has been taken out and offered again, into this
    /// slot.
    pub(crate) fn moved_to(self, slot: Option<u32>) -> Self {
        Self { slot: slot.unwrap_or(self.slot), ..self }
    }
}

/// An entry that has been taken out of the heap.
#[derive(Debug)]
pub(crate) struct Entry<E> {
    pub(crate) deadline: Timestamp,
    pub(crate) sequence: u64,
    pub(crate) element: E,
}

/// See the [module](self).
pub(crate) struct DelayHeap<E> {
    groups: Chunks<Group>,
    slots: Chunks<u32>,
    table: Slots<E>,
    /// The number of entries in the heap itself, without the run.
    len: usize,
    run: SortedRun,
    /// The smallest key of heap and run, or `VACANT`.
    first: u128,
    calendar: Calendar,
}

const fn key(deadline: Timestamp, sequence: u64) -> u128 {
    (deadline.as_nanos() as u128) << 64 | sequence as u128
}

const fn deadline_of(key: u128) -> Timestamp {
    Timestamp::from_nanos((key >> 64) as u64)
}

const fn sequence_of(key: u128) -> u64 {
    key as u64
}

impl<E> DelayHeap<E> {
    pub(crate) fn new() -> Self {
        let (groups, slots) = (Chunks::new(), Chunks::new());
        let (run, calendar) = (SortedRun::new(), Calendar::new());
        Self { groups, slots, table: Slots::new(), len: 0, run, first: VACANT, calendar }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.near_len() + self.calendar.len()
    }

    /// Returns how many more entries there is room for.
    pub(super) fn remaining_capacity(&self) -> usize {
        CAPACITY - self.len()
    }

    /// Returns the deadline and the sequence of the first entry, unless it is in a bucket of the
    /// calendar that is [brought near](Self::bring_near) chunk by chunk.
    #[inline]
    pub(crate) fn first_key(&self) -> Option<(Timestamp, u64)> {
        let key = self.first;
        (key != VACANT && self.is_exact()).then(|| (deadline_of(key), sequence_of(key)))
    }

    /// Inserts an element. Among equal deadlines the smaller sequence comes first; no two entries may
    /// have the same sequence. Returns the element if there are two billion entries already.
    #[inline(always)]
    pub(crate) fn insert(
        &mut self,
        deadline: Timestamp,
        sequence: u64,
        element: E,
    ) -> Result<Ticket, E> {
        if self.len() >= CAPACITY {
            return Err(element);
        }
        let key = key(deadline, sequence);
        let mut element = element;
        if self.near_len() > FEW {
            let distance = deadline.as_nanos().saturating_sub(deadline_of(self.first).as_nanos());
            match self.calendar.insert(&mut self.table, distance, key, element) {
                Ok(slot) => return Ok(Ticket { slot, sequence }),
                Err(back) => element = back,
            }
        }
        self.first = self.first.min(key);
        if self.opens_run_to(key) {
            self.move_run_to_heap();
        }
        if self.run.admits(key) {
            let slot = self.table.insert(element, self.run.next());
            self.run.push(key, slot);
            return Ok(Ticket { slot, sequence });
        }
        let position = self.grow();
        let slot = self.table.insert(element, position as u32);
        self.sift_up(position, key, slot);
        Ok(Ticket { slot, sequence })
    }

    /// Takes the first entry out, which must be known: see [`is_exact`](Self::is_exact).
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<Entry<E>> {
        let (key, slot) = self.pop_key()?;
        self.entry(key, slot)
    }

    /// Returns the first entry without taking it. It must be known, as for [`pop`](Self::pop).
    pub(super) fn peek(&self) -> Option<(Timestamp, Ticket, &E)> {
        let is_in_run = self.run.first() < self.root();
        let (deadline, sequence) = self.first_key()?;
        let slot = if is_in_run { self.run.first_slot()? } else { self.slots[ROOT] };
        Some((deadline, Ticket { slot, sequence }, self.table.get(slot)?))
    }

    /// Takes the first element out and keeps its slot reserved. The caller must either
    /// [roll back](Self::roll_back) or [commit](Self::commit) with the ticket that is returned.
    pub(super) fn reserve_first(&mut self) -> Option<(Timestamp, Ticket, E)> {
        let (key, slot) = self.pop_key()?;
        let element = self.table.take(slot)?;
        Some((deadline_of(key), Ticket { slot, sequence: sequence_of(key) }, element))
    }

    /// Ends a reservation by putting an element back into its slot.
    pub(super) fn roll_back(&mut self, deadline: Timestamp, ticket: Ticket, element: E) {
        self.table.put_back(ticket.slot, element);
        self.insert_into_heap(key(deadline, ticket.sequence), ticket.slot);
    }

    /// Ends a reservation by freeing its slot.
    pub(super) fn commit(&mut self, ticket: Ticket) {
        self.table.free(ticket.slot);
    }

    /// Removes an entry, wherever it is.
    #[inline]
    pub(crate) fn remove(&mut self, ticket: Ticket) -> Option<Entry<E>> {
        match self.calendar.remove(&mut self.table, ticket.slot, ticket.sequence) {
            Some((key, element)) => {
                // It may have been the last of the bucket that the head was a bound of.
                self.settle_if_inexact();
                Some(entry(key, element))
            }
            None => self.remove_near(ticket),
        }
    }

    fn remove_near(&mut self, ticket: Ticket) -> Option<Entry<E>> {
        let (position, key) = self.find(ticket)?;
        if !sorted_run::contains(position) {
            self.remove_key_at(position as usize);
        } else {
            self.run.remove(position);
            // Two for each hole above the limit, so that the holes do not accumulate.
            for _ in 0..2 {
                if self.run.holes() > self.run.len() + TOLERANCE {
                    self.move_first_to_heap();
                }
            }
        }
        self.settle();
        self.entry(key, ticket.slot)
    }

    /// Moves an entry to another deadline. Returns `false` if there is no such entry.
    pub(crate) fn reset(&mut self, ticket: Ticket, deadline: Timestamp) -> bool {
        if self.deadline(ticket).is_none() {
            return false;
        }
        let (slot, key) = (ticket.slot, key(deadline, ticket.sequence));
        if self.table.far_key(slot).is_some() {
            let chunk = chunk_of(slot);
            if deadline.as_nanos() >= self.calendar.start_of(&self.table, chunk) {
                self.table.set_far_key(slot, key);
                return true;
            }
            // Its slot must not change, and a chunk belongs as a whole to a bucket or to the near part.
            self.move_near(chunk);
        }
        let position = self.table.position(slot);
        if !sorted_run::contains(position) {
            self.sift(position as usize, key, slot);
        } else {
            self.run.remove(position);
            self.insert_into_heap(key, slot);
        }
        self.settle();
        true
    }

    pub(crate) fn deadline(&self, ticket: Ticket) -> Option<Timestamp> {
        self.table.get(ticket.slot)?;
        let key = self.key_of(ticket.slot);
        (sequence_of(key) == ticket.sequence).then(|| deadline_of(key))
    }

    /// Removes every entry that is `unwanted` by its deadline, its sequence and its element, in no particular
    /// order, in linear time.
    pub(crate) fn remove_where(
        &mut self,
        mut unwanted: impl FnMut((Timestamp, u64), &E) -> bool,
    ) -> Vec<Entry<E>> {
        let mut removed = Vec::new();
        let mut next = 0;
        while let Some(slot) = self.table.next_used(next) {
            next = slot + 1;
            let Some(key) = self.table.far_key(slot) else { continue };
            let is_unwanted = |element| unwanted((deadline_of(key), sequence_of(key)), element);
            if self.table.get(slot).is_some_and(is_unwanted) {
                let taken = self.calendar.remove(&mut self.table, slot, sequence_of(key));
                removed.extend(taken.map(|(key, element)| entry(key, element)));
            }
        }
        while self.run.len() > 0 {
            self.move_first_to_heap();
        }
        let end = self.end();
        let mut kept = ROOT;
        for position in ROOT..end {
            let (key, slot) = (self.key(position), self.slots[position]);
            let (deadline, sequence) = (deadline_of(key), sequence_of(key));
            let is_unwanted =
                self.table.get(slot).is_some_and(|e| unwanted((deadline, sequence), e));
            if !is_unwanted {
                self.place(kept, key, slot);
                kept += 1;
            } else if let Some(element) = self.table.remove(slot) {
                removed.push(Entry { deadline, sequence, element });
            }
        }
        while self.end() > kept {
            self.shrink();
        }
        self.heapify();
        self.settle();
        removed
    }

    /// Iterates over all entries, in no particular order.
    pub(super) fn entries(&self) -> impl Iterator<Item = (Timestamp, Ticket, &E)> {
        let first = self.next_used(0);
        let slots = std::iter::successors(first, |slot| self.next_used(slot + 1));
        slots.filter_map(|slot| {
            let element = self.table.get(slot)?;
            let key = self.key_of(slot);
            Some((deadline_of(key), Ticket { slot, sequence: sequence_of(key) }, element))
        })
    }

    /// Takes everything out, as a heap of its own.
    pub(crate) fn remove_all(&mut self) -> Self {
        std::mem::replace(self, Self::new())
    }

    /// Returns all elements, in the order of their slots.
    pub(super) fn into_elements(self) -> impl Iterator<Item = E> {
        self.table.into_elements()
    }

    /// Takes an element out of its slot and leaves everything else as it is. This is for a heap that
    /// is emptied slot by slot and not used in any other way.
    pub(super) fn take(&mut self, slot: u32) -> Option<E> {
        self.table.take(slot)
    }

    /// Returns the entry of an element that was [taken](Self::take) out of this slot.
    pub(super) fn entry_of(&self, slot: u32, element: E) -> Entry<E> {
        entry(self.key_of(slot), element)
    }

    /// Returns the next slot that holds an element, from this one on.
    #[inline]
    pub(super) fn next_used(&self, slot: u32) -> Option<u32> {
        self.table.next_used(slot)
    }

    /// Takes the element of an entry whose key has left heap and run.
    // Always inlined: an entry that is returned through memory is written in halves and read as a
    // whole, and that store-forwarding stall takes ten nanoseconds under the lock.
    #[inline(always)]
    fn entry(&mut self, key: u128, slot: u32) -> Option<Entry<E>> {
        Some(entry(key, self.table.remove(slot)?))
    }

    /// Returns the number of entries that are not in the calendar.
    #[inline]
    fn near_len(&self) -> usize {
        self.len + self.run.len()
    }

    /// Moves the first entry of the run to the heap.
    fn move_first_to_heap(&mut self) {
        if let Some((key, slot)) = self.run.pop() {
            self.insert_into_heap(key, slot);
        }
    }

    /// Returns `true` if the run has only a few entries, which are to make way for a key that is nearer: one
    /// of them, or some that are all distant. These must not close the run to all that are nearer.
    #[inline]
    fn opens_run_to(&self, key: u128) -> bool {
        let len = self.run.len();
        let is_distant = || self.run.first().saturating_sub(key) >= DISTANT;
        !self.run.admits(key) && len <= FEW && (len == 1 || is_distant())
    }

    #[cold]
    fn move_run_to_heap(&mut self) {
        while self.run.len() > 0 {
            self.move_first_to_heap();
        }
    }

    /// Returns the key of the entry in a slot.
    #[inline]
    fn key_of(&self, slot: u32) -> u128 {
        self.table.far_key(slot).unwrap_or_else(|| self.key_at(self.table.position(slot)))
    }

    /// Returns the key at a position of the heap or of the run.
    #[inline]
    fn key_at(&self, position: u32) -> u128 {
        if sorted_run::contains(position) {
            self.run.key(position)
        } else {
            self.key(position as usize)
        }
    }

    /// Returns the position and the key of the ticket's entry, if it is still in the near part.
    fn find(&self, ticket: Ticket) -> Option<(u32, u128)> {
        let position = self.table.near_position(ticket.slot)?;
        let key = self.key_at(position);
        (sequence_of(key) == ticket.sequence).then_some((position, key))
    }

    /// Takes the first key out of heap or run. Its element stays in its slot.
    #[inline(always)]
    fn pop_key(&mut self) -> Option<(u128, u32)> {
        let first = if self.run.first() < self.root() {
            self.run.pop()?
        } else if self.len == 0 {
            return None;
        } else {
            let first = (self.root(), self.slots[ROOT]);
            self.remove_key_at(ROOT);
            first
        };
        self.settle();
        Some(first)
    }
}

fn entry<E>(key: u128, element: E) -> Entry<E> {
    Entry { deadline: deadline_of(key), sequence: sequence_of(key), element }
}

#[cfg(test)]
mod tests;
