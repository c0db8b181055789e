//! PoolRefs: how handles and futures hold on to the pool.
//!
//! Every future keeps the pool alive, to be able to cancel. If all of them counted in the pool's
//! own `Arc`, every submission and every drop of a future, in whichever thread, would change the
//! same cache line, and threads that share nothing else would wait for each other there. So a
//! pool has as many pool_refs as its queue has stripes, each with a count on lines of its own; a
//! thread goes through the pool_ref of its number, into the stripe of that number, and its futures
//! count there.

use std::ops::Deref;

use crossbeam_utils::CachePadded;

use super::{Config, Pool};
use crate::sync::{Arc, thread_number};

/// One way into the pool: what a future holds.
pub(crate) type PoolRef = Arc<CachePadded<Way>>;

/// See [`PoolRef`].
pub(crate) struct Way {
    pool: Arc<Pool>,
    stripe: usize,
}

/// All the ways into one pool: what a handle holds.
pub(crate) struct PoolRefs(Box<[PoolRef]>);

impl PoolRefs {
    /// Makes a pool.
    pub(crate) fn to_new_pool(config: Config) -> Arc<Self> {
        let pool = Pool::new(config);
        let way = |stripe| Arc::new(CachePadded::new(Way { pool: Arc::clone(&pool), stripe }));
        Arc::new(Self((0..pool.queue.stripes()).map(way).collect()))
    }

    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.0[0].pool
    }

    /// The pool_ref of the calling thread.
    #[inline]
    pub(crate) fn local(&self) -> &PoolRef {
        &self.0[thread_number() % self.0.len()]
    }
}

impl Way {
    /// The stripe of the queue that this pool_ref leads to.
    #[inline]
    pub(crate) fn stripe(&self) -> usize {
        self.stripe
    }
}

impl Way {
    /// Whether it leads into this pool.
    pub(crate) fn belongs_to(&self, pool: &Arc<Pool>) -> bool {
        Arc::ptr_eq(&self.pool, pool)
    }
}

impl Deref for Way {
    type Target = Arc<Pool>;

    #[inline]
    fn deref(&self) -> &Arc<Pool> {
        &self.pool
    }
}
