//! Submitting, a protocol of the pool: the references through which threads submit, and how a task gets into the queue.
//!
//! ```text
//!   ensure_worker ──▶ admit ──▶ capacity ──▶ queue.offer ──▶ enough workers? ──▶ the ticket
//!                       ▲          │             │                 │ no
//!                       │          ▼             ▼                 ▼
//!                     retry ◀── reject ◀─────────┴────────────── rescue ──▶ the ticket
//! ```
//!
//! If fewer workers have started than are wanted, a submission first starts one ([`staffing`](super::staffing)). So a
//! worker will come for every task that stays queued: if there is no worker and none can be started, the task is not
//! queued, or is taken out again. If the bound or the queue refuses the task, a submission that may ask the
//! [handler](crate::rejection) does so, and offers the task again each time the handler answers `Retry`.
//!
//! # References
//!
//! To cancel its task, a future needs the pool, so every future keeps the pool alive. If all futures shared one
//! reference count, every submission and every drop of a future would write to the same cache line. So a pool has as
//! many reference counts as its queue has stripes, each on cache lines of its own. A thread submits through the
//! [`PoolRef`] that its number selects. The thread's tasks go into the stripe of that reference, and each of their
//! futures has a clone of the reference.
//!
//! # Where a submission meets a shutdown
//!
//! The lock of the stripe that a submission uses decides whether the submission or a shutdown comes first. If the
//! submission gets that lock first, the task is admitted and the shutdown sees it; otherwise the queue refuses it.
//! While the queue is being closed, a task can still be refused with [`Saturated`](RejectionReason::Saturated), since
//! the submission checks the bound first.
//!
//! # Rescue
//!
//! Between `ensure_worker` and the offer, workers may have retired or begun other tasks. So once the task is queued,
//! the submission checks again whether a worker will take it. If none will, and the pool may have another worker, the
//! submission starts one. If the start fails and the pool has no worker, the submission takes the task out again, and
//! fails with the same error. The head of [`workers`](super::workers) explains why at least one of the two, the
//! submission or the retiring worker, sees the other.

use std::{
    io, mem,
    ops::ControlFlow::{self, Break, Continue},
    time::Duration,
};

use crossbeam_utils::CachePadded;

use super::{Config, Pool, admission::CountOnDrop, lifecycle::Role};
use crate::{
    CancelReason, RejectedExecutionError, RejectionReason,
    drained::DrainedTask,
    entry::{Ticket, Timing},
    queue::{InsertError, QueueEntry, RefusedElement},
    rejection::{CapacityPermit, Decision, RejectedExecutionHandler, RejectedTask, Room},
    sync::{Arc, thread, thread_number},
    task::Task,
    time::Timestamp,
    trace,
    unwind::{Contained, discard},
};

/// A counted reference to a pool and to one stripe of its queue. Each future has such a reference.
#[derive(Clone)]
pub(crate) struct PoolRef(Arc<CachePadded<Target>>);

struct Target {
    pool: Arc<Pool>,
    stripe: usize,
}

/// One [`PoolRef`] for each stripe of a pool's queue. All [handles](crate::Handle) of the executor share this value.
pub(crate) struct PoolRefs {
    /// The pool that all `refs` refer to; kept here as well, to save an indirection.
    pool: Arc<Pool>,
    refs: Box<[PoolRef]>,
}

/// What a submission learned from [`Pool::ensure_worker`].
#[derive(Clone, Copy)]
pub(crate) enum Staffing {
    Complete,
    /// A worker was missing and could not be started; the pool has others.
    Short,
}

/// A task that was not admitted, and why.
pub(super) struct NotAdmitted {
    pub(super) reason: RejectionReason,
    sequence: u64,
    task: Arc<Task>,
}

impl PoolRefs {
    pub(crate) fn to_new_pool(config: Config) -> Arc<Self> {
        let pool = Pool::new(config);
        debug_assert!(pool.queue.stripes().is_power_of_two(), "see `local`");
        let refer = |stripe| {
            PoolRef(Arc::new(CachePadded::new(Target { pool: Arc::clone(&pool), stripe })))
        };
        let refs = (0..pool.queue.stripes()).map(refer).collect();
        Arc::new(Self { pool, refs })
    }

    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Returns the reference through which the calling thread submits.
    #[inline]
    pub(crate) fn local(&self) -> &PoolRef {
        // The number of references is a power of two, so this is the remainder without a division.
        &self.refs[thread_number() & (self.refs.len() - 1)]
    }
}

impl PoolRef {
    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.0.pool
    }

    pub(crate) fn stripe(&self) -> usize {
        self.0.stripe
    }

    /// Submits a task through this reference. The caller has checked the pool's workers, and passes the result as
    /// `staffing`. If the bound or the queue refuses the task, asks the handler if `asks_handler` is `true`, and
    /// otherwise fails. If the handler has dealt with the task, returns a ticket without a slot.
    // Inlined with the usual path into the queue: a call would save and load a dozen registers.
    #[inline(always)]
    pub(crate) fn admit(
        &self,
        task: Arc<Task>,
        now: Timestamp,
        timing: Timing,
        staffing: Staffing,
        asks_handler: bool,
    ) -> Result<Ticket, RejectedExecutionError> {
        match self.offer(task, now, timing, staffing, false) {
            Ok(ticket) => Ok(ticket),
            Err(refused) => self.reject(refused, now, timing, asks_handler),
        }
    }

    /// Submits a timer, even beyond the bound. Never asks the rejection handler: a handler that ran the timer at once
    /// would end the timer's wait too early, and a handler that blocked would block the thread that polls the timer.
    /// Fails if the queue does not admit the timer, or if there is no worker and none can be started.
    #[inline(always)]
    pub(crate) fn admit_timer(
        &self,
        task: Arc<Task>,
        now: Timestamp,
        deadline: Timestamp,
    ) -> Result<Ticket, RejectionReason> {
        let pool = self.pool();
        let staffing = pool.ensure_worker().map_err(RejectionReason::Spawn)?;
        pool.capacity.force_acquire();
        self.offer(task, now, Timing::At(deadline), staffing, true).map_err(|refused| {
            pool.rejections.count();
            discard(refused.task);
            refused.reason
        })
    }

    /// Acquires a permit unless `has_permit`, offers the task to the queue, and ensures that the task gets a worker.
    #[inline(always)]
    pub(super) fn offer(
        &self,
        task: Arc<Task>,
        now: Timestamp,
        timing: Timing,
        staffing: Staffing,
        has_permit: bool,
    ) -> Result<Ticket, NotAdmitted> {
        let (pool, stripe) = (self.pool(), self.stripe());
        if !has_permit && !pool.capacity.try_acquire(|| pool.queue.is_closed()) {
            let sequence = pool.queue.next_sequence(stripe, now);
            return Err(NotAdmitted { reason: RejectionReason::Saturated, sequence, task });
        }
        match pool.queue.offer(stripe, now, timing, task) {
            Ok(ticket) if pool.workers.is_complete() => Ok(ticket),
            Ok(ticket) => pool.rescue(ticket, staffing),
            Err(RefusedElement { why, sequence, element: task }) => {
                pool.capacity.release();
                let reason = match why {
                    InsertError::Closed => RejectionReason::Shutdown,
                    InsertError::Full => RejectionReason::Full,
                };
                Err(NotAdmitted { reason, sequence, task })
            }
        }
    }

    /// Calls `ask_handler` for a refused task, and offers the task again each time the answer is `Continue`.
    #[cold]
    fn reject(
        &self,
        mut refused: NotAdmitted,
        now: Timestamp,
        timing: Timing,
        asks_handler: bool,
    ) -> Result<Ticket, RejectedExecutionError> {
        let counting = CountOnDrop(&self.pool().rejections.rejected);
        loop {
            let (task, sequence) = (Arc::clone(&refused.task), refused.sequence);
            let permit = match self.ask_handler(refused, timing.due(), asks_handler) {
                Break(answer) => return answer,
                Continue(permit) => permit,
            };
            let is_refused = task.own_group().is_some_and(|group| group.roll().refuses_more());
            let retried = if is_refused {
                // Its group was shut down meanwhile.
                Err(NotAdmitted { reason: RejectionReason::GroupShutdown, sequence, task })
            } else {
                let has_permit = permit.map(CapacityPermit::hand_over).is_some();
                self.offer(task, now, timing, Staffing::Complete, has_permit)
            };
            match retried {
                Err(again) => refused = again,
                Ok(ticket) => {
                    // It has been admitted, so it does not count as rejected.
                    mem::forget(counting);
                    return Ok(ticket);
                }
            }
        }
    }

    /// Asks the handler. If the reason or the caller rules that out, fails the submission instead. Returns `Continue`,
    /// perhaps with a permit, if the task is to be offered again.
    fn ask_handler(
        &self,
        NotAdmitted { reason, sequence, task: own }: NotAdmitted,
        due: Timestamp,
        asks_handler: bool,
    ) -> ControlFlow<Result<Ticket, RejectedExecutionError>, Option<CapacityPermit>> {
        let pool = self.pool();
        if trace::is_listening() {
            trace::rejected(sequence, own.name().as_deref(), &reason);
        }
        let task = pool.refused_task(Arc::clone(&own), sequence, due);
        let is_final = matches!(reason, RejectionReason::Spawn(_) | RejectionReason::GroupShutdown);
        let decision = if is_final || !asks_handler {
            Decision::Abort(task)
        } else {
            // If the handler has been replaced meanwhile, this thread may drop it, even if it panics.
            let handler = Contained::new(pool.rejections.handler.get());
            handler.rejected_execution(RejectedTask::new(pool, task, &reason)).0
        };
        let is_own =
            |task: &DrainedTask| task.task.as_ref().is_some_and(|it| Arc::ptr_eq(it, &own));
        match decision {
            Decision::Abort(task) if is_own(&task) => {
                Break(Err(RejectedExecutionError::new(reason, task)))
            }
            Decision::Retry(mut task, permit) if is_own(&task) => {
                drop(task.task.take());
                Continue(permit)
            }
            Decision::Handled | Decision::Abort(_) | Decision::Retry(..) => {
                Break(Ok(Ticket::without_slot(sequence)))
            }
        }
    }

    /// Returns the error of a submission whose task was never offered to the queue.
    #[cold]
    pub(crate) fn refuse(
        &self,
        task: Arc<Task>,
        now: Timestamp,
        deadline: Timestamp,
        reason: RejectionReason,
    ) -> RejectedExecutionError {
        let pool = self.pool();
        let sequence = pool.queue.next_sequence(self.stripe(), now);
        RejectedExecutionError::new(reason, pool.refused_task(task, sequence, deadline))
    }
}

impl Pool {
    /// If fewer workers have started than are wanted, and the queue is open, starts one. If the start fails, returns
    /// `Short` if the pool has a started worker, and otherwise the error.
    #[inline]
    pub(crate) fn ensure_worker(self: &Arc<Self>) -> io::Result<Staffing> {
        // The queue, not the phase, which advances before the queue is closed: until then tasks are admitted.
        if self.workers.is_complete() || self.queue.is_closed() {
            return Ok(Staffing::Complete);
        }
        let started = self.start_worker().map(|_| Staffing::Complete);
        started.or_else(|error| self.workers.tolerate(error).map(|()| Staffing::Short))
    }

    /// Ensures that a worker comes for a queued task, or takes the task out again; see the head of the module.
    #[cold]
    fn rescue(self: &Arc<Self>, ticket: Ticket, staffing: Staffing) -> Result<Ticket, NotAdmitted> {
        let started = match staffing {
            _ if self.workers.started() == 0 => self.start_worker().map(drop),
            Staffing::Complete => self.compensate(),
            // A start has just failed.
            Staffing::Short => Ok(()),
        };
        let Err(error) = started.or_else(|error| self.workers.tolerate(error)) else {
            return Ok(ticket);
        };
        // If the task is not there, a worker has taken it, or another thread has removed it.
        let removed = self.queue.withdraw(ticket).or_else(|| {
            // It may have been moved since it was submitted, to another slot.
            let all = self.queue.snapshot();
            let moved = all.iter().find(|one| one.ticket.sequence == ticket.sequence);
            let moved = moved.map(|one| one.ticket);
            discard(all);
            self.queue.withdraw(moved?)
        });
        // Other threads may have relied on this one to start a worker.
        self.end_stranded();
        let Some(task) = removed else { return Ok(ticket) };
        self.entry_removed();
        let (reason, sequence) = (RejectionReason::Spawn(error), ticket.sequence);
        Err(NotAdmitted { reason, sequence, task })
    }

    fn refused_task(&self, element: Arc<Task>, sequence: u64, deadline: Timestamp) -> DrainedTask {
        let entry = QueueEntry { deadline, sequence, element };
        DrainedTask::new(entry, &self.detached_context(), CancelReason::Rejected)
    }
}

// The methods of a rejected task.
impl Pool {
    /// Ends the pending task that is due first, to make room for another. If none is pending, yields.
    pub(crate) fn discard_oldest(&self) {
        let Some(QueueEntry { sequence, element, .. }) = self.queue.remove_first() else {
            // Another submitter has the room and has yet to queue its task, so this one would only ask again.
            return thread::yield_now();
        };
        self.entry_removed();
        let why = "it was discarded for another task";
        self.displace(element, sequence, CancelReason::Rejected, why);
    }

    /// Blocks until a permit is acquired, `timeout` has passed, or `gives_up` returns `true`. If the pool has no bound,
    /// or the calling thread is a worker of the pool, returns `TimeIsUp` at once.
    pub(crate) fn wait_for_room(&self, timeout: Duration, gives_up: &dyn Fn() -> bool) -> Room {
        if self.capacity.bound.is_none() || self.lifecycle.has_caller_as(Role::Worker) {
            return Room::TimeIsUp;
        }
        let (clock, queue) = (self.clock(), &self.queue);
        let deadline = clock.read().after(timeout);
        self.capacity.acquire_before(clock, deadline, || queue.is_closed(), gives_up)
    }
}

#[cfg(test)]
mod tests;
