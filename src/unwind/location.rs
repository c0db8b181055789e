//! Where a panic began.
//!
//! A payload does not say it; only the process's panic hook is told, when a panic begins. And
//! nobody is told which of them comes out of a call: one may have been caught inside, or have
//! begun and ended in a drop while another unwound, and what comes out may have been resumed and
//! not begun here at all. So the hook notes, for a thread that is in such a call, each panic that
//! begins, by type, text and place; and what comes out is looked for among them.
//!
//! There is no hook until somebody wants to know: the first executor that is built with a panic
//! handler puts one before the process's own, which is called as before.

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

    /// The source file, as the compiler was given it.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The line, from 1.
    #[must_use]
    pub fn line(&self) -> u32 {
        self.line
    }

    /// The column, from 1.
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

thread_local! {
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

/// Whether locations are noted.
#[inline]
pub(super) fn are_noted() -> bool {
    // Relaxed: it orders no other access.
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

/// As [`contain`], and says where the panic began, if that is known.
pub(crate) fn contain_located<R>(
    call: impl FnOnce() -> R,
) -> Result<R, (Payload, Option<PanicLocation>)> {
    if !are_noted() {
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
