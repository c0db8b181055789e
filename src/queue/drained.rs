//! The elements that were drained from a queue: its heaps, taken out whole, and emptied outside the
//! locks in the order of their slots. That is about the order in which the elements were allocated, so their memory is
//! walked through from one end to the other.

use std::{collections::VecDeque, mem};

use super::priority_queue::{PriorityQueue, QueueEntry};

pub(crate) struct Drained<E> {
    /// The entries that were in no heap.
    others: VecDeque<QueueEntry<E>>,
    heaps: Vec<PriorityQueue<E>>,
    /// The next slot of the last heap to look at.
    slot: u32,
    len: usize,
}

impl<E> Drained<E> {
    pub(super) fn new(others: VecDeque<QueueEntry<E>>, heaps: Vec<PriorityQueue<E>>) -> Self {
        let len = heaps.iter().map(PriorityQueue::len).sum();
        Self { others, heaps, slot: 0, len }
    }

    /// Passes the elements that are left to `receive`, without their keys. To look the keys up would miss
    /// the cache for most of many elements.
    pub(crate) fn for_each_element(&mut self, mut receive: impl FnMut(E)) {
        self.len = 0;
        mem::take(&mut self.others).into_iter().for_each(|entry| receive(entry.element));
        for heap in mem::take(&mut self.heaps) {
            heap.into_elements().for_each(&mut receive);
        }
    }
}

impl<E> Iterator for Drained<E> {
    type Item = QueueEntry<E>;

    fn next(&mut self) -> Option<QueueEntry<E>> {
        if let Some(entry) = self.others.pop_front() {
            return Some(entry);
        }
        loop {
            let heap = self.heaps.last_mut()?;
            if let Some(slot) = heap.next_used(self.slot) {
                self.slot = slot + 1;
                self.len -= 1;
                return heap.take_entry(slot);
            }
            self.heaps.pop();
            self.slot = 0;
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = self.others.len() + self.len;
        (len, Some(len))
    }
}

impl<E> ExactSizeIterator for Drained<E> {}
