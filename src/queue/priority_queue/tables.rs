//! Chunks of keys, and of the slots beside them: arrays that grow without ever moving what is in them.
//!
//! A `Vec` copies itself when it is full: with ten million entries that takes tens of milliseconds
//! during which the heap's lock is held and every other thread waits. Here an array is a list of
//! chunks of a fixed size, and growing adds a chunk. Only the first chunk starts small and is
//! copied while it grows, so that a queue of ten tasks stays small. A shift and a mask split an
//! index into chunk and offset.
//!
//! Shrinking frees all chunks that became empty but one. The spare one keeps a queue whose length
//! oscillates around the edge of a chunk from allocating again and again.

/// The number of elements in a chunk. With elements of one cache line a chunk has 32 KiB: large
/// enough that chunks are added rarely, small enough that one is filled quickly.
pub(super) const CHUNK: usize = 512;
pub(super) const SHIFT: u32 = CHUNK.trailing_zeros();
pub(super) const MASK: usize = CHUNK - 1;

/// A part of an array: keys, and as many slots.
pub(super) struct Chunk<K, S> {
    pub(super) keys: Vec<K>,
    pub(super) slots: Vec<S>,
}

impl<K, S> Chunk<K, S> {
    /// Returns an empty chunk for an array that has so many. The first one begins empty and grows as a `Vec` does;
    /// the others are allocated at their full size.
    pub(super) fn behind(chunks: usize) -> Self {
        let capacity = if chunks == 0 { 0 } else { CHUNK };
        Self { keys: Vec::with_capacity(capacity), slots: Vec::with_capacity(capacity) }
    }

    #[inline(always)]
    pub(super) fn push(&mut self, key: K, slot: S) {
        self.keys.push(key);
        self.slots.push(slot);
    }

    pub(super) fn pop(&mut self) {
        self.keys.pop();
        self.slots.pop();
    }
}

/// An array that shrinks and grows at its end; see the head of the module.
pub(super) struct Chunks<K, S> {
    chunks: Vec<Chunk<K, S>>,
    len: usize,
}

impl<K, S> Chunks<K, S> {
    pub(super) const fn new() -> Self {
        Self { chunks: Vec::new(), len: 0 }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn push(&mut self, key: K, slot: S) {
        let chunk = self.len >> SHIFT;
        if chunk == self.chunks.len() {
            self.chunks.push(Chunk::behind(chunk));
        }
        self.chunks[chunk].push(key, slot);
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

    #[inline]
    pub(super) fn key(&self, index: usize) -> &K {
        &self.chunks[index >> SHIFT].keys[index & MASK]
    }

    /// Returns the key and the slot at an index, by one look at the chunk.
    #[inline]
    pub(super) fn get(&self, index: usize) -> (&K, &S) {
        let chunk = &self.chunks[index >> SHIFT];
        (&chunk.keys[index & MASK], &chunk.slots[index & MASK])
    }

    #[inline]
    pub(super) fn get_mut(&mut self, index: usize) -> (&mut K, &mut S) {
        let chunk = &mut self.chunks[index >> SHIFT];
        (&mut chunk.keys[index & MASK], &mut chunk.slots[index & MASK])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pushes numbers, each as a key and as a slot.
    fn push(array: &mut Chunks<usize, u32>, numbers: impl Iterator<Item = usize>) {
        numbers.for_each(|n| array.push(n, n as u32));
    }

    #[test]
    fn what_is_pushed_is_found_and_popped() {
        let mut array = Chunks::new();
        for n in 0..3 * CHUNK + 7 {
            array.push(n, n as u32);
            assert_eq!(array.len(), n + 1);
        }
        assert!((0..array.len()).all(|n| array.get(n) == (&n, &(n as u32)) && *array.key(n) == n));
        *array.get_mut(CHUNK).0 = 99;
        *array.get_mut(CHUNK).1 = 98;
        assert_eq!(array.get(CHUNK), (&99, &98));
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
        push(&mut array, 0..CHUNK + 1);
        let Chunk { keys, slots } = &array.chunks[1];
        assert!(keys.capacity().min(slots.capacity()) >= CHUNK, "they need not grow");
        let addresses = |array: &Chunks<usize, u32>| {
            let (key, slot) = array.get(CHUNK);
            (std::ptr::from_ref(key), std::ptr::from_ref(slot))
        };
        let before = addresses(&array);
        push(&mut array, 0..10 * CHUNK);
        assert_eq!(before, addresses(&array));
    }

    /// M97.
    #[test]
    fn one_spare_chunk_is_kept() {
        let mut array = Chunks::new();
        push(&mut array, 0..4 * CHUNK);
        (0..2 * CHUNK).for_each(|_| array.pop());
        assert_eq!(array.chunks.len(), 3);
        let spare = array.chunks[2].keys.capacity();
        array.push(1, 1);
        assert_eq!(array.chunks[2].keys.capacity(), spare);
        (0..=2 * CHUNK).for_each(|_| array.pop());
        assert_eq!(array.chunks.len(), 1);
    }
}
