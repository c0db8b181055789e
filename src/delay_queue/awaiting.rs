//! Awaiting the elements that expire, on any runtime.
//!
//! Each future and each stream is a waiter like a thread (`queue/waiting.rs`), with a waker of its own.
//!
//! # The alarm
//!
//! A thread that waits for an element sleeps with a time limit. A task that awaits one has only a
//! waker, which has to be woken in time: by a [`WaiterAlarm`]. Of all tasks that await one queue at most
//! two are armed, the leader and its deputy, so there are few alarms however many tasks wait.
//!
//! * On the system's clock all alarms of the process are in one queue, and one thread takes them
//!   from it and wakes their wakers. The thread is started with the first alarm ([`LazyThread`]),
//!   sleeps while there is none, and never ends. The queue is one of this crate's, so it copes with
//!   alarms that are nearer than the first one and with alarms that are cancelled.
//! * A manual clock keeps its alarms itself, and wakes the wakers when it is moved.
//!
//! If the thread cannot be started, the waker is woken at once: the task polls, finds nothing, sets
//! the next alarm and so tries again. That costs a core, but no wake-up is late or lost.
//!
//! A waker is user code: it is woken through `unwind`, outside all locks. A waker that blocks delays
//! all alarms of the process, as it would block the thread of any runtime.

use std::{
    fmt,
    future::{Future, poll_fn},
    ops::Deref,
    pin::Pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use super::{DelayQueue, Expired};
use crate::{
    entry::Ticket,
    lazy_thread::LazyThread,
    queue::{AsyncWaiter, SingleQueue, Source},
    sync::{Arc, OnceLock, thread},
    time::{Clock, ManualClock, Timestamp, set_timer_slack},
    unwind::{discard, wake_all},
};

impl<T> DelayQueue<T> {
    /// Returns a future that waits for the next element to expire and takes it. It resolves to `None`
    /// once the queue is [closed](Self::close) and empty. It works with any runtime.
    ///
    /// Any number of tasks may await, together with threads that block. Dropping the future takes
    /// nothing out of the queue, so it may lose a `select`. Like a future that waits for an async
    /// lock or channel, it must be polled or dropped once it has been woken: until then the other
    /// waiters of this queue may go on waiting.
    ///
    /// The first future that waits on the system's clock starts a thread, one for the whole process,
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
        NextExpired { taker: AsyncTaker::new(QueueRef::Borrowed(self)) }
    }

    /// Returns a stream of the elements that expire, which ends when the queue is closed and empty.
    /// With the feature `stream` it is a `futures_core::Stream`; without it, it has
    /// [`next`](ExpirationStream::next). Otherwise as [`next`](Self::next).
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
        ExpirationStream { taker: AsyncTaker::new(QueueRef::Borrowed(self)) }
    }

    /// Like [`stream`](Self::stream), but the stream owns a reference to the queue, and so has no
    /// lifetime.
    pub fn into_stream(self: Arc<Self>) -> ExpirationStream<'static, T> {
        ExpirationStream { taker: AsyncTaker::new(QueueRef::Owned(self)) }
    }
}

/// A waiter of the queue that is polled.
struct AsyncTaker<'a, T> {
    queue: QueueRef<'a, T>,
    waiter: AsyncWaiter<WaiterAlarm>,
}

enum QueueRef<'a, T> {
    Borrowed(&'a DelayQueue<T>),
    Owned(Arc<DelayQueue<T>>),
}

impl<T> Deref for QueueRef<'_, T> {
    type Target = DelayQueue<T>;

    fn deref(&self) -> &DelayQueue<T> {
        match self {
            Self::Borrowed(queue) => queue,
            Self::Owned(queue) => queue,
        }
    }
}

impl<'a, T> AsyncTaker<'a, T> {
    fn new(queue: QueueRef<'a, T>) -> Self {
        Self { queue, waiter: AsyncWaiter::new() }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Expired<T>>> {
        let Self { queue, waiter } = self;
        let set_alarm = |deadline, waker| WaiterAlarm::set(&queue.clock, deadline, waker);
        let taken = queue.queue.poll_take(waiter, context.waker(), set_alarm);
        taken.map(|entry| entry.map(|entry| queue.expired(entry)))
    }
}

impl<T> Drop for AsyncTaker<'_, T> {
    fn drop(&mut self) {
        let Self { queue, waiter } = self;
        queue.queue.cancel_wait(waiter);
    }
}

/// A future of the next element that expires. See [`DelayQueue::next`].
#[must_use = "it takes nothing unless it is awaited"]
pub struct NextExpired<'a, T> {
    taker: AsyncTaker<'a, T>,
}

impl<T> Future for NextExpired<'_, T> {
    type Output = Option<Expired<T>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Expired<T>>> {
        self.taker.poll(context)
    }
}

impl<T> fmt::Debug for NextExpired<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NextExpired").field("queue", &*self.taker.queue).finish()
    }
}

/// A stream of the elements that expire. See [`DelayQueue::stream`].
#[must_use = "it takes nothing unless it is polled"]
pub struct ExpirationStream<'a, T> {
    taker: AsyncTaker<'a, T>,
}

impl<T> ExpirationStream<'_, T> {
    /// Waits for the next element to expire and takes it. Returns `None` once the queue is closed and
    /// empty. Dropping the future takes nothing out of the queue.
    pub async fn next(&mut self) -> Option<Expired<T>> {
        poll_fn(|context| self.taker.poll(context)).await
    }
}

#[cfg(feature = "stream")]
#[cfg_attr(docsrs, doc(cfg(feature = "stream")))]
impl<T> futures_core::Stream for ExpirationStream<'_, T> {
    type Item = Expired<T>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Expired<T>>> {
        self.taker.poll(context)
    }
}

#[cfg(feature = "stream")]
#[cfg_attr(docsrs, doc(cfg(feature = "stream")))]
impl<T> futures_core::FusedStream for ExpirationStream<'_, T> {
    fn is_terminated(&self) -> bool {
        self.taker.queue.is_finished()
    }
}

impl<T> fmt::Debug for ExpirationStream<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExpirationStream").field("queue", &*self.taker.queue).finish()
    }
}

/// An alarm that is set. Dropping it cancels it. See the [module](self).
enum WaiterAlarm {
    System(Ticket),
    Manual(ManualClock, u64),
    /// The waker was woken at once.
    Fired,
}

impl WaiterAlarm {
    /// Sets an alarm that wakes `waker` once `deadline` has come on `clock`.
    fn set(clock: &Clock, deadline: Timestamp, waker: Waker) -> Self {
        match clock.manual() {
            Some(manual) => Self::Manual(manual.clone(), manual.set_alarm(deadline, waker)),
            None => match SystemAlarms::get().set(clock, deadline, waker) {
                Ok(ticket) => Self::System(ticket),
                Err(waker) => {
                    wake_all([waker]);
                    Self::Fired
                }
            },
        }
    }
}

impl Drop for WaiterAlarm {
    fn drop(&mut self) {
        match self {
            Self::System(ticket) => SystemAlarms::get().cancel(*ticket),
            Self::Manual(clock, id) => clock.call_off(*id),
            Self::Fired => {}
        }
    }
}

/// The alarms of the system's clock, and their thread.
struct SystemAlarms {
    clock: Clock,
    thread: LazyThread<SingleQueue<Waker>>,
}

impl SystemAlarms {
    fn get() -> &'static Self {
        static ALARMS: OnceLock<SystemAlarms> = OnceLock::new();
        ALARMS.get_or_init(|| Self { clock: Clock::system(), thread: LazyThread::new() })
    }

    /// Sets an alarm for a deadline of `clock`. Returns the waker if there is no thread that would
    /// wake it.
    fn set(&self, clock: &Clock, deadline: Timestamp, waker: Waker) -> Result<Ticket, Waker> {
        let Some(queue) = self.running_queue() else { return Err(waker) };
        let instant = clock.instant_of(deadline);
        let deadline = instant.map_or(Timestamp::NEVER, |instant| self.clock.deadline_of(instant));
        queue.insert(deadline, waker).map_err(|refused| refused.element)
    }

    fn cancel(&self, ticket: Ticket) {
        discard(self.thread.queue().and_then(|queue| queue.remove(ticket)));
    }

    /// Returns the queue that the thread takes from, and starts the thread if it is not running. `None` if
    /// it cannot be started.
    fn running_queue(&self) -> Option<&Arc<SingleQueue<Waker>>> {
        if let Some(queue) = self.thread.running() {
            return Some(queue);
        }
        if let Some(starting) =
            self.thread.starting(|| SingleQueue::new(self.clock.clone(), usize::MAX))
        {
            let queue = starting.queue();
            let builder = thread::Builder::new().name("punctual-alarm".into());
            builder.spawn(move || wake_when_due(&queue)).ok()?;
            starting.succeed();
        }
        self.thread.running()
    }
}

/// The loop of the thread of the alarms.
fn wake_when_due(queue: &SingleQueue<Waker>) {
    set_timer_slack(Duration::from_nanos(1));
    while let Some((entry, _)) = queue.take() {
        wake_all([entry.element]);
    }
}
