//! What others see of a task, whose closure and result they do not know: a worker and the pool see
//! a [`Runnable`], a future sees a [`Claim`].

use std::task::Waker;

use super::{Companion, Drops, FailedRun, Run, TaskState};
use crate::{CancelReason, CancellationToken, TaskError, sync::Arc, time::Timestamp};

/// A task, as workers and the pool see it.
pub(crate) trait Runnable: Send + Sync {
    /// Runs the task once, unless it has been cancelled. Panics are caught.
    fn run(&self, run: &Run) -> Verdict;

    /// Puts a task that rests between two runs back into the queue: `enqueue` does it, under the
    /// task's lock, and gives the slot, or nothing if the queue takes it no more. Whether the
    /// task is in the queue now; it is not if it has been cancelled meanwhile.
    fn rearm(&self, enqueue: &mut dyn FnMut() -> Option<u32>) -> bool;

    /// Ends the task as cancelled, unless it has ended: drops the closure if it is here, and
    /// wakes who waits.
    fn cancel(&self, reason: CancelReason, drops: Drops<'_>) -> Cancellation;

    /// Ends the task, unless it has ended, because its time is up: with the value given for that,
    /// or as timed out. If it was a run of a periodic task that took too long, keeps the failure.
    fn time_out(&self, failure: Option<FailedRun>, drops: Drops<'_>) -> Cancellation;

    /// The token of the task, made now if there is none yet.
    fn token(&self, parent: &CancellationToken) -> CancellationToken;
    /// Raises the token of a task that was cancelled while its body ran and runs on.
    fn signal(&self, parent: &CancellationToken);
    /// A run begins that has a time limit, and so a token of its own.
    fn begin_limited_run(&self, limit: Timestamp);
    /// That run is over, and so is its token, unless it was the task that raised it: then
    /// `is_over` is false, and the token is kept for those who ask whether to go on.
    fn end_limited_run(&self, is_over: bool);

    /// Whether the task can end although no worker of its pool runs it: it has a time limit, or
    /// somebody outside the pool may run it.
    fn may_end_without_worker(&self) -> bool;
    /// From now on somebody outside the pool may run the task.
    fn give_away(&self);

    /// Keeps something that is to be dropped when the task has ended, or at once if it has.
    fn attach(&self, companion: Companion);

    /// Returns the task as something that a worker can wait for.
    fn awaited(self: Arc<Self>) -> Arc<dyn Awaited>;

    fn state(&self) -> TaskState;
    fn name(&self) -> Option<Arc<str>>;
    fn is_periodic(&self) -> bool;

    /// Where the queue keeps the task, if it was queued again since it was submitted.
    fn slot(&self) -> Option<u32>;
    /// How many runs there have been; not told while one is under way.
    fn runs(&self) -> Option<u64>;
    /// The last run of a periodic task that failed.
    fn last_failure(&self) -> Option<FailedRun>;

    /// Whether the task has ended; if not, keeps the waker until it has.
    fn poll_done(&self, waker: &Waker) -> bool;
    /// Forgets the waker of who no longer waits.
    fn forget(&self, waker: &Waker);
}

/// What a worker can wait for, as the pool's detection of deadlocks sees it.
pub(crate) trait Awaited: Send + Sync {
    /// Returns `true` if it is done, so that whoever waits for it goes on.
    fn is_done(&self) -> bool;
    /// Returns `true` if it can become done although no worker of the pool runs anything.
    fn may_end_without_worker(&self) -> bool;
    /// Returns `true` if no worker has begun what is awaited, so that another worker could do it.
    fn needs_free_worker(&self) -> bool;
}

/// A task, as the holder of its future sees it.
pub(crate) trait Claim<T>: Runnable {
    /// The result, once; nothing as long as there is none.
    fn claim(&self) -> Option<Result<T, TaskError>>;

    /// As [`poll_done`](Runnable::poll_done), for the one who awaits the future: of its wakers
    /// only the last is kept.
    fn poll_awaited(&self, waker: &Waker) -> bool;
    /// Nobody awaits the future any more.
    fn forget_awaiting(&self);

    /// Nobody will claim the result: it is dropped as soon as it is there.
    fn abandon(&self, drops: Drops<'_>);

    fn erase(self: Arc<Self>) -> Arc<dyn Runnable>;
}

/// What a worker is to do with the task it has run.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing: it had ended before, and was not run.
    TooLate,
    /// Nothing.
    Ended,
    /// Say that its time was up: it was found waiting, and has not run, or running, and has.
    TimedOut(Cancellation),
    /// End it as cancelled: its token was raised by the task itself, or by a holder of the token.
    CalledOff,
    /// Run it again at this moment.
    Again(Timestamp),
}

/// What a call to [`Runnable::cancel`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cancellation {
    /// The task had ended before.
    TooLate,
    /// The task waited, in the queue or on its way there; in this slot, if it was queued again.
    Waiting(Option<u32>),
    /// The task runs; its worker will see.
    Running,
}
