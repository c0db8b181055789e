//! The sorted run: entries that arrive in the order of their keys, first in, first out.
//!
//! Tasks without a delay, and timeouts of equal length, arrive in this order. The run is a list of chunks: it appends
//! entries at the back and pops them from the front. An entry that is removed from the middle leaves a hole.
//!
//! ```text
//!               front                              back
//!   │ · · · · · a b ○ c │ d e f g ○ ○ h i │ j k l m · · · │
//!    popped          ▲hole
//! ```
//!
//! The first and the last place in use are never holes: the removal of the first or the last entry also drops the holes
//! next to it. So a timeout leaves no hole if it is cancelled before the next timeout is set, and a run never consists
//! of holes alone. If there are many more holes in the middle than entries, a removal moves entries out of the run
//! ([`limit_holes`](SortedRun::limit_holes)).
//!
//! A position names the run and a place. Places are numbered across all chunks, modulo 2²⁴, which is also the largest
//! number of places in a run. A position does not change while the entry is in the run.

use std::collections::VecDeque;

use super::{SMALL, array_heap::Keyed};

/// The bit that marks a position in a run; positions in the heap do not have it.
const IN_RUN: u32 = 1 << 31;
/// The bits of a position that name the place. The bits between them and `IN_RUN` name the run.
const PLACE: u32 = (1 << PLACE_BITS) - 1;
const PLACE_BITS: u32 = if SMALL { 16 } else { 24 };
/// Once the holes of a run outnumber its entries by more than this, some entries leave the run.
pub(super) const TOLERANCE: usize = 64;
const HOLE: u128 = u128::MAX;
/// `second` considers only this many places, counted from the front.
const GLANCE: usize = 64;
const CHUNK: usize = 512;
const SHIFT: u32 = CHUNK.trailing_zeros();
const MASK: usize = CHUNK - 1;

pub(super) struct SortedRun {
    chunks: VecDeque<RunChunk>,
    /// The bits that are the same in all positions of this run: `IN_RUN`, and the bits that name the run.
    tag: u32,
    /// The number of the first place in the first chunk.
    base: u32,
    /// The first place in use, relative to `base`.
    front: usize,
    /// The place after the last one in use, also relative to `base`.
    back: usize,
    live: usize,
    first: u128,
    last: u128,
}

struct RunChunk {
    keys: Vec<u128>,
    slots: Vec<u32>,
}

/// Returns the number of the run that this position is in; `None` if the position is in the heap.
pub(super) const fn number(position: u32) -> Option<u32> {
    if position & IN_RUN == 0 { None } else { Some((position & !IN_RUN) >> PLACE_BITS) }
}

impl SortedRun {
    pub(super) const fn numbered(number: u32) -> Self {
        let chunks = VecDeque::new();
        let tag = IN_RUN | number << PLACE_BITS;
        Self { chunks, tag, base: 0, front: 0, back: 0, live: 0, first: HOLE, last: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.live
    }

    pub(super) fn holes(&self) -> usize {
        self.back - self.front - self.live
    }

    pub(super) fn first(&self) -> u128 {
        self.first
    }

    /// Returns the largest key; zero if the run is empty.
    pub(super) fn last(&self) -> u128 {
        self.last
    }

    /// Returns the second smallest key, or `HOLE` if there is none or if it is behind many holes.
    pub(super) fn second(&self) -> u128 {
        let end = self.back.min(self.front + GLANCE);
        let rest = (self.front + 1..end).map(|place| self.key_at(place));
        rest.into_iter().find(|key| *key != HOLE).unwrap_or(HOLE)
    }

    /// Passes to `note` the entries that are no later than `latest`.
    pub(super) fn up_to(&self, latest: u128, note: &mut dyn FnMut(Keyed)) {
        for place in self.front..self.back {
            match self.key_at(place) {
                HOLE => {}
                key if key > latest => break,
                key => note((key, self.chunks[place >> SHIFT].slots[place & MASK])),
            }
        }
    }

    #[inline]
    pub(super) fn admits(&self, key: u128) -> bool {
        self.last <= key && self.back <= PLACE as usize
    }

    pub(super) fn next(&self) -> u32 {
        self.base.wrapping_add(self.back as u32) & PLACE | self.tag
    }

    /// Appends an entry, whose key must be larger than all keys in the run.
    #[inline(always)]
    pub(super) fn push(&mut self, key: u128, slot: u32) {
        let place = self.back;
        if place >> SHIFT == self.chunks.len() {
            self.add_chunk();
        }
        let chunk = &mut self.chunks[place >> SHIFT];
        chunk.keys.push(key);
        chunk.slots.push(slot);
        if self.live == 0 {
            self.first = key;
        }
        self.back += 1;
        self.live += 1;
        self.last = key;
    }

    #[cold]
    fn add_chunk(&mut self) {
        // The first chunk begins small and is copied while it grows: most queues have about ten tasks.
        let capacity = if self.chunks.is_empty() { 0 } else { CHUNK };
        let (keys, slots) = (Vec::with_capacity(capacity), Vec::with_capacity(capacity));
        self.chunks.push_back(RunChunk { keys, slots });
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<Keyed> {
        if self.live == 0 {
            return None;
        }
        // Places before the front are not read again, so no hole needs to be written.
        let chunk = self.chunks.front()?;
        let popped = (self.first, chunk.slots[self.front]);
        self.live -= 1;
        match chunk.keys.get(self.front + 1) {
            Some(next) if *next != HOLE => {
                self.first = *next;
                self.front += 1;
            }
            _ => self.pass_popped(),
        }
        Some(popped)
    }

    /// Returns the key at a position, or `HOLE` if the run has no entry there. `HOLE` is larger than every key.
    #[inline]
    pub(super) fn key(&self, position: u32) -> u128 {
        let place = self.place(position);
        if place == self.front {
            self.first
        } else if (self.front..self.back).contains(&place) {
            self.key_at(place)
        } else {
            HOLE
        }
    }

    /// Removes the entry at a position, where there must be one. Returns `true` if that leaves a hole.
    #[inline]
    pub(super) fn remove(&mut self, position: u32) -> bool {
        self.live -= 1;
        if self.live == 0 {
            self.clear();
            return false;
        }
        self.remove_one_of_several(self.place(position))
    }

    /// If there are too many holes, takes out the first one or two entries and passes them to `displaced`. Called after
    /// a removal that leaves a hole.
    pub(super) fn limit_holes(&mut self, mut displaced: impl FnMut(Keyed)) {
        for _ in 0..2 {
            if self.holes() > self.live + TOLERANCE {
                self.pop().into_iter().for_each(&mut displaced);
            }
        }
    }

    fn remove_one_of_several(&mut self, place: usize) -> bool {
        self.chunks[place >> SHIFT].keys[place & MASK] = HOLE;
        if place == self.front {
            self.trim_front();
        } else if place + 1 == self.back {
            self.trim_back();
        } else {
            return true;
        }
        false
    }

    #[inline]
    fn key_at(&self, place: usize) -> u128 {
        self.chunks[place >> SHIFT].keys[place & MASK]
    }

    fn place(&self, position: u32) -> usize {
        (position.wrapping_sub(self.base) & PLACE) as usize
    }

    /// Moves the front from a popped entry past any holes to the next entry. Clears the run if it is empty.
    #[inline(never)]
    fn pass_popped(&mut self) {
        if self.live == 0 {
            self.clear();
        } else {
            self.step();
            self.trim_front();
        }
    }

    fn clear(&mut self) {
        if self.chunks.len() > 1 {
            self.chunks.truncate(1);
        }
        if let Some(chunk) = self.chunks.front_mut() {
            chunk.keys.clear();
            chunk.slots.clear();
        }
        (self.front, self.back) = (0, 0);
        (self.first, self.last) = (HOLE, 0);
    }

    #[inline]
    fn trim_front(&mut self) {
        loop {
            self.first = self.key_at(self.front);
            if self.first != HOLE {
                break;
            }
            self.step();
        }
    }

    #[inline]
    fn step(&mut self) {
        self.front += 1;
        if self.front == CHUNK {
            self.chunks.pop_front();
            self.front -= CHUNK;
            self.back -= CHUNK;
            self.base = self.base.wrapping_add(CHUNK as u32) & PLACE;
        }
    }

    fn trim_back(&mut self) {
        while self.key_at(self.back - 1) == HOLE {
            self.back -= 1;
            let last = self.back >> SHIFT;
            self.chunks[last].keys.pop();
            self.chunks[last].slots.pop();
            // One spare chunk is kept.
            self.chunks.truncate(last + 2);
        }
        self.last = self.key_at(self.back - 1);
    }
}

#[cfg(test)]
mod tests;
