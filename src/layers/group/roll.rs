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

use std::collections::{BTreeMap, BTreeSet};

use super::{
    AtShutdown, GroupLimits,
    end::{EndStage, GroupEnd, MemberEnd},
};
use crate::{
    CancelReason,
    entry::Timing,
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

pub(crate) struct Entrant {
    pub(crate) task: Weak<Task>,
    pub(crate) slot: u32,
    pub(crate) at_shutdown: AtShutdown,
    /// True if it was not due when it was submitted.
    pub(crate) is_delayed: bool,
}

/// A member, as a list of them has it.
pub(crate) struct ListedMember {
    pub(crate) task: Weak<Task>,
    pub(crate) sequence: u64,
    pub(crate) slot: u32,
    pub(crate) due: Timestamp,
    pub(crate) is_pending: bool,
    pub(crate) at_shutdown: AtShutdown,
}

/// The counts of a group, and the numbers of its members, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) pending: usize,
    pub(crate) parked: usize,
    pub(crate) active: usize,
    pub(crate) totals: GroupCounts,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct GroupCounts {
    pub(crate) submitted: u64,
    pub(crate) rejected: u64,
    pub(crate) completed: u64,
    pub(crate) failed: u64,
    pub(crate) cancelled: u64,
    pub(crate) runs: u64,
    pub(crate) failed_runs: u64,
}

struct Member {
    task: Weak<Task>,
    slot: u32,
    at_shutdown: AtShutdown,
    /// When it is due, or was when it started.
    due: Timestamp,
    stands: Stands,
}

impl Member {
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

pub(super) struct Roll {
    pub(super) limits: GroupLimits,
    pub(super) is_paused: bool,
    pub(super) counts: GroupCounts,
    pub(super) end: GroupEnd,
    members: BTreeMap<u64, Member>,
    order: BTreeSet<(Timestamp, u64)>,
    running: usize,
    asking: usize,
    parked: usize,
}

impl Roll {
    pub(super) fn new(limits: GroupLimits) -> Self {
        Self {
            limits,
            is_paused: false,
            counts: GroupCounts::default(),
            end: GroupEnd::default(),
            members: BTreeMap::new(),
            order: BTreeSet::new(),
            running: 0,
            asking: 0,
            parked: 0,
        }
    }

    /// Returns how many members may run at once: at least one, whatever is reserved. A member that waits for the answer of
    /// its gate has a permit and no worker, so there are more permits than workers if none is reserved.
    fn permits(&self) -> usize {
        let GroupLimits { limit, reserved, workers } = self.limits;
        let left = if reserved > 0 { workers.saturating_sub(reserved) } else { usize::MAX };
        limit.min(left).max(1)
    }

    fn taken(&self) -> usize {
        self.running + self.asking
    }

    fn free(&self) -> usize {
        if self.is_paused { 0 } else { self.permits().saturating_sub(self.taken()) }
    }

    fn is_first(&self, sequence: u64, due: Timestamp) -> bool {
        let free = self.free();
        // The first comparison spares a group that is hardly limited the walk.
        free > 0 && (self.order.len() <= free || self.first(free).any(|key| key == (due, sequence)))
    }

    /// A pending member waits for its turn. An asking one has its permit, so it waits for no other member, but a pause holds
    /// it as well.
    fn may_start(&self, sequence: u64, member: &Member) -> bool {
        match member.stands {
            Stands::Asking => !self.is_paused,
            _ => self.is_first(sequence, member.due),
        }
    }

    fn first(&self, count: usize) -> impl Iterator<Item = (Timestamp, u64)> {
        self.order.iter().take(count).copied()
    }

    /// Returns `true` if the group was shut down, and counts a submission that it refuses then.
    pub(super) fn refuses_more(&mut self) -> bool {
        let is_closed = self.end.stage > EndStage::Open;
        self.counts.rejected += u64::from(is_closed);
        is_closed
    }

    /// Enters a pending member, which is called off at once if it came too late.
    pub(super) fn enter(
        &mut self,
        sequence: u64,
        due: Timestamp,
        entrant: Entrant,
        refusal: Option<CancelReason>,
    ) {
        let Entrant { task, slot, at_shutdown, .. } = entrant;
        let stands = match refusal {
            Some(reason) => Stands::CalledOff(reason),
            None => Stands::Pending { is_parked: false },
        };
        self.members.insert(sequence, Member { task, slot, at_shutdown, due, stands });
        if refusal.is_none() {
            self.order.insert((due, sequence));
        }
        self.counts.submitted += 1;
    }

    pub(super) fn set_slot(&mut self, sequence: u64, slot: u32) {
        if let Some(member) = self.members.get_mut(&sequence) {
            member.slot = slot;
        }
    }

    pub(super) fn ask(&mut self, sequence: u64) -> Turn {
        // The executor has given the others back.
        let Some(member) = self.members.get(&sequence) else {
            return Turn::Ends(CancelReason::ShutdownNow);
        };
        let (due, at_shutdown) = (member.due, member.at_shutdown);
        if let Stands::CalledOff(reason) = member.stands {
            return Turn::Ends(reason);
        }
        if let Some(reason) = self.end.refuses_to_wait(self.is_paused, at_shutdown) {
            return Turn::Ends(reason);
        }
        if !self.may_start(sequence, member) {
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
    pub(super) fn await_answer(
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
    pub(super) fn requeue(
        &mut self,
        sequence: u64,
        due: Timestamp,
        was_refused: bool,
    ) -> Result<Timing, CancelReason> {
        self.go_on(sequence, due)?;
        let Some(member) = self.members.get(&sequence) else { return Ok(due.into()) };
        let at_shutdown = member.at_shutdown;
        self.stand(sequence, due, Stands::Pending { is_parked: false });
        let may_wait = self.end.refuses_to_wait(self.is_paused, at_shutdown).is_none();
        let is_parked = was_refused && may_wait && !self.is_first(sequence, due);
        if !is_parked {
            return Ok(due.into());
        }
        self.stand(sequence, due, Stands::Pending { is_parked });
        Ok(Timing::Parked { due })
    }

    /// Notes that a pending member is due at another moment. Returns it if it was parked and is due later: it waits for no
    /// turn until a worker finds it due again.
    pub(super) fn replan(&mut self, sequence: u64, due: Timestamp) -> Option<(u64, Weak<Task>)> {
        let member = self.members.get(&sequence)?;
        let Stands::Pending { is_parked } = member.stands else { return None };
        let let_go = (is_parked && due > member.due).then(|| Weak::clone(&member.task));
        self.stand(sequence, due, Stands::Pending { is_parked: is_parked && let_go.is_none() });
        Some((sequence, let_go?))
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

    pub(super) fn parks(&self, sequence: u64) -> bool {
        self.members.get(&sequence).is_some_and(Member::is_parked)
    }

    /// Returns the parked members whose turn has come, which are parked no longer.
    pub(super) fn release(&mut self) -> Vec<(u64, Weak<Task>)> {
        if self.parked == 0 {
            return Vec::new();
        }
        let due: Vec<_> =
            self.first(self.free()).filter(|(_, sequence)| self.parks(*sequence)).collect();
        let mut released = Vec::with_capacity(due.len());
        for (due, sequence) in due {
            self.stand(sequence, due, Stands::Pending { is_parked: false });
            if let Some(member) = self.members.get(&sequence) {
                released.push((sequence, Weak::clone(&member.task)));
            }
        }
        released
    }

    /// Returns `true` unless the member had left before.
    pub(super) fn leave(&mut self, sequence: u64, ended: MemberEnd) -> bool {
        let Some(due) = self.members.get(&sequence).map(|member| member.due) else { return false };
        self.stand(sequence, due, Stands::CalledOff(CancelReason::Requested));
        self.members.remove(&sequence);
        match ended {
            MemberEnd::Completed => self.counts.completed += 1,
            MemberEnd::Failed => self.counts.failed += 1,
            MemberEnd::Cancelled => self.counts.cancelled += 1,
        }
        true
    }

    /// Calls off the pending members that are `unwanted`, and returns all that are.
    pub(super) fn call_off(
        &mut self,
        reason: CancelReason,
        unwanted: impl Fn(&ListedMember) -> bool,
    ) -> Vec<ListedMember> {
        let listed: Vec<_> = self.listed().filter(unwanted).collect();
        for member in listed.iter().filter(|member| member.is_pending) {
            self.stand(member.sequence, member.due, Stands::CalledOff(reason));
        }
        listed
    }

    pub(super) fn list_running(&self) -> Vec<ListedMember> {
        self.listed().filter(|member| !member.is_pending).collect()
    }

    fn listed(&self) -> impl Iterator<Item = ListedMember> {
        self.members.iter().map(|(sequence, member)| ListedMember {
            task: Weak::clone(&member.task),
            sequence: *sequence,
            slot: member.slot,
            due: member.due,
            is_pending: member.stands != Stands::Running,
            at_shutdown: member.at_shutdown,
        })
    }

    pub(super) fn dissolve(&mut self) {
        let pending: Vec<_> = self.listed().filter(|member| member.is_pending).collect();
        for member in pending {
            self.leave(member.sequence, MemberEnd::Cancelled);
        }
        self.end.executor_closes_at_once();
    }

    pub(super) fn counted(&self) -> Counted {
        Counted {
            pending: self.members.len() - self.running,
            parked: self.parked,
            active: self.running,
            totals: self.counts,
        }
    }

    /// Returns `true` if a member is due by `deadline`, or is more than pending.
    pub(super) fn can_run_until(&self, deadline: Timestamp) -> bool {
        let is_due = self.order.first().is_some_and(|(due, _)| *due <= deadline);
        is_due || self.order.len() < self.members.len() || self.end.joining > 0
    }

    /// Ends the group if nothing of it is left. Returns `true` if it has ended.
    pub(super) fn terminate(&mut self) -> bool {
        self.end.terminate(self.members.is_empty())
    }
}

/// The name is read only for a report.
pub(super) type Name = Option<Arc<str>>;
