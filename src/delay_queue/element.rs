//! What goes into the queue and what comes out: keys, elements with their key and deadline, elements
//! that have a deadline of their own, and the errors of those that were not inserted. Such an error
//! holds what was refused, so an insertion that fails loses nothing.

use std::{
    error::Error,
    fmt,
    hash::{Hash, Hasher},
    rc::Rc,
    sync::Arc,
    time::Instant,
};

use crate::{
    entry::Ticket,
    queue::{self, Refusal},
};

/// Identifies one element for as long as it is in its [`DelayQueue`](super::DelayQueue).
///
/// A key is never used twice. The key of an element that has left, or is in another queue, finds
/// nothing, and never another element.
#[derive(Clone, Copy)]
pub struct Key {
    queue: u64,
    ticket: Ticket,
}

impl Key {
    pub(super) fn new(queue: u64, ticket: Ticket) -> Self {
        Self { queue, ticket }
    }

    /// Returns the key of an element that has left, which equals the one it had.
    pub(super) fn of_sequence(queue: u64, sequence: u64) -> Self {
        Self { queue, ticket: Ticket::without_slot(sequence) }
    }

    /// Returns the ticket if the key is one of the queue with this id.
    pub(super) fn ticket_in(self, queue: u64) -> Option<Ticket> {
        (self.queue == queue).then_some(self.ticket)
    }

    /// What distinguishes the key from all others. The place of the element is not part of it.
    fn identity(&self) -> (u64, u64) {
        (self.queue, self.ticket.sequence)
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (queue, sequence) = self.identity();
        write!(f, "Key({queue}:{sequence})")
    }
}

/// An element that has expired and was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Expired<T> {
    /// The element.
    pub element: T,
    /// The key that the element had, to be compared with others. It finds nothing in the queue any
    /// more, unless a sink of [`drain_to`](super::DelayQueue::drain_to) refuses the element.
    pub key: Key,
    /// When it expired.
    pub deadline: Instant,
}

impl<T> Expired<T> {
    /// Returns the element alone.
    #[must_use]
    pub fn into_element(self) -> T {
        self.element
    }
}

/// An element that was in the queue, expired or not, when it was inspected or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Queued<T> {
    /// The element, or a clone of it.
    pub element: T,
    /// The key of the element.
    pub key: Key,
    /// When it expires, or has expired; `None` if it never does.
    pub deadline: Option<Instant>,
}

impl<T> Queued<T> {
    /// Returns the element alone.
    #[must_use]
    pub fn into_element(self) -> T {
        self.element
    }
}

/// An element that has a deadline of its own. Java: `Delayed`.
///
/// The queue reads the deadline once, when the element is [put](super::DelayQueue::put) in. A
/// deadline that the element returns later makes no difference; [`reset`](super::DelayQueue::reset)
/// changes it. In Java a delay that changes while the element is queued silently breaks the order.
///
/// [`put`](super::DelayQueue::put) has an example.
pub trait Delayed {
    /// Returns when it expires, or `None` if it never does.
    fn deadline(&self) -> Option<Instant>;
}

impl<T: Delayed + ?Sized> Delayed for &T {
    fn deadline(&self) -> Option<Instant> {
        (**self).deadline()
    }
}

impl<T: Delayed + ?Sized> Delayed for Box<T> {
    fn deadline(&self) -> Option<Instant> {
        (**self).deadline()
    }
}

impl<T: Delayed + ?Sized> Delayed for Rc<T> {
    fn deadline(&self) -> Option<Instant> {
        (**self).deadline()
    }
}

impl<T: Delayed + ?Sized> Delayed for Arc<T> {
    fn deadline(&self) -> Option<Instant> {
        (**self).deadline()
    }
}

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
///
/// [`close`](super::DelayQueue::close) has an example.
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

impl<T> From<queue::RefusedElement<T>> for Refused<T> {
    fn from(refused: queue::RefusedElement<T>) -> Self {
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
