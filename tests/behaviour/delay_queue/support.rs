//! Helpers for the tests of the delay queue: queues on a clock that stands still, threads that are
//! known to sleep, futures that are polled by hand, and elements that act when they are dropped.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use punctual::{
    DelayQueue, ManualClock,
    delay_queue::{CheapClone, Expired, NextExpired},
};

use crate::support::eventually;

/// Longer than any test, on either clock.
pub const DAY: Duration = Duration::from_secs(86_400);

/// A queue on a clock that stands still.
pub fn queue_by_hand<T>() -> (ManualClock, Arc<DelayQueue<T>>) {
    let clock = ManualClock::new();
    (clock.clone(), Arc::new(DelayQueue::with_clock(clock)))
}

/// Waits until the nearest moment for which a thread sleeps, or a task has set an alarm, is this
/// far away. A thread that is about to sleep is not yet on the clock's list, and one whose alarm
/// has gone off but which has not run yet shows its earlier deadline; so a test waits for a new
/// one.
pub fn until_asleep(clock: &ManualClock, span: Duration) {
    eventually("somebody sleeps for that moment", || clock.next_deadline() == Some(span));
}

/// Inserts these one after the other, each expiring at once.
pub fn fill<T: fmt::Debug>(queue: &DelayQueue<T>, elements: impl IntoIterator<Item = T>) {
    for element in elements {
        queue.insert(Duration::ZERO, element).expect("the queue is open");
    }
}

/// The element of what was taken.
pub fn element<T>(taken: Option<Expired<T>>) -> Option<T> {
    taken.map(|expired| expired.element)
}

/// Takes all expired elements.
pub fn drained<T>(queue: &DelayQueue<T>) -> Vec<T> {
    queue.drain().map(|expired| expired.element).collect()
}

/// The elements in the queue, in order.
pub fn listed<T: CheapClone>(queue: &DelayQueue<T>) -> Vec<T> {
    queue.iter().map(|queued| queued.element).collect()
}

/// Polls once, as a runtime would that is woken through `waker`, and returns only the element.
pub fn poll<T, W>(next: &mut NextExpired<'_, T>, waker: &Arc<W>) -> Poll<Option<T>>
where
    W: Wake + Send + Sync + 'static,
{
    let waker = Waker::from(Arc::clone(waker));
    Pin::new(next).poll(&mut Context::from_waker(&waker)).map(element)
}

/// An element that acts when it is dropped.
pub struct OnDrop<F: FnMut()>(pub F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

impl<F: FnMut()> fmt::Debug for OnDrop<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnDrop")
    }
}

/// Pseudo-random numbers, the same in each run.
pub struct Dice(pub u64);

impl Dice {
    /// A number below this one.
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % sides
    }
}
