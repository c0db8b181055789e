//! The order of the locks, and the check that every thread keeps to it.
//!
//! Two threads that take two locks in opposite orders can wait for each other forever. So a thread takes a lock only if
//! that lock comes after every lock that the thread holds. The page `docs/locks.md` lists each lock with its rank.
//!
//! ```text
//!   OUTERMOST  ──▶  READY_LIST  ──▶  STRIPE 0 ──▶ … ──▶ STRIPE 15  ──▶  LEAF
//! ```
//!
//! A thread never holds two locks of one rank, apart from stripes, which it takes in the order of their numbers.
//!
//! For each lock that a thread holds, debug builds record the lock's place in the order above. Before the thread takes
//! another lock, the check makes sure that this lock's place comes after every recorded place. So a thread that breaks
//! the order panics at once, even if no other thread contends for the locks. Two more checks use the same record: a
//! thread that holds a lock neither runs user code ([`unwind`](crate::unwind) names one exception) nor parks. Release
//! builds contain no field and no instruction for any of this.

/// The rank of the locks that a thread takes only while it holds no lock.
pub(crate) const OUTERMOST: u8 = 0;
pub(crate) const READY_LIST: u8 = 1;
pub(crate) const STRIPE: u8 = 2;
/// The rank of the locks under which a thread takes no other lock. Most locks are leaves.
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
    use std::{any::type_name, cell::RefCell};

    use super::{OUTERMOST, READY_LIST, STRIPE};
    use crate::sync::thread_local;

    /// The number of places: one for each of sixteen stripes, and one for each of the other three ranks.
    const PLACES: usize = 19;
    const LAST: usize = PLACES - 1;

    thread_local! {
        /// For each place, the type that the lock held there protects. An array, so that locking allocates nothing.
        static HELD: RefCell<[Option<&'static str>; PLACES]> = const { RefCell::new([None; PLACES]) };
    }

    /// An entry of the record: the lock counts as held until this is dropped.
    pub(in crate::sync) struct Held(usize);

    impl Held {
        /// Records that the thread holds a lock of a `T`.
        ///
        /// # Panics
        ///
        /// If the order of the locks forbids it.
        #[track_caller]
        pub(in crate::sync) fn new<T: ?Sized>(rank: u8, number: u8) -> Self {
            let place = match rank {
                OUTERMOST | READY_LIST => rank.into(),
                STRIPE => (STRIPE + number).into(),
                _ => LAST,
            };
            if let Some(held) = last_held().filter(|(held, _)| *held >= place) {
                let (held, taken) = (shown(held), shown((place, type_name::<T>())));
                panic!("a thread that holds {held} takes {taken}: see docs/locks.md");
            }
            let _ = HELD.try_with(|held| held.borrow_mut()[place] = Some(type_name::<T>()));
            Self(place)
        }
    }

    impl Drop for Held {
        fn drop(&mut self) {
            let _ = HELD.try_with(|held| held.borrow_mut()[self.0] = None);
        }
    }

    /// Returns the held lock that comes last in the order. A thread that is being torn down may have lost its record;
    /// then nothing is checked.
    fn last_held() -> Option<(usize, &'static str)> {
        let held = HELD.try_with(|held| *held.borrow()).ok()?;
        let place = held.iter().rposition(Option::is_some)?;
        Some((place, held[place]?))
    }

    fn shown((place, protects): (usize, &str)) -> String {
        match place {
            0 => format!("`{protects}` (outermost)"),
            1 => format!("`{protects}` (ready list)"),
            LAST => format!("`{protects}` (leaf)"),
            stripe => format!("`{protects}` (stripe {})", stripe - usize::from(STRIPE)),
        }
    }

    #[track_caller]
    pub(super) fn assert_none_held(what: &str) {
        if let Some(held) = last_held() {
            panic!("{what} under the lock of {}: see docs/locks.md", shown(held));
        }
    }
}

#[cfg(test)]
#[cfg(debug_assertions)]
#[cfg(not(any(shuttle, loom)))]
#[path = "tests/rank.rs"]
mod tests;
