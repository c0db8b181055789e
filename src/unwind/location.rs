//! Where a panic began.
//!
//! A payload does not contain its location; only the process's panic hook learns it, when a panic
//! begins. And nothing says which of these panics comes out of a call: one may have been caught
//! inside, or have begun and ended in a drop while another unwound, and the one that comes out may
//! have been resumed and not begun here at all. So the hook records, for a thread that is in such a
//! call, each panic that begins, by type, message and location; and the panic that comes out is
//! looked up among them.
//!
//! There is no hook until somebody needs it: the first executor that is built with a panic handler
//! puts one before the process's own, which is called as before.

use std::{
    any::{Any, TypeId},
    cell::Cell,
    fmt,
    panic::{self, Location},
    sync::Once,
};

use super::{Payload, contain, message_of};
use crate::sync::{
    process::{AtomicBool, Ordering},
    thread_local,
};

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

    /// Returns the source file, as the compiler was given it.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Returns the line, from 1.
    #[must_use]
    pub fn line(&self) -> u32 {
        self.line
    }

    /// Returns the column, from 1.
    #[must_use]
    pub fn column(&self) -> u32 {
        self.column
    }
}

impl fmt::Display for PanicLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// True if locations are recorded.
static NOTES_LOCATIONS: AtomicBool = AtomicBool::new(false);

/// A panic that has begun in a call of [`contain_located`], by what identifies it.
struct Begun {
    payload: TypeId,
    message: Box<str>,
    location: PanicLocation,
}

/// How many panics of one call are kept; the oldest goes first.
const MOST_BEGUN: usize = 8;

thread_local! {
    /// The panics that have begun in the innermost call of [`contain_located`], if there is one.
    static BEGUN: Cell<Option<Vec<Begun>>> = const { Cell::new(None) };
}

/// Starts to record the location of every panic. Only the process's panic hook learns it, so this
/// puts one more before the one that is there, which is called as before. Does nothing on a thread
/// that is panicking, where the hook cannot be changed.
pub(crate) fn note_locations() {
    static HOOKED: Once = Once::new();
    if std::thread::panicking() {
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
        // Relaxed: orders no other access.
        NOTES_LOCATIONS.store(true, Ordering::Relaxed);
    });
}

/// Returns `true` if locations are recorded.
#[inline]
pub(super) fn are_noted() -> bool {
    // Relaxed: orders no other access.
    NOTES_LOCATIONS.load(Ordering::Relaxed)
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

/// As [`contain`], and also returns where the panic began, if that is known.
pub(crate) fn contain_located<R>(
    call: impl FnOnce() -> R,
) -> Result<R, (Payload, Option<PanicLocation>)> {
    if !are_noted() {
        return contain(call).map_err(|payload| (payload, None));
    }
    // Saved and restored: this may be a call inside a call.
    let outer = replace_begun(Some(Vec::new()));
    let result = contain(call);
    let begun = replace_begun(outer);
    result.map_err(|payload| located(payload, begun))
}

/// Compiled once, and not for every type of call.
fn replace_begun(begun: Option<Vec<Begun>>) -> Option<Vec<Begun>> {
    BEGUN.try_with(|noted| noted.replace(begun)).ok().flatten()
}

#[cold]
fn located(payload: Payload, begun: Option<Vec<Begun>>) -> (Payload, Option<PanicLocation>) {
    let location = location_of(&*payload, begun.unwrap_or_default());
    (payload, location)
}

/// Returns where the last of these panics began that may be this one.
fn location_of(payload: &(dyn Any + Send), begun: Vec<Begun>) -> Option<PanicLocation> {
    let (kind, message) = (payload.type_id(), message_of(payload));
    let is_it = |one: &Begun| one.payload == kind && *one.message == *message;
    begun.into_iter().rev().find(is_it).map(|one| one.location)
}
