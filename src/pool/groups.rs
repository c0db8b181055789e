//! The groups of a pool: what needs a group, its members and their entries in the queue at once.
//!
//! A group decides under its own lock, and knows no queue ([`GroupState`]). What follows from its decisions is done here:
//! the entries of members whose turn has come are moved to where their plans are, and members that were called off
//! are ended, one after the other, with no lock held.
//!
//! The pool lists its groups, weakly: a group lives as long as a handle of it or a task in it does. The list is read
//! where all groups have to know of something: another core pool size, and a shutdown.
//!
//! # Where groups meet a shutdown
//!
//! A member that its group has parked is due all the same, and the queue knows when
//! ([`Timing`](crate::entry::Timing)). So a shutdown decides about it as about any other entry, in the same step, and a
//! closed queue still admits a task that was taken and has to wait ([`Requeue::Turn`](crate::entry::Requeue)), if what
//! closed it would have kept the task. It then runs in its turn, as every task that is due does.
//!
//! A member that is parked because its group is *paused* is as good as a paused task: an executor that does not keep
//! delayed tasks ends it. A group that is told so under its lock ends what comes later as well, and is
//! never paused again; so a pause cannot keep an executor from its end where that of a task would not.

use std::time::Duration;

use super::{DrainedTask, IfRunning, Phase, Pool, ShutdownReport, TaskSummary, kept::Kept};
use crate::{
    CancelReason, WouldDeadlock,
    entry::Ticket,
    layers::{Dispatcher, GroupLimits, GroupState, Keeps, ListedMember},
    queue::QueueEntry,
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicBool, Ordering},
    },
    task::{Run, Task},
    unwind::discard,
    wait::{self, Place},
};

/// The groups of a pool that are alive.
#[derive(Default)]
pub(super) struct Groups {
    list: Mutex<Kept<Weak<GroupState>>>,
    /// Set for good with the first group, so that a pool without groups does not look for them.
    has_any: AtomicBool,
}

impl Groups {
    fn add(&self, group: &Arc<GroupState>) {
        let gone = self.list.lock().add(Arc::downgrade(group), |group| group.strong_count() == 0);
        drop(gone);
        // Ordering: a thread that makes a group writes this and then reads the phase; a shutdown advances the phase
        // and then reads this. See `queue::waiters`.
        self.has_any.store(true, Ordering::SeqCst);
    }

    fn all(&self) -> Vec<Arc<GroupState>> {
        self.list.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// Returns `true` if the pool has never had a group.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        // Ordering: see `add`.
        !self.has_any.load(Ordering::SeqCst)
    }
}

impl Dispatcher for Pool {
    fn let_go(self: Arc<Self>, members: Vec<(u64, Weak<Task>)>) {
        // All of them first: to wake a waiter or to start a worker is to call user code, for which no
        // other member is to wait.
        let moved = members.into_iter().filter_map(|(sequence, task)| {
            // A task that is gone has left, or is about to.
            let task = task.upgrade()?;
            // The task knows its slot: a worker has queued it again.
            let ticket = Ticket::without_slot(sequence);
            let ((), call) = self.moving(ticket, |entry| task.let_go(entry));
            Some((task, call))
        });
        for (task, call) in moved.collect::<Vec<_>>() {
            self.call_worker(call);
            discard(task);
        }
        discard(self);
    }
}

// The groups, and the size of the pool.
impl Pool {
    /// Makes a group. It is told of every later change of the core pool size.
    pub(crate) fn new_group(
        self: &Arc<Self>,
        name: Arc<str>,
        limit: usize,
        reserved: usize,
    ) -> Arc<GroupState> {
        let limits = GroupLimits { limit, reserved, workers: self.workers.wanted() };
        let dispatcher: Weak<dyn Dispatcher> = Arc::downgrade(self) as _;
        let group = GroupState::new(name, dispatcher, limits);
        #[cfg(feature = "histograms")]
        let group = group.recorded(self.new_recorder());
        let group = Arc::new(group);
        self.groups.add(&group);
        // What has been changed since the group is listed is seen here, or by the thread that changes it.
        group.resize(|| self.workers.wanted());
        if let Some(keeps) = self.kept_now() {
            self.end_called_off(group.executor_closes(keeps), keeps.reason, IfRunning::LetReturn);
        }
        group
    }

    pub(crate) fn groups(&self) -> Vec<Arc<GroupState>> {
        self.groups.all()
    }

    /// Tells all groups of another core pool size.
    pub(super) fn groups_resized(&self) {
        for group in self.groups.all() {
            group.resize(|| self.workers.wanted());
            discard(group);
        }
    }
}

// Shutdowns of the pool.
impl Pool {
    /// Returns what the pool keeps, if it was shut down.
    fn kept_now(&self) -> Option<Keeps> {
        let phase = self.phase();
        let by_policy = phase == Phase::ShuttingDown;
        (phase > Phase::Running).then(|| Keeps {
            delayed: by_policy && self.keeps_delayed(),
            periodic: by_policy && self.keeps_periodic(),
            reason: phase.reason(),
        })
    }

    /// Tells all groups that the pool was shut down. Returns what only a paused group would still keep, for the
    /// caller to end it.
    pub(super) fn close_groups(&self) -> Vec<ListedMember> {
        let mut called_off = Vec::new();
        if self.groups.is_empty() {
            return called_off;
        }
        let Some(keeps) = self.kept_now() else { return called_off };
        for group in self.groups.all() {
            called_off.append(&mut group.executor_closes(keeps));
            discard(group);
        }
        called_off
    }

    /// Tells all groups that the pending tasks have been taken out of the queue.
    #[inline]
    pub(super) fn dissolve_groups(&self) {
        if !self.groups.is_empty() {
            self.dissolve_all();
        }
    }

    #[cold]
    fn dissolve_all(&self) {
        for group in self.groups.all() {
            group.dissolve();
            discard(group);
        }
    }
}

// The members of one group, and what is done with them.
impl Pool {
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

    /// Shuts a group down: by the policies of the pool, as it would shut down itself.
    pub(crate) fn shut_group_down(&self, group: &GroupState) {
        let keeps = Keeps {
            delayed: self.keeps_delayed(),
            periodic: self.keeps_periodic(),
            reason: CancelReason::GroupShutdown,
        };
        let called_off = group.shut_down(keeps, self.clock.read());
        self.wake_submitters();
        self.end_called_off(called_off, keeps.reason, IfRunning::LetReturn);
    }

    /// Shuts a group down at once: takes its pending members out of the queue, and asks the others to stop.
    pub(crate) fn stop_group(&self, group: &GroupState) -> Vec<DrainedTask> {
        let reason = CancelReason::GroupShutdown;
        let context = self.detached_context();
        let mut drained = Vec::new();
        let members = group.stop(Keeps { delayed: false, periodic: false, reason });
        self.wake_submitters();
        for member in members {
            let ListedMember { task, sequence, slot, due, is_pending, .. } = member;
            let Some(task) = task.upgrade() else { continue };
            if !is_pending {
                task.token(self.shutdown.token()).cancel();
                discard(task);
                continue;
            }
            let ticket = Ticket { slot, sequence };
            // If it is not there a worker has it, and finds it called off.
            let removed = self.find(&*task, ticket, |ticket| self.queue.remove(ticket));
            if let Some(element) = removed {
                self.entry_removed();
                element.leave_group();
                // From now on its holder may run it.
                element.give_away();
                let entry = QueueEntry { deadline: due, sequence, element };
                drained.push(DrainedTask::new(entry, &context, reason));
            }
            discard(task);
        }
        drained
    }

    /// Shuts a group down, and after `patience` at once. Waits for another `grace` for what runs.
    pub(crate) fn stop_group_within(
        &self,
        group: &GroupState,
        patience: Duration,
        grace: Duration,
    ) -> Result<ShutdownReport, WouldDeadlock> {
        group.open_log();
        self.shut_group_down(group);
        let mut is_over = self.await_group(group, patience)?;
        if !is_over {
            drop(self.stop_group(group));
            is_over = self.await_group(group, grace)?;
        }
        let (ended, running) = group.read_log();
        let summaries = |list: Vec<(u64, Option<Arc<str>>)>| {
            list.into_iter().map(|(id, name)| TaskSummary::new(id, name)).collect()
        };
        let named = |ListedMember { task, sequence, .. }: ListedMember| {
            let task = task.upgrade();
            let name = task.as_ref().and_then(|task| task.name());
            discard(task);
            (sequence, name)
        };
        let running = running.into_iter().map(named).collect();
        Ok(ShutdownReport::new(
            is_over,
            summaries(ended.ran),
            summaries(ended.cancelled),
            summaries(running),
        ))
    }

    /// Waits for the end of a group, but no longer than `timeout`. Returns `true` if it has ended.
    pub(crate) fn await_group(
        &self,
        group: &GroupState,
        timeout: Duration,
    ) -> Result<bool, WouldDeadlock> {
        if self.would_wait_for_itself() {
            return Err(WouldDeadlock(()));
        }
        let deadline = self.clock().read().after(timeout);
        let mut place = Place::default();
        let poll = |waker: &_| group.poll_terminated(&mut place, waker);
        let has_ended = wait::block_until(self.clock(), deadline, poll).is_some();
        group.forget(&mut place);
        Ok(has_ended)
    }

    /// Returns `true` if the calling thread runs a member of the group of `task`, holds its only permit, and so
    /// keeps `task` from starting.
    pub(super) fn is_blocked_by_own_group(task: &Task) -> bool {
        let Some((group, awaited)) = task.group() else { return false };
        let own = Run::current().and_then(|run| {
            let own = run.task.group();
            discard(run);
            own
        });
        own.is_some_and(|(own, joiner)| {
            Arc::ptr_eq(&own, &group) && group.is_blocked_by(joiner, awaited)
        })
    }
}
