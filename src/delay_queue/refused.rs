//! The errors of elements that were not inserted.

use std::{error::Error, fmt};

use crate::queue::{self, Refusal};

/// The reason why a [`DelayQueue`](super::DelayQueue) refused an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InsertError {
    /// The queue was closed.
    Closed,
    /// The queue has no room, because two billion elements are in it.
    Full,
}

impl fmt::Display for InsertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "the delay queue is closed and admits no more elements",
            Self::Full => "the delay queue is full; remove some of its two billion elements",
        })
    }
}

impl Error for InsertError {}

impl From<Refusal> for InsertError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Closed => Self::Closed,
            Refusal::Full => Self::Full,
        }
    }
}

/// The error of an insertion that a [`DelayQueue`](super::DelayQueue) refused. It holds the reason,
/// and the element, or all the elements that were to be inserted together.
///
/// `?` turns it into a `Box<dyn Error + Send + Sync>` if the element is `Send`, `Sync` and
/// `'static`. [`into_error`](Self::into_error) returns an error that can always be converted.
pub struct Refused<T> {
    pub(super) error: InsertError,
    pub(super) element: T,
}

impl<T> Refused<T> {
    /// Returns the reason why the insertion was refused.
    #[must_use]
    pub fn error(&self) -> InsertError {
        self.error
    }

    /// Returns what was to be inserted. Discards the reason.
    #[must_use]
    pub fn into_element(self) -> T {
        self.element
    }

    /// Returns the reason alone, and drops the element.
    #[must_use]
    pub fn into_error(self) -> InsertError {
        self.error
    }
}

impl<T> From<queue::Refused<T>> for Refused<T> {
    fn from(refused: queue::Refused<T>) -> Self {
        Self { error: refused.why.into(), element: refused.element }
    }
}

impl<T> fmt::Debug for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refused").field("error", &self.error).finish_non_exhaustive()
    }
}

impl<T> fmt::Display for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<T> Error for Refused<T> {}
