//! The interface of a delay queue: the minimum with which all of them can be driven alike. The
//! elements are numbers of 8 bytes.

use std::time::Duration;

/// A delay queue, as one thread uses it.
pub(super) trait Queue {
    /// Names an element, to remove it.
    type Key;

    /// An element that expires after `delay`.
    fn insert(&mut self, delay: Duration, element: u64) -> Self::Key;

    /// Takes an element out without waiting; all have expired. `None` if there is no element.
    fn take_expired(&mut self) -> Option<u64>;

    /// Removes the element with this key, which has not expired.
    fn remove(&mut self, key: Self::Key) -> u64;
}

/// How to create a delay queue. Queues with a single owner need not pay for being shared in
/// measurements with one thread.
pub(super) trait DelayPeer {
    type Own: Queue;
    type Shared: Sync;
    type Handle<'a>: Queue;

    /// A queue for this thread alone.
    fn own() -> Self::Own;

    /// A queue for several threads.
    fn shared() -> Self::Shared;

    /// The shared queue, for the thread that calls.
    fn handle(shared: &Self::Shared) -> Self::Handle<'_>;
}
