//! The slot table: slots, the memory of chunks, and far chunks.

use super::*;

impl<E> Slots<E> {
    /// Returns the chunks of a ring, of which those with free places come first.
    pub(in super::super) fn ring(&self, first: u32) -> Vec<u32> {
        let mut ring = Vec::new();
        let mut index = first;
        while index != NONE && (ring.is_empty() || index != first) {
            let chunk = &self.chunks[index as usize];
            assert_eq!(self.chunks[chunk.next as usize].previous, index);
            ring.push(index);
            index = chunk.next;
        }
        let full: Vec<_> = ring.iter().map(|index| self.chunk(*index).used == FULL).collect();
        assert!(full.is_sorted(), "free places first");
        ring
    }

    pub(in super::super) fn far_keys(&self, index: u32) -> Vec<u128> {
        let chunk = &self.chunks[index as usize];
        assert!(chunk.keys.len() <= chunk.elements.len());
        let used = chunk.keys.iter().zip(&chunk.elements);
        used.filter(|(_, element)| element.is_some()).map(|(key, _)| *key).collect()
    }

    /// Asserts that each chunk is in a ring or without memory.
    pub(in super::super) fn check(&self) {
        let near = self.ring(self.near);
        let is_near = |index: u32| self.chunks[index as usize].positions.capacity() > 0;
        assert!(near.iter().all(|index| is_near(*index) || self.chunk(*index).used == 0));
        for (index, chunk) in (0..).zip(&self.chunks) {
            let is_vacant = self.vacant.contains(&index);
            assert_eq!(chunk.elements.capacity() == 0, is_vacant, "chunk {index}");
            assert_eq!(chunk.owner == NEAR && !is_vacant, near.contains(&index), "chunk {index}");
        }
    }

    /// Stores an element of the near part.
    pub(in super::super) fn store(&mut self, element: E, position: u32) -> u32 {
        self.insert(UnderLock::new(element), position)
    }

    pub(in super::super) fn backed_chunks(&self) -> usize {
        self.chunks.iter().filter(|chunk| chunk.elements.capacity() > 0).count()
    }
}

/// M92.
#[test]
fn a_freed_slot_is_used_again() {
    let mut slots = Slots::new();
    let (first, second) = (slots.store('a', 0), slots.store('b', 0));
    assert_ne!(first, second);
    assert_eq!(slots.remove(first).as_deref(), Some(&'a'));
    assert_eq!(slots.remove(first), None);
    assert_eq!(slots.store('c', 0), first);
    assert_eq!(slots.get(first), Some(&'c'));
    assert_eq!(slots.get(second), Some(&'b'));
    assert_eq!(slots.get(99), None);
    assert_eq!(slots.remove(99_999), None);
}

/// F22, M74, M98: an element keeps its address when others are inserted.
#[test]
fn no_element_moves_when_the_slots_grow() {
    let mut slots = Slots::new();
    let filled: Vec<_> = (0..=CHUNK).map(|n| slots.store(n, 0)).collect();
    // The first slot of the second chunk: the first chunk begins small.
    let slot = filled[CHUNK];
    let before: *const usize = slots.get(slot).expect("it is there");
    (0..10 * CHUNK).for_each(|n| _ = slots.store(n, 0));
    assert_eq!(before, slots.get(slot).expect("it is there"));
}

/// The first chunk grows with its content; the others are allocated whole and never copied.
#[test]
fn a_small_queue_stays_small() {
    let mut slots = Slots::new();
    slots.store('a', 0);
    assert!(slots.chunks[0].elements.capacity() < CHUNK);
    (0..CHUNK).for_each(|_| _ = slots.store('b', 0));
    assert!(slots.chunks[1].elements.capacity() >= CHUNK);
}

/// M93, M94, M95.
#[test]
fn memory_comes_back_but_for_one_chunk() {
    let mut slots = Slots::new();
    for round in 0..3 {
        let taken: Vec<_> = (0..20 * CHUNK).map(|n| slots.store(n, 0)).collect();
        assert_eq!(slots.backed_chunks(), 20, "round {round}");
        assert_eq!(slots.chunks.len(), 20, "what was full is used again");
        // In three orders, so that chunks become empty in every order.
        let mut order: Vec<_> = taken.into_iter().enumerate().collect();
        match round {
            0 => {}
            1 => order.reverse(),
            _ => order.sort_by_key(|(n, _)| n.wrapping_mul(7_919) % 10_007),
        }
        for (n, slot) in order {
            assert_eq!(slots.remove(slot).as_deref(), Some(&n));
        }
        assert!(slots.backed_chunks() <= 1, "round {round}: {}", slots.backed_chunks());
    }
}
