//! The types for a single element: its key, the forms in which it leaves the queue, the traits that give its deadline
//! and permit its inspection, and the error that hands back a refused element.

use std::{
    error::Error,
    fmt,
    hash::{Hash, Hasher},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6},
    num::NonZero,
    rc::{self, Rc},
    sync::{self, Arc},
    thread::ThreadId,
    time::{Duration, Instant, SystemTime},
    vec,
};

use crate::{
    entry::Ticket,
    queue::{InsertError, RefusedElement},
    time::{Clock, Timestamp},
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

    /// Returns the ticket; `None` if the key belongs to another queue.
    pub(super) fn ticket_in(self, queue: u64) -> Option<Ticket> {
        (self.queue == queue).then_some(self.ticket)
    }

    /// Returns the queue's number and the sequence number, which identify the key. The slot does not count: a key made
    /// after its element has left the queue has none.
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
    /// The key that the element had, to be compared with others. It finds nothing in the queue any more.
    pub key: Key,
    /// When it expired.
    pub deadline: Instant,
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

/// An element that has a deadline of its own. Java: `Delayed`.
///
/// The queue reads the deadline once, when the element is [put](super::DelayQueue::put) in. A
/// deadline that the element returns later makes no difference; [`reset`](super::DelayQueue::reset)
/// changes it. In Java a delay that changes while the element is queued silently breaks the order.
///
/// [`put`](super::DelayQueue::put) has an example.
pub trait Delayed {
    /// Returns when the element expires, or `None` if it never does.
    fn deadline(&self) -> Option<Instant>;
}

macro_rules! delayed {
    ($($pointer:ty)*) => {$(
        impl<T: Delayed + ?Sized> Delayed for $pointer {
            fn deadline(&self) -> Option<Instant> {
                (**self).deadline()
            }
        }
    )*};
}

delayed! { &T Box<T> Rc<T> Arc<T> }

/// When an element expires: after a `Duration`, at an `Instant`, or never, for `None` of either.
pub trait When: sealed::When {}

impl<W: sealed::When> When for W {}

#[allow(private_bounds, private_interfaces, reason = "only this crate can call it")]
mod sealed {
    use super::{Clock, Duration, Instant, Timestamp};

    pub trait When {
        #[doc(hidden)]
        fn deadline(self, clock: &Clock, now: impl FnOnce() -> Timestamp) -> Timestamp;
    }

    impl When for Duration {
        #[inline]
        fn deadline(self, _: &Clock, now: impl FnOnce() -> Timestamp) -> Timestamp {
            now().after(self)
        }
    }

    impl When for Instant {
        #[inline]
        fn deadline(self, clock: &Clock, _: impl FnOnce() -> Timestamp) -> Timestamp {
            clock.deadline_of(Some(self))
        }
    }

    impl<W: When> When for Option<W> {
        fn deadline(self, clock: &Clock, now: impl FnOnce() -> Timestamp) -> Timestamp {
            self.map_or(Timestamp::NEVER, |when| when.deadline(clock, now))
        }
    }
}

/// A type whose `clone` is like copying a number: it does not block, does not panic, and does not use the queue.
/// Elements of such a type can be [inspected](super::DelayQueue::peek) while they are in the queue.
///
/// Numbers, references, `Arc`, addresses and times are such types, and so are compounds of these. Elements of other
/// types can be queued in an `Arc`, and a small type of your own can implement the trait:
///
/// ```
/// use punctual::delay_queue::CheapClone;
///
/// #[derive(Clone, Copy)]
/// struct OrderNumber(u64);
///
/// impl CheapClone for OrderNumber {}
/// ```
///
/// If a type breaks the promise, all users of the queue wait for its `clone`, and the queue deadlocks if that `clone`
/// uses it.
#[diagnostic::on_unimplemented(
    message = "elements of type `{Self}` cannot be looked at while they are in the queue",
    note = "cloning one would be user code under the queue's lock; queue `Arc<{Self}>`, or write `impl CheapClone for {Self} {{}}` if a clone is as cheap as that of a number"
)]
pub trait CheapClone: Clone {}

macro_rules! cheap {
    ($($type:ty)*) => { $(impl CheapClone for $type {})* };
}

cheap! {
    () bool char f32 f64
    u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize
    NonZero<u8> NonZero<u16> NonZero<u32> NonZero<u64> NonZero<u128> NonZero<usize>
    NonZero<i8> NonZero<i16> NonZero<i32> NonZero<i64> NonZero<i128> NonZero<isize>
    Duration Instant SystemTime ThreadId Key
    IpAddr Ipv4Addr Ipv6Addr SocketAddr SocketAddrV4 SocketAddrV6
}

impl<T: ?Sized> CheapClone for &T {}
impl<T: ?Sized> CheapClone for Arc<T> {}
impl<T: ?Sized> CheapClone for sync::Weak<T> {}
impl<T: ?Sized> CheapClone for Rc<T> {}
impl<T: ?Sized> CheapClone for rc::Weak<T> {}
impl<T: CheapClone> CheapClone for Option<T> {}
impl<T: CheapClone, const N: usize> CheapClone for [T; N] {}
impl<A: CheapClone, B: CheapClone> CheapClone for (A, B) {}
impl<A: CheapClone, B: CheapClone, C: CheapClone> CheapClone for (A, B, C) {}
impl<A: CheapClone, B: CheapClone, C: CheapClone, D: CheapClone> CheapClone for (A, B, C, D) {}

/// An iterator over a snapshot of a queue, in order. See [`DelayQueue::iter`](super::DelayQueue::iter).
pub type Iter<T> = vec::IntoIter<Queued<T>>;

impl fmt::Display for InsertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "the delay queue is closed and admits no more elements",
            Self::Full => "the delay queue is full, with a billion elements; take some of them",
        })
    }
}

impl Error for InsertError {}

/// The error of an insertion that a [`DelayQueue`](super::DelayQueue) refused. It holds the reason,
/// and the element, or all the elements that were to be inserted together.
///
/// `?` turns it into a `Box<dyn Error + Send + Sync>` if the element is `Send`, `Sync` and
/// `'static`. [`error`](Self::error) returns an error that can always be converted.
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

    /// Returns the element that was to be inserted. Discards the reason.
    #[must_use]
    pub fn into_element(self) -> T {
        self.element
    }
}

impl<T> From<RefusedElement<T>> for Refused<T> {
    fn from(refused: RefusedElement<T>) -> Self {
        Self { error: refused.why, element: refused.element }
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
