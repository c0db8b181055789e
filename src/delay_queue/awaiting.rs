//! Awaiting what expires, on any runtime.
//!
//! Each of these is one taker like a thread (see `queue`), with a waker of its own. Between two
//! polls it has a place among those who sleep, which it gives up when it is dropped: if it had
//! been woken for an element, another is woken in its stead.

use std::{
    fmt,
    future::{Future, poll_fn},
    ops::Deref,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use super::{DelayQueue, Expired, alarm::Alarm};
use crate::queue::AsyncWaiter;

impl<T> DelayQueue<T> {
    /// A future of the next element that expires, which takes it; of `None` once the queue is
    /// [closed](Self::close) and empty. It works with any runtime: the queue wakes it.
    ///
    /// Any number of tasks may await, together with threads that block. Dropping the future
    /// takes nothing out of the queue, so it may lose a `select`. Like one that waits for an
    /// async lock or channel it must be polled, or dropped, once it has been woken: until then
    /// those who wait with it may wait, too.
    ///
    /// The first that awaits on the system's clock starts one thread for the whole process, which
    /// does the waking.
    ///
    /// ```
    /// # fn block_on<F: std::future::Future>(future: F) -> F::Output {
    /// #     let executor = punctual::ScheduledThreadPoolExecutor::new(1);
    /// #     struct Unpark(std::thread::Thread);
    /// #     impl std::task::Wake for Unpark { fn wake(self: std::sync::Arc<Self>) { self.0.unpark(); } }
    /// #     let waker = std::sync::Arc::new(Unpark(std::thread::current())).into();
    /// #     let mut context = std::task::Context::from_waker(&waker);
    /// #     let mut future = std::pin::pin!(future);
    /// #     loop {
    /// #         match future.as_mut().poll(&mut context) {
    /// #             std::task::Poll::Ready(output) => return output,
    /// #             std::task::Poll::Pending => std::thread::park(),
    /// #         }
    /// #     }
    /// # }
    /// use std::time::Duration;
    /// use punctual::DelayQueue;
    ///
    /// # block_on(async {
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
        NextExpired { taker: Taker { queue: Shared::Lent(self), waiter: AsyncWaiter::new() } }
    }

    /// A stream of what expires, which ends when the queue is closed and empty. It is a
    /// `futures_core::Stream` with the feature `stream`; without it there is
    /// [`next`](ExpirationStream::next). Otherwise as [`next`](Self::next).
    pub fn stream(&self) -> ExpirationStream<'_, T> {
        ExpirationStream { taker: Taker { queue: Shared::Lent(self), waiter: AsyncWaiter::new() } }
    }

    /// The same, but it has its own share of the queue, and so may go where it likes.
    pub fn into_stream(self: Arc<Self>) -> ExpirationStream<'static, T> {
        ExpirationStream { taker: Taker { queue: Shared::Owned(self), waiter: AsyncWaiter::new() } }
    }
}

/// One who takes by polling.
struct Taker<'a, T> {
    queue: Shared<'a, T>,
    waiter: AsyncWaiter<Alarm>,
}

enum Shared<'a, T> {
    Lent(&'a DelayQueue<T>),
    Owned(Arc<DelayQueue<T>>),
}

impl<T> Deref for Shared<'_, T> {
    type Target = DelayQueue<T>;

    fn deref(&self) -> &DelayQueue<T> {
        match self {
            Self::Lent(queue) => queue,
            Self::Owned(queue) => queue,
        }
    }
}

impl<T> Taker<'_, T> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Expired<T>>> {
        let Self { queue, waiter } = self;
        let set_alarm = |deadline, waker| Alarm::set(&queue.clock, deadline, waker);
        let taken = queue.queue.poll_take(waiter, context.waker(), set_alarm);
        taken.map(|entry| entry.map(|entry| queue.expired(entry)))
    }
}

impl<T> Drop for Taker<'_, T> {
    fn drop(&mut self) {
        let Self { queue, waiter } = self;
        queue.queue.cancel_wait(waiter);
    }
}

/// The next element that expires: see [`DelayQueue::next`].
#[must_use = "it takes nothing unless it is awaited"]
pub struct NextExpired<'a, T> {
    taker: Taker<'a, T>,
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

/// What expires, for a task that awaits it: see [`DelayQueue::stream`].
#[must_use = "it takes nothing unless it is polled"]
pub struct ExpirationStream<'a, T> {
    taker: Taker<'a, T>,
}

impl<T> ExpirationStream<'_, T> {
    /// The next element that expires; `None` once the queue is closed and empty. Dropping the
    /// future takes nothing.
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
