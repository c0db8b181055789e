//! What the lock of a task protects: its state, and beside it what only some tasks have.
//!
//! The states, and the only moves between them:
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
//!
//! # What only some tasks have
//!
//! A plain task is its [`Stage`] and nothing else. A name, waiters, a token or a time limit live in
//! [`Extended`], which is allocated when the first of them is needed; the stage then moves there
//! too.
//!
//! All of this is protected by the task's one lock, and so it only moves values: whatever has to be
//! dropped or woken is returned, and the caller drops or wakes it after releasing the lock.

use std::{mem, task::Waker};

use super::{Job, decorate::Wrapper, failure::FailedRun};
use crate::{
    CancelReason, CancellationToken, Failure, TaskError, sync::Arc, time::Timestamp, wait::WaitList,
};

/// The state of a task; from [`ScheduledFuture::state`](crate::ScheduledFuture::state). Java:
/// `Future.State`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TaskState {
    /// The task waits until it is due, or for a worker. A periodic task is also in this state
    /// between its runs.
    Scheduled,
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
        !matches!(self, Self::Scheduled | Self::Running)
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
    /// meanwhile, so that none will come.
    pub(super) fn rest(&mut self, job: J) -> Option<J> {
        if !self.body_returns() {
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
    fn body_returns(&mut self) -> bool {
        if let Self::Cancelled { body_runs, .. } = self {
            *body_runs = false;
        }
        matches!(self, Self::Running)
    }

    /// Returns `true` if the task was cancelled and its body still runs.
    pub(super) fn runs_on(&self) -> bool {
        matches!(self, Self::Cancelled { body_runs: true, .. })
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

/// A value that lives until its task has ended. Dropping it is user code.
pub(crate) type Attachment = Box<dyn Send>;

/// What the lock of a task protects: its state, alone or with extras.
pub(super) enum TaskCell<J: Job> {
    Plain(Stage<J, J::Output>),
    Extended(Box<Extended<J>>),
}

/// The state of a task together with what most tasks do not have.
pub(super) struct Extended<J: Job> {
    stage: Stage<J, J::Output>,
    extras: Extras,
}

/// What most tasks do not have.
#[derive(Default)]
pub(super) struct Extras {
    pub(super) name: Option<Arc<str>>,
    pub(super) token: Option<CancellationToken>,
    /// When a one-shot task has to have ended.
    limit: Option<Timestamp>,
    /// When the present run of a periodic task has to have ended.
    pub(super) run_limit: Option<Timestamp>,
    pub(super) waiters: WaitList,
    /// The waker of the asynchronous task that awaits the future.
    pub(super) awaiting: Option<Waker>,
    /// True if nobody will claim the result.
    pub(super) is_abandoned: bool,
    /// True if somebody outside the pool holds the task and may run it.
    pub(super) is_given_away: bool,
    /// True if the task is run by hand. Then its limit, and the token with it, is left to the
    /// timer thread alone.
    pub(super) ignores_limit: bool,
    /// The code around each run; on the worker's stack while a run is under way.
    pub(super) wrapper: Option<Wrapper>,
    pub(super) attachment: Option<Attachment>,
    pub(super) last_failure: Option<FailedRun>,
}

/// What a task leaves when it ends, apart from its job. All of it is the user's.
#[derive(Default)]
pub(super) struct Leftovers {
    pub(super) waiters: Vec<Waker>,
    pub(super) wrapper: Option<Wrapper>,
    pub(super) attachment: Option<Attachment>,
    pub(super) token: Option<CancellationToken>,
}

impl<J: Job> TaskCell<J> {
    #[inline]
    pub(super) fn new(job: J) -> Self {
        Self::Plain(Stage::Scheduled(job))
    }

    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        matches!(self, Self::Plain(_))
    }

    pub(super) fn stage(&mut self) -> &mut Stage<J, J::Output> {
        match self {
            Self::Plain(stage) => stage,
            Self::Extended(extended) => &mut extended.stage,
        }
    }

    /// Returns the extras, and allocates them if the task has none yet.
    pub(super) fn extras(&mut self) -> &mut Extras {
        &mut self.extend().extras
    }

    pub(super) fn extras_if_any(&mut self) -> Option<&mut Extras> {
        match self {
            Self::Plain(_) => None,
            Self::Extended(extended) => Some(&mut extended.extras),
        }
    }

    #[inline(never)]
    fn extend(&mut self) -> &mut Extended<J> {
        if let Self::Plain(stage) = self {
            let stage = mem::replace(stage, Stage::Running);
            let extended = Extended { stage, extras: Extras::default() };
            *self = Self::Extended(Box::new(extended));
        }
        match self {
            Self::Extended(extended) => extended,
            Self::Plain(_) => unreachable!("it has just been extended"),
        }
    }

    // The time limit.

    pub(super) fn set_limit(&mut self, limit: Timestamp) {
        self.extras().limit = Some(limit);
    }

    /// Returns when the task has to have ended, unless it is run by hand.
    pub(super) fn limit(&self) -> Option<Timestamp> {
        match self {
            Self::Extended(extended) if !extended.extras.ignores_limit => extended.extras.limit,
            _ => None,
        }
    }

    /// Ends the task because its limit is exceeded, unless it has ended.
    pub(super) fn time_out(&mut self) -> CancelOutcome<J> {
        self.stage().cancel(CancelReason::TimedOut)
    }

    // The end.

    /// Returns `true` if the task itself, or a holder of its token, has asked it to stop.
    pub(super) fn is_called_off(&mut self) -> bool {
        let token = self.extras_if_any().and_then(|extras| extras.token.as_ref());
        token.is_some_and(CancellationToken::is_raised_itself)
    }

    /// Takes the result that has just been published, if nobody will claim it.
    pub(super) fn unclaimed(&mut self) -> Option<Result<J::Output, TaskError>> {
        let is_abandoned = self.extras_if_any().is_some_and(|extras| extras.is_abandoned);
        if is_abandoned { self.stage().claim() } else { None }
    }

    /// Takes what a task that has ended leaves, for the caller to release without the lock.
    pub(super) fn take_leftovers(&mut self) -> Leftovers {
        let Some(extras) = self.extras_if_any() else { return Leftovers::default() };
        let mut waiters = extras.waiters.take();
        waiters.extend(extras.awaiting.take());
        let (wrapper, attachment) = (extras.wrapper.take(), extras.attachment.take());
        Leftovers { waiters, wrapper, attachment, token: extras.token.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{hooks::Invocation, job::RunOutcome},
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
        assert!(stage.finish(Err(Failure::of_text("no"))).is_none());
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
        assert_eq!(stage.rest("job"), Some("job"));
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
