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
    checked::assert_at_most(0, what);
    #[cfg(not(debug_assertions))]
    let _ = what;
}

/// Panics if the calling thread holds more than one lock. Does nothing in release builds.
pub(super) fn assert_one_held(what: &str) {
    #[cfg(debug_assertions)]
    checked::assert_at_most(1, what);
    #[cfg(not(debug_assertions))]
    let _ = what;
}

#[cfg(debug_assertions)]
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
        pub(in crate::sync) fn new<T>(rank: u8, number: u8) -> Self {
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
    pub(super) fn assert_at_most(count: usize, what: &str) {
        let first = STACK.try_with(|stack| {
            let stack = stack.borrow();
            if stack.len > count { stack.places[0] } else { None }
        });
        if let Ok(Some(held)) = first {
            panic!("{what} under the lock of {held}: see docs/locks.md");
        }
    }
}

#[cfg(test)]
#[cfg(debug_assertions)]
#[cfg(not(any(shuttle, loom)))]
mod tests {
    use super::{LEAF, OUTERMOST, READY_LIST, STRIPE, assert_none_held};
    use crate::{
        sync::{Condvar, Mutex, Parker},
        unwind::{contain, message_of},
    };

    fn outermost() -> Mutex<char, OUTERMOST> {
        Mutex::new('o')
    }

    fn ready_list() -> Mutex<char, READY_LIST> {
        Mutex::new('r')
    }

    fn stripe(number: usize) -> Mutex<char, STRIPE> {
        Mutex::numbered(number, 's')
    }

    fn leaf<T>(value: T) -> Mutex<T, LEAF> {
        Mutex::new(value)
    }

    /// What the check says of `steps`; empty if it has nothing to say.
    fn verdict_on(steps: impl FnOnce()) -> String {
        let verdict = contain(steps).map_err(|payload| message_of(&*payload).to_owned());
        assert_none_held("the test goes on");
        verdict.err().unwrap_or_default()
    }

    #[test]
    fn locks_can_be_taken_in_their_order() {
        let (outermost, ready_list, leaf) = (outermost(), ready_list(), leaf(()));
        let stripes = [0, 1, 15].map(stripe);
        let verdict = verdict_on(|| {
            let _outermost = outermost.lock();
            let ready_list = ready_list.lock();
            let stripes = stripes.each_ref().map(Mutex::lock);
            drop(leaf.lock());
            // In another order than they were taken.
            drop(ready_list);
            drop(leaf.lock());
            drop(stripes);
            drop(leaf.lock());
        });
        assert_eq!(verdict, "");
    }

    #[test]
    fn a_lock_cannot_be_taken_under_one_that_comes_later() {
        let (outermost, ready_list, stripe) = (outermost(), ready_list(), stripe(0));
        let verdict = verdict_on(|| {
            let _stripe = stripe.lock();
            drop(ready_list.lock());
        });
        assert!(verdict.contains("holds `char` (stripe 0) takes `char` (ready list)"), "{verdict}");
        let verdict = verdict_on(|| {
            let _ready_list = ready_list.lock();
            drop(outermost.lock());
        });
        assert!(verdict.contains("(ready list) takes `char` (outermost)"), "{verdict}");
    }

    #[test]
    fn nothing_is_taken_under_a_leaf() {
        let (one, other, stripe) = (leaf(1_u8), leaf(2_u16), stripe(0));
        let verdict = verdict_on(|| {
            let _one = one.lock();
            drop(other.lock());
        });
        assert!(verdict.contains("holds `u8` (leaf) takes `u16` (leaf)"), "{verdict}");
        let verdict = verdict_on(|| {
            let _one = one.lock();
            drop(stripe.lock());
        });
        assert!(verdict.contains("holds `u8` (leaf) takes `char` (stripe 0)"), "{verdict}");
    }

    #[test]
    fn stripes_are_taken_by_their_numbers() {
        let (first, second) = (stripe(0), stripe(1));
        let verdict = verdict_on(|| {
            let _second = second.lock();
            drop(first.lock());
        });
        assert!(verdict.contains("(stripe 1) takes `char` (stripe 0)"), "{verdict}");
    }

    /// Otherwise the thread would wait for itself.
    #[test]
    fn a_lock_is_not_taken_twice() {
        let (outermost, stripe) = (outermost(), stripe(3));
        let verdict = verdict_on(|| {
            let _held = outermost.lock();
            drop(outermost.lock());
        });
        assert!(verdict.contains("(outermost) takes `char` (outermost)"), "{verdict}");
        let verdict = verdict_on(|| {
            let _held = stripe.lock();
            drop(stripe.lock());
        });
        assert!(verdict.contains("(stripe 3) takes `char` (stripe 3)"), "{verdict}");
    }

    #[test]
    fn no_thread_sleeps_while_it_holds_a_lock() {
        let (leaf, outermost, condvar) = (leaf(()), outermost(), Condvar::default());
        let verdict = verdict_on(|| {
            let _held = leaf.lock();
            Parker::current().park();
        });
        assert!(verdict.contains("about to sleep under the lock of `()` (leaf)"), "{verdict}");
        let verdict = verdict_on(|| {
            let _held = outermost.lock();
            condvar.wait(&mut leaf.lock());
        });
        assert!(verdict.contains("about to wait under the lock of `char`"), "{verdict}");
    }
}
