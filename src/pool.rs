//! The machine: tasks, a queue, and the workers between them.
//!
//! ```text
//!   admit ──▶ queue ──▶ worker: run ──▶ Ended
//!               ▲                  └──▶ Again(when) ──┐
//!               └──────────── rearm ──────────────────┘
//! ```
//!
//! The pool ties the two towers below it together: the queue knows nothing of tasks, and a task
//! knows nothing of the queue. What needs both is here: admission, cancelling, re-arming, and
//! the three ways to [stop](stopping).
//!
//! # Admission
//!
//! A submission first sees to it that there is a worker, then offers the task to the queue. So a
//! task in the queue always has a worker that will come for it ([`crew`] has the argument), and a
//! task for which no worker could be started was never queued. Offer and shutdown meet at the
//! lock of a stripe of the queue, and nowhere else. What is not admitted: [`rejection`].
//!
//! # Cancelling
//!
//! [`Pool::cancel`] decides under the task's lock, and then takes the entry out of the queue by
//! its slot. When it returns the closure is dropped, unless the task runs, and the entry is gone.
//! The two steps can fall around three others:
//!
//! * *A worker takes the entry in between*: it finds nothing to run, and drops the node.
//! * *A worker re-arms*: it does so under the task's lock, so it comes before the decision (and
//!   the entry is taken out again) or after it (and nothing is queued).
//! * *The slot has a new tenant*: the queue compares the number, and refuses.
//!
//! # What a task costs
//!
//! One allocation, for its node. To schedule and cancel it takes one reading of the clock and
//! eleven read-modify-writes: six for locks (the stripe twice, the task), three for the count of
//! the node, two for the pool_ref's. To schedule it, drop the future and run it takes a second
//! reading, and thirteen: the stripe's lock, the list's and twice the task's, three for the node,
//! two for the pool_ref. Who is woken, and when nobody is: [`queue`](crate::queue).
//!
//! # Re-arming
//!
//! [`Pool::rearm`] holds the task's lock while the queue takes the task back. So "is it cancelled?"
//! and "it is in the queue" are one step, and a cancelled periodic task is never queued again, not
//! even for a moment. Where else two locks are held, and their one order: `docs/locks.md`.

mod callbacks;
mod crew;
mod drained;
mod joins;
mod lifecycle;
mod policies;
mod pool_ref;
mod record;
mod rejection;
mod room;
mod serving;
mod setting;
mod shared;
mod sizing;
mod statistics;
mod stopping;
mod timeouts;
mod worker;

use std::{io, time::Duration};

pub(crate) use self::{
    callbacks::Callbacks,
    joins::Joining,
    lifecycle::Phase,
    pool_ref::{PoolRef, PoolRefs},
    shared::{share_factory, share_handler},
};
use self::{
    crew::Crew, drained::DetachedContext, joins::Joins, lifecycle::Lifecycle, record::Record,
    room::Room, setting::Setting, timeouts::Timeouts,
};
pub use self::{
    drained::{DrainedTask, DrainedTasks},
    policies::{
        AbortPolicy, BlockPolicy, CallerRunsPolicy, DiscardOldestPolicy, DiscardPolicy, StockPolicy,
    },
    record::{ShutdownReport, TaskSummary},
    rejection::{RejectedExecutionHandler, RejectedTask, Rejection},
    shared::Shared,
    statistics::{ExecutorState, Statistics},
    worker::{ThreadFactory, Worker},
};
use crate::{
    CancelReason, CancellationToken, WouldDeadlock,
    queue::{DelayedWorkQueue, Listed, Ticket},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64},
        thread,
    },
    task::{Cancellation, Hooks, PanicSource, Run, Runnable, Subject, WorkerStats},
    time::{Clock, Timestamp},
    trace,
    unwind::{Callback, Contained, discard, wake_all},
    wait,
};

/// What a pool is made with; filled in by the builder.
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
    pub(crate) clock: Clock,
    /// How many heaps the queue has.
    pub(crate) stripes: usize,
    pub(crate) keep_delayed: bool,
    pub(crate) keep_periodic: bool,
    pub(crate) thread_factory: Callback<dyn ThreadFactory>,
    pub(crate) rejection: Callback<dyn RejectedExecutionHandler>,
    pub(crate) callbacks: Callbacks,
}

impl Config {
    /// Threads of std; who is refused gets the closure back.
    pub(crate) fn defaults() -> (Callback<dyn ThreadFactory>, Callback<dyn RejectedExecutionHandler>)
    {
        (Contained::new(Arc::new(worker::std_thread)), Contained::new(Arc::new(AbortPolicy)))
    }
}

/// See the [module](self).
pub(crate) struct Pool {
    config: Config,
    queue: DelayedWorkQueue<Arc<dyn Runnable>>,
    lifecycle: Lifecycle,
    crew: Crew,
    /// What the policies say now; see `policy_changed`.
    keep_delayed: AtomicBool,
    keep_periodic: AtomicBool,
    /// Raised by `shutdown_now`; the parent of every task's token.
    stop: CancellationToken,
    joins: Joins,
    thread_factory: Setting<dyn ThreadFactory>,
    rejection: Setting<dyn RejectedExecutionHandler>,
    /// How many submissions were not admitted.
    rejected: AtomicU64,
    /// How many of these were run in the thread that submitted them, and how many panicked there.
    caller_runs: AtomicU64,
    caller_panics: AtomicU64,
    /// The bound on how many tasks may wait, if there is one.
    room: Option<Room>,
    timeouts: Timeouts,
    record: Record,
}

impl Pool {
    pub(crate) fn new(config: Config) -> Arc<Self> {
        Arc::new(Self {
            queue: DelayedWorkQueue::new(config.clock.clone(), config.stripes, config.lead),
            lifecycle: Lifecycle::new(),
            crew: Crew::new(config.core_pool_size, config.core_timeout, config.keep_alive),
            keep_delayed: AtomicBool::new(config.keep_delayed),
            keep_periodic: AtomicBool::new(config.keep_periodic),
            stop: CancellationToken::with_clock(config.clock.clone()),
            joins: Joins::new(),
            thread_factory: Setting::new(config.thread_factory.clone()),
            rejection: Setting::new(config.rejection.clone()),
            rejected: AtomicU64::new(0),
            caller_runs: AtomicU64::new(0),
            caller_panics: AtomicU64::new(0),
            room: config.max_pending.map(Room::new),
            timeouts: Timeouts::new(),
            record: Record::default(),
            config,
        })
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.config.clock
    }

    pub(crate) fn pending_count(&self) -> usize {
        self.queue.len()
    }

    /// What waits, in due order.
    pub(crate) fn pending(&self) -> Vec<Listed<Arc<dyn Runnable>>> {
        self.queue.list(Arc::clone)
    }

    pub(crate) fn crew(&self) -> &Crew {
        &self.crew
    }

    pub(crate) fn callbacks(&self) -> &Callbacks {
        &self.config.callbacks
    }

    pub(crate) fn max_pending(&self) -> Option<usize> {
        self.config.max_pending
    }

    pub(crate) fn thread_factory(&self) -> &Setting<dyn ThreadFactory> {
        &self.thread_factory
    }

    pub(crate) fn rejection(&self) -> &Setting<dyn RejectedExecutionHandler> {
        &self.rejection
    }

    /// What a task keeps that leaves the pool without having run.
    fn detached_context(&self) -> DetachedContext {
        DetachedContext { clock: self.clock().clone(), hooks: self.config.callbacks.hooks.clone() }
    }

    pub(crate) fn lifecycle(&self) -> &Lifecycle {
        &self.lifecycle
    }

    pub(crate) fn thread_name(&self) -> &str {
        &self.config.thread_name
    }

    // Admission.

    /// Starts a worker, unless there are as many as the core pool size, or the pool was shut
    /// down. An error only if there is none at all: a pool that has one can do its work. Whether
    /// it need not do without one that could not be started.
    #[inline]
    pub(crate) fn ensure_worker(self: &Arc<Self>) -> io::Result<bool> {
        // Not the phase: it moves before the queue is closed, and until then tasks are admitted.
        if self.crew.settled() >= self.crew.wanted() || self.queue.is_closed() {
            return Ok(true);
        }
        match self.start_worker(|| self.crew.wanted()) {
            Ok(_) => Ok(true),
            Err(error) => self.do_without(error).map(|()| false),
        }
    }

    /// A worker could not be started: an error if there is none.
    #[cold]
    pub(super) fn do_without(&self, error: io::Error) -> io::Result<()> {
        if self.crew.size() == 0 {
            return Err(error);
        }
        trace::spawn_failed(&error);
        Ok(())
    }

    /// A task that waited does so no longer.
    #[inline]
    fn leave_room(&self) {
        if let Some(room) = &self.room {
            room.leave();
        }
    }

    /// Puts a periodic task that has run back into the queue, unless the pool takes it no more.
    /// Whether it is there. Holds two locks; see the head of the module.
    fn rearm(&self, task: &Arc<dyn Runnable>, sequence: u64, deadline: Timestamp) -> bool {
        let mut wake = None;
        let mut enqueue = || {
            let offered = self.queue.offer_again(deadline, sequence, Arc::clone(task));
            offered.ok().map(|(ticket, waker)| {
                wake = waker;
                ticket.slot
            })
        };
        if let Some(room) = &self.room {
            room.return_to();
        }
        let is_queued = task.rearm(&mut enqueue);
        wake_all(wake);
        is_queued
    }

    /// Ends a periodic task that was not put back.
    #[cold]
    fn end_periodic(&self, task: &Arc<dyn Runnable>, sequence: u64, stats: &WorkerStats) {
        self.leave_room();
        let reason = self.lifecycle.phase().reason();
        let found = self.end_taken(&**task, sequence, reason, stats);
        if found != Cancellation::TooLate && reason == CancelReason::Rejected {
            let why = "the queue has no place for its next run";
            self.tell_displaced(&**task, sequence, why);
        }
    }

    /// Ends a task as cancelled that a worker has taken and that does not come back: so its end is
    /// counted here.
    fn end_taken(
        &self,
        task: &dyn Runnable,
        id: u64,
        reason: CancelReason,
        stats: &WorkerStats,
    ) -> Cancellation {
        stats.count_cancelled();
        self.end_as_cancelled(task, id, reason)
    }

    /// Says that a periodic task has lost its place in the queue, and has ended.
    #[cold]
    fn tell_displaced(&self, task: &dyn Runnable, id: u64, why: &str) {
        let subject = Subject { id: Some(id), name: task.name(), run: None };
        self.callbacks().hooks.tell_ended(PanicSource::Displaced, &subject, why);
    }

    // Cancelling.

    /// Ends a task as cancelled and takes it out of the queue. Whether this call did it. `ticket`
    /// is the one with which the task was submitted. With `signal` a body that runs is asked to
    /// stop, also if the task was cancelled before without that.
    pub(crate) fn cancel<R>(
        &self,
        task: &R,
        ticket: Ticket,
        why: CancelReason,
        signal: bool,
    ) -> bool
    where
        R: Runnable + ?Sized,
    {
        let found = self.end_as_cancelled(task, ticket.sequence, why);
        self.take_out(task, ticket, found, signal)
    }

    /// Takes a task that has been ended by hand out of the queue, or asks it to stop. Whether it
    /// had been ended in time.
    #[inline]
    fn take_out<R>(&self, task: &R, ticket: Ticket, found: Cancellation, signal: bool) -> bool
    where
        R: Runnable + ?Sized,
    {
        match found {
            Cancellation::TooLate if signal => {
                task.signal(&self.stop);
                return false;
            }
            Cancellation::TooLate => return false,
            Cancellation::Waiting(slot) => {
                self.remove(ticket.moved_to(slot));
            }
            Cancellation::Running if signal => task.token(&self.stop).cancel(),
            Cancellation::Running => {}
        }
        true
    }

    /// Takes an entry out of the queue, if it is there. Whether it was.
    #[inline]
    fn remove(&self, ticket: Ticket) -> bool {
        let Some(task) = self.queue.remove(ticket) else { return false };
        discard(task);
        self.has_removed();
        true
    }

    /// A task has been taken out of the queue, and not by a worker.
    #[inline]
    fn has_removed(&self) {
        self.leave_room();
        self.fewer_wait();
    }

    /// Takes a task that waits out of the queue, and ends it. Whether it waited.
    pub(crate) fn remove_waiting<R>(&self, task: &R, ticket: Ticket) -> bool
    where
        R: Runnable + ?Sized,
    {
        // First out of the queue, so that it cannot begin to run in between.
        let is_removed = self.remove(ticket.moved_to(task.slot()));
        if is_removed {
            self.end_as_cancelled(task, ticket.sequence, CancelReason::Removed);
        }
        is_removed
    }

    /// Takes tasks out of the queue that have ended. Gives how many.
    pub(crate) fn purge(&self) -> usize {
        let ended = |one: &Listed<Arc<dyn Runnable>>| one.element.state().is_done();
        let listed = self.queue.list(Arc::clone);
        let purged = listed.iter().filter(|one| ended(one) && self.remove(one.ticket)).count();
        discard(listed);
        purged
    }

    /// Ends a task as cancelled, unless it has ended.
    fn end_as_cancelled<R>(&self, task: &R, id: u64, reason: CancelReason) -> Cancellation
    where
        R: Runnable + ?Sized,
    {
        let found = end_as_cancelled(task, id, reason, &self.config.callbacks.hooks);
        if found != Cancellation::TooLate {
            self.record.cancelled(id, || task.name());
        }
        found
    }

    /// The moment a task waits for; nothing if it does not wait.
    pub(crate) fn deadline<R>(&self, task: &R, ticket: Ticket) -> Option<Timestamp>
    where
        R: Runnable + ?Sized,
    {
        self.queue.deadline(ticket.moved_to(task.slot()))
    }

    // Waiting for the end.

    /// Waits for every worker to have ended; whether they have, after at most `timeout`.
    pub(crate) fn await_termination(&self, timeout: Duration) -> Result<bool, WouldDeadlock> {
        if self.would_wait_for_itself() {
            return Err(WouldDeadlock(()));
        }
        let deadline = self.clock().read().after(timeout);
        let terminated =
            wait::block_until(self.clock(), deadline, |waker| self.lifecycle.poll(waker));
        if terminated.is_none() {
            let parker = crate::sync::Parker::current();
            discard(self.lifecycle.forget(parker.waker()));
        }
        Ok(terminated.is_some())
    }

    /// The same without a limit; when it returns the threads are gone as well.
    pub(crate) fn join(&self) -> Result<(), WouldDeadlock> {
        self.await_termination(Duration::MAX)?;
        let own = thread::current().id();
        // A worker at its end joins the others, if a thread-local of the user's owned the executor.
        let others = |worker: &thread::JoinHandle<()>| worker.thread().id() != own;
        for worker in self.crew.take_threads().into_iter().filter(others) {
            // A worker does not panic; what a thread-local of the user's throws is not ours.
            discard(worker.join());
        }
        Ok(())
    }

    /// Whether the pool cannot end before the calling thread has gone on; see [`serving`].
    pub(crate) fn would_wait_for_itself(&self) -> bool {
        serving::serves(self)
    }

    /// Says that the calling thread is about to wait for a task without a limit; until what is
    /// returned is dropped. An error if nobody would be left to run it.
    pub(crate) fn enter_join(
        self: &Arc<Self>,
        task: impl FnOnce() -> Arc<dyn Runnable>,
    ) -> Result<Option<Joining<'_>>, WouldDeadlock> {
        if !Run::is_any() && !serving::works_for(self) {
            return Ok(None);
        }
        let task = task();
        if Run::is_of(&task) && joins::is_stuck(&*task) {
            return Err(WouldDeadlock(()));
        }
        if !serving::works_for(self) || self.lifecycle.phase() >= Phase::Stopping {
            return Ok(None);
        }
        self.enter_joins(task).map(Some)
    }
}

/// Ends a task as cancelled, unless it has ended, and says so.
fn end_as_cancelled<R>(task: &R, id: u64, reason: CancelReason, hooks: &Hooks) -> Cancellation
where
    R: Runnable + ?Sized,
{
    let found = task.cancel(reason, hooks.drops(id));
    if found != Cancellation::TooLate && trace::is_listening() {
        trace::cancelled(id, task.name().as_deref(), &reason);
    }
    found
}

#[cfg(test)]
#[cfg(loom)]
#[path = "pool/tests/exhaustive.rs"]
mod exhaustive;
