//! The future: the caller's half of a task.
//!
//! It waits for the result, by blocking or by being awaited, with the same code ([`wait`](crate::wait)); it shows
//! the state of the task; and it cancels. It holds the task, and it holds the pool only to take the
//! task out of the queue: a future that outlives its executor still works, because nothing is left to
//! be taken out.
//!
//! It also controls a task that is alive ([`control`]).
//!
//! There are four types. [`ScheduledFuture<T>`] can take the result, and there is one for each task.
//! [`TaskHandle`] cannot take it, so it needs no `T` and can be cloned. [`CancelOnDrop`] is a
//! future that cancels its task when it is dropped, and [`Mapped`] one whose result goes through a closure.
//! All of them hold a [`TaskRef`], which does everything but take the result.

mod cancel_on_drop;
mod control;
mod mapped;
mod task_handle;
pub(crate) mod task_ref;

use std::{
    fmt,
    future::Future,
    marker::PhantomData,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use self::task_ref::TaskRef;
pub use self::{cancel_on_drop::CancelOnDrop, mapped::Mapped, task_handle::TaskHandle};
use crate::{
    FailedRun, Limit, TaskError, TaskId, TaskState, pool::Pool, sync::Arc, task::Task,
    time::Timestamp,
};

/// The future result of a task. Java's `ScheduledFuture`.
///
/// * Wait: [`join`](Self::join), [`join_timeout`](Self::join_timeout), `.await`; [`map`](Self::map) the result.
/// * Look: [`try_join`](Self::try_join), [`is_done`](Self::is_done), [`state`](Self::state),
///   [`delay`](Self::delay).
/// * Control: [`reschedule`](Self::reschedule), [`run_within`](Self::run_within),
///   [`run_now`](Self::run_now), [`set_trigger`](Self::set_trigger), [`pause`](Self::pause),
///   [`resume`](Self::resume).
/// * Cancel: [`cancel`](Self::cancel), [`cancel_and_signal`](Self::cancel_and_signal),
///   [`cancel_and_wait`](Self::cancel_and_wait).
///
/// **Dropping it detaches the task**: the task still runs, as in Java, std and tokio, and its result
/// is dropped as soon as it is there. [`cancel_on_drop`](Self::cancel_on_drop) makes a guard that
/// cancels.
///
/// The result is moved out, so it can be taken once: every further call returns
/// [`TaskError::ResultTaken`]. Return an `Arc` from the task if several callers need the result.
///
/// It is a [`Future`] that needs no runtime and can be awaited on any.
///
/// ```
/// use std::time::Duration;
/// use punctual::ScheduledThreadPoolExecutor;
///
/// let executor = ScheduledThreadPoolExecutor::new(1);
/// let soon = executor.schedule(Duration::from_millis(1), || 7)?;
/// let never = executor.schedule(Duration::MAX, || 8)?;
/// assert_eq!(soon.join()?, 7);
/// assert!(never.try_join().is_none());
/// assert!(never.cancel());
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[doc(alias = "Future")]
#[doc(alias = "FutureTask")]
#[doc(alias("JoinHandle", "Promise"))]
pub struct ScheduledFuture<T> {
    inner: TaskRef,
    result: PhantomData<fn() -> T>,
}

impl<T: 'static> ScheduledFuture<T> {
    /// Blocks until the task has ended, and takes its result. Java: `get`.
    ///
    /// On a manual clock [somebody has to move it](crate::ManualClock#when-it-blocks). The captures of
    /// a task that has run have been dropped when this returns. Those of a task that was cancelled are
    /// dropped by the thread that cancelled it, which may still be doing so.
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
    /// * [`TaskError::Failed`] or [`TaskError::Cancelled`], as the task ended.
    /// * [`TaskError::ResultTaken`] if the result has been taken before.
    /// * [`TaskError::WouldDeadlock`], at once, if this is called by the task itself, or by the last
    ///   worker that is not already waiting in a `join` for a task that has not ended, when no other
    ///   worker can be started. A wait that can end without any of the workers is not refused: for a
    ///   task with a [time limit](crate::TaskBuilder::timeout), or for one that was
    ///   [kept](crate::RejectedTask::keep) and may be run elsewhere. A refused wait takes nothing: the
    ///   future is as it was.
    #[doc(alias = "get")]
    #[doc(alias("wait", "block_on"))]
    #[inline]
    pub fn join(&self) -> Result<T, TaskError> {
        self.try_join().unwrap_or_else(|| self.wait_and_join())
    }

    #[inline(never)]
    fn wait_and_join(&self) -> Result<T, TaskError> {
        self.inner.join().map_err(|_| TaskError::WouldDeadlock)?;
        self.try_join().unwrap_or(Err(TaskError::ResultTaken))
    }

    /// Blocks until the task has ended, but no longer than `timeout`, and takes its result. Returns
    /// `None` if the task has not ended by then; it goes on. Java: `get(timeout, unit)`.
    ///
    /// On a manual clock [somebody has to move it](crate::ManualClock#when-it-blocks).
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let later = executor.schedule(Duration::from_secs(60), || "done")?;
    /// assert!(later.join_timeout(Duration::from_millis(1)).is_none());
    /// later.cancel();
    /// assert!(matches!(later.join_timeout(Duration::ZERO), Some(Err(error)) if error.is_cancelled()));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Inside the `Some`: as [`join`](Self::join), but never [`TaskError::WouldDeadlock`], because the
    /// wait can end without the task.
    #[doc(alias("recv_timeout", "wait_timeout"))]
    pub fn join_timeout(&self, timeout: Duration) -> Option<Result<T, TaskError>> {
        if self.inner.join_timeout(timeout) { self.try_join() } else { None }
    }

    /// Blocks until the task has ended, or until `limit` is reached, and takes the result. Returns
    /// `None` if the task has not ended by then; it goes on. Java: `get(timeout, unit)`, and `get` in a
    /// thread that may be interrupted. [`Limit`] has an example.
    ///
    /// # Errors
    ///
    /// Inside the `Some`: as [`join`](Self::join), but never [`TaskError::WouldDeadlock`], because the
    /// wait can end without the task.
    pub fn join_within(&self, limit: impl Into<Limit>) -> Option<Result<T, TaskError>> {
        let limit = limit.into();
        let deadline = limit.deadline(self.inner.clock());
        if self.ends_within(&limit, deadline) { self.try_join() } else { None }
    }

    /// Takes the result if the task has ended; returns `None` if not. Does not block. Java:
    /// `resultNow`, `exceptionNow`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let tea = executor.schedule(Duration::from_secs(60), || "tea")?;
    /// assert!(tea.try_join().is_none());
    /// clock.run_for(Duration::from_secs(60));
    /// assert_eq!(tea.try_join().transpose()?, Some("tea"));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Inside the `Some`: as [`join`](Self::join), but never [`TaskError::WouldDeadlock`].
    #[doc(alias = "resultNow")]
    #[doc(alias = "exceptionNow")]
    #[doc(alias("try_recv", "now_or_never"))]
    pub fn try_join(&self) -> Option<Result<T, TaskError>> {
        self.inner.task().take_result()
    }
}

impl<T> ScheduledFuture<T> {
    /// `T` is the type of the task's result.
    #[inline]
    pub(crate) fn new(inner: TaskRef) -> Self {
        Self { inner, result: PhantomData }
    }

    /// Blocks until the task has ended, and does not take the result. Several threads may wait for one
    /// future at once. On a manual clock
    /// [somebody has to move it](crate::ManualClock#when-it-blocks).
    ///
    /// # Errors
    ///
    /// [`TaskError::WouldDeadlock`], as [`join`](Self::join).
    pub fn wait(&self) -> Result<(), TaskError> {
        self.inner.wait().map_err(|_| TaskError::WouldDeadlock)
    }

    /// Returns `true` if the task has ended: completed, panicked or cancelled. Java: `isDone`.
    #[doc(alias = "isDone")]
    #[doc(alias = "is_finished")]
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.state().is_done()
    }

    /// Returns `true` if the task was cancelled. Java: `isCancelled`.
    #[doc(alias = "isCancelled")]
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.state() == TaskState::Cancelled
    }

    /// Returns the state of the task. Java: `state`.
    #[must_use]
    pub fn state(&self) -> TaskState {
        self.inner.state()
    }

    /// Returns how long it is until the next run: zero if it is due, `Duration::MAX` if it will never
    /// be as things are, as that of a [paused](Self::pause) task, and `None` if the task is running or has
    /// ended. Locks a part of the queue. Java:
    /// `getDelay`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor, TaskState};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let second = Duration::from_secs(1);
    /// let tea = executor.schedule(60 * second, || "tea")?;
    /// clock.run_for(20 * second);
    /// assert_eq!((tea.state(), tea.delay()), (TaskState::Scheduled, Some(40 * second)));
    /// clock.run_for(40 * second);
    /// assert_eq!((tea.state(), tea.delay()), (TaskState::Completed, None));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias = "getDelay")]
    #[must_use]
    pub fn delay(&self) -> Option<Duration> {
        self.inner.delay()
    }

    /// Returns the id of the task.
    #[must_use]
    pub fn id(&self) -> TaskId {
        self.inner.id()
    }

    /// Returns the name of the task, if it was given one.
    #[must_use]
    pub fn name(&self) -> Option<Arc<str>> {
        self.inner.task().name()
    }

    /// Ends the task as cancelled. Returns `true` if this call did, and `false` if the task had ended
    /// before. Java: `cancel(false)`.
    ///
    /// A waiting task is gone when this returns: it is out of the queue, in O(log n), and its closure
    /// and captures are dropped. A running task goes on to the end of its body, but its future is
    /// cancelled now, and a periodic task does not run again. Does not wait for the body.
    ///
    /// ```
    /// use std::{sync::Arc, time::Duration};
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let value = Arc::new(7);
    /// let captured = Arc::clone(&value);
    /// let late = executor.schedule(Duration::from_secs(60), move || *captured)?;
    /// assert!(late.cancel());
    /// assert_eq!((executor.pending_count(), Arc::strong_count(&value)), (0, 1));
    /// assert!(!late.cancel(), "it had ended before");
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias(
        "abort",
        "clearTimeout",
        "clear_timeout",
        "clearInterval",
        "clear_interval",
        "stop"
    ))]
    pub fn cancel(&self) -> bool {
        self.inner.cancel()
    }

    /// Ends the task as [`cancel`](Self::cancel) does, and raises the
    /// [token](crate::TaskContext::token) of a running task, to ask its body to stop. Java:
    /// `cancel(true)`.
    ///
    /// If the task was cancelled before and its body still runs, the token is raised as well, and the
    /// call returns `false`, because it did not end the task.
    ///
    /// [`CancellationToken`](crate::CancellationToken) has an example.
    #[doc(alias("abort", "interrupt", "stop"))]
    pub fn cancel_and_signal(&self) -> bool {
        self.inner.cancel_and_signal()
    }

    /// Returns a handle that can control and cancel the task but cannot take its result.
    #[doc(alias = "abort_handle")]
    #[must_use]
    pub fn task_handle(&self) -> TaskHandle {
        TaskHandle::new(self.inner.share_as_handle())
    }

    /// Returns the last run of a periodic task that failed, also after the task has ended. `None` if no
    /// run has failed, and for a one-shot task, whose panic is its result.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, FailurePolicy, ScheduledThreadPoolExecutor};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let (mut runs, second) = (0, Duration::from_secs(1));
    /// let (initial_delay, period) = (second, second);
    /// let poller = executor.task().on_failure(FailurePolicy::resume()).schedule_at_fixed_rate(
    ///     initial_delay,
    ///     period,
    ///     move || {
    ///         runs += 1;
    ///         assert!(runs != 2, "no connection");
    ///     },
    /// )?;
    /// clock.run_for(3 * second);
    /// let failed = poller.last_failure().expect("the second run failed");
    /// assert_eq!((failed.run_number(), failed.message()), (2, "no connection"));
    /// assert!(!poller.is_done());
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[must_use]
    pub fn last_failure(&self) -> Option<FailedRun> {
        self.inner.task().last_failure()
    }

    /// Turns the future into a guard that cancels the task when it is dropped.
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
    #[doc(alias = "abort_on_drop")]
    pub fn cancel_on_drop(self) -> CancelOnDrop<T> {
        CancelOnDrop { future: Some(self), signals: false }
    }

    /// Turns the future into a guard that [cancels and signals](Self::cancel_and_signal) the task when
    /// it is dropped: a running body is asked to stop.
    ///
    /// ```
    /// use std::{sync::mpsc, time::Duration};
    /// use punctual::{ScheduledThreadPoolExecutor, with_context};
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let (started, has_started) = mpsc::channel();
    /// let guard = executor.submit(with_context(move |run| {
    ///     started.send(()).ok();
    ///     run.token().wait(); // until it is asked to stop
    /// }))?;
    /// let guard = guard.cancel_and_signal_on_drop();
    /// has_started.recv()?;
    /// drop(guard);
    /// executor.close()?; // the body has been asked to stop, and does
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn cancel_and_signal_on_drop(self) -> CancelOnDrop<T> {
        CancelOnDrop { future: Some(self), signals: true }
    }

    /// Returns the task, for a wait for several tasks.
    pub(crate) fn shared_task(&self) -> Arc<Task> {
        self.inner.shared_task()
    }

    /// Returns the pool of the task.
    pub(crate) fn pool(&self) -> &Arc<Pool> {
        self.inner.pool()
    }

    /// See [`TaskRef::remove_from`].
    pub(crate) fn remove_from(&self, pool: &Arc<Pool>) -> bool {
        self.inner.remove_from(pool)
    }

    /// See [`TaskRef::ends_within`].
    pub(crate) fn ends_within(&self, limit: &Limit, deadline: Timestamp) -> bool {
        self.inner.ends_within(limit, deadline)
    }
}

impl<T: 'static> Future for ScheduledFuture<T> {
    type Output = Result<T, TaskError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if !self.inner.poll_awaited(context.waker()) {
            return Poll::Pending;
        }
        self.try_join().map_or(Poll::Pending, Poll::Ready)
    }
}

impl<T> fmt::Debug for ScheduledFuture<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe(f, "ScheduledFuture", self.id(), self.name(), self.state())
    }
}

fn describe(
    f: &mut fmt::Formatter<'_>,
    what: &str,
    id: TaskId,
    name: Option<Arc<str>>,
    state: TaskState,
) -> fmt::Result {
    let mut shown = f.debug_struct(what);
    shown.field("id", &format_args!("{id}"));
    if let Some(name) = name {
        shown.field("name", &name);
    }
    shown.field("state", &state).finish_non_exhaustive()
}
