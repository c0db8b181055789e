//! The cell: the state of a task, alone or together with what only some tasks have.
//!
//! A plain task is its [`Stage`] and nothing else. A name, waiters, a token or a time limit live in
//! [`Full`], which is allocated when the first of them is needed; the stage then moves there too.
//!
//! All of this is under the task's one lock. So the cell only moves values: whatever has to be
//! dropped or woken is handed out, and the caller does it after releasing the lock.

use std::task::Waker;

use super::{
    Job,
    decorate::Wrapper,
    failure::FailedRun,
    state::{Cancel, Stage},
};
use crate::{
    CancelReason, CancellationToken, TaskError, sync::Arc, time::Timestamp, wait::WaitList,
};

/// What goes with a task to its end: dropping it is user code.
pub(crate) type Companion = Box<dyn Send>;

/// The state of a task, alone or with more.
pub(super) enum Cell<J: Job> {
    Plain(Stage<J, J::Output>),
    Full(Box<Full<J>>),
}

/// The state of a task that has what most do not have.
pub(super) struct Full<J: Job> {
    stage: Stage<J, J::Output>,
    limit: Option<Limit<J::Output>>,
    more: More,
}

/// By when a one-shot task has to have ended.
pub(crate) struct Limit<T> {
    pub(crate) at: Timestamp,
    /// What it ends with if it has not; without a value it ends as timed out.
    pub(crate) value: Option<T>,
}

#[derive(Default)]
pub(super) struct More {
    pub(super) name: Option<Arc<str>>,
    pub(super) token: Option<CancellationToken>,
    /// By when the present run of a periodic task has to have ended.
    pub(super) run_limit: Option<Timestamp>,
    pub(super) waiters: WaitList,
    /// Who awaits the future.
    pub(super) awaiting: Option<Waker>,
    /// Nobody will claim the result.
    pub(super) abandoned: bool,
    /// Somebody outside the pool holds the task and may run it.
    pub(super) is_given_away: bool,
    /// The task is run by hand: only the timer thread watches its time limit, also for its token.
    pub(super) ignores_limit: bool,
    /// What is called around each run; on the worker's stack while one is under way.
    pub(super) wrapper: Option<Wrapper>,
    pub(super) companion: Option<Companion>,
    pub(super) last_failure: Option<FailedRun>,
}

/// What is left over when a task has ended, apart from its job. All of it is foreign.
pub(super) struct Left<T> {
    pub(super) waiters: Vec<Waker>,
    pub(super) wrapper: Option<Wrapper>,
    pub(super) companion: Option<Companion>,
    /// The value for the case that the time limit had been exceeded.
    pub(super) value: Option<T>,
    pub(super) token: Option<CancellationToken>,
}

impl<T> Default for Left<T> {
    fn default() -> Self {
        Self { waiters: Vec::new(), wrapper: None, companion: None, value: None, token: None }
    }
}

impl<J: Job> Cell<J> {
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
            Self::Full(full) => &mut full.stage,
        }
    }

    /// What most tasks do not have; made now if this one has not.
    pub(super) fn more(&mut self) -> &mut More {
        &mut self.full().more
    }

    pub(super) fn more_if_any(&mut self) -> Option<&mut More> {
        match self {
            Self::Plain(_) => None,
            Self::Full(full) => Some(&mut full.more),
        }
    }

    #[inline(never)]
    fn full(&mut self) -> &mut Full<J> {
        if let Self::Plain(stage) = self {
            let stage = std::mem::replace(stage, Stage::Running);
            *self = Self::Full(Box::new(Full { stage, limit: None, more: More::default() }));
        }
        match self {
            Self::Full(full) => full,
            Self::Plain(_) => unreachable!("it has just been made full"),
        }
    }

    // The time limit.

    pub(super) fn set_limit(&mut self, limit: Limit<J::Output>) {
        self.full().limit = Some(limit);
    }

    /// By when the task has to have ended, if whoever runs it keeps to that.
    pub(super) fn limit(&self) -> Option<Timestamp> {
        match self {
            Self::Full(full) if !full.more.ignores_limit => full.limit.as_ref().map(|l| l.at),
            _ => None,
        }
    }

    /// The value for the case that the limit is exceeded.
    pub(super) fn take_limit_value(&mut self) -> Option<J::Output> {
        match self {
            Self::Plain(_) => None,
            Self::Full(full) => full.limit.as_mut().and_then(|limit| limit.value.take()),
        }
    }

    /// The time is up: the task ends with the value given for that, or as timed out, unless it has
    /// ended. A task that has ended has handed its value out already.
    pub(super) fn time_out(&mut self) -> Cancel<J> {
        let Some(value) = self.take_limit_value() else {
            return self.stage().cancel(CancelReason::TimedOut);
        };
        match self.stage().settle(value) {
            Ok(settled) => settled,
            Err(_) => unreachable!("a task that has ended keeps no value"),
        }
    }

    // The end.

    /// Whether the task itself, or a holder of its token, has asked it to stop.
    pub(super) fn is_called_off(&mut self) -> bool {
        let token = self.more_if_any().and_then(|more| more.token.as_ref());
        token.is_some_and(CancellationToken::is_raised_itself)
    }

    /// The result that has just come, if nobody will claim it.
    pub(super) fn unclaimed(&mut self) -> Option<Result<J::Output, TaskError>> {
        let is_abandoned = self.more_if_any().is_some_and(|more| more.abandoned);
        if is_abandoned { self.stage().claim() } else { None }
    }

    /// The task has ended: what is left over, to be released without the lock.
    pub(super) fn end(&mut self) -> Left<J::Output> {
        let value = self.take_limit_value();
        let Some(more) = self.more_if_any() else { return Left { value, ..Left::default() } };
        let mut waiters = more.waiters.take();
        waiters.extend(more.awaiting.take());
        let (wrapper, companion) = (more.wrapper.take(), more.companion.take());
        Left { waiters, wrapper, companion, value, token: more.token.clone() }
    }
}
