//! Capacity: the bound on how many tasks may be pending, and the submitters that wait for it.
//!
//! A pool has one only if the builder was given a bound. An exact bound costs every submission and
//! every take a lock that all of them share.
//!
//! A submission acquires a permit before it offers the task to the queue. The permit is released
//! when the task is taken out of the queue, to run or to be dropped. A periodic task that has run
//! comes back in any case, even if that is one too many ([`force_acquire`]): if it were refused, it
//! would be lost for being late.
//!
//! # Why no permit is left unused while a submitter waits
//!
//! Each released permit wakes one waiter. A waiter whose time ran out concurrently forwards the
//! wake-up ([`cancel_wait`]). A waiter may also wake for another reason and acquire a permit that
//! somebody else was woken for; it is taken off the list then, so no later permit is announced to
//! it.
//!
//! # Shutdown
//!
//! Once the queue is closed there is no bound: every submitter may acquire, and it is the queue
//! that refuses the task and says why. Whether the queue is closed is asked of the queue, under the
//! lock of this module (`is_closed`, an atomic read), and is not stored here. The closer closes the
//! queue first and calls [`wake_all`](Capacity::wake_all) then. So a waiter that looked before that
//! is on the list and is woken, and one that looks afterwards finds the queue closed.
//!
//! [`force_acquire`]: Capacity::force_acquire
//! [`cancel_wait`]: Capacity::cancel_wait

use std::task::Waker;

use crate::{
    sync::{Mutex, Parker},
    time::{Clock, Timestamp},
    unwind::{self, discard},
    wait::{self, WaitList},
};

/// See the [module](self).
pub(super) struct Capacity {
    bound: usize,
    usage: Mutex<Usage>,
}

#[derive(Default)]
struct Usage {
    acquired: usize,
    waiters: WaitList,
}

impl Usage {
    fn try_acquire(&mut self, bound: usize, is_closed: impl FnOnce() -> bool) -> bool {
        let is_granted = self.acquired < bound || is_closed();
        self.acquired += usize::from(is_granted);
        is_granted
    }
}

impl Capacity {
    pub(super) fn new(bound: usize) -> Self {
        Self { bound, usage: Mutex::default() }
    }

    pub(super) fn bound(&self) -> usize {
        self.bound
    }

    /// Acquires a permit if one is left, or if the queue is closed.
    pub(super) fn try_acquire(&self, is_closed: impl FnOnce() -> bool) -> bool {
        self.usage.lock().try_acquire(self.bound, is_closed)
    }

    /// Acquires a permit even if that is one too many.
    pub(super) fn force_acquire(&self) {
        self.usage.lock().acquired += 1;
    }

    /// Blocks until it can [acquire](Self::try_acquire) a permit. Returns `true` if it did so
    /// before the deadline.
    pub(super) fn acquire_before(
        &self,
        clock: &Clock,
        deadline: Timestamp,
        is_closed: impl Fn() -> bool,
    ) -> bool {
        let poll = |waker: &_| self.poll_acquire(waker, &is_closed);
        let acquired = wait::block_until(clock, deadline, poll);
        if acquired.is_none() {
            self.cancel_wait(Parker::current().waker());
        }
        acquired.is_some()
    }

    /// The poll of [`wait`]: returns an answer once the caller has a permit.
    fn poll_acquire(&self, waker: &Waker, is_closed: impl FnOnce() -> bool) -> Option<()> {
        let own = waker.clone();
        let mut usage = self.usage.lock();
        let is_granted = usage.try_acquire(self.bound, is_closed);
        let unused = if is_granted {
            (usage.waiters.deregister(waker), Some(own))
        } else {
            (usage.waiters.register(own), None)
        };
        drop(usage);
        discard(unused);
        is_granted.then_some(())
    }

    /// Takes a waiter off the list that does not wait any longer.
    fn cancel_wait(&self, waker: &Waker) {
        let mut usage = self.usage.lock();
        let unused = usage.waiters.deregister(waker);
        // If it is off the list already, it was woken for a permit, which is free still.
        let next = if unused.is_none() { usage.waiters.take_one() } else { None };
        drop(usage);
        discard(unused);
        unwind::wake_all(next);
    }

    /// Releases a permit, and wakes a submitter that waits for one.
    pub(super) fn release(&self) {
        let mut usage = self.usage.lock();
        usage.acquired = usage.acquired.saturating_sub(1);
        let next = usage.waiters.take_one();
        drop(usage);
        unwind::wake_all(next);
    }

    /// Wakes all submitters that wait, after the queue has been closed.
    pub(super) fn wake_all(&self) {
        let waiters = self.usage.lock().waiters.take();
        unwind::wake_all(waiters);
    }
}
