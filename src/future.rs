//! The future: the caller's half of a task.
//!
//! Through it the caller waits for the result, by blocking or by awaiting; both use the same code
//! ([`wait`](crate::wait)). The future uses the pool to read the clock, to detect a deadlock before the caller waits,
//! and to move or cancel the task. So it keeps the pool in memory, and still works when it outlives its executor. A
//! task has at most one [`ScheduledFuture<T>`], which can take the result. A [`TaskHandle`] cannot take the result, so
//! the handle needs no `T` and can be cloned.

mod task_handle;

use std::{
    fmt,
    future::Future,
    marker::PhantomData,
    ops::Deref,
    pin::Pin,
    task::{Context, Poll, ready},
};

pub use self::task_handle::TaskHandle;
use self::task_handle::{CANCELS, GIVES_UP, SIGNALS};
use crate::{Limit, TaskError, task::is_result};

/// The future result of a task. Java's `ScheduledFuture`.
///
/// * Wait: [`join`](Self::join), [`join_within`](Self::join_within), [`try_join`](Self::try_join), `.await`.
///
/// The [`TaskHandle`] to which it dereferences does everything else:
///
/// * Look: [`is_done`](TaskHandle::is_done), [`state`](TaskHandle::state), [`delay`](TaskHandle::delay).
/// * Control: [`reschedule`](TaskHandle::reschedule), [`run_within`](TaskHandle::run_within),
///   [`run_now`](TaskHandle::run_now), [`set_trigger`](TaskHandle::set_trigger), [`pause`](TaskHandle::pause),
///   [`resume`](TaskHandle::resume).
/// * Cancel: [`cancel`](TaskHandle::cancel), [`cancel_and_signal`](TaskHandle::cancel_and_signal),
///   [`cancel_and_wait`](TaskHandle::cancel_and_wait).
///
/// **Dropping it detaches the task**: the task still runs, as in Java, std and tokio, and its result is dropped as soon
/// as it is there. After [`cancel_on_drop`](Self::cancel_on_drop), the drop cancels the task.
///
/// The result is moved out, so it can be taken once: every further call returns [`TaskError::ResultTaken`]. Return an
/// `Arc` from the task if several callers need the result.
///
/// It is a [`Future`] that needs no runtime and can be awaited on any.
///
/// # A result that is an `Err`
///
/// The `Err` of a closure that runs once is its result, and the task has completed. An `Err` that no call can take any
/// more, because the future was dropped or the task was cancelled while it ran, is reported like a panic: to the
/// [failure handler](crate::Builder::failure_handler), and as an error event. If nothing receives the report, one line
/// on standard error says so, unless the task was cancelled. The report has the text of the error if the closure
/// returns `Result<(), E>` with an [`io::Error`](std::io::Error), a `Box<dyn Error + Send + Sync>`, a `String` or a
/// `&str`, and the name of the type otherwise.
///
/// No future can return the `Err` of a run that [repeats](crate::Handle::repeat) or is [retried](crate::Handle::retry):
/// that run has failed, and is reported at once.
///
/// # Example
///
/// ```
/// use std::time::Duration;
/// use punctual::ScheduledThreadPoolExecutor;
///
/// let executor = ScheduledThreadPoolExecutor::new(1);
/// let soon = executor.schedule(Duration::from_millis(1), || 7)?;
/// assert_eq!(soon.join()?, 7);
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[doc(alias("Future", "FutureTask", "JoinHandle", "Promise"))]
pub struct ScheduledFuture<T> {
    pub(crate) handle: TaskHandle,
    result: PhantomData<fn() -> T>,
}

impl<T: 'static> ScheduledFuture<T> {
    /// Blocks until the task has ended, and takes its result. Java: `get`.
    ///
    /// On a manual clock [another thread has to move it](crate::ManualClock#when-it-blocks). The captures of a task
    /// that has run have been dropped when this returns. If the task was cancelled, the thread that cancelled it, or
    /// the worker that is still running it, drops them, and may not have done so yet.
    ///
    /// ```
    /// use punctual::{ScheduledThreadPoolExecutor, TaskError};
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let answer = executor.submit(|| 6 * 7)?;
    /// assert_eq!(answer.join()?, 42);
    /// assert!(matches!(answer.join(), Err(TaskError::ResultTaken)));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// * [`TaskError::Failed`] or [`TaskError::Cancelled`], depending on how the task ended.
    /// * [`TaskError::ResultTaken`] if the result has been taken before.
    /// * [`TaskError::WouldDeadlock`], at once, if this is called by the task itself, or by the last worker that is not
    ///   waiting, when no other can be started. A wait that can end without a worker is not refused: for a task with a
    ///   [time limit](crate::TaskBuilder::timeout), or for one that was [kept](crate::RejectedTask::keep) and may be
    ///   run elsewhere. A refused wait takes nothing.
    #[doc(alias("get", "wait", "block_on"))]
    #[inline]
    pub fn join(&self) -> Result<T, TaskError> {
        self.try_join().unwrap_or_else(|| self.wait_and_join())
    }

    #[inline(never)]
    fn wait_and_join(&self) -> Result<T, TaskError> {
        self.handle.wait().map_err(|_| TaskError::WouldDeadlock)?;
        self.try_join().unwrap_or(Err(TaskError::ResultTaken))
    }

    /// Blocks until the task has ended, or until `limit` is reached, and takes the result. Returns `None` if the task
    /// has not ended by then; it goes on. Java: `get(timeout, unit)`, and `get` in a thread that may be interrupted.
    /// [`Limit`] has an example.
    ///
    /// # Errors
    ///
    /// Inside the `Some`: as [`join`](Self::join), but never [`TaskError::WouldDeadlock`], because the wait can end
    /// without the task.
    #[doc(alias("recv_timeout", "wait_timeout"))]
    pub fn join_within(&self, limit: impl Into<Limit>) -> Option<Result<T, TaskError>> {
        if self.handle.wait_within(limit) { self.try_join() } else { None }
    }

    /// Takes the result if the task has ended; returns `None` if not. Does not block. Java: `resultNow`,
    /// `exceptionNow`.
    ///
    /// # Errors
    ///
    /// Inside the `Some`: as [`join`](Self::join), but never [`TaskError::WouldDeadlock`].
    #[doc(alias("resultNow", "exceptionNow", "try_recv", "now_or_never"))]
    pub fn try_join(&self) -> Option<Result<T, TaskError>> {
        self.handle.task().take_result()
    }
}

impl<T> ScheduledFuture<T> {
    /// Makes the future of a task. `T` is the type of the task's result.
    #[inline]
    pub(crate) fn new(mut handle: TaskHandle) -> Self {
        if is_result::<T>() {
            handle.set_at_drop(GIVES_UP, true);
        }
        Self { handle, result: PhantomData }
    }

    /// Blocks until the task has ended, and does not take the result. Several threads may wait for one future at once.
    /// On a manual clock [another thread has to move it](crate::ManualClock#when-it-blocks).
    ///
    /// # Errors
    ///
    /// [`TaskError::WouldDeadlock`], as [`join`](Self::join).
    pub fn wait(&self) -> Result<(), TaskError> {
        self.handle.wait().map_err(|_| TaskError::WouldDeadlock)
    }

    /// Polls for the end of the task without taking the result. As when the future is awaited, only the waker of the
    /// last poll is called.
    pub fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.handle.poll_awaited(context.waker()) { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Returns a handle that can control and cancel the task but cannot take its result.
    #[doc(alias = "abort_handle")]
    #[must_use]
    pub fn task_handle(&self) -> TaskHandle {
        self.handle.clone()
    }

    /// Returns this future, which from now on cancels the task when it is dropped. Java has no such guard.
    ///
    /// The drop of such a future also drops what the closure owns. If that is the guard of another task, whose closure
    /// owns a third, the drops nest: five hundred guards in a row fit on a stack of 2 MiB, and a thousand may overflow
    /// it. So may a thousand results, each of which owns the future of the task before. A future that
    /// [signals](Self::cancel_and_signal_on_drop) already goes on doing so.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let guard = executor.schedule(Duration::from_secs(60), || "too late")?.cancel_on_drop();
    /// assert_eq!(executor.pending_count(), 1);
    /// drop(guard);
    /// assert_eq!(executor.pending_count(), 0);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias("abort_on_drop", "AbortOnDropHandle", "DropGuard"))]
    #[must_use = "the task is cancelled at once if the future is not kept"]
    pub fn cancel_on_drop(mut self) -> Self {
        self.handle.set_at_drop(CANCELS, true);
        self
    }

    /// Returns this future, which from now on [cancels and signals](TaskHandle::cancel_and_signal) the task when it is
    /// dropped: a running body is asked to stop.
    #[must_use = "the task is cancelled at once if the future is not kept"]
    pub fn cancel_and_signal_on_drop(mut self) -> Self {
        self.handle.set_at_drop(CANCELS | SIGNALS, true);
        self
    }

    /// Returns this future, which no longer cancels the task when it is dropped.
    #[must_use]
    pub fn detach(mut self) -> Self {
        self.handle.set_at_drop(CANCELS | SIGNALS, false);
        self
    }
}

impl<T> Deref for ScheduledFuture<T> {
    type Target = TaskHandle;

    #[inline]
    fn deref(&self) -> &TaskHandle {
        &self.handle
    }
}

impl<T: 'static> Future for ScheduledFuture<T> {
    type Output = Result<T, TaskError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        ready!(self.poll_end(context));
        self.try_join().map_or(Poll::Pending, Poll::Ready)
    }
}

impl<T> fmt::Debug for ScheduledFuture<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.handle.describe(f, "ScheduledFuture")
    }
}
