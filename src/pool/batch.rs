//! A batch is admitted as one: all of its tasks, or none.
//!
//! It goes the way of a single submission ([`admission`](super::admission)), with each step taken once for all tasks: workers
//! are ensured, permits are acquired under one lock, and the tasks are queued under that of one stripe. There a batch meets a
//! shutdown: it is admitted as a whole before the queue is closed, or refused as a whole.
//!
//! The rejection handler is not asked. It answers for a task that it owns, and half of a batch is not what the submitter
//! asked for.
//!
//! # The workers
//!
//! A batch starts a worker for each of its tasks, as single submissions do, until the pool has all of them. If a worker has
//! retired meanwhile, the batch looks for one once it is queued, as every thread does that has brought an entry near
//! ([`control`](super::control)): it stays queued if none can be started, because tasks of it may have run.

use super::{Pool, PoolRef, admission::Staffing};
use crate::{
    RejectionReason, entry::Ticket, queue::Refusal, sync::Arc, task::Task, time::Timestamp, trace,
};

impl PoolRef {
    /// Admits all tasks, each for its moment, or none. The iterator is asked under a lock, so it is no user code.
    ///
    /// # Errors
    ///
    /// The reason.
    pub(crate) fn admit_all(
        &self,
        now: Timestamp,
        tasks: impl ExactSizeIterator<Item = (Timestamp, Arc<Task>)>,
    ) -> Result<Vec<Ticket>, RejectionReason> {
        let (pool, count) = (self.pool(), tasks.len());
        let admitted = pool.offer_all(self.stripe(), now, tasks);
        if let Err(reason) = &admitted {
            pool.rejections.count_all(count);
            if trace::is_listening() {
                for _ in 0..count {
                    let sequence = pool.queue.next_sequence(self.stripe(), now);
                    trace::rejected(sequence, None, reason);
                }
            }
        }
        admitted
    }
}

impl Pool {
    fn offer_all(
        self: &Arc<Self>,
        stripe: usize,
        now: Timestamp,
        tasks: impl ExactSizeIterator<Item = (Timestamp, Arc<Task>)>,
    ) -> Result<Vec<Ticket>, RejectionReason> {
        let count = tasks.len();
        self.ensure_workers(count)?;
        if !self.capacity.try_acquire_all(count, || self.queue.is_closed()) {
            return Err(RejectionReason::Saturated);
        }
        match self.queue.offer_all(stripe, now, tasks) {
            Ok(tickets) => {
                if !self.workers.is_complete() && count > 0 {
                    self.compensate().unwrap_or_else(|error| self.go_without_worker(&error));
                }
                Ok(tickets)
            }
            Err(why) => {
                (0..count).for_each(|_| self.capacity.release());
                Err(match why {
                    Refusal::Closed => RejectionReason::Shutdown,
                    Refusal::Full => RejectionReason::Full,
                })
            }
        }
    }

    /// Starts a worker for each of so many tasks, as long as one is missing.
    fn ensure_workers(self: &Arc<Self>, tasks: usize) -> Result<(), RejectionReason> {
        for _ in 0..tasks {
            if self.workers.is_complete() || self.queue.is_closed() {
                break;
            }
            if self.ensure_worker().map_err(RejectionReason::Spawn)? == Staffing::Short {
                break;
            }
        }
        Ok(())
    }
}
