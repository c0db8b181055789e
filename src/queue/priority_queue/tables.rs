//! Keys with slots beside them, in chunks: arrays that grow without ever moving what is in them.
//!
//! A `Vec` copies itself when it is full: with ten million entries that takes tens of milliseconds under the heap's lock.
//! Here growing adds a chunk of a fixed size. Only the first chunk is copied while it grows, so that a queue of ten
//! tasks stays small. Shrinking frees all chunks that became empty but one, so a length that oscillates around the edge of
//! a chunk does not allocate.

/// The number of elements in a chunk. With elements of one cache line a chunk has 32 KiB: large
/// enough that chunks are added rarely, small enough that one is filled quickly.
pub(super) const CHUNK: usize = 512;
pub(super) const SHIFT: u32 = CHUNK.trailing_zeros();
pub(super) const MASK: usize = CHUNK - 1;

pub(super) struct KeyChunk<K, S> {
    pub(super) keys: Vec<K>,
    pub(super) slots: Vec<S>,
}

impl<K, S> KeyChunk<K, S> {
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

pub(super) struct KeyArray<K, S> {
    chunks: Vec<KeyChunk<K, S>>,
    len: usize,
}

impl<K, S> KeyArray<K, S> {
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
            self.chunks.push(KeyChunk::behind(chunk));
        }
        self.chunks[chunk].push(key, slot);
        self.len += 1;
    }

    pub(super) fn pop(&mut self) {
        self.len -= 1;
        self.chunks[self.len >> SHIFT].pop();
        if self.len & MASK == 0 {
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
mod tests;
