//! The tables of the heap: an array and a slot table, which grow without ever moving what is in them.
//!
//! A `Vec` copies itself when it is full: with ten million entries that takes tens of milliseconds
//! during which the heap's lock is held and every other thread waits. Here a table is a list of
//! chunks of a fixed size, and growing adds a chunk. Only the first chunk starts small and is
//! copied while it grows, so that a queue of ten tasks stays small. A shift and a mask split an
//! index into chunk and offset.
//!
//! # The array
//!
//! [`Chunks`] holds the keys of the heap. Shrinking frees all chunks that became empty but one. The
//! spare one keeps a queue whose length oscillates around the edge of a chunk from allocating again
//! and again.
//!
//! # The slot table
//!
//! [`Slots`] is a stable place for each element, with the element's present position in the heap. The
//! heap moves its entries, but the caller that inserted one needs a name for it that does not change.
//! That name is the *slot*. When the heap moves an entry it writes the new position here, into a
//! dense array of numbers, and never touches the element, so that sifting follows no pointer.
//!
//! Each chunk has a free list of its own, threaded through the unused positions. `partial` is a stack
//! of the chunks that have a free slot, and slots are allocated from the chunk on top. A chunk that
//! becomes empty frees its memory unless it is on top, where it will be used next. So at most one
//! empty chunk holds memory, however many entries there once were.

/// The number of elements in a chunk. With elements of one cache line a chunk has 32 KiB: large
/// enough that chunks are added rarely, small enough that one is filled quickly.
pub(super) const CHUNK: usize = 512;
const SHIFT: u32 = CHUNK.trailing_zeros();
const MASK: usize = CHUNK - 1;

/// Ends a free list.
const NONE: u32 = u32::MAX;

/// An array that grows without moving what is in it; see the head of the module.
#[derive(Debug)]
pub(super) struct Chunks<T> {
    chunks: Vec<Vec<T>>,
    len: usize,
}

impl<T: Copy> Chunks<T> {
    pub(super) const fn new() -> Self {
        Self { chunks: Vec::new(), len: 0 }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn push(&mut self, element: T) {
        let chunk = self.len >> SHIFT;
        if chunk == self.chunks.len() {
            self.grow();
        }
        self.chunks[chunk].push(element);
        self.len += 1;
    }

    pub(super) fn pop(&mut self) {
        let Some(last) = self.len.checked_sub(1) else {
            return;
        };
        self.len = last;
        self.chunks[last >> SHIFT].pop();
        if last & MASK == 0 {
            let in_use = self.len.div_ceil(CHUNK);
            self.chunks.truncate(in_use + 1);
        }
    }

    /// Adds a chunk. The first one begins empty and grows as a `Vec` does; the others are allocated
    /// at their full size.
    fn grow(&mut self) {
        let capacity = if self.chunks.is_empty() { 0 } else { CHUNK };
        self.chunks.push(Vec::with_capacity(capacity));
    }
}

impl<T> std::ops::Index<usize> for Chunks<T> {
    type Output = T;

    #[inline]
    fn index(&self, index: usize) -> &T {
        &self.chunks[index >> SHIFT][index & MASK]
    }
}

impl<T> std::ops::IndexMut<usize> for Chunks<T> {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut T {
        &mut self.chunks[index >> SHIFT][index & MASK]
    }
}

/// The table of the slots; see the head of the module.
pub(super) struct Slots<E> {
    chunks: Vec<Chunk<E>>,
    /// The indices of the chunks that have a free slot.
    partial: Vec<u32>,
}

struct Chunk<E> {
    /// The heap position of each used slot, and the next free slot of the chunk for each free one.
    positions: Vec<u32>,
    elements: Vec<Option<E>>,
    free: u32,
    used: u32,
}

impl<E> Slots<E> {
    pub(super) const fn new() -> Self {
        Self { chunks: Vec::new(), partial: Vec::new() }
    }

    /// Stores an element whose heap position is `position`, and returns its slot.
    #[inline(always)]
    pub(super) fn insert(&mut self, element: E, position: u32) -> u32 {
        let top = match self.partial.last() {
            Some(top) => *top,
            None => self.grow(),
        };
        let chunk = &mut self.chunks[top as usize];
        let offset = chunk.insert(element, position);
        if chunk.used as usize == CHUNK {
            self.partial.pop();
        }
        (top << SHIFT) | offset
    }

    /// Takes an element out and frees its slot.
    #[inline]
    pub(super) fn remove(&mut self, slot: u32) -> Option<E> {
        let element = self.take(slot)?;
        self.free(slot);
        Some(element)
    }

    /// Takes an element out and keeps its slot reserved.
    #[inline]
    pub(super) fn take(&mut self, slot: u32) -> Option<E> {
        let chunk = self.chunks.get_mut((slot >> SHIFT) as usize)?;
        chunk.elements.get_mut(slot as usize & MASK)?.take()
    }

    /// Puts an element back into the slot it was [taken](Self::take) from.
    pub(super) fn put_back(&mut self, slot: u32, element: E) {
        self.chunks[(slot >> SHIFT) as usize].elements[slot as usize & MASK] = Some(element);
    }

    /// Frees a slot whose element was [taken](Self::take) out.
    #[inline]
    pub(super) fn free(&mut self, slot: u32) {
        let index = slot >> SHIFT;
        let chunk = &mut self.chunks[index as usize];
        let was_full = chunk.used as usize == CHUNK;
        chunk.free(slot & MASK as u32);
        if was_full {
            self.put_on_top(index);
        } else if self.chunks[index as usize].used == 0 && self.partial.last() != Some(&index) {
            self.chunks[index as usize] = Chunk::new(0);
        }
    }

    /// A bound that is larger than every slot in use.
    pub(super) fn end(&self) -> u32 {
        (self.chunks.len() << SHIFT) as u32
    }

    #[inline]
    pub(super) fn position(&self, slot: u32) -> u32 {
        self.chunks[(slot >> SHIFT) as usize].positions[slot as usize & MASK]
    }

    #[inline]
    pub(super) fn set_position(&mut self, slot: u32, position: u32) {
        self.chunks[(slot >> SHIFT) as usize].positions[slot as usize & MASK] = position;
    }

    /// Returns the element in the slot, if there is one.
    pub(super) fn get(&self, slot: u32) -> Option<&E> {
        let chunk = self.chunks.get((slot >> SHIFT) as usize)?;
        chunk.elements.get(slot as usize & MASK)?.as_ref()
    }

    fn grow(&mut self) -> u32 {
        let index = self.chunks.len() as u32;
        // The first chunk starts small, as in `Chunks`.
        self.chunks.push(Chunk::new(if index == 0 { 0 } else { CHUNK }));
        // Capacity for every chunk: if the stack grew when slots are freed, that would be one more
        // large allocation under the lock, at the moment when it is most expensive.
        self.partial.reserve(self.chunks.len());
        self.partial.push(index);
        index
    }

    fn put_on_top(&mut self, index: u32) {
        if let Some(top) = self.partial.last() {
            let top = &mut self.chunks[*top as usize];
            if top.used == 0 {
                *top = Chunk::new(0);
            }
        }
        self.partial.push(index);
    }
}

impl<E> Chunk<E> {
    fn new(capacity: usize) -> Self {
        let (positions, elements) = (Vec::with_capacity(capacity), Vec::with_capacity(capacity));
        Self { positions, elements, free: NONE, used: 0 }
    }

    #[inline(always)]
    fn insert(&mut self, element: E, position: u32) -> u32 {
        self.used += 1;
        let offset = self.free;
        if offset == NONE {
            self.positions.push(position);
            self.elements.push(Some(element));
            return self.elements.len() as u32 - 1;
        }
        self.free = std::mem::replace(&mut self.positions[offset as usize], position);
        self.elements[offset as usize] = Some(element);
        offset
    }

    fn free(&mut self, offset: u32) {
        self.positions[offset as usize] = self.free;
        self.free = offset;
        self.used -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_pushed_is_found_and_popped() {
        let mut array = Chunks::new();
        for n in 0..3 * CHUNK + 7 {
            array.push(n);
            assert_eq!(array.len(), n + 1);
        }
        assert!((0..array.len()).all(|n| array[n] == n));
        array[CHUNK] = 99;
        assert_eq!(array[CHUNK], 99);
        while array.len() > 0 {
            array.pop();
        }
        array.pop();
        assert_eq!(array.len(), 0);
    }

    /// F22, M74, M98: an element keeps its address when others are inserted.
    #[test]
    fn no_element_moves_when_an_array_grows() {
        let mut array = Chunks::new();
        // The first of the second chunk: the first chunk begins small.
        (0..=CHUNK).for_each(|n| array.push(n));
        assert!(array.chunks[1].capacity() >= CHUNK, "it need not grow");
        let before: *const usize = &array[CHUNK];
        (0..10 * CHUNK).for_each(|n| array.push(n));
        assert_eq!(before, &array[CHUNK]);
    }

    /// M97.
    #[test]
    fn one_spare_chunk_is_kept() {
        let mut array = Chunks::new();
        (0..4 * CHUNK).for_each(|n| array.push(n));
        (0..2 * CHUNK).for_each(|_| array.pop());
        assert_eq!(array.chunks.len(), 3);
        let spare = array.chunks[2].capacity();
        array.push(1);
        assert_eq!(array.chunks[2].capacity(), spare);
        (0..=2 * CHUNK).for_each(|_| array.pop());
        assert_eq!(array.chunks.len(), 1);
    }

    impl<E> Slots<E> {
        fn backed_chunks(&self) -> usize {
            self.chunks.iter().filter(|chunk| chunk.positions.capacity() > 0).count()
        }
    }

    /// M92.
    #[test]
    fn a_freed_slot_is_used_again() {
        let mut slots = Slots::new();
        let (first, second) = (slots.insert('a', 0), slots.insert('b', 0));
        assert_ne!(first, second);
        assert_eq!(slots.remove(first), Some('a'));
        assert_eq!(slots.remove(first), None);
        assert_eq!(slots.insert('c', 0), first);
        assert_eq!(slots.get(first), Some(&'c'));
        assert_eq!(slots.get(second), Some(&'b'));
        assert_eq!(slots.get(99), None);
        assert_eq!(slots.remove(99_999), None);
    }

    /// F22, M74, M98: an element keeps its address when others are inserted.
    #[test]
    fn no_element_moves_when_the_slots_grow() {
        let mut slots = Slots::new();
        let filled: Vec<_> = (0..=CHUNK).map(|n| slots.insert(n, 0)).collect();
        // The first of the second chunk: the first chunk begins small.
        let slot = filled[CHUNK];
        let before: *const usize = slots.get(slot).expect("it is there");
        (0..10 * CHUNK).for_each(|n| _ = slots.insert(n, 0));
        assert_eq!(before, slots.get(slot).expect("it is there"));
    }

    #[test]
    fn what_is_taken_keeps_its_slot() {
        let mut slots = Slots::new();
        let all: Vec<_> = (0..2 * CHUNK).map(|n| slots.insert(n, n as u32)).collect();
        for n in [0, 1, CHUNK - 1, CHUNK, 2 * CHUNK - 1] {
            assert_eq!(slots.take(all[n]), Some(n));
            assert_eq!(slots.get(all[n]), None);
            slots.put_back(all[n], n + 1);
            assert_eq!((slots.get(all[n]), slots.position(all[n])), (Some(&(n + 1)), n as u32));
        }
        assert_eq!(slots.insert(0, 0) as usize, 2 * CHUNK, "no slot was free");
    }

    /// The first chunk grows with its content; the others are allocated whole and never copied.
    #[test]
    fn a_small_queue_stays_small() {
        let mut slots = Slots::new();
        slots.insert('a', 0);
        assert!(slots.chunks[0].elements.capacity() < CHUNK);
        (0..CHUNK).for_each(|_| _ = slots.insert('b', 0));
        assert!(slots.chunks[1].elements.capacity() >= CHUNK);
    }

    /// M93, M94, M95.
    #[test]
    fn memory_comes_back_but_for_one_chunk() {
        let mut slots = Slots::new();
        for round in 0..3 {
            let taken: Vec<_> = (0..20 * CHUNK).map(|n| slots.insert(n, 0)).collect();
            assert_eq!(slots.backed_chunks(), 20, "round {round}");
            assert_eq!(slots.end() as usize, 20 * CHUNK, "what was full is used again");
            // In three orders, so that chunks become empty in every order.
            let mut order: Vec<_> = taken.into_iter().enumerate().collect();
            match round {
                0 => {}
                1 => order.reverse(),
                _ => order.sort_by_key(|(n, _)| n.wrapping_mul(7_919) % 10_007),
            }
            for (n, slot) in order {
                assert_eq!(slots.remove(slot), Some(n));
            }
            assert!(slots.backed_chunks() <= 1, "round {round}: {}", slots.backed_chunks());
        }
    }
}
