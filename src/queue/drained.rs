//! The elements that were drained from a queue: its heaps, taken out whole, and emptied outside the
//! locks.
//!
//! The elements are returned in the order of their slots, which is about the order in which they
//! were allocated. So their memory is walked through from one end to the other, which is much
//! faster than following the heap's order all over it.

use std::collections::VecDeque;

use super::heap::{DelayHeap, Entry};

/// See the [module](self).
pub(crate) struct Drained<E> {
    ready: VecDeque<Entry<E>>,
    heaps: Vec<DelayHeap<E>>,
    /// The next slot of the last heap to look at.
    slot: u32,
    /// The number of elements left in the heaps.
    len: usize,
}

impl<E> Drained<E> {
    pub(super) fn new(ready: VecDeque<Entry<E>>, heaps: Vec<DelayHeap<E>>) -> Self {
        let len = heaps.iter().map(DelayHeap::len).sum();
        Self { ready, heaps, slot: 0, len }
    }

    /// Returns the next element without its key. Looking the key up would miss the cache for most
    /// of many elements.
    pub(crate) fn next_element(&mut self) -> Option<E> {
        if let Some(entry) = self.ready.pop_front() {
            return Some(entry.element);
        }
        self.next_in_heaps().map(|(_, element)| element)
    }

    /// Returns the next element of the last heap that has one, and its slot there.
    fn next_in_heaps(&mut self) -> Option<(u32, E)> {
        loop {
            let heap = self.heaps.last_mut()?;
            while self.slot < heap.slot_bound() {
                let slot = self.slot;
                self.slot += 1;
                if let Some(element) = heap.take(slot) {
                    self.len -= 1;
                    return Some((slot, element));
                }
            }
            self.heaps.pop();
            self.slot = 0;
        }
    }
}

impl<E> Iterator for Drained<E> {
    type Item = Entry<E>;

    fn next(&mut self) -> Option<Entry<E>> {
        if let Some(entry) = self.ready.pop_front() {
            return Some(entry);
        }
        let (slot, element) = self.next_in_heaps()?;
        self.heaps.last().map(|heap| heap.entry_of(slot, element))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = self.ready.len() + self.len;
        (len, Some(len))
    }
}

impl<E> ExactSizeIterator for Drained<E> {}
