//! The published head: the deadline of the first entry of a heap or of the ready list, readable
//! without a lock. It is [`NEVER`](Timestamp::NEVER) if there is no entry.
//!
//! It is written under the lock of the entries that it describes, and always before that lock is
//! released. So a thread that holds some heap's lock and reads a head, that heap's or another's,
//! sees every insertion that was over before it took the lock. Without a lock a reader may see a
//! value that is a moment old.
//!
//! A head that comes *nearer* is stored with sequential consistency, because this store is one half
//! of the argument that no wake-up is lost ([`waiters`](super::waiters)). A head that moves away
//! needs less: a reader that sees the old value looks once in vain.

use crossbeam_utils::CachePadded;

use crate::{
    sync::atomic::{AtomicU64, Ordering},
    time::Timestamp,
};

/// See the [module](self). It has a cache line of its own, because it changes much less often than
/// the lock beside it.
pub(super) struct PublishedHead(CachePadded<AtomicU64>);

impl PublishedHead {
    pub(super) fn new() -> Self {
        Self(CachePadded::new(AtomicU64::new(Timestamp::NEVER.as_nanos())))
    }

    #[inline]
    pub(super) fn deadline(&self) -> Timestamp {
        // Ordering: see the head of the module, and `waiters`.
        Timestamp::from_nanos(self.0.load(Ordering::SeqCst))
    }

    /// Publishes the deadline of an entry that was inserted, if that is nearer than the head.
    /// Returns `true` if it is.
    #[inline]
    pub(super) fn publish_nearer(&self, deadline: Timestamp) -> bool {
        // Ordering: only written under the lock.
        let is_nearer = deadline.as_nanos() < self.0.load(Ordering::Relaxed);
        if is_nearer {
            // Ordering: see `waiters`.
            self.0.store(deadline.as_nanos(), Ordering::SeqCst);
        }
        is_nearer
    }

    /// Publishes the deadline of the first entry, whichever it is now.
    #[inline]
    pub(super) fn publish(&self, first: Option<(Timestamp, u64)>) {
        let deadline = first.map_or(Timestamp::NEVER, |(deadline, _)| deadline);
        if !self.publish_nearer(deadline) {
            // Ordering: it is no nearer than what is there, and the lock orders it against other
            // writers. Release, so that a reader that misses an entry here sees where it has gone.
            self.0.store(deadline.as_nanos(), Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that makes a head nearer wakes somebody; an entry that is due together with the head
    /// needs no second wake-up.
    #[test]
    fn what_is_as_near_is_not_nearer() {
        let head = PublishedHead::new();
        let nearer = |nanos| head.publish_nearer(Timestamp::from_nanos(nanos));
        assert_eq!([5, 5, 6, 4].map(nearer), [true, false, false, true]);
        assert_eq!(head.deadline(), Timestamp::from_nanos(4));
        head.publish(Some((Timestamp::from_nanos(9), 1)));
        assert_eq!(head.deadline(), Timestamp::from_nanos(9));
        head.publish(None);
        assert_eq!(head.deadline(), Timestamp::NEVER);
    }
}
