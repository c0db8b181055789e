//! What the lock of a task protects: the content of its node, and beside it what only some tasks have.
//!
//! A plain task is its content and nothing else. A name, waiters, a token, a time limit, or what has
//! been asked of the task ([`control`](super::control)) live in [`Extras`], which are allocated when
//! the first of them is needed.
//!
//! The content has the type of the user's closure. A decision about a task is made by its [`Parts`], which have no such
//! type: a copy of the state, the extras, and the plan of a periodic task. [`Content::open`] takes it apart, and
//! [`Content::close`] writes back what was decided ([`Decided`]).
//!
//! All of this is protected by the task's one lock, and so it only moves values: whatever has to be
//! dropped or woken is returned, and the caller drops or wakes it after releasing the lock. The one
//! other locks that are taken under this one are the group's, and the queue's by the [`EntryMover`] that
//! [`change`](Parts::change) is passed.

use std::{task::Waker, time::Duration};

use super::{
    control::{Carried, Change, Control, change_taken, change_waiting},
    decorate::Wrapper,
    failure::FailedRun,
    gated::Gated,
    group::Effects,
    grouped::Membership,
    period::Period,
    plan::Plan,
    state::{CancelOutcome, Claimed, Stage, TaskState},
    verdict::Enqueue,
};
#[cfg(feature = "histograms")]
use crate::histogram::Recorders;
use crate::{
    CancelReason, CancellationToken, Failure, TaskError,
    entry::{EntryMover, Requeue, Timing},
    sync::{Arc, Mutex, rank},
    time::{Clock, Timestamp},
    trace::SubmitterSpan,
    wait::WaitList,
};

/// A value that lives until its task has ended. Dropping it is user code.
pub(crate) type Attachment = Box<dyn Send>;

/// The lock of a task.
pub(crate) type TaskLock<C> = Mutex<C, { rank::OUTERMOST }>;

/// What that lock protects, without the type of what is held.
pub(crate) trait Content: Send {
    /// Returns all of it that can be decided about.
    fn open(&mut self) -> Parts<'_>;

    /// Takes over what has been decided.
    fn close(&mut self, decided: Decided);
}

/// A task under its lock, apart from its closure and its result.
pub(crate) struct Parts<'a> {
    /// A copy, which is written back.
    pub(super) stage: Stage,
    extras: Option<&'a mut Extras>,
    /// The extras of a task that had none yet.
    fresh: Option<Box<Extras>>,
    /// The place of the plan, if the task is periodic. The plan is there while the closure is.
    pub(super) plan: Option<&'a mut Option<Plan>>,
}

/// What has been decided about a task.
#[must_use]
pub(crate) struct Decided {
    pub(super) stage: Stage,
    pub(super) fresh: Option<Box<Extras>>,
}

impl<'a> Parts<'a> {
    #[inline]
    pub(super) fn new(
        stage: Stage,
        extras: Option<&'a mut Extras>,
        plan: Option<&'a mut Option<Plan>>,
    ) -> Self {
        Self { stage, extras, fresh: None, plan }
    }

    #[inline]
    pub(super) fn decided(self) -> Decided {
        Decided { stage: self.stage, fresh: self.fresh }
    }
}

/// What most tasks do not have. A task with a trigger has it, so that no other is asked which clock it
/// is on.
#[derive(Default)]
pub(crate) struct Extras {
    pub(crate) name: Option<Arc<str>>,
    pub(super) token: Option<CancellationToken>,
    /// When a one-shot task has to have ended.
    limit: Option<TimeLimit>,
    /// When the present run of a periodic task has to have ended.
    pub(super) run_limit: Option<Timestamp>,
    pub(super) waiters: WaitList,
    /// The waker of the asynchronous task that awaits the future.
    pub(super) awaiting: Option<Waker>,
    /// True if no call will take the result.
    pub(super) is_abandoned: bool,
    /// True if code outside the pool holds the task and may run it.
    pub(super) is_given_away: bool,
    /// True if the task is run by hand. Then its limit, and the token with it, is left to the
    /// timer thread alone.
    pub(super) ignores_limit: bool,
    /// The code around each run; on the worker's stack while a run is under way.
    pub(crate) wrapper: Option<Wrapper>,
    pub(super) attachment: Option<Attachment>,
    pub(super) last_failure: Option<FailedRun>,
    /// Why the task has failed, until that is claimed.
    pub(super) failure: Option<Failure>,
    /// The gate that is asked before each run.
    pub(super) gate: Option<Box<Gated>>,
    /// The membership in a group.
    pub(super) group: Option<Box<Membership>>,
    /// What has been asked of the task while it was alive.
    pub(super) control: Option<Box<Control>>,
    pub(crate) observation: Observation,
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
    pub(crate) fn is_any(&self) -> bool {
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

impl Parts<'_> {
    /// Returns `true` if the task has nothing that most tasks do not have.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        self.extras.is_none() && self.fresh.is_none()
    }

    /// Returns the extras, and allocates them if the task has none yet.
    pub(super) fn extras(&mut self) -> &mut Extras {
        match &mut self.extras {
            Some(extras) => extras,
            None => self.fresh.get_or_insert_default(),
        }
    }

    #[inline]
    pub(super) fn extras_if_any(&mut self) -> Option<&mut Extras> {
        match &mut self.extras {
            Some(extras) => Some(extras),
            None => self.fresh.as_deref_mut(),
        }
    }

    /// Returns `true` if the task may run more than once.
    pub(super) fn is_periodic(&self) -> bool {
        self.plan.is_some()
    }

    /// Returns the plan of a periodic task, unless a worker has it or the task has ended.
    pub(super) fn plan(&mut self) -> Option<&mut Plan> {
        self.plan.as_deref_mut()?.as_mut()
    }

    /// Takes the plan out, with the closure.
    #[inline]
    pub(super) fn take_plan(&mut self) -> Option<Plan> {
        self.plan.as_deref_mut().and_then(Option::take)
    }

    // The time limit.

    /// Limits a task that is due at `deadline` to `budget` from then on. Returns the limit.
    pub(super) fn set_limit(&mut self, deadline: Timestamp, budget: Duration) -> Timestamp {
        let moment = deadline.after(budget);
        self.extras().limit = Some(TimeLimit { moment, budget });
        moment
    }

    /// Returns when the task has to have ended, unless it is run by hand.
    pub(super) fn limit(&mut self) -> Option<Timestamp> {
        let extras = self.extras_if_any().filter(|extras| !extras.ignores_limit)?;
        extras.limit.map(|limit| limit.moment)
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
    pub(super) fn time_out(&mut self) -> CancelOutcome {
        self.stage.cancel(CancelReason::TimedOut)
    }

    // Control.

    /// Carries out a change, unless it comes too late, which is also if `is_over` says so of the limit.
    /// Returns what came of it, and the new limit.
    pub(super) fn change(
        &mut self,
        change: Change,
        is_over: impl FnOnce(Timestamp) -> bool,
        mover: &mut dyn EntryMover,
    ) -> (Carried, Option<Timestamp>, Effects) {
        let is_impossible = !self.is_periodic() && matches!(change, Change::Schedule(..));
        let is_given_away = self.extras_if_any().is_some_and(|extras| extras.is_given_away);
        let is_too_late = self.stage.is_done() || is_given_away || self.is_called_off();
        if is_impossible || is_too_late || self.limit().is_some_and(is_over) {
            return (Carried::nothing(change), None, Effects::default());
        }
        let waits_for_turn = self.waits_for_turn();
        let mut control = self.extras_if_any().and_then(|extras| extras.control.take());
        let (called, change) = match change {
            Change::Call(now, _) => (Some(now), control.get_or_insert_default().resolve(change)),
            Change::Flush(_) => {
                (None, control.as_mut().and_then(|control| control.resolve(change)))
            }
            change => (None, Some(change)),
        };
        let changed = match change {
            None => Ok(Carried::nothing(Change::Resume)),
            Some(change) if self.stage.is_scheduled() => {
                change_waiting(self.plan(), &mut control, change, waits_for_turn, mover)
            }
            Some(change) => Err(change),
        };
        let is_taken = changed.is_err();
        let carried = match changed {
            Ok(carried) => carried,
            Err(change) if self.is_periodic() => change_taken(&mut control, change),
            Err(change) => Carried::nothing(change),
        };
        if let (Some(now), Some(control), true) = (called, &mut control, carried.had_effect) {
            control.note_call(now, is_taken);
        }
        let has_trigger = self.plan().is_some_and(|plan| plan.has_trigger());
        if control.is_some() || has_trigger {
            self.extras().control = control;
        }
        let limit = carried.plan.and_then(|plan| self.move_limit(plan));
        let effects = carried.due.map(|due| self.replan_in_group(due));
        (carried, limit, effects.unwrap_or_default())
    }

    /// Queues the task again, unless it has ended or the queue refuses it.
    #[inline]
    pub(super) fn requeue(
        &mut self,
        timing: Timing,
        why: Requeue,
        enqueue: &mut Enqueue<'_>,
    ) -> bool {
        if !self.stage.is_scheduled() {
            return false;
        }
        let Some(slot) = enqueue(timing, why) else { return false };
        self.set_slot(slot);
        true
    }

    /// Returns the deadline with which a task is queued again of which something has been asked, if its
    /// schedule says `next`.
    pub(super) fn settle(&mut self, next: Timestamp) -> Timestamp {
        let Some(control) = self.control() else { return next };
        let (deadline, leaves_wall) = control.settle(next);
        if let Some(plan) = self.plan().filter(|_| leaves_wall) {
            plan.leave_wall();
        }
        deadline
    }

    /// Gives the task, which has run, the schedule that was set while a worker had it. Returns the old one.
    pub(super) fn renew(&mut self) -> Option<Period> {
        let schedule = self.control().and_then(Control::take_schedule)?;
        Some(match self.plan() {
            Some(plan) => plan.set_schedule(schedule),
            None => schedule,
        })
    }

    /// Moves a task that waits for a moment of the wall clock to today's estimate of it. A worker that has
    /// the task does so when it has queued the task.
    pub(super) fn follow_wall(&mut self, clock: &Clock, mover: &mut dyn EntryMover) -> Effects {
        let Some(view) = self.plan().and_then(|plan| plan.view_wall(clock)) else {
            return Effects::default();
        };
        let gated = self.extras_if_any().and_then(|extras| extras.gate.as_ref());
        let unless = gated.and_then(|gated| gated.asks_again_at());
        let waits_for_turn = self.waits_for_turn();
        let mut control = self.extras_if_any().and_then(|extras| extras.control.take());
        let change = Change::Estimate { moment: view.deadline(), unless };
        let changed = change_waiting(self.plan(), &mut control, change, waits_for_turn, mover);
        // If a worker has the task, it estimates the moment again.
        let due = changed.ok().and_then(|carried| carried.due);
        self.extras().control = control;
        due.map(|due| self.replan_in_group(due)).unwrap_or_default()
    }

    pub(super) fn control(&mut self) -> Option<&mut Control> {
        self.extras_if_any().and_then(|extras| extras.control.as_deref_mut())
    }

    /// Returns the slot of the queue, if it has changed since the task was submitted.
    pub(super) fn slot(&mut self) -> Option<u32> {
        let moved = self.control().and_then(|control| control.slot);
        self.plan().and_then(|plan| plan.slot).or(moved)
    }

    /// Notes the slot of the queue in which the task is.
    pub(super) fn set_slot(&mut self, slot: u32) {
        match self.plan() {
            Some(plan) => plan.slot = Some(slot),
            None => self.extras().control.get_or_insert_default().slot = Some(slot),
        }
    }

    pub(super) fn state(&mut self) -> TaskState {
        match self.stage.state() {
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

    /// Returns `true` if no call will take the result.
    pub(super) fn is_abandoned(&mut self) -> bool {
        self.extras_if_any().is_some_and(|extras| extras.is_abandoned)
    }

    /// Has the result taken, which is the caller's to move if there is one; `None` if the task has not ended.
    ///
    /// # Errors
    ///
    /// Why there is no result.
    #[inline]
    pub(super) fn claim(&mut self) -> Option<Result<(), TaskError>> {
        Some(match self.stage.claim()? {
            Claimed::Value => Ok(()),
            Claimed::Failure => {
                let failure = self.extras_if_any().and_then(|extras| extras.failure.take());
                Err(failure.map_or(TaskError::ResultTaken, TaskError::Failed))
            }
            Claimed::Error(error) => Err(error),
        })
    }
}
