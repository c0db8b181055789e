//! Taking expired elements: one at a time (blocking or not, or in async code on any runtime) or all in one call.
//!
//! A thread that waits for an element can sleep until a deadline. A future or a stream waits in the same way
//! (`queue/waiting.rs`), but cannot sleep: it sets an alarm ([`WaiterAlarm`]) that calls the waker of its task. Alarms
//! are few: of the tasks that await a queue, usually only the leader and the deputy have an alarm (`queue/waiters.rs`).
//!
//! * On the system clock all alarms of the process are on one list, and one thread calls their wakers. That thread
//!   starts with the first alarm, sleeps while there is none, and never ends.
//! * A manual clock keeps its own alarms, and the thread that moves the clock calls the wakers.
//!
//! If the thread for the system clock cannot start, the waker is called at once. Then the task polls, finds nothing,
//! and sets another alarm, and so tries again to start the thread. That keeps a core busy, but no wake-up is late or
//! lost. A waker that blocks delays all alarms on the system clock, just as it would block a thread of any runtime.

use std::{
    fmt,
    future::Future,
    iter::{self, FusedIterator},
    pin::Pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use super::{DelayQueue, Expired, Key};
use crate::{
    CancellationToken, Limit, LimitReached,
    entry::Ticket,
    queue::{AsyncWaiter, QueueEntry, Source},
    sync::{OnceLock, Parker, thread},
    thread_factory::ThreadBody,
    time::{Clock, PlaceId, Timestamp, Wakers, set_timer_slack},
    token::Places,
    unwind::{discard, wake_all},
    wait::{self, Place, Watched},
};

/// # Taking
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

    /// Blocks until an element has expired, or until `limit` is reached, and takes it. Returns `Ok(None)` if the queue
    /// is [closed](Self::close) and empty. An element that has expired when the limit is reached is taken, unless the
    /// token was cancelled before the call. Java: `poll(timeout, unit)`, and `take` in a thread that may be
    /// interrupted.
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
    /// Returns [`LimitReached`], which says whether the time was up or the token was cancelled. Nothing is taken then.
    #[doc(alias("recv_timeout", "interrupt"))]
    pub fn take_within(&self, limit: impl Into<Limit>) -> Result<Option<Expired<T>>, LimitReached> {
        let limit = limit.into();
        let deadline = limit.deadline(&self.clock);
        let taken = match &limit.token {
            None => self.take_by(deadline),
            Some(token) => self.take_by_unless(deadline, token),
        };
        let is_end = || limit.reached() == LimitReached::TimedOut && self.is_finished();
        if taken.is_some() || is_end() { Ok(taken) } else { Err(limit.reached()) }
    }

    /// Takes an element if one has expired; does not block. Java: `poll()`, and `remove()` since Java 21.
    ///
    /// `None` does not say whether more will come: see [`is_finished`](Self::is_finished).
    #[doc(alias("try_take", "try_recv"))]
    #[inline]
    pub fn poll(&self) -> Option<Expired<T>> {
        self.queue.try_take().map(|entry| self.expired(entry))
    }

    /// Returns an iterator that blocks for each element that expires, and ends when the queue is closed
    /// and empty. Several threads may have one each; each element goes to one of them.
    pub fn expirations(&self) -> impl FusedIterator<Item = Expired<T>> {
        // A closed queue admits nothing, so it stays at its end.
        iter::from_fn(|| self.take()).fuse()
    }

    /// Returns an iterator over the elements that have expired by the time of this call. It takes one element at a time
    /// and does not block. Elements that the caller does not ask it for stay in the queue: `drain().take(10)` takes ten
    /// at most, and `drain()` alone none. An element that is inserted meanwhile and had expired by this call is taken,
    /// too. Java: `drainTo`.
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
    /// To drop what has expired, write `queue.drain().for_each(drop)`.
    #[doc(alias = "drainTo")]
    pub fn drain(&self) -> impl Iterator<Item = Expired<T>> {
        let by = self.clock.read();
        iter::from_fn(move || self.queue.try_take_by(by).map(|entry| self.expired(entry)))
    }

    /// Moves at most `limit` of the elements that have expired by this call to `sink`, and returns
    /// their number. Does not block. Java: `drainTo(sink, max)`.
    ///
    /// An element has left the queue when the sink gets it. If the sink panics, the element that it holds is lost; all
    /// others stay. An element that is inserted meanwhile and had expired by this call is moved, too.
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
    /// The sink may refuse an element by returning it. The call then ends, and returns that element. To put it back,
    /// [insert](Self::insert) it: it gets a new key, and a place behind others with the same deadline.
    pub fn drain_to(
        &self,
        limit: usize,
        mut sink: impl FnMut(Expired<T>) -> Result<(), T>,
    ) -> Result<usize, T> {
        let mut expired = self.drain().take(limit);
        expired.try_fold(0, |moved, expired| sink(expired).map(|()| moved + 1))
    }

    /// Returns a future that waits for the next element to expire and takes it. It resolves to `None`
    /// once the queue is [closed](Self::close) and empty. It works with any runtime.
    ///
    /// Any number of tasks may await, together with threads that block. Dropping the future takes nothing out of the
    /// queue, so it may lose a `select`. Like a future that waits for an async lock or channel, it must be polled or
    /// dropped once it has been woken: until then the other waiters of this queue may go on waiting.
    ///
    /// The first future that waits on the system clock starts a thread, one for the whole process,
    /// which wakes the tasks.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::DelayQueue;
    ///
    /// # smol::block_on(async {
    /// let queue = DelayQueue::new();
    /// queue.insert(Duration::from_millis(1), "tea")?;
    /// queue.close();
    /// while let Some(expired) = queue.next().await {
    ///     assert_eq!(expired.element, "tea");
    /// }
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// # }).unwrap();
    /// ```
    pub fn next(&self) -> NextExpired<'_, T> {
        NextExpired { queue: self, waiter: AsyncWaiter::new() }
    }

    /// Returns a stream of the elements as they expire; it ends when the queue is closed and empty. With the feature
    /// `stream` it is a `futures_core::Stream`; without it, it has [`next`](ExpirationStream::next). Otherwise as
    /// [`next`](Self::next).
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::DelayQueue;
    ///
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    /// # runtime.block_on(async {
    /// let queue: DelayQueue<u64> = (1..=3).map(|n| (Duration::from_millis(n), n)).collect();
    /// queue.close();
    /// let (mut stream, mut numbers) = (queue.stream(), Vec::new());
    /// while let Some(expired) = stream.next().await {
    ///     numbers.push(expired.element);
    /// }
    /// assert_eq!(numbers, [1, 2, 3]);
    /// # });
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn stream(&self) -> ExpirationStream<'_, T> {
        ExpirationStream(self.next())
    }

    fn take_by(&self, limit: Timestamp) -> Option<Expired<T>> {
        self.queue
            .take_until_by(Parker::current, |_| Some(limit))
            .map(|(entry, _)| self.expired(entry))
    }

    fn take_by_unless(&self, limit: Timestamp, token: &CancellationToken) -> Option<Expired<T>> {
        let parker = Parker::current();
        // From here on a cancellation of the token wakes this thread, which then reads its limit again.
        let mut places = Places::default();
        let is_raised = token.poll_raised(&mut places, parker.waker()).is_some();
        let limit = |_| Some(if token.is_cancelled() { Timestamp::PAST } else { limit });
        // With this very parker: a thread that is being torn down would get another one.
        let taken = if is_raised { None } else { self.queue.take_until_by(|| &*parker, limit) };
        token.forget(&mut places);
        taken.map(|(entry, _)| self.expired(entry))
    }

    #[inline]
    pub(super) fn expired(&self, entry: QueueEntry<T>) -> Expired<T> {
        let key = Key::new(self.id, Ticket::without_slot(entry.sequence));
        Expired { element: entry.element, key, deadline: self.clock.shown_at(entry.deadline) }
    }
}

/// A future of the next element to expire. See [`DelayQueue::next`].
#[must_use = "it takes nothing unless it is awaited"]
pub struct NextExpired<'a, T> {
    queue: &'a DelayQueue<T>,
    waiter: AsyncWaiter<WaiterAlarm>,
}

impl<T> Future for NextExpired<'_, T> {
    type Output = Option<Expired<T>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Expired<T>>> {
        let Self { queue, waiter } = &mut *self;
        let set_alarm = |deadline, waker| WaiterAlarm::set(&queue.clock, deadline, waker);
        let taken = queue.queue.poll_take(waiter, context.waker(), set_alarm);
        taken.map(|entry| entry.map(|entry| queue.expired(entry)))
    }
}

impl<T> Drop for NextExpired<'_, T> {
    fn drop(&mut self) {
        self.queue.queue.cancel_wait(&mut self.waiter);
    }
}

impl<T> fmt::Debug for NextExpired<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NextExpired").field("queue", self.queue).finish()
    }
}

/// A stream of the elements as they expire. See [`DelayQueue::stream`].
#[must_use = "it takes nothing unless it is polled"]
pub struct ExpirationStream<'a, T>(NextExpired<'a, T>);

impl<T> ExpirationStream<'_, T> {
    /// Waits for the next element to expire and takes it. Returns `None` once the queue is closed and
    /// empty. Dropping the future takes nothing out of the queue.
    pub async fn next(&mut self) -> Option<Expired<T>> {
        (&mut self.0).await
    }
}

#[cfg(feature = "stream")]
#[cfg_attr(docsrs, doc(cfg(feature = "stream")))]
impl<T> futures_core::Stream for ExpirationStream<'_, T> {
    type Item = Expired<T>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Expired<T>>> {
        Pin::new(&mut self.0).poll(context)
    }
}

#[cfg(feature = "stream")]
#[cfg_attr(docsrs, doc(cfg(feature = "stream")))]
impl<T> futures_core::FusedStream for ExpirationStream<'_, T> {
    fn is_terminated(&self) -> bool {
        self.0.queue.is_finished()
    }
}

impl<T> fmt::Debug for ExpirationStream<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExpirationStream").field("queue", self.0.queue).finish()
    }
}

/// The guard of an alarm that has been set. Dropping the guard cancels the alarm. See the [module](self).
struct WaiterAlarm {
    clock: Clock,
    id: PlaceId,
}

impl WaiterAlarm {
    /// Sets an alarm that calls `waker` at `deadline`. If the alarm thread cannot start, calls `waker` now and returns
    /// `None`.
    fn set(clock: &Clock, deadline: Timestamp, waker: Waker) -> Option<Self> {
        let id = match clock.manual() {
            Some(manual) => manual.set_alarm(deadline, waker),
            None => {
                SystemAlarms::get().set(clock, deadline, waker).map_err(|it| wake_all([it])).ok()?
            }
        };
        Some(Self { clock: clock.clone(), id })
    }
}

impl Drop for WaiterAlarm {
    fn drop(&mut self) {
        let waker = match self.clock.manual() {
            Some(manual) => manual.call_off(self.id),
            None => SystemAlarms::get().list.lock().remove(self.id),
        };
        discard(waker);
    }
}

/// The alarms on the system clock, all served by one thread.
struct SystemAlarms {
    clock: Clock,
    list: Watched<Wakers>,
}

impl SystemAlarms {
    fn get() -> &'static Self {
        static ALARMS: OnceLock<SystemAlarms> = OnceLock::new();
        ALARMS.get_or_init(|| Self { clock: Clock::system(), list: Watched::default() })
    }

    /// Sets an alarm for `deadline`, a timestamp of `clock`. The first alarm starts the thread. Returns the waker if
    /// the thread cannot start.
    fn set(&self, clock: &Clock, deadline: Timestamp, waker: Waker) -> Result<PlaceId, Waker> {
        let deadline = self.clock.deadline_of(clock.instant_of(deadline));
        let mut list = self.list.lock();
        if list.was_never_used() {
            let work: ThreadBody = Box::new(|| Self::get().wake_when_due());
            if thread::Builder::new().name("punctual-alarm".into()).spawn(work).is_err() {
                return Err(waker);
            }
        }
        let is_nearer = deadline < list.first();
        let id = list.add(deadline, waker);
        if is_nearer {
            list.wake_one();
        }
        Ok(id)
    }

    fn wake_when_due(&self) {
        set_timer_slack(Duration::from_nanos(1));
        let mut place = Place::default();
        loop {
            let first = self.list.lock().first();
            wait::block_until(&self.clock, first, |waker| {
                let is_nearer = |list: &mut Wakers| (list.first() < first).then_some(());
                self.list.poll(&mut place, waker, is_nearer)
            });
            let now = self.clock.read();
            let due = self.list.lock().take_due(now);
            wake_all(due);
        }
    }
}
