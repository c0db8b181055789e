//! The steps of a taking that only some pools have. When a worker has taken an entry, the bound on pending tasks gets its permit
//! back, and what observes workers is told.
//!
//! One flag of the pool covers both ([`Pool::follows_takes`](Pool)), so a plain pool tests a single flag at each take.

use super::{Pool, observing::Observed};
use crate::{task::WorkerContext, time::Timestamp};

/// See the [module](self).
pub(super) struct Takes {
    /// What observes the worker, if anything does.
    observed: Option<Observed>,
}

impl Takes {
    pub(super) fn new(pool: &Pool) -> Self {
        Self { observed: pool.observed() }
    }

    /// The worker has looked for a task in vain; the clock shows `now`.
    pub(super) fn look(&self, worker: &WorkerContext, now: Timestamp) {
        if let Some(observed) = &self.observed {
            observed.looks(worker, now);
        }
    }

    /// The worker has taken a task, which was due when it was `planned`.
    #[inline(never)]
    pub(super) fn take(
        &self,
        pool: &Pool,
        worker: &WorkerContext,
        planned: Timestamp,
        now: Timestamp,
    ) {
        pool.release_capacity();
        if let Some(observed) = &self.observed {
            observed.takes(pool, worker, planned, now);
        }
    }
}
