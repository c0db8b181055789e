//! Stopping: three ways, the two policies, and the end.
//!
//! | | queue admits | taken out of the queue | tokens |
//! |---|---|---|---|
//! | `shutdown` | periodic ones between runs, if the policy keeps them | what the policies do not keep | – |
//! | `stop` (drop) | nothing | what is not yet due | – |
//! | `shutdown_now` | nothing | everything, given back | raised |
//!
//! Each moves the [`lifecycle`](lifecycle) on, closes the queue, and ends the tasks taken
//! out. What is due is decided when the queue is closed: a task that was admitted without delay is
//! due. Workers end when the queue is closed and empty; the last one out brings the end about.
//! `shutdown_within` is the first way, and the third if that takes too long.

use std::time::Duration;

mod lifecycle;
mod report;
pub(super) mod scope;

pub(crate) use self::lifecycle::Phase;
pub use self::report::{ShutdownReport, TaskSummary};
use self::scope::{PoolScope, Role};
pub(super) use self::{lifecycle::Lifecycle, report::Record};
use super::{DrainedTasks, Pool};
use crate::{
    WouldDeadlock,
    queue::{Admission, Entry},
    sync::atomic::Ordering,
    task::{PanicSource, Runnable},
    time::Timestamp,
    trace,
    unwind::{discard, wake_all},
};

impl Pool {
    /// Takes no more tasks; those that the policies keep will still run.
    pub(crate) fn shutdown(&self) {
        let stopping = self.begin_stopping("shut down", Phase::ShuttingDown);
        let (keep_delayed, keep_periodic) = (self.keeps_delayed(), self.keeps_periodic());
        self.close_queue(if keep_periodic { Admission::Returning } else { Admission::Closed });
        // Read when nothing more comes in: whatever was submitted without delay is due now.
        let now = self.clock().read();
        stopping.cancel_where(|deadline, task| {
            if task.is_periodic() { !keep_periodic } else { !keep_delayed && deadline > now }
        });
    }

    /// Takes no more tasks, and runs only what is due already: what dropping the owner does.
    pub(crate) fn stop(&self) {
        let stopping = self.begin_stopping("dropped", Phase::OwnerDropped);
        self.close_queue(Admission::Closed);
        // As in `shutdown`.
        let now = self.clock().read();
        stopping.cancel_where(|deadline, _| deadline > now);
    }

    /// Takes no more tasks, asks the running ones to stop, and gives back the others.
    pub(crate) fn shutdown_now(&self) -> DrainedTasks {
        let _stopping = self.begin_stopping("shut down now", Phase::Stopping);
        self.close_queue(Admission::Closed);
        let drained = self.queue.drain();
        self.stop.cancel();
        DrainedTasks::new(drained, self.detached_context())
    }

    /// Moves the phase. The pool does not terminate before what is returned is dropped.
    fn begin_stopping(&self, what: &'static str, phase: Phase) -> Stopping<'_> {
        self.lifecycle.advance(phase);
        trace::lifecycle(what, self.thread_name());
        Stopping { pool: self, phase, _scope: PoolScope::enter(self, Role::Stopper) }
    }

    /// Nobody is admitted any more, or only periodic tasks between two runs; nobody waits for room.
    fn close_queue(&self, admission: Admission) {
        self.queue.close(admission);
        if let Some(capacity) = &self.capacity {
            capacity.close();
        }
    }

    /// Gives a hold on termination back, and brings it about if that was the last.
    pub(super) fn release(&self) {
        if !self.lifecycle.release(|| self.queue.is_finished()) {
            return;
        }
        // Whoever waits for the end waits for this thread now.
        let _scope = PoolScope::enter(self, Role::Stopper);
        self.timeouts.close();
        self.config.callbacks.call(PanicSource::Terminated);
        let waiters = self.lifecycle.terminate();
        trace::lifecycle("terminated", self.thread_name());
        wake_all(waiters);
    }

    /// [Shuts down](Self::shutdown), and after `patience` [at once](Self::shutdown_now); waits
    /// `grace` more for the tasks that run.
    pub(crate) fn shutdown_within(
        &self,
        patience: Duration,
        grace: Duration,
    ) -> Result<ShutdownReport, WouldDeadlock> {
        self.record.open();
        self.shutdown();
        let mut is_over = self.await_termination(patience)?;
        if !is_over {
            for task in self.shutdown_now() {
                self.record.cancelled(task.id().0, || task.name());
                drop(task);
            }
            is_over = self.await_termination(grace)?;
        }
        let at_work = self.workers.worker_stats().into_iter().filter_map(|stats| stats.current());
        let running = at_work.map(|(id, name)| TaskSummary::new(id, name)).collect();
        Ok(self.record.report(is_over, running))
    }

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
}

/// A shutdown that is under way.
struct Stopping<'a> {
    pool: &'a Pool,
    phase: Phase,
    _scope: PoolScope,
}

impl Stopping<'_> {
    /// Takes tasks out of the closed queue, and ends them.
    fn cancel_where(self, unwanted: impl Fn(Timestamp, &dyn Runnable) -> bool) {
        let removed = self.pool.queue.remove_where(|deadline, task| unwanted(deadline, &**task));
        self.pool.pending_decreased();
        for Entry { sequence, element, .. } in removed {
            self.pool.end_as_cancelled(&*element, sequence, self.phase.reason());
            discard(element);
        }
    }
}

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.pool.release();
    }
}
