//! The error of a rejected submission: the reason, and the task itself.
//!
//! A submission moves its closure into a task before the pool decides about it. When the pool
//! rejects the task, this error owns it, as a [`DrainedTask`]: the holder of the error can run the
//! task, keep it, or drop it. So `?` works, the error is `Send + Sync` whatever the closure
//! captured, and nothing is lost.

use std::{error::Error, fmt};

use super::DrainedTask;
use crate::RejectionReason;

/// The error of a submission that was rejected. It holds the reason and the task. Java:
/// `RejectedExecutionException`, and `IllegalArgumentException` for a period of zero.
///
/// [`into_task`](Self::into_task) returns the task with its closure. The task can be run in this
/// thread or in another, kept for later, or dropped. Dropping the error drops the task. Nothing
/// waits for the task then, because a submission that is rejected returns no future.
///
/// ```
/// use punctual::{RejectionReason, ScheduledThreadPoolExecutor};
///
/// let executor = ScheduledThreadPoolExecutor::new(1);
/// executor.shutdown();
///
/// let (say, said) = std::sync::mpsc::channel();
/// let refused = executor.execute(move || say.send("not lost").unwrap_or_default()).unwrap_err();
/// assert!(matches!(refused.reason(), RejectionReason::Shutdown));
/// refused.into_task().run();
/// assert_eq!(said.recv()?, "not lost");
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
///
/// # If the result is wanted
///
/// The task is type-erased, so its result is lost when it is run by hand. A caller that needs to
/// hand the same work to a second executor and get a future for it submits a closure that can be
/// cloned, or sends the result over a channel.
pub struct RejectedExecutionError(Box<Refused>);

/// The content of the error. It is on the heap, so that the `Result` of a submission stays small.
struct Refused {
    reason: RejectionReason,
    task: DrainedTask,
}

impl RejectedExecutionError {
    pub(super) fn new(reason: RejectionReason, task: DrainedTask) -> Self {
        Self(Box::new(Refused { reason, task }))
    }

    /// Returns the reason why the task was rejected.
    #[must_use]
    pub fn reason(&self) -> &RejectionReason {
        &self.0.reason
    }

    /// Returns the rejected task.
    pub fn task(&self) -> &DrainedTask {
        &self.0.task
    }

    /// Returns the rejected task, to be run, kept or dropped.
    pub fn into_task(self) -> DrainedTask {
        self.0.task
    }
}

impl fmt::Debug for RejectedExecutionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RejectedExecutionError")
            .field("reason", &self.0.reason)
            .field("task", &self.0.task)
            .finish()
    }
}

impl fmt::Display for RejectedExecutionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.reason.fmt(f)
    }
}

impl Error for RejectedExecutionError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.0.reason {
            RejectionReason::Spawn(error) => Some(error),
            _ => None,
        }
    }
}
