//! The array of the heap, which grows without ever moving what is in it.
//!
//! A `Vec` copies itself when it is full: with ten million entries that takes tens of milliseconds
//! during which the heap's lock is held and every other thread waits. Here a table is a list of
//! chunks of a fixed size, and growing adds a chunk. Only the first chunk starts small and is
//! copied while it grows, so that a queue of ten tasks stays small. A shift and a mask split an
//! index into chunk and offset.
//!
//! Shrinking frees all chunks that became empty but one. The spare one keeps a queue whose length
//! oscillates around the edge of a chunk from allocating again and again.

/// The number of elements in a chunk. With elements of one cache line a chunk has 32 KiB: large
/// enough that chunks are added rarely, small enough that one is filled quickly.
pub(super) const CHUNK: usize = 512;
const SHIFT: u32 = CHUNK.trailing_zeros();
const MASK: usize = CHUNK - 1;

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
}
