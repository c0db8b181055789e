//! A future whose result goes through a closure on its way to the caller.

use std::{
    fmt,
    future::Future,
    ops::Deref,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use super::ScheduledFuture;
use crate::{Limit, TaskError, sync::Mutex};

/// The future of a task whose result a closure makes something else of; from [`ScheduledFuture::map`].
///
/// It can be joined and awaited, and dereferences to the future that it was made of, for everything else: to
/// look, to control and to cancel. The closure runs on the thread that takes the result, and once.
pub struct Mapped<T, F> {
    future: ScheduledFuture<T>,
    /// `None` once called.
    closure: Mutex<Option<F>>,
}

impl<T> ScheduledFuture<T> {
    /// Has the result go through a closure on its way to the caller that takes it. If the task has no result the closure is
    /// dropped uncalled. A panic of the closure is the caller's. Does not block. Java: `thenApply`, but on the thread of
    /// the caller; work for a worker belongs into the task.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let length = executor.submit(|| "punctual")?.map(str::len);
    /// assert_eq!(length.join()?, 8);
    ///
    /// let late = executor.schedule(Duration::from_secs(60), || 6)?.map(|six| six * 7);
    /// assert!(late.cancel());
    /// assert!(late.join().expect_err("it will not run").is_cancelled());
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias("thenApply", "CompletableFuture"))]
    pub fn map<F, U>(self, closure: F) -> Mapped<T, F>
    where
        F: FnOnce(T) -> U,
    {
        Mapped { future: self, closure: Mutex::new(Some(closure)) }
    }
}

impl<T: 'static, F> Mapped<T, F> {
    /// See [`ScheduledFuture::join`].
    ///
    /// # Errors
    ///
    /// As [`ScheduledFuture::join`].
    pub fn join<U>(&self) -> Result<U, TaskError>
    where
        F: FnOnce(T) -> U,
    {
        self.apply(self.future.join())
    }

    /// See [`ScheduledFuture::join_timeout`].
    ///
    /// # Errors
    ///
    /// As [`ScheduledFuture::join_timeout`].
    pub fn join_timeout<U>(&self, timeout: Duration) -> Option<Result<U, TaskError>>
    where
        F: FnOnce(T) -> U,
    {
        self.future.join_timeout(timeout).map(|result| self.apply(result))
    }

    /// See [`ScheduledFuture::join_within`].
    ///
    /// # Errors
    ///
    /// As [`ScheduledFuture::join_within`].
    pub fn join_within<U>(&self, limit: impl Into<Limit>) -> Option<Result<U, TaskError>>
    where
        F: FnOnce(T) -> U,
    {
        self.future.join_within(limit).map(|result| self.apply(result))
    }

    /// See [`ScheduledFuture::try_join`].
    ///
    /// # Errors
    ///
    /// As [`ScheduledFuture::try_join`].
    pub fn try_join<U>(&self) -> Option<Result<U, TaskError>>
    where
        F: FnOnce(T) -> U,
    {
        self.future.try_join().map(|result| self.apply(result))
    }

    /// As [`ScheduledFuture::map`]: both closures are called, one after the other.
    pub fn map<U, G, V>(self, then: G) -> Mapped<T, impl FnOnce(T) -> V + use<T, F, U, G, V>>
    where
        F: FnOnce(T) -> U,
        G: FnOnce(U) -> V,
    {
        let closure = self.closure.into_inner();
        let closure = closure.map(|closure| |result| then(closure(result)));
        Mapped { future: self.future, closure: Mutex::new(closure) }
    }

    /// Calls the closure with a result. User code: not under the lock.
    fn apply<U>(&self, result: Result<T, TaskError>) -> Result<U, TaskError>
    where
        F: FnOnce(T) -> U,
    {
        let result = result?;
        let closure = self.closure.lock().take();
        closure.map(|closure| closure(result)).ok_or(TaskError::ResultTaken)
    }
}

impl<T, F> Deref for Mapped<T, F> {
    type Target = ScheduledFuture<T>;

    fn deref(&self) -> &ScheduledFuture<T> {
        &self.future
    }
}

/// The closure is called by value, so nothing is pinned.
impl<T, F> Unpin for Mapped<T, F> {}

impl<T: 'static, U, F: FnOnce(T) -> U> Future for Mapped<T, F> {
    type Output = Result<U, TaskError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = Pin::new(&mut self.future).poll(context);
        polled.map(|result| self.apply(result))
    }
}

impl<T, F> fmt::Debug for Mapped<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Mapped").field(&self.future).finish()
    }
}
