//! The state of a task, and beside it what only some tasks have.
//!
//! A plain task is its [`Stage`] and nothing else. A name, waiters, a token or a time limit live in
//! [`Extended`], which is allocated when the first of them is needed; the stage then moves there
//! too.
//!
//! All of this is protected by the task's one lock, and so it only moves values: whatever has to be
//! dropped or woken is returned, and the caller drops or wakes it after releasing the lock.

use std::task::Waker;

use super::{
    Job,
    decorate::Wrapper,
    failure::FailedRun,
    state::{CancelOutcome, Stage},
};
use crate::{
    CancelReason, CancellationToken, TaskError, sync::Arc, time::Timestamp, wait::WaitList,
};

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
            let stage = std::mem::replace(stage, Stage::Running);
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
