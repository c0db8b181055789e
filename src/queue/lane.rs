//! The lane: entries whose keys only grow, first in, first out.
//!
//! Tasks without delay, and timeouts that are all of one length, come in the order in which they
//! fall due. To keep those in a heap is wasted work: they are sorted already. The lane is an
//! array of keys and slots that is added to at the back and taken from at the front; an entry
//! that is removed from the middle leaves a hole.
//!
//! ```text
//!               front                              back
//!   │ · · · · · a b ○ c │ d e f g ○ ○ h i │ j k l m · · · │
//!     gone           ▲hole
//! ```
//!
//! The first and the last place in use are never holes: whoever makes one there takes away all
//! that are next to it. So timeouts that are cancelled soon, from the back, leave nothing, and
//! the array is never empty but for holes. How many there may be in the middle is the heap's
//! affair, which takes entries over from here ([`heap`](super::heap)).
//!
//! A position is the number of a place, counted through all chunks (modulo 2³¹). It does not change
//! as long as the entry is there, and means nothing once the lane is empty.

use std::collections::VecDeque;

use super::chunks::CHUNK;

const SHIFT: u32 = CHUNK.trailing_zeros();
const MASK: usize = CHUNK - 1;
/// Set in positions of the lane, and not in those of the heap.
const LANE: u32 = 1 << 31;
/// The key of a hole.
const HOLE: u128 = u128::MAX;
/// How far `second` looks past holes.
const GLANCE: usize = 64;

pub(super) struct Lane {
    chunks: VecDeque<Chunk>,
    /// The number of the first place of the first chunk.
    base: u32,
    /// The first place in use and the one after the last, from there.
    front: usize,
    back: usize,
    live: usize,
    /// The keys of the first and of the last place in use.
    first: u128,
    last: u128,
}

#[derive(Default)]
struct Chunk {
    keys: Vec<u128>,
    slots: Vec<u32>,
}

/// Whether a position is one of the lane.
#[inline]
pub(super) fn holds(position: u32) -> bool {
    position & LANE != 0
}

impl Lane {
    pub(super) const fn new() -> Self {
        let chunks = VecDeque::new();
        Self { chunks, base: 0, front: 0, back: 0, live: 0, first: HOLE, last: 0 }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.live
    }

    pub(super) fn holes(&self) -> usize {
        self.back - self.front - self.live
    }

    /// The smallest key; larger than any if there is none.
    #[inline]
    pub(super) fn first(&self) -> u128 {
        self.first
    }

    /// The slot of the first entry.
    pub(super) fn first_slot(&self) -> Option<u32> {
        self.chunks.front()?.slots.get(self.front).copied()
    }

    /// The next key; perhaps it is missed where there are many holes.
    pub(super) fn second(&self) -> u128 {
        let end = self.back.min(self.front + GLANCE);
        let rest = (self.front + 1..end).map(|place| self.key_at(place));
        rest.into_iter().find(|key| *key != HOLE).unwrap_or(HOLE)
    }

    /// Whether the key may be added at the back.
    #[inline]
    pub(super) fn admits(&self, key: u128) -> bool {
        self.last <= key
    }

    /// The position of the entry that is pushed next.
    #[inline]
    pub(super) fn next(&self) -> u32 {
        self.base.wrapping_add(self.back as u32) | LANE
    }

    /// Adds an entry whose key is larger than all others.
    #[inline(always)]
    pub(super) fn push(&mut self, key: u128, slot: u32) {
        let place = self.back;
        if place >> SHIFT == self.chunks.len() {
            // The first begins small, as in `Chunks`.
            let capacity = if self.chunks.is_empty() { 0 } else { CHUNK };
            let (keys, slots) = (Vec::with_capacity(capacity), Vec::with_capacity(capacity));
            self.chunks.push_back(Chunk { keys, slots });
        }
        let chunk = &mut self.chunks[place >> SHIFT];
        chunk.keys.push(key);
        chunk.slots.push(slot);
        self.back += 1;
        self.live += 1;
        self.last = key;
        self.first = self.first.min(key);
    }

    /// Takes the first entry out.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<(u128, u32)> {
        if self.live == 0 {
            return None;
        }
        // What lies before the front is not looked at again: no hole need be made.
        let popped = (self.first, self.chunks[0].slots[self.front]);
        self.live -= 1;
        if self.live == 0 {
            self.clear();
        } else {
            self.step();
            self.trim_front();
        }
        Some(popped)
    }

    /// The key of the entry at a position; larger than any if there is none.
    #[inline]
    pub(super) fn key(&self, position: u32) -> u128 {
        let place = self.place(position);
        if (self.front..self.back).contains(&place) { self.key_at(place) } else { HOLE }
    }

    /// Takes the entry at a position out, which is there.
    #[inline]
    pub(super) fn remove(&mut self, position: u32) {
        self.take(self.place(position));
    }

    #[inline]
    fn key_at(&self, place: usize) -> u128 {
        self.chunks[place >> SHIFT].keys[place & MASK]
    }

    #[inline]
    fn place(&self, position: u32) -> usize {
        (position.wrapping_sub(self.base) & !LANE) as usize
    }

    fn take(&mut self, place: usize) {
        self.chunks[place >> SHIFT].keys[place & MASK] = HOLE;
        self.live -= 1;
        if self.live == 0 {
            self.clear();
        } else if place == self.front {
            self.trim_front();
        } else if place + 1 == self.back {
            self.trim_back();
        }
    }

    /// Nothing is left: one chunk is kept, and begins anew.
    fn clear(&mut self) {
        self.chunks.truncate(1);
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

    /// The front moves on by one place.
    #[inline]
    fn step(&mut self) {
        self.front += 1;
        if self.front == CHUNK {
            self.chunks.pop_front();
            self.front -= CHUNK;
            self.back -= CHUNK;
            self.base = self.base.wrapping_add(CHUNK as u32) & !LANE;
        }
    }

    fn trim_back(&mut self) {
        while self.key_at(self.back - 1) == HOLE {
            self.back -= 1;
            let last = self.back >> SHIFT;
            self.chunks[last].keys.pop();
            self.chunks[last].slots.pop();
            // All but one spare.
            self.chunks.truncate(last + 2);
        }
        self.last = self.key_at(self.back - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(lane: &mut Lane, key: u128, slot: u32) -> u32 {
        let position = lane.next();
        lane.push(key, slot);
        position
    }

    /// M84, M88, M90.
    #[test]
    fn what_goes_in_first_comes_out_first() {
        let mut lane = Lane::new();
        for round in 0..3_u128 {
            let count = 3 * CHUNK as u32 + 5;
            for n in 0..count {
                let key = round << 32 | u128::from(n + 2);
                assert!(lane.admits(key));
                let position = push(&mut lane, key, n);
                assert!(holds(position));
                assert_eq!(lane.key(position), key);
            }
            assert!(!lane.admits(1));
            for n in 0..count {
                assert_eq!(lane.pop().map(|(_, slot)| slot), Some(n));
            }
            assert_eq!((lane.len(), lane.holes(), lane.chunks.len()), (0, 0, 1));
            assert!(lane.admits(0), "an empty lane is open to all");
        }
    }

    /// M89: two billion places later the numbers begin again.
    #[test]
    fn positions_go_round() {
        let mut lane = Lane { base: LANE - 2, ..Lane::new() };
        let count = 4 * CHUNK;
        let positions: Vec<_> = (0..count).map(|n| push(&mut lane, n as u128, n as u32)).collect();
        for (n, position) in positions.iter().enumerate() {
            assert!(holds(*position));
            assert_eq!(lane.key(*position), n as u128);
        }
        for (n, position) in positions.into_iter().enumerate() {
            assert_eq!(lane.key(position), n as u128);
            assert_eq!(lane.pop(), Some((n as u128, n as u32)));
            assert_eq!(lane.key(position), HOLE);
        }
    }

    /// M86, M87.
    #[test]
    fn holes_at_the_ends_are_taken_away() {
        let mut lane = Lane::new();
        let count = 4 * CHUNK;
        let positions: Vec<_> = (0..count).map(|n| push(&mut lane, n as u128, n as u32)).collect();
        for (n, position) in positions.iter().enumerate().skip(1).take(count - 2) {
            assert_eq!(lane.key(*position), n as u128);
            lane.remove(*position);
            assert_eq!(lane.key(*position), HOLE);
        }
        assert_eq!((lane.len(), lane.holes()), (2, count - 2));
        assert_eq!(lane.second(), HOLE, "that is further than a glance");
        lane.remove(positions[count - 1]);
        assert_eq!(lane.key(positions[count - 1]), HOLE);
        assert_eq!((lane.len(), lane.holes()), (1, 0));
        assert!(lane.chunks.len() <= 2);
        assert!(lane.admits(1), "it ends with the first now");
        assert_eq!(push(&mut lane, 9, 7) & !LANE, 1);
        assert_eq!(lane.second(), 9);
        assert_eq!(lane.pop(), Some((0, 0)));
        assert_eq!(lane.pop(), Some((9, 7)));
        assert_eq!(lane.pop(), None);
    }
}
