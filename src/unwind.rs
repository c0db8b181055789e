//! The one door through which foreign code is called or dropped.
//!
//! A task's closure, its captures, its result, a panic's payload, a waker: all of it is the
//! user's code, and any of it may panic, block or call back into the crate. Three rules hold.
//!
//! 1. It goes through this module. There is no other `catch_unwind` in the crate.
//! 2. **No lock is held.** Debug builds assert it at the door.
//! 3. A panic becomes a value. Where nobody can be given the value it is dropped (the process's
//!    panic hook has reported it, as any panic), and dropping a payload is foreign code again: a
//!    payload that panics when it is dropped is dropped behind a second door, and what that one
//!    throws is leaked, because it could do so for ever.
//!
//! # The one panic that cannot be contained
//!
//! The captures of a one-shot closure are dropped by the call itself. If the body panics *and* a
//! capture panics while it is dropped in the same unwind, Rust aborts the process. The captures
//! of a periodic closure outlive each call, so there even that is contained.

use std::{
    any::{Any, TypeId},
    cell::Cell,
    fmt, mem,
    ops::Deref,
    panic::{self, AssertUnwindSafe, Location},
    sync::Once,
    task::Waker,
};

use crate::sync::{
    self,
    atomic::{AtomicBool, Ordering},
};

/// What a panic carries.
pub(crate) type Payload = Box<dyn Any + Send>;

/// Calls foreign code; a panic comes back as its payload.
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
    debug_assert_eq!(sync::locks_held(), 0, "foreign code is about to run under a lock");
}

/// Drops foreign values; a panic goes no further.
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

/// A value whose drop is foreign code: when this is dropped, a panic of the value goes no
/// further.
pub(crate) struct Contained<T>(Option<T>);

impl<T> Contained<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(Some(value))
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
        discard(self.0.take());
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

/// Where a panic began: file, line and column. Its `Display` is `file:line:column`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PanicLocation {
    file: Box<str>,
    line: u32,
    column: u32,
}

impl PanicLocation {
    fn of(location: &Location<'_>) -> Self {
        let (file, line, column) = (location.file().into(), location.line(), location.column());
        Self { file, line, column }
    }

    /// The source file, as the compiler was given it.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The line, from 1.
    pub fn line(&self) -> u32 {
        self.line
    }

    /// The column, from 1.
    pub fn column(&self) -> u32 {
        self.column
    }
}

impl fmt::Display for PanicLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// Whether locations are noted.
static NOTES_LOCATIONS: AtomicBool = AtomicBool::new(false);

/// A panic that has begun in a call whose panic's location is wanted, by what can be told of it.
struct Begun {
    payload: TypeId,
    message: Box<str>,
    location: PanicLocation,
}

/// Of so many panics in one call the locations are kept.
const MOST_BEGUN: usize = 8;

std::thread_local! {
    /// The panics that have begun in the innermost such call, if there is one.
    static BEGUN: Cell<Option<Vec<Begun>>> = const { Cell::new(None) };
}

/// From now on every panic's location is noted. Only the process's panic hook is told of it, so
/// this puts one more before the one that is there, which is called as before.
pub(crate) fn note_locations() {
    static HOOKED: Once = Once::new();
    if std::thread::panicking() {
        // The hook cannot be changed now.
        return;
    }
    HOOKED.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if let Some(location) = info.location() {
                note(info.payload(), location);
            }
            previous(info);
        }));
        // Ordering: nothing hangs on it.
        NOTES_LOCATIONS.store(true, Ordering::Relaxed);
    });
}

fn note(payload: &(dyn Any + Send), location: &Location<'_>) {
    let _ = BEGUN.try_with(|noted| {
        let Some(mut begun) = noted.take() else { return };
        if begun.len() == MOST_BEGUN {
            begun.remove(0);
        }
        begun.push(Begun {
            payload: payload.type_id(),
            message: message_of(payload).into(),
            location: PanicLocation::of(location),
        });
        noted.set(Some(begun));
    });
}

/// As [`contain`], and says where the panic began, if that is known.
///
/// The hook is told where a panic begins, and nobody is told which of them comes out here: one may
/// have been caught inside, or have begun and ended in a drop while another unwound, and what comes
/// out may have been resumed and not begun here at all. So the panics of the call are kept, and
/// what comes out is looked for among them, by its type and text.
pub(crate) fn contain_located<R>(
    call: impl FnOnce() -> R,
) -> Result<R, (Payload, Option<PanicLocation>)> {
    // Ordering: nothing hangs on it.
    if !NOTES_LOCATIONS.load(Ordering::Relaxed) {
        return contain(call).map_err(|payload| (payload, None));
    }
    // This may be a call inside a call.
    let outer = BEGUN.try_with(|noted| noted.replace(Some(Vec::new()))).ok().flatten();
    let result = contain(call);
    let begun = BEGUN.try_with(|noted| noted.replace(outer)).ok().flatten();
    result.map_err(|payload| {
        let location = location_of(&*payload, begun.unwrap_or_default());
        (payload, location)
    })
}

/// Where the last of these panics began that this can be.
fn location_of(payload: &(dyn Any + Send), begun: Vec<Begun>) -> Option<PanicLocation> {
    let (kind, message) = (payload.type_id(), message_of(payload));
    let is_it = |one: &Begun| one.payload == kind && *one.message == *message;
    begun.into_iter().rev().find(is_it).map(|one| one.location)
}

/// The text of a panic, if it has one.
pub(crate) fn message_of(payload: &(dyn Any + Send)) -> &str {
    if let Some(text) = payload.downcast_ref::<&'static str>() {
        text
    } else if let Some(text) = payload.downcast_ref::<String>() {
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

    #[test]
    #[cfg(debug_assertions)]
    fn the_door_notices_a_held_lock() {
        let lock = sync::Mutex::new(());
        #[allow(clippy::disallowed_methods, reason = "a thread of the test's own")]
        let outcome = std::thread::spawn(move || {
            let _guard = lock.lock();
            discard(());
        })
        .join();
        assert!(outcome.is_err());
    }
}
