//! The roll of a group: its members, the order in which they may start, and its counts.
//!
//! It only decides: every function here runs under the group's lock and calls nothing else. A member is
//! *pending*, *asking*, *running* or *called off*.
//!
//! ```text
//!   enter ──▶ pending ◀──────── requeue ────── running ──▶ leave
//!              │  ▲ release          ask ──────▶ ▲ │ ▲ ask
//!              ▼  │                               │ ▼ │ await_answer
//!           parked └── ask ───────────────────────┘ asking       call_off: pending, asking ──▶ called off ──▶ leave
//! ```
//!
//! A member that is *asking* has its permit, and waits in the queue for the answer of its gate. For every caller it is a
//! pending member like any other: only the permits count it.
//!
//! These hold whenever the lock is free:
//!
//! * `order` has one key for each pending member, and no other; `parked` counts those that are parked.
//! * `running` and `asking` count the members that stand so. Together they are at most the number of permits, unless that
//!   was lowered.
//! * `submitted = pending + asking + running + called off + completed + failed + cancelled`.
//!
//! # The end
//!
//! A group ends in two ways. It is shut down itself; or its executor is, and then the group ends with its last
//! member although it was not shut down itself. Once either has begun no pause begins any more, as no task can be
//! paused then: a pause would put off the end without limit.

use std::collections::{BTreeMap, BTreeSet};

use super::GroupLimits;
use crate::{
    CancelReason,
    entry::{Ticket, Timing},
    feature::{AtShutdown, ShutdownPolicy},
    shutdown_report::{ShutdownReport, TaskSummary},
    statistics::{Ended, Totals},
    sync::{Arc, Weak},
    task::Task,
    time::Timestamp,
};

/// The next step of a worker with a member that it has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It runs: the member has a permit.
    Starts,
    /// It is queued again, and waits.
    Waits,
    /// It ends as cancelled.
    Ends(CancelReason),
}

#[derive(Clone)]
pub(crate) struct Member {
    pub(crate) task: Weak<Task>,
    /// With the slot in which it was at first.
    pub(crate) ticket: Ticket,
    /// When it is due, or was when it started.
    pub(crate) due: Timestamp,
    at_shutdown: AtShutdown,
    stands: Stands,
}

impl Member {
    /// Makes a member that is pending.
    pub(crate) fn new(task: &Arc<Task>, ticket: Ticket, due: Timestamp, at: AtShutdown) -> Self {
        let stands = Stands::Pending { is_parked: false };
        Self { task: Arc::downgrade(task), ticket, due, at_shutdown: at, stands }
    }

    pub(crate) fn is_running(&self) -> bool {
        self.stands == Stands::Running
    }

    fn is_parked(&self) -> bool {
        self.stands == Stands::Pending { is_parked: true }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stands {
    Pending { is_parked: bool },
    Asking,
    Running,
    CalledOff(CancelReason),
}

pub(crate) struct Roll {
    pub(crate) limits: GroupLimits,
    pub(crate) is_paused: bool,
    pub(crate) submitted: u64,
    /// The number of submissions that were refused because the group was shut down.
    pub(crate) rejected: u64,
    pub(crate) totals: Totals,
    pub(crate) end: GroupEnd,
    members: BTreeMap<u64, Member>,
    order: BTreeSet<(Timestamp, u64)>,
    pub(crate) running: usize,
    asking: usize,
    pub(crate) parked: usize,
    /// Members that were parked and are to be let go, by the step that is under way.
    let_go: Vec<(u64, Weak<Task>)>,
}

impl Roll {
    pub(super) fn new(limits: GroupLimits) -> Self {
        Self {
            limits,
            is_paused: false,
            submitted: 0,
            rejected: 0,
            totals: Totals::default(),
            end: GroupEnd::default(),
            members: BTreeMap::new(),
            order: BTreeSet::new(),
            running: 0,
            asking: 0,
            parked: 0,
            let_go: Vec::new(),
        }
    }

    /// Returns how many members may run at once: at least one, whatever is reserved. A member that waits for the answer of
    /// its gate has a permit and no worker, so there are more permits than workers if none is reserved.
    fn permits(&self) -> usize {
        let GroupLimits { limit, reserved, workers } = self.limits;
        let left = if reserved > 0 { workers.saturating_sub(reserved) } else { usize::MAX };
        limit.min(left).max(1)
    }

    fn free(&self) -> usize {
        let taken = self.running + self.asking;
        if self.is_paused { 0 } else { self.permits().saturating_sub(taken) }
    }

    fn is_first(&self, sequence: u64, due: Timestamp) -> bool {
        let free = self.free();
        // The first comparison spares a group that is hardly limited the walk.
        free > 0 && (self.order.len() <= free || self.first(free).any(|key| key == (due, sequence)))
    }

    fn first(&self, count: usize) -> impl Iterator<Item = (Timestamp, u64)> {
        self.order.iter().take(count).copied()
    }

    /// Returns `true` if the group was shut down, and counts a submission that it refuses then.
    pub(crate) fn refuses_more(&mut self) -> bool {
        self.rejected += u64::from(self.end.is_shut_down());
        self.end.is_shut_down()
    }

    /// Enters a pending member. Returns why it has to end, if it came too late: then it is called off at once.
    pub(crate) fn enter(&mut self, member: Member, is_delayed: bool) -> Option<CancelReason> {
        let (due, sequence) = (member.due, member.ticket.sequence);
        let refusal = self.end.refuses(member.at_shutdown, is_delayed);
        self.members.insert(sequence, member);
        self.order.insert((due, sequence));
        if let Some(reason) = refusal {
            self.stand(sequence, due, Stands::CalledOff(reason));
        }
        self.submitted += 1;
        refusal
    }

    /// Notes the slot of the queue in which a member has been from the beginning.
    pub(crate) fn set_slot(&mut self, Ticket { slot, sequence }: Ticket) {
        if let Some(member) = self.members.get_mut(&sequence) {
            member.ticket.slot = slot;
        }
    }

    /// Asks for a member that a worker has taken whether it may start, and has it start then.
    pub(crate) fn ask(&mut self, sequence: u64) -> Turn {
        // The executor has given the others back.
        let Some(member) = self.members.get(&sequence) else {
            return Turn::Ends(CancelReason::ShutdownNow);
        };
        let due = member.due;
        if let Stands::CalledOff(reason) = member.stands {
            return Turn::Ends(reason);
        }
        if let Some(reason) = self.refuses_to_wait(member.at_shutdown) {
            return Turn::Ends(reason);
        }
        let may_start = match member.stands {
            // It has its permit, so it waits for no other member, but a pause holds it as well.
            Stands::Asking => !self.is_paused,
            _ => self.is_first(sequence, due),
        };
        if !may_start {
            return Turn::Waits;
        }
        self.stand(sequence, due, Stands::Running);
        Turn::Starts
    }

    /// Has a member wait for the answer of its gate, with the permit that a worker has taken for it.
    ///
    /// # Errors
    ///
    /// Why it ends instead.
    pub(crate) fn await_answer(
        &mut self,
        sequence: u64,
        until: Timestamp,
    ) -> Result<(), CancelReason> {
        self.go_on(sequence, until)?;
        self.stand(sequence, until, Stands::Asking);
        Ok(())
    }

    /// Returns `Err` if the member, which a worker has, is not to be queued again: it was called off, or ran when the group
    /// was stopped.
    fn go_on(&mut self, sequence: u64, due: Timestamp) -> Result<(), CancelReason> {
        let Some(member) = self.members.get(&sequence) else { return Ok(()) };
        if let Stands::CalledOff(reason) = member.stands {
            return Err(reason);
        }
        let Some(reason) = self.end.refuses(member.at_shutdown, false) else { return Ok(()) };
        self.stand(sequence, due, Stands::CalledOff(reason));
        Err(reason)
    }

    /// Makes a member pending again that a worker has. Returns how it is queued again: it is parked if `was_refused`
    /// and it is still not its turn.
    ///
    /// # Errors
    ///
    /// Why it ends instead.
    pub(crate) fn requeue(
        &mut self,
        sequence: u64,
        due: Timestamp,
        was_refused: bool,
    ) -> Result<Timing, CancelReason> {
        self.go_on(sequence, due)?;
        let Some(member) = self.members.get(&sequence) else { return Ok(due.into()) };
        let may_wait = was_refused && self.refuses_to_wait(member.at_shutdown).is_none();
        self.stand(sequence, due, Stands::Pending { is_parked: false });
        if !may_wait || self.is_first(sequence, due) {
            return Ok(due.into());
        }
        self.stand(sequence, due, Stands::Pending { is_parked: true });
        Ok(Timing::Parked { due })
    }

    /// Notes that a pending member is due at another moment. If it is parked and due later it is let go: it waits for no
    /// turn until a worker finds it due again.
    pub(crate) fn replan(&mut self, sequence: u64, due: Timestamp) {
        let Some(member) = self.members.get(&sequence) else { return };
        let Stands::Pending { is_parked } = member.stands else { return };
        let stays = is_parked && due <= member.due;
        if is_parked && !stays {
            self.let_go.push((sequence, Weak::clone(&member.task)));
        }
        self.stand(sequence, due, Stands::Pending { is_parked: stays });
    }

    /// Changes how a member stands, and everything that follows from it.
    fn stand(&mut self, sequence: u64, due: Timestamp, stands: Stands) {
        let Some(member) = self.members.get_mut(&sequence) else { return };
        let before = std::mem::replace(&mut member.stands, stands);
        let key = (std::mem::replace(&mut member.due, due), sequence);
        match before {
            Stands::Pending { is_parked } => {
                self.order.remove(&key);
                self.parked -= usize::from(is_parked);
            }
            Stands::Asking => self.asking -= 1,
            Stands::Running => self.running -= 1,
            Stands::CalledOff(_) => {}
        }
        match stands {
            Stands::Pending { is_parked } => {
                self.order.insert((due, sequence));
                self.parked += usize::from(is_parked);
            }
            Stands::Asking => self.asking += 1,
            Stands::Running => self.running += 1,
            Stands::CalledOff(_) => {}
        }
    }

    /// Returns `true` if a member is in the queue and waits for its turn there.
    pub(crate) fn parks(&self, sequence: u64) -> bool {
        self.members.get(&sequence).is_some_and(Member::is_parked)
    }

    /// Returns the members to let go: those parked ones whose turn has come, which are parked no longer.
    pub(super) fn release(&mut self) -> Vec<(u64, Weak<Task>)> {
        let mut released = std::mem::take(&mut self.let_go);
        if self.parked == 0 {
            return released;
        }
        let first: Vec<_> = self.first(self.free()).collect();
        for (due, sequence) in first {
            let Some(member) = self.members.get(&sequence).filter(|it| it.is_parked()) else {
                continue;
            };
            released.push((sequence, Weak::clone(&member.task)));
            self.stand(sequence, due, Stands::Pending { is_parked: false });
        }
        released
    }

    /// Removes a member that has ended, or that is no longer part of the schedule, and notes it if a report was asked for.
    pub(crate) fn leave(
        &mut self,
        sequence: u64,
        ended: Ended,
        name: impl FnOnce() -> Option<Arc<str>>,
    ) {
        if !self.remove(sequence, ended) {
            return;
        }
        if let Some(log) = &mut self.end.log {
            let list = if ended == Ended::Cancelled { &mut log.cancelled } else { &mut log.ran };
            list.push(TaskSummary::new(sequence, name()));
        }
    }

    /// Returns `true` unless the member had left before.
    fn remove(&mut self, sequence: u64, ended: Ended) -> bool {
        self.stand(sequence, Timestamp::NEVER, Stands::CalledOff(CancelReason::Requested));
        if self.members.remove(&sequence).is_none() {
            return false;
        }
        match ended {
            Ended::Completed => self.totals.completed += 1,
            Ended::Failed => self.totals.failed += 1,
            Ended::Cancelled => self.totals.cancelled += 1,
        }
        true
    }

    /// Pauses the group. Returns `false` if it is paused already, or was shut down, or its executor was.
    pub(crate) fn pause(&mut self) -> bool {
        let is_closed = self.end.is_shut_down() || self.end.executor_keeps.is_some();
        let is_possible = !self.is_paused && !is_closed;
        self.is_paused |= is_possible;
        is_possible
    }

    /// Calls off the pending members that are `unwanted`: none of them starts from here on. Returns all that are
    /// unwanted, for the caller to end them.
    pub(crate) fn call_off(
        &mut self,
        reason: CancelReason,
        unwanted: &dyn Fn(&Member) -> bool,
    ) -> Vec<Member> {
        let listed: Vec<_> = self.members.values().filter(|it| unwanted(it)).cloned().collect();
        for member in listed.iter().filter(|member| !member.is_running()) {
            self.stand(member.ticket.sequence, member.due, Stands::CalledOff(reason));
        }
        listed
    }

    /// Admits no more members, and ends a pause. Returns the members that are not kept, called off: all, if the group is
    /// to stop.
    pub(crate) fn shut_down(
        &mut self,
        stage: EndStage,
        keeps: Keeps,
        now: Timestamp,
    ) -> Vec<Member> {
        self.end.stage = self.end.stage.max(stage);
        self.end.keeps = Some(keeps);
        self.is_paused = false;
        self.call_off(keeps.reason, &|member| {
            stage == EndStage::Stopping || !keeps.keeps(member.at_shutdown, member.due > now)
        })
    }

    /// Called when the executor is shut down. Returns the members, called off, that a paused group would
    /// keep from running although the executor does not keep them.
    pub(crate) fn executor_closes(&mut self, keeps: Keeps) -> Vec<Member> {
        // A policy that is switched on again brings nothing back.
        let before = self.end.executor_keeps.unwrap_or(keeps);
        self.end.executor_keeps = Some(Keeps {
            delayed: before.delayed && keeps.delayed,
            periodic: before.periodic && keeps.periodic,
            chosen: before.chosen && keeps.chosen,
            reason: keeps.reason,
        });
        let is_paused = self.is_paused;
        self.call_off(keeps.reason, &|member| {
            is_paused && !member.is_running() && !keeps.keeps(member.at_shutdown, true)
        })
    }

    /// Called when the executor has given its pending tasks back: they are no members any more.
    pub(crate) fn dissolve(&mut self) {
        let pending = self.members.values().filter(|member| !member.is_running());
        let pending: Vec<_> = pending.map(|member| member.ticket.sequence).collect();
        for sequence in pending {
            self.remove(sequence, Ended::Cancelled);
        }
        self.end.executor_keeps = Some(Keeps::none(CancelReason::ShutdownNow));
    }

    /// Returns why a member has to end that would wait for the end of a pause. The executor was shut down, and
    /// does not keep it.
    fn refuses_to_wait(&self, at: AtShutdown) -> Option<CancelReason> {
        let keeps = self.end.executor_keeps.filter(|_| self.is_paused)?;
        (!keeps.keeps(at, true)).then_some(keeps.reason)
    }

    /// Returns the number of members that do not run.
    pub(crate) fn pending(&self) -> usize {
        self.members.len() - self.running
    }

    /// Returns `true` if a member runs, or may run by `deadline`.
    pub(crate) fn can_run_until(&self, deadline: Timestamp) -> bool {
        let is_due = self.order.first().is_some_and(|(due, _)| *due <= deadline);
        is_due || self.order.len() < self.members.len() || self.end.joining > 0
    }

    /// Returns the members that have been noted since the log was opened, and those that run now.
    pub(crate) fn read_log(&self) -> (ShutdownReport, Vec<Member>) {
        let running = self.members.values().filter(|member| member.is_running());
        (self.end.log.clone().unwrap_or_default(), running.cloned().collect())
    }

    /// Ends the group if nothing of it is left. Returns `true` if it has ended.
    pub(super) fn terminate(&mut self) -> bool {
        let end = &mut self.end;
        let is_ending = end.is_shut_down() || end.executor_keeps.is_some();
        end.is_terminated |= is_ending && self.members.is_empty() && end.joining == 0;
        end.is_terminated
    }
}

/// How far a group has come by its own shutdown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EndStage {
    #[default]
    Open,
    ShuttingDown,
    Stopping,
}

/// The end of a group: how far it has come, which tasks are kept, and the members that it has seen leave.
#[derive(Default)]
pub(crate) struct GroupEnd {
    stage: EndStage,
    /// The tasks that the group keeps since it was shut down.
    keeps: Option<Keeps>,
    /// The tasks that the executor keeps since it was shut down.
    executor_keeps: Option<Keeps>,
    pub(super) joining: usize,
    pub(crate) is_terminated: bool,
    log: Option<ShutdownReport>,
}

impl GroupEnd {
    pub(crate) fn is_shut_down(&self) -> bool {
        self.stage > EndStage::Open
    }

    /// Returns why a member has to end that comes too late.
    fn refuses(&self, at: AtShutdown, is_delayed: bool) -> Option<CancelReason> {
        let keeps = self.keeps?;
        let is_kept = self.stage < EndStage::Stopping && keeps.keeps(at, is_delayed);
        (!is_kept).then_some(keeps.reason)
    }

    /// Opens the log: every member that ends from now on is noted.
    pub(crate) fn open_log(&mut self) {
        self.log.get_or_insert_default();
    }
}

/// Which tasks a shutdown keeps, and why the others end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Keeps {
    pub(crate) delayed: bool,
    pub(crate) periodic: bool,
    /// Those whose own policy says so.
    pub(crate) chosen: bool,
    pub(crate) reason: CancelReason,
}

impl Keeps {
    pub(crate) fn none(reason: CancelReason) -> Self {
        Self { delayed: false, periodic: false, chosen: false, reason }
    }

    pub(crate) fn keeps(self, at_shutdown: AtShutdown, is_delayed: bool) -> bool {
        match at_shutdown {
            AtShutdown::OneShot => self.delayed || !is_delayed,
            AtShutdown::Series => self.periodic,
            AtShutdown::Chosen(policy) => self.chosen && policy == ShutdownPolicy::Keep,
        }
    }
}
