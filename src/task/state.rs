//! The states of a task, and the only moves between them.
//!
//! ```text
//!                 start                    finish
//!   ──▶ Scheduled ─────▶ Running ──────────────────▶ Completed │ Panicked ──┐ claim
//!         │    ▲           │   │                                            ▼
//!         │    │ rearm     │   │ rest (periodic)                         Claimed
//!         │    └────────── │ ◀─┘ Resting
//!         │                │        │
//!         └──── cancel ────┴────────┴──▶ Cancelled
//!                (settle: the same, to Completed)
//! ```
//!
//! * **Scheduled**: the closure is here; the task is in the queue, or a worker has just taken it
//!   out.
//! * **Running**: the closure is on a worker's stack.
//! * **Resting**: a periodic task between two runs; the closure is here, the queue has not been
//!   asked yet.
//! * **Completed, Panicked, Cancelled**: final. `Claimed` is what a final state becomes when the
//!   result has been taken.
//!
//! This file only decides. Each move takes `&mut`, so it is made under the task's lock, and
//! gives back what has to be *done* about it, which the caller does after the lock is released.
//!
//! # Who drops the closure when cancel and run race
//!
//! Whoever takes it out of the state. The lock orders the two: if `cancel` comes first it finds
//! the closure, takes it and drops it, and `start` finds nothing to run. If `start` comes first
//! it has taken the closure; `cancel` marks the task, which is over for everyone who waits, and
//! the worker, when the body returns, finds the mark and drops closure and result itself. Until
//! then the task is known to [run on](Stage::runs_on), so that its body can still be signalled.

use super::Job;
use crate::{CancelReason, Panic, TaskError};

/// Where a task is; as seen by [`ScheduledFuture::state`](crate::ScheduledFuture::state).
/// Answers to Java's `Future.State`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TaskState {
    /// Waits to become due, or for a worker; a periodic task also between its runs.
    Scheduled,
    /// Runs now.
    Running,
    /// Ended with a result.
    Completed,
    /// Ended with a panic.
    Panicked,
    /// Was cancelled. The body may still be running if it had begun.
    Cancelled,
}

impl TaskState {
    /// Whether the task has ended, however it did.
    #[must_use]
    pub fn is_done(self) -> bool {
        !matches!(self, Self::Scheduled | Self::Running)
    }
}

/// Where a task is, with what it holds there: `J` the job, `T` its result.
pub(super) enum Stage<J, T> {
    Scheduled(J),
    Running,
    Resting(J),
    Completed(T),
    Panicked(Panic),
    Cancelled { reason: CancelReason, body_runs: bool },
    Claimed { panicked: bool },
}

/// How a run ended, for good.
pub(super) type Ending<T> = Result<T, Panic>;

/// What became of a call to [`Stage::cancel`].
#[must_use]
pub(super) enum Cancel<J> {
    /// It had ended before.
    TooLate,
    /// It is over, and this is what will not run any more.
    Waiting(J),
    /// It is over, and the worker that runs it will drop what is left.
    Running,
}

impl<J, T> Stage<J, T> {
    /// A worker wants to run the task. Nothing if it was cancelled meanwhile.
    pub(super) fn start(&mut self) -> Option<J> {
        match self {
            Self::Scheduled(_) => self.take_job(Self::Running),
            _ => None,
        }
    }

    /// The run is over, and so is the task. Gives the ending back if nobody is to have it: the
    /// task was cancelled meanwhile.
    pub(super) fn finish(&mut self, ending: Ending<T>) -> Option<Ending<T>> {
        if !self.body_returns() {
            return Some(ending);
        }
        *self = match ending {
            Ok(value) => Self::Completed(value),
            Err(panic) => Self::Panicked(panic),
        };
        None
    }

    /// The run is over, another is to come. Gives the job back if it is not to come: the task
    /// was cancelled meanwhile.
    pub(super) fn rest(&mut self, job: J) -> Option<J> {
        if !self.body_returns() {
            return Some(job);
        }
        *self = Self::Resting(job);
        None
    }

    /// The body has returned. Whether the task is still its worker's: it was not ended meanwhile.
    fn body_returns(&mut self) -> bool {
        if let Self::Cancelled { body_runs, .. } = self {
            *body_runs = false;
        }
        matches!(self, Self::Running)
    }

    /// Whether the task was cancelled and its body still runs.
    pub(super) fn runs_on(&self) -> bool {
        matches!(self, Self::Cancelled { body_runs: true, .. })
    }

    /// Whether there is a next run to be queued.
    pub(super) fn is_resting(&self) -> bool {
        matches!(self, Self::Resting(_))
    }

    /// The queue has taken the task back, into this slot.
    pub(super) fn rearm(&mut self, slot: u32)
    where
        J: Job,
    {
        if let Some(mut job) = self.take_job(Self::Running) {
            job.set_slot(slot);
            *self = Self::Scheduled(job);
        }
    }

    /// The job, if it is here.
    pub(super) fn job(&self) -> Option<&J> {
        match self {
            Self::Scheduled(job) | Self::Resting(job) => Some(job),
            _ => None,
        }
    }

    /// Somebody wants the task not to run, or not again.
    pub(super) fn cancel(&mut self, reason: CancelReason) -> Cancel<J> {
        let body_runs = matches!(self, Self::Running);
        self.end_as(Self::Cancelled { reason, body_runs }).unwrap_or(Cancel::TooLate)
    }

    /// Somebody wants the task to have this value, and not to run for it. Gives the value back if
    /// the task had ended before.
    pub(super) fn settle(&mut self, value: T) -> Result<Cancel<J>, T> {
        self.end_as(Self::Completed(value)).map_err(|ending| match ending {
            Self::Completed(value) => value,
            _ => unreachable!("it is what was put in"),
        })
    }

    fn end_as(&mut self, ending: Self) -> Result<Cancel<J>, Self> {
        if self.state().is_done() {
            return Err(ending);
        }
        Ok(match self.take_job(ending) {
            Some(job) => Cancel::Waiting(job),
            None => Cancel::Running,
        })
    }

    /// Somebody wants the result. Nothing if there is none yet.
    pub(super) fn claim(&mut self) -> Option<Result<T, TaskError>> {
        let panicked = match self {
            Self::Scheduled(_) | Self::Running | Self::Resting(_) => return None,
            Self::Cancelled { reason, .. } => return Some(Err(TaskError::Cancelled(*reason))),
            Self::Claimed { .. } => return Some(Err(TaskError::ResultTaken)),
            Self::Completed(_) => false,
            Self::Panicked(_) => true,
        };
        match std::mem::replace(self, Self::Claimed { panicked }) {
            Self::Completed(value) => Some(Ok(value)),
            Self::Panicked(panic) => Some(Err(TaskError::Panicked(panic))),
            _ => None,
        }
    }

    pub(super) fn state(&self) -> TaskState {
        match self {
            Self::Scheduled(_) | Self::Resting(_) => TaskState::Scheduled,
            Self::Running => TaskState::Running,
            Self::Completed(_) | Self::Claimed { panicked: false } => TaskState::Completed,
            Self::Panicked(_) | Self::Claimed { panicked: true } => TaskState::Panicked,
            Self::Cancelled { .. } => TaskState::Cancelled,
        }
    }

    /// Moves to `next`; gives back the job, if it was here.
    fn take_job(&mut self, next: Self) -> Option<J> {
        match std::mem::replace(self, next) {
            Self::Scheduled(job) | Self::Resting(job) => Some(job),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Run, Wrapper, job::Ran},
        *,
    };
    use crate::time::Timestamp;

    type Subject = Stage<&'static str, i32>;

    impl Job for &'static str {
        type Output = i32;

        const IS_PERIODIC: bool = true;

        fn run(self, _: &Run, _: Option<&mut Wrapper>) -> Ran<Self> {
            unreachable!("nothing is run here")
        }

        fn slot(&self) -> Option<u32> {
            None
        }

        fn set_slot(&mut self, _: u32) {}

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
        assert!(stage.finish(Err(Panic::new((Box::new("no"), None)))).is_none());
        assert!(matches!(stage.claim(), Some(Err(TaskError::Panicked(_)))));
        assert_eq!(stage.state(), TaskState::Panicked);
    }

    /// M42, M48.
    #[test]
    fn cancelling_a_waiting_task_hands_out_its_job() {
        let mut stage = Subject::Scheduled("job");
        assert!(matches!(stage.cancel(CancelReason::Requested), Cancel::Waiting("job")));
        assert_eq!(stage.start(), None);
        assert!(matches!(stage.cancel(CancelReason::Shutdown), Cancel::TooLate));
        for _ in 0..2 {
            let claim = stage.claim();
            assert!(matches!(claim, Some(Err(TaskError::Cancelled(CancelReason::Requested)))));
        }
    }

    /// F31, M43, M44: a task that is cancelled while it runs is over at once, and what the worker
    /// brings back is not kept.
    #[test]
    fn cancelling_a_running_task_leaves_the_rest_to_the_worker() {
        let mut stage = running();
        assert!(matches!(stage.cancel(CancelReason::Requested), Cancel::Running));
        assert_eq!(stage.state(), TaskState::Cancelled);
        assert!(stage.runs_on());
        assert!(matches!(stage.finish(Ok(7)), Some(Ok(7))));
        assert!(!stage.runs_on());
        assert_eq!(stage.rest("job"), Some("job"));
        assert!(!stage.is_resting());
        assert_eq!(stage.state(), TaskState::Cancelled);
    }

    /// M50.
    #[test]
    fn a_value_that_comes_too_late_is_given_back() {
        let mut stage = Subject::Scheduled("job");
        assert!(matches!(stage.settle(7), Ok(Cancel::Waiting("job"))));
        assert!(matches!(stage.settle(8), Err(8)));
        assert!(matches!(stage.claim(), Some(Ok(7))));
        let mut stage = running();
        assert!(matches!(stage.settle(7), Ok(Cancel::Running)));
        assert!(matches!(stage.finish(Ok(8)), Some(Ok(8))));
        assert_eq!(stage.state(), TaskState::Completed);
    }

    /// M45.
    #[test]
    fn a_periodic_task_goes_round() {
        let mut stage = running();
        assert_eq!(stage.job(), None, "the worker has it");
        assert_eq!(stage.rest("job"), None);
        assert!(stage.is_resting());
        assert_eq!((stage.state(), stage.job()), (TaskState::Scheduled, Some(&"job")));
        stage.rearm(7);
        assert!(!stage.is_resting());
        assert_eq!(stage.start(), Some("job"));
        assert_eq!(stage.rest("job"), None);
        assert!(matches!(stage.cancel(CancelReason::Requested), Cancel::Waiting("job")));
    }
}
