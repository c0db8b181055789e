//! Room: queues with a bound, and insertions that wait until there is room for their element, blocking or polled. Both waits
//! are one poll of the queue ([`poll_insert`](crate::queue::SingleQueue::poll_insert), explained in `queue/single.rs`).

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use super::{DelayQueue, InsertError, Key, Refused, When};
use crate::{
    Limit,
    time::{Clock, Timestamp},
    wait::Place,
};

impl<T> DelayQueue<T> {
    /// Returns an empty queue on the system's monotonic clock that has room for so many elements, expired or not. Java has
    /// no such queue; its `ArrayBlockingQueue` has a bound and no delays.
    ///
    /// [`insert`](Self::insert) and the other insertions do not wait: they return an element for which there is no room.
    /// [`insert_within`](Self::insert_within) blocks until there is room, and
    /// [`insert_when_room`](Self::insert_when_room) awaits it. Each element that is taken, removed or drained makes room.
    ///
    /// A bound costs each take and each removal one lock more, and other queues nothing.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{DelayQueue, delay_queue::InsertError};
    ///
    /// let queue = DelayQueue::bounded(2);
    /// let first = queue.insert(Duration::from_secs(60), 1)?;
    /// queue.insert(Duration::from_secs(60), 2)?;
    /// let refused = queue.insert(Duration::from_secs(60), 3).unwrap_err();
    /// assert_eq!((refused.error(), refused.into_element()), (InsertError::Full, 3));
    /// queue.remove(first);
    /// queue.insert(Duration::from_secs(60), 3)?;
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the bound is zero, since nothing could ever be inserted.
    #[doc(alias("capacity", "backpressure", "max_len", "ArrayBlockingQueue"))]
    #[must_use]
    pub fn bounded(bound: usize) -> Self {
        Self::bounded_with_clock(bound, Clock::system())
    }

    /// Like [`bounded`](Self::bounded), with another [clock](Self::with_clock).
    ///
    /// # Panics
    ///
    /// As for [`bounded`](Self::bounded).
    #[must_use]
    pub fn bounded_with_clock(bound: usize, clock: impl Into<Clock>) -> Self {
        assert!(bound > 0, "the bound of a delay queue is zero; the smallest is one");
        Self::with_bound(bound, clock.into())
    }

    /// Returns how many elements there is room for: `usize::MAX` if the queue has no [bound](Self::bounded). It may be
    /// another number by the time the caller looks at it. Does not block. Java: `remainingCapacity`.
    pub fn remaining_capacity(&self) -> usize {
        self.queue.remaining_capacity()
    }

    /// Blocks until there is room for the element, or until `limit` is reached, and inserts it. `when` is a delay that is
    /// counted from this call and not from its end, or an instant, or `None`. If there is room when the limit
    /// is reached, the element is inserted. Threads and tasks that wait for room get it in the order in which they came,
    /// but an insertion that comes at the right moment may be faster. Java: `offer(e, timeout, unit)` and `put(e)`
    /// of a `BlockingQueue`.
    ///
    /// On a manual clock [another thread has to move it](crate::ManualClock#when-it-blocks). Without a
    /// [bound](Self::bounded) this call never waits.
    ///
    /// ```
    /// use std::{thread, time::Duration};
    /// use punctual::DelayQueue;
    ///
    /// let (queue, millisecond) = (DelayQueue::bounded(1), Duration::from_millis(1));
    /// thread::scope(|scope| {
    ///     scope.spawn(|| {
    ///         for n in 0..3 {
    ///             queue.insert_within(millisecond, n, Duration::MAX).ok(); // blocks while the one before is inside
    ///         }
    ///         queue.close();
    ///     });
    ///     assert!(queue.expirations().map(|expired| expired.element).eq(0..3));
    /// });
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Refused`], with the element: as [`Closed`](InsertError::Closed) if the queue is closed, also during the
    /// wait, and as [`Full`](InsertError::Full) if there is no room when the time is up or the token is raised.
    #[doc(alias("offer", "put", "send_timeout"))]
    pub fn insert_within(
        &self,
        when: impl When,
        element: T,
        limit: impl Into<Limit>,
    ) -> Result<Key, Refused<T>> {
        let mut insertion = self.insert_when_room(when, element);
        let limit = limit.into();
        let end = limit.deadline(&self.clock);
        let answer = limit.block(&self.clock, end, |waker| {
            match Pin::new(&mut insertion).poll(&mut Context::from_waker(waker)) {
                Poll::Ready(answer) => Some(answer),
                Poll::Pending => None,
            }
        });
        match (answer, insertion.element.take()) {
            (Some(answer), _) => answer,
            (None, Some(element)) => Err(Refused { error: InsertError::Full, element }),
            (None, None) => unreachable!("the element leaves with the answer alone"),
        }
    }

    /// Returns a future that waits until there is room for the element, and inserts it. `when` is counted from this call;
    /// otherwise as [`insert_within`](Self::insert_within), for async code on any runtime.
    ///
    /// Dropping the future before it is ready drops the element, which is not in the queue then. Once the future has been
    /// woken, it must be polled or dropped: until then others that wait for room may go on waiting.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::DelayQueue;
    ///
    /// # smol::block_on(async {
    /// let queue = DelayQueue::bounded(1);
    /// let millisecond = Duration::from_millis(1);
    /// queue.insert_when_room(millisecond, "tea").await?;
    /// assert!(queue.insert(millisecond, "coffee").is_err());
    /// assert!(queue.next().await.is_some());
    /// queue.insert_when_room(millisecond, "coffee").await?;
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Its output is [`Refused`], with the element, if the queue is closed, also during the wait.
    #[doc(alias("put", "send"))]
    pub fn insert_when_room(&self, when: impl When, element: T) -> InsertWhenRoom<'_, T> {
        let deadline = when.deadline(&self.clock, || self.clock.read());
        InsertWhenRoom { queue: self, deadline, element: Some(element), place: Place::default() }
    }
}

/// A future of an insertion into a queue with a bound. See [`DelayQueue::insert_when_room`].
#[must_use = "it inserts nothing unless it is awaited"]
pub struct InsertWhenRoom<'a, T> {
    queue: &'a DelayQueue<T>,
    deadline: Timestamp,
    /// `None` once it has been ready.
    element: Option<T>,
    place: Place,
}

/// It moves its element, and never refers to it.
impl<T> Unpin for InsertWhenRoom<'_, T> {}

impl<T> Future for InsertWhenRoom<'_, T> {
    type Output = Result<Key, Refused<T>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { queue, deadline, element, place } = &mut *self;
        match queue.queue.poll_insert(place, context.waker(), *deadline, element) {
            Some(inserted) => Poll::Ready(Ok(Key::new(queue.id, inserted?))),
            None => Poll::Pending,
        }
    }
}

impl<T> Drop for InsertWhenRoom<'_, T> {
    fn drop(&mut self) {
        self.queue.queue.give_up(&mut self.place);
    }
}

impl<T> fmt::Debug for InsertWhenRoom<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InsertWhenRoom").field("queue", self.queue).finish_non_exhaustive()
    }
}
