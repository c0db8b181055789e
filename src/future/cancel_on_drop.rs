//! A guard that cancels its task when it is dropped.

use std::{
    fmt,
    future::Future,
    ops::Deref,
    pin::Pin,
    task::{Context, Poll},
};

use super::ScheduledFuture;
use crate::TaskError;

/// A future that cancels its task when it is dropped; from [`ScheduledFuture::cancel_on_drop`] or
/// [`ScheduledFuture::cancel_and_signal_on_drop`]. It dereferences to the future, and can be awaited
/// in its place.
#[doc(alias("AbortOnDropHandle", "DropGuard"))]
#[must_use = "the task is cancelled at once if the guard is not kept"]
pub struct CancelOnDrop<T> {
    /// `None` once detached.
    pub(super) future: Option<ScheduledFuture<T>>,
    /// True if a running body is asked to stop as well.
    pub(super) signals: bool,
}

impl<T> CancelOnDrop<T> {
    /// Returns the future, which no longer cancels when it is dropped.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let guard = executor.schedule(Duration::from_secs(60), || ())?.cancel_on_drop();
    /// let future = guard.detach();
    /// drop(future);
    /// assert_eq!(executor.pending_count(), 1);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn detach(mut self) -> ScheduledFuture<T> {
        match self.future.take() {
            Some(future) => future,
            None => unreachable!("only this call takes the future, and it takes the guard too"),
        }
    }
}

impl<T> Deref for CancelOnDrop<T> {
    type Target = ScheduledFuture<T>;

    fn deref(&self) -> &ScheduledFuture<T> {
        match &self.future {
            Some(future) => future,
            None => unreachable!("the future is there until the guard is taken"),
        }
    }
}

impl<T: 'static> Future for CancelOnDrop<T> {
    type Output = Result<T, TaskError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.future {
            Some(future) => Pin::new(future).poll(context),
            None => unreachable!("the future is there until the guard is taken"),
        }
    }
}

impl<T> Drop for CancelOnDrop<T> {
    fn drop(&mut self) {
        match &self.future {
            Some(future) if self.signals => _ = future.cancel_and_signal(),
            Some(future) => _ = future.cancel(),
            None => {}
        }
    }
}

impl<T> fmt::Debug for CancelOnDrop<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CancelOnDrop").field(&self.future).finish()
    }
}
