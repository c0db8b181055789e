//! The published head: the deadline of the first entry of a stripe, or of the ready list, for
//! everyone to read; [`NEVER`](Timestamp::NEVER) if there is no entry.
//!
//! It is written under the lock of what it stands for, always before that lock is released; so
//! whoever has a lock and reads a head, its own or another's, sees every submission that was over
//! before. It may be read without a lock: then it is news of a moment ago.
//!
//! A head that comes *nearer* is stored with sequential consistency, because that is one half of
//! the argument that nobody is missed ([`takers`](super::takers)). One that goes away is not:
//! whoever reads the old one looks once for nothing.

use crossbeam_utils::CachePadded;

use crate::{
    sync::atomic::{AtomicU64, Ordering},
    time::Timestamp,
};

/// See the [module](self). On a line of its own: it changes much less often than the lock.
pub(super) struct Head(CachePadded<AtomicU64>);

impl Head {
    pub(super) fn new() -> Self {
        Self(CachePadded::new(AtomicU64::new(Timestamp::NEVER.as_nanos())))
    }

    #[inline]
    pub(super) fn deadline(&self) -> Timestamp {
        // Ordering: see the head of the module, and `takers`.
        Timestamp::from_nanos(self.0.load(Ordering::SeqCst))
    }

    /// An entry has come to stand at `deadline`. Whether the head is nearer for it.
    #[inline]
    pub(super) fn publish_nearer(&self, deadline: Timestamp) -> bool {
        // Ordering: only written under the lock.
        let is_nearer = deadline.as_nanos() < self.0.load(Ordering::Relaxed);
        if is_nearer {
            // Ordering: see `takers`.
            self.0.store(deadline.as_nanos(), Ordering::SeqCst);
        }
        is_nearer
    }

    /// The first entry is this one now.
    #[inline]
    pub(super) fn publish(&self, first: Option<(Timestamp, u64)>) {
        let deadline = first.map_or(Timestamp::NEVER, |(deadline, _)| deadline);
        if !self.publish_nearer(deadline) {
            // Ordering: it is no nearer than what is there; the lock orders it against other
            // writers. Released, so that who misses an entry here sees where it has gone.
            self.0.store(deadline.as_nanos(), Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever makes a head nearer wakes somebody; for what is due with it, nobody need wake again.
    #[test]
    fn what_is_as_near_is_not_nearer() {
        let head = Head::new();
        let nearer = |nanos| head.publish_nearer(Timestamp::from_nanos(nanos));
        assert_eq!([5, 5, 6, 4].map(nearer), [true, false, false, true]);
        assert_eq!(head.deadline(), Timestamp::from_nanos(4));
        head.publish(Some((Timestamp::from_nanos(9), 1)));
        assert_eq!(head.deadline(), Timestamp::from_nanos(9));
        head.publish(None);
        assert_eq!(head.deadline(), Timestamp::NEVER);
    }
}
