//! A task in a [group](super): its record of the membership, and its reports to the group.
//!
//! The membership is one of the task's extensions, and is protected by the task's lock. The
//! group has a lock of its own, which is taken under that of the task. So the group knows of a step of the task as soon as
//! any thread can see it: that it starts, is queued again, is due at another moment, or has ended.
//!
//! The changes that the group wants made to *other* tasks ([`Effects`]) are made after the task's lock has been
//! released.
//!
//! # When a permit is released
//!
//! In two places. A member that will be queued again gives its permit back in the step that queues it
//! ([`on_requeue`](Membership::on_requeue)), whether it has run, or its gate has skipped the run or put it off. Every other member
//! leaves ([`on_end`](Membership::on_end)) in the step in which its end becomes visible, but not while its body still runs: one
//! that was cancelled meanwhile leaves when the body has returned.
//!
//! A member that waits for the answer of its gate keeps its permit, or others would overtake it at each question. For
//! everything else it is a pending member. It gives the permit back if it gets another moment meanwhile
//! ([`on_replan`](Membership::on_replan)), or if its group is paused when the answer comes.

use super::{
    roll::{Member, Turn},
    state::{Effects, GroupState},
};
use crate::{
    CancelReason,
    entry::{MoveEntry, Moved, Requeue, Ticket, Timing},
    feature::{AtShutdown, gate::OpenTick},
    statistics::Ended,
    sync::Arc,
    task::{Call, Core, Leftovers, Parts, Queuing, Replan, Task, TaskState, Verdict},
    time::Timestamp,
};

pub(crate) struct Membership {
    group: Arc<GroupState>,
    at_shutdown: AtShutdown,
    sequence: Option<u64>,
    has_left: bool,
    /// The run for which a worker has taken the task, if the group has refused that run.
    refused: Option<Timestamp>,
    /// When the task is due, if that was changed before it entered.
    replanned: Option<Timestamp>,
    /// The tick of a run that has its permit already, and waits for the answer to a question.
    asked: Option<OpenTick>,
}

impl Membership {
    pub(crate) fn new(group: Arc<GroupState>, at_shutdown: AtShutdown) -> Self {
        let (sequence, refused, replanned, asked) = (None, None, None, None);
        Self { group, at_shutdown, sequence, has_left: false, refused, replanned, asked }
    }

    /// Leaves the group, for good. The task is not part of the schedule any more.
    fn leave(&mut self, ended: Ended, name: &Option<Arc<str>>) -> Effects {
        let sequence = self.sequence.filter(|_| !self.has_left);
        self.has_left = true;
        let leave = |id| self.group.step(|roll| roll.leave(id, ended, || name.clone())).1;
        sequence.map_or_else(Effects::default, leave)
    }

    /// Enters the group. Returns why the task has to end, if it came too late.
    fn enter(
        &mut self,
        task: &Arc<Task>,
        ticket: Ticket,
        due: Timestamp,
        is_delayed: bool,
    ) -> Option<CancelReason> {
        self.sequence = Some(ticket.sequence);
        let member = Member::new(task, ticket, due, self.at_shutdown);
        self.group.roll().enter(member, is_delayed)
    }

    pub(crate) fn before_run(&mut self, task: &Core<'_>, call: &Call<'_>) -> Result<(), Verdict> {
        if self.has_left || call.run.is_by_hand() || !task.stage.is_scheduled() {
            return Ok(());
        }
        self.asked = None;
        let id = call.run.id();
        if self.sequence.is_none() {
            // A worker has taken the task before its submission has entered it. If it comes too late the group says so.
            let _ =
                self.enter(call.run.task(), Ticket::without_slot(id), call.run.planned(), false);
        }
        let turn = self.group.roll().ask(id);
        match turn {
            Turn::Starts => Ok(()),
            Turn::Ends(reason) => Err(Verdict::Cancelled(reason)),
            Turn::Waits => {
                self.refused = Some(call.run.planned());
                Err(Verdict::Again(call.run.planned()))
            }
        }
    }

    /// Before the member can leave by this run: so the group never has a task that failed without a run that did.
    pub(crate) fn after_run(&self, call: &Call<'_>) {
        if call.is_run && !self.has_left && !call.run.is_by_hand() {
            let mut roll = self.group.roll();
            roll.totals.runs += 1;
            roll.totals.failed_runs += u64::from(call.outcome.is_failure());
        }
    }

    pub(crate) fn on_requeue(&mut self, task: &Core<'_>, queuing: &mut Queuing) {
        if self.has_left || !task.stage.is_scheduled() {
            return;
        }
        let due = queuing.due;
        let Some(sequence) = self.sequence else {
            self.replanned = Some(due);
            return;
        };
        if self.asked.is_some_and(|tick| !tick.is_outdated(due, queuing.is_replanned)) {
            let (awaits, effects) = self.group.step(|roll| roll.await_answer(sequence, due));
            queuing.ends = awaits.err();
            effects.defer(&mut queuing.deferred);
            return;
        }
        self.asked = None;
        // A task that was paused or put off meanwhile does not wait for its group, and a queue that is closed
        // must not admit it as one that does.
        let waits = self.refused.take().is_some_and(|planned| due <= planned);
        if waits {
            queuing.why = if task.is_periodic { Requeue::SeriesTurn } else { Requeue::Turn };
        }
        let (timing, effects) = self.group.step(|roll| roll.requeue(sequence, due, waits));
        match timing {
            Ok(timing) => queuing.elsewhere = Some(timing),
            Err(reason) => queuing.ends = Some(reason),
        }
        effects.defer(&mut queuing.deferred);
    }

    pub(crate) fn on_put_off(&mut self, call: &Call<'_>, until: Timestamp, awaits: bool) {
        self.asked = awaits.then(|| OpenTick::new(call, until));
    }

    pub(crate) fn on_replan(&mut self, replan: &mut Replan) {
        let Some(due) = replan.due.filter(|_| !self.has_left) else { return };
        let Some(sequence) = self.sequence else {
            self.replanned = Some(due);
            return;
        };
        let effects = match self.asked {
            Some(tick) if !tick.is_outdated(due, replan.plan.is_some()) => return,
            Some(_) => {
                self.asked = None;
                self.group.step(|roll| roll.requeue(sequence, due, false)).1
            }
            None => self.group.step(|roll| roll.replan(sequence, due)).1,
        };
        effects.defer(&mut replan.deferred);
    }

    pub(crate) fn on_end(&mut self, task: &Core<'_>, left: &mut Leftovers) {
        // A member that was cancelled leaves when its body has returned.
        if task.stage.runs_on() {
            return;
        }
        let ended = match task.stage.state() {
            TaskState::Failed => Ended::Failed,
            TaskState::Cancelled => Ended::Cancelled,
            _ => Ended::Completed,
        };
        self.leave(ended, task.name).defer(&mut left.deferred);
    }

    pub(crate) fn keeps_parked(&self) -> bool {
        !self.has_left && self.sequence.is_some_and(|sequence| self.group.roll().parks(sequence))
    }
}

/// A task that may be in a group, as the pool sees it.
impl Task {
    /// Enters the group of the task, which has been put into the queue. Returns why it has to end, if it came too late.
    pub(crate) fn enter_group(
        self: &Arc<Self>,
        ticket: Ticket,
        due: Timestamp,
        is_delayed: bool,
    ) -> Option<CancelReason> {
        self.with(|parts| {
            let membership = parts.extensions()?.group.as_mut()?;
            if membership.sequence.is_some() {
                membership.group.roll().set_slot(ticket);
                return None;
            }
            if membership.has_left {
                // It has been in the queue, and has ended since.
                let mut roll = membership.group.roll();
                roll.submitted += 1;
                roll.totals.cancelled += 1;
                return None;
            }
            let due = membership.replanned.unwrap_or(due);
            membership.enter(self, ticket, due, is_delayed)
        })
    }

    /// Takes the task out of its group: it is not part of the schedule any more.
    pub(crate) fn leave_group(&self) {
        let effects = self.with(|parts| {
            let name = parts.name();
            let membership = parts.extensions()?.group.as_mut()?;
            Some(membership.leave(Ended::Cancelled, &name))
        });
        effects.unwrap_or_default().carry_out();
    }

    /// Ends the task's wait for its turn: its entry is moved from where it is parked.
    pub(crate) fn let_go(&self, mover: &mut MoveEntry<'_>) {
        self.with(|parts| parts.let_go(mover));
    }

    /// Returns the group of a task that has not left it, whether it has entered it already or not.
    pub(crate) fn own_group(&self) -> Option<Arc<GroupState>> {
        self.with(|parts| parts.membership().map(|membership| Arc::clone(&membership.group)))
    }

    /// Returns `true` if the group of a task that has not entered it was shut down, and counts that.
    pub(crate) fn is_refused_by_group(&self) -> bool {
        self.with(|parts| parts.membership().is_some_and(|it| it.group.roll().refuses_more()))
    }
}

impl Parts<'_> {
    fn membership(&mut self) -> Option<&mut Membership> {
        self.extensions()?.group.as_deref_mut().filter(|membership| !membership.has_left)
    }

    /// Moves the entry of the task to when it is due, unless the group has parked it anew.
    fn let_go(&mut self, mover: &mut MoveEntry<'_>) {
        // The entry of a task that has ended is being taken out, by the place where it is.
        if self.keeps_parked() || !self.stage.is_scheduled() {
            return;
        }
        let (slot, look) = (self.slot(), self.look());
        let until = |due: Timestamp| Timing::from(due).no_later_than(look);
        let moved = mover(slot, &mut |due, _| Some(until(due)));
        if let Moved::To(Some(slot)) = moved {
            self.set_slot(slot);
        }
    }
}
