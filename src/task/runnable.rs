//! A task without the types of its closure and its result, as workers and the pool see it.

use std::task::Waker;

use super::{
    Attachment, Awaited, Change, Comeback, Drops, FailedRun, Hooks, InGroup, MoveEntry, Run,
    TaskState,
};
use crate::{
    CancelReason, CancellationToken,
    sync::Arc,
    time::{Clock, Timestamp, Timing},
    trace::SubmitterSpan,
};

/// A task, as workers and the pool see it.
pub(crate) trait Runnable: InGroup + Send + Sync {
    /// Runs the task once, with these hooks around it, unless it has ended. Panics are caught.
    fn run(&self, run: &Run, hooks: &Hooks) -> Verdict;

    /// Queues a task again that rests between two runs, or was put off, for `next` unless something else has been asked
    /// of it meanwhile. `enqueue` is called under the task's lock; it returns the
    /// slot of the queue, or `None` if the queue accepts the task no more. Returns `true` if the task is
    /// in the queue now, and `false` if it was refused or has been cancelled meanwhile.
    fn rearm(&self, next: Timestamp, enqueue: &mut Enqueue<'_>) -> bool;

    /// Changes when a task runs that is alive. `move_entry` is called under the task's lock.
    fn control(&self, change: Change, clock: &Clock, move_entry: &mut MoveEntry<'_>) -> Changed;

    /// Moves the task to where it belongs by what the wall clock shows, if it waits for a moment of that
    /// clock. `move_entry` is called under the task's lock.
    fn follow_wall(&self, clock: &Clock, move_entry: &mut MoveEntry<'_>);

    /// Ends the task as cancelled, unless it has ended: wakes its waiters, and drops the closure if
    /// no worker has it.
    fn cancel(&self, reason: CancelReason, drops: Drops<'_>) -> Cancellation;

    /// Ends the task as timed out, unless it has ended, or has another limit than `limit`. Keeps
    /// `failure`, the run of a periodic task that took too long.
    fn time_out(
        &self,
        limit: Timestamp,
        failure: Option<FailedRun>,
        drops: Drops<'_>,
    ) -> Cancellation;

    /// Returns the token of the task, and makes it if there is none yet.
    fn token(&self, parent: &CancellationToken) -> CancellationToken;
    /// Raises the token of a task that was cancelled while its body ran, if the body still runs.
    fn signal(&self, parent: &CancellationToken);
    /// Begins a run that has a time limit, and so a token of its own.
    fn begin_limited_run(&self, limit: Timestamp);
    /// Ends that run. Its token ends with it, raised if the limit `is_over`; but a token that the
    /// task itself has raised within the limit is kept, so that the task is then called off.
    fn end_limited_run(&self, is_over: bool);

    /// Returns `true` if the task can end although no worker of its pool runs it: it has a time
    /// limit, and its pool a timer thread, or somebody outside the pool may run it.
    fn may_end_without_worker(&self, has_timer_thread: bool) -> bool;
    /// Notes that somebody outside the pool may run the task from now on.
    fn give_away(&self);

    /// Keeps a value that is dropped when the task has ended, or at once if it has, or if it has another
    /// limit than `limit` meanwhile. It replaces the value before it.
    fn attach(&self, attachment: Attachment, limit: Timestamp);

    /// Returns the task as something that a worker can wait for.
    fn awaited(self: Arc<Self>) -> Arc<dyn Awaited>;

    fn state(&self) -> TaskState;
    fn name(&self) -> Option<Arc<str>>;
    /// Returns the span in which the task was submitted, if it is kept.
    fn submitter(&self) -> Option<SubmitterSpan>;
    fn is_periodic(&self) -> bool;
    /// Returns `true` if a gate is asked before each run.
    fn has_gate(&self) -> bool;
    /// Returns `true` if a [call](super::calls) waits for its run.
    fn is_called(&self) -> bool;

    /// Returns the slot of the queue that the task was given when it was last queued again; `None`
    /// if it has not been since it was submitted.
    fn slot(&self) -> Option<u32>;
    /// Returns how many runs there have been; `None` while one is under way.
    fn runs(&self) -> Option<u64>;
    /// Returns the last run of a periodic task that failed.
    fn last_failure(&self) -> Option<FailedRun>;

    /// Returns `true` if the task has ended; if not, keeps the waker until it has.
    fn poll_done(&self, waker: &Waker) -> bool;
    /// Returns `true` if the task has ended and its closure does not run: if the task was cancelled
    /// while its body ran, that has returned, and a periodic closure has been dropped.
    fn has_left(&self) -> bool;
    /// As [`has_left`](Self::has_left); if not, keeps the waker until it has.
    fn poll_left(&self, waker: &Waker) -> bool;
    /// Drops the waker of a thread that no longer waits.
    fn deregister(&self, waker: &Waker);
}

/// Queues a task again: it is passed how its entry stands, and how the task comes back.
pub(crate) type Enqueue<'a> = dyn FnMut(Timing, Comeback) -> Option<u32> + 'a;

/// What came of a [change](Change).
#[must_use]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changed {
    pub(crate) had_effect: bool,
    /// The limit of a task that runs once, if that has moved.
    pub(crate) limit: Option<Timestamp>,
}

/// What a worker does next with the task that it has run.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing: the task had ended before, and was not run.
    TooLate,
    /// Nothing: the task has ended with this run.
    Ended,
    /// Report that the time of the task was up: before the run, which did not take place, or during
    /// it.
    TimedOut,
    /// End the task as cancelled: the task itself, or a holder of its token, has raised the token; or its
    /// gate says so.
    Cancelled(CancelReason),
    /// Run the task again at this moment.
    Again(Timestamp),
    /// The same, and the moment is an estimate of one of the wall clock.
    AgainOnWall(Timestamp),
}

/// Where a call that ends a task found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cancellation {
    /// The task had ended before.
    TooLate,
    /// The task was waiting, in the queue or on its way there; in this slot, if it had been queued
    /// again.
    Waiting(Option<u32>),
    /// The task was running; its worker drops what is left.
    Running,
}
