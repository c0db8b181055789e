//! Which elements a queue admits, and what the caller gets back for one that it does not.

use crate::sync::atomic::{AtomicUsize, Ordering};

/// Which elements a queue admits. A queue only ever moves down this list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Admission {
    /// Every element.
    Open,
    /// Only elements that were admitted before and taken out: periodic ones between two runs.
    Returning,
    /// None.
    Closed,
}

/// The [`Admission`] of one queue: the only place where a queue remembers that it is closed.
///
/// It is written while *all* heap locks of the queue are held, so it does not change while any one
/// of them is held. An insertion reads it under its heap's lock, and so meets a closer there: the
/// one that gets the lock first comes first. It may be read without a lock, too. A reader that
/// sees a closed queue then knows that every element that was admitted is in its heap.
pub(super) struct AdmissionState(AtomicUsize);

impl AdmissionState {
    pub(super) fn new() -> Self {
        Self(AtomicUsize::new(Admission::Open as usize))
    }

    /// Returns `true` if every element is admitted.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        // Ordering: see `Source::is_finished`; under a lock any would do.
        self.0.load(Ordering::SeqCst) == Admission::Open as usize
    }

    /// Returns `true` if no element is admitted, not even one that returns.
    #[inline]
    pub(super) fn is_closed_to_all(&self) -> bool {
        // Ordering: only read under a lock.
        self.0.load(Ordering::Relaxed) == Admission::Closed as usize
    }

    /// Admits no more than `admission` from now on. The caller holds all heap locks of the queue.
    pub(super) fn restrict_to(&self, admission: Admission) {
        // Ordering: nobody else writes, and `is_open` says why the store is sequentially consistent.
        let current = self.0.load(Ordering::Relaxed);
        self.0.store(current.max(admission as usize), Ordering::SeqCst);
    }
}

/// An element that was not admitted.
#[derive(Debug)]
pub(crate) struct Refused<E> {
    pub(crate) why: Refusal,
    /// The sequence that the element would have had. No other element gets it.
    pub(crate) sequence: u64,
    pub(crate) element: E,
}

/// Elements that were to be admitted together, and were not.
#[derive(Debug)]
pub(crate) struct AllRefused<T> {
    pub(crate) why: Refusal,
    pub(crate) elements: Vec<T>,
}

/// Why an element was not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Closed,
    Full,
}
