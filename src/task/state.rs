//! The states of a task, and the only moves between them:
//!
//! ```text
//!                 start                    finish
//!   ──▶ Scheduled ─────▶ Running ──────────────────▶ Completed │ Failed ────┐ claim
//!         │    ▲           │   │                                            ▼
//!         │    └───────────│───┘ rest (periodic)                         Claimed
//!         │                │
//!         └──── cancel ────┴──▶ Cancelled
//! ```
//!
//! * **Scheduled**: the closure is here; the task is in the queue, or a worker has just taken it
//!   out or, between two runs, is about to put it back.
//! * **Running**: the closure is on a worker's stack.
//! * **Completed, Failed, Cancelled**: final. They become `Claimed` when the result is taken. A series
//!   whose trigger has ended is also completed, with a result or without ([`Stage::Exhausted`]).
//!
//! This file only decides. Each move takes `&mut self`, so it happens under the task's lock, and
//! returns what has to be *done* about it (a closure to drop, a result that nobody will get), which
//! the caller does after releasing the lock.
//!
//! # Cancelling races with running
//!
//! The thread that takes the closure out of the state drops it, and the lock orders the two. If
//! `cancel` comes first, it takes the closure and drops it, and `start` finds nothing to run. If
//! `start` comes first, it has the closure; `cancel` then marks the task, which has ended for
//! everyone who waits for it, and the worker, when the body returns, finds the mark and drops
//! closure and result itself. Until then [`Stage::runs_on`] is true, so that the body can still be
//! signalled.

use std::{fmt, mem};

use crate::{CancelReason, Failure, TaskError};

/// The state of a task; from [`ScheduledFuture::state`](crate::ScheduledFuture::state). Java:
/// `Future.State`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum TaskState {
    /// The task waits until it is due, or for a worker. A periodic task is also in this state
    /// between its runs.
    Scheduled,
    /// The task waits, and does not run before somebody
    /// [resumes](crate::ScheduledFuture::resume) it.
    Paused,
    /// The task runs now.
    Running,
    /// The task has ended with a result, or because its trigger has ended.
    Completed,
    /// The task has failed: it panicked, or a run returned an `Err` that ended it.
    Failed,
    /// The task was cancelled. If its body had begun, it may still be running.
    Cancelled,
}

impl TaskState {
    /// Returns `true` if the task has ended, however it did.
    #[must_use]
    pub fn is_done(self) -> bool {
        !matches!(self, Self::Scheduled | Self::Paused | Self::Running)
    }
}

impl fmt::Display for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scheduled => "scheduled",
            Self::Paused => "paused",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        })
    }
}

/// The state of a task with what it holds in that state: `J` is the job, `T` its result.
pub(super) enum Stage<J, T> {
    Scheduled(J),
    Running,
    Completed(T),
    Failed(Failure),
    Exhausted,
    Cancelled { reason: CancelReason, body_runs: bool },
    Claimed { failed: bool },
}

/// The outcome of the last run of a task.
pub(super) type Ending<T> = Result<T, Failure>;

/// What a call found that ends a task other than by a run.
#[must_use]
pub(super) enum CancelOutcome<J> {
    /// The task had ended before.
    TooLate,
    /// The task was waiting; this is its job, which will not run any more.
    Waiting(J),
    /// The task was running; its worker will drop what is left.
    Running,
}

impl<J, T> Stage<J, T> {
    /// Takes the job, to run it; `None` if the task has ended meanwhile.
    pub(super) fn start(&mut self) -> Option<J> {
        match self {
            Self::Scheduled(_) => self.take_job(Self::Running),
            _ => None,
        }
    }

    /// Ends the task after its last run. Returns the ending if the task was cancelled meanwhile, so
    /// that nobody will get it.
    pub(super) fn finish(&mut self, ending: Ending<T>) -> Option<Ending<T>> {
        if !self.body_returns() {
            return Some(ending);
        }
        self.leave_running(match ending {
            Ok(value) => Self::Completed(value),
            Err(failure) => Self::Failed(failure),
        });
        None
    }

    /// Ends the task after its last run, which has left no result.
    pub(super) fn exhaust(&mut self) {
        if self.body_returns() {
            self.leave_running(Self::Exhausted);
        }
    }

    /// Ends a run after which another is to come. Returns the job if the task was cancelled
    /// meanwhile, so that none will come; the body counts as running until the caller has dropped it,
    /// and then says so by [`body_returns`](Self::body_returns).
    pub(super) fn rest(&mut self, job: J) -> Option<J> {
        if !matches!(self, Self::Running) {
            return Some(job);
        }
        self.leave_running(Self::Scheduled(job));
        None
    }

    /// Moves from `Running`, which holds nothing, to `next`. An assignment would ask at each run whether
    /// there is a job to drop.
    #[inline]
    fn leave_running(&mut self, next: Self) {
        debug_assert!(matches!(self, Self::Running), "the body has just returned");
        mem::forget(mem::replace(self, next));
    }

    /// Notes that the body has returned. Returns `true` if the task was not ended meanwhile.
    pub(super) fn body_returns(&mut self) -> bool {
        if let Self::Cancelled { body_runs, .. } = self {
            *body_runs = false;
        }
        matches!(self, Self::Running)
    }

    /// Returns `true` if the task was cancelled and its body still runs.
    pub(super) fn runs_on(&self) -> bool {
        matches!(self, Self::Cancelled { body_runs: true, .. })
    }

    /// Returns `true` if the task has ended.
    pub(super) fn is_done(&self) -> bool {
        !matches!(self, Self::Scheduled(_) | Self::Running)
    }

    /// Returns `true` if the task has ended and its body does not run.
    pub(super) fn has_left(&self) -> bool {
        self.is_done() && !self.runs_on()
    }

    /// Returns the job, unless a worker has it or the task has ended.
    pub(super) fn job(&mut self) -> Option<&mut J> {
        match self {
            Self::Scheduled(job) => Some(job),
            _ => None,
        }
    }

    /// Ends the task as cancelled, unless it has ended.
    pub(super) fn cancel(&mut self, reason: CancelReason) -> CancelOutcome<J> {
        let body_runs = match self {
            Self::Scheduled(_) => false,
            Self::Running => true,
            _ => return CancelOutcome::TooLate,
        };
        match self.take_job(Self::Cancelled { reason, body_runs }) {
            Some(job) => CancelOutcome::Waiting(job),
            None => CancelOutcome::Running,
        }
    }

    /// Takes the result; `None` if there is none yet.
    pub(super) fn claim(&mut self) -> Option<Result<T, TaskError>> {
        let failed = match self {
            Self::Scheduled(_) | Self::Running => return None,
            Self::Cancelled { reason, .. } => return Some(Err(TaskError::Cancelled(*reason))),
            Self::Exhausted => return Some(Err(TaskError::Exhausted)),
            Self::Claimed { .. } => return Some(Err(TaskError::ResultTaken)),
            Self::Completed(_) => false,
            Self::Failed(_) => true,
        };
        match mem::replace(self, Self::Claimed { failed }) {
            Self::Completed(value) => Some(Ok(value)),
            Self::Failed(failure) => Some(Err(TaskError::Failed(failure))),
            _ => None,
        }
    }

    pub(super) fn state(&self) -> TaskState {
        match self {
            Self::Scheduled(_) => TaskState::Scheduled,
            Self::Running => TaskState::Running,
            Self::Completed(_) | Self::Claimed { failed: false } | Self::Exhausted => {
                TaskState::Completed
            }
            Self::Failed(_) | Self::Claimed { failed: true } => TaskState::Failed,
            Self::Cancelled { .. } => TaskState::Cancelled,
        }
    }

    /// Moves to `next`, and returns the job if it was here.
    fn take_job(&mut self, next: Self) -> Option<J> {
        match mem::replace(self, next) {
            Self::Scheduled(job) => Some(job),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Job, hooks::Invocation, job::RunOutcome, period::Period},
        *,
    };
    use crate::time::Timestamp;

    type Subject = Stage<&'static str, i32>;

    impl Job for &'static str {
        type Output = i32;

        const IS_PERIODIC: bool = true;

        fn run(self, _: Invocation<'_>) -> RunOutcome<Self> {
            unreachable!("nothing is run here")
        }

        fn slot(&self) -> Option<u32> {
            None
        }

        fn set_slot(&mut self, _: u32) {}

        fn set_schedule(&mut self, schedule: Period) -> Option<Period> {
            Some(schedule)
        }

        fn runs(&self) -> u64 {
            0
        }

        fn missed(&self, _: Timestamp, _: Timestamp) -> u64 {
            0
        }
    }

    fn running() -> Subject {
        let mut stage = Subject::Scheduled("job");
        assert_eq!(stage.start(), Some("job"));
        stage
    }

    #[test]
    fn a_task_starts_once() {
        let mut stage = running();
        assert_eq!(stage.start(), None);
        assert_eq!(stage.state(), TaskState::Running);
    }

    /// M46.
    #[test]
    fn a_result_is_claimed_once() {
        let mut stage = running();
        assert!(stage.claim().is_none());
        assert!(stage.finish(Ok(7)).is_none());
        assert!(matches!(stage.claim(), Some(Ok(7))));
        assert!(matches!(stage.claim(), Some(Err(TaskError::ResultTaken))));
        assert_eq!(stage.state(), TaskState::Completed);
    }

    /// M47.
    #[test]
    fn a_claimed_panic_is_still_a_panic() {
        let mut stage = running();
        assert!(stage.finish(Err(Failure::of_displacement("no"))).is_none());
        assert!(matches!(stage.claim(), Some(Err(TaskError::Failed(_)))));
        assert_eq!(stage.state(), TaskState::Failed);
    }

    /// M42, M48.
    #[test]
    fn cancelling_a_waiting_task_hands_out_its_job() {
        let mut stage = Subject::Scheduled("job");
        assert!(matches!(stage.cancel(CancelReason::Requested), CancelOutcome::Waiting("job")));
        assert_eq!(stage.start(), None);
        assert!(matches!(stage.cancel(CancelReason::Shutdown), CancelOutcome::TooLate));
        for _ in 0..2 {
            let claim = stage.claim();
            assert!(matches!(claim, Some(Err(TaskError::Cancelled(CancelReason::Requested)))));
        }
    }

    /// F31, M43, M44: a task that is cancelled while it runs has ended at once, and the worker's result is
    /// not kept.
    #[test]
    fn cancelling_a_running_task_leaves_the_rest_to_the_worker() {
        let mut stage = running();
        assert!(matches!(stage.cancel(CancelReason::Requested), CancelOutcome::Running));
        assert_eq!(stage.state(), TaskState::Cancelled);
        assert!(stage.runs_on());
        assert!(matches!(stage.finish(Ok(7)), Some(Ok(7))));
        assert!(!stage.runs_on());
    }

    /// M44.
    #[test]
    fn a_cancelled_series_is_over_when_its_closure_has_been_dropped() {
        let mut stage = running();
        assert!(matches!(stage.cancel(CancelReason::Requested), CancelOutcome::Running));
        assert_eq!(stage.rest("job"), Some("job"));
        assert!(stage.runs_on());
        assert!(!stage.body_returns());
        assert!(!stage.runs_on());
        assert_eq!(stage.state(), TaskState::Cancelled);
    }

    /// M50.
    #[test]
    fn a_value_that_comes_too_late_is_given_back() {
        let mut stage = Subject::Scheduled("job");
        assert!(matches!(stage.cancel(CancelReason::TimedOut), CancelOutcome::Waiting("job")));
        assert!(matches!(stage.cancel(CancelReason::Requested), CancelOutcome::TooLate));
        assert_eq!(stage.start(), None);
        let mut stage = running();
        assert!(matches!(stage.cancel(CancelReason::TimedOut), CancelOutcome::Running));
        assert!(matches!(stage.finish(Ok(8)), Some(Ok(8))));
        assert_eq!(stage.state(), TaskState::Cancelled);
    }

    /// M45.
    #[test]
    fn a_periodic_task_goes_round() {
        let mut stage = running();
        assert!(stage.job().is_none(), "the worker has it");
        assert_eq!(stage.rest("job"), None);
        assert_eq!((stage.state(), stage.job().copied()), (TaskState::Scheduled, Some("job")));
        assert_eq!(stage.start(), Some("job"));
        assert_eq!(stage.rest("job"), None);
        assert!(matches!(stage.cancel(CancelReason::Requested), CancelOutcome::Waiting("job")));
    }
}
