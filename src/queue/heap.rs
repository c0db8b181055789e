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
//! # Layout
//!
//! ```text
//!   groups   [· · · 0] [1 2 3 4] [5 6 7 8] …   keys; four siblings fill one cache line
//!   slots    [· · · a] [b c d e] [f g h i] …   the slot of the element of each key
//!   table    slot ─▶ (position, element)       see `tables`
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
//! entry. The first entry overall is the smaller of the heap's root and the first of the run. An
//! entry goes to the heap if the run ends with a larger key. It moves from the run to the heap in
//! two cases: it is the only entry of the run and one with a nearer deadline arrives, or removals
//! have left the run with many more holes than entries.
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
//! 4. The keys of the run increase. The run is never longer than twice the number of entries that
//!    it once had, and once most of these have been removed the rest is in the heap.

mod sorted_run;
mod tables;

use self::{
    sorted_run::SortedRun,
    tables::{Chunks, Slots},
};
use crate::time::Timestamp;

/// The largest number of entries: a position has 31 bits, and one that tells heap from run. The
/// crate's own tests have a smaller limit, so that they can fill a heap.
const CAPACITY: usize = if cfg!(test) { 1 << 17 } else { (i32::MAX - 4 * ARITY as i32) as usize };
/// When the run has this many more holes than entries, entries move from it to the heap.
const TOLERANCE: usize = 64;
const ARITY: usize = 4;
const ROOT: usize = 3;
const VACANT: u128 = u128::MAX;

/// Four siblings, in one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Group([u128; ARITY]);

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

#[inline]
const fn parent(position: usize) -> usize {
    position / ARITY + 2
}

/// Returns the group that holds the children of a position.
#[inline]
const fn children(position: usize) -> usize {
    position - 2
}

impl<E> DelayHeap<E> {
    pub(crate) fn new() -> Self {
        let (groups, slots) = (Chunks::new(), Chunks::new());
        Self { groups, slots, table: Slots::new(), len: 0, run: SortedRun::new() }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len + self.run.len()
    }

    /// Returns how many more entries there is room for.
    pub(super) fn remaining_capacity(&self) -> usize {
        CAPACITY - self.len()
    }

    /// Returns the deadline and the sequence of the first entry.
    #[inline]
    pub(crate) fn first_key(&self) -> Option<(Timestamp, u64)> {
        let key = self.root().min(self.run.first());
        (key != VACANT).then(|| (deadline_of(key), sequence_of(key)))
    }

    /// Returns the deadlines of the first two entries, [`NEVER`](Timestamp::NEVER) for each that does
    /// not exist. The second one may be missed if it is behind many holes of the run.
    pub(crate) fn first_two(&self) -> [Timestamp; 2] {
        let group = children(ROOT);
        let child =
            if group < self.groups.len() { smallest(&self.groups[group].0).1 } else { VACANT };
        let mut keys = [self.root(), child, self.run.first(), self.run.second()];
        keys.sort_unstable();
        [deadline_of(keys[0]), deadline_of(keys[1])]
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
        if self.run.len() == 1 && !self.run.admits(key) {
            // One distant entry must not close the run to all that are nearer.
            self.move_first_to_heap();
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

    /// Takes the first entry out.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<Entry<E>> {
        let (key, slot) = self.pop_key()?;
        self.entry(key, slot)
    }

    /// Returns the first entry without taking it.
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
    pub(crate) fn remove(&mut self, ticket: Ticket) -> Option<Entry<E>> {
        let (position, key) = self.find(ticket)?;
        if !sorted_run::contains(position) {
            self.remove_key_at(position as usize);
            return self.entry(key, ticket.slot);
        }
        self.run.remove(position);
        // Two for each hole above the limit, so that the holes do not accumulate.
        for _ in 0..2 {
            if self.run.holes() > self.run.len() + TOLERANCE {
                self.move_first_to_heap();
            }
        }
        self.entry(key, ticket.slot)
    }

    /// Moves an entry to another deadline. Returns `false` if there is no such entry.
    pub(crate) fn reset(&mut self, ticket: Ticket, deadline: Timestamp) -> bool {
        let Some((position, _)) = self.find(ticket) else { return false };
        let key = key(deadline, ticket.sequence);
        if !sorted_run::contains(position) {
            self.sift(position as usize, key, ticket.slot);
        } else {
            self.run.remove(position);
            self.insert_into_heap(key, ticket.slot);
        }
        true
    }

    pub(crate) fn deadline(&self, ticket: Ticket) -> Option<Timestamp> {
        let (_, key) = self.find(ticket)?;
        Some(deadline_of(key))
    }

    /// Removes every entry that is `unwanted`, in no particular order, in linear time.
    pub(crate) fn remove_where(
        &mut self,
        mut unwanted: impl FnMut(Timestamp, &E) -> bool,
    ) -> Vec<Entry<E>> {
        let mut removed = Vec::new();
        while self.run.len() > 0 {
            self.move_first_to_heap();
        }
        let end = self.end();
        let mut kept = ROOT;
        for position in ROOT..end {
            let (key, slot) = (self.key(position), self.slots[position]);
            let deadline = deadline_of(key);
            let is_unwanted = self.table.get(slot).is_some_and(|e| unwanted(deadline, e));
            if !is_unwanted {
                self.place(kept, key, slot);
                kept += 1;
            } else if let Some(element) = self.table.remove(slot) {
                removed.push(Entry { deadline, sequence: sequence_of(key), element });
            }
        }
        while self.end() > kept {
            self.shrink();
        }
        self.heapify();
        removed
    }

    /// Iterates over all entries, in no particular order.
    pub(super) fn entries(&self) -> impl Iterator<Item = (Timestamp, Ticket, &E)> {
        (0..self.slot_bound()).filter_map(|slot| {
            let element = self.table.get(slot)?;
            let key = self.key_at(self.table.position(slot));
            Some((deadline_of(key), Ticket { slot, sequence: sequence_of(key) }, element))
        })
    }

    /// Takes everything out, as a heap of its own.
    pub(crate) fn remove_all(&mut self) -> Self {
        std::mem::replace(self, Self::new())
    }

    /// Takes an element out of its slot and leaves everything else as it is. This is for a heap that
    /// is emptied slot by slot and not used in any other way.
    pub(super) fn take(&mut self, slot: u32) -> Option<E> {
        self.table.take(slot)
    }

    /// Returns the entry of an element that was [taken](Self::take) out of this slot.
    pub(super) fn entry_of(&self, slot: u32, element: E) -> Entry<E> {
        let key = self.key_at(self.table.position(slot));
        Entry { deadline: deadline_of(key), sequence: sequence_of(key), element }
    }

    /// A bound that is larger than every slot in use.
    pub(super) fn slot_bound(&self) -> u32 {
        self.table.end()
    }

    /// Takes the element of an entry whose key has left heap and run.
    // Always inlined: an entry that is returned through memory is written in halves and read as a
    // whole, and that store-forwarding stall takes ten nanoseconds under the lock.
    #[inline(always)]
    fn entry(&mut self, key: u128, slot: u32) -> Option<Entry<E>> {
        let element = self.table.remove(slot)?;
        Some(Entry { deadline: deadline_of(key), sequence: sequence_of(key), element })
    }

    /// Moves the first entry of the run to the heap.
    fn move_first_to_heap(&mut self) {
        if let Some((key, slot)) = self.run.pop() {
            self.insert_into_heap(key, slot);
        }
    }

    fn insert_into_heap(&mut self, key: u128, slot: u32) {
        let position = self.grow();
        self.sift_up(position, key, slot);
    }

    /// Returns the smallest key of the heap itself, or `VACANT`, which is larger than any.
    #[inline]
    fn root(&self) -> u128 {
        if self.len == 0 { VACANT } else { self.key(ROOT) }
    }

    /// Returns the first position that is not in use.
    #[inline]
    fn end(&self) -> usize {
        self.len + ROOT
    }

    #[inline]
    fn key(&self, position: usize) -> u128 {
        self.groups[position / ARITY].0[position % ARITY]
    }

    /// Puts an entry at a position and records that position with its element.
    #[inline]
    fn place(&mut self, position: usize, key: u128, slot: u32) {
        self.groups[position / ARITY].0[position % ARITY] = key;
        self.slots[position] = slot;
        self.table.set_position(slot, position as u32);
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

    /// Returns the position and the key of the ticket's entry, if it is still here.
    fn find(&self, ticket: Ticket) -> Option<(u32, u128)> {
        self.table.get(ticket.slot)?;
        let position = self.table.position(ticket.slot);
        let key = self.key_at(position);
        (sequence_of(key) == ticket.sequence).then_some((position, key))
    }

    /// Takes the first key out of heap or run. Its element stays in its slot.
    #[inline(always)]
    fn pop_key(&mut self) -> Option<(u128, u32)> {
        if self.run.first() < self.root() {
            return self.run.pop();
        } else if self.len == 0 {
            return None;
        }
        let first = (self.root(), self.slots[ROOT]);
        self.remove_key_at(ROOT);
        Some(first)
    }

    fn remove_key_at(&mut self, position: usize) {
        let last = self.end() - 1;
        let (last_key, last_slot) = (self.key(last), self.slots[last]);
        self.shrink();
        if position != last {
            self.sift(position, last_key, last_slot);
        }
    }

    /// Adds a position at the end and returns it.
    fn grow(&mut self) -> usize {
        let position = self.end();
        if self.slots.len() == 0 {
            (0..ROOT).for_each(|_| self.slots.push(0));
            self.groups.push(Group([VACANT; ARITY]));
        } else if position % ARITY == 0 {
            self.groups.push(Group([VACANT; ARITY]));
        }
        self.slots.push(0);
        self.len += 1;
        position
    }

    /// Drops the last position.
    fn shrink(&mut self) {
        self.len -= 1;
        let position = self.end();
        self.slots.pop();
        if position % ARITY == 0 {
            self.groups.pop();
        } else {
            self.groups[position / ARITY].0[position % ARITY] = VACANT;
        }
    }

    /// Puts an entry at or near the free `position`. It may have to go up as well as down, because
    /// the entry that fills a hole in the middle comes from another branch.
    fn sift(&mut self, position: usize, key: u128, slot: u32) {
        if position > ROOT && key < self.key(parent(position)) {
            self.sift_up(position, key, slot);
        } else {
            self.sift_down(position, key, slot);
        }
    }

    /// Moves larger ancestors down until the entry fits.
    fn sift_up(&mut self, mut position: usize, key: u128, slot: u32) {
        while position > ROOT {
            let above = parent(position);
            let above_key = self.key(above);
            if above_key <= key {
                break;
            }
            let above_slot = self.slots[above];
            self.place(position, above_key, above_slot);
            position = above;
        }
        self.place(position, key, slot);
    }

    /// Moves smaller children up until the entry fits.
    fn sift_down(&mut self, mut position: usize, key: u128, slot: u32) {
        loop {
            let group = children(position);
            if group >= self.groups.len() {
                break;
            }
            let (index, child_key) = smallest(&self.groups[group].0);
            if child_key >= key {
                break;
            }
            let child = group * ARITY + index;
            let child_slot = self.slots[child];
            self.place(position, child_key, child_slot);
            position = child;
        }
        self.place(position, key, slot);
    }

    fn heapify(&mut self) {
        if self.len < 2 {
            return;
        }
        for position in (ROOT..=parent(self.end() - 1)).rev() {
            let (key, slot) = (self.key(position), self.slots[position]);
            self.sift_down(position, key, slot);
        }
    }
}

/// Returns the index and the key of the smallest of four siblings, without branching.
#[inline]
fn smallest(keys: &[u128; ARITY]) -> (usize, u128) {
    let left = if keys[1] < keys[0] { (1, keys[1]) } else { (0, keys[0]) };
    let right = if keys[3] < keys[2] { (3, keys[3]) } else { (2, keys[2]) };
    if right.1 < left.1 { right } else { left }
}

#[cfg(test)]
mod tests;
