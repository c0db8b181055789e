//! An answer that is to come: it can be awaited on any runtime, and waited for without one.
//!
//! The queue on PostgreSQL works on a thread of its own, and the callers are threads and tasks of any
//! kind. So an answer is a cell with room for one value, one waker and sleeping threads. The side that
//! answers holds a [`Promise`]; if it is dropped without an answer, because the queue's thread has ended,
//! the answer is the fallback that it was made with, so no caller waits for ever.
//!
//! One lock protects the cell. The value is put in and the waker is taken out in one step under it, and
//! the waker is called after it was released. A poll stores its waker under the same lock only if there
//! is no value yet, so either the poll sees the value or the promise sees the waker.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use parking_lot::{Condvar, Mutex};

use crate::QueueError;

/// The answer of a queue, which is to come. Dropping it cancels nothing: the queue retries until the request is done, or until
/// [`request_timeout`](crate::JobQueue::request_timeout) is over.
#[must_use = "the answer says whether it was done"]
pub struct QueueFuture<T> {
    cell: Arc<Cell<T>>,
}

struct Cell<T> {
    state: Mutex<State<T>>,
    answered: Condvar,
}

struct State<T> {
    value: Option<Result<T, QueueError>>,
    waker: Option<Waker>,
}

impl<T> QueueFuture<T> {
    pub(crate) fn ready(value: Result<T, QueueError>) -> Self {
        let (promise, ready) = Self::promised();
        promise.keep(value);
        ready
    }

    /// Makes an answer that is to come, and the promise of it.
    pub(crate) fn promised() -> (Promise<T>, Self) {
        let state = Mutex::new(State { value: None, waker: None });
        let cell = Arc::new(Cell { state, answered: Condvar::new() });
        (Promise { cell: Some(Arc::clone(&cell)) }, Self { cell })
    }

    /// Blocks until the answer is there, but for no longer than `timeout`, of real time. Does not need a
    /// runtime. On a thread of a runtime it blocks that thread: await it there.
    ///
    /// # Errors
    ///
    /// The answer's own, or [`TimedOut`](QueueError::TimedOut).
    pub fn wait(self, timeout: Duration) -> Result<T, QueueError> {
        let mut state = self.cell.state.lock();
        if state.value.is_none() {
            let no_value = |state: &mut State<T>| state.value.is_none();
            let _ = self.cell.answered.wait_while_for(&mut state, no_value, timeout);
        }
        state.value.take().unwrap_or(Err(QueueError::TimedOut { timeout }))
    }
}

impl<T> Future for QueueFuture<T> {
    type Output = Result<T, QueueError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // The clone and the drop of a waker are user code, so neither happens under the lock.
        let waker = context.waker().clone();
        let mut state = self.cell.state.lock();
        if let Some(value) = state.value.take() {
            return Poll::Ready(value);
        }
        let replaced = state.waker.replace(waker);
        drop(state);
        drop(replaced);
        Poll::Pending
    }
}

impl<T> fmt::Debug for QueueFuture<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_there = self.cell.state.lock().value.is_some();
        f.debug_struct("QueueFuture").field("is_there", &is_there).finish()
    }
}

pub(crate) struct Promise<T> {
    cell: Option<Arc<Cell<T>>>,
}

impl<T> Promise<T> {
    pub(crate) fn keep(mut self, value: Result<T, QueueError>) {
        self.answer(value);
    }

    /// Whether the answer can still be taken.
    pub(crate) fn is_awaited(&self) -> bool {
        self.cell.as_ref().is_some_and(|cell| Arc::strong_count(cell) > 1)
    }

    fn answer(&mut self, value: Result<T, QueueError>) {
        if let Some(cell) = self.cell.take() {
            let mut state = cell.state.lock();
            state.value = Some(value);
            let waker = state.waker.take();
            drop(state);
            cell.answered.notify_all();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

impl<T> Drop for Promise<T> {
    fn drop(&mut self) {
        self.answer(Err(QueueError::ShutDown));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_that_is_dropped_answers() {
        let (promise, reply) = QueueFuture::<()>::promised();
        drop(promise);
        assert!(matches!(reply.wait(Duration::MAX), Err(QueueError::ShutDown)));
    }

    #[test]
    fn a_wait_has_a_timeout() {
        let (promise, reply) = QueueFuture::<()>::promised();
        let error = reply.wait(Duration::from_millis(1)).expect_err("nobody answers");
        assert!(matches!(error, QueueError::TimedOut { .. }));
        promise.keep(Ok(()));
    }

    #[test]
    fn a_kept_promise_wakes_the_poll() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        struct Count(AtomicUsize);
        impl std::task::Wake for Count {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }
        let count = Arc::new(Count(AtomicUsize::new(0)));
        let waker = Arc::clone(&count).into();
        let mut context = Context::from_waker(&waker);
        let (promise, mut reply) = QueueFuture::promised();
        assert!(Pin::new(&mut reply).poll(&mut context).is_pending());
        promise.keep(Ok(7));
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
        assert!(matches!(Pin::new(&mut reply).poll(&mut context), Poll::Ready(Ok(7))));
    }
}
