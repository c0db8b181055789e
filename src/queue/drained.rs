//! What was drained from a queue: its heaps, taken out whole, to be emptied outside the locks.
//!
//! The elements come in the order of their slots, which is about the order in which they were
//! made; so their memory is walked through from one end to the other, and not from heap place to
//! heap place, which is all over it.

use std::collections::VecDeque;

use super::{
    DelayedWorkQueue,
    heap::{DelayHeap, Entry},
};

/// See the [module](self).
pub(crate) struct Drained<E> {
    ready: VecDeque<Entry<E>>,
    heaps: Vec<DelayHeap<E>>,
    /// The next slot of the last heap.
    slot: u32,
    /// How many are left in the heaps.
    len: usize,
}

impl<E> DelayedWorkQueue<E> {
    /// Takes everything out, due or not.
    pub(crate) fn drain(&self) -> Drained<E> {
        let mut ready = self.ready.lock();
        let heaps = self.stripes.iter().map(|stripe| stripe.lock().remove_all()).collect();
        let drained = Drained::new(ready.remove_all(), heaps);
        drop(ready);
        self.end_if_finished();
        drained
    }
}

impl<E> Drained<E> {
    pub(super) fn new(ready: VecDeque<Entry<E>>, heaps: Vec<DelayHeap<E>>) -> Self {
        let len = heaps.iter().map(DelayHeap::len).sum();
        Self { ready, heaps, slot: 0, len }
    }

    /// The next element alone. Its key is not looked up: there are so many that most of these
    /// looks would miss the cache.
    pub(crate) fn next_element(&mut self) -> Option<E> {
        if let Some(entry) = self.ready.pop_front() {
            return Some(entry.element);
        }
        self.next_in_heaps().map(|(_, element)| element)
    }

    /// The next element of the last heap that has one, and its slot there.
    fn next_in_heaps(&mut self) -> Option<(u32, E)> {
        loop {
            let heap = self.heaps.last_mut()?;
            while self.slot < heap.slots() {
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
