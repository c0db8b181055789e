//! Which elements can be inspected while they are in the queue.
//!
//! Another thread may take an element at any time, so a caller that inspects one gets a clone, which
//! is made while the queue is locked. Cloning is user code, and this crate runs none under a lock:
//! it could panic, take long, or use this very queue. Cloning a number, an `Arc` and the like does
//! none of that, and a type promises so by implementing this trait.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6},
    num::NonZero,
    rc,
    sync::{self, Arc},
    thread::ThreadId,
    time::{Duration, Instant, SystemTime},
};

use super::Key;

/// A type whose `clone` is like copying a number: it does not block, does not panic, and does not use
/// the queue. Elements of such a type can be [inspected](super::DelayQueue::peek) while they are
/// in the queue.
///
/// Numbers, references, `Arc`, addresses and times are such types, and compounds of these. Elements
/// of other types can be queued in an `Arc`, and a small type of your own can implement the trait:
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
/// If a type breaks the promise, all users of the queue wait for its `clone`, and the queue deadlocks
/// if that uses the queue.
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
impl<T: ?Sized> CheapClone for rc::Rc<T> {}
impl<T: ?Sized> CheapClone for rc::Weak<T> {}
impl<T: CheapClone> CheapClone for Option<T> {}
impl<T: CheapClone, const N: usize> CheapClone for [T; N] {}
impl<A: CheapClone, B: CheapClone> CheapClone for (A, B) {}
impl<A: CheapClone, B: CheapClone, C: CheapClone> CheapClone for (A, B, C) {}
impl<A: CheapClone, B: CheapClone, C: CheapClone, D: CheapClone> CheapClone for (A, B, C, D) {}
