//! The groups of a pool: operations that need a group, its members and their entries in the queue at once.
//!
//! A group decides under its own lock, and knows no queue ([`GroupState`]). What follows from its decisions
//! is done here, one member after the other, with no lock held. The pool lists its groups, weakly, for what
//! all of them have to know: another core pool size, and a shutdown.
//!
//! # Where groups meet a shutdown
//!
//! A member that its group has parked is due all the same, and the queue knows when
//! ([`Timing`](crate::entry::Timing)). So a shutdown decides about it as about any other entry, in the same
//! step, and a closed queue still admits a task that was taken and has to wait
//! ([`Requeue::Turn`](crate::entry::Requeue)), if what closed it would have kept the task.
//!
//! A member that is parked because its group is *paused* is as good as a paused task: an executor that does
//! not keep delayed tasks ends it. A group that is told so under its lock ends what comes later as well, and
//! is never paused again; so a pause cannot keep an executor from its end where that of a task would not.

use super::{IfRunning, Pool, keep};
#[cfg(feature = "histograms")]
use crate::histogram::Recorder;
use crate::{
    CancelReason,
    drained::DrainedTask,
    entry::Ticket,
    feature::{GroupLimits, GroupState, Member, Roll, ShutdownPolicy},
    queue::QueueEntry,
    sync::{Arc, Mutex, Weak},
    task::{Dispatcher, Task},
    time::Timestamp,
    unwind::discard,
};

/// The groups of a pool that are alive.
#[derive(Default)]
pub(crate) struct Groups {
    list: Mutex<Vec<Weak<GroupState>>>,
}

impl Groups {
    /// Lists a group. A thread that makes one reads the phase afterwards, and a shutdown advances the phase before it reads
    /// the list: the lock orders the two.
    fn add(&self, group: &Arc<GroupState>) {
        let is_gone = |group: &Weak<GroupState>| group.strong_count() == 0;
        let gone = keep(&mut self.list.lock(), Arc::downgrade(group), is_gone);
        drop(gone);
    }

    pub(crate) fn all(&self) -> Vec<Arc<GroupState>> {
        self.list.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// Tells each group of a change that is the pool's. Returns the answers.
    pub(super) fn tell<R>(&self, change: impl Fn(&mut Roll) -> R) -> Vec<R> {
        let tell = |group: Arc<GroupState>| {
            let answer = group.change(&change);
            discard(group);
            answer
        };
        self.all().into_iter().map(tell).collect()
    }
}

impl Dispatcher for Pool {
    fn let_go(self: Arc<Self>, tasks: Vec<(u64, Weak<Task>)>) {
        // All of them first: to wake a waiter or to start a worker is to call user code, for which no
        // other task is to wait.
        let moved = tasks.into_iter().filter_map(|(sequence, task)| {
            // A task that is gone has ended, or is about to.
            let task = task.upgrade()?;
            // The task knows its slot: a worker has queued it again.
            let mut entry = self.entry(Ticket::without_slot(sequence));
            task.let_go(&mut |slot, choose| entry.move_to(slot, choose));
            Some((task, entry))
        });
        for (task, entry) in moved.collect::<Vec<_>>() {
            self.call_worker(entry.is_moved, entry.wake);
            discard(task);
        }
        discard(self);
    }

    fn set_limit(self: Arc<Self>, task: Arc<Task>, sequence: u64, limit: Timestamp) {
        // Seldom, so one stripe serves for all.
        self.set_timeout(0, task, Ticket::without_slot(sequence), limit);
        discard(self);
    }
}

impl Pool {
    /// Makes a group. It is told of every later change of the core pool size.
    pub(crate) fn new_group(
        self: &Arc<Self>,
        name: Arc<str>,
        limit: usize,
        reserved: usize,
        at_shutdown: Option<ShutdownPolicy>,
    ) -> Arc<GroupState> {
        let limits = GroupLimits { limit, reserved, workers: self.workers.wanted() };
        let dispatcher: Weak<dyn Dispatcher> = Arc::downgrade(self) as _;
        let group = GroupState::new(name, dispatcher, limits, at_shutdown);
        #[cfg(feature = "histograms")]
        let group =
            group.recorded(self.observing.histograms.as_ref().map(|_| Arc::new(Recorder::new())));
        let group = Arc::new(group);
        self.groups.add(&group);
        // A change made since the group was listed is seen here, or by the thread that makes it.
        group.change(|roll| roll.limits.workers = self.workers.wanted());
        if let Some(keeps) = self.policies.kept_in(self.lifecycle.phase()) {
            let called_off = group.change(|roll| roll.executor_closes(keeps));
            self.end_called_off(called_off, keeps.reason, IfRunning::LetReturn);
        }
        group
    }

    /// Ends members that their group has called off, or that run. Returns how many that are: a worker may have been
    /// faster with one that was called off.
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

    /// Takes a member that its group has called off out of the queue, for the caller of the group's shutdown; or asks its
    /// body to stop, if it runs.
    pub(crate) fn drain_member(&self, member: Member, reason: CancelReason) -> Option<DrainedTask> {
        let task = member.task.upgrade()?;
        if member.is_running() {
            task.token(&self.token).cancel();
            discard(task);
            return None;
        }
        let Member { ticket, due, .. } = member;
        // If it is not there a worker has it, and finds it called off.
        let removed = task.find_entry(ticket, |ticket| self.queue.remove(ticket));
        let drained = removed.map(|element| {
            self.entry_removed();
            element.leave_group();
            // From now on its holder may run it.
            element.give_away();
            let entry = QueueEntry { deadline: due, sequence: ticket.sequence, element };
            DrainedTask::new(entry, &self.detached_context(), reason)
        });
        discard(task);
        drained
    }
}
