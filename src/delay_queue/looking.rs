//! Inspecting the elements that are in the queue, and removing some of them.
//!
//! Another thread may take an element at any time, so a caller that inspects one gets a clone. Every
//! inspection copies the state of one moment under the lock, and the caller uses the copy outside
//! the lock.
//!
//! # Which elements can be inspected
//!
//! Cloning is user code, and this crate runs none under a lock: it could panic, take long, or use
//! this very queue. Cloning a number, an `Arc` and the like does none of that, and a type promises so
//! by implementing [`CheapClone`].

use std::{
    iter::FusedIterator,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6},
    num::NonZero,
    rc,
    sync::{self, Arc},
    thread::ThreadId,
    time::{Duration, Instant, SystemTime},
    vec,
};

use super::{DelayQueue, Key, Queued};
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
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::DelayQueue;
    ///
    /// let queue: DelayQueue<u32> = (1..=3).map(|n| (Duration::from_secs(60), n)).collect();
    /// assert_eq!(queue.iter().map(|queued| queued.element).sum::<u32>(), 6);
    /// assert_eq!(queue.len(), 3); // none was taken
    /// ```
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

/// A type whose `clone` is like copying a number: it does not block, does not panic, and does not use
/// the queue. Elements of such a type can be [inspected](super::DelayQueue::peek) while they are
/// in the queue.
///
/// Numbers, references, `Arc`, addresses and times are such types, and compounds of these. Elements
/// of other types can be queued in an `Arc`, and a small type of your own can implement the trait:
///
/// ```
/// use punctual::delay_queue::CheapClone;
///
/// #[derive(Clone, Copy)]
/// struct OrderNumber(u64);
///
/// impl CheapClone for OrderNumber {}
/// ```
///
/// If a type breaks the promise, all users of the queue wait for its `clone`, and the queue deadlocks
/// if that uses the queue.
#[diagnostic::on_unimplemented(
    message = "elements of type `{Self}` cannot be looked at while they are in the queue",
    note = "cloning one would be user code under the queue's lock; queue `Arc<{Self}>`, or write `impl CheapClone for {Self} {{}}` if a clone is as cheap as that of a number"
)]
pub trait CheapClone: Clone {}

macro_rules! cheap {
    ($($type:ty)*) => { $(impl CheapClone for $type {})* };
}

cheap! {
    () bool char f32 f64
    u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize
    NonZero<u8> NonZero<u16> NonZero<u32> NonZero<u64> NonZero<u128> NonZero<usize>
    NonZero<i8> NonZero<i16> NonZero<i32> NonZero<i64> NonZero<i128> NonZero<isize>
    Duration Instant SystemTime ThreadId Key
    IpAddr Ipv4Addr Ipv6Addr SocketAddr SocketAddrV4 SocketAddrV6
}

impl<T: ?Sized> CheapClone for &T {}
impl<T: ?Sized> CheapClone for Arc<T> {}
impl<T: ?Sized> CheapClone for sync::Weak<T> {}
impl<T: ?Sized> CheapClone for rc::Rc<T> {}
impl<T: ?Sized> CheapClone for rc::Weak<T> {}
impl<T: CheapClone> CheapClone for Option<T> {}
impl<T: CheapClone, const N: usize> CheapClone for [T; N] {}
impl<A: CheapClone, B: CheapClone> CheapClone for (A, B) {}
impl<A: CheapClone, B: CheapClone, C: CheapClone> CheapClone for (A, B, C) {}
impl<A: CheapClone, B: CheapClone, C: CheapClone, D: CheapClone> CheapClone for (A, B, C, D) {}
