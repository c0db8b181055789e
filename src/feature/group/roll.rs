//! The roll of a group: its members, the order in which they may start, and its counts.
//!
//! The roll only decides: every function here runs under the group's lock, and calls neither the queue nor a task. A
//! member is *pending*, *asking*, *running* or *called off*. A pending member may be *parked*.
//!
//! ```text
//!   enter:                             ──▶ pending or, after a shutdown, called off
//!   ask:               pending, asking ──▶ running
//!   requeue:  pending, asking, running ──▶ parked, asking, or as for enter
//!   call_off:          pending, asking ──▶ called off      release:          parked ──▶ pending
//!   leave:                   any state ──▶                 replan:   parked, asking ──▶ pending
//! ```
//!
//! An *asking* member has its permit, and waits in the queue for its gate's answer. Its permit is in use, although
//! callers see the member as pending.
//!
//! These invariants hold whenever the lock is free:
//!
//! * `pending` holds the pending members, in their order, and `others` all other members; `parked` counts the parked
//!   members, which are pending.
//! * `running` and `asking` count the members in those states. Their sum exceeds the number of permits only if that
//!   number has dropped since these members got their permits.
//! * `submitted = pending + asking + running + called off + completed + failed + cancelled`.
//!
//! # The end
//!
//! Once a group or its executor has been shut down, the group ends as soon as it has no member and no submission to it
//! is under way. From the shutdown on, the group cannot be paused, because a pause would put off the end indefinitely.

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

/// The moment when a member is due, and its sequence number. The member's task keeps the key.
pub(crate) type MemberKey = (Timestamp, u64);

type Members = BTreeMap<MemberKey, Member>;

#[derive(Clone)]
pub(crate) struct Member {
    pub(crate) task: Weak<Task>,
    /// The ticket with which the member entered. The ticket's slot may be missing or out of date.
    pub(crate) ticket: Ticket,
    /// When the member is due or, once it has started, was due.
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

/// What a member that is queued again waits for, besides the moment when it is due.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitsFor {
    Nothing,
    Turn,
    /// The gate's answer. Until the answer comes, the member keeps its permit.
    Answer,
}

#[derive(Default)]
pub(crate) struct Roll {
    pub(crate) limit: usize,
    /// How many workers the group leaves to other tasks.
    pub(crate) reserved: usize,
    pub(crate) workers: usize,
    pub(crate) is_paused: bool,
    pub(crate) submitted: u64,
    /// The number of submissions refused because the group was shut down.
    pub(crate) rejected: u64,
    pub(crate) totals: Totals,
    /// The pending members, in the order in which they start.
    pending: Members,
    /// The members that are asking, running or called off.
    others: Members,
    pub(crate) running: usize,
    asking: usize,
    pub(crate) parked: usize,
    /// The members that the current step unparks because they are now due later, although their turn has not come.
    let_go: Vec<(u64, Weak<Task>)>,
    /// Which members the group keeps after its own shutdown; `None` before the shutdown.
    keeps: Option<Keeps>,
    /// Which members the group keeps after its executor's shutdown; `None` before the shutdown.
    executor_keeps: Option<Keeps>,
    /// The number of submissions to the group that are under way.
    pub(super) joining: usize,
    pub(crate) is_terminated: bool,
    /// The members that have left since a report was requested; `None` before the request.
    pub(super) log: Option<ShutdownReport>,
}

impl Roll {
    pub(super) fn new(limit: usize, reserved: usize, workers: usize) -> Self {
        Self { limit, reserved, workers, ..Self::default() }
    }

    /// Returns how many more members may start: none while the group is paused. Otherwise, the group has at least one
    /// permit, even if all workers are reserved. If no worker is reserved, the number of workers does not limit the
    /// permits, because an asking member has a permit but occupies no worker.
    fn free(&self) -> usize {
        let Self { limit, reserved, workers, .. } = *self;
        let left = if reserved > 0 { workers.saturating_sub(reserved) } else { usize::MAX };
        let permits = if self.is_paused { 0 } else { limit.min(left).max(1) };
        permits.saturating_sub(self.running + self.asking)
    }

    /// Returns `true` if fewer pending members come before this one than there are free permits.
    fn is_first(&self, key: MemberKey) -> bool {
        let free = self.free();
        // With enough free permits for all pending members, the order need not be walked.
        free > 0
            && (self.pending.len() <= free
                || self.pending.keys().nth(free - 1).is_some_and(|last| key <= *last))
    }

    /// Returns `true` if the group was shut down. If so, counts a refused submission.
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

    /// Adds a member. Calls off a member that the group's shutdown does not keep, and fails with the reason.
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

    /// Starts a member that a worker has taken, or returns `false` if the member has to wait. Fails with the reason if
    /// the member has to end.
    pub(crate) fn ask(&mut self, key: MemberKey) -> Result<bool, CancelReason> {
        // If the member is not listed, the executor has given its pending tasks back.
        let member = self.member(key).ok_or(CancelReason::ShutdownNow)?;
        if let Stands::CalledOff(reason) = member.stands {
            return Err(reason);
        }
        self.admit_to_wait(member.at_shutdown)?;
        let may_start = match member.stands {
            // An asking member has its permit, so it waits for no other member; but a pause stops it, too.
            Stands::Asking => !self.is_paused,
            _ => self.is_first(key),
        };
        if may_start {
            self.stand(key, key.0, Stands::Running);
        }
        Ok(may_start)
    }

    /// Notes that a worker is queuing a member again. Returns `true` if the member is now parked: it waits for its
    /// turn, which has not come yet.
    ///
    /// # Errors
    ///
    /// Why the member ends instead: it was called off, or the group was shut down during its run and does not keep it.
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

    /// Notes that a member in the queue is now due at another moment. An asking member gives its permit back. A parked
    /// member that is now due later is unparked; the worker that takes the member asks the group again. Returns the
    /// member's new key.
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

    /// Marks the parked members whose turn has come as no longer parked. Returns them and those in `let_go`, for the
    /// caller to unpark.
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

    /// Removes a member that has ended or left the schedule, counts it, and logs it if a report was requested.
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

    /// Calls off the `unwanted` members that are not running, so none of them will start. Returns all unwanted members
    /// in order of submission, for the caller to end.
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

    /// Stops admitting submissions, and ends a pause. Calls off the members that are neither kept nor running, and
    /// returns all that are not kept.
    pub(crate) fn shut_down(&mut self, keeps: Keeps, now: Timestamp) -> Vec<Member> {
        let keeps = keeps.narrow(&mut self.keeps);
        self.is_paused = false;
        self.call_off(keeps.reason, &|it| !keeps.keeps(it.at_shutdown, it.due > now))
    }

    /// Notes the executor's shutdown. If the group is paused, treats its members as not yet due: calls off and
    /// returns those that are neither running nor kept.
    pub(crate) fn executor_closes(&mut self, keeps: Keeps) -> Vec<Member> {
        keeps.narrow(&mut self.executor_keeps);
        let is_paused = self.is_paused;
        self.call_off(keeps.reason, &|member| {
            is_paused && !member.is_running() && !keeps.keeps(member.at_shutdown, true)
        })
    }

    /// Removes all members that are not running, and counts them as cancelled. Called once the executor has given its
    /// pending tasks back.
    pub(crate) fn dissolve(&mut self) {
        let reason = CancelReason::ShutdownNow;
        for member in self.call_off(reason, &|member| !member.is_running()) {
            self.take(member.key());
            self.totals.cancelled += 1;
        }
        self.executor_keeps = Some(Keeps::none(reason));
    }

    /// Fails with the reason if the group is paused and the executor's shutdown does not keep the member.
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

    /// Returns the log of the members that have left since a report was requested, and a list of the running members.
    pub(crate) fn read_log(&self) -> (ShutdownReport, Vec<Member>) {
        let running = self.others.values().filter(|member| member.is_running());
        (self.log.clone().unwrap_or_default(), running.cloned().collect())
    }

    /// Ends the group if the group or its executor was shut down, and no member and no submission under way is left.
    /// Returns `true` if the group has ended.
    pub(super) fn terminate(&mut self) -> bool {
        let is_ending = self.is_shut_down() || self.executor_keeps.is_some();
        let is_empty = self.pending.is_empty() && self.others.is_empty() && self.joining == 0;
        self.is_terminated |= is_ending && is_empty;
        self.is_terminated
    }
}
