//! The steps of a taking that only some pools have, which one flag covers ([`Pool::follows_takes`](Pool)):
//! the bound on pending tasks gets its permit back, and what observes workers is told.

use super::Pool;
#[cfg(feature = "histograms")]
use super::observing::{PoolHistograms, WorkerHistograms};
use crate::{task::WorkerContext, time::Timestamp};

/// See the [module](self).
pub(super) struct Takes {
    #[cfg(feature = "histograms")]
    histograms: Option<WorkerHistograms>,
}

impl Takes {
    pub(super) fn new(_pool: &Pool) -> Self {
        Self {
            #[cfg(feature = "histograms")]
            histograms: _pool.observing.histograms.as_ref().map(PoolHistograms::of_worker),
        }
    }

    /// The worker has looked for a task in vain; the clock shows `now`.
    pub(super) fn look(&self, _worker: &WorkerContext, _now: Timestamp) {
        #[cfg(feature = "histograms")]
        if let Some(histograms) = &self.histograms {
            histograms.record(_worker, _now);
        }
    }

    /// The worker has taken a task, which was due when it was `planned`.
    #[inline(never)]
    pub(super) fn take(
        &self,
        pool: &Pool,
        worker: &WorkerContext,
        _planned: Timestamp,
        now: Timestamp,
    ) {
        pool.capacity.release();
        #[cfg(feature = "histograms")]
        if let Some(histograms) = &self.histograms {
            histograms.record(worker, now);
            histograms.begin(_planned, now);
        }
        if let Some(starvation) = &pool.observing.starvation {
            starvation.taken(pool, &worker.stats, now);
        }
    }

    /// The worker has been removed.
    pub(super) fn end(pool: &Pool) {
        if let Some(starvation) = &pool.observing.starvation {
            starvation.ensure_armed(pool, pool.clock().read());
        }
    }
}
