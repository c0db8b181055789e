//! The roll of a group: its members, the order in which they may start, and its counts.
//!
//! It only decides: every function here runs under the group's lock and calls nothing else. A member is *pending*,
//! *asking*, *running* or *called off*.
//!
//! ```text
//!   enter ──▶ pending ◀──────── requeue ────── running ──▶ leave
//!              │  ▲ release          ask ──────▶ ▲ │ ▲ ask
//!              ▼  │                               │ ▼ │ requeue, for an answer
//!           parked └── ask ───────────────────────┘ asking       call_off: pending, asking ──▶ called off ──▶ leave
//! ```
//!
//! An *asking* member has its permit, and waits in the queue for the answer of its gate. Only the permits count it; to
//! every caller it is pending.
//!
//! These hold whenever the lock is free:
//!
//! * `pending` has the pending members, in their order, and `others` has all others; `parked` counts those that are
//!   parked.
//! * `running` and `asking` count such members: together at most as many as there are permits, unless the limit
//!   was lowered.
//! * `submitted = pending + asking + running + called off + completed + failed + cancelled`.
//!
//! # The end
//!
//! A group is shut down itself, or ends with its last member after a shutdown of its executor. Once either has begun,
//! no pause may begin, because it would put off the end indefinitely.

use std::{collections::BTreeMap, mem};

use crate::{
    CancelReason,
    entry::Ticket,
    feature::{AtShutdown, Keeps},
    shutdown_report::{ShutdownReport, TaskSummary},
    statistics::{Ended, Totals},
    sync::{Arc, Weak},
    task::Task,
    time::Timestamp,
};

/// When a member is due, and its sequence. The task knows its key.
pub(crate) type MemberKey = (Timestamp, u64);

type Members = BTreeMap<MemberKey, Member>;

#[derive(Clone)]
pub(crate) struct Member {
    pub(crate) task: Weak<Task>,
    /// With the slot that it had at first.
    pub(crate) ticket: Ticket,
    /// When it is due, or was due when it started.
    pub(crate) due: Timestamp,
    at_shutdown: AtShutdown,
    stands: Stands,
}

impl Member {
    pub(crate) fn new(task: &Arc<Task>, ticket: Ticket, due: Timestamp, at: AtShutdown) -> Self {
        let stands = Stands::Pending { is_parked: false };
        Self { task: Arc::downgrade(task), ticket, due, at_shutdown: at, stands }
    }

    fn key(&self) -> MemberKey {
        (self.due, self.ticket.sequence)
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

/// Why a member that is queued again does not start when it is due.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitsFor {
    Nothing,
    Turn,
    /// Its gate has not answered yet; it keeps the permit that a worker has taken for it.
    Answer,
}

#[derive(Default)]
pub(crate) struct Roll {
    pub(crate) limit: usize,
    /// How many workers the group leaves to others, and how many the pool is to have.
    pub(crate) reserved: usize,
    pub(crate) workers: usize,
    pub(crate) is_paused: bool,
    pub(crate) submitted: u64,
    /// The number of submissions that the group has refused.
    pub(crate) rejected: u64,
    pub(crate) totals: Totals,
    /// The pending members, in the order in which they start.
    pending: Members,
    /// Those that ask, that run, or that are called off.
    others: Members,
    pub(crate) running: usize,
    asking: usize,
    pub(crate) parked: usize,
    /// The parked members that the step under way lets go.
    let_go: Vec<(u64, Weak<Task>)>,
    /// What the group keeps since its own shutdown, and since that of its executor.
    keeps: Option<Keeps>,
    executor_keeps: Option<Keeps>,
    /// The number of submissions that are under way.
    pub(super) joining: usize,
    pub(crate) is_terminated: bool,
    /// The members that have ended since a report was asked for.
    pub(super) log: Option<ShutdownReport>,
}

impl Roll {
    pub(super) fn new(limit: usize, reserved: usize, workers: usize) -> Self {
        Self { limit, reserved, workers, ..Self::default() }
    }

    /// Returns how many members may run at once: at least one, whatever is reserved. A member that asks has a permit
    /// and no worker, so the number of workers counts only if some are reserved.
    fn permits(&self) -> usize {
        let Self { limit, reserved, workers, .. } = *self;
        let left = if reserved > 0 { workers.saturating_sub(reserved) } else { usize::MAX };
        limit.min(left).max(1)
    }

    fn free(&self) -> usize {
        let taken = self.running + self.asking;
        if self.is_paused { 0 } else { self.permits().saturating_sub(taken) }
    }

    /// Returns `true` if fewer members than free permits stand before a pending one.
    fn is_first(&self, key: MemberKey) -> bool {
        let free = self.free();
        // The second comparison spares a group with a loose limit the walk.
        free > 0
            && (self.pending.len() <= free
                || self.pending.keys().nth(free - 1).is_some_and(|last| key <= *last))
    }

    /// Returns `true` if the group was shut down, and then counts the refused submission.
    pub(crate) fn refuses_more(&mut self) -> bool {
        self.rejected += u64::from(self.is_shut_down());
        self.is_shut_down()
    }

    pub(crate) fn is_shut_down(&self) -> bool {
        self.keeps.is_some()
    }

    fn member(&self, key: MemberKey) -> Option<&Member> {
        self.pending.get(&key).or_else(|| self.others.get(&key))
    }

    /// Enters a pending member. Calls it off if it came too late, and fails with the reason why it has to end.
    pub(crate) fn enter(
        &mut self,
        mut member: Member,
        is_delayed: bool,
    ) -> Result<(), CancelReason> {
        let admitted = Keeps::admit(self.keeps, member.at_shutdown, is_delayed);
        if let Err(reason) = admitted {
            member.stands = Stands::CalledOff(reason);
        }
        self.insert(member);
        self.submitted += 1;
        admitted
    }

    /// Starts a member that a worker has taken, if it may start; otherwise the worker queues it again, and it waits.
    /// Fails with the reason if it has to end instead.
    pub(crate) fn ask(&mut self, key: MemberKey) -> Result<bool, CancelReason> {
        // The executor has given back a member that is not listed.
        let member = self.member(key).ok_or(CancelReason::ShutdownNow)?;
        if let Stands::CalledOff(reason) = member.stands {
            return Err(reason);
        }
        self.admit_to_wait(member.at_shutdown)?;
        let may_start = match member.stands {
            // It has its permit, so it waits for no other member, but a pause stops it too.
            Stands::Asking => !self.is_paused,
            _ => self.is_first(key),
        };
        if may_start {
            self.stand(key, key.0, Stands::Running);
        }
        Ok(may_start)
    }

    /// Notes that a worker queues a member again. Returns `true` if the member is parked: it is to wait for its turn,
    /// which still has not come.
    ///
    /// # Errors
    ///
    /// Why it ends instead: it was called off, or ran when the group was stopped.
    pub(crate) fn requeue(
        &mut self,
        key: MemberKey,
        due: Timestamp,
        waits_for: WaitsFor,
    ) -> Result<bool, CancelReason> {
        let Some(member) = self.member(key) else { return Ok(false) };
        let at = member.at_shutdown;
        if let Stands::CalledOff(reason) = member.stands {
            return Err(reason);
        }
        if let Err(reason) = Keeps::admit(self.keeps, at, false) {
            self.stand(key, key.0, Stands::CalledOff(reason));
            return Err(reason);
        }
        if waits_for == WaitsFor::Answer {
            self.stand(key, due, Stands::Asking);
            return Ok(false);
        }
        self.stand(key, due, Stands::Pending { is_parked: false });
        let key = (due, key.1);
        let may_wait = waits_for == WaitsFor::Turn && self.admit_to_wait(at).is_ok();
        let is_parked = may_wait && !self.is_first(key);
        if is_parked {
            self.stand(key, due, Stands::Pending { is_parked });
        }
        Ok(is_parked)
    }

    /// Notes that a member in the queue is due at another moment, for which it has no permit. A parked one that is now
    /// due later is let go: it waits for its turn when a worker finds it due again. Returns its new key.
    pub(crate) fn replan(&mut self, key: MemberKey, due: Timestamp) -> MemberKey {
        let Some(member) = self.member(key) else { return key };
        if !matches!(member.stands, Stands::Pending { .. } | Stands::Asking) {
            return key;
        }
        let stays = member.is_parked() && due <= member.due;
        if member.is_parked() && !stays {
            self.let_go.push((key.1, Weak::clone(&member.task)));
        }
        self.stand(key, due, Stands::Pending { is_parked: stays });
        (due, key.1)
    }

    fn stand(&mut self, key: MemberKey, due: Timestamp, stands: Stands) {
        if let Some(mut member) = self.take(key) {
            (member.due, member.stands) = (due, stands);
            self.insert(member);
        }
    }

    fn insert(&mut self, member: Member) {
        if let Some(count) = self.count_of(member.stands) {
            *count += 1;
        }
        let is_pending = matches!(member.stands, Stands::Pending { .. });
        let members = if is_pending { &mut self.pending } else { &mut self.others };
        members.insert(member.key(), member);
    }

    fn take(&mut self, key: MemberKey) -> Option<Member> {
        let member = self.pending.remove(&key).or_else(|| self.others.remove(&key))?;
        if let Some(count) = self.count_of(member.stands) {
            *count -= 1;
        }
        Some(member)
    }

    fn count_of(&mut self, stands: Stands) -> Option<&mut usize> {
        match stands {
            Stands::Pending { is_parked: true } => Some(&mut self.parked),
            Stands::Asking => Some(&mut self.asking),
            Stands::Running => Some(&mut self.running),
            Stands::Pending { is_parked: false } | Stands::CalledOff(_) => None,
        }
    }

    pub(crate) fn parks(&self, key: MemberKey) -> bool {
        self.pending.get(&key).is_some_and(Member::is_parked)
    }

    /// Marks the parked members whose turn has come as no longer parked, and returns them for the caller to let go.
    pub(super) fn release(&mut self) -> Vec<(u64, Weak<Task>)> {
        let mut released = mem::take(&mut self.let_go);
        if self.parked == 0 {
            return released;
        }
        let free = self.free();
        for (key, member) in self.pending.iter_mut().take(free) {
            if member.is_parked() {
                member.stands = Stands::Pending { is_parked: false };
                self.parked -= 1;
                released.push((key.1, Weak::clone(&member.task)));
            }
        }
        released
    }

    /// Removes a member that has ended or is no longer part of the schedule, and logs it for a report.
    pub(crate) fn leave(&mut self, key: MemberKey, ended: Ended, name: &Option<Arc<str>>) {
        if self.take(key).is_none() {
            return;
        }
        match ended {
            Ended::Completed => self.totals.completed += 1,
            Ended::Failed => self.totals.failed += 1,
            Ended::Cancelled => self.totals.cancelled += 1,
        }
        if let Some(log) = &mut self.log {
            let list = if ended == Ended::Cancelled { &mut log.cancelled } else { &mut log.ran };
            list.push(TaskSummary::new(key.1, name.clone()));
        }
    }

    pub(crate) fn pause(&mut self) -> bool {
        let is_closed = self.is_shut_down() || self.executor_keeps.is_some();
        let is_possible = !self.is_paused && !is_closed;
        self.is_paused |= is_possible;
        is_possible
    }

    /// Calls off the `unwanted` members that do not run: none of them starts from here on. Returns all unwanted ones in
    /// the order of their submission, for the caller to end them.
    pub(crate) fn call_off(
        &mut self,
        reason: CancelReason,
        unwanted: &dyn Fn(&Member) -> bool,
    ) -> Vec<Member> {
        let all = self.pending.values().chain(self.others.values());
        let mut listed = all.filter(|member| unwanted(member)).cloned().collect::<Vec<_>>();
        listed.sort_unstable_by_key(|member| member.ticket.sequence);
        for member in listed.iter().filter(|member| !member.is_running()) {
            self.stand(member.key(), member.due, Stands::CalledOff(reason));
        }
        listed
    }

    /// Admits no more members, and ends a pause. Returns the members that are not kept, called off.
    pub(crate) fn shut_down(&mut self, keeps: Keeps, now: Timestamp) -> Vec<Member> {
        let keeps = keeps.narrow(&mut self.keeps);
        self.is_paused = false;
        self.call_off(keeps.reason, &|it| !keeps.keeps(it.at_shutdown, it.due > now))
    }

    /// Called when the executor is shut down. If the group is paused, calls off and returns the members that the
    /// executor does not keep, since the pause would keep them from running.
    pub(crate) fn executor_closes(&mut self, keeps: Keeps) -> Vec<Member> {
        keeps.narrow(&mut self.executor_keeps);
        let is_paused = self.is_paused;
        self.call_off(keeps.reason, &|member| {
            is_paused && !member.is_running() && !keeps.keeps(member.at_shutdown, true)
        })
    }

    /// Called when the executor has given its pending tasks back: removes them.
    pub(crate) fn dissolve(&mut self) {
        let reason = CancelReason::ShutdownNow;
        for member in self.call_off(reason, &|member| !member.is_running()) {
            self.take(member.key());
            self.totals.cancelled += 1;
        }
        self.executor_keeps = Some(Keeps::none(reason));
    }

    /// Fails if a member must not wait for the end of a pause: the executor was shut down, and does not keep it.
    fn admit_to_wait(&self, at: AtShutdown) -> Result<(), CancelReason> {
        Keeps::admit(self.executor_keeps.filter(|_| self.is_paused), at, true)
    }

    pub(crate) fn pending(&self) -> usize {
        self.pending.len() + self.others.len() - self.running
    }

    pub(crate) fn can_run_until(&self, deadline: Timestamp) -> bool {
        let is_due = self.pending.keys().next().is_some_and(|(due, _)| *due <= deadline);
        is_due || !self.others.is_empty() || self.joining > 0
    }

    /// Returns the members that have been noted since the log was opened, and those that run now.
    pub(crate) fn read_log(&self) -> (ShutdownReport, Vec<Member>) {
        let running = self.others.values().filter(|member| member.is_running());
        (self.log.clone().unwrap_or_default(), running.cloned().collect())
    }

    /// Ends the group if it is ending and nothing of it is left. Returns `true` if it has ended.
    pub(super) fn terminate(&mut self) -> bool {
        let is_ending = self.is_shut_down() || self.executor_keeps.is_some();
        let is_empty = self.pending.is_empty() && self.others.is_empty() && self.joining == 0;
        self.is_terminated |= is_ending && is_empty;
        self.is_terminated
    }
}
