//! The four-ary heap itself: how its entries move up and down. The [module](super) explains its layout.

use super::{ARITY, DelayHeap, ROOT, VACANT};

/// Four siblings, in one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Group(pub(super) [u128; ARITY]);

#[inline]
pub(super) const fn parent(position: usize) -> usize {
    position / ARITY + 2
}

/// Returns the group that holds the children of a position.
#[inline]
pub(super) const fn children(position: usize) -> usize {
    position - 2
}

impl<E> DelayHeap<E> {
    pub(super) fn insert_into_heap(&mut self, key: u128, slot: u32) {
        self.first = self.first.min(key);
        let position = self.grow();
        self.sift_up(position, key, slot);
    }

    /// Returns the smallest key of the heap itself, or `VACANT`, which is larger than any.
    #[inline]
    pub(super) fn root(&self) -> u128 {
        if self.len == 0 { VACANT } else { self.key(ROOT) }
    }

    /// Returns the first position that is not in use.
    #[inline]
    pub(super) fn end(&self) -> usize {
        self.len + ROOT
    }

    #[inline]
    pub(super) fn key(&self, position: usize) -> u128 {
        self.groups[position / ARITY].0[position % ARITY]
    }

    /// Puts an entry at a position and records that position with its element.
    #[inline]
    pub(super) fn place(&mut self, position: usize, key: u128, slot: u32) {
        self.groups[position / ARITY].0[position % ARITY] = key;
        self.slots[position] = slot;
        self.table.set_position(slot, position as u32);
    }

    pub(super) fn remove_key_at(&mut self, position: usize) {
        let last = self.end() - 1;
        let (last_key, last_slot) = (self.key(last), self.slots[last]);
        self.shrink();
        if position != last {
            self.sift(position, last_key, last_slot);
        }
    }

    /// Adds a position at the end and returns it.
    pub(super) fn grow(&mut self) -> usize {
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
    pub(super) fn shrink(&mut self) {
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
    pub(super) fn sift(&mut self, position: usize, key: u128, slot: u32) {
        if position > ROOT && key < self.key(parent(position)) {
            self.sift_up(position, key, slot);
        } else {
            self.sift_down(position, key, slot);
        }
    }

    /// Moves larger ancestors down until the entry fits.
    pub(super) fn sift_up(&mut self, mut position: usize, key: u128, slot: u32) {
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
    pub(super) fn sift_down(&mut self, mut position: usize, key: u128, slot: u32) {
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

    pub(super) fn heapify(&mut self) {
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
pub(super) fn smallest(keys: &[u128; ARITY]) -> (usize, u128) {
    let left = if keys[1] < keys[0] { (1, keys[1]) } else { (0, keys[0]) };
    let right = if keys[3] < keys[2] { (3, keys[3]) } else { (2, keys[2]) };
    if right.1 < left.1 { right } else { left }
}
