//! The stock handlers for tasks that are not admitted: Java's four, and one that waits for room.

use std::time::Duration;

use super::{RejectedExecutionHandler, RejectedTask, Rejection};

/// Fails the submission, with an error that gives the closure back. This is the default. Java:
/// `AbortPolicy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AbortPolicy;

/// Runs a task that is due on the submitter's thread, which slows that thread's submissions down. After a
/// shutdown the task is discarded. A task that is not due yet would run early, and a periodic one cannot run
/// there for ever: the submission of these fails. Java: `CallerRunsPolicy`.
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

/// Drops the task. Its future has ended as cancelled, with [`CancelReason::Rejected`](crate::CancelReason).
/// Java: `DiscardPolicy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DiscardPolicy;

/// Removes the pending task that is due first, whose future ends as cancelled with
/// [`CancelReason::Rejected`](crate::CancelReason), and admits the new one. A task that waits for its
/// [group](crate::Group) counts by when it is due; a paused one is due last. After a shutdown the new
/// one is discarded. Java: `DiscardOldestPolicy`.
///
/// ```
/// use std::time::Duration;
/// use punctual::{DiscardOldestPolicy, ScheduledThreadPoolExecutor};
///
/// let builder = ScheduledThreadPoolExecutor::builder().max_pending(1);
/// let executor = builder.rejected_execution_handler(DiscardOldestPolicy).build()?;
/// let first = executor.schedule(Duration::from_secs(3600), || "takes the only place")?;
/// let second = executor.schedule(Duration::from_secs(7200), || "takes it away")?;
/// assert!(first.is_cancelled() && !second.is_done());
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DiscardOldestPolicy;

/// Blocks the submission until there is room. It fails if there is none in time, or if the executor or the
/// task's [group](crate::Group) is shut down. On one of the executor's own workers it fails at once, since
/// that worker may be the one that has to make the room. Java has no such policy.
/// [`Builder::max_pending`](crate::Builder::max_pending) has an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockPolicy {
    timeout: Duration,
}

impl BlockPolicy {
    /// A policy that waits for `timeout` at most, on the executor's clock; `Duration::MAX` means
    /// without a limit.
    #[must_use]
    pub const fn new(timeout: Duration) -> Self {
        Self { timeout }
    }

    /// Returns how long it waits at most.
    pub const fn timeout(&self) -> Duration {
        self.timeout
    }
}

/// The stock policy that a handler is, as returned by [`RejectedExecutionHandler::policy`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StockPolicy {
    /// [`AbortPolicy`].
    Abort,
    /// [`CallerRunsPolicy`].
    CallerRuns,
    /// [`DiscardPolicy`].
    Discard,
    /// [`DiscardOldestPolicy`].
    DiscardOldest,
    /// [`BlockPolicy`].
    Block {
        /// The longest that it waits.
        timeout: Duration,
    },
}

impl RejectedExecutionHandler for AbortPolicy {
    fn rejected_execution(&self, task: RejectedTask<'_>) -> Rejection {
        task.abort()
    }

    fn policy(&self) -> Option<StockPolicy> {
        Some(StockPolicy::Abort)
    }
}

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

    fn policy(&self) -> Option<StockPolicy> {
        Some(StockPolicy::CallerRuns)
    }
}

impl RejectedExecutionHandler for DiscardPolicy {
    fn rejected_execution(&self, task: RejectedTask<'_>) -> Rejection {
        task.discard()
    }

    fn policy(&self) -> Option<StockPolicy> {
        Some(StockPolicy::Discard)
    }
}

impl RejectedExecutionHandler for DiscardOldestPolicy {
    fn rejected_execution(&self, task: RejectedTask<'_>) -> Rejection {
        if task.is_shutdown() { task.discard() } else { task.discard_oldest() }
    }

    fn policy(&self) -> Option<StockPolicy> {
        Some(StockPolicy::DiscardOldest)
    }
}

impl RejectedExecutionHandler for BlockPolicy {
    fn rejected_execution(&self, task: RejectedTask<'_>) -> Rejection {
        task.wait_for_room(self.timeout)
    }

    fn policy(&self) -> Option<StockPolicy> {
        Some(StockPolicy::Block { timeout: self.timeout })
    }
}
