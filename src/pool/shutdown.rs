//! Shutdown: three ways to stop, the two policies, and waiting for termination.
//!
//! | | the queue admits | taken out of the queue | tokens |
//! |---|---|---|---|
//! | `shutdown` | if the policies keep them: periodic tasks between two runs or that have to wait for their groups, and tasks that their gates put off; of the others those that have to wait for their groups | what the policies do not keep | – |
//! | `stop` (drop) | tasks that have to wait for their groups | what is not yet due | – |
//! | `shutdown_now` | nothing | everything, given back | raised |
//!
//! Each way advances the [`lifecycle`], closes the queue, wakes the submitters that wait for
//! capacity, and ends the tasks it has taken out. Whether a task is due is decided once the queue
//! is closed, so a task that was admitted without delay is due. Workers end when the queue is closed
//! and empty; the last party to deregister brings about termination. `shutdown_within` is the
//! first way, followed by the third if that takes too long; after that it gives up ([`lifecycle`]).
//!
//! * [`lifecycle`]: how far the pool has come, what holds up termination, and who waits for it.
//! * [`report`]: which tasks ended while a shutdown went on.
//! * [`deadlock`](super::deadlock): which pools the calling thread acts for, so that it must not wait
//!   for their end.
//!
//! # Where "closed" is stored
//!
//! In two places. The lifecycle's phase says how the pool is to end, and moves first. The queue's
//! admission state says what is still admitted. The capacity and the workers ask the queue. The queue of the
//! timeouts is another one, and is closed at termination.

mod lifecycle;
mod report;

use std::{task::Waker, time::Duration};

pub(crate) use self::lifecycle::Phase;
pub use self::report::{ShutdownReport, TaskSummary};
use self::{lifecycle::Lifecycle, report::EndLog};
use super::{
    Config, DrainedTasks, IfRunning, Pool,
    deadlock::{PoolScope, Role, is_in_scope_of},
    driver,
};
use crate::{
    CancellationToken, WouldDeadlock,
    entry::Requeue,
    layers::ListedMember,
    queue::{Admission, QueueEntry},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        thread,
    },
    task::{FailureSource, Task},
    time::{Clock, Timestamp},
    trace,
    unwind::{discard, wake_all},
    wait::{self, Place},
};

/// The phase of a pool, what it keeps when it is shut down, and the tasks that have ended since.
pub(super) struct Shutdown {
    lifecycle: Lifecycle,
    /// The policies; see `Pool::policy_changed`.
    keep_delayed: AtomicBool,
    keep_periodic: AtomicBool,
    /// Raised by `shutdown_now`; the parent of every task's token.
    token: CancellationToken,
    log: EndLog,
}

impl Shutdown {
    pub(super) fn new(config: &Config, clock: &Clock) -> Self {
        let make_token = if config.is_driven {
            CancellationToken::without_timer_thread
        } else {
            CancellationToken::with_clock
        };
        Self {
            lifecycle: Lifecycle::new(),
            keep_delayed: AtomicBool::new(config.keep_delayed),
            keep_periodic: AtomicBool::new(config.keep_periodic),
            token: make_token(clock.clone()),
            log: EndLog::default(),
        }
    }

    pub(super) fn phase(&self) -> Phase {
        self.lifecycle.phase()
    }

    /// Registers a party: the pool does not terminate before [`Pool::deregister`] is called. Returns `false`, and registers
    /// none, if termination has begun.
    #[must_use]
    pub(super) fn register(&self) -> bool {
        self.lifecycle.register()
    }

    /// Returns `true` if a pool whose queue is finished has begun to stop, and nobody is left who
    /// would bring about its termination.
    pub(super) fn is_abandoned(&self) -> bool {
        self.lifecycle.is_abandoned()
    }

    /// Returns the parent of every task's token.
    pub(super) fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Returns the log of the tasks that end, for a report.
    #[inline]
    pub(super) fn log(&self) -> &EndLog {
        &self.log
    }
}

// The three ways to stop.
impl Pool {
    /// Admits no more tasks. Those that the policies keep will still run.
    pub(crate) fn shutdown(self: &Arc<Self>) {
        let stopping = self.begin_stopping("shut down", Phase::ShuttingDown);
        let (keep_delayed, keep_periodic) = (self.keeps_delayed(), self.keeps_periodic());
        let of_series =
            [Requeue::NextRun, Requeue::SeriesTurn].into_iter().filter(|_| keep_periodic);
        let put_off = Some(Requeue::PutOff).filter(|_| keep_delayed);
        self.close_queue(Admission::only(of_series.chain(put_off).chain([Requeue::Turn])));
        let called_off = self.close_groups();
        // Read when nothing more is admitted: whatever was submitted without delay is due now.
        let now = self.clock().read();
        stopping.cancel(called_off, |due, task| {
            if task.is_periodic() { !keep_periodic } else { !keep_delayed && due > now }
        });
    }

    /// Admits no more tasks, and runs only what is due already. Dropping the owner does this.
    pub(crate) fn stop(self: &Arc<Self>) {
        let stopping = self.begin_stopping("dropped", Phase::OwnerDropped);
        self.close_queue(Admission::only([Requeue::Turn, Requeue::SeriesTurn]));
        let called_off = self.close_groups();
        // As in `shutdown`.
        let now = self.clock().read();
        stopping.cancel(called_off, |due, _| due > now);
    }

    /// Admits no more tasks, asks the running ones to stop, and returns the others.
    pub(crate) fn shutdown_now(self: &Arc<Self>) -> DrainedTasks {
        let _stopping = self.begin_stopping("shut down now", Phase::Stopping);
        self.close_queue(Admission::CLOSED);
        let drained = self.queue.drain();
        self.dissolve_groups();
        self.shutdown.token.cancel();
        DrainedTasks::new(drained, self.detached_context())
    }

    /// [Shuts down](Self::shutdown), and after `patience` [at once](Self::shutdown_now). Waits for
    /// another `grace` for the tasks that run, and after that gives up: the owner's drop does not wait then.
    pub(crate) fn shutdown_within(
        self: &Arc<Self>,
        patience: Duration,
        grace: Duration,
    ) -> Result<ShutdownReport, WouldDeadlock> {
        let log = &self.shutdown.log;
        log.open();
        self.shutdown();
        let mut is_over = self.await_termination(patience)?;
        if !is_over {
            for task in self.shutdown_now() {
                log.cancelled(task.id().0, || task.name());
                drop(task);
            }
            is_over = self.await_termination(grace)?;
        }
        if !is_over {
            self.shutdown.lifecycle.give_up();
        }
        let running = self.workers.worker_stats().into_iter().filter_map(|stats| stats.current());
        let running = running.map(|(id, name)| TaskSummary::new(id, name)).collect();
        Ok(log.report(is_over, running))
    }

    /// Advances the phase. The pool does not terminate before what this returns is dropped.
    fn begin_stopping(self: &Arc<Self>, what: &'static str, phase: Phase) -> Stopping<'_> {
        self.shutdown.lifecycle.advance(phase);
        trace::lifecycle(what, self.thread_name());
        Stopping { pool: self, phase, _scope: PoolScope::enter(self, Role::Stopper) }
    }

    /// Closes the queue as far as `admission` says. No submitter waits for capacity any longer.
    fn close_queue(&self, admission: Admission) {
        self.queue.close(admission);
        // Second: the capacity asks the queue.
        self.wake_submitters();
    }

    /// Terminates the pool if the last entry of its closed queue was taken out, and by no worker: all of them may
    /// have retired, since none stays for a task that is parked. A driver is called for that.
    #[cold]
    pub(super) fn terminate_if_finished(&self) {
        if !self.is_driven && self.queue.is_finished() && self.shutdown.register() {
            self.deregister();
        }
    }

    /// Deregisters a party, and terminates the pool if that was the last.
    pub(super) fn deregister(&self) {
        // The queue is asked under the lifecycle's lock, and takes its own locks: the ready list's
        // and then each stripe's.
        if !self.shutdown.lifecycle.deregister(|| self.queue.is_finished()) {
            return;
        }
        // Threads that wait for termination wait for this thread now.
        let _scope = PoolScope::enter(self, Role::Stopper);
        self.timeouts.close();
        self.wall_clock.close();
        if self.is_driven {
            self.workers.remove(driver::NUMBER);
        }
        self.callbacks.call(FailureSource::Terminated);
        let waiters = self.shutdown.lifecycle.terminate();
        trace::lifecycle("terminated", self.thread_name());
        wake_all(waiters);
    }
}

/// A shutdown that is under way.
struct Stopping<'a> {
    pool: &'a Arc<Pool>,
    phase: Phase,
    _scope: PoolScope,
}

impl Stopping<'_> {
    /// Takes the tasks out of the closed queue that are unwanted by when they are due, and ends them, and those that
    /// their groups have called off. First all are taken out: what is dropped and woken at their end is user code,
    /// which could move others. What is left has a worker, or is given one: no submission looks for one from now on.
    fn cancel(self, called_off: Vec<ListedMember>, is_unwanted: impl Fn(Timestamp, &Task) -> bool) {
        let removed = self.pool.queue.remove_where(|due, task| is_unwanted(due, &**task));
        self.pool.pending_decreased();
        for QueueEntry { sequence, element, .. } in removed {
            self.pool.end_as_cancelled(&*element, sequence, self.phase.reason());
            discard(element);
        }
        self.pool.end_called_off(called_off, self.phase.reason(), IfRunning::LetReturn);
        self.pool.compensate().unwrap_or_else(|error| trace::spawn_failed(&error));
    }
}

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.pool.deregister();
    }
}

// The two policies.
impl Pool {
    pub(crate) fn keeps_delayed(&self) -> bool {
        // Ordering: see `policy_changed`.
        self.shutdown.keep_delayed.load(Ordering::SeqCst)
    }

    pub(crate) fn keeps_periodic(&self) -> bool {
        // Ordering: see `policy_changed`.
        self.shutdown.keep_periodic.load(Ordering::SeqCst)
    }

    pub(crate) fn set_keep_delayed(self: &Arc<Self>, keep: bool) {
        // Ordering: see `policy_changed`.
        self.shutdown.keep_delayed.store(keep, Ordering::SeqCst);
        self.policy_changed();
    }

    pub(crate) fn set_keep_periodic(self: &Arc<Self>, keep: bool) {
        // Ordering: see `policy_changed`.
        self.shutdown.keep_periodic.store(keep, Ordering::SeqCst);
        self.policy_changed();
    }

    /// Applies a policy that was changed after a shutdown. The queue only ever closes further:
    /// switching a policy on again brings nothing back.
    ///
    /// Ordering: the setter writes the policy and then reads the phase; a shutdown advances the
    /// phase and then reads the policies. All four are sequentially consistent; see `queue::waiters`.
    fn policy_changed(self: &Arc<Self>) {
        if self.shutdown.phase() == Phase::ShuttingDown {
            self.shutdown();
        }
    }
}

// Waiting for termination.
impl Pool {
    pub(crate) fn phase(&self) -> Phase {
        self.shutdown.phase()
    }

    /// The poll of [`wait`]: an answer once the pool has terminated.
    pub(crate) fn poll_terminated(&self, place: &mut Place, waker: &Waker) -> Option<()> {
        self.shutdown.lifecycle.poll_terminated(place, waker)
    }

    /// As [`poll_terminated`](Self::poll_terminated), for the owner's drop.
    pub(crate) fn poll_terminated_or_given_up(
        &self,
        place: &mut Place,
        waker: &Waker,
    ) -> Option<()> {
        self.shutdown.lifecycle.poll_terminated_or_given_up(place, waker)
    }

    /// Takes a waiter that gives up off the list.
    pub(crate) fn forget_termination(&self, place: &mut Place) {
        self.shutdown.lifecycle.forget(place);
    }

    /// Waits for termination, but no longer than `timeout`. Returns `true` if the pool has
    /// terminated.
    pub(crate) fn await_termination(&self, timeout: Duration) -> Result<bool, WouldDeadlock> {
        if self.would_wait_for_itself() && self.phase() < Phase::Terminated {
            return Err(WouldDeadlock(()));
        }
        let deadline = self.clock().read().after(timeout);
        let mut place = Place::default();
        let poll = |waker: &_| self.poll_terminated(&mut place, waker);
        let terminated = wait::block_until(self.clock(), deadline, poll);
        self.forget_termination(&mut place);
        Ok(terminated.is_some())
    }

    /// Waits for termination without a limit. When this returns, the threads are gone as well.
    pub(crate) fn join(&self) -> Result<(), WouldDeadlock> {
        self.await_termination(Duration::MAX)?;
        self.join_threads();
        Ok(())
    }

    /// As [`join`](Self::join), for the owner's drop: it waits for nothing once a shutdown with a deadline is
    /// over.
    pub(crate) fn join_unless_given_up(&self) {
        if self.would_wait_for_itself() && self.phase() < Phase::Terminated {
            return;
        }
        let mut place = Place::default();
        wait::block_on(self.clock(), |waker| self.poll_terminated_or_given_up(&mut place, waker));
        if self.phase() == Phase::Terminated {
            self.join_threads();
        }
    }

    fn join_threads(&self) {
        let own = thread::current().id();
        // A worker at its end joins the others, if a thread-local of the user's owned the executor.
        let others = |worker: &thread::JoinHandle<()>| worker.thread().id() != own;
        for worker in self.workers.take_threads().into_iter().filter(others) {
            // A worker does not panic, and a panic of one of the user's thread-locals is ignored.
            discard(worker.join());
        }
    }

    /// Returns `true` if the pool cannot terminate before the calling thread has gone on; see
    /// [`deadlock`](super::deadlock).
    pub(crate) fn would_wait_for_itself(&self) -> bool {
        is_in_scope_of(self)
    }
}
