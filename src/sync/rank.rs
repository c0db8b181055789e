//! The order of the locks, and the check that every thread keeps it.
//!
//! Two threads that take the same two locks in opposite orders can wait for each other for ever.
//! So there is one order for all locks of the crate, and a thread takes a lock only if it comes
//! after every lock that the thread holds. The page `docs/locks.md` lists each lock, its place in
//! this order, and every function that holds more than one.
//!
//! ```text
//!   OUTERMOST  ──▶  READY_LIST  ──▶  STRIPE 0 ──▶ … ──▶ STRIPE 15  ──▶  LEAF
//! ```
//!
//! * A lock of rank [`OUTERMOST`] is taken by a thread that holds no lock.
//! * [`READY_LIST`] and [`STRIPE`] are the locks of a queue. A thread may hold several stripes, and
//!   takes them in the order of their numbers.
//! * A lock is a [`LEAF`] unless it says otherwise. A thread that holds a leaf takes no other lock,
//!   so a leaf can be taken under any lock that is none.
//!
//! Places are compared strictly: two locks of one rank are never held together, apart from stripes
//! with different numbers. That rules out two outermost locks, two leaves, and the locks of two
//! queues in one thread.
//!
//! # How it is checked
//!
//! A rank is a parameter of the lock's type, and a number exists in debug builds only. Debug builds
//! keep the places of the held locks for each thread. They grow from the first to the last because
//! each was checked when it was taken, so comparing with the last one is enough. The check comes
//! before the thread blocks: a reversed order is reported by the first thread that uses it, whether
//! or not another thread stands in its way. Release builds contain neither field nor instruction.
//!
//! Two more rules use the same list: no user code runs ([`unwind`](crate::unwind)) and no thread
//! parks while a lock is held.

/// The rank of a lock that is only taken by a thread that holds no other lock.
pub(crate) const OUTERMOST: u8 = 0;
/// The rank of the lock of a queue's ready list.
pub(crate) const READY_LIST: u8 = 1;
/// The rank of the lock of a queue's stripe. Several may be held, in the order of their numbers.
pub(crate) const STRIPE: u8 = 2;
/// The rank of a lock under which no other lock is taken.
pub(crate) const LEAF: u8 = 3;

#[cfg(debug_assertions)]
pub(super) use self::checked::Held;

/// Panics if the calling thread holds a lock. Does nothing in release builds.
#[inline]
pub(crate) fn assert_none_held(what: &str) {
    #[cfg(debug_assertions)]
    checked::assert_none_held(what);
    #[cfg(not(debug_assertions))]
    let _ = what;
}

#[cfg(debug_assertions)]
#[allow(clippy::panic, reason = "a broken order is a defect of the crate, found in debug builds")]
mod checked {
    use std::{cell::RefCell, fmt};

    use super::{LEAF, OUTERMOST, READY_LIST, STRIPE};
    use crate::sync::thread_local;

    /// Sixteen stripes, and one lock of each other rank.
    const MOST: usize = 19;

    /// A lock's place in the order, and a name for it.
    #[derive(Clone, Copy)]
    struct Place {
        rank: u8,
        number: u8,
        /// The type of what the lock protects.
        name: &'static str,
    }

    impl Place {
        fn is_before(&self, other: &Self) -> bool {
            (self.rank, self.number) < (other.rank, other.number)
        }
    }

    impl fmt::Display for Place {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            let rank = match self.rank {
                OUTERMOST => "outermost",
                READY_LIST => "ready list",
                STRIPE => return write!(f, "`{}` (stripe {})", self.name, self.number),
                LEAF => "leaf",
                _ => "unknown rank",
            };
            write!(f, "`{}` ({rank})", self.name)
        }
    }

    /// The held locks of one thread, in their order. An array, so that locking allocates nothing.
    struct Stack {
        places: [Option<Place>; MOST],
        len: usize,
    }

    impl Stack {
        fn last(&self) -> Option<&Place> {
            self.places[..self.len].last().and_then(Option::as_ref)
        }

        fn push(&mut self, place: Place) {
            self.places[self.len] = Some(place);
            self.len += 1;
        }

        /// Locks may be released in any order; what is left keeps its own.
        fn remove(&mut self, place: Place) {
            let is_it = |held: &Option<Place>| {
                held.is_some_and(|held| (held.rank, held.number) == (place.rank, place.number))
            };
            if let Some(index) = self.places[..self.len].iter().rposition(is_it) {
                self.places.copy_within(index + 1..self.len, index);
                self.len -= 1;
            }
        }
    }

    thread_local! {
        static STACK: RefCell<Stack> = const { RefCell::new(Stack { places: [None; MOST], len: 0 }) };
    }

    /// One held lock, for as long as this lives.
    pub(in crate::sync) struct Held(Place);

    impl Held {
        /// Adds a lock of a `T` to those that the thread holds.
        ///
        /// # Panics
        ///
        /// If the order forbids it.
        #[track_caller]
        pub(in crate::sync) fn new<T: ?Sized>(rank: u8, number: u8) -> Self {
            let place = Place { rank, number, name: std::any::type_name::<T>() };
            // A thread that is being torn down may have lost its list; then nothing is checked.
            let last = STACK.try_with(|stack| {
                let mut stack = stack.borrow_mut();
                let last = stack.last().copied().filter(|held| !held.is_before(&place));
                if last.is_none() {
                    stack.push(place);
                }
                last
            });
            if let Ok(Some(held)) = last {
                panic!("a thread that holds {held} takes {place}: see docs/locks.md");
            }
            Self(place)
        }
    }

    impl Drop for Held {
        fn drop(&mut self) {
            let _ = STACK.try_with(|stack| stack.borrow_mut().remove(self.0));
        }
    }

    #[track_caller]
    pub(super) fn assert_none_held(what: &str) {
        let last = STACK.try_with(|stack| stack.borrow().last().copied());
        if let Ok(Some(held)) = last {
            panic!("{what} under the lock of {held}: see docs/locks.md");
        }
    }
}

#[cfg(test)]
#[cfg(debug_assertions)]
#[cfg(not(any(shuttle, loom)))]
#[path = "tests/rank.rs"]
mod tests;
