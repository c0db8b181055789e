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

use super::{IfRunning, Pool, control::QueuedEntry, kept::Kept};
#[cfg(feature = "histograms")]
use crate::histogram::Recorder;
use crate::{
    CancelReason,
    drained::DrainedTask,
    entry::Ticket,
    layers::{Dispatcher, GroupLimits, GroupState, Keeps, ListedMember, ShutdownPolicy},
    queue::QueueEntry,
    sync::{Arc, Mutex, Weak},
    task::Task,
    time::Timestamp,
    unwind::discard,
};

/// The groups of a pool that are alive.
#[derive(Default)]
pub(crate) struct Groups {
    list: Mutex<Kept<Weak<GroupState>>>,
}

impl Groups {
    /// Lists a group. A thread that makes one reads the phase afterwards, and a shutdown advances the phase before it reads
    /// the list: the lock orders the two.
    fn add(&self, group: &Arc<GroupState>) {
        let gone = self.list.lock().add(Arc::downgrade(group), |group| group.strong_count() == 0);
        drop(gone);
    }

    pub(crate) fn all(&self) -> Vec<Arc<GroupState>> {
        self.list.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// Tells all groups of another core pool size.
    pub(super) fn resize(&self, wanted: impl Fn() -> usize) {
        for group in self.all() {
            group.resize(&wanted);
            discard(group);
        }
    }

    /// Tells all groups that the pool was shut down. Returns what only a paused group would still keep, for the
    /// caller to end it.
    pub(super) fn close(&self, kept: Option<Keeps>) -> Vec<ListedMember> {
        let mut called_off = Vec::new();
        let Some(keeps) = kept else { return called_off };
        for group in self.all() {
            called_off.append(&mut group.executor_closes(keeps));
            discard(group);
        }
        called_off
    }

    /// Tells all groups that the pending tasks have been taken out of the queue.
    pub(super) fn dissolve(&self) {
        for group in self.all() {
            group.dissolve();
            discard(group);
        }
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
            let ticket = Ticket::without_slot(sequence);
            let ((), call) = QueuedEntry::moving(&self.queue, ticket, |entry| task.let_go(entry));
            Some((task, call))
        });
        for (task, call) in moved.collect::<Vec<_>>() {
            self.call_worker(call);
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
        group.resize(|| self.workers.wanted());
        if let Some(keeps) = self.policies.kept_in(self.lifecycle.phase()) {
            self.end_called_off(group.executor_closes(keeps), keeps.reason, IfRunning::LetReturn);
        }
        group
    }

    /// Ends members that their group has called off, or that run. Returns how many that are: a worker may have been
    /// faster with one that was called off.
    pub(crate) fn end_called_off(
        &self,
        members: Vec<ListedMember>,
        reason: CancelReason,
        if_running: IfRunning,
    ) -> usize {
        let mut ended = 0;
        for ListedMember { task, sequence, slot, is_pending, .. } in members {
            let task = task.upgrade();
            let ticket = Ticket { slot, sequence };
            let end = |task: &Arc<Task>| self.cancel(&**task, ticket, reason, if_running);
            ended += usize::from(task.as_ref().is_some_and(end) || is_pending);
            discard(task);
        }
        ended
    }

    /// Takes a member that its group has called off out of the queue, for the caller of the group's shutdown; or asks its
    /// body to stop, if it runs.
    pub(crate) fn drain_member(
        &self,
        member: ListedMember,
        reason: CancelReason,
    ) -> Option<DrainedTask> {
        let ListedMember { task, sequence, slot, due, is_pending, .. } = member;
        let task = task.upgrade()?;
        if !is_pending {
            task.token(&self.token).cancel();
            discard(task);
            return None;
        }
        let ticket = Ticket { slot, sequence };
        // If it is not there a worker has it, and finds it called off.
        let removed = task.find_entry(ticket, |ticket| self.queue.remove(ticket));
        let drained = removed.map(|element| {
            self.entry_removed();
            element.leave_group();
            // From now on its holder may run it.
            element.give_away();
            let entry = QueueEntry { deadline: due, sequence, element };
            DrainedTask::new(entry, &self.detached_context(), reason)
        });
        discard(task);
        drained
    }
}
