//! The groups of a pool: operations that involve a group, its members, and their entries in the queue.
//!
//! A group decides under its own lock, and knows nothing of the queue ([`GroupState`]). The functions here carry out
//! the group's decisions, one member after the other, with no lock held. The pool keeps weak references to its groups,
//! to tell all of them of a new core pool size or of a shutdown.
//!
//! # Where groups meet a shutdown
//!
//! The queue knows when a parked member is due ([`Timing`](crate::entry::Timing)). So a shutdown treats the member's
//! entry like any other entry. A worker may take a task that then has to wait for its turn. Even a closed queue admits
//! such a task again ([`Requeue::Turn`](crate::entry::Requeue)), provided that the shutdown keeps the task.
//!
//! A shutdown treats the waiting members of a *paused* group as not yet due, as it does paused tasks: it ends the
//! members that the policies do not keep. The group learns of the shutdown under its lock. From then on, a worker that
//! asks about such a member has to end the member. After the shutdown, no group can be paused. So pausing a group
//! delays termination only where pausing a task would.

use super::{GroupState, Roll, roll::Member};
use crate::{
    CancelReason,
    drained::DrainedTask,
    pool::{IfRunning, Pool, keep},
    queue::QueueEntry,
    sync::{Arc, Mutex, Weak},
    task::Task,
    unwind::discard,
};

#[derive(Default)]
pub(crate) struct Groups {
    list: Mutex<Vec<Weak<GroupState>>>,
}

impl Groups {
    /// Lists a new group. The caller reads the pool's phase afterwards; a thread that shuts the pool down advances the
    /// phase before it reads the list. The list's lock orders the two threads, so no group misses the shutdown.
    pub(super) fn add(&self, group: &Arc<GroupState>) {
        let is_gone = |group: &Weak<GroupState>| group.strong_count() == 0;
        let gone = keep(&mut self.list.lock(), Arc::downgrade(group), is_gone);
        drop(gone);
    }

    pub(crate) fn all(&self) -> Vec<Arc<GroupState>> {
        self.list.lock().iter().filter_map(Weak::upgrade).collect()
    }

    pub(crate) fn tell(&self, change: &mut dyn FnMut(&mut Roll)) {
        for group in self.all() {
            group.change(&mut *change);
            discard(group);
        }
    }
}

impl Pool {
    /// Ends members that are running, or that their group has called off. Returns how many have ended, including
    /// called-off members that a worker ended first.
    pub(crate) fn end_called_off(
        &self,
        members: Vec<Member>,
        reason: CancelReason,
        if_running: IfRunning,
    ) -> usize {
        let mut ended = 0;
        for member in members {
            let task = member.task.upgrade();
            let end = |task: &Arc<Task>| self.cancel(&**task, member.ticket, reason, if_running);
            ended += usize::from(task.as_ref().is_some_and(end) || !member.is_running());
            discard(task);
        }
        ended
    }

    /// Takes a member out of the queue, for the caller of the group's `shutdown_now`. Returns `None` if the member is
    /// no longer in the queue. If the member is running, cancels the member's token.
    pub(crate) fn drain_member(&self, member: Member, reason: CancelReason) -> Option<DrainedTask> {
        let task = member.task.upgrade()?;
        if member.is_running() {
            task.token(&self.token).cancel();
            discard(task);
            return None;
        }
        let Member { ticket, due, .. } = member;
        // If the entry is not there, a worker has the task, and finds it called off.
        let removed = task.find_entry(ticket, |ticket| self.queue.withdraw(ticket));
        let drained = removed.map(|element| {
            self.entry_removed();
            element.leave_group();
            // From now on the holder of the `DrainedTask` may run the task.
            element.give_away();
            let entry = QueueEntry { deadline: due, sequence: ticket.sequence, element };
            DrainedTask::new(entry, &self.detached_context(), reason)
        });
        discard(task);
        drained
    }
}
