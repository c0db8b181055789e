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
//! ([`Parts::requeue_in_group`]), whether it has run, or its gate has skipped the run or put it off. Every other member
//! leaves ([`Parts::leave_group`]) in the step in which its end becomes visible, but not while its body still runs: one
//! that was cancelled meanwhile leaves when the body has returned.

use super::{
    Run, Task, TaskState, Verdict,
    call::Call,
    cell::{Extras, Parts},
    group::{Effects, Entrant, GroupState, MemberEnd, Turn},
};
use crate::{
    CancelReason,
    entry::{EntryMover, Moved, Requeue, Timing},
    sync::{Arc, Weak},
    time::Timestamp,
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

impl Extras {
    /// Puts a task that is not queued yet into a group.
    pub(crate) fn set_group(&mut self, group: Arc<GroupState>) {
        let (sequence, replanned) = (None, None);
        let membership = Membership { group, sequence, has_left: false, refused: None, replanned };
        self.group = Some(Box::new(membership));
    }
}

/// A task that may be in a group, as the pool sees it.
impl Task {
    /// Enters the group of the task, which has been put into the queue. Returns why it has to end, if it
    /// came too late.
    pub(crate) fn enter_group(
        &self,
        own: Weak<Self>,
        (sequence, slot): (u64, u32),
        due: Timestamp,
        is_delayed: bool,
    ) -> Option<CancelReason> {
        self.with(|parts| {
            let is_periodic = parts.is_periodic();
            let membership = parts.extras_if_any().and_then(|extras| extras.group.as_mut())?;
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
            group.enter(sequence, due, Entrant { task: own, slot, is_periodic, is_delayed })
        })
    }

    /// Has the task leave its group: it is not part of the schedule any more.
    pub(crate) fn leave_group(&self) {
        self.with(|parts| parts.leave_group(MemberEnd::Cancelled)).carry_out();
    }

    /// Has the task wait for its turn no longer: its entry is moved from where it is parked.
    pub(crate) fn let_go(&self, mover: &mut dyn EntryMover) {
        self.with(|parts| parts.let_go(mover));
    }

    /// Returns the group of a task that has entered it and has not left, and its sequence.
    pub(crate) fn group(&self) -> Option<(Arc<GroupState>, u64)> {
        self.with(|parts| {
            let membership = parts.membership()?;
            Some((Arc::clone(&membership.group), membership.sequence?))
        })
    }

    /// Returns the group of a task that has not left it, whether it has entered it already or not.
    pub(crate) fn own_group(&self) -> Option<Arc<GroupState>> {
        self.with(|parts| parts.membership().map(|membership| Arc::clone(&membership.group)))
    }

    /// Returns `true` if the group of a task that has not entered it was shut down, and counts that.
    pub(crate) fn is_refused_by_group(&self) -> bool {
        self.with(|parts| parts.membership().is_some_and(|it| it.group.refuses_more()))
    }
}

impl Call<'_> {
    /// Tells the group of whatever counts as a run, before the member can leave by it: so the group never has
    /// a task that failed without a run that did.
    pub(super) fn count_in_group(&self, has_failed: bool) {
        self.run.task().with(|parts| {
            if let Some(membership) = parts.membership() {
                membership.group.count_run(has_failed);
            }
        });
    }
}

impl Parts<'_> {
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
        let (is_waiting, is_periodic) = (self.stage.is_scheduled(), self.is_periodic());
        let Some(membership) = self.membership().filter(|_| is_waiting) else { return Ok(false) };
        if membership.sequence.is_none() {
            membership.sequence = Some(run.id());
            let task = Arc::downgrade(run.task());
            let (slot, is_delayed) = (u32::MAX, false);
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

    /// Returns why the task is queued again unless it is due and has to wait.
    pub(super) fn usual_requeue(&self) -> Requeue {
        if self.is_periodic() { Requeue::NextRun } else { Requeue::PutOff }
    }

    /// Has a task be pending again that a worker has, and that is due then. Returns where its entry waits, and why
    /// it is queued again.
    pub(super) fn requeue_in_group(&mut self, due: Timestamp) -> (Timing, Requeue, Effects) {
        let usual = self.usual_requeue();
        let turn = if self.is_periodic() { Requeue::SeriesTurn } else { Requeue::Turn };
        let is_alive = self.stage.is_scheduled();
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
        let (timing, effects) = membership.group.requeue(sequence, due, waits);
        (timing, if waits { turn } else { usual }, effects)
    }

    /// Returns `true` if the task is in the queue, and its group keeps its entry parked.
    pub(super) fn waits_for_turn(&mut self) -> bool {
        self.membership().is_some_and(|membership| {
            membership.sequence.is_some_and(|sequence| membership.group.parks(sequence))
        })
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
    pub(super) fn leave_group(&mut self, ended: MemberEnd) -> Effects {
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
        if self.stage.runs_on() {
            return Effects::default();
        }
        let ended = match self.stage.state() {
            TaskState::Failed => MemberEnd::Failed,
            TaskState::Cancelled => MemberEnd::Cancelled,
            _ => MemberEnd::Completed,
        };
        self.leave_group(ended)
    }

    /// Moves the entry of the task to when it is due, unless the group has parked it anew.
    fn let_go(&mut self, mover: &mut dyn EntryMover) {
        if self.waits_for_turn() {
            return;
        }
        let slot = self.slot();
        let moved = mover.move_entry(slot, &mut |due, _| Some(due.into()));
        if let Moved::To(Some(slot)) = moved {
            self.set_slot(slot);
        }
    }
}
