//! A task in a [group](super::group): what it knows of its membership, and what it tells the group.
//!
//! The membership is with what only some tasks have ([`cell`](super::cell)), and is protected by the task's lock. The
//! group has a lock of its own, which is taken under that of the task. So the group knows of a step of the task as soon as
//! anybody can see it: that it starts, comes back, is due at another moment, or has ended.
//!
//! What the group wants to have done about *other* tasks ([`Effects`]) is done after the task's lock has been
//! released.
//!
//! # When a permit is released
//!
//! In two places. A member that will be queued again gives its permit back in the step that queues it
//! ([`TaskCell::come_back`]), whether it has run, or its gate has skipped the run or put it off. Every other member
//! leaves ([`TaskCell::leave_group`]) in the step in which its end becomes visible, but not while its body still runs: one
//! that was cancelled meanwhile leaves when the body has returned.

use super::{
    Job, Run, Runnable, Task, TaskState, Verdict,
    cell::TaskCell,
    control::{Control, MoveEntry},
    group::{Effects, Ended, Entrant, GroupState, Queued, Turn},
    job::RunOutcome,
};
use crate::{
    CancelReason,
    sync::{Arc, Weak},
    time::{Timestamp, Timing},
};

/// The membership of a task in a group.
pub(crate) struct Membership {
    group: Arc<GroupState>,
    /// The sequence of the task, once it has entered.
    sequence: Option<u64>,
    has_left: bool,
    /// The run for which a worker has taken the task, if the worker has been told to put it back.
    refused: Option<Timestamp>,
    /// When the task is due, if that was changed before it entered.
    replanned: Option<Timestamp>,
}

/// How a task comes back into the queue that a worker has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comeback {
    /// A periodic task, between two runs.
    Recurring,
    /// A task that runs once, and was put off.
    PutOff,
    /// A task that runs once: it is due, and has to wait for its group.
    Waiting,
    /// The same for a periodic task.
    WaitingSeries,
}

impl Comeback {
    pub(super) fn of<J: Job>() -> Self {
        if J::IS_PERIODIC { Self::Recurring } else { Self::PutOff }
    }

    /// Returns how a task comes back that is due and has to wait.
    fn to_wait<J: Job>() -> Self {
        if J::IS_PERIODIC { Self::WaitingSeries } else { Self::Waiting }
    }
}

/// A task that may be in a group, as the pool sees it.
pub(crate) trait InGroup {
    /// Enters the group of the task, which has been put into the queue. Returns why it has to end, if it
    /// came too late.
    fn enter_group(
        &self,
        own: Weak<dyn Runnable>,
        place: (u64, u32),
        due: Timestamp,
        is_delayed: bool,
    ) -> Option<CancelReason>;

    /// Has the task leave its group: it is not part of the schedule any more.
    fn leave_group(&self);

    /// Has the task be held no longer. `move_entry` is called under the task's lock.
    fn let_go(&self, move_entry: &mut MoveEntry<'_>);

    /// Returns when the task is due, if its group holds it.
    fn held_until(&self) -> Option<Timestamp>;

    /// Returns the group of a task that has entered it and has not left, and its sequence.
    fn group(&self) -> Option<(Arc<GroupState>, u64)>;

    /// Returns the group of a task that has not left it, whether it has entered it already or not.
    fn own_group(&self) -> Option<Arc<GroupState>>;

    /// Returns `true` if the group of a task that has not entered it was shut down, and counts that.
    fn is_refused_by_group(&self) -> bool;
}

impl<J: Job> InGroup for Task<J> {
    fn enter_group(
        &self,
        own: Weak<dyn Runnable>,
        (sequence, slot): (u64, u32),
        due: Timestamp,
        is_delayed: bool,
    ) -> Option<CancelReason> {
        let mut cell = self.0.lock();
        let membership = cell.extras_if_any().and_then(|extras| extras.group.as_mut())?;
        let group = &membership.group;
        if membership.sequence.is_some() {
            group.set_slot(sequence, slot);
            return None;
        }
        if membership.has_left {
            group.count_short_lived();
            return None;
        }
        membership.sequence = Some(sequence);
        let due = membership.replanned.unwrap_or(due);
        let is_periodic = J::IS_PERIODIC;
        group.enter(sequence, due, Entrant { task: own, slot, is_periodic, is_delayed })
    }

    fn leave_group(&self) {
        let mut cell = self.0.lock();
        let effects = cell.leave_group(Ended::Cancelled);
        drop(cell);
        effects.carry_out();
    }

    fn let_go(&self, move_entry: &mut MoveEntry<'_>) {
        self.0.lock().let_go(move_entry);
    }

    fn held_until(&self) -> Option<Timestamp> {
        self.0.lock().control().and_then(|control| control.held_until())
    }

    fn group(&self) -> Option<(Arc<GroupState>, u64)> {
        let mut cell = self.0.lock();
        let membership = cell.membership()?;
        Some((Arc::clone(&membership.group), membership.sequence?))
    }

    fn own_group(&self) -> Option<Arc<GroupState>> {
        self.0.lock().membership().map(|membership| Arc::clone(&membership.group))
    }

    fn is_refused_by_group(&self) -> bool {
        self.0.lock().membership().is_some_and(|membership| membership.group.refuses_more())
    }
}

impl<J: Job> Task<J> {
    /// Puts a task that is not queued yet into a group.
    pub(crate) fn in_group(self, group: Arc<GroupState>) -> Self {
        let (sequence, replanned) = (None, None);
        let membership = Membership { group, sequence, has_left: false, refused: None, replanned };
        self.0.lock().extras().group = Some(Box::new(membership));
        self
    }

    /// Tells the group of a run that has just ended.
    pub(super) fn count_in_group(&self, ran: &RunOutcome<J>) {
        self.count_run_in_group(matches!(ran, RunOutcome::Failed(..) | RunOutcome::Ended(Err(_))));
    }

    /// Tells the group of whatever counts as a run, before the member can leave by it: so the group never has
    /// a task that failed without a run that did.
    pub(super) fn count_run_in_group(&self, has_failed: bool) {
        let mut cell = self.0.lock();
        if let Some(membership) = cell.membership() {
            membership.group.count_run(has_failed);
        }
    }
}

impl<J: Job> TaskCell<J> {
    /// Returns the membership of a task that has not left its group.
    fn membership(&mut self) -> Option<&mut Membership> {
        let membership = self.extras_if_any()?.group.as_deref_mut()?;
        Some(membership).filter(|membership| !membership.has_left)
    }

    /// Asks the group of the task, if it has one, whether a run may start. `is_extra` says whether it is one
    /// beside the schedule.
    ///
    /// # Errors
    ///
    /// What becomes of the task if it may not.
    pub(super) fn ask_group(&mut self, is_extra: bool, run: &Run) -> Result<bool, Verdict> {
        let is_waiting = self.stage().job().is_some();
        let Some(membership) = self.membership().filter(|_| is_waiting) else { return Ok(false) };
        if membership.sequence.is_none() {
            membership.sequence = Some(run.id());
            let task = Arc::downgrade(run.task());
            let (slot, is_periodic, is_delayed) = (u32::MAX, J::IS_PERIODIC, false);
            let entrant = Entrant { task, slot, is_periodic, is_delayed };
            // If it comes too late, the next step says so.
            let _ = membership.group.enter(run.id(), run.planned(), entrant);
        }
        match membership.group.ask(run.id()) {
            Turn::Starts => Ok(true),
            Turn::Ends(reason) => Err(Verdict::Cancelled(reason)),
            Turn::Waits => {
                membership.refused = Some(run.planned());
                let stays_on_wall = !is_extra && self.is_on_wall();
                let again = if stays_on_wall { Verdict::AgainOnWall } else { Verdict::Again };
                Err(again(run.planned()))
            }
        }
    }

    /// Has a task be pending again that a worker has, with this deadline. Returns how its entry stands, and how
    /// it comes back.
    pub(super) fn come_back(&mut self, due: Timestamp) -> (Timing, Comeback, Effects) {
        let usual = Comeback::of::<J>();
        let is_alive = self.stage().job().is_some();
        let Some(membership) = self.membership().filter(|_| is_alive) else {
            return (due.into(), usual, Effects::default());
        };
        let Some(sequence) = membership.sequence else {
            membership.replanned = Some(due);
            return (due.into(), usual, Effects::default());
        };
        // A task that was paused or put off meanwhile does not wait for its group, and a queue that is closed
        // must not admit it as one that does.
        let waits = membership.refused.take().is_some_and(|planned| due <= planned);
        let (queued, effects) = membership.group.come_back(sequence, due, waits);
        let how = if waits { Comeback::to_wait::<J>() } else { usual };
        let timing = match queued {
            Queued::AsPlanned => due.into(),
            Queued::ToBeEnded => Timestamp::PAST.into(),
            Queued::Held => {
                self.extras().control.get_or_insert_default().hold(due);
                Timing::held(due)
            }
        };
        (timing, how, effects)
    }

    /// Tells the group that the task, which is in the queue, is due at another moment.
    pub(super) fn replan_in_group(&mut self, due: Timestamp) -> Effects {
        let Some(membership) = self.membership() else { return Effects::default() };
        match membership.sequence {
            Some(sequence) => membership.group.replan(sequence, due),
            None => {
                membership.replanned = Some(due);
                Effects::default()
            }
        }
    }

    /// Has the task leave its group.
    pub(super) fn leave_group(&mut self, ended: Ended) -> Effects {
        let Some(extras) = self.extras_if_any() else { return Effects::default() };
        let name = &extras.name;
        let left = extras.group.as_deref_mut().filter(|membership| !membership.has_left);
        let Some(membership) = left else { return Effects::default() };
        membership.has_left = true;
        match membership.sequence {
            Some(sequence) => membership.group.leave(sequence, ended, || name.clone()),
            None => Effects::default(),
        }
    }

    /// Has a task that has ended leave its group, unless its body still runs.
    pub(super) fn end_in_group(&mut self) -> Effects {
        if self.stage().runs_on() {
            return Effects::default();
        }
        let ended = match self.stage().state() {
            TaskState::Failed => Ended::Failed,
            TaskState::Cancelled => Ended::Cancelled,
            _ => Ended::Completed,
        };
        self.leave_group(ended)
    }

    /// Has the task be held no longer. A task that is not in the queue is not held.
    fn let_go(&mut self, move_entry: &mut MoveEntry<'_>) {
        let slot = self.slot();
        let Some(control) = self.control().filter(|control| control.held_until().is_some()) else {
            return;
        };
        let new_slot = control.let_go(slot, move_entry);
        if let Some(slot) = new_slot {
            self.set_slot(slot);
        }
    }

    /// Notes the slot of the queue in which the task is.
    pub(super) fn set_slot(&mut self, slot: u32) {
        match self.stage().job() {
            Some(job) if J::IS_PERIODIC => job.set_slot(slot),
            _ => {
                self.extras().control.get_or_insert_with(Box::<Control>::default).slot = Some(slot)
            }
        }
    }
}
