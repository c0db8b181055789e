//! Rejection: the fate of a task that is not admitted.
//!
//! The executor's [`RejectedExecutionHandler`] decides it. The task that the handler is given is in no queue, so no
//! worker can take it. Each decision is a method of [`RejectedTask`] that consumes the task and returns the answer, so
//! no answer can be forgotten. If the handler panics, the task ends as cancelled, unless the handler ran or kept it.
//!
//! ```text
//!   offer ──refused──▶ handler ──▶ abort      the closure goes back to the submitter
//!     ▲                       ├──▶ discard    the future completes as cancelled
//!     │                       ├──▶ run        at once, on the submitter's thread
//!     │                       ├──▶ keep       the handler has it run later
//!     └───────────────────────┴──▶ retry      perhaps after making room, or waiting for it
//! ```
//!
//! A handler may return an answer about another task, which it was given by another executor or in an earlier call. The
//! answer then counts for neither task: the submission succeeds, and each of the two is cancelled when it is dropped.

use std::{fmt, ops::Deref, time::Duration};

use crate::{RejectionReason, drained::DrainedTask, pool::Pool, sync::Arc, unwind::discard};

/// Decides what happens to a task that an executor does not admit, because it was shut down or because as many tasks
/// are pending as its [bound](crate::Builder::max_pending) allows. Set by
/// [`Builder::rejected_execution_handler`](crate::Builder::rejected_execution_handler). Java:
/// `RejectedExecutionHandler`.
///
/// Closures are handlers. This one runs named tasks on the submitter's thread, and refuses the others:
///
/// ```
/// use punctual::{RejectedTask, ScheduledThreadPoolExecutor};
///
/// let executor = ScheduledThreadPoolExecutor::new(1);
/// executor.set_rejected_execution_handler(|task: RejectedTask<'_>| {
///     if task.name().is_some() { task.run() } else { task.abort() }
/// });
/// executor.shutdown();
/// let important = executor.task().name("farewell").submit(|| "good bye")?;
/// assert_eq!(important.join()?, "good bye");
/// assert!(executor.submit(|| "gossip").is_err());
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
///
/// It is not asked about a task that can never be admitted (with a period of zero, say), nor if there is no worker and
/// none could be started: those submissions fail in any case.
#[doc(alias = "backpressure")]
pub trait RejectedExecutionHandler: Send + Sync {
    /// Chooses what becomes of the task, by calling one of its methods. Called on the submitter's thread, which it may
    /// block, with no lock held.
    ///
    /// # Panics
    ///
    /// If it panics, the panic goes to the submitter, and the task ends as cancelled.
    fn rejected_execution(&self, task: RejectedTask<'_>) -> Rejection;
}

impl<F: Fn(RejectedTask<'_>) -> Rejection + Send + Sync> RejectedExecutionHandler for F {
    fn rejected_execution(&self, task: RejectedTask<'_>) -> Rejection {
        self(task)
    }
}

impl<T: RejectedExecutionHandler + ?Sized> RejectedExecutionHandler for Arc<T> {
    fn rejected_execution(&self, task: RejectedTask<'_>) -> Rejection {
        (**self).rejected_execution(task)
    }
}

/// A task that was not admitted; a [`RejectedExecutionHandler`] chooses what becomes of it, by calling one of the
/// methods. It dereferences to the [`DrainedTask`], which describes it.
#[must_use = "dropping a rejected task cancels it"]
pub struct RejectedTask<'a> {
    pool: &'a Arc<Pool>,
    task: DrainedTask,
    reason: &'a RejectionReason,
}

/// The outcome of a wait for room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    Acquired,
    GivenUp,
    TimeIsUp,
}

/// A handler's answer; the methods of [`RejectedTask`] return it.
#[must_use = "this is the handler's answer"]
pub struct Rejection(pub(crate) Decision);

pub(crate) enum Decision {
    Handled,
    Abort(DrainedTask),
    Retry(DrainedTask, Option<CapacityPermit>),
}

/// A capacity permit for a task that is not in the queue yet. Dropping this releases the permit, so it is not lost if
/// the handler panics after its wait for room.
pub(crate) struct CapacityPermit(Option<Arc<Pool>>);

impl CapacityPermit {
    pub(crate) fn hand_over(mut self) {
        discard(self.0.take());
    }
}

impl Drop for CapacityPermit {
    fn drop(&mut self) {
        if let Some(pool) = self.0.take() {
            pool.capacity.release();
            discard(pool);
        }
    }
}

impl<'a> RejectedTask<'a> {
    pub(crate) fn new(pool: &'a Arc<Pool>, task: DrainedTask, reason: &'a RejectionReason) -> Self {
        Self { pool, task, reason }
    }

    /// Returns the reason why the task was not admitted.
    pub fn reason(&self) -> &RejectionReason {
        self.reason
    }

    /// Returns `true` if the executor was shut down, and `false` if there was no room.
    pub fn is_shutdown(&self) -> bool {
        matches!(self.reason, RejectionReason::Shutdown)
    }

    /// Fails the submission with a [`RejectedExecutionError`](crate::RejectedExecutionError), which owns the task.
    pub fn abort(self) -> Rejection {
        Rejection(Decision::Abort(self.task))
    }

    /// Drops the closure. The submission does not fail, but its future completes as cancelled, with
    /// [`CancelReason::Rejected`](crate::CancelReason::Rejected).
    pub fn discard(self) -> Rejection {
        drop(self.task);
        Rejection(Decision::Handled)
    }

    /// Runs the task on this thread, due or not, as [`DrainedTask::run`] does. Blocks until it has run. A one-shot task
    /// then has no timeout, since its future has not been returned yet.
    pub fn run(self) -> Rejection {
        self.pool.rejections.count_caller_run(&self.task.run_here());
        Rejection(Decision::Handled)
    }

    /// Hands the task over, to be run later on any thread, or to be dropped.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use punctual::{RejectedTask, ScheduledThreadPoolExecutor};
    ///
    /// let (give, given) = mpsc::channel();
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// executor.set_rejected_execution_handler(move |task: RejectedTask<'_>| {
    ///     let (task, answer) = task.keep();
    ///     give.send(task).ok();
    ///     answer
    /// });
    /// executor.shutdown();
    /// let kept = executor.submit(|| "ran elsewhere")?;
    /// given.recv()?.run();
    /// assert_eq!(kept.join()?, "ran elsewhere");
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn keep(self) -> (DrainedTask, Rejection) {
        // From now on any thread may run the task.
        if let Some(task) = &self.task.task {
            task.give_away();
        }
        (self.task, Rejection(Decision::Handled))
    }

    /// Submits the task once more, and asks the handler again if it is not admitted. If the executor was shut down,
    /// this is [`abort`](Self::abort); if the task's group was shut down meanwhile, the submission fails with
    /// [`GroupShutdown`](RejectionReason::GroupShutdown). The same holds for [`discard_oldest`](Self::discard_oldest)
    /// and [`wait_for_room`](Self::wait_for_room).
    pub fn retry(self) -> Rejection {
        self.retry_with(None)
    }

    /// Cancels the pending task that is due first, with [`CancelReason::Rejected`](crate::CancelReason::Rejected), and
    /// submits this one again.
    pub fn discard_oldest(self) -> Rejection {
        if !self.is_shutdown() {
            self.pool.discard_oldest();
        }
        self.retry()
    }

    /// Blocks until there is room, and submits the task again. Aborts if there is no room within `timeout` on the
    /// executor's clock, or at once on one of the executor's own workers. A shutdown ends the wait, and the handler
    /// is asked again; a shutdown of the task's [group](crate::Group) fails the submission at once, with
    /// [`GroupShutdown`](RejectionReason::GroupShutdown). On a manual clock [another thread has to move
    /// it](crate::ManualClock#when-it-blocks).
    pub fn wait_for_room(self, timeout: Duration) -> Rejection {
        if self.is_shutdown() {
            return self.abort();
        }
        let group = self.task.task.as_ref().and_then(|task| task.own_group());
        let gives_up = || group.as_ref().is_some_and(|group| group.roll().is_shut_down());
        match self.pool.wait_for_room(timeout, &gives_up) {
            Room::TimeIsUp => self.abort(),
            Room::GivenUp => self.retry(),
            Room::Acquired => {
                let permit = CapacityPermit(Some(Arc::clone(self.pool)));
                self.retry_with(Some(permit))
            }
        }
    }

    fn retry_with(self, permit: Option<CapacityPermit>) -> Rejection {
        if self.is_shutdown() {
            self.abort()
        } else {
            Rejection(Decision::Retry(self.task, permit))
        }
    }
}

impl Deref for RejectedTask<'_> {
    type Target = DrainedTask;

    fn deref(&self) -> &DrainedTask {
        &self.task
    }
}

impl fmt::Debug for RejectedTask<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RejectedTask")
            .field("task", &self.task)
            .field("reason", &self.reason)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rejection").finish_non_exhaustive()
    }
}

/// Fails the submission, with an error that gives the closure back. This is the default. Java: `AbortPolicy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AbortPolicy;

impl RejectedExecutionHandler for AbortPolicy {
    fn rejected_execution(&self, task: RejectedTask<'_>) -> Rejection {
        task.abort()
    }
}

/// Runs a due task on the submitter's thread, which slows the submitter down. Discards the task after a shutdown. Fails
/// the submission of a task that is not due yet, which would run early, and of a periodic one. Java:
/// `CallerRunsPolicy`.
///
/// ```
/// use std::{thread, time::Duration};
/// use punctual::{CallerRunsPolicy, ScheduledThreadPoolExecutor};
///
/// let builder = ScheduledThreadPoolExecutor::builder().max_pending(1);
/// let executor = builder.rejected_execution_handler(CallerRunsPolicy).build()?;
/// let _first = executor.schedule(Duration::from_secs(3600), || "takes the only place")?;
/// assert_eq!(executor.submit(|| thread::current().id())?.join()?, thread::current().id());
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CallerRunsPolicy;

impl RejectedExecutionHandler for CallerRunsPolicy {
    fn rejected_execution(&self, task: RejectedTask<'_>) -> Rejection {
        if task.is_shutdown() {
            task.discard()
        } else if task.is_due() && !task.is_periodic() {
            task.run()
        } else {
            task.abort()
        }
    }
}

/// Drops the task. Its future completes as cancelled, with [`CancelReason::Rejected`](crate::CancelReason). Java:
/// `DiscardPolicy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DiscardPolicy;

impl RejectedExecutionHandler for DiscardPolicy {
    fn rejected_execution(&self, task: RejectedTask<'_>) -> Rejection {
        task.discard()
    }
}

/// Removes the pending task that is due first, whose future completes as cancelled with
/// [`CancelReason::Rejected`](crate::CancelReason), and admits the new one. A task that waits for its
/// [group](crate::Group) counts by when it is due; a paused one is due last. Discards the new one after a shutdown.
/// Java: `DiscardOldestPolicy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DiscardOldestPolicy;

impl RejectedExecutionHandler for DiscardOldestPolicy {
    fn rejected_execution(&self, task: RejectedTask<'_>) -> Rejection {
        if task.is_shutdown() { task.discard() } else { task.discard_oldest() }
    }
}

/// Blocks the submission until there is room. It fails if there is none in time, if the executor or the task's
/// [group](crate::Group) is shut down, and at once on one of the executor's own workers, which may be the one that has
/// to make the room. Java has no such policy. [`Builder::max_pending`](crate::Builder::max_pending) has an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockPolicy {
    timeout: Duration,
}

impl BlockPolicy {
    /// Makes a policy that waits at most `timeout`, on the executor's clock; `Duration::MAX` means without limit.
    #[must_use]
    pub const fn new(timeout: Duration) -> Self {
        Self { timeout }
    }
}

impl RejectedExecutionHandler for BlockPolicy {
    fn rejected_execution(&self, task: RejectedTask<'_>) -> Rejection {
        task.wait_for_room(self.timeout)
    }
}
