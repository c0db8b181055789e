//! What is asked of a delay queue: the least with which all can be driven alike. The elements are
//! numbers of 8 bytes.

use std::time::Duration;

/// A delay queue, as one thread has it in hand.
pub(super) trait Queue {
    /// Names an element, to remove it.
    type Key;

    /// An element that expires after `delay`.
    fn insert(&mut self, delay: Duration, element: u64) -> Self::Key;

    /// Takes an element out, without waiting for its time; that of all has come. `None` if there
    /// is no element.
    fn take_expired(&mut self) -> Option<u64>;

    /// Takes out the element with this key, whose time has not come.
    fn remove(&mut self, key: Self::Key) -> u64;
}

/// How a delay queue comes about. Those that have one owner need not pay for being shared where
/// they are not.
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
