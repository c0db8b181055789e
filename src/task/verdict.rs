//! The values that pass between a task and the workers, handles and pool that use it.

use crate::{
    CancelReason,
    entry::{Requeue, Timing},
    time::Timestamp,
};

/// Queues a task again, with this timing and reason. Returns the entry's slot; `None` if the queue refuses the task.
pub(crate) type Enqueue<'a> = dyn FnMut(Timing, Requeue) -> Option<u32> + 'a;

/// What a worker does next with a task that it has taken.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing: the task had already ended, and did not run.
    TooLate,
    /// Enter the task's end into the pool's log: the task has ended with this run, or was cancelled during it.
    Ended,
    /// Report that the task's time limit expired, either during the run or before it could begin.
    TimedOut,
    /// End the task as cancelled, for this reason. Its token was cancelled, or a feature or a shutdown ends it.
    Cancelled(CancelReason),
    Again(Timestamp),
}

/// Whether a task has been queued again. The error is the reason to end the task, or `None` if the queue refused the
/// task or the task had already ended.
pub(crate) type Requeued = Result<(), Option<CancelReason>>;

/// The state of a task when a call tries to end it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cancellation {
    TooLate,
    /// The task was in the queue or on its way there. Holds the entry's slot if the task was queued again or moved.
    Waiting(Option<u32>),
    /// The task was running; its worker drops the closure and the result.
    Running,
}
