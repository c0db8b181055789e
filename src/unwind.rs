//! The one door through which user code is called or dropped.
//!
//! A task's closure, its captures, its result, a panic's payload, a waker: all of it is the
//! user's code, and any of it may panic, block or call back into the crate. Three rules hold.
//!
//! 1. It goes through this module. There is no other `catch_unwind` in the crate.
//! 2. **No lock is held.** Debug builds assert it at the door.
//! 3. A panic becomes a value. Where nobody can be given the value it is dropped (the process's
//!    panic hook has reported it, as any panic), and dropping a payload is user code again: a
//!    payload that panics when it is dropped is dropped behind a second door, and what that one
//!    throws is leaked, because it could do so for ever.
//!
//! # The one panic that cannot be contained
//!
//! The captures of a one-shot closure are dropped by the call itself. If the body panics *and* a
//! capture panics while it is dropped in the same unwind, Rust aborts the process. The captures
//! of a periodic closure outlive each call, so there even that is contained.

mod location;

use std::{
    any::Any,
    mem,
    ops::Deref,
    panic::{self, AssertUnwindSafe},
    task::Waker,
};

pub use self::location::PanicLocation;
pub(crate) use self::location::{contain_located, note_locations};
use crate::sync::{Arc, rank};

/// What a panic carries.
pub(crate) type Payload = Box<dyn Any + Send>;

/// Calls user code; a panic comes back as its payload.
///
/// Unwind safety is asserted, because nothing of what the closure could have broken is looked
/// at again: a one-shot closure is gone, a periodic one that panicked is dropped.
pub(crate) fn contain<R>(call: impl FnOnce() -> R) -> Result<R, Payload> {
    assert_no_lock_is_held();
    #[allow(clippy::disallowed_methods, reason = "this is the door")]
    panic::catch_unwind(AssertUnwindSafe(call))
}

#[inline]
fn assert_no_lock_is_held() {
    rank::assert_none_held("user code is about to run");
}

/// Drops user values; a panic goes no further.
#[inline]
pub(crate) fn discard<T>(value: T) {
    // Also for values that need no drop: another type in their place would.
    assert_no_lock_is_held();
    if !mem::needs_drop::<T>() {
        return;
    }
    if let Err(payload) = contain(|| drop(value)) {
        if let Err(worse) = contain(|| drop(payload)) {
            mem::forget(worse);
        }
    }
}

/// Drops user values; a panic goes to `lost`, and no further.
#[inline]
pub(crate) fn discard_with<T>(value: T, lost: impl FnOnce((Payload, Option<PanicLocation>))) {
    assert_no_lock_is_held();
    if !mem::needs_drop::<T>() {
        return;
    }
    if location::are_noted() {
        discard_located(value, lost);
    } else if let Err(payload) = contain(|| drop(value)) {
        lost((payload, None));
    }
}

#[inline(never)]
fn discard_located<T>(value: T, lost: impl FnOnce((Payload, Option<PanicLocation>))) {
    if let Err(panic) = contain_located(|| drop(value)) {
        lost(panic);
    }
}

/// A value whose drop is user code: when this is dropped, a panic of the value goes no
/// further.
pub(crate) struct Contained<T>(Option<T>);

/// A piece of the user's code that several hold. Whoever is the last to let go of it drops it.
pub(crate) type Callback<F> = Contained<Arc<F>>;

impl<T> Contained<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(Some(value))
    }

    /// The value, for a drop that has somebody to report a panic to. Nothing may use this any more.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<T> {
        self.0.take()
    }
}

impl<T: Clone> Clone for Contained<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Deref for Contained<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        match &self.0 {
            Some(value) => value,
            None => unreachable!("the value is there until the drop"),
        }
    }
}

impl<T> Drop for Contained<T> {
    #[inline]
    fn drop(&mut self) {
        if let Some(value) = self.0.take() {
            discard(value);
        }
    }
}

/// Wakes whoever waits; a waker that panics does not keep the others from being woken.
pub(crate) fn wake_all(wakers: impl IntoIterator<Item = Waker>) {
    for waker in wakers {
        if let Err(payload) = contain(|| waker.wake()) {
            discard(payload);
        }
    }
}

/// The payload of a failure of which everyone who wants to know has been told.
pub(crate) struct AlreadyTold(pub(crate) String);

/// The text of a panic, if it has one.
pub(crate) fn message_of(payload: &(dyn Any + Send)) -> &str {
    if let Some(text) = payload.downcast_ref::<&'static str>() {
        text
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text
    } else if let Some(AlreadyTold(text)) = payload.downcast_ref() {
        text
    } else {
        "a panic without a message"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Panics when it is dropped, with something that does the same.
    struct Bomb(u32);

    impl Drop for Bomb {
        fn drop(&mut self) {
            if self.0 > 0 {
                panic::panic_any(Bomb(self.0 - 1));
            }
        }
    }

    /// F5: however deep the payloads are that panic in their drops.
    #[test]
    fn a_payload_that_panics_when_dropped_is_contained() {
        discard(Bomb(1));
        discard(Bomb(2));
        discard(Bomb(3));
    }

    #[test]
    fn a_panic_comes_back_as_its_payload() {
        let payload = contain(|| panic::panic_any(7_i32)).expect_err("it panics");
        assert_eq!(payload.downcast_ref::<i32>(), Some(&7));
        assert_eq!(message_of(&*payload), "a panic without a message");
    }

    /// F12: in debug builds no user code is called or dropped under a lock.
    #[test]
    #[cfg(debug_assertions)]
    fn the_door_notices_a_held_lock() {
        let lock: crate::sync::Mutex<()> = crate::sync::Mutex::new(());
        #[allow(clippy::disallowed_methods, reason = "a thread of the test's own")]
        let outcome = std::thread::spawn(move || {
            let _guard = lock.lock();
            discard(());
        })
        .join();
        assert!(outcome.is_err());
    }
}
