//! What was drained from a queue: its heaps, taken out whole, to be emptied outside the locks.
//!
//! The elements come in the order of their slots, which is about the order in which they were
//! made; so their memory is walked through from one end to the other, and not from heap place to
//! heap place, which is all over it.

use std::collections::VecDeque;

use super::heap::{DelayHeap, Entry};

/// See the [module](self).
pub(crate) struct Drained<E> {
    ready: VecDeque<Entry<E>>,
    heaps: Vec<DelayHeap<E>>,
    /// The next slot of the last heap.
    slot: u32,
    len: usize,
}

impl<E> Drained<E> {
    pub(super) fn new(ready: VecDeque<Entry<E>>, heaps: Vec<DelayHeap<E>>) -> Self {
        let len = ready.len() + heaps.iter().map(DelayHeap::len).sum::<usize>();
        Self { ready, heaps, slot: 0, len }
    }
}

impl<E> Iterator for Drained<E> {
    type Item = Entry<E>;

    fn next(&mut self) -> Option<Entry<E>> {
        if let Some(entry) = self.ready.pop_front() {
            self.len -= 1;
            return Some(entry);
        }
        loop {
            let heap = self.heaps.last_mut()?;
            while self.slot < heap.slots() {
                let taken = heap.take(self.slot);
                self.slot += 1;
                if taken.is_some() {
                    self.len -= 1;
                    return taken;
                }
            }
            self.heaps.pop();
            self.slot = 0;
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len, Some(self.len))
    }
}

impl<E> ExactSizeIterator for Drained<E> {}
