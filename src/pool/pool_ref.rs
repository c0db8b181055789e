//! References to the pool, counted for each stripe of its queue.
//!
//! Every future keeps the pool alive, so that it can cancel. If all of them counted in the one `Arc` of the
//! pool, every submission and every drop of a future, on whichever thread, would write to the same cache
//! line. A pool therefore has as many reference counts as its queue has stripes, each on cache lines of its
//! own. A thread submits through the [`PoolRef`] of its number, into the stripe of that number, and the
//! futures that it gets count there.

use crossbeam_utils::CachePadded;

use super::{
    Config, NotQueued, Phase, Pool, Staffing,
    admission::{Arrival, Permit},
};
use crate::{
    RejectedExecutionError, RejectionReason,
    entry::{Ticket, Timing},
    feature::Change,
    sync::{Arc, thread_number},
    task::Task,
    time::Timestamp,
    unwind::discard,
};

/// A counted reference to a pool, through one stripe of its queue; this is what a future holds.
#[derive(Clone)]
pub(crate) struct PoolRef(Arc<CachePadded<Target>>);

/// The pool and the stripe that the clones of one [`PoolRef`] share.
struct Target {
    pool: Arc<Pool>,
    stripe: usize,
}

/// The references to one pool, one for each stripe; this is what a handle holds.
pub(crate) struct PoolRefs {
    /// The pool of all of them, one step nearer.
    pool: Arc<Pool>,
    refs: Box<[PoolRef]>,
}

impl PoolRefs {
    /// Makes a pool.
    pub(crate) fn to_new_pool(config: Config) -> Arc<Self> {
        let pool = Pool::new(config);
        debug_assert!(pool.queue.stripes().is_power_of_two(), "see `local`");
        let refer = |stripe| {
            PoolRef(Arc::new(CachePadded::new(Target { pool: Arc::clone(&pool), stripe })))
        };
        let refs = (0..pool.queue.stripes()).map(refer).collect();
        Arc::new(Self { pool, refs })
    }

    #[inline]
    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// The reference that the calling thread submits through.
    #[inline]
    pub(crate) fn local(&self) -> &PoolRef {
        // Their number is a power of two, so this is the remainder without a division.
        &self.refs[thread_number() & (self.refs.len() - 1)]
    }
}

impl PoolRef {
    #[inline]
    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.0.pool
    }

    /// The stripe of the queue that submissions through this reference go to.
    #[inline]
    pub(crate) fn stripe(&self) -> usize {
        self.0.stripe
    }

    /// Returns `true` if this is a reference to `pool`.
    pub(crate) fn belongs_to(&self, pool: &Arc<Pool>) -> bool {
        Arc::ptr_eq(&self.0.pool, pool)
    }

    #[inline(always)]
    fn arrival(
        &self,
        now: Timestamp,
        timing: Timing,
        staffing: Staffing,
        asks_handler: bool,
    ) -> Arrival {
        Arrival { stripe: self.stripe(), now, timing, staffing, asks_handler }
    }

    /// Admits a task, through the stripe of this reference, to a pool that has a worker. If it is refused, the handler
    /// is asked, or the submission fails.
    // Always inlined, with all of the usual way into the queue: a call of its own would save and load a dozen registers.
    #[inline(always)]
    pub(crate) fn admit(
        &self,
        task: Arc<Task>,
        now: Timestamp,
        timing: Timing,
        staffing: Staffing,
        asks_handler: bool,
    ) -> Result<Ticket, NotQueued> {
        let pool = self.pool();
        match pool.offer(task, self.arrival(now, timing, staffing, asks_handler), Permit::ToAcquire)
        {
            Ok(ticket) => Ok(ticket),
            // Made anew, because one for both would lie in memory at each submission.
            Err(refused) => pool.reject(refused, self.arrival(now, timing, staffing, asks_handler)),
        }
    }

    /// Submits a timer through the stripe of this reference. It takes a permit even if that is one too many, and no
    /// rejection handler is asked: one that runs the task in the caller would end a wait too early, and one that blocks
    /// would block a thread that polls.
    ///
    /// # Errors
    ///
    /// The reason, if the queue admits it no more, or if there is no worker and none can be started.
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
        let arrival = self.arrival(now, Timing::At(deadline), staffing, false);
        pool.offer(task, arrival, Permit::Acquired).map_err(|refused| {
            pool.rejections.count();
            discard(refused.task);
            refused.reason
        })
    }

    /// Changes the moment at which a live task runs next; see the head of [`pool`](super). Returns `true` if
    /// that had an effect.
    pub(crate) fn control(&self, task: &Arc<Task>, ticket: Ticket, change: Change) -> bool {
        let pool = self.pool();
        if pool.lifecycle.phase() >= Phase::OwnerDropped {
            discard(change);
            return false;
        }
        let changed = pool.with_entry(ticket, |entry| task.control(change, pool.clock(), entry));
        if let Some(limit) = changed.limit {
            pool.set_timeout(self.stripe(), Arc::clone(task), ticket, limit);
        }
        changed.had_effect
    }

    /// Returns a task that was never offered to the queue, as the error of its submission.
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
