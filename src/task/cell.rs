//! What the lock of a task protects: its state, and beside it what only some tasks have.
//!
//! A plain task is its [`Stage`] and nothing else. A name, waiters, a token, a time limit, or what has
//! been asked of the task ([`control`](super::control)) live in [`Extended`], which is allocated when
//! the first of them is needed; the stage then moves there too.
//!
//! All of this is protected by the task's one lock, and so it only moves values: whatever has to be
//! dropped or woken is returned, and the caller drops or wakes it after releasing the lock. The one
//! other lock that is taken under this one is the queue's, by the function that
//! [`change`](TaskCell::change) is passed to move the task's entry.

use std::{mem, task::Waker, time::Duration};

use super::{
    Job,
    control::{Carried, Change, Control, MoveEntry, change_taken, change_waiting},
    decorate::Wrapper,
    failure::FailedRun,
    gated::Gated,
    group::Effects,
    grouped::{Comeback, Membership},
    period::Period,
    runnable::Enqueue,
    state::{CancelOutcome, Stage, TaskState},
};
#[cfg(feature = "histograms")]
use crate::histogram::Recorders;
use crate::{
    CancelReason, CancellationToken, TaskError,
    gate::RunGate,
    sync::Arc,
    time::{Clock, Timestamp, Timing},
    trace::SubmitterSpan,
    wait::WaitList,
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

/// What most tasks do not have. A task with a trigger has it, so that no other is asked which clock it
/// is on.
#[derive(Default)]
pub(super) struct Extras {
    pub(super) name: Option<Arc<str>>,
    pub(super) token: Option<CancellationToken>,
    /// When a one-shot task has to have ended.
    limit: Option<TimeLimit>,
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
    /// The gate that is asked before each run.
    pub(super) gate: Option<Box<Gated>>,
    /// The membership in a group.
    pub(super) group: Option<Box<Membership>>,
    /// What has been asked of the task while it was alive.
    pub(super) control: Option<Box<Control>>,
    pub(super) observation: Observation,
}

/// The observation of one task, from its submission on.
#[derive(Default)]
pub(crate) struct Observation {
    /// The span in which it was submitted.
    pub(crate) submitter: Option<SubmitterSpan>,
    /// Where its runs are recorded, if that is not the worker's own recorder.
    #[cfg(feature = "histograms")]
    pub(crate) recorders: Option<Arc<Recorders>>,
}

impl Observation {
    pub(super) fn is_any(&self) -> bool {
        let is_any = self.submitter.is_some();
        #[cfg(feature = "histograms")]
        let is_any = is_any || self.recorders.is_some();
        is_any
    }
}

/// Until when a task that runs once has to have ended.
#[derive(Clone, Copy)]
struct TimeLimit {
    moment: Timestamp,
    /// The time that it has from when it is due.
    budget: Duration,
}

/// What a task leaves when it ends, apart from its job. All of it is the user's.
#[derive(Default)]
pub(super) struct Leftovers {
    pub(super) waiters: Vec<Waker>,
    pub(super) wrapper: Option<Wrapper>,
    pub(super) attachment: Option<Attachment>,
    pub(super) gate: Option<Arc<dyn RunGate>>,
    pub(super) submitter: Option<SubmitterSpan>,
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

    /// Limits a task that is due at `deadline` to `budget` from then on. Returns the limit.
    pub(super) fn set_limit(&mut self, deadline: Timestamp, budget: Duration) -> Timestamp {
        let moment = deadline.after(budget);
        self.extras().limit = Some(TimeLimit { moment, budget });
        moment
    }

    /// Returns when the task has to have ended, unless it is run by hand.
    pub(super) fn limit(&self) -> Option<Timestamp> {
        match self {
            Self::Extended(extended) if !extended.extras.ignores_limit => {
                extended.extras.limit.map(|limit| limit.moment)
            }
            _ => None,
        }
    }

    /// Moves the limit, if there is one, with the moment when the task is due. Returns the limit.
    fn move_limit(&mut self, plan: Timestamp) -> Option<Timestamp> {
        let limit = self.extras_if_any()?.limit?;
        Some(self.set_limit(plan, limit.budget))
    }

    /// Returns `true` if the task has another limit than this one.
    pub(super) fn has_another_limit(&mut self, moment: Timestamp) -> bool {
        let limit = self.extras_if_any().and_then(|extras| extras.limit);
        limit.is_some_and(|limit| limit.moment != moment)
    }

    /// Ends the task because its limit is exceeded, unless it has ended.
    pub(super) fn time_out(&mut self) -> CancelOutcome<J> {
        self.stage().cancel(CancelReason::TimedOut)
    }

    // Control.

    /// Carries out a change, unless it comes too late, which is also if `is_over` says so of the limit.
    /// Returns what came of it, and the new limit.
    pub(super) fn change(
        &mut self,
        change: Change,
        is_over: impl FnOnce(Timestamp) -> bool,
        move_entry: &mut MoveEntry<'_>,
    ) -> (Carried, Option<Timestamp>, Effects) {
        let is_impossible = !J::IS_PERIODIC && matches!(change, Change::Schedule(..));
        let is_given_away = self.extras_if_any().is_some_and(|extras| extras.is_given_away);
        let is_too_late = self.stage().is_done() || is_given_away || self.is_called_off();
        if is_impossible || is_too_late || self.limit().is_some_and(is_over) {
            return (Carried::nothing(change), None, Effects::default());
        }
        let mut control = self.extras_if_any().and_then(|extras| extras.control.take());
        let (called, change) = match change {
            Change::Call(now, _) => (Some(now), control.get_or_insert_default().resolve(change)),
            Change::Flush(_) => {
                (None, control.as_mut().and_then(|control| control.resolve(change)))
            }
            change => (None, Some(change)),
        };
        let changed = match (self.stage().job(), change) {
            (_, None) => Ok(Carried::nothing(Change::Resume)),
            (Some(job), Some(change)) => change_waiting(job, &mut control, change, move_entry),
            (None, Some(change)) => Err(change),
        };
        let is_taken = changed.is_err();
        let carried = match changed {
            Ok(carried) => carried,
            Err(change) if J::IS_PERIODIC => change_taken(&mut control, change),
            Err(change) => Carried::nothing(change),
        };
        if let (Some(now), Some(control), true) = (called, &mut control, carried.had_effect) {
            control.note_call(now, is_taken);
        }
        let has_trigger = self.stage().job().is_some_and(|job| job.has_trigger());
        if control.is_some() || has_trigger {
            self.extras().control = control;
        }
        let limit = carried.plan.and_then(|plan| self.move_limit(plan));
        let effects = carried.due.map(|due| self.replan_in_group(due));
        (carried, limit, effects.unwrap_or_default())
    }

    /// Queues the task again, unless it has ended or the queue refuses it.
    #[inline]
    pub(super) fn rearm(
        &mut self,
        timing: Timing,
        how: Comeback,
        enqueue: &mut Enqueue<'_>,
    ) -> bool {
        let Some(job) = self.stage().job() else { return false };
        let Some(slot) = enqueue(timing, how) else { return false };
        if J::IS_PERIODIC {
            job.set_slot(slot);
        } else {
            self.set_slot(slot);
        }
        true
    }

    /// Returns the deadline with which a task is queued again of which something has been asked, if its
    /// schedule says `next`.
    pub(super) fn settle(&mut self, next: Timestamp) -> Timestamp {
        let Some(control) = self.control() else { return next };
        let (deadline, leaves_wall) = control.settle(next);
        if let Some(job) = self.stage().job().filter(|_| leaves_wall) {
            job.leave_plan();
        }
        deadline
    }

    /// Gives the task, which has run, the schedule that was set while a worker had it. Returns the old one.
    pub(super) fn renew(&mut self) -> Option<Period> {
        let schedule = self.control().and_then(Control::take_schedule)?;
        match self.stage().job() {
            Some(job) => job.set_schedule(schedule),
            None => Some(schedule),
        }
    }

    /// Moves a task that waits for a moment of the wall clock to today's estimate of it. A worker that has
    /// the task does so when it has queued the task.
    pub(super) fn follow_wall(&mut self, clock: &Clock, move_entry: &mut MoveEntry<'_>) -> Effects {
        let Some(view) = self.stage().job().and_then(|job| job.view_wall(clock)) else {
            return Effects::default();
        };
        let gated = self.extras_if_any().and_then(|extras| extras.gate.as_ref());
        let unless = gated.and_then(|gated| gated.asks_again_at());
        let mut control = self.extras_if_any().and_then(|extras| extras.control.take());
        let mut due = None;
        if let Some(job) = self.stage().job() {
            let change = Change::Estimate { moment: view.deadline(), unless };
            match change_waiting(job, &mut control, change, move_entry) {
                Ok(carried) => due = carried.due,
                Err(change) => debug_assert!(matches!(change, Change::Estimate { .. })),
            }
        }
        self.extras().control = control;
        due.map(|due| self.replan_in_group(due)).unwrap_or_default()
    }

    pub(super) fn control(&mut self) -> Option<&mut Control> {
        self.extras_if_any().and_then(|extras| extras.control.as_deref_mut())
    }

    /// Returns the slot of the queue, if it has changed since the task was submitted.
    pub(super) fn slot(&mut self) -> Option<u32> {
        let moved = self.control().and_then(|control| control.slot);
        self.stage().job().and_then(|job| job.slot()).or(moved)
    }

    pub(super) fn state(&mut self) -> TaskState {
        match self.stage().state() {
            TaskState::Scheduled if self.control().is_some_and(|control| control.is_paused()) => {
                TaskState::Paused
            }
            state => state,
        }
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
        let gate = extras.gate.take().map(|gated| gated.into_gate());
        let (submitter, token) = (extras.observation.submitter.take(), extras.token.clone());
        Leftovers { waiters, wrapper, attachment, gate, submitter, token }
    }
}
