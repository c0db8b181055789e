//! `punctual`: this project. Its queue is made for sharing, and one thread uses it as it is.

use std::{borrow::Borrow, time::Duration};

use punctual::{DelayQueue, delay_queue::Key};

use crate::measure::queue::{DelayPeer, Queue};

pub(in crate::measure) struct Punctual;

/// A queue, or a reference to one.
pub(in crate::measure) struct Held<Q>(Q);

impl<Q: Borrow<DelayQueue<u64>>> Queue for Held<Q> {
    type Key = Key;

    #[inline]
    fn insert(&mut self, delay: Duration, element: u64) -> Key {
        self.0.borrow().insert(delay, element).expect("it is open")
    }

    #[inline]
    fn take_expired(&mut self) -> Option<u64> {
        self.0.borrow().poll().map(|expired| expired.element)
    }

    #[inline]
    fn remove(&mut self, key: Key) -> u64 {
        self.0.borrow().remove(key).expect("it is in the queue")
    }
}

impl DelayPeer for Punctual {
    type Own = Held<DelayQueue<u64>>;
    type Shared = DelayQueue<u64>;
    type Handle<'a> = Held<&'a DelayQueue<u64>>;

    fn own() -> Self::Own {
        Held(DelayQueue::new())
    }

    fn shared() -> Self::Shared {
        DelayQueue::new()
    }

    fn handle(shared: &Self::Shared) -> Self::Handle<'_> {
        Held(shared)
    }
}
