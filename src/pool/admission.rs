//! Admission: how a task gets into the queue.
//!
//! ```text
//!   ensure_worker ──▶ admit ──▶ capacity ──▶ queue.offer ──▶ enough workers? ──▶ the ticket
//!                       ▲          │             │                 │ no
//!                       │          │             │                 ▼
//!                       │          ▼             ▼              rescue ──▶ the ticket
//!                     retry ◀── rejection ◀──────┴─────────────────┘
//! ```
//!
//! A submission first ensures that there is a worker ([`workers`](super::workers)), and then admits
//! the task: it acquires a permit of the [capacity](super::capacity), if the pool is bounded, and
//! offers the task to the queue. A queued task therefore always has a worker that will come for
//! it, and a task for which no worker could be started was never queued.
//!
//! # Where admission meets shutdown
//!
//! At the lock of a stripe of the queue, and nowhere else. If the submission gets that lock before
//! the shutdown does, the task is admitted and the shutdown sees it; otherwise the queue refuses it.
//! The bound does not refuse for a shutdown: it lets everybody pass once the queue is closed. A
//! task can still be refused with [`Saturated`](RejectionReason::Saturated) while the queue
//! is being closed, since the bound is asked before that, and an admitted task can be taken back
//! by a rescue, as follows.
//!
//! # Rescue
//!
//! Between `ensure_worker` and the offer, workers may have retired or begun other tasks. So the
//! submission looks again once the task is queued. If there are fewer workers than wanted, it
//! starts one; if there is none at all and none can be started, it takes the task out again and
//! reports the error. The head of [`workers`](super::workers) has the argument why either the
//! submission or the retiring worker sees the other.

use super::{Pool, rejection::NotAdmitted};
use crate::{
    RejectedExecutionError, RejectionReason,
    queue::{Refusal, Refused, Ticket},
    sync::Arc,
    task::Runnable,
    time::Timestamp,
};

impl Pool {
    /// Admits a task to a pool that has a worker, through one stripe of the queue. `is_staffed` is
    /// what [`ensure_worker`](Self::ensure_worker) returned. The ticket that this returns finds
    /// nothing in the queue if the rejection handler has dealt with the task. An error owns the task.
    #[inline]
    pub(crate) fn admit(
        self: &Arc<Self>,
        stripe: usize,
        task: Arc<dyn Runnable>,
        now: Timestamp,
        deadline: Timestamp,
        is_staffed: bool,
    ) -> Result<Ticket, RejectedExecutionError> {
        match self.offer(stripe, task, now, deadline, false, is_staffed) {
            Ok(ticket) => Ok(ticket),
            Err(not_admitted) => self.reject(stripe, not_admitted, now, deadline),
        }
    }

    /// Offers a task to the queue, if there is capacity for it or if `has_permit` says that a permit
    /// has been acquired already.
    #[inline]
    pub(super) fn offer(
        self: &Arc<Self>,
        stripe: usize,
        task: Arc<dyn Runnable>,
        now: Timestamp,
        deadline: Timestamp,
        has_permit: bool,
        is_staffed: bool,
    ) -> Result<Ticket, NotAdmitted> {
        if !has_permit && !self.acquire_capacity() {
            let sequence = self.queue.next_sequence(stripe, now);
            return Err(NotAdmitted { reason: RejectionReason::Saturated, sequence, task });
        }
        match self.queue.offer(stripe, now, deadline, task) {
            Ok(ticket) if self.workers.started() >= self.workers.wanted() => Ok(ticket),
            Ok(ticket) => self.rescue(ticket, is_staffed),
            Err(Refused { why, sequence, element: task }) => {
                self.release_capacity();
                let reason = match why {
                    Refusal::Closed => RejectionReason::Shutdown,
                    Refusal::Full => RejectionReason::Full,
                };
                Err(NotAdmitted { reason, sequence, task })
            }
        }
    }

    #[inline]
    fn acquire_capacity(&self) -> bool {
        let try_acquire =
            |capacity: &super::Capacity| capacity.try_acquire(|| self.queue.is_closed());
        self.capacity.as_ref().is_none_or(try_acquire)
    }

    /// Releases the permit of a task that is no longer pending.
    #[inline]
    pub(super) fn release_capacity(&self) {
        if let Some(capacity) = &self.capacity {
            capacity.release();
        }
    }

    /// Ensures a worker for a task that is in the queue while there are fewer workers than wanted, or
    /// takes the task out again; see the head of the module.
    #[cold]
    fn rescue(self: &Arc<Self>, ticket: Ticket, is_staffed: bool) -> Result<Ticket, NotAdmitted> {
        let started = if self.workers.started() == 0 {
            self.start_worker(|| self.workers.wanted()).map(drop)
        } else if is_staffed {
            self.compensate()
        } else {
            // It has just been tried.
            Ok(())
        };
        let Err(error) = started.or_else(|error| self.tolerate_spawn_failure(error)) else {
            return Ok(ticket);
        };
        // If it is not there, it has been run, or somebody else has removed it.
        let Some(task) = self.queue.remove(ticket) else { return Ok(ticket) };
        self.entry_removed();
        if self.shutdown.hold() {
            // The task may have been all that termination waited for.
            self.release_hold();
        }
        let (reason, sequence) = (RejectionReason::Spawn(error), ticket.sequence);
        Err(NotAdmitted { reason, sequence, task })
    }
}

#[cfg(test)]
mod tests;
