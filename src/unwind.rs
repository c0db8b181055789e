//! Calling and dropping user code.
//!
//! User code (a task's closure, its captures, its result, the payload of a panic, a waker) may panic, block or call
//! back into the crate. Three rules hold.
//!
//! 1. Only this module calls or drops user code, except for code whose panic may reach the caller: for example a
//!    waker's clone, a rejection handler, a trigger during a submission, or a predicate that the caller passes.
//! 2. **A thread that calls or drops user code holds no lock.** Debug builds assert this rule here. Only the `clone` of
//!    a [`CheapClone`](crate::delay_queue::CheapClone) element is called under a lock.
//! 3. A panic becomes a payload, which is dropped if no caller can receive it. The panic hook has already reported the
//!    panic. Dropping a payload runs user code: if the drop panics, the second payload is leaked, which ends the chain.
//!
//! # The one panic that cannot be contained
//!
//! The call itself drops the captures of a one-shot closure. If the body panics *and* the drop of a capture panics
//! during the unwinding, Rust aborts the process. The captures of a periodic closure outlive each call, so a panic from
//! their drops is contained, even if the body has panicked.
//!
//! # Where a panic began
//!
//! Only the process's panic hook learns where a panic begins, but it does not learn which panic leaves the user's code:
//! that code may have caught others, or resumed one. So the hook records each panic that begins in a call to
//! [`contain_noted`]. That function then looks up the panic that it has caught. The first executor with an observer of
//! failures installs the hook ([`note_locations`]). The hook passes every panic on to the hook that it replaced.

use std::{
    any::{Any, TypeId},
    cell::Cell,
    fmt, mem,
    ops::{Deref, DerefMut},
    panic::{self, AssertUnwindSafe, Location},
    sync::Once,
    task::Waker,
};

use crate::sync::{
    Arc, Mutex,
    process::{AtomicBool, Ordering},
    rank, thread_local,
};

pub(crate) type PanicPayload = Box<dyn Any + Send>;

const CALLED: &str = "user code is about to run";

/// A panic that has been contained, and where it began, if that is known.
pub(crate) type Panic = (PanicPayload, Option<PanicLocation>);

/// Calls user code. Returns a panic as its payload.
///
/// Unwind safety is asserted: a one-shot closure is gone after the call, and a periodic one is dropped
/// after a panic, unless its user has decided otherwise with a `FailurePolicy`.
pub(crate) fn contain<R>(call: impl FnOnce() -> R) -> Result<R, PanicPayload> {
    rank::assert_none_held(CALLED);
    #[allow(clippy::disallowed_methods, reason = "this is the one place")]
    panic::catch_unwind(AssertUnwindSafe(call))
}

/// Drops a value, which may run user code. A panic goes no further.
#[inline]
pub(crate) fn discard<T>(value: T) {
    // Also for values that need no drop, because another type in their place may.
    rank::assert_none_held(CALLED);
    if mem::needs_drop::<T>() {
        contain(|| drop(value)).unwrap_or_else(discard_payload);
    }
}

/// Calls user code. A panic goes no further.
#[inline]
pub(crate) fn shield(call: impl FnOnce()) {
    contain(call).unwrap_or_else(discard_payload);
}

#[cold]
#[inline(never)]
fn discard_payload(payload: PanicPayload) {
    if let Err(worse) = contain(|| drop(payload)) {
        mem::forget(worse);
    }
}

/// Drops a value, which may run user code. A panic is passed to `lost`, and goes no further.
// Always inlined: a worker drops each task in this way, and mostly just decrements a reference count.
#[inline(always)]
pub(crate) fn discard_with<T>(value: T, lost: impl FnOnce(Panic)) {
    rank::assert_none_held(CALLED);
    if !mem::needs_drop::<T>() {
        return;
    }
    if are_locations_noted() {
        discard_noting(value, lost);
    } else if let Err(payload) = contain(|| drop(value)) {
        lost((payload, None));
    }
}

#[inline(never)]
fn discard_noting<T>(value: T, lost: impl FnOnce(Panic)) {
    let mut value = Some(value);
    contain_noted(&mut || drop(value.take())).unwrap_or_else(lost);
}

/// A value whose drop is user code. When this wrapper is dropped, a panic in the value's drop goes no further.
#[derive(Clone)]
pub(crate) struct Contained<T>(Option<T>);

/// User code that has several owners. The last of them drops it.
pub(crate) type Callback<F> = Contained<Arc<F>>;

impl<T> Contained<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(Some(value))
    }

    /// Takes the value out, so that a panic in its drop can be reported. The caller must not use `self` afterwards.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<T> {
        self.0.take()
    }

    // A function of its own, so that a drop after `take` is one comparison.
    #[inline(never)]
    fn discard(&mut self) {
        discard(self.0.take());
    }
}

impl<T> fmt::Debug for Contained<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("user code")
    }
}

impl<T> Deref for Contained<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        let Some(value) = &self.0 else { unreachable!("the value is there until the drop") };
        value
    }
}

impl<T> DerefMut for Contained<T> {
    fn deref_mut(&mut self) -> &mut T {
        let Some(value) = &mut self.0 else { unreachable!("the value is there until the drop") };
        value
    }
}

impl<T> Drop for Contained<T> {
    #[inline]
    fn drop(&mut self) {
        if self.0.is_some() {
            self.discard();
        }
    }
}

/// Returns `value` in an `Arc<T>`, or unchanged if it already is an `Arc<T>`, such as a handler read from an executor.
/// The caller names `T`, since inference would choose `V`.
pub(crate) fn share<T: ?Sized + 'static, V: 'static>(
    value: V,
    erase: impl FnOnce(V) -> Arc<T>,
) -> Arc<T> {
    let any: &dyn Any = &value;
    match any.downcast_ref::<Arc<T>>() {
        Some(shared) => Arc::clone(shared),
        None => erase(value),
    }
}

/// User code that can be replaced while an executor runs: a thread factory or a rejection handler.
pub(crate) struct Replaceable<T: ?Sized>(Mutex<Callback<T>>);

impl<T: ?Sized> Replaceable<T> {
    pub(crate) fn new(value: Callback<T>) -> Self {
        Self(Mutex::new(value))
    }

    pub(crate) fn get(&self) -> Arc<T> {
        Arc::clone(&self.0.lock())
    }

    /// Replaces the value. Threads that have read the earlier value may still be using it.
    pub(crate) fn set(&self, value: Arc<T>) {
        let value = Contained::new(value);
        // Dropped when the lock is released.
        let _before = mem::replace(&mut *self.0.lock(), value);
    }
}

/// Calls all of the wakers, even if one of them panics.
#[inline]
pub(crate) fn wake_all(wakers: impl IntoIterator<Item = Waker>) {
    wakers.into_iter().for_each(|waker| shield(|| waker.wake()));
}

/// Returns the message of a panic, or a stock phrase if the payload is not text.
#[inline(never)]
pub(crate) fn message_of(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&'static str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without a message")
}

/// Where a panic began: file, line and column. Its `Display` is `file:line:column`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PanicLocation {
    file: Box<str>,
    line: u32,
    column: u32,
}

impl PanicLocation {
    /// Returns the source file, as the compiler was given it.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Returns the line, from 1.
    pub fn line(&self) -> u32 {
        self.line
    }

    /// Returns the column, from 1.
    pub fn column(&self) -> u32 {
        self.column
    }
}

impl fmt::Display for PanicLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

static NOTES_LOCATIONS: AtomicBool = AtomicBool::new(false);

/// A panic that began in a call to [`contain_noted`]: the type of its payload, its message, and where it began.
type Begun = (TypeId, Box<str>, PanicLocation);

/// The largest number of panics recorded for one call. A further panic displaces the oldest.
const MOST_BEGUN: usize = 8;

thread_local! {
    /// The panics recorded so far in this thread's innermost call to [`contain_noted`]; `None` outside such a call.
    static BEGUN: Cell<Option<Vec<Begun>>> = const { Cell::new(None) };
}

/// Installs the hook that records where panics begin. Does nothing on a panicking thread, which cannot change hooks.
pub(crate) fn note_locations() {
    static HOOKED: Once = Once::new();
    if std::thread::panicking() {
        return;
    }
    HOOKED.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if let Some(location) = info.location() {
                note_panic(info.payload(), location);
            }
            previous(info);
        }));
        // Relaxed: orders no other access.
        NOTES_LOCATIONS.store(true, Ordering::Relaxed);
    });
}

#[inline]
fn are_locations_noted() -> bool {
    // Relaxed: orders no other access.
    NOTES_LOCATIONS.load(Ordering::Relaxed)
}

fn note_panic(payload: &(dyn Any + Send), location: &Location<'_>) {
    let _ = BEGUN.try_with(|noted| {
        let Some(mut begun) = noted.take() else { return };
        if begun.len() == MOST_BEGUN {
            begun.remove(0);
        }
        let (file, line, column) = (location.file().into(), location.line(), location.column());
        let location = PanicLocation { file, line, column };
        begun.push((payload.type_id(), message_of(payload).into(), location));
        noted.set(Some(begun));
    });
}

/// Like [`contain`], but also returns where the panic began, if that is known.
#[inline]
pub(crate) fn contain_located<R>(call: impl FnOnce() -> R) -> Result<R, Panic> {
    if !are_locations_noted() {
        return contain(call).map_err(|payload| (payload, None));
    }
    let (mut call, mut returned) = (Some(call), None);
    contain_noted(&mut || returned = call.take().map(|call| call()))?;
    let Some(returned) = returned else { unreachable!("it has not panicked") };
    Ok(returned)
}

#[cold]
fn contain_noted(call: &mut dyn FnMut()) -> Result<(), Panic> {
    let replace = |begun| BEGUN.try_with(|noted| noted.replace(begun)).ok().flatten();
    // Saved and restored: this may be a call inside a call.
    let outer = replace(Some(Vec::new()));
    let called = contain(call);
    let begun = replace(outer).unwrap_or_default();
    called.map_err(|payload| {
        let (kind, message) = ((*payload).type_id(), message_of(&*payload));
        let is_it = |(payload, text, _): &Begun| *payload == kind && **text == *message;
        // The last recorded panic that may be this one.
        let begun = begun.into_iter().rev().find(is_it);
        (payload, begun.map(|(_, _, location)| location))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Panics when it is dropped, unless its number is zero. The payload is a `Bomb` with the next lower number.
    struct Bomb(u32);

    impl Drop for Bomb {
        fn drop(&mut self) {
            if self.0 > 0 {
                panic::panic_any(Bomb(self.0 - 1));
            }
        }
    }

    /// F5: payloads that panic in their drops are contained, however deeply they are nested.
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

    /// F12, G29: a debug build panics if user code is called or dropped under a lock.
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
