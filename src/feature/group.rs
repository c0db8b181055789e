//! Groups: handles to subsets of an executor's tasks.
//!
//! A [`Group`] holds an [executor's handle](Handle) and the state that the group's members share. [`state`] says what
//! that state decides, and why each member starts eventually; [`of_pool`] carries its decisions out.

mod membership;
mod of_pool;
mod roll;
mod state;

use std::{
    fmt,
    future::Future,
    mem,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

pub(crate) use self::{
    membership::Membership,
    of_pool::Groups,
    roll::{Member, Roll},
    state::{GroupState, Joining},
};
use crate::{
    CancelReason, ConfigError, DrainedTask, Grace, Handle, ShutdownReport, TaskBuilder,
    WouldDeadlock,
    feature::{Keeps, ShutdownPolicy},
    pool::IfRunning,
    statistics::Totals,
    sync::Arc,
    unwind::discard,
    wait::{self, Place, Watched},
};

/// A named group of an executor's tasks: a concurrency limit, and operations on all of them together.
///
/// Made by [`Handle::group`]. It is cheap to clone, keeps no executor alive, and dropping it changes nothing: without
/// handles, the group's tasks go on under its limit. [`Handle::groups`] finds it again while one of its tasks, or the
/// future of one, exists.
///
/// ```
/// use std::time::Duration;
/// use punctual::ScheduledThreadPoolExecutor;
///
/// let executor = ScheduledThreadPoolExecutor::new(4);
/// let mail = executor.group("mail").limit(1).build()?; // one at a time
/// for _ in 0..10 {
///     mail.task().submit(|| { /* send one */ })?;
/// }
/// mail.shutdown();
/// mail.await_termination(Duration::MAX)?;
/// assert_eq!(mail.statistics().completed, 10);
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
///
/// # The limit
///
/// At most [`limit`](GroupBuilder::limit) tasks of the group run at once; with 1 they never overlap. If workers are
/// [reserved](GroupBuilder::reserve) for others, at most as many run as the core pool size minus these, but always at
/// least one may. A run counts from when its [gate](TaskBuilder::gate), if it has one, is asked until its body and the
/// hooks around it have returned, even if its task is cancelled meanwhile. Lowering the limit interrupts no run.
///
/// A due task that has to wait for its group occupies no worker, and other due tasks run. It is pending, and can be
/// cancelled, moved and paused like any pending task; its time limit keeps running, and its delay and its lateness
/// count from its planned moment.
///
/// **The order** inside a group is the executor's: the task that is due first runs first, and of those due at the same
/// moment, the one submitted first. The order is strict, however many workers there are: no task of a group starts
/// while one before it waits and there is a permit for only one of them.
///
/// # Pauses
///
/// While a group is [paused](Self::pause), none of its tasks starts. Their schedules go on, as when a
/// [task](crate::TaskHandle::pause) is paused: a run that falls due meanwhile is late, and after the pause the [policy
/// for missed runs](crate::MissedRuns) of each task decides about it.
///
/// # The end of the executor
///
/// A shutdown treats a due task that waits for its group like any other due task. If the owner is dropped, the task
/// runs in its turn; [`shutdown_now`](Handle::shutdown_now) gives it back. Pausing a group holds its tasks as pausing
/// each of them would: a shutdown that keeps delayed tasks waits until the group is resumed, and any other stop cancels
/// them. After that, no group can be paused. A task that was given back, or that is run [by
/// hand](crate::DrainedTask::run) or on its submitter's thread, has left its group, and the limit no longer applies to
/// it.
///
/// # Deadlocks
///
/// A task that has the only permit and waits for another task of its group waits forever: that is not
/// [detected](crate::WouldDeadlock) while another worker is free. Give the [`join`](crate::ScheduledFuture::join) a
/// limit, or let the task submit the other one and end.
///
/// # Cost
///
/// A task without a group pays nothing. A task in a group costs one more allocation, and takes the group's lock twice
/// to be submitted, twice to start and once to end, each time in O(log n) for n pending tasks of the group. A task that
/// has to wait is taken and queued once more.
#[doc(alias("Semaphore", "bulkhead", "JoinSet", "TaskTracker"))]
#[derive(Clone)]
pub struct Group {
    handle: Handle,
    pub(crate) state: Arc<GroupState>,
}

/// # Groups
impl Handle {
    /// Describes a group of this executor's tasks, which [`build`](GroupBuilder::build) makes. Several groups may have
    /// the same name.
    pub fn group(&self, name: impl Into<Arc<str>>) -> GroupBuilder<'_> {
        let (name, limit, reserved, on_shutdown) = (name.into(), usize::MAX, 0, None);
        GroupBuilder { handle: self, name, limit, reserved, on_shutdown }
    }

    /// Returns the groups of this executor that still have a handle, a task, or the future of one, in the order in
    /// which they were made. Takes time linear in their number.
    pub fn groups(&self) -> Vec<Group> {
        let groups = self.pool().extensions.groups.all().into_iter();
        groups.map(|state| Group { handle: self.clone(), state }).collect()
    }
}

impl TaskBuilder<'_> {
    /// Puts the task into a group of the same executor, in place of any earlier one. [`Group::task`] is the short form.
    pub fn group(mut self, group: &Group) -> Self {
        self.requested.group = Some(Arc::clone(&group.state));
        self
    }
}

/// Describes a [`Group`] before it is made; from [`Handle::group`]. By default a group limits nothing.
#[derive(Clone, Debug)]
#[must_use = "no group is made until `build` is called"]
pub struct GroupBuilder<'a> {
    handle: &'a Handle,
    name: Arc<str>,
    limit: usize,
    reserved: usize,
    on_shutdown: Option<ShutdownPolicy>,
}

impl GroupBuilder<'_> {
    /// Sets how many tasks of the group may run at once; with 1 they never overlap. The default is no limit.
    #[doc(alias("semaphore", "max_concurrency", "concurrency_limit", "buffer_unordered"))]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Sets how many workers stay free for other tasks: the group runs at most as many tasks at once as the [core pool
    /// size](Handle::set_core_pool_size), which may change, minus `workers`. One may always run, even if all workers
    /// are reserved. The default is zero.
    pub fn reserve(mut self, workers: usize) -> Self {
        self.reserved = workers;
        self
    }

    /// Sets what a graceful shutdown of the group or of its executor does to tasks without a [policy of their
    /// own](crate::TaskBuilder::on_shutdown), which has an example. By default the executor's two policies decide.
    pub fn on_shutdown(mut self, policy: ShutdownPolicy) -> Self {
        self.on_shutdown = Some(policy);
        self
    }

    /// Makes the group.
    ///
    /// # Errors
    ///
    /// [`ConfigError::ZeroLimit`] if the limit is zero.
    pub fn build(self) -> Result<Group, ConfigError> {
        if self.limit == 0 {
            return Err(ConfigError::ZeroLimit);
        }
        let Self { handle, name, limit, reserved, on_shutdown } = self;
        let pool = handle.pool();
        let roll = Roll::new(limit, reserved, pool.workers.wanted());
        let state = Arc::new(GroupState {
            // An `Arc` of its own, by which observers tell the group from others with the same name.
            name: Arc::from(&*name),
            pool: Arc::downgrade(pool),
            at_shutdown: on_shutdown,
            roll: Watched::new(roll),
        });
        pool.extensions.groups.add(&state);
        // A thread that changes the pool size or the phase finds the group listed, or this thread sees the change.
        state.change(|roll| roll.workers = pool.workers.wanted());
        if let Some(keeps) = pool.policies.kept_in(pool.lifecycle.phase()) {
            let called_off = state.change(|roll| roll.executor_closes(keeps));
            pool.end_called_off(called_off, keeps.reason, IfRunning::LetReturn);
        }
        Ok(Group { handle: handle.clone(), state })
    }
}

impl Group {
    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// Returns the executor's handle.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Returns how many tasks of the group may run at once; `usize::MAX` if no limit was set.
    pub fn limit(&self) -> usize {
        self.state.roll().limit
    }

    /// Sets how many tasks of the group may run at once. If the limit is higher than before, waiting tasks start at
    /// once; if it is lower, no task starts until enough running ones have ended.
    ///
    /// # Errors
    ///
    /// [`ConfigError::ZeroLimit`] if it is zero. Then nothing changes.
    pub fn set_limit(&self, limit: usize) -> Result<(), ConfigError> {
        if limit == 0 {
            return Err(ConfigError::ZeroLimit);
        }
        self.state.change(|roll| roll.limit = limit);
        Ok(())
    }

    /// Returns how many workers the group leaves to others.
    pub fn reserved(&self) -> usize {
        self.state.roll().reserved
    }

    /// Sets how many workers the group leaves to others: see [`GroupBuilder::reserve`].
    pub fn set_reserved(&self, workers: usize) {
        self.state.change(|roll| roll.reserved = workers);
    }

    /// Keeps all tasks of the group from starting until it is [resumed](Self::resume). Interrupts no run. Afterwards
    /// the tasks are late, and the [policy](crate::MissedRuns) of each decides about the runs that it missed. Returns
    /// `false`, and does nothing, if the group is paused already, or if it or its executor was shut down.
    ///
    /// ```
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let polls = executor.group("polls").build()?;
    /// assert!(polls.pause());
    /// let poll = polls.task().submit(|| "polled")?;
    /// assert!(!poll.is_done() && polls.resume());
    /// assert_eq!(poll.join()?, "polled");
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn pause(&self) -> bool {
        self.state.roll().pause()
    }

    /// Ends a [pause](Self::pause). Returns `false` if there was none.
    pub fn resume(&self) -> bool {
        self.state.change(|roll| mem::take(&mut roll.is_paused))
    }

    /// Returns `true` if the group is paused.
    pub fn is_paused(&self) -> bool {
        self.state.roll().is_paused
    }

    /// Cancels all tasks of the group, as with [`cancel_and_signal`](crate::TaskHandle::cancel_and_signal): the pending
    /// ones no longer start; the running ones end for all their waiters, and their [tokens](crate::TaskContext::token)
    /// are cancelled. Returns how many tasks there were. The group goes on, and admits others. Takes time linear in the
    /// number of its tasks, and drops their closures.
    #[doc(alias = "abort_all")]
    pub fn cancel_all(&self) -> usize {
        let reason = CancelReason::Requested;
        let called_off = self.state.roll().call_off(reason, &|_| true);
        self.handle.pool().end_called_off(called_off, reason, IfRunning::Signal)
    }

    /// Returns the group's counts in one consistent snapshot. Takes one lock.
    pub fn statistics(&self) -> GroupStatistics {
        let roll = self.state.roll();
        let Totals { completed, failed, cancelled, runs, failed_runs, .. } = roll.totals;
        GroupStatistics {
            pending: roll.pending(),
            waiting: roll.parked,
            active: roll.running,
            submitted: roll.submitted,
            rejected: roll.rejected,
            completed,
            failed,
            cancelled,
            runs,
            failed_runs,
        }
    }

    /// Returns a builder that describes a task of this group before it is submitted. Its submissions fail as the
    /// executor's do, and with [`GroupShutdown`](crate::RejectionReason::GroupShutdown) if the group was shut down. The
    /// error owns the task. A [retry](TaskBuilder::retry) is a member from its first attempt to its last, and holds a
    /// permit only during an attempt.
    pub fn task(&self) -> TaskBuilder<'_> {
        self.handle.task().group(self)
    }

    /// Stops admitting tasks to the group. A later submission fails with
    /// [`GroupShutdown`](crate::RejectionReason::GroupShutdown) and gets its closure back; no handler is asked. So does
    /// one that is waiting for room in the executor. The executor and its other tasks go on.
    ///
    /// The executor's two policies decide whether pending tasks run or are cancelled: by default one-shot tasks still
    /// run, and periodic ones are cancelled. A running periodic task finishes its run, and its future completes at
    /// once. A paused group is resumed. Does not wait. Idempotent. Takes time linear in the number of the group's
    /// tasks.
    pub fn shutdown(&self) {
        let pool = self.handle.pool();
        let keeps = pool.policies.keeps(CancelReason::GroupShutdown);
        pool.end_called_off(self.close(keeps), keeps.reason, IfRunning::LetReturn);
    }

    /// Stops admitting tasks. Calls off the members that are neither kept nor running. Returns all that are not kept,
    /// for the caller to end.
    fn close(&self, keeps: Keeps) -> Vec<Member> {
        let pool = self.handle.pool();
        let now = pool.clock().read();
        let called_off = self.state.change(|roll| roll.shut_down(keeps, now));
        pool.capacity.wake_all();
        called_off
    }

    /// Stops admitting tasks to the group, cancels the [token](crate::TaskContext::token) of each of its running tasks,
    /// and returns the pending ones, to be run or dropped, in the order in which they were submitted. Does not wait. A
    /// task that a worker was just about to start ends as cancelled. Takes O(n log n).
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{DrainedTask, ScheduledThreadPoolExecutor};
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let mail = executor.group("mail").build()?;
    /// let letter = mail.task().schedule(Duration::from_secs(3600), || "sent")?;
    /// mail.shutdown_now().into_iter().for_each(DrainedTask::run);
    /// assert_eq!(letter.join()?, "sent");
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[must_use = "dropping pending tasks cancels them"]
    pub fn shutdown_now(&self) -> Vec<DrainedTask> {
        let (pool, reason) = (self.handle.pool(), CancelReason::GroupShutdown);
        let members = self.close(Keeps::none(reason)).into_iter();
        members.filter_map(|member| pool.drain_member(member, reason)).collect()
    }

    /// Shuts the group down within a time limit: calls [`shutdown`](Self::shutdown), waits at most `grace.patience` for
    /// its tasks, then calls [`shutdown_now`](Self::shutdown_now), drops what it returns, and waits at most
    /// `grace.then` for those that run. Returns a report, blocks and goes on early like the
    /// [executor's](crate::Handle::shutdown_within), which has an example. The executor goes on, and its drop waits for
    /// any task of the group that still runs.
    ///
    /// # Errors
    ///
    /// [`WouldDeadlock`], in the same cases as [`await_termination`](Self::await_termination). The group has
    /// then been shut down, and nothing else has been done.
    pub fn shutdown_within(&self, grace: Grace) -> Result<ShutdownReport, WouldDeadlock> {
        self.state.roll().log.get_or_insert_default();
        self.shutdown();
        let is_over = self.handle.pool().await_or_stop(
            grace,
            &|deadline| self.state.roll().can_run_until(deadline),
            &|limit| self.await_termination(limit),
            &|| drop(self.shutdown_now()),
        )?;
        let (ended, running) = self.state.roll().read_log();
        let running = running.into_iter().map(|member| {
            let task = member.task.upgrade();
            let name = task.as_ref().and_then(|task| task.name());
            discard(task);
            (member.ticket.sequence, name)
        });
        Ok(ended.at_end(is_over, running))
    }

    /// Blocks until the group has ended, which means that it or its executor was shut down and none of its tasks is
    /// left, but at most for `timeout`; `Duration::MAX` means no limit. Returns `true` if it has ended. On a manual
    /// clock [another thread has to move it](crate::ManualClock#when-it-blocks).
    ///
    /// # Errors
    ///
    /// [`WouldDeadlock`], at once, wherever a wait for the [executor](crate::Handle::await_termination) is
    /// refused: the group may need the calling thread.
    pub fn await_termination(&self, timeout: Duration) -> Result<bool, WouldDeadlock> {
        let pool = self.handle.pool();
        if pool.lifecycle.would_wait_for_itself() {
            return Err(WouldDeadlock(()));
        }
        let deadline = pool.clock().read().after(timeout);
        let mut place = Place::default();
        let poll = |waker: &_| self.state.poll_terminated(&mut place, waker);
        let has_ended = wait::block_until(pool.clock(), deadline, poll).is_some();
        self.state.roll.forget(&mut place);
        Ok(has_ended)
    }

    /// Returns a future that completes when the group has ended, as [`await_termination`](Self::await_termination)
    /// defines it. It needs no runtime, is `'static`, may be dropped at any time, and stops nothing itself. A poll and
    /// a drop cost O(log n) for n waiters. A task that blocks on it may wait for itself.
    pub fn termination(&self) -> GroupTermination {
        GroupTermination { group: self.clone(), place: Place::default() }
    }

    /// Returns `true` if the group was shut down; some of its tasks may be left.
    pub fn is_shutdown(&self) -> bool {
        self.state.roll().is_shut_down()
    }

    /// Returns `true` if the group or its executor was shut down, and none of its tasks is left.
    pub fn is_terminated(&self) -> bool {
        self.state.roll().is_terminated
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group")
            .field("name", &self.name())
            .field("limit", &self.limit())
            .field("is_paused", &self.is_paused())
            .field("statistics", &self.statistics())
            .finish_non_exhaustive()
    }
}

/// A future that completes when a group has ended: see [`Group::termination`].
#[derive(Debug)]
#[must_use = "it waits for nothing unless it is awaited"]
pub struct GroupTermination {
    group: Group,
    place: Place,
}

impl Future for GroupTermination {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Self { group, place } = &mut *self;
        let answer = group.state.poll_terminated(place, context.waker());
        answer.map_or(Poll::Pending, Poll::Ready)
    }
}

impl Drop for GroupTermination {
    fn drop(&mut self) {
        self.group.state.roll.forget(&mut self.place);
    }
}

/// How many tasks a group has and had, in one consistent snapshot; from
/// [`Group::statistics`](crate::Group::statistics).
///
/// Always `submitted == pending + active + completed + failed + cancelled`, `waiting <= pending` and
/// `failed <= failed_runs <= runs`. The group counts a task before its future shows how the task has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct GroupStatistics {
    /// The number of pending tasks, due or not.
    pub pending: usize,
    /// The number of these that are due, and that a worker has found waiting for the group.
    pub waiting: usize,
    /// The number of running tasks, which is at most the limit, unless that was lowered.
    pub active: usize,
    /// The number of tasks that have been admitted.
    pub submitted: u64,
    /// The number of submissions that were refused because the group was shut down.
    pub rejected: u64,
    /// The number of tasks that ended with a result, or because their trigger ended.
    pub completed: u64,
    /// The number of tasks that ended because a run failed.
    pub failed: u64,
    /// The number of tasks that were cancelled, for whatever reason, or given back. A task that is cancelled while it
    /// runs stays active until its body has returned.
    pub cancelled: u64,
    /// The number of runs; each run of a periodic task counts, and a run that its gate has skipped does not.
    pub runs: u64,
    /// The number of these that failed, including those after which the task went on.
    pub failed_runs: u64,
}
