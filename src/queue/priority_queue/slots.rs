//! The slot table: a stable place for each element, and with it the element's key or the position of that key.
//!
//! The heap moves its entries, but a ticket needs a fixed name: the *slot*, a chunk's number and a place in that chunk.
//! A chunk belongs as a whole either to the near part or to one bucket of the [calendar](super::calendar).
//!
//! ```text
//!   near chunk   elements │ positions   the key is in the heap or in a run, at that position
//!   far chunk    elements │ keys        the key is here, and nowhere else
//! ```
//!
//! Each chunk threads a free list through its unused positions or keys. The chunks of the near part form a ring, and so
//! do each bucket's; chunks with free places come first. An empty chunk is freed, unless it is the first of the
//! near part or the one that the calendar keeps. A chunk that begins a new ring starts small and is copied as it grows.

use std::mem;

use super::{SMALL, UnderLock, array_heap::Positions};

pub(super) const CHUNK: usize = if SMALL { 8 } else { 512 };
const SHIFT: u32 = CHUNK.trailing_zeros();
const MASK: usize = CHUNK - 1;
const FULL: u32 = CHUNK as u32;
/// Stands for a missing place, chunk or bucket.
pub(super) const NONE: u32 = u32::MAX;
const NEAR: u32 = u32::MAX;
/// A chunk that starts small gets memory for at most this many places to begin with.
const SMALL_CHUNK: usize = 64;
/// The number of places whose memory a chunk writes in one pass.
const STEP: usize = 32;
/// Half the number of chunks that a slot can name. Once this many chunks are in use, no far chunk is added. So the near
/// part always finds a free chunk: it needs one only when all near chunks are full.
const MOST: usize = 1 << (31 - SHIFT);

pub(super) struct Slots<E> {
    chunks: Vec<Chunk<E>>,
    near: u32,
    /// The chunks that have no memory and are in no ring.
    vacant: Vec<u32>,
    /// The memory of a freed chunk, kept for the next new chunk. So a program that keeps inserting an entry, resetting
    /// it to a nearer deadline and removing it does not allocate each time.
    spare: Chunk<E>,
}

pub(super) struct Chunk<E> {
    elements: Vec<Option<E>>,
    /// In a near chunk, the position for each used place, and the next free place for each free one.
    positions: Vec<u32>,
    /// In a far chunk, the key for each used place, and the next free place for each free one.
    keys: Vec<u128>,
    free: u32,
    pub(super) used: u32,
    /// The next chunk in the ring, or this chunk itself if it is alone.
    pub(super) next: u32,
    previous: u32,
    /// `NEAR`, or the number of the bucket to which the chunk belongs.
    pub(super) owner: u32,
}

pub(super) enum KeyPlace {
    Near(u32),
    Far(u128),
}

impl<E> Slots<E> {
    pub(super) const fn new() -> Self {
        Self { chunks: Vec::new(), near: NONE, vacant: Vec::new(), spare: Chunk::vacant() }
    }

    #[inline(always)]
    pub(super) fn insert(&mut self, element: UnderLock<E>, position: u32) -> u32 {
        loop {
            let index = self.near;
            let first = self.chunks.get_mut(index as usize);
            if let Some(chunk) = first.filter(|chunk| chunk.used < FULL) {
                let offset = chunk.insert(element, position);
                if chunk.used == FULL {
                    self.near = chunk.next;
                }
                return (index << SHIFT) | offset;
            }
            self.grow();
        }
    }

    #[inline]
    pub(super) fn remove(&mut self, slot: u32) -> Option<UnderLock<E>> {
        let element = self.take(slot).map(UnderLock::new)?;
        let (index, offset) = (chunk_of(slot), slot & MASK as u32);
        let chunk = &mut self.chunks[index as usize];
        chunk.used -= 1;
        if chunk.used == 0 {
            // An empty chunk is filled from its first place on: a submitter that read the free list would wait for
            // cache lines that the worker has just written.
            chunk.positions.clear();
            chunk.free = NONE;
        } else {
            chunk.positions[offset as usize] = mem::replace(&mut chunk.free, offset);
        }
        if index != self.near {
            self.note_freed(index);
        }
        Some(element)
    }

    /// Takes an element out without freeing its slot.
    #[inline]
    pub(super) fn take(&mut self, slot: u32) -> Option<E> {
        let chunk = self.chunks.get_mut(chunk_of(slot) as usize)?;
        chunk.elements.get_mut(slot as usize & MASK)?.take()
    }

    /// Frees a near chunk if a removal has left it empty, or puts it first if it was full before the removal. The chunk
    /// must not be the first of its ring.
    #[inline(never)]
    fn note_freed(&mut self, index: u32) {
        let used = self.chunks[index as usize].used;
        if used == 0 {
            self.discard(index);
        } else if used == FULL - 1 {
            self.unlink(index);
            self.link_near(index);
        }
    }

    pub(super) fn into_chunks(self) -> impl Iterator<Item = Vec<Option<E>>> {
        self.chunks.into_iter().map(|chunk| chunk.elements)
    }

    #[inline]
    pub(super) fn next_used(&self, slot: u32) -> Option<u32> {
        let mut offset = slot as usize & MASK;
        for index in chunk_of(slot).. {
            let chunk = self.chunks.get(index as usize)?;
            let rest = chunk.elements.get(offset..).unwrap_or_default();
            if let Some(ahead) = rest.iter().position(Option::is_some) {
                return Some(slot_of(index, offset + ahead));
            }
            offset = 0;
        }
        None
    }

    #[inline]
    pub(super) fn position(&self, slot: u32) -> u32 {
        self.chunks[chunk_of(slot) as usize].positions[slot as usize & MASK]
    }

    /// Returns the key of a far element, or the position of a near one; `None` if the slot is free.
    #[inline(always)]
    pub(super) fn key_place(&self, slot: u32) -> Option<KeyPlace> {
        let (chunk, offset) = (self.chunks.get(chunk_of(slot) as usize)?, slot as usize & MASK);
        chunk.elements.get(offset)?.as_ref()?;
        if let Some(position) = chunk.positions.get(offset) {
            return Some(KeyPlace::Near(*position));
        }
        chunk.keys.get(offset).map(|key| KeyPlace::Far(*key))
    }

    pub(super) fn get(&self, slot: u32) -> Option<&E> {
        let chunk = self.chunks.get(chunk_of(slot) as usize)?;
        chunk.elements.get(slot as usize & MASK)?.as_ref()
    }

    #[cold]
    fn grow(&mut self) {
        let (index, capacity) = self.obtain(self.near);
        self.chunks[index as usize].positions = renew(&mut self.spare.positions, capacity);
        self.link_near(index);
    }

    fn link_near(&mut self, index: u32) {
        let before = self.near;
        self.near = index;
        self.link(index, before);
        if self.chunks.get(before as usize).is_some_and(|chunk| chunk.used == 0) {
            self.discard(before);
        }
    }

    /// Returns a chunk for the ring that begins with `first`, and the chunk's capacity: zero if the ring is empty, so
    /// that the chunk starts small. The caller links the chunk.
    fn obtain(&mut self, first: u32) -> (u32, usize) {
        if self.vacant.is_empty() {
            self.vacant.push(self.chunks.len() as u32);
            self.chunks.push(Chunk::vacant());
            // Room for every chunk, so that freeing slots does not allocate.
            self.vacant.reserve(self.chunks.len());
        }
        let index = self.vacant.pop().unwrap_or_default();
        let capacity = if first == NONE { 0 } else { CHUNK };
        self.chunks[index as usize].elements = renew(&mut self.spare.elements, capacity);
        (index, capacity)
    }

    /// Frees a chunk, and keeps its vectors as spares. The chunk must not be the first of its ring.
    fn discard(&mut self, index: u32) {
        self.unlink(index);
        let freed = mem::replace(&mut self.chunks[index as usize], Chunk::vacant());
        keep(&mut self.spare.elements, freed.elements);
        keep(&mut self.spare.positions, freed.positions);
        self.keep_keys(freed.keys);
        self.vacant.push(index);
    }

    /// Puts a chunk into a ring, before the chunk `next`, or into a ring of its own if `next` is `NONE`.
    fn link(&mut self, index: u32, next: u32) {
        let (previous, next) = match self.chunks.get_mut(next as usize) {
            Some(chunk) => (mem::replace(&mut chunk.previous, index), next),
            None => (index, index),
        };
        self.chunks[previous as usize].next = index;
        let chunk = &mut self.chunks[index as usize];
        (chunk.previous, chunk.next) = (previous, next);
    }

    fn unlink(&mut self, index: u32) {
        let Chunk { previous, next, .. } = self.chunks[index as usize];
        self.chunks[previous as usize].next = next;
        self.chunks[next as usize].previous = previous;
    }
}

impl<E> Positions for Slots<E> {
    #[inline]
    fn set_position(&mut self, slot: u32, position: u32) {
        self.chunks[chunk_of(slot) as usize].positions[slot as usize & MASK] = position;
    }
}

/// The calendar's operations on the chunks of its buckets. `first` is the first chunk of the bucket's ring.
impl<E> Slots<E> {
    /// Stores an element and its key. Returns the slot, or the element if no chunk of the ring has room.
    #[inline(always)]
    pub(super) fn insert_far(
        &mut self,
        first: &mut u32,
        key: u128,
        element: UnderLock<E>,
    ) -> Result<u32, UnderLock<E>> {
        let index = *first;
        match self.chunks.get_mut(index as usize) {
            Some(chunk) if chunk.used < FULL => {
                let offset = chunk.insert_far(element, key);
                if chunk.used == FULL {
                    *first = chunk.next;
                }
                Ok((index << SHIFT) | offset)
            }
            _ => Err(element),
        }
    }

    /// Removes the far element with this slot and this sequence number. Also returns its key, and `true` if the chunk
    /// is empty now or was full before.
    #[inline(always)]
    pub(super) fn remove_far(
        &mut self,
        slot: u32,
        sequence: u64,
    ) -> Option<(u128, UnderLock<E>, bool)> {
        let chunk = self.chunks.get_mut(chunk_of(slot) as usize)?;
        let place = chunk.keys.get_mut(slot as usize & MASK)?;
        let key = *place;
        if key as u64 != sequence {
            return None;
        }
        let element = chunk.elements.get_mut(slot as usize & MASK)?.take()?;
        *place = u128::from(mem::replace(&mut chunk.free, slot & MASK as u32));
        chunk.used -= 1;
        let is_news = chunk.used == 0 || chunk.used == FULL - 1;
        Some((key, UnderLock::new(element), is_news))
    }

    pub(super) fn set_far_key(&mut self, slot: u32, key: u128) {
        self.chunks[chunk_of(slot) as usize].keys[slot as usize & MASK] = key;
    }

    /// Puts a new chunk first in the ring. Adds none, and returns `false`, if there are too many chunks.
    pub(super) fn add_far_chunk(&mut self, first: &mut u32, owner: u32) -> bool {
        if self.chunks.len() - self.vacant.len() >= MOST {
            return false;
        }
        let (index, capacity) = self.obtain(*first);
        let chunk = &mut self.chunks[index as usize];
        chunk.keys = renew(&mut self.spare.keys, capacity);
        chunk.owner = owner;
        self.link(index, *first);
        *first = index;
        true
    }

    /// Moves a chunk to the front of its ring. Called when the chunk has a free place again.
    pub(super) fn put_first(&mut self, index: u32, first: &mut u32) {
        if index != *first {
            self.unlink(index);
            self.link(index, *first);
            *first = index;
        }
    }

    pub(super) fn discard_far(&mut self, index: u32, first: &mut u32) {
        self.step_over(index, first);
        self.discard(index);
    }

    /// Makes a far chunk a near one. Returns its keys, place by place. The caller sets the positions of the elements.
    pub(super) fn make_near(&mut self, index: u32, first: &mut u32) -> Vec<u128> {
        self.step_over(index, first);
        self.unlink(index);
        let chunk = &mut self.chunks[index as usize];
        let keys = chunk.make_near(&mut self.spare.positions);
        if chunk.used < FULL || self.near == NONE {
            self.link_near(index);
        } else {
            self.link(index, self.near);
        }
        keys
    }

    pub(super) fn keep_keys(&mut self, keys: Vec<u128>) {
        keep(&mut self.spare.keys, keys);
    }

    pub(super) fn chunk(&self, index: u32) -> &Chunk<E> {
        &self.chunks[index as usize]
    }

    /// If this chunk is the first of its ring, sets `first` to the next chunk, or to `NONE` if there is no other.
    fn step_over(&self, index: u32, first: &mut u32) {
        if *first == index {
            let next = self.chunks[index as usize].next;
            *first = if next == index { NONE } else { next };
        }
    }
}

impl<E> Chunk<E> {
    const fn vacant() -> Self {
        Self {
            elements: Vec::new(),
            positions: Vec::new(),
            keys: Vec::new(),
            free: NONE,
            used: 0,
            next: NONE,
            previous: NONE,
            owner: NEAR,
        }
    }

    #[inline(always)]
    fn insert(&mut self, element: UnderLock<E>, position: u32) -> u32 {
        let mut offset = self.free;
        if offset == NONE {
            offset = self.positions.len() as u32;
            self.positions.push(position);
        } else {
            self.free = mem::replace(&mut self.positions[offset as usize], position);
        }
        self.store(offset, element)
    }

    #[inline(always)]
    fn insert_far(&mut self, element: UnderLock<E>, key: u128) -> u32 {
        let mut offset = self.free;
        if offset == NONE {
            offset = self.keys.len() as u32;
            self.keys.push(key);
        } else {
            self.free = mem::replace(&mut self.keys[offset as usize], key) as u32;
        }
        self.store(offset, element)
    }

    #[inline(always)]
    fn store(&mut self, offset: u32, element: UnderLock<E>) -> u32 {
        self.used += 1;
        match self.elements.get_mut(offset as usize) {
            // An assignment would check for an element to drop.
            Some(place) => mem::forget(place.replace(UnderLock::into_inner(element))),
            None => self.add_place(element),
        }
        offset
    }

    /// Stores an element in a new place. Also writes the memory of the next places and keys in one pass, so that their
    /// cache misses overlap. A pass over the whole chunk would make this insertion slow.
    #[cold]
    fn add_place(&mut self, element: UnderLock<E>) {
        self.elements.push(Some(UnderLock::into_inner(element)));
        let ahead = self.elements.capacity().min(self.elements.len() + STEP);
        self.elements.resize_with(ahead, || None);
        self.keys.spare_capacity_mut().iter_mut().take(STEP).for_each(|key| _ = key.write(0));
    }

    /// Replaces the keys with positions, and returns the keys. A free place still names the next free one.
    fn make_near(&mut self, spare: &mut Vec<u32>) -> Vec<u128> {
        let keys = mem::take(&mut self.keys);
        self.positions = renew(spare, if keys.len() > SMALL_CHUNK { CHUNK } else { 0 });
        self.positions.extend(keys.iter().map(|key| *key as u32));
        self.owner = NEAR;
        keys
    }
}

/// Returns an empty vector with at least this capacity, which is zero for a chunk that starts small. The vector is the
/// spare one, unless the capacity is zero and the spare one is large.
fn renew<T>(spare: &mut Vec<T>, capacity: usize) -> Vec<T> {
    if capacity == 0 && spare.capacity() > SMALL_CHUNK {
        return Vec::new();
    }
    spare.reserve_exact(capacity);
    mem::take(spare)
}

fn keep<T>(spare: &mut Vec<T>, mut freed: Vec<T>) {
    if freed.capacity() > 0 {
        freed.clear();
        *spare = freed;
    }
}

pub(super) const fn chunk_of(slot: u32) -> u32 {
    slot >> SHIFT
}

pub(super) const fn slot_of(index: u32, offset: usize) -> u32 {
    (index << SHIFT) | offset as u32
}

#[cfg(test)]
mod tests;
