//! The stock handlers for what is not admitted: Java's four, and one that waits.

use std::time::Duration;

use super::{RejectedExecutionHandler, RejectedTask, Rejection};

/// The submission fails, and gives the closure back: the default. Java: `AbortPolicy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AbortPolicy;

/// A task that is due runs in the submitter's thread, which so has no time to submit more; after a
/// shutdown it is discarded. What is not due yet cannot run without being early, and a periodic
/// task cannot run there for ever: these are refused. Java: `CallerRunsPolicy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CallerRunsPolicy;

/// The task is dropped; its future has ended as cancelled, with
/// [`CancelReason::Rejected`](crate::CancelReason). Java: `DiscardPolicy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DiscardPolicy;

/// The waiting task that is due first goes, and its future ends as cancelled, with
/// [`CancelReason::Rejected`](crate::CancelReason); the new one is admitted. After a shutdown the new
/// one is discarded. Java: `DiscardOldestPolicy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DiscardOldestPolicy;

/// The submission waits for room, and fails if there is none in time, or if the executor is shut
/// down. On one of the executor's own workers it fails at once: the room it waits for might be its
/// own to make. Java has none; there people put into the queue by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockPolicy {
    timeout: Duration,
}

impl BlockPolicy {
    /// Waits so long at most, on the executor's clock; `Duration::MAX` for ever.
    #[must_use]
    pub const fn new(timeout: Duration) -> Self {
        Self { timeout }
    }

    /// How long it waits at most.
    #[must_use]
    pub const fn timeout(&self) -> Duration {
        self.timeout
    }
}

/// Which of the stock policies a handler is; from
/// [`RejectedExecutionHandler::policy`].
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
        /// How long it waits at most.
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
