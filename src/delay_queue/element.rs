//! What goes in and what comes out: keys, elements with their deadlines, elements that have one
//! of their own.

use std::{
    fmt,
    hash::{Hash, Hasher},
    rc::Rc,
    sync::Arc,
    time::Instant,
};

use crate::queue::Ticket;

/// Names one element for as long as it is in its [`DelayQueue`](super::DelayQueue).
///
/// A key is never used twice. That of an element which is gone, or is in another queue, finds
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

    /// The key of an element that is gone: equal to the one it had.
    pub(super) fn of_sequence(queue: u64, sequence: u64) -> Self {
        Self { queue, ticket: Ticket { slot: u32::MAX, sequence } }
    }

    /// What it stands for in the queue with this number.
    pub(super) fn ticket_in(self, queue: u64) -> Option<Ticket> {
        (self.queue == queue).then_some(self.ticket)
    }

    /// What makes it the only one; where the element is, is not part of it.
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
    /// The key it had, to be compared. The queue does not know it any more, unless a sink of
    /// [`drain_to`](super::DelayQueue::drain_to) refuses the element.
    pub key: Key,
    /// When it expired.
    pub deadline: Instant,
}

impl<T> Expired<T> {
    /// The element alone.
    #[must_use]
    pub fn into_element(self) -> T {
        self.element
    }
}

/// An element that was in the queue, expired or not, when somebody looked or removed it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Queued<T> {
    /// The element, or a clone of it.
    pub element: T,
    /// Its key.
    pub key: Key,
    /// When it expires, or has expired; `None` for never.
    pub deadline: Option<Instant>,
}

impl<T> Queued<T> {
    /// The element alone.
    #[must_use]
    pub fn into_element(self) -> T {
        self.element
    }
}

/// An element that has a deadline of its own. Java: `Delayed`.
///
/// The queue asks for it once, when the element is [put](super::DelayQueue::put) in. What the
/// element says later makes no difference; to change the deadline there is
/// [`reset`](super::DelayQueue::reset). In Java a delay that changes while the element is queued
/// breaks the order without a word.
pub trait Delayed {
    /// When it expires; `None` for never.
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
