//! A task in a [group](super): its record of the membership, and its reports to the group.
//!
//! The membership is one of the task's extensions, so the task's lock protects it. The group has a lock of its own,
//! which a thread takes while it holds the task's. So the group knows of each step of the task (it starts, is queued
//! again, is moved to another moment, or ends) as soon as any thread can see that step. The thread that takes the step
//! makes the resulting changes to *other* tasks ([`Deferred`]) after it has released the task's lock.
//!
//! # When a permit is released
//!
//! A member that will be queued again gives its permit back in the step that queues it
//! ([`on_requeue`](Membership::on_requeue)), whether the run took place or the gate skipped it or put it off. Every
//! other member leaves ([`on_end`](Membership::on_end)) in the step that makes its end visible. Only a member that was
//! cancelled while it was running leaves later, when its body has returned.
//!
//! A member that waits for its gate's answer keeps its permit; otherwise, other members would overtake it. The member
//! gives the permit back if it gets another moment before the answer comes ([`on_replan`](Membership::on_replan)), or
//! if its group is paused when the answer comes.

use super::{
    roll::{Member, MemberKey, WaitsFor},
    state::GroupState,
};
use crate::{
    CancelReason,
    entry::{Requeue, Ticket, Timing},
    feature::AtShutdown,
    statistics::Ended,
    sync::Arc,
    task::{Call, Core, Deferred, Leftovers, Queuing, Replan, Task, TaskState, Verdict},
    time::Timestamp,
};

pub(crate) struct Membership {
    pub(crate) group: Arc<GroupState>,
    at_shutdown: AtShutdown,
    /// The key under which the group lists the task; `None` until the task has entered.
    key: Option<MemberKey>,
    has_left: bool,
    /// The planned moment of the run that the group has just refused; `None` once the task is queued again.
    refused: Option<Timestamp>,
    /// The moment when the task is due, if that moment was changed before the task entered the group.
    replanned: Option<Timestamp>,
}

impl Membership {
    pub(crate) fn new(group: Arc<GroupState>, at_shutdown: AtShutdown) -> Self {
        Self { group, at_shutdown, key: None, has_left: false, refused: None, replanned: None }
    }

    /// Leaves the group for good. Called when the task has ended or left the schedule; a second call does nothing.
    fn leave(&mut self, ended: Ended, name: &Option<Arc<str>>, deferred: &mut Deferred) {
        let key = self.key.filter(|_| !self.has_left);
        self.has_left = true;
        if let Some(key) = key {
            self.group.step(deferred, |roll| roll.leave(key, ended, name));
        }
    }

    /// Enters the task into the group. Fails if the group's shutdown does not keep the task.
    fn enter(
        &mut self,
        task: &Arc<Task>,
        ticket: Ticket,
        due: Timestamp,
        is_delayed: bool,
    ) -> Result<(), CancelReason> {
        self.key = Some((due, ticket.sequence));
        let member = Member::new(task, ticket, due, self.at_shutdown);
        self.group.roll().enter(member, is_delayed)
    }

    pub(crate) fn before_run(&mut self, task: &Core<'_>, call: &Call<'_>) -> Result<(), Verdict> {
        if self.has_left || call.run.is_by_hand() || !task.stage.is_scheduled() {
            return Ok(());
        }
        let (id, planned) = (call.run.id, call.run.planned());
        if self.key.is_none() {
            // The worker took the task before the submitter entered it. If the task came too late, `ask` says so.
            let _ = self.enter(&call.run.task, Ticket::without_slot(id), planned, false);
        }
        match self.key.map_or(Ok(true), |key| self.group.roll().ask(key)) {
            Ok(true) => Ok(()),
            Ok(false) => {
                self.refused = Some(planned);
                Err(Verdict::Again(planned))
            }
            Err(reason) => Err(Verdict::Cancelled(reason)),
        }
    }

    /// Counts the run in the group's totals. Called before the member can leave, so the group never counts a failed
    /// task without its failed run.
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
        let Some(key) = self.key else {
            self.replanned = Some(due);
            return;
        };
        let refused = self.refused.take();
        // A task that was paused or put off meanwhile does not wait for its group, and a closed queue must not admit it
        // as if it did.
        let waits_for = match refused {
            None if queuing.awaits_answer => WaitsFor::Answer,
            Some(planned) if due <= planned => WaitsFor::Turn,
            _ => WaitsFor::Nothing,
        };
        if waits_for == WaitsFor::Turn {
            queuing.why = if task.is_periodic { Requeue::SeriesTurn } else { Requeue::Turn };
        }
        match self.group.step(&mut queuing.deferred, |roll| roll.requeue(key, due, waits_for)) {
            Ok(is_parked) => {
                self.key = Some((due, key.1));
                if is_parked {
                    queuing.elsewhere = Some(Timing::Parked { due });
                }
            }
            Err(reason) => queuing.ends = Some(reason),
        }
    }

    pub(crate) fn on_replan(&mut self, replan: &mut Replan<'_>) {
        let Some(due) = replan.due.filter(|_| !self.has_left) else { return };
        match self.key {
            None => self.replanned = Some(due),
            // The task goes on waiting for its gate's answer, and keeps its permit.
            Some(_) if replan.awaits_answer => {}
            Some(key) => {
                let key = self.group.step(replan.deferred, |roll| roll.replan(key, due));
                self.key = Some(key);
            }
        }
    }

    pub(crate) fn on_end(&mut self, task: &Core<'_>, left: &mut Leftovers) {
        // A member that was cancelled while it was running leaves when its body has returned.
        if task.stage.runs_on() {
            return;
        }
        let ended = match task.stage.state() {
            TaskState::Failed => Ended::Failed,
            TaskState::Cancelled => Ended::Cancelled,
            _ => Ended::Completed,
        };
        self.leave(ended, task.name, &mut left.deferred);
    }

    pub(crate) fn keeps_parked(&self) -> bool {
        !self.has_left && self.key.is_some_and(|key| self.group.roll().parks(key))
    }
}

impl Task {
    /// Enters the queued task into its group, if any. Fails if the group's shutdown does not keep the task.
    pub(crate) fn enter_group(
        self: &Arc<Self>,
        ticket: Ticket,
        due: Timestamp,
        is_delayed: bool,
    ) -> Result<(), CancelReason> {
        self.with(|parts| {
            let membership = parts.extensions().and_then(|extensions| extensions.group.as_mut());
            let Some(membership) = membership else { return Ok(()) };
            if membership.key.is_some() {
                // A worker has already taken the task and entered it.
                return Ok(());
            }
            if membership.has_left {
                // The task has already ended; the group counts it all the same.
                let mut roll = membership.group.roll();
                roll.submitted += 1;
                roll.totals.cancelled += 1;
                return Ok(());
            }
            let due = membership.replanned.unwrap_or(due);
            membership.enter(self, ticket, due, is_delayed)
        })
    }

    /// Takes the task out of its group, if it is in one. Called when the task has left the schedule.
    pub(crate) fn leave_group(&self) {
        let mut deferred = Deferred::default();
        self.with(|parts| {
            let name = parts.name();
            let membership = parts.extensions()?.group.as_mut()?;
            membership.leave(Ended::Cancelled, &name, &mut deferred);
            Some(())
        });
        deferred.run();
    }

    /// Returns the task's group, even before the task has entered; `None` if the task has none or has left it.
    pub(crate) fn own_group(&self) -> Option<Arc<GroupState>> {
        self.with(|parts| {
            let membership = parts.extensions()?.group.as_ref()?;
            (!membership.has_left).then(|| Arc::clone(&membership.group))
        })
    }
}
