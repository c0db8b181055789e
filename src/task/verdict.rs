//! The values that pass between a task and the workers, handles and pool that use it.

use crate::{
    CancelReason,
    entry::{Requeue, Timing},
    time::Timestamp,
};

/// Queues a task again, with this timing and for this reason. Returns the slot of its entry, unless the queue refuses
/// it.
pub(crate) type Enqueue<'a> = dyn FnMut(Timing, Requeue) -> Option<u32> + 'a;

/// The next step of a worker with the task that it has run.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing: the task had ended before, and was not run.
    TooLate,
    /// Nothing: the task has ended with this run.
    Ended,
    /// Report that the time of the task was up: before the run, which did not take place, or during it.
    TimedOut,
    /// End the task as cancelled: the task, or a holder of its token, has cancelled the token; or it is not to run.
    Cancelled(CancelReason),
    Again(Timestamp),
}

/// Whether a task has been queued again. If not, it is to end: for this reason, or because the queue has refused it or
/// it was cancelled meanwhile.
pub(crate) type Requeued = Result<(), Option<CancelReason>>;

/// Where a call that ends a task found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cancellation {
    TooLate,
    /// The task was waiting, in the queue or on its way there; in this slot, if it had been queued again.
    Waiting(Option<u32>),
    /// The task was running; its worker drops what is left.
    Running,
}
