//! The array heap: a four-ary heap of keys in an array, each key with the slot of its element.
//!
//! # Layout
//!
//! ```text
//!   groups   [· · · 0] [1 2 3 4] [5 6 7 8] …   keys; four siblings fill one cache line
//!   slots    [· · · a] [b c d e] [f g h i] …   for each key, the slot of its element
//! ```
//!
//! The root is at position 3, so that the children of each node begin at a multiple of four and share a cache line. An
//! unused position holds the largest possible key, so the search for the smallest of four siblings compares all four
//! and need not know which of them exist.
//!
//! An entry can be removed from the middle because the slot table knows its position. The heap reports each new
//! position to the table ([`Positions`]), as Java's `DelayedWorkQueue.siftUp` calls `setIndex`.
//!
//! # Invariants
//!
//! 1. No key is smaller than its parent's.
//! 2. For every position `p` in use, the last position that was reported for `slots[p]` is `p`.
//! 3. Every unused position of a group holds `VACANT`. At most one group follows the group that has the last entry.

const ARITY: usize = 4;
const ROOT: usize = 3;
/// The key of an unused position: larger than any other.
pub(super) const VACANT: u128 = u128::MAX;

/// A key, and the slot of its element.
pub(super) type Keyed = (u128, u32);

pub(super) trait Positions {
    fn set_position(&mut self, slot: u32, position: u32);
}

pub(super) struct ArrayHeap {
    groups: Vec<Siblings>,
    slots: Vec<[u32; ARITY]>,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Siblings([u128; ARITY]);

const fn parent(position: usize) -> usize {
    position / ARITY + 2
}

/// Returns the group that holds the children of a position.
const fn children(position: usize) -> usize {
    position - 2
}

impl ArrayHeap {
    pub(super) const fn new() -> Self {
        Self { groups: Vec::new(), slots: Vec::new(), len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn first(&self) -> u128 {
        if self.len == 0 { VACANT } else { self.key(ROOT) }
    }

    pub(super) fn second(&self) -> u128 {
        self.groups.get(children(ROOT)).map_or(VACANT, |group| smallest(group).1)
    }

    pub(super) fn next(&self) -> u32 {
        self.end() as u32
    }

    #[inline]
    pub(super) fn key(&self, position: usize) -> u128 {
        self.groups[position / ARITY].0[position % ARITY]
    }

    #[inline]
    fn entry(&self, position: usize) -> Keyed {
        (self.key(position), self.slots[position / ARITY][position % ARITY])
    }

    pub(super) fn insert(&mut self, positions: &mut impl Positions, entry: Keyed) {
        let position = self.grow();
        self.sift_up(positions, position, entry);
    }

    #[inline]
    pub(super) fn pop(&mut self, positions: &mut impl Positions) -> Option<Keyed> {
        if self.len == 0 {
            return None;
        }
        let first = self.entry(ROOT);
        self.remove_at(positions, ROOT);
        Some(first)
    }

    pub(super) fn remove_at(&mut self, positions: &mut impl Positions, position: usize) {
        let last = self.end() - 1;
        let entry = self.entry(last);
        self.shrink();
        if position != last {
            self.sift(positions, position, entry);
        }
    }

    /// Passes the entries no later than `latest` to `note`, in no particular order. Takes time linear in their number.
    pub(super) fn up_to(&self, latest: u128, note: &mut dyn FnMut(Keyed)) {
        self.visit(ROOT, latest, note);
    }

    fn visit(&self, position: usize, latest: u128, note: &mut dyn FnMut(Keyed)) {
        if position < self.end() && self.key(position) <= latest {
            note(self.entry(position));
            let group = children(position) * ARITY;
            (group..group + ARITY).for_each(|child| self.visit(child, latest, note));
        }
    }

    fn end(&self) -> usize {
        self.len + ROOT
    }

    #[inline]
    fn grow(&mut self) -> usize {
        let position = self.end();
        if position / ARITY == self.groups.len() {
            self.add_group();
        }
        self.len += 1;
        position
    }

    #[cold]
    fn add_group(&mut self) {
        self.groups.push(Siblings([VACANT; ARITY]));
        self.slots.push([0; ARITY]);
    }

    /// Drops the last position. The heap keeps one vacant group for the next entry, and drops a second one.
    #[inline]
    fn shrink(&mut self) {
        self.len -= 1;
        let position = self.end();
        let (group, index) = (position / ARITY, position % ARITY);
        self.groups[group].0[index] = VACANT;
        if index == 0 && self.groups.len() > group + 1 {
            self.drop_group();
        }
    }

    #[cold]
    fn drop_group(&mut self) {
        self.groups.pop();
        self.slots.pop();
        // Amortized over the removals that have shortened the heap.
        if self.groups.len() < self.groups.capacity() / 4 {
            self.groups.shrink_to(self.groups.capacity() / 2);
            self.slots.shrink_to(self.groups.capacity());
        }
    }

    /// Replaces the entry at `position`, and moves the new entry up or down to where it belongs. Even the last entry of
    /// the heap may have to move up, if it fills a hole in another branch.
    // Always inlined, as is `sift_up`: in a heap of few levels, the calls would be much of the work.
    #[inline(always)]
    pub(super) fn sift(&mut self, positions: &mut impl Positions, position: usize, entry: Keyed) {
        if position > ROOT && entry.0 < self.key(parent(position)) {
            self.sift_up(positions, position, entry);
        } else {
            self.sift_down(positions, position, entry);
        }
    }

    #[inline(always)]
    fn sift_up(&mut self, positions: &mut impl Positions, mut position: usize, entry: Keyed) {
        while position > ROOT {
            let above = parent(position);
            if self.key(above) <= entry.0 {
                break;
            }
            self.place(positions, position, self.entry(above));
            position = above;
        }
        self.place(positions, position, entry);
    }

    fn sift_down(&mut self, positions: &mut impl Positions, mut position: usize, entry: Keyed) {
        loop {
            let group = children(position);
            let Some(siblings) = self.groups.get(group) else { break };
            let (index, child) = smallest(siblings);
            if child >= entry.0 {
                break;
            }
            self.place(positions, position, (child, self.slots[group][index]));
            position = group * ARITY + index;
        }
        self.place(positions, position, entry);
    }

    #[inline(always)]
    fn place(&mut self, positions: &mut impl Positions, position: usize, (key, slot): Keyed) {
        self.groups[position / ARITY].0[position % ARITY] = key;
        self.slots[position / ARITY][position % ARITY] = slot;
        positions.set_position(slot, position as u32);
    }
}

#[inline]
fn smallest(Siblings(keys): &Siblings) -> (usize, u128) {
    let left = if keys[1] < keys[0] { (1, keys[1]) } else { (0, keys[0]) };
    let right = if keys[3] < keys[2] { (3, keys[3]) } else { (2, keys[2]) };
    if right.1 < left.1 { right } else { left }
}

#[cfg(test)]
mod tests;
