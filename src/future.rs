//! The future: the caller's half of a task.
//!
//! It waits for the result, by blocking or by being awaited, which is the same code
//! ([`wait`]); it says where the task is; and it cancels. It holds the task, and
//! the pool only to take the task out of its queue: a future that outlives its executor still
//! works, it has nothing left to take out.
//!
//! Three types share the work. [`ScheduledFuture<T>`] is the one that can have the result, and
//! there is one for each task. [`CancelHandle`] cannot, so it needs no `T` and can be cloned.
//! [`CancelOnDrop`] is a future that cancels when it goes, for those who want that.

mod cancel;

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

pub use self::cancel::{CancelHandle, CancelOnDrop};
use crate::{
    CancelReason, CancellationToken, FailedRun, Panic, TaskError, TaskId, TaskState, WouldDeadlock,
    pool::{JoinGuard, Pool, PoolRef},
    queue::Ticket,
    sync::{
        Arc, Parker,
        atomic::{AtomicBool, Ordering},
    },
    task::{Claim, Drops, Runnable},
    time::Timestamp,
    unwind::{Contained, discard_with},
    wait,
};

/// The result of a task that is to come. Java's `ScheduledFuture`.
///
/// * Wait: [`join`](Self::join), [`join_timeout`](Self::join_timeout), `.await`.
/// * Look: [`try_join`](Self::try_join), [`is_done`](Self::is_done), [`state`](Self::state),
///   [`delay`](Self::delay).
/// * Cancel: [`cancel`](Self::cancel), [`cancel_and_signal`](Self::cancel_and_signal).
///
/// **Dropping it detaches**: the task runs all the same, as in Java, std and tokio, and its
/// result is dropped as soon as it is there. [`cancel_on_drop`](Self::cancel_on_drop) makes a
/// guard that cancels.
///
/// The result is moved out, so it is there once: after it has been taken every further call says
/// [`TaskError::ResultTaken`]. Share an `Arc` if several want it.
///
/// It is a [`Future`] and needs no runtime; it can be awaited on any.
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
pub struct ScheduledFuture<T> {
    task: Contained<Arc<dyn Claim<T>>>,
    pool_ref: PoolRef,
    id: u64,
    /// Where the queue keeps the task, if it has not been queued again.
    slot: u32,
    /// Whether a task awaits this future.
    is_awaited: bool,
    /// Whether there are handles that would keep the result.
    has_handles: AtomicBool,
}

impl<T> ScheduledFuture<T> {
    pub(crate) fn new(task: Arc<dyn Claim<T>>, pool_ref: PoolRef, ticket: Ticket) -> Self {
        let has_handles = AtomicBool::new(false);
        let Ticket { slot, sequence: id } = ticket;
        Self { task: Contained::new(task), pool_ref, id, slot, is_awaited: false, has_handles }
    }

    /// Blocks until the task has ended, and gives its result. Java: `get`.
    /// On a manual clock [somebody has to move it](crate::ManualClock#when-it-blocks).
    ///
    /// The captures of a task that has run are dropped by then. Those of one that was cancelled are
    /// dropped by whoever cancelled it, perhaps still at this moment.
    ///
    /// # Errors
    ///
    /// [`TaskError::Panicked`] or [`TaskError::Cancelled`], as the task ended;
    /// [`TaskError::ResultTaken`] if the result was taken before; [`TaskError::WouldDeadlock`],
    /// at once, if this is called by the task itself, or by the last worker that does not
    /// already wait in a `join` for a task that has not ended, and no other can be started. A wait that ends without any of the
    /// workers is not refused: for a task with a [time limit](crate::TaskBuilder::timeout), or for
    /// one that was [kept](crate::RejectedTask::keep) and may be run elsewhere. A refused wait has
    /// taken nothing: the future is as it was.
    #[doc(alias = "get")]
    pub fn join(&self) -> Result<T, TaskError> {
        if let Some(result) = self.task.claim() {
            return result;
        }
        let Ok(_waiting) = self.enter_join() else {
            return Err(TaskError::WouldDeadlock);
        };
        loop {
            if let Some(result) = self.block_until(Timestamp::NEVER) {
                return result;
            }
        }
    }

    /// Blocks until the task has ended, but no longer than `timeout`. `None` if it has not ended
    /// by then; the task goes on. Java: `get(timeout, unit)`.
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
    /// Within: as [`join`](Self::join), but a wait that has an end is not a deadlock.
    pub fn join_timeout(&self, timeout: Duration) -> Option<Result<T, TaskError>> {
        let deadline = self.pool_ref.pool().clock().read().after(timeout);
        self.unregistered(self.block_until(deadline))
    }

    /// Blocks until the task has ended, or until `token` is raised. `None` if the task has not
    /// ended and the token is raised; the task goes on. Java: `get` in a thread that may be interrupted.
    ///
    /// # Errors
    ///
    /// Within: as [`join`](Self::join), but a wait that has an end is not a deadlock.
    pub fn join_unless(&self, token: &CancellationToken) -> Option<Result<T, TaskError>> {
        let answer = wait::block_on(self.pool_ref.pool().clock(), |waker| {
            // The task first: a result that is there is given, whatever the token says.
            let result = self.poll_join(waker).map(Some);
            result.or_else(|| token.poll(waker).map(|()| None))
        });
        token.forget(Parker::current().waker());
        self.unregistered(answer)
    }

    /// The result if the task has ended; does not wait. Java: `resultNow`, `exceptionNow`.
    ///
    /// # Errors
    ///
    /// Within: as [`join`](Self::join).
    #[doc(alias = "resultNow")]
    #[doc(alias = "exceptionNow")]
    pub fn try_join(&self) -> Option<Result<T, TaskError>> {
        self.task.claim()
    }

    /// Blocks until the task has ended, and leaves the result where it is. Several threads may
    /// wait for one future at once. On a manual clock
    /// [somebody has to move it](crate::ManualClock#when-it-blocks).
    ///
    /// # Errors
    ///
    /// [`TaskError::WouldDeadlock`], as [`join`](Self::join).
    pub fn wait(&self) -> Result<(), TaskError> {
        let Ok(_waiting) = self.enter_join() else {
            return Err(TaskError::WouldDeadlock);
        };
        wait::block_on(self.pool_ref.pool().clock(), |waker| {
            self.task.poll_done(waker).then_some(())
        });
        Ok(())
    }

    /// Whether the task has ended: completed, panicked or cancelled. Java: `isDone`.
    #[doc(alias = "isDone")]
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.state().is_done()
    }

    /// Whether the task was cancelled. Java: `isCancelled`.
    #[doc(alias = "isCancelled")]
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.state() == TaskState::Cancelled
    }

    /// Where the task is. Java: `state`.
    #[must_use]
    pub fn state(&self) -> TaskState {
        self.task.state()
    }

    /// How long until the next run: zero if it is due, `Duration::MAX` if it is never. `None` if
    /// the task runs or has ended. Locks the queue. Java: `getDelay`.
    #[doc(alias = "getDelay")]
    #[must_use]
    pub fn delay(&self) -> Option<Duration> {
        let deadline = self.pool_ref.pool().deadline(&**self.task, self.ticket())?;
        Some(deadline.delay_at(self.pool_ref.pool().clock().read()))
    }

    /// The number of the task.
    #[must_use]
    pub fn id(&self) -> TaskId {
        TaskId(self.id)
    }

    /// The name of the task, if it was given one.
    #[must_use]
    pub fn name(&self) -> Option<Arc<str>> {
        self.task.name()
    }

    /// Ends the task as cancelled, unless it has ended; returns whether this call did. A task that waits
    /// is gone when this returns: out of the queue, closure and captures dropped, in O(log n). A
    /// task that runs goes on to the end of its body, but its future is cancelled now, and a
    /// periodic one does not run again. Does not wait. Java: `cancel(false)`.
    pub fn cancel(&self) -> bool {
        self.pool_ref.pool().cancel(&**self.task, self.ticket(), CancelReason::Requested, false)
    }

    /// As [`cancel`](Self::cancel), and raises the [token](crate::TaskContext::token) of a task
    /// that runs, to ask the body to stop. The token is raised as well if the task was cancelled
    /// before and its body still runs; the call then returns `false`, because it did not end the
    /// task. Java: `cancel(true)`.
    pub fn cancel_and_signal(&self) -> bool {
        self.pool_ref.pool().cancel(&**self.task, self.ticket(), CancelReason::Requested, true)
    }

    /// A handle that can cancel the task and not take its result.
    #[must_use]
    pub fn cancel_handle(&self) -> CancelHandle {
        // Ordering: read in the drop, which comes after every use.
        self.has_handles.store(true, Ordering::Relaxed);
        let task = Arc::clone(&self.task).erase();
        CancelHandle::new(task, self.pool_ref.clone(), self.ticket())
    }

    /// The last run of a periodic task that failed; `None` if none has, and for a one-shot task,
    /// whose panic is in its result. Stays when the task has ended.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, PanicPolicy, ScheduledThreadPoolExecutor};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let (mut runs, second) = (0, Duration::from_secs(1));
    /// let poller = executor.task().on_panic(PanicPolicy::resume()).schedule_at_fixed_rate(
    ///     second,
    ///     second,
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
        self.task.last_failure()
    }

    /// A guard that cancels the task when it is dropped.
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
    pub fn cancel_on_drop(self) -> CancelOnDrop<T> {
        CancelOnDrop { future: Some(self), signals: false }
    }

    /// A guard that [cancels and signals](Self::cancel_and_signal) the task when it is dropped: a
    /// body that runs is asked to stop.
    ///
    /// ```
    /// use std::{sync::mpsc, time::Duration};
    /// use punctual::{ScheduledThreadPoolExecutor, current_task};
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let (started, has_started) = mpsc::channel();
    /// let guard = executor.submit(move || {
    ///     started.send(()).ok();
    ///     current_task().expect("inside a task").token().wait(); // until it is asked to stop
    /// })?;
    /// let guard = guard.cancel_and_signal_on_drop();
    /// has_started.recv()?;
    /// drop(guard);
    /// executor.close()?; // the body has been asked to stop, and does
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn cancel_and_signal_on_drop(self) -> CancelOnDrop<T> {
        CancelOnDrop { future: Some(self), signals: true }
    }

    /// The task, for those who wait for several.
    pub(crate) fn task(&self) -> Arc<dyn Runnable> {
        Arc::clone(&self.task).erase()
    }

    /// The pool of the task.
    pub(crate) fn pool(&self) -> &Arc<Pool> {
        self.pool_ref.pool()
    }

    /// Takes the task out of the queue of this pool, if it waits there.
    pub(crate) fn remove_from(&self, pool: &Arc<Pool>) -> bool {
        self.pool_ref.belongs_to(pool) && pool.remove_waiting(&**self.task, self.ticket())
    }

    /// Where a panic in the drop of the result is reported.
    fn drops(&self) -> Drops<'_> {
        self.pool_ref.pool().callbacks().hooks.drops(self.id)
    }

    fn ticket(&self) -> Ticket {
        Ticket { slot: self.slot, sequence: self.id }
    }

    /// Says that this thread is about to wait for the task without a limit.
    fn enter_join(&self) -> Result<Option<JoinGuard<'_>>, WouldDeadlock> {
        self.pool_ref.pool().enter_join(|| Arc::clone(&self.task).erase())
    }

    fn block_until(&self, deadline: Timestamp) -> Option<Result<T, TaskError>> {
        let poll = |waker: &Waker| self.poll_join(waker);
        wait::block_soon(self.pool_ref.pool().clock(), deadline, || self.is_done(), poll)
    }

    /// The poll of [`wait`]: the result once the task has ended.
    fn poll_join(&self, waker: &Waker) -> Option<Result<T, TaskError>> {
        if self.task.poll_done(waker) { self.task.claim() } else { None }
    }

    /// Takes this thread off the list of who waits, if it gave up.
    fn unregistered<R>(&self, answer: Option<R>) -> Option<R> {
        if answer.is_none() {
            self.task.forget(Parker::current().waker());
        }
        answer
    }
}

impl<T> Future for ScheduledFuture<T> {
    type Output = Result<T, TaskError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.is_awaited = !self.task.poll_awaited(context.waker());
        if self.is_awaited {
            return Poll::Pending;
        }
        self.task.claim().map_or(Poll::Pending, Poll::Ready)
    }
}

impl<T> Drop for ScheduledFuture<T> {
    fn drop(&mut self) {
        if self.is_awaited {
            self.task.forget_awaiting();
        }
        // Ordering: this comes after every use.
        if self.has_handles.load(Ordering::Relaxed) {
            self.task.abandon(self.drops());
        }
        let task = self.task.take();
        discard_with(task, |panic| self.drops().report(None, Panic::new(panic)));
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
