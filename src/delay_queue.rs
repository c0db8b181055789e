//! [`DelayQueue`]: a queue that holds each value until its deadline. It needs no executor.
//!
//! Any number of threads and async tasks can insert and take elements. An element can be taken once its deadline has
//! come. Elements leave in the order of their deadlines, and those with equal deadlines in the order of insertion.
//!
//! | to | use |
//! |---|---|
//! | insert | [`insert`](DelayQueue::insert), [`put`](DelayQueue::put) for elements that are [`Delayed`], [`insert_all`](DelayQueue::insert_all), `extend`, `collect` |
//! | take expired elements | [`take`](DelayQueue::take) and its variants, [`poll`](DelayQueue::poll), [`drain`](DelayQueue::drain), [`drain_to`](DelayQueue::drain_to) |
//! | take them as a stream | [`expirations`](DelayQueue::expirations) for threads, [`next`](DelayQueue::next) and [`stream`](DelayQueue::stream) for async code |
//! | find or change an element by its [`Key`] | [`remove`](DelayQueue::remove), [`reset`](DelayQueue::reset), [`deadline`](DelayQueue::deadline), [`delay`](DelayQueue::delay), [`contains`](DelayQueue::contains) |
//! | inspect | [`peek`](DelayQueue::peek), [`iter`](DelayQueue::iter), [`to_vec`](DelayQueue::to_vec), [`len`](DelayQueue::len) |
//! | remove several | [`retain`](DelayQueue::retain), [`remove_all`](DelayQueue::remove_all), [`clear`](DelayQueue::clear) |
//! | refuse further elements | [`close`](DelayQueue::close) |
//!
//! ```
//! use std::time::Duration;
//! use punctual::DelayQueue;
//!
//! let queue = DelayQueue::new();
//! let tea = queue.insert(Duration::from_millis(2), "tea")?;
//! let news = queue.insert(Duration::from_millis(1), "the news")?;
//! queue.reset(news, Duration::from_secs(3600));
//!
//! let expired = queue.take().expect("the queue is open");
//! assert_eq!((expired.element, expired.key), ("tea", tea));
//! assert_eq!(queue.remove(news), Some("the news"));
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! ```
//!
//! # User code
//!
//! Elements come from the user: dropping or cloning one may run arbitrary code. No such code runs while the queue is
//! locked, with one exception: [inspecting](DelayQueue::peek) or [filtering](DelayQueue::retain) elements clones them
//! under the lock, so both need elements that are [`CheapClone`].

mod element;
mod taking;

use std::{
    fmt,
    time::{Duration, Instant},
};

pub use self::{
    element::{CheapClone, Delayed, Expired, Iter, Key, Queued, Refused, When},
    taking::{ExpirationStream, NextExpired},
};
pub use crate::queue::InsertError;
use crate::{
    entry::Ticket,
    queue::{QueueEntry, SingleQueue, SnapshotEntry, Source},
    sync::process::{AtomicU64, Ordering},
    time::Clock,
    unwind::{Contained, discard},
};

/// A queue of elements that can be taken once their delay has expired, and not before, by any number
/// of threads and async tasks. Java: `DelayQueue`. See the [module](self) for a guide.
///
/// # Cost
///
/// An insertion or a removal takes one lock, for tens of nanoseconds. Elements that are inserted in
/// the order in which they expire are queued and taken in constant time, others in O(log n).
/// Nothing is allocated except when an array grows. An element takes 32 bytes in addition to its
/// own size, and fewer if an `Option` of it is no larger than itself.
///
/// # Blocking
///
/// The methods that wait for an element say so; no other blocks. Of all threads and tasks that wait, one wakes for the
/// first deadline and another for the second, so an expired element wakes only one of them. On a manual clock [another
/// thread has to move it](crate::ManualClock#when-it-blocks).
#[doc(alias("timer_queue", "ttl", "expiring_cache"))]
pub struct DelayQueue<T> {
    queue: SingleQueue<T>,
    clock: Clock,
    /// A number that no other queue has; every key of this queue carries it.
    id: u64,
}

/// # Inserting, changing and closing
impl<T> DelayQueue<T> {
    /// Returns an empty queue on the system's monotonic clock.
    #[must_use]
    pub fn new() -> Self {
        Self::with_clock(Clock::system())
    }

    /// Returns an empty queue that takes the time from `clock`. On a [`ManualClock`](crate::ManualClock) elements
    /// expire when a test moves the clock. (The clock's `run_until_idle` waits for the workers of executors, but not
    /// for threads of your own that take from this queue: wait for their effects.)
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{DelayQueue, ManualClock};
    ///
    /// let clock = ManualClock::new();
    /// let queue = DelayQueue::with_clock(clock.clone());
    /// queue.insert(Duration::from_secs(60), "a minute")?;
    /// assert!(queue.poll().is_none());
    /// clock.advance(Duration::from_secs(60));
    /// assert!(queue.poll().is_some());
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[must_use]
    pub fn with_clock(clock: impl Into<Clock>) -> Self {
        static QUEUES: AtomicU64 = AtomicU64::new(0);
        // Ordering: relaxed, it orders no other access.
        let id = QUEUES.fetch_add(1, Ordering::Relaxed);
        let clock = clock.into();
        Self { queue: SingleQueue::new(clock.clone()), clock, id }
    }

    /// Returns the clock of the queue. Its [`now`](Clock::now) decides whether an element has expired.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Inserts an element, and returns its key, by which it can be removed or given another deadline. The element
    /// expires after a delay, counted from now, or at an instant, for which the clock is not read: at once if the delay
    /// is zero or the instant has passed, and never for `Duration::MAX` or `None`. Does not block. Java: `offer`,
    /// `add`, `put`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{DelayQueue, ManualClock};
    ///
    /// let clock = ManualClock::new();
    /// let queue = DelayQueue::with_clock(clock.clone());
    /// let second = Duration::from_secs(1);
    /// queue.insert(2 * second, "later")?;
    /// queue.insert(clock.now() + second, "sooner")?;
    /// clock.advance(2 * second);
    /// let expired: Vec<_> = queue.drain().map(|expired| expired.element).collect();
    /// assert_eq!(expired, ["sooner", "later"]);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Refused`], with the element, if the queue is [closed](Self::close) or has a billion elements.
    #[doc(alias("offer", "add", "push", "insert_with_ttl"))]
    #[inline]
    pub fn insert(&self, when: impl When, element: T) -> Result<Key, Refused<T>> {
        let deadline = when.deadline(&self.clock, || self.clock.read());
        Ok(Key::new(self.id, self.queue.insert(deadline, element)?))
    }

    /// Inserts an element that has a deadline of its own, which is read once, by this call. Otherwise
    /// as [`insert`](Self::insert). Java: `put`, `offer`, `add`.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use punctual::{DelayQueue, Delayed};
    ///
    /// struct Order { number: u32, placed: Instant }
    ///
    /// impl Delayed for Order {
    ///     fn deadline(&self) -> Option<Instant> {
    ///         self.placed.checked_add(Duration::from_millis(1))
    ///     }
    /// }
    ///
    /// let unpaid = DelayQueue::new();
    /// unpaid.put(Order { number: 7, placed: Instant::now() })?;
    /// assert_eq!(unpaid.take().expect("it is open").element.number, 7);
    /// # Ok::<(), punctual::delay_queue::Refused<Order>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`insert`](Self::insert).
    pub fn put(&self, element: T) -> Result<Key, Refused<T>>
    where
        T: Delayed,
    {
        self.insert(element.deadline(), element)
    }

    /// Removes the element with this key, expired or not, and returns it. Returns `None` if it is not
    /// in the queue: it was taken or removed before, or the key is another queue's. Does not block.
    /// O(log n). Java: `remove(Object)`, which is linear.
    #[inline]
    pub fn remove(&self, key: Key) -> Option<T> {
        self.queue.remove(key.ticket_in(self.id)?)
    }

    /// Gives the element with this key a new delay, counted from now, or a new deadline, as [`insert`](Self::insert)
    /// does, whatever its deadline was: even an expired element waits again, unless it has been taken. Its key stays
    /// valid. Returns `true` if the element is in the queue. Elements with the same deadline expire in the order of
    /// their insertion, whenever they were reset. Does not block. O(log n).
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::DelayQueue;
    ///
    /// let sessions = DelayQueue::new();
    /// let session = sessions.insert(Duration::from_secs(60), "anna")?;
    /// assert!(sessions.reset(session, Duration::from_secs(60)), "seen again: one minute more");
    /// assert!(sessions.reset(session, Duration::ZERO), "logged out");
    /// assert_eq!(sessions.poll().map(|expired| expired.element), Some("anna"));
    /// assert!(!sessions.reset(session, Duration::from_secs(60)), "too late");
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[inline]
    pub fn reset(&self, key: Key, when: impl When) -> bool {
        let deadline = when.deadline(&self.clock, || self.clock.read());
        key.ticket_in(self.id).is_some_and(|ticket| self.queue.reset(ticket, deadline))
    }

    /// Returns when the element with this key expires, or has expired. Returns `None` if it never
    /// does, or is not in the queue; [`delay`](Self::delay) tells the two apart.
    pub fn deadline(&self, key: Key) -> Option<Instant> {
        let deadline = self.queue.deadline(key.ticket_in(self.id)?)?;
        self.clock.instant_of(deadline)
    }

    /// Returns how long it is until the element with this key expires: zero if it has expired, `Duration::MAX` if it
    /// never does. Returns `None` if it is not in the queue. Java: `getDelay` of the element.
    #[doc(alias = "getDelay")]
    pub fn delay(&self, key: Key) -> Option<Duration> {
        let deadline = self.queue.deadline(key.ticket_in(self.id)?)?;
        Some(deadline.delay_at(self.clock.read()))
    }

    /// Returns `true` if the element with this key is in the queue. Java: `contains`.
    pub fn contains(&self, key: Key) -> bool {
        key.ticket_in(self.id).is_some_and(|ticket| self.queue.deadline(ticket).is_some())
    }

    /// Returns the number of elements, expired or not. Java: `size`.
    #[doc(alias = "size")]
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Returns `true` if there is no element, expired or not. Java: `isEmpty`.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the key of the element that will be taken first, for elements of any type.
    #[must_use]
    pub fn peek_key(&self) -> Option<Key> {
        self.queue.peek(|_| ()).map(|listed| self.queued(listed).key)
    }

    /// Returns the keys of all elements, in the order in which they will be taken, for elements of any
    /// type. Otherwise as [`to_vec`](Self::to_vec).
    #[must_use]
    pub fn keys(&self) -> Vec<Key> {
        let listed = self.queue.snapshot(|_| ()).into_iter();
        listed.map(|listed| self.queued(listed).key).collect()
    }

    /// Removes all elements, expired or not, and returns them in the order in which they would have been taken.
    #[must_use = "to drop all elements there is `clear`"]
    pub fn remove_all(&self) -> Vec<Queued<T>> {
        let mut removed: Vec<_> = self.queue.drain().collect();
        removed.sort_unstable_by_key(|entry| (entry.deadline, entry.sequence));
        let queued = removed.into_iter().map(|QueueEntry { deadline, sequence, element }| {
            let ticket = Ticket::without_slot(sequence);
            self.queued(SnapshotEntry { deadline, ticket, element })
        });
        queued.collect()
    }

    /// Drops all elements, expired or not. If dropping one panics, the panic is contained and the
    /// others are dropped all the same. Java: `clear`.
    pub fn clear(&self) {
        self.queue.drain().take_chunks().into_iter().flatten().flatten().for_each(discard);
    }

    /// Closes the queue: from now on every insertion is refused and returns its element. Elements inside can still be
    /// taken, removed, reset and drained. [`take`](Self::take) and [`next`](Self::next) go on waiting until the last
    /// element is gone, and then return `None`. Idempotent; does not block.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::DelayQueue;
    ///
    /// let queue = DelayQueue::new();
    /// queue.insert(Duration::from_millis(1), "the last")?;
    /// queue.close();
    /// let refused = queue.insert(Duration::ZERO, "too late").unwrap_err();
    /// assert_eq!(refused.into_element(), "too late");
    /// assert_eq!(queue.take().map(|expired| expired.element), Some("the last"));
    /// assert!(queue.take().is_none());
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn close(&self) {
        self.queue.close();
    }

    /// Returns `usize::MAX`: nothing bounds the queue but its [billion elements](InsertError::Full). Java:
    /// `remainingCapacity`.
    pub const fn remaining_capacity(&self) -> usize {
        usize::MAX
    }

    /// Returns `true` if the queue is closed.
    pub fn is_closed(&self) -> bool {
        self.queue.is_closed()
    }

    /// Returns `true` if the queue is closed and empty, so that nothing will ever be taken from it.
    pub fn is_finished(&self) -> bool {
        self.queue.is_finished()
    }

    fn queued<V>(&self, entry: SnapshotEntry<V>) -> Queued<V> {
        let SnapshotEntry { deadline, ticket, element } = entry;
        let key = Key::new(self.id, ticket);
        Queued { element, key, deadline: self.clock.instant_of(deadline) }
    }
}

/// Inserting many elements in one step: the call collects them from the user's iterator before it takes the lock.
impl<T> DelayQueue<T> {
    /// Inserts all elements in one step, each with its delay or its deadline, and returns their keys
    /// in the same order. All delays are counted from the same time, now. Does not block. This is
    /// faster than inserting them one by one. Java: `addAll`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::DelayQueue;
    ///
    /// let queue = DelayQueue::new();
    /// let keys = queue.insert_all((1..=3).map(|n| (Duration::from_secs(n), n)))?;
    /// assert_eq!(queue.remove(keys[1]), Some(2));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Refused`], with all elements, if the queue is closed or would have more than a billion elements.
    /// None of them was inserted then.
    #[doc(alias = "addAll")]
    pub fn insert_all<W: When>(
        &self,
        elements: impl IntoIterator<Item = (W, T)>,
    ) -> Result<Vec<Key>, Refused<Vec<T>>> {
        let now = self.clock.read();
        let timed = elements
            .into_iter()
            .map(|(when, element)| (when.deadline(&self.clock, || now), element));
        let tickets = self.queue.insert_all(timed.collect()).map_err(|(error, refused)| {
            Refused { error, element: refused.into_iter().map(|(_, element)| element).collect() }
        })?;
        Ok(tickets.into_iter().map(|ticket| Key::new(self.id, ticket)).collect())
    }
}

/// # Inspecting and filtering
///
/// Another thread may take an element at any time, so a caller that inspects one gets a clone. Every inspection copies
/// one consistent state under the lock, and the caller uses the copy outside the lock. A clone is the only code of a
/// user that runs under a lock of this crate, so an element has to be a [`CheapClone`].
impl<T: CheapClone> DelayQueue<T> {
    /// Returns a clone of the element that will be taken first, expired or not, and leaves it in the
    /// queue. Returns `None` if the queue is empty. Java: `peek`, `element`.
    #[must_use]
    pub fn peek(&self) -> Option<Queued<T>> {
        self.queue.peek(T::clone).map(|listed| self.queued(listed))
    }

    /// Returns a snapshot of the queue: clones of all elements, in the order in which they will be taken. O(n log n);
    /// the queue is locked while it is copied, O(n). Java: `toArray`.
    #[doc(alias = "toArray")]
    #[must_use]
    pub fn to_vec(&self) -> Vec<Queued<T>> {
        let listed = self.queue.snapshot(T::clone).into_iter();
        listed.map(|listed| self.queued(listed)).collect()
    }

    /// Returns an iterator over a [snapshot](Self::to_vec) that is made now. Later changes to the queue
    /// do not affect it. Java: `iterator`, `stream`.
    pub fn iter(&self) -> Iter<T> {
        self.to_vec().into_iter()
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
    pub fn retain(&self, mut keep: impl FnMut(&T) -> bool) -> usize {
        // These may be the last clones of elements that are removed, or taken meanwhile. So their drops are contained,
        // even if the predicate panics.
        let listed = self.queue.snapshot(|element| Contained::new(element.clone()));
        let unwanted = listed.iter().filter(|listed| !keep(&listed.element));
        let unwanted: Vec<_> = unwanted.map(|listed| listed.ticket).collect();
        let removed = unwanted.into_iter().filter_map(|ticket| self.queue.remove(ticket));
        removed.map(discard).count()
    }
}

impl<T> Default for DelayQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Drop for DelayQueue<T> {
    /// Drops the elements that are left. If dropping one panics, the panic is contained.
    fn drop(&mut self) {
        self.clear();
    }
}

impl<T> fmt::Debug for DelayQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DelayQueue")
            .field("len", &self.len())
            .field("is_closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

/// Inserts all elements, as [`DelayQueue::insert_all`] does, and drops their keys.
///
/// # Panics
///
/// Panics if there is an element to insert and the queue is closed or full; the elements are
/// dropped. If that can happen, use `insert_all`, which returns them.
#[allow(clippy::panic, reason = "`extend` cannot return anything, as its documentation says")]
impl<T, W: When> Extend<(W, T)> for DelayQueue<T> {
    fn extend<I: IntoIterator<Item = (W, T)>>(&mut self, elements: I) {
        if let Err(Refused { error, element: elements }) = self.insert_all(elements) {
            elements.into_iter().for_each(discard);
            panic!("cannot extend: {error}");
        }
    }
}

impl<T, W: When> FromIterator<(W, T)> for DelayQueue<T> {
    /// Makes a queue on the system clock, and inserts the elements.
    fn from_iter<I: IntoIterator<Item = (W, T)>>(elements: I) -> Self {
        let mut queue = Self::new();
        queue.extend(elements);
        queue
    }
}

impl<T> IntoIterator for DelayQueue<T> {
    type Item = Queued<T>;
    type IntoIter = Iter<T>;

    /// Returns an iterator over all elements, in the order in which they would have been taken.
    fn into_iter(self) -> Iter<T> {
        self.remove_all().into_iter()
    }
}

impl<T: CheapClone> IntoIterator for &DelayQueue<T> {
    type Item = Queued<T>;
    type IntoIter = Iter<T>;

    fn into_iter(self) -> Iter<T> {
        self.iter()
    }
}

#[cfg(test)]
#[cfg(not(any(shuttle, loom)))]
mod tests;
