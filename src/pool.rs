//! The pool: tasks, a queue, and the workers between them.
//!
//! ```text
//!   admit ──▶ queue ──▶ worker: run ──▶ Ended
//!               ▲                  └──▶ Again(when) ──┐
//!               └─────────── requeue ─────────────────┘
//! ```
//!
//! The pool is the only place that knows both sides of the layer below it: the queue knows nothing of
//! tasks, and a task knows nothing of the queue. It consists of parts, each with private state of
//! its own; the functions of [`Pool`] stand beside the part that they are about:
//!
//! | part | what it holds | functions of the pool |
//! |---|---|---|
//! | [`admission`] | the bound on pending tasks | `ensure_worker`, `offer` |
//! | [`rejection`] | the handler for tasks that are not admitted | `reject` |
//! | [`workers`] | the workers and what threads are started with | `compensate`, `start_service`, `set_core_pool_size` |
//! | [`shutdown`] | the phase, the policies, what holds up termination | `shutdown`, `stop`, `shutdown_now`, `join` |
//! | [`groups`] | the groups of tasks | `new_group`, `stop_group`, `close_groups` |
//! | [`control`] | nothing: it moves the entries of tasks that are alive | `change`, `with_entry` |
//! | [`deadlock`] | what workers wait for, and which pools a thread acts for | `enter_join` |
//! | [`timeouts`] | the timer thread and its queue | `ensure_timer_thread` |
//! | [`observing`] | what is watched of workers and runs | `observed`, `observation`, `begin_to_observe` |
//! | [`wall_clock`] | the thread that watches the wall clock | `ensure_wall_watcher`, `follow_wall` |
//! | [`driver`] | in place of all threads, the caller | `has_timer_thread` |
//!
//! This file has what needs a task and its entry in the queue at once: queuing again and cancelling.
//!
//! # Queuing again
//!
//! [`Pool::requeue`] holds the task's lock while the queue takes those of a stripe and of the waiters,
//! one after the other. That order, task before queue, is never reversed: nothing under a lock of
//! the queue touches a task's lock. It makes "the task is not cancelled" and "the task is in the
//! queue" one step, so a cancelled periodic task is never queued again, not even for a moment.
//!
//! # Cancelling
//!
//! [`Pool::cancel`] decides under the task's lock, and then takes the entry out of the queue by
//! its slot. When it returns the closure has been dropped, unless the task is running, and the
//! entry is gone. Three other steps can fall between those two:
//!
//! * *A worker takes the entry in between*: it finds nothing to run, and drops the node.
//! * *A worker queues the task again*: it does so under the task's lock, so either before the decision (and
//!   the entry is taken out again) or after it (and nothing is queued).
//! * *The slot has been given to another entry*: the queue compares the sequence, and removes nothing.
//!
//! # What a task costs
//!
//! One allocation, for its node. To schedule and cancel it takes one reading of the clock and
//! twelve read-modify-writes: six for locks (the stripe twice, the task), four for the counts of
//! the node (the queue's and the future's, and the one that std keeps for weak references), two for
//! that of the pool reference. To schedule it, drop the future and run it takes a second reading, and
//! fourteen: the stripe's lock, the ready list's and twice the task's, four for the node, two for the
//! pool reference. [`execute`](crate::Handle::execute) makes no future, and takes four less.
//! `ci/instructions.sh` counts them. Which thread is woken, and when none is:
//! [`queue`](crate::queue).

mod admission;
mod callbacks;
mod control;
mod deadlock;
mod drained;
mod driver;
mod groups;
mod kept;
mod observing;
mod pool_ref;
mod rejection;
mod shutdown;
mod statistics;
mod takes;
mod thread_factory;
mod timeouts;
mod timers;
mod wall_clock;
mod worker;
mod workers;

use std::time::Duration;

#[cfg(feature = "histograms")]
pub use self::observing::Histograms;
use self::{
    admission::Capacity,
    deadlock::JoinRegistry,
    drained::DetachedContext,
    groups::Groups,
    observing::Observing,
    rejection::Rejections,
    shutdown::Shutdown,
    timeouts::Timeouts,
    wall_clock::WallClock,
    workers::{Spawner, Workers},
};
pub(crate) use self::{
    admission::{NotQueued, Staffing},
    callbacks::{Callbacks, Replaceable, share_factory, share_handler},
    deadlock::JoinGuard,
    driver::Driver,
    observing::ObservingConfig,
    pool_ref::{PoolRef, PoolRefs},
    shutdown::Phase,
};
pub use self::{
    callbacks::Shared,
    drained::{DrainedTask, DrainedTasks, RejectedExecutionError},
    observing::{RunningTask, SlowRun, Starvation},
    rejection::{
        AbortPolicy, BlockPolicy, CallerRunsPolicy, DiscardOldestPolicy, DiscardPolicy,
        RejectedExecutionHandler, RejectedTask, Rejection, StockPolicy,
    },
    shutdown::{ShutdownReport, TaskSummary},
    statistics::{ExecutorState, Statistics},
    thread_factory::{ThreadFactory, Worker},
};
use crate::{
    CancelReason, Failure,
    entry::{Ticket, Timing},
    id::Subject,
    queue::{DelayedWorkQueue, SnapshotEntry},
    statistics::WorkerStats,
    sync::Arc,
    task::{Cancellation, FailureSource, Hooks, Requeued, Task},
    time::{Clock, Timestamp},
    trace,
    unwind::{Callback, Contained, discard, wake_all},
};

/// The settings that a pool is made with; the builder fills them in.
#[derive(Clone)]
pub(crate) struct Config {
    pub(crate) core_pool_size: usize,
    pub(crate) keep_alive: Duration,
    pub(crate) core_timeout: bool,
    pub(crate) max_pending: Option<usize>,
    pub(crate) thread_name: String,
    pub(crate) stack_size: Option<usize>,
    pub(crate) timer_slack: Duration,
    /// How long before a deadline a worker wakes; see `Builder::precise`.
    pub(crate) lead: Duration,
    /// The system's if there is none: not every machine has that one.
    pub(crate) clock: Option<Clock>,
    /// There is no thread: see [`driver`].
    pub(crate) is_driven: bool,
    /// The number of heaps of the queue.
    pub(crate) stripes: usize,
    pub(crate) keep_delayed: bool,
    pub(crate) keep_periodic: bool,
    pub(crate) thread_factory: Callback<dyn ThreadFactory>,
    pub(crate) rejection: Callback<dyn RejectedExecutionHandler>,
    pub(crate) callbacks: Callbacks,
    pub(crate) observing: ObservingConfig,
}

impl Config {
    /// The default factory, which starts threads of the standard library, and the default handler,
    /// which has the submission fail.
    pub(crate) fn defaults() -> (Callback<dyn ThreadFactory>, Callback<dyn RejectedExecutionHandler>)
    {
        (
            Contained::new(Arc::new(thread_factory::std_thread)),
            Contained::new(Arc::new(AbortPolicy)),
        )
    }
}

/// What a cancellation does about a body that runs. Java: `mayInterruptIfRunning`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfRunning {
    /// It asks the body to stop.
    Signal,
    LetReturn,
}

/// See the [module](self).
pub(crate) struct Pool {
    clock: Clock,
    callbacks: Callbacks,
    queue: DelayedWorkQueue<Arc<Task>>,
    /// The bound on how many tasks may be pending, if there is one.
    capacity: Option<Capacity>,
    rejections: Rejections,
    workers: Workers,
    spawner: Spawner,
    shutdown: Shutdown,
    joins: JoinRegistry,
    timeouts: Timeouts,
    wall_clock: WallClock,
    groups: Groups,
    is_driven: bool,
    observing: Observing,
    /// Something is added to each task that is submitted.
    extends_submissions: bool,
    /// Something is done about each entry that a worker takes: there is a bound, or workers are observed.
    follows_takes: bool,
}

impl Pool {
    pub(crate) fn new(config: Config) -> Arc<Self> {
        let clock = &config.clock.clone().unwrap_or_default();
        let observing = Observing::new(config.observing, config.is_driven);
        let is_decorated = config.callbacks.decorate.is_some();
        Arc::new(Self {
            queue: DelayedWorkQueue::new(clock.clone(), config.stripes, config.lead),
            capacity: config.max_pending.map(Capacity::new),
            workers: Workers::new(config.core_pool_size, config.core_timeout, config.keep_alive),
            spawner: Spawner::new(&config),
            shutdown: Shutdown::new(&config, clock),
            joins: JoinRegistry::new(),
            timeouts: Timeouts::new(config.stripes, config.lead),
            wall_clock: WallClock::new(),
            groups: Groups::default(),
            follows_takes: config.max_pending.is_some() || observing.observes_takes(),
            extends_submissions: is_decorated || observing.extends_submissions(),
            observing,
            rejections: Rejections::new(config.rejection),
            callbacks: config.callbacks,
            is_driven: config.is_driven,
            clock: clock.clone(),
        })
    }

    #[inline]
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    #[inline]
    pub(crate) fn callbacks(&self) -> &Callbacks {
        &self.callbacks
    }

    /// Returns `true` if something is added to each task that is submitted.
    #[inline]
    pub(crate) fn extends_submissions(&self) -> bool {
        self.extends_submissions
    }

    pub(crate) fn workers(&self) -> &Workers {
        &self.workers
    }

    pub(crate) fn thread_factory(&self) -> &Replaceable<dyn ThreadFactory> {
        self.spawner.factory()
    }

    pub(crate) fn thread_name(&self) -> &str {
        self.spawner.thread_name()
    }

    pub(crate) fn rejection(&self) -> &Replaceable<dyn RejectedExecutionHandler> {
        self.rejections.handler()
    }

    pub(crate) fn max_pending(&self) -> Option<usize> {
        self.capacity.as_ref().map(Capacity::bound)
    }

    pub(crate) fn pending_count(&self) -> usize {
        self.queue.len()
    }

    /// Returns the pending tasks in due order.
    pub(crate) fn pending(&self) -> Vec<SnapshotEntry<Arc<Task>>> {
        self.queue.snapshot(Arc::clone)
    }

    /// Returns what a task keeps that leaves the pool without having run.
    fn detached_context(&self) -> DetachedContext {
        DetachedContext { clock: self.clock.clone(), hooks: self.callbacks.hooks.clone() }
    }

    // Queuing again.

    /// Queues a task again that a worker has, unless the queue admits it no more or the task has been
    /// cancelled. See the head of the module for the locks.
    fn requeue(&self, task: &Arc<Task>, sequence: u64, next: Timestamp) -> Requeued {
        let mut wake = None;
        let mut enqueue = |timing: Timing, why| {
            let (ticket, waker) =
                self.queue.requeue(timing, sequence, why, Arc::clone(task)).ok()?;
            wake = waker;
            Some(ticket.slot)
        };
        // If the task is not queued after all, `end_refused` releases the permit.
        self.force_acquire_capacity();
        let requeued = task.requeue(next, &mut enqueue);
        wake_all(wake);
        requeued
    }

    /// Ends a task that was not queued again.
    #[cold]
    fn end_refused(&self, task: &Arc<Task>, sequence: u64, stats: &WorkerStats) {
        self.release_capacity();
        let reason = self.phase().reason();
        let found = self.end_taken(&**task, sequence, reason, stats);
        let is_told = task.is_periodic() && reason == CancelReason::Rejected;
        if found != Cancellation::TooLate && is_told {
            let why = "the queue has no place for its next run";
            self.tell_displaced(&**task, sequence, why);
        }
    }

    /// Ends a task as cancelled that a worker has taken and that is not queued again. The worker
    /// counts its end, since the queue no longer does.
    fn end_taken(
        &self,
        task: &Task,
        id: u64,
        reason: CancelReason,
        stats: &WorkerStats,
    ) -> Cancellation {
        stats.count_cancelled();
        self.end_as_cancelled(task, id, reason)
    }

    /// Reports that a periodic task has lost its place in the queue, and has ended.
    #[cold]
    fn tell_displaced(&self, task: &Task, id: u64, why: &str) {
        let subject = Subject { id: Some(id), name: task.name(), run: None };
        let failure = Failure::of_displacement(why);
        self.callbacks.hooks.tell_ended(FailureSource::Displaced, &subject, &failure);
    }

    // Cancelling.

    /// Ends a task as cancelled and takes it out of the queue. Returns `true` if this call ended it.
    /// `ticket` is the one with which the task was submitted. A body that runs is asked to stop, if that is
    /// wanted, even if the task was cancelled before without that.
    #[inline(always)]
    pub(crate) fn cancel(
        &self,
        task: &Task,
        ticket: Ticket,
        why: CancelReason,
        if_running: IfRunning,
    ) -> bool {
        let found = self.end_as_cancelled(task, ticket.sequence, why);
        self.take_out(task, ticket, found, if_running)
    }

    /// Takes a task that has just been ended out of the queue, or asks its body to stop. `found` is
    /// what the attempt to end it found; returns `true` unless that was too late.
    #[inline(always)]
    fn take_out(
        &self,
        task: &Task,
        ticket: Ticket,
        found: Cancellation,
        if_running: IfRunning,
    ) -> bool {
        match found {
            Cancellation::Waiting(slot) => {
                self.remove(ticket.moved_to(slot));
                return true;
            }
            _ if if_running == IfRunning::LetReturn => {}
            Cancellation::TooLate => task.signal(self.shutdown.token()),
            Cancellation::Running => task.token(self.shutdown.token()).cancel(),
        }
        found == Cancellation::Running
    }

    /// Takes an entry out of the queue. Returns `true` if it was there.
    #[inline(always)]
    fn remove(&self, ticket: Ticket) -> bool {
        let Some(task) = self.queue.remove(ticket) else { return false };
        discard(task);
        self.entry_removed();
        true
    }

    /// Called when a task has been taken out of the queue, and not by a worker. The caller holds no lock.
    #[inline(always)]
    fn entry_removed(&self) {
        self.release_capacity();
        self.pending_decreased();
        if self.queue.is_closed() {
            self.terminate_if_finished();
        }
    }

    /// Takes a pending task out of the queue, and ends it. Returns `true` if it was pending.
    pub(crate) fn remove_waiting(&self, task: &Task, ticket: Ticket) -> bool {
        self.remove_pending(task, ticket, CancelReason::Removed)
    }

    /// As [`remove_waiting`](Self::remove_waiting), for this reason.
    fn remove_pending(&self, task: &Task, ticket: Ticket, reason: CancelReason) -> bool {
        // First out of the queue, so that it cannot begin to run in between.
        let is_removed = self.find(task, ticket, |ticket| self.remove(ticket).then_some(()));
        if is_removed.is_some() {
            self.end_as_cancelled(task, ticket.sequence, reason);
        }
        is_removed.is_some()
    }

    /// Looks for the entry of a task by its ticket, again if it has been moved meanwhile.
    fn find<T>(
        &self,
        task: &Task,
        ticket: Ticket,
        look: impl Fn(Ticket) -> Option<T>,
    ) -> Option<T> {
        let mut slot = task.slot();
        loop {
            let found = look(ticket.moved_to(slot));
            let now_in = task.slot();
            if found.is_some() || now_in == slot {
                return found;
            }
            slot = now_in;
        }
    }

    /// Takes tasks out of the queue that have ended. Returns how many.
    pub(crate) fn purge(&self) -> usize {
        let ended = |one: &SnapshotEntry<Arc<Task>>| one.element.state().is_done();
        let listed = self.queue.snapshot(Arc::clone);
        let purged = listed.iter().filter(|one| ended(one) && self.remove(one.ticket)).count();
        discard(listed);
        purged
    }

    /// Ends a task as cancelled, unless it has ended.
    #[inline(always)]
    fn end_as_cancelled(&self, task: &Task, id: u64, reason: CancelReason) -> Cancellation {
        let found = end_as_cancelled(task, id, reason, &self.callbacks.hooks);
        if found != Cancellation::TooLate {
            self.shutdown.log().cancelled(id, || task.name());
        }
        found
    }

    /// Returns the deadline that a task waits for, if it is pending.
    pub(crate) fn deadline(&self, task: &Task, ticket: Ticket) -> Option<Timestamp> {
        self.find(task, ticket, |ticket| self.queue.deadline(ticket))
    }
}

/// Ends a task as cancelled, unless it has ended, and traces it.
#[inline(always)]
fn end_as_cancelled(task: &Task, id: u64, reason: CancelReason, hooks: &Hooks) -> Cancellation {
    let found = task.cancel(reason, hooks.drops(id));
    if trace::is_listening() && found != Cancellation::TooLate {
        trace::cancelled(id, task.name().as_deref(), &reason);
    }
    found
}

#[cfg(test)]
#[cfg(loom)]
#[path = "pool/tests/exhaustive.rs"]
mod exhaustive;
