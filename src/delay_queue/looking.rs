//! Inspecting the elements that are in the queue, and removing some of them.
//!
//! Every inspection copies the state of one moment under the lock, where no user code runs (see
//! [`CheapClone`]). The caller uses the copy outside the lock.

use std::{iter::FusedIterator, vec};

use super::{CheapClone, DelayQueue, Key, Queued};
use crate::{
    queue::SnapshotEntry,
    unwind::{Contained, discard},
};

impl<T> DelayQueue<T> {
    /// Returns a clone of the element that will be taken first, expired or not, and leaves it in the
    /// queue. Returns `None` if the queue is empty. Java: `peek`, `element`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::DelayQueue;
    ///
    /// let queue = DelayQueue::new();
    /// queue.insert(Duration::from_secs(60), "a minute")?;
    /// queue.insert(Duration::from_secs(1), "a second")?;
    /// assert_eq!(queue.peek().map(|queued| queued.element), Some("a second"));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[must_use]
    pub fn peek(&self) -> Option<Queued<T>>
    where
        T: CheapClone,
    {
        self.queue.peek(T::clone).map(|listed| self.queued(listed))
    }

    /// Returns the key of the element that will be taken first, for elements of any type.
    #[must_use]
    pub fn peek_key(&self) -> Option<Key> {
        self.queue.peek(|_| ()).map(|listed| self.queued(listed).key)
    }

    /// Returns a snapshot of the queue: clones of all elements, in the order in which they will be
    /// taken. O(n log n); the queue is locked for the copying, O(n). Java: `toArray`.
    #[doc(alias = "toArray")]
    #[must_use]
    pub fn to_vec(&self) -> Vec<Queued<T>>
    where
        T: CheapClone,
    {
        let listed = self.queue.snapshot(T::clone).into_iter();
        listed.map(|listed| self.queued(listed)).collect()
    }

    /// Returns the keys of all elements, in the order in which they will be taken, for elements of any
    /// type. Otherwise as [`to_vec`](Self::to_vec).
    #[must_use]
    pub fn keys(&self) -> Vec<Key> {
        let listed = self.queue.snapshot(|_| ()).into_iter();
        listed.map(|listed| self.queued(listed).key).collect()
    }

    /// Returns an iterator over a [snapshot](Self::to_vec) that is made now. Later changes to the queue
    /// do not affect it. Java: `iterator`, `stream`.
    pub fn iter(&self) -> Iter<T>
    where
        T: CheapClone,
    {
        Iter::over(self.to_vec())
    }

    /// Removes the elements for which `keep` returns `false`, and returns their number. Java:
    /// `removeIf` with the opposite predicate; `retainAll`, `removeAll`.
    ///
    /// `keep` is called for each element that is in the queue now, in order, while the queue is not
    /// locked, so it may use the queue. An element that is taken meanwhile stays taken, and one that
    /// is inserted meanwhile stays in. If `keep` panics, nothing is removed. O(n log n).
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::DelayQueue;
    ///
    /// let queue: DelayQueue<u32> = (0..10).map(|n| (Duration::from_secs(60), n)).collect();
    /// assert_eq!(queue.retain(|n| n % 2 == 0), 5);
    /// assert_eq!(queue.len(), 5);
    /// ```
    #[doc(alias = "removeIf")]
    pub fn retain(&self, mut keep: impl FnMut(&T) -> bool) -> usize
    where
        T: CheapClone,
    {
        // These may be the last clones of elements that are removed, or taken meanwhile. So their
        // drops are contained, also if the predicate panics.
        let listed = self.queue.snapshot(|element| Contained::new(element.clone()));
        let unwanted = listed.iter().filter(|listed| !keep(&listed.element));
        let unwanted: Vec<_> = unwanted.map(|listed| listed.ticket).collect();
        let removed = unwanted.into_iter().filter_map(|ticket| self.queue.remove(ticket));
        removed.map(discard).count()
    }

    fn queued<V>(&self, entry: SnapshotEntry<V>) -> Queued<V> {
        let SnapshotEntry { deadline, ticket, element } = entry;
        let key = Key::new(self.id, ticket);
        Queued { element, key, deadline: self.clock.instant_of(deadline) }
    }
}

/// An iterator over a snapshot of a queue, in order. See [`DelayQueue::iter`].
#[derive(Debug)]
#[must_use = "an iterator does nothing unless it is iterated over"]
pub struct Iter<T>(vec::IntoIter<Queued<T>>);

impl<T> Iter<T> {
    pub(super) fn over(queued: Vec<Queued<T>>) -> Self {
        Self(queued.into_iter())
    }
}

impl<T> Iterator for Iter<T> {
    type Item = Queued<T>;

    fn next(&mut self) -> Option<Queued<T>> {
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<T> DoubleEndedIterator for Iter<T> {
    fn next_back(&mut self) -> Option<Queued<T>> {
        self.0.next_back()
    }
}

impl<T> ExactSizeIterator for Iter<T> {}

impl<T> FusedIterator for Iter<T> {}

impl<T: CheapClone> IntoIterator for &DelayQueue<T> {
    type Item = Queued<T>;
    type IntoIter = Iter<T>;

    fn into_iter(self) -> Iter<T> {
        self.iter()
    }
}
