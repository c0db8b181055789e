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
//! the three ways to stop.
//!
//! # Admission
//!
//! A submission first sees to it that there is a worker, then offers the task to the queue. So a
//! task in the queue always has a worker that will come for it ([`lifecycle`] has the argument),
//! and a task for which no worker could be started was never queued. Offer and shutdown meet at
//! the lock of a stripe of the queue, and nowhere else.
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
//! the node, two for the port's. To schedule it, drop the future and run it takes a second
//! reading, and thirteen: the stripe's lock, the list's and twice the task's, three for the node,
//! two for the port. Who is woken, and when nobody is: [`queue`](crate::queue).
//!
//! # The one place with two locks
//!
//! [`Pool::rearm`] holds the task's lock while the queue's is taken. That order, task before
//! queue, is never reversed: nothing under a lock of the queue's touches a task's. It makes "is it
//! cancelled?" and "it is in the queue" one step, so a cancelled periodic task is never queued
//! again, not even for a moment.
//!
//! # Stopping
//!
//! | | queue lets in | taken out of the queue | tokens |
//! |---|---|---|---|
//! | `shutdown` | periodic ones between runs, if the policy keeps them | what the policies do not keep | – |
//! | `stop` (drop) | nothing | what is not yet due | – |
//! | `shutdown_now` | nothing | everything, given back | raised |
//!
//! Each moves the [`lifecycle`] on, closes the queue, and ends the tasks taken out. What
//! is due is decided when the queue is closed: a task that was let in without delay is due.
//! Workers end when the queue is closed and empty; the last one out terminates the pool.

mod joins;
mod lifecycle;
mod pending;
mod port;
mod serving;
mod worker;

use std::{io, task::Waker, time::Duration};

pub(crate) use self::joins::Joining;
pub(crate) use self::lifecycle::Phase;
pub use self::pending::{PendingTask, PendingTasks};
pub(crate) use self::port::{Port, Ports};
use self::{
    joins::Joins,
    lifecycle::{Lifecycle, Start},
    serving::{Role, Serving},
};
use crate::{
    CancelReason, CancellationToken, RejectedExecutionError, WouldDeadlock,
    queue::{Admission, DelayedWorkQueue, Entry, Refused, Ticket},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Cancellation, Run, Runnable},
    time::{Clock, Deadline},
    trace,
    unwind::{discard, wake_all},
    wait,
};

/// What a pool is made with; filled in by the builder.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) core_pool_size: usize,
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
}

/// See the [module](self).
pub(crate) struct Pool {
    config: Config,
    queue: DelayedWorkQueue<Arc<dyn Runnable>>,
    lifecycle: Lifecycle,
    /// What the policies say now; see `policy_changed`.
    keep_delayed: AtomicBool,
    keep_periodic: AtomicBool,
    /// Raised by `shutdown_now`; the parent of every task's token.
    stop: CancellationToken,
    joins: Joins,
}

impl Pool {
    pub(crate) fn new(config: Config) -> Arc<Self> {
        Arc::new(Self {
            queue: DelayedWorkQueue::new(config.clock.clone(), config.stripes, config.lead),
            lifecycle: Lifecycle::new(),
            keep_delayed: AtomicBool::new(config.keep_delayed),
            keep_periodic: AtomicBool::new(config.keep_periodic),
            stop: CancellationToken::on(config.clock.clone()),
            joins: Joins::new(),
            config,
        })
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.config.clock
    }

    pub(crate) fn core_pool_size(&self) -> usize {
        self.config.core_pool_size
    }

    pub(crate) fn pending_count(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn lifecycle(&self) -> &Lifecycle {
        &self.lifecycle
    }

    pub(crate) fn thread_name(&self) -> &str {
        &self.config.thread_name
    }

    // Admission.

    /// Queues a task that is ready to run, in a pool that has a worker. Gives its number.
    pub(crate) fn admit(
        &self,
        stripe: usize,
        task: Arc<dyn Runnable>,
        now: Deadline,
        deadline: Deadline,
    ) -> Result<Ticket, RejectedExecutionError> {
        match self.queue.offer(stripe, now, deadline, task) {
            Ok(ticket) => Ok(ticket),
            // The submitter has another handle, so this drops no closure.
            Err(Refused::Closed(_)) => Err(RejectedExecutionError::Shutdown),
            Err(Refused::Full(_)) => Err(RejectedExecutionError::Full),
        }
    }

    /// Starts a worker, unless there are as many as the core pool size, or the pool was shut
    /// down. An error only if there is none at all: a pool that has one can do its work.
    pub(crate) fn ensure_worker(self: &Arc<Self>) -> io::Result<()> {
        let wanted = self.config.core_pool_size.max(1);
        // Not the phase: it moves before the queue is closed, and until then tasks are let in.
        if self.lifecycle.started() >= wanted || self.queue.is_closed() {
            return Ok(());
        }
        self.clock().worker_starts();
        let start = self.lifecycle.start_worker(wanted, |number| worker::start(self, number));
        if !matches!(start, Start::Started) {
            self.clock().worker_ended();
        }
        match start {
            Start::Started | Start::NotNeeded => Ok(()),
            Start::Failed(error) => {
                trace::spawn_failed(&error);
                Ok(())
            }
            Start::None(error) => Err(error),
        }
    }

    fn worker_ended(&self) {
        let waiters = self.lifecycle.leave();
        self.announce(waiters);
        self.clock().worker_ended();
    }

    /// Puts a periodic task that has run back into the queue, or ends it if the pool takes it no
    /// more. The one place here that holds two locks; see the head of the module.
    fn rearm(&self, task: &Arc<dyn Runnable>, sequence: u64, deadline: Deadline) {
        let mut wake = None;
        let mut enqueue = || {
            let offered = self.queue.offer_again(deadline, sequence, Arc::clone(task));
            offered.ok().map(|(ticket, waker)| {
                wake = waker;
                ticket.slot
            })
        };
        let is_queued = task.rearm(&mut enqueue);
        wake_all(wake);
        if !is_queued {
            end_as_cancelled(&**task, sequence, self.lifecycle.phase().reason());
        }
    }

    // Cancelling.

    /// Ends a task as cancelled and takes it out of the queue. Whether this call did it. `ticket`
    /// is the one with which the task was submitted.
    pub(crate) fn cancel<R>(&self, task: &R, ticket: Ticket, signal: bool) -> bool
    where
        R: Runnable + ?Sized,
    {
        match end_as_cancelled(task, ticket.sequence, CancelReason::Requested) {
            Cancellation::TooLate => return false,
            Cancellation::Waiting(slot) => discard(self.queue.remove(ticket.moved_to(slot))),
            Cancellation::Running if signal => task.token(&self.stop).cancel(),
            Cancellation::Running => {}
        }
        true
    }

    /// The moment a task waits for; nothing if it does not wait.
    pub(crate) fn deadline<R>(&self, task: &R, ticket: Ticket) -> Option<Deadline>
    where
        R: Runnable + ?Sized,
    {
        self.queue.deadline(ticket.moved_to(task.slot()))
    }

    // Stopping.

    /// Takes no more tasks; those that the policies keep will still run.
    pub(crate) fn shutdown(&self) {
        let stopping = self.begin_stopping("shut down", Phase::ShuttingDown);
        let (keep_delayed, keep_periodic) = (self.keeps_delayed(), self.keeps_periodic());
        self.queue.close(if keep_periodic { Admission::Returning } else { Admission::Closed });
        // Read when nothing more comes in: whatever was submitted without delay is due now.
        let now = self.clock().now();
        stopping.cancel_where(|deadline, task| {
            if task.is_periodic() { !keep_periodic } else { !keep_delayed && deadline > now }
        });
    }

    /// Takes no more tasks, and runs only what is due already: what dropping the owner does.
    pub(crate) fn stop(&self) {
        let stopping = self.begin_stopping("dropped", Phase::OwnerDropped);
        self.queue.close(Admission::Closed);
        // As in `shutdown`.
        let now = self.clock().now();
        stopping.cancel_where(|deadline, _| deadline > now);
    }

    /// Takes no more tasks, asks the running ones to stop, and gives back the others.
    pub(crate) fn shutdown_now(&self) -> PendingTasks {
        let _stopping = self.begin_stopping("shut down now", Phase::Stopping);
        self.queue.close(Admission::Closed);
        let drained = self.queue.drain();
        self.stop.cancel();
        PendingTasks::new(drained, self.clock().clone())
    }

    /// Moves the phase. The pool does not terminate before what is returned is dropped.
    fn begin_stopping(&self, what: &'static str, phase: Phase) -> Stopping<'_> {
        self.lifecycle.advance(phase);
        trace::lifecycle(what, self.thread_name());
        Stopping { pool: self, phase, _serving: Serving::begin(self, Role::Stopper) }
    }

    /// Tells everyone who waits for termination, if it has come.
    fn announce(&self, terminated: Option<Vec<Waker>>) {
        if let Some(waiters) = terminated {
            trace::lifecycle("terminated", self.thread_name());
            wake_all(waiters);
        }
    }

    // Policies.

    pub(crate) fn keeps_delayed(&self) -> bool {
        // Ordering: see `policy_changed`.
        self.keep_delayed.load(Ordering::SeqCst)
    }

    pub(crate) fn keeps_periodic(&self) -> bool {
        // Ordering: see `policy_changed`.
        self.keep_periodic.load(Ordering::SeqCst)
    }

    pub(crate) fn set_keep_delayed(&self, keep: bool) {
        // Ordering: see `policy_changed`.
        self.keep_delayed.store(keep, Ordering::SeqCst);
        self.policy_changed();
    }

    pub(crate) fn set_keep_periodic(&self, keep: bool) {
        // Ordering: see `policy_changed`.
        self.keep_periodic.store(keep, Ordering::SeqCst);
        self.policy_changed();
    }

    /// A policy that changes after shutdown acts at once. The queue only ever closes further:
    /// switching one on again brings nothing back.
    ///
    /// Ordering: the setter writes the policy and then reads the phase, a shutdown moves the
    /// phase and then reads the policies, all sequentially consistent. So one of the two sees
    /// the other, and no change is missed.
    fn policy_changed(&self) {
        if self.lifecycle.phase() == Phase::ShuttingDown {
            self.shutdown();
        }
    }

    // Waiting for the end.

    /// Waits for every worker to have ended; whether they have, after at most `timeout`.
    pub(crate) fn await_termination(&self, timeout: Duration) -> Result<bool, WouldDeadlock> {
        if self.would_wait_for_itself() {
            return Err(WouldDeadlock(()));
        }
        let deadline = self.clock().now().after(timeout);
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
        for thread in self.lifecycle.take_threads() {
            // A worker does not panic; what a thread-local of the user's throws is not ours.
            discard(thread.join());
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
        &self,
        task: impl FnOnce() -> Arc<dyn Runnable>,
    ) -> Result<Option<Joining<'_>>, WouldDeadlock> {
        if !Run::is_any() && !serving::works_for(self) {
            return Ok(None);
        }
        let task = task();
        if Run::is_of(&task) && !task.state().is_done() {
            return Err(WouldDeadlock(()));
        }
        if !serving::works_for(self) || self.lifecycle.phase() >= Phase::Stopping {
            return Ok(None);
        }
        self.joins.enter(task, self.lifecycle.live()).map(Some)
    }
}

/// A shutdown that is under way.
struct Stopping<'a> {
    pool: &'a Pool,
    phase: Phase,
    _serving: Serving,
}

impl Stopping<'_> {
    /// Takes tasks out of the closed queue, and ends them.
    fn cancel_where(self, unwanted: impl Fn(Deadline, &dyn Runnable) -> bool) {
        let removed = self.pool.queue.remove_where(|deadline, task| unwanted(deadline, &**task));
        for Entry { sequence, element, .. } in removed {
            end_as_cancelled(&*element, sequence, self.phase.reason());
            discard(element);
        }
    }
}

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        let waiters = self.pool.lifecycle.release();
        self.pool.announce(waiters);
    }
}

/// Ends a task as cancelled, unless it has ended, and says so.
fn end_as_cancelled<R>(task: &R, id: u64, reason: CancelReason) -> Cancellation
where
    R: Runnable + ?Sized,
{
    let found = task.cancel(reason);
    if found != Cancellation::TooLate && trace::is_listening() {
        trace::cancelled(id, task.name().as_deref(), &reason);
    }
    found
}
