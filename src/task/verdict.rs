//! The values that pass between a task and the workers, handles and pool that use it.

use super::Task;
use crate::{
    CancelReason,
    entry::{Requeue, Timing},
    sync::{Arc, Weak},
    time::Timestamp,
};

/// Queues a task again, for this timing and for this reason. Returns the slot of its entry, unless the queue
/// refuses it.
pub(crate) type Enqueue<'a> = dyn FnMut(Timing, Requeue) -> Option<u32> + 'a;

/// The next step of a worker with the task that it has run.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing: the task had ended before, and was not run.
    TooLate,
    /// Nothing: the task has ended with this run.
    Ended,
    /// Report that the time of the task was up: before the run, which did not take place, or during
    /// it.
    TimedOut,
    /// End the task as cancelled: the task itself, or a holder of its token, has raised the token; or it is not to
    /// run.
    Cancelled(CancelReason),
    Again(Timestamp),
}

#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Requeued {
    /// It is to end: for this reason, or because the queue has refused it or it was cancelled meanwhile.
    Refused(Option<CancelReason>),
    Queued,
}

/// Where a call that ends a task found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cancellation {
    TooLate,
    /// The task was waiting, in the queue or on its way there; in this slot, if it had been queued
    /// again.
    Waiting(Option<u32>),
    /// The task was running; its worker drops what is left.
    Running,
}

/// Moves the entries of parked tasks that wait no longer: their turn has come, or there is the answer for
/// which they waited.
pub(crate) trait Dispatcher: Send + Sync {
    /// Lets these tasks go. The caller holds no lock.
    fn let_go(self: Arc<Self>, tasks: Vec<(u64, Weak<Task>)>);

    /// Has a task that runs once end at this limit, which has moved with its plan. The caller holds no lock.
    fn set_limit(self: Arc<Self>, task: Arc<Task>, sequence: u64, limit: Timestamp);
}
