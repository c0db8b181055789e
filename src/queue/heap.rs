//! The heap: what is due next. Plain data; no lock, no clock, no task.
//!
//! A heap of four children to a node, in an array. Each entry is a *key*, one 128-bit number
//! that orders by deadline, then by the order of submission:
//!
//! ```text
//!   key = deadline (64 bits, nanoseconds) │ sequence (64 bits, never used twice)
//! ```
//!
//! Equal deadlines are therefore exactly first come, first served, with no rule beside the
//! comparison of two numbers, and nothing ever wraps.
//!
//! # Layout
//!
//! ```text
//!   groups   [· · · 0] [1 2 3 4] [5 6 7 8] …   keys; four siblings fill one cache line
//!   slots    [· · · a] [b c d e] [f g h i] …   for each key the slot of its element
//!   table    slot ─▶ (position, element)       see `slots`
//! ```
//!
//! The root stands at position 3, so that the children of any node begin at a multiple of four
//! and share a line. Unused places hold the largest number, so the smallest of four siblings is
//! found by comparing all four, with no question whether they exist. Sifting moves keys and slots
//! and writes positions; it follows no pointer into an element. The arrays grow by chunks
//! (`chunks`), so no insertion pays for a copy of all.
//!
//! # The lane
//!
//! Entries that come in the order in which they fall due need no heap. They go to the [`lane`]
//! beside it, which is in order by itself; a bit of the position says where an entry is. The
//! first entry of all is the smaller of root and lane. An entry goes to the heap if the lane ends
//! with a larger key, and from the lane to the heap in two cases: it is the only one there and a
//! nearer one comes, or removals have left the lane with more holes than entries.
//!
//! # Tickets
//!
//! Who inserts gets a [`Ticket`]: slot and sequence. The slot finds the entry, and the sequence,
//! compared with the key found there, proves that it is still the same one. A ticket of an entry
//! that is gone is refused, also when its slot has a new tenant.
//!
//! # Invariants
//!
//! 1. No key is smaller than its parent's.
//! 2. `table[slots[p]].position == p` for every position in use, and likewise for the lane's.
//! 3. As many elements as keys; every unused place of a group is `VACANT`.
//! 4. The keys of the lane grow. It is never longer than twice the entries that it once had, and
//!    when most of these have been removed the rest is in the heap.

use super::{
    chunks::Chunks,
    lane::{self, Lane},
    slots::Slots,
};
use crate::time::Timestamp;

/// The largest number of entries: positions are 31 bits, and one that says where. The crate's own
/// tests have fewer, so that they can see a heap that is full.
const CAPACITY: usize = if cfg!(test) { 1 << 17 } else { (i32::MAX - 4 * ARITY as i32) as usize };
/// With so many holes more than entries the lane gives entries to the heap.
const TOLERANCE: usize = 64;
const ARITY: usize = 4;
const ROOT: usize = 3;
const VACANT: u128 = u128::MAX;

/// Four siblings, in one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Group([u128; ARITY]);

/// Names one entry for as long as it is in the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) slot: u32,
    pub(crate) sequence: u64,
}

impl Ticket {
    /// The same entry, which was taken out and put in again since, into this slot.
    pub(crate) fn moved_to(self, slot: Option<u32>) -> Self {
        Self { slot: slot.unwrap_or(self.slot), ..self }
    }
}

/// What was taken out of the heap.
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
    /// How many entries the heap itself has.
    len: usize,
    lane: Lane,
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

/// The group that holds the children of a position.
#[inline]
const fn children(position: usize) -> usize {
    position - 2
}

impl<E> DelayHeap<E> {
    pub(crate) fn new() -> Self {
        let (groups, slots) = (Chunks::new(), Chunks::new());
        Self { groups, slots, table: Slots::new(), len: 0, lane: Lane::new() }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len + self.lane.len()
    }

    /// How many more it can hold.
    pub(super) fn room(&self) -> usize {
        CAPACITY - self.len()
    }

    /// The deadline and the sequence of the entry that is due first.
    #[inline]
    pub(crate) fn head(&self) -> Option<(Timestamp, u64)> {
        let key = self.root().min(self.lane.first());
        (key != VACANT).then(|| (deadline_of(key), sequence_of(key)))
    }

    /// The deadlines of the first two entries; those that are not there are never. A second one
    /// behind many holes of the lane may be missed.
    pub(crate) fn first_two(&self) -> [Timestamp; 2] {
        let group = children(ROOT);
        let child =
            if group < self.groups.len() { smallest(&self.groups[group].0).1 } else { VACANT };
        let mut keys = [self.root(), child, self.lane.first(), self.lane.second()];
        keys.sort_unstable();
        [deadline_of(keys[0]), deadline_of(keys[1])]
    }

    /// Inserts an element. Among equal deadlines the smaller sequence comes first; no two
    /// entries may have the same. Gives the element back if two billion are there already.
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
        if self.lane.len() == 1 && !self.lane.admits(key) {
            // One far entry does not close the lane to all that are nearer.
            self.take_over();
        }
        if self.lane.admits(key) {
            let slot = self.table.insert(element, self.lane.next());
            self.lane.push(key, slot);
            return Ok(Ticket { slot, sequence });
        }
        let position = self.grow();
        let slot = self.table.insert(element, position as u32);
        self.sift_up(position, key, slot);
        Ok(Ticket { slot, sequence })
    }

    /// Takes out the first entry.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<Entry<E>> {
        let (key, slot) = self.pop_key()?;
        self.entry(key, slot)
    }

    /// The first entry.
    pub(super) fn first(&self) -> Option<(Timestamp, Ticket, &E)> {
        let is_in_lane = self.lane.first() < self.root();
        let (deadline, sequence) = self.head()?;
        let slot = if is_in_lane { self.lane.first_slot()? } else { self.slots[ROOT] };
        Some((deadline, Ticket { slot, sequence }, self.table.get(slot)?))
    }

    /// Takes out the first element, and keeps its slot for it: the ticket comes with it. It is to
    /// be [put back](Self::put_back) or [forgotten](Self::forget).
    pub(super) fn lend(&mut self) -> Option<(Timestamp, Ticket, E)> {
        let (key, slot) = self.pop_key()?;
        let element = self.table.take(slot)?;
        Some((deadline_of(key), Ticket { slot, sequence: sequence_of(key) }, element))
    }

    /// Puts an element back that was lent.
    pub(super) fn put_back(&mut self, deadline: Timestamp, ticket: Ticket, element: E) {
        self.table.put_back(ticket.slot, element);
        self.insert_into_heap(key(deadline, ticket.sequence), ticket.slot);
    }

    /// Gives up the slot of an element that was lent.
    pub(super) fn forget(&mut self, ticket: Ticket) {
        self.table.free(ticket.slot);
    }

    /// Takes an entry out, wherever it is.
    pub(crate) fn remove(&mut self, ticket: Ticket) -> Option<Entry<E>> {
        let (position, key) = self.find(ticket)?;
        if !lane::holds(position) {
            self.remove_key_at(position as usize);
            return self.entry(key, ticket.slot);
        }
        self.lane.remove(position);
        // Two for each hole that is one too many, so that they do not pile up.
        for _ in 0..2 {
            if self.lane.holes() > self.lane.len() + TOLERANCE {
                self.take_over();
            }
        }
        self.entry(key, ticket.slot)
    }

    /// Moves an entry to another deadline, in place. Whether it was there.
    pub(crate) fn reset(&mut self, ticket: Ticket, deadline: Timestamp) -> bool {
        let Some((position, _)) = self.find(ticket) else { return false };
        let key = key(deadline, ticket.sequence);
        if !lane::holds(position) {
            self.sift(position as usize, key, ticket.slot);
        } else {
            self.lane.remove(position);
            self.insert_into_heap(key, ticket.slot);
        }
        true
    }

    pub(crate) fn deadline(&self, ticket: Ticket) -> Option<Timestamp> {
        let (_, key) = self.find(ticket)?;
        Some(deadline_of(key))
    }

    /// Takes out every entry that is `unwanted`, in no particular order, in linear time.
    pub(crate) fn remove_where(
        &mut self,
        mut unwanted: impl FnMut(Timestamp, &E) -> bool,
    ) -> Vec<Entry<E>> {
        let mut removed = Vec::new();
        while self.lane.len() > 0 {
            self.take_over();
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

    /// What is here, in no particular order.
    pub(super) fn entries(&self) -> impl Iterator<Item = (Timestamp, Ticket, &E)> {
        (0..self.slots()).filter_map(|slot| {
            let element = self.table.get(slot)?;
            let key = self.key_at(self.table.position(slot));
            Some((deadline_of(key), Ticket { slot, sequence: sequence_of(key) }, element))
        })
    }

    /// Takes out everything, in no particular order.
    pub(crate) fn remove_all(&mut self) -> Self {
        std::mem::replace(self, Self::new())
    }

    /// Takes an element out of its slot, and leaves the rest as it is. For a heap that is emptied
    /// so, slot by slot, and not used for anything else.
    pub(super) fn take(&mut self, slot: u32) -> Option<E> {
        self.table.take(slot)
    }

    /// The entry of an element that was [taken](Self::take) out of this slot.
    pub(super) fn entry_of(&self, slot: u32, element: E) -> Entry<E> {
        let key = self.key_at(self.table.position(slot));
        Entry { deadline: deadline_of(key), sequence: sequence_of(key), element }
    }

    /// All slots in use are smaller.
    pub(super) fn slots(&self) -> u32 {
        self.table.end()
    }

    /// Takes the element of an entry that is out of heap and lane.
    // Always: given back through memory it is written in halves and read as a whole, for which the
    // processor stalls, ten nanoseconds under the lock.
    #[inline(always)]
    fn entry(&mut self, key: u128, slot: u32) -> Option<Entry<E>> {
        let element = self.table.remove(slot)?;
        Some(Entry { deadline: deadline_of(key), sequence: sequence_of(key), element })
    }

    /// Takes the first entry of the lane over.
    fn take_over(&mut self) {
        if let Some((key, slot)) = self.lane.pop() {
            self.insert_into_heap(key, slot);
        }
    }

    fn insert_into_heap(&mut self, key: u128, slot: u32) {
        let position = self.grow();
        self.sift_up(position, key, slot);
    }

    /// The smallest key of the heap itself; larger than any if there is none.
    #[inline]
    fn root(&self) -> u128 {
        if self.len == 0 { VACANT } else { self.key(ROOT) }
    }

    /// The first position that is not in use.
    #[inline]
    fn end(&self) -> usize {
        self.len + ROOT
    }

    #[inline]
    fn key(&self, position: usize) -> u128 {
        self.groups[position / ARITY].0[position % ARITY]
    }

    /// Puts an entry at a position, and tells its element where it is.
    #[inline]
    fn place(&mut self, position: usize, key: u128, slot: u32) {
        self.groups[position / ARITY].0[position % ARITY] = key;
        self.slots[position] = slot;
        self.table.set_position(slot, position as u32);
    }

    /// The key at a position, be it of the heap or of the lane.
    #[inline]
    fn key_at(&self, position: u32) -> u128 {
        if lane::holds(position) { self.lane.key(position) } else { self.key(position as usize) }
    }

    /// Where the ticket's entry is, and its key, if it still is.
    fn find(&self, ticket: Ticket) -> Option<(u32, u128)> {
        self.table.get(ticket.slot)?;
        let position = self.table.position(ticket.slot);
        let key = self.key_at(position);
        (sequence_of(key) == ticket.sequence).then_some((position, key))
    }

    /// Takes the first entry out of heap or lane; its element stays in its slot.
    #[inline(always)]
    fn pop_key(&mut self) -> Option<(u128, u32)> {
        if self.lane.first() < self.root() {
            return self.lane.pop();
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

    /// Makes room for one more entry; gives its position.
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

    /// Gives up the last position.
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

    /// Puts an entry where `position` is free: it may have to go up as well as down, for what
    /// fills a hole in the middle comes from another branch.
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
            let (lane, child_key) = smallest(&self.groups[group].0);
            if child_key >= key {
                break;
            }
            let child = group * ARITY + lane;
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

/// The smallest of four siblings and its place among them, without a branch.
#[inline]
fn smallest(keys: &[u128; ARITY]) -> (usize, u128) {
    let left = if keys[1] < keys[0] { (1, keys[1]) } else { (0, keys[0]) };
    let right = if keys[3] < keys[2] { (3, keys[3]) } else { (2, keys[2]) };
    if right.1 < left.1 { right } else { left }
}

#[cfg(test)]
mod tests;
