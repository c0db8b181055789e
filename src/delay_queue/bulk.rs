//! Inserting many elements at once: they are collected from the user's iterator first, and then
//! inserted under one lock.

use std::time::{Duration, Instant};

use super::{DelayQueue, Delayed, Iter, Key, Queued, Refused};
use crate::{time::Timestamp, unwind::discard};

/// When an element expires that is inserted with others: after a `Duration`, at an `Instant`, or
/// never, for `None` of either.
pub trait When: sealed::When {}

impl<W: sealed::When> When for W {}

mod sealed {
    use super::{Duration, Instant, Timestamp};
    use crate::time::Clock;

    pub trait When {
        #[doc(hidden)]
        #[allow(private_interfaces, reason = "sealed: for this crate only")]
        fn deadline(self, clock: &Clock, now: Timestamp) -> Timestamp;
    }

    impl When for Duration {
        #[allow(private_interfaces, reason = "as above")]
        fn deadline(self, _: &Clock, now: Timestamp) -> Timestamp {
            now.after(self)
        }
    }

    impl When for Instant {
        #[allow(private_interfaces, reason = "as above")]
        fn deadline(self, clock: &Clock, _: Timestamp) -> Timestamp {
            clock.deadline_of(self)
        }
    }

    impl<W: When> When for Option<W> {
        #[allow(private_interfaces, reason = "as above")]
        fn deadline(self, clock: &Clock, now: Timestamp) -> Timestamp {
            self.map_or(Timestamp::NEVER, |when| when.deadline(clock, now))
        }
    }
}

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
    /// Returns [`Refused`], with all elements, if the queue is closed or has no room for all of them.
    /// None of them was inserted then.
    #[doc(alias = "addAll")]
    pub fn insert_all<W: When>(
        &self,
        elements: impl IntoIterator<Item = (W, T)>,
    ) -> Result<Vec<Key>, Refused<Vec<T>>> {
        let now = self.clock.read();
        let timed = elements.into_iter();
        self.insert_timed(timed.map(|(when, element)| (when.deadline(&self.clock, now), element)))
    }

    /// Inserts all elements in one step, each with its own deadline. Otherwise as
    /// [`insert_all`](Self::insert_all).
    ///
    /// # Errors
    ///
    /// As [`insert_all`](Self::insert_all).
    pub fn put_all(
        &self,
        elements: impl IntoIterator<Item = T>,
    ) -> Result<Vec<Key>, Refused<Vec<T>>>
    where
        T: Delayed,
    {
        let own = elements.into_iter();
        self.insert_timed(own.map(|element| (self.deadline_of(element.deadline()), element)))
    }

    fn insert_timed(
        &self,
        elements: impl Iterator<Item = (Timestamp, T)>,
    ) -> Result<Vec<Key>, Refused<Vec<T>>> {
        match self.queue.insert_all(elements.collect()) {
            Ok(tickets) => {
                Ok(tickets.into_iter().map(|ticket| Key::new(self.id, ticket)).collect())
            }
            Err(refused) => {
                let element = refused.elements.into_iter().map(|(_, element)| element).collect();
                Err(Refused { error: refused.why.into(), element })
            }
        }
    }
}

/// Inserts all elements, as [`DelayQueue::insert_all`] does, and drops their keys.
///
/// # Panics
///
/// Panics if there is an element to insert and the queue is closed or full; the elements are
/// dropped. If that can happen, use `insert_all`, which returns them.
impl<T, W: When> Extend<(W, T)> for DelayQueue<T> {
    fn extend<I: IntoIterator<Item = (W, T)>>(&mut self, elements: I) {
        must(self.insert_all(elements));
    }
}

/// Inserts all elements into a queue that is shared, as for the queue itself.
///
/// # Panics
///
/// Panics as for the queue itself.
impl<T, W: When> Extend<(W, T)> for &DelayQueue<T> {
    fn extend<I: IntoIterator<Item = (W, T)>>(&mut self, elements: I) {
        must(self.insert_all(elements));
    }
}

/// Inserts all elements, as [`DelayQueue::put_all`] does, and drops their keys.
///
/// # Panics
///
/// Panics if there is an element to insert and the queue is closed or full; the elements are
/// dropped. If that can happen, use `put_all`, which returns them.
impl<T: Delayed> Extend<T> for DelayQueue<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, elements: I) {
        must(self.put_all(elements));
    }
}

#[track_caller]
#[allow(clippy::panic, reason = "`extend` cannot return anything, as its documentation says")]
fn must<T>(inserted: Result<Vec<Key>, Refused<Vec<T>>>) {
    if let Err(Refused { error, element: elements }) = inserted {
        elements.into_iter().for_each(discard);
        panic!("cannot extend: {error}");
    }
}

impl<T, W: When> FromIterator<(W, T)> for DelayQueue<T> {
    /// Makes a queue on the system's clock.
    fn from_iter<I: IntoIterator<Item = (W, T)>>(elements: I) -> Self {
        let mut queue = Self::new();
        queue.extend(elements);
        queue
    }
}

impl<T: Delayed> FromIterator<T> for DelayQueue<T> {
    /// Makes a queue on the system's clock.
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        let mut queue = Self::new();
        queue.extend(elements);
        queue
    }
}

impl<T> IntoIterator for DelayQueue<T> {
    type Item = Queued<T>;
    type IntoIter = Iter<T>;

    /// Iterates over all elements, as [`remove_all`](Self::remove_all) returns them.
    fn into_iter(self) -> Iter<T> {
        Iter::over(self.remove_all())
    }
}
