//! Taking elements that have expired: with and without blocking, one by one and all at once.

use std::{fmt, iter::FusedIterator};

use super::{DelayQueue, Expired, Key};
use crate::{
    CancellationToken, Limit, LimitReached,
    queue::{QueueEntry, Source},
    sync::Parker,
    time::Timestamp,
    token::Places,
};

impl<T> DelayQueue<T> {
    /// Takes the next element that expires; blocks until there is one. Returns `None` once the queue
    /// is [closed](Self::close) and empty. Java: `take`.
    ///
    /// On a manual clock [another thread has to move it](crate::ManualClock#when-it-blocks).
    ///
    /// ```
    /// use std::{thread, time::Duration};
    /// use punctual::DelayQueue;
    ///
    /// let queue = DelayQueue::new();
    /// thread::scope(|scope| {
    ///     scope.spawn(|| {
    ///         while let Some(expired) = queue.take() {
    ///             println!("{}", expired.element);
    ///         }
    ///     });
    ///     queue.insert(Duration::from_millis(2), "later").ok();
    ///     queue.insert(Duration::from_millis(1), "sooner").ok();
    ///     queue.close();
    /// });
    /// ```
    #[doc(alias("recv", "pop"))]
    #[inline]
    pub fn take(&self) -> Option<Expired<T>> {
        self.take_by(Timestamp::NEVER)
    }

    /// Blocks until an element has expired, or until `limit` is reached, and takes it. Returns
    /// `Ok(None)` if the queue is [closed](Self::close) and empty. An element that has expired when the
    /// limit is reached is taken, unless a token was raised before the call. Java:
    /// `poll(timeout, unit)`, and `take` in a thread that may be interrupted.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{CancellationToken, DelayQueue, Limit, LimitReached};
    ///
    /// let (queue, token) = (DelayQueue::<u32>::new(), CancellationToken::new());
    /// let limit = Limit::from(Duration::from_millis(1)).unless(&token);
    /// assert_eq!(queue.take_within(limit.clone()).err(), Some(LimitReached::TimedOut));
    /// token.cancel();
    /// assert_eq!(queue.take_within(limit).err(), Some(LimitReached::Cancelled));
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`LimitReached`], which says whether the time was up or the token was raised. Nothing is
    /// taken then.
    #[doc(alias = "recv_timeout")]
    #[doc(alias = "interrupt")]
    pub fn take_within(&self, limit: impl Into<Limit>) -> Result<Option<Expired<T>>, LimitReached> {
        let limit = limit.into();
        let deadline = limit.deadline(&self.clock);
        let taken = match limit.token() {
            None => self.take_by(deadline),
            Some(token) => self.take_by_unless(deadline, token),
        };
        match taken {
            None if limit.is_cancelled() || !self.is_finished() => Err(limit.reached()),
            taken => Ok(taken),
        }
    }

    /// Takes an element if one has expired; does not block. Java: `poll()`, and `remove()` since
    /// Java 21.
    ///
    /// `None` does not tell whether there will be more: see [`is_finished`](Self::is_finished).
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{DelayQueue, ManualClock};
    ///
    /// let clock = ManualClock::new();
    /// let queue = DelayQueue::with_clock(clock.clone());
    /// let second = Duration::from_secs(1);
    /// queue.insert(second, "tea")?;
    /// assert!(queue.poll().is_none());
    /// clock.advance(second);
    /// assert_eq!(queue.poll().map(|expired| expired.element), Some("tea"));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias = "try_take")]
    #[doc(alias = "try_recv")]
    #[inline]
    pub fn poll(&self) -> Option<Expired<T>> {
        self.queue.try_take().map(|entry| self.expired(entry))
    }

    /// Returns an iterator that blocks for each element that expires, and ends when the queue is closed
    /// and empty. Several threads may have one each; each element goes to one of them.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::DelayQueue;
    ///
    /// let queue: DelayQueue<u32> =
    ///     (1..=3).rev().map(|n| (Duration::from_millis(n.into()), n)).collect();
    /// queue.close();
    /// let numbers: Vec<u32> = queue.expirations().map(|expired| expired.element).collect();
    /// assert_eq!(numbers, [1, 2, 3]);
    /// ```
    pub fn expirations(&self) -> Expirations<'_, T> {
        Expirations { queue: self }
    }

    /// Returns an iterator over the elements that have expired by this call. It takes one element at a
    /// time and does not block. Elements that it is not asked for stay in the queue:
    /// `drain().take(10)` takes ten at most, and `drain()` alone none. An element that is inserted
    /// meanwhile and had expired by this call is taken, too. Java: `drainTo`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::DelayQueue;
    ///
    /// let queue = DelayQueue::new();
    /// for n in 0..5 {
    ///     queue.insert(Duration::ZERO, n)?;
    /// }
    /// let first: Vec<_> = queue.drain().take(2).map(|expired| expired.element).collect();
    /// assert_eq!(first, [0, 1]);
    /// assert_eq!(queue.drain().count(), 3);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// The compiler warns about an iterator that is not used:
    ///
    /// ```compile_fail
    /// #![deny(unused_must_use)]
    /// let queue = punctual::DelayQueue::<u32>::new();
    /// queue.drain(); // an error: the iterator is not used
    /// ```
    ///
    /// To drop what has expired, write `queue.drain().for_each(drop)`.
    #[doc(alias = "drainTo")]
    pub fn drain(&self) -> Drain<'_, T> {
        Drain { queue: self, by: self.clock.read() }
    }

    /// Moves at most `limit` of the elements that have expired by this call to `sink`, and returns
    /// their number. Does not block. Java: `drainTo(sink, max)`.
    ///
    /// An element has left the queue when the sink gets it. If the sink panics, the element that it
    /// holds is lost; all others stay. An element that is inserted meanwhile and had expired by this
    /// call is moved, too.
    ///
    /// ```
    /// use std::{sync::mpsc, time::Duration};
    /// use punctual::DelayQueue;
    ///
    /// let queue = DelayQueue::new();
    /// for n in 0..5 {
    ///     queue.insert(Duration::ZERO, n)?;
    /// }
    /// let (sender, receiver) = mpsc::sync_channel(2);
    /// let moved = queue.drain_to(usize::MAX, |expired| {
    ///     sender.try_send(expired.element).map_err(|error| match error {
    ///         mpsc::TrySendError::Full(n) | mpsc::TrySendError::Disconnected(n) => n,
    ///     })
    /// });
    /// assert_eq!((moved, queue.len()), (Err(2), 2));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The sink may refuse an element by returning it. The draining ends then, and returns that element.
    /// To put it back, [insert](Self::insert_at) it: it gets a new key, and a place behind others with
    /// the same deadline.
    #[doc(alias = "drainTo")]
    pub fn drain_to(
        &self,
        limit: usize,
        mut sink: impl FnMut(Expired<T>) -> Result<(), T>,
    ) -> Result<usize, T> {
        let mut expired = self.drain().take(limit);
        expired.try_fold(0, |moved, expired| sink(expired).map(|()| moved + 1))
    }

    fn take_by(&self, limit: Timestamp) -> Option<Expired<T>> {
        self.queue
            .take_until_by(Parker::current, |_| Some(limit))
            .map(|(entry, _)| self.expired(entry))
    }

    fn take_by_unless(&self, limit: Timestamp, token: &CancellationToken) -> Option<Expired<T>> {
        let parker = Parker::current();
        // From here on the token wakes this thread, which then computes its limit again.
        let mut places = Places::default();
        let is_raised = token.poll_raised(&mut places, parker.waker()).is_some();
        let limit = |_| Some(if token.is_cancelled() { Timestamp::PAST } else { limit });
        // It sleeps by this very parker: a thread that is being torn down gets another one each time.
        let taken = if is_raised { None } else { self.queue.take_until_by(|| &*parker, limit) };
        token.forget(&mut places);
        taken.map(|(entry, _)| self.expired(entry))
    }

    #[inline]
    pub(super) fn expired(&self, entry: QueueEntry<T>) -> Expired<T> {
        let key = Key::of_sequence(self.id, entry.sequence);
        Expired { element: entry.element, key, deadline: self.clock.shown_at(entry.deadline) }
    }
}

/// A blocking iterator over the elements that expire. See [`DelayQueue::expirations`].
#[must_use = "it takes nothing unless it is iterated over"]
pub struct Expirations<'a, T> {
    queue: &'a DelayQueue<T>,
}

impl<T> Iterator for Expirations<'_, T> {
    type Item = Expired<T>;

    /// Takes the next element that expires; blocks until there is one.
    fn next(&mut self) -> Option<Expired<T>> {
        self.queue.take()
    }
}

// A closed queue admits nothing, so it stays at its end.
impl<T> FusedIterator for Expirations<'_, T> {}

impl<T> fmt::Debug for Expirations<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Expirations").field("queue", self.queue).finish()
    }
}

/// An iterator that takes the elements that had expired at one time. See [`DelayQueue::drain`].
#[must_use = "it takes nothing unless it is iterated over; to drop what has expired there is `for_each(drop)`"]
pub struct Drain<'a, T> {
    queue: &'a DelayQueue<T>,
    by: Timestamp,
}

impl<T> Iterator for Drain<'_, T> {
    type Item = Expired<T>;

    #[inline]
    fn next(&mut self) -> Option<Expired<T>> {
        self.queue.queue.try_take_by(self.by).map(|entry| self.queue.expired(entry))
    }
}

impl<T> fmt::Debug for Drain<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drain").field("queue", self.queue).finish_non_exhaustive()
    }
}
