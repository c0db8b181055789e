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
//! passes it on ([`Room::give_up`]). And he may have woken for another reason, his time being up,
//! and got a place that somebody else was woken for; then he is off the list, so that no later
//! place is announced to him. So no free place is forgotten while somebody waits.
//!
//! At a shutdown the room is closed when the queue has been. From then on everybody may enter: it
//! is the queue that refuses, and says why.

use std::task::Waker;

use crate::{
    sync::{Mutex, Parker},
    time::{Clock, Timestamp},
    unwind::{discard, wake_all},
    wait::{self, WaitList},
};

/// See the [module](self).
pub(super) struct Capacity {
    bound: usize,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    taken: usize,
    is_closed: bool,
    waiters: WaitList,
}

impl Inner {
    fn enter(&mut self, bound: usize) -> bool {
        let may_enter = self.is_closed || self.taken < bound;
        self.taken += usize::from(may_enter);
        may_enter
    }
}

impl Capacity {
    pub(super) fn new(bound: usize) -> Self {
        Self { bound, inner: Mutex::default() }
    }

    /// Takes a place, if there is one, or the room is closed.
    pub(super) fn enter(&self) -> bool {
        self.inner.lock().enter(self.bound)
    }

    /// Takes a place in any case.
    pub(super) fn return_to(&self) {
        self.inner.lock().taken += 1;
    }

    /// Waits until it can [enter](Self::enter). Whether it did before the deadline.
    pub(super) fn enter_before(&self, clock: &Clock, deadline: Timestamp) -> bool {
        let entered = wait::block_until(clock, deadline, |waker| self.poll(waker));
        if entered.is_none() {
            self.give_up(Parker::current().waker());
        }
        entered.is_some()
    }

    /// The poll of [`wait`]: an answer once the caller has entered.
    fn poll(&self, waker: &Waker) -> Option<()> {
        let own = waker.clone();
        let mut inner = self.inner.lock();
        let has_entered = inner.enter(self.bound);
        let unused = if has_entered {
            (inner.waiters.deregister(waker), Some(own))
        } else {
            (inner.waiters.register(own), None)
        };
        drop(inner);
        discard(unused);
        has_entered.then_some(())
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
