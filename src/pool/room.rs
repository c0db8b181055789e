//! Room: the bound on how many tasks may wait, and who waits for room.
//!
//! There is one only if the builder was given a bound: an exact one costs every submission and
//! every taking a lock that all share.
//!
//! A task takes a place before it is offered to the queue, and leaves it when it is taken out to
//! run or to be dropped. A periodic task that has run comes back in any case, even if that is one
//! too many: refused, it would be lost for being late.
//!
//! Each place that becomes free wakes one who waits. He may have given up in that moment; then he
//! passes it on ([`Room::give_up`]), so no free place is forgotten while somebody waits.

use std::task::Waker;

use crate::{
    sync::{Mutex, Parker},
    time::{Clock, Deadline},
    unwind::{discard, wake_all},
    wait::{self, WaitList},
};

/// See the [module](self).
pub(super) struct Room {
    bound: usize,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    taken: usize,
    is_closed: bool,
    waiters: WaitList,
}

impl Room {
    pub(super) fn new(bound: usize) -> Self {
        Self { bound, inner: Mutex::default() }
    }

    /// Takes a place, if there is one.
    pub(super) fn enter(&self) -> bool {
        let mut inner = self.inner.lock();
        let has_place = inner.taken < self.bound;
        inner.taken += usize::from(has_place);
        has_place
    }

    /// Takes a place in any case.
    pub(super) fn return_to(&self) {
        self.inner.lock().taken += 1;
    }

    /// Waits for a place and takes it. Whether it got one before the deadline, or the end.
    pub(super) fn enter_before(&self, clock: &Clock, deadline: Deadline) -> bool {
        let entered = wait::block_until(clock, deadline, |waker| self.poll(waker));
        if entered.is_none() {
            self.give_up(Parker::current().waker());
        }
        entered.unwrap_or(false)
    }

    /// The poll of [`wait`]: whether there is a place for the caller, or never will be.
    fn poll(&self, waker: &Waker) -> Option<bool> {
        let waker = waker.clone();
        let mut inner = self.inner.lock();
        let (answer, unused) = if inner.is_closed {
            (Some(false), Some(waker))
        } else if inner.taken < self.bound {
            inner.taken += 1;
            (Some(true), Some(waker))
        } else {
            (None, inner.waiters.register(waker))
        };
        drop(inner);
        discard(unused);
        answer
    }

    /// One who waited does not wait any longer.
    fn give_up(&self, waker: &Waker) {
        let mut inner = self.inner.lock();
        let unused = inner.waiters.deregister(waker);
        // Not on the list: a place was meant for him.
        let next = if unused.is_none() { inner.waiters.take_one() } else { None };
        drop(inner);
        discard(unused);
        wake_all(next);
    }

    /// Leaves a place, to somebody who waits for one.
    pub(super) fn leave(&self) {
        let mut inner = self.inner.lock();
        inner.taken = inner.taken.saturating_sub(1);
        let next = inner.waiters.take_one();
        drop(inner);
        wake_all(next);
    }

    /// Nobody has to wait any longer.
    pub(super) fn close(&self) {
        let mut inner = self.inner.lock();
        inner.is_closed = true;
        let waiters = inner.waiters.take();
        drop(inner);
        wake_all(waiters);
    }
}
