//! Admission: how a task gets into the queue.
//!
//! ```text
//!   ensure_worker ──▶ admit ──▶ capacity ──▶ queue.offer ──▶ enough workers? ──▶ the ticket
//!                       ▲          │             │                 │ no
//!                       │          │             │                 ▼
//!                       │          ▼             ▼              rescue ──▶ the ticket
//!                     retry ◀── rejection ◀──────┴─────────────────┘
//! ```
//!
//! A submission first ensures that there is a worker ([`workers`](super::workers)), and then admits
//! the task: it acquires a permit of the [capacity](Capacity), if the pool is bounded, and offers the
//! task to the queue. A queued task therefore always has a worker that will come for it, and a task
//! for which no worker could be started was never queued.
//!
//! # Where admission meets shutdown
//!
//! At the lock of a stripe of the queue, and nowhere else. If the submission gets that lock before
//! the shutdown does, the task is admitted and the shutdown sees it; otherwise the queue refuses it.
//! The bound does not refuse for a shutdown: it lets everybody pass once the queue is closed. A
//! task can still be refused with [`Saturated`](RejectionReason::Saturated) while the queue
//! is being closed, since the bound is asked before that, and an admitted task can be taken back
//! by a rescue, as follows.
//!
//! # Rescue
//!
//! Between `ensure_worker` and the offer, workers may have retired or begun other tasks. So the
//! submission looks again once the task is queued. If there are fewer workers than wanted, it
//! starts one; if there is none at all and none can be started, it takes the task out again and
//! reports the error. The head of [`workers`](super::workers) has the argument why either the
//! submission or the retiring worker sees the other.
//!
//! # Capacity
//!
//! [`Capacity`] is the bound on how many tasks may be pending, and the submitters that wait for it. A
//! pool has one only if the builder was given a bound. An exact bound costs every submission and
//! every take a lock that all of them share.
//!
//! The permit of a task is released when the task is taken out of the queue, to run or to be
//! dropped. A periodic task that has run comes back in any case, even if that is one too many
//! ([`force_acquire`]): if it were refused, it would be lost for being late.
//!
//! ## Why no permit is left unused while a submitter waits
//!
//! Each released permit wakes one waiter. A waiter whose time ran out concurrently forwards the
//! wake-up ([`cancel_wait`]). A waiter may also wake for another reason and acquire a permit that
//! somebody else was woken for; it is taken off the list then, so no later permit is announced to
//! it.
//!
//! ## Once the queue is closed
//!
//! Once the queue is closed there is no bound: every submitter may acquire, and it is the queue
//! that refuses the task and says why. Whether the queue is closed is asked of the queue, under the
//! lock of the capacity (`is_closed`, an atomic read), and is not stored here. The closer closes the
//! queue first and calls [`wake_all`](Capacity::wake_all) then. So a waiter that looked before that
//! is on the list and is woken, and one that looks afterwards finds the queue closed.
//!
//! The same holds for the group of a task that waits. A group that is shut down says so first, under its own lock, and
//! wakes all submitters then. One of its own gives up, and is told that the group was shut down; so it does not hold
//! up the group's end. The others wait on.
//!
//! [`force_acquire`]: Capacity::force_acquire
//! [`cancel_wait`]: Capacity::cancel_wait

use std::{io, task::Waker};

use super::{Pool, rejection::NotAdmitted};
use crate::{
    RejectedExecutionError, RejectionReason,
    queue::{Refusal, RefusedElement, Ticket},
    sync::{Arc, Mutex, Parker},
    task::Task,
    time::{Clock, Timestamp},
    unwind::{self, discard},
    wait::{self, WaitList},
};

impl Pool {
    /// Starts a worker, unless there are as many as the core pool size or the pool was shut down.
    /// Fails only if there is none at all, since a pool that has one can do its work. Returns `false`
    /// if a worker was missing and could not be started.
    #[inline]
    pub(crate) fn ensure_worker(self: &Arc<Self>) -> io::Result<bool> {
        // Not the phase: it advances before the queue is closed, and until then tasks are admitted.
        if self.is_staffed() || self.queue.is_closed() {
            return Ok(true);
        }
        match self.start_worker(|| self.workers.wanted()) {
            Ok(_) => Ok(true),
            Err(error) => self.tolerate_spawn_failure(error).map(|()| false),
        }
    }

    /// Returns `true` if there are as many workers as the core pool size wants.
    #[inline]
    pub(crate) fn is_staffed(&self) -> bool {
        self.workers.started() >= self.workers.wanted()
    }

    /// Admits a task to a pool that has a worker, through one stripe of the queue. `is_staffed` is
    /// what [`ensure_worker`](Self::ensure_worker) returned. The ticket that this returns finds
    /// nothing in the queue if the rejection handler has dealt with the task. An error owns the task.
    #[inline(always)]
    pub(crate) fn admit(
        self: &Arc<Self>,
        stripe: usize,
        task: Arc<Task>,
        now: Timestamp,
        deadline: Timestamp,
        is_staffed: bool,
    ) -> Result<Ticket, RejectedExecutionError> {
        match self.offer(stripe, task, now, deadline, false, is_staffed) {
            Ok(ticket) => Ok(ticket),
            Err(not_admitted) => self.reject(stripe, not_admitted, now, deadline),
        }
    }

    /// Offers a task to the queue, if there is capacity for it or if `has_permit` says that a permit
    /// has been acquired already.
    #[inline(always)]
    pub(super) fn offer(
        self: &Arc<Self>,
        stripe: usize,
        task: Arc<Task>,
        now: Timestamp,
        deadline: Timestamp,
        has_permit: bool,
        is_staffed: bool,
    ) -> Result<Ticket, NotAdmitted> {
        if !has_permit && !self.acquire_capacity() {
            let sequence = self.queue.next_sequence(stripe, now);
            return Err(NotAdmitted { reason: RejectionReason::Saturated, sequence, task });
        }
        match self.queue.offer(stripe, now, deadline, task) {
            Ok(ticket) if self.is_staffed() => Ok(ticket),
            Ok(ticket) => self.rescue(ticket, is_staffed),
            Err(RefusedElement { why, sequence, element: task }) => {
                self.release_capacity();
                let reason = match why {
                    Refusal::Closed => RejectionReason::Shutdown,
                    Refusal::Full => RejectionReason::Full,
                };
                Err(NotAdmitted { reason, sequence, task })
            }
        }
    }

    #[inline]
    fn acquire_capacity(&self) -> bool {
        self.capacity.as_ref().is_none_or(|capacity| self.acquire_from(capacity))
    }

    /// Acquires a permit even if that is one too many.
    pub(super) fn force_acquire_capacity(&self) {
        if let Some(capacity) = &self.capacity {
            capacity.force_acquire();
        }
    }

    // Apart, as is all that only a pool with a bound needs, so that the others have less to carry.
    #[inline(never)]
    fn acquire_from(&self, capacity: &Capacity) -> bool {
        capacity.try_acquire(|| self.queue.is_closed())
    }

    /// Releases the permit of a task that is no longer pending.
    #[inline]
    pub(super) fn release_capacity(&self) {
        if let Some(capacity) = &self.capacity {
            capacity.release();
        }
    }

    /// Wakes the submitters that wait for capacity: the executor or a group was shut down.
    pub(super) fn wake_submitters(&self) {
        if let Some(capacity) = &self.capacity {
            capacity.wake_all();
        }
    }

    /// Ensures a worker for a task that is in the queue while there are fewer workers than wanted, or
    /// takes the task out again; see the head of the module.
    #[cold]
    fn rescue(self: &Arc<Self>, ticket: Ticket, is_staffed: bool) -> Result<Ticket, NotAdmitted> {
        let started = if self.workers.started() == 0 {
            self.start_worker(|| self.workers.wanted()).map(drop)
        } else if is_staffed {
            self.compensate()
        } else {
            // It has just been tried.
            Ok(())
        };
        let Err(error) = started.or_else(|error| self.tolerate_spawn_failure(error)) else {
            return Ok(ticket);
        };
        // If it is not there, it has been run, or somebody else has removed it.
        let Some(task) = self.queue.remove(ticket) else { return Ok(ticket) };
        self.entry_removed();
        if self.shutdown.hold() {
            // The task may have been all that termination waited for.
            self.release_hold();
        }
        let (reason, sequence) = (RejectionReason::Spawn(error), ticket.sequence);
        Err(NotAdmitted { reason, sequence, task })
    }
}

/// The permits for pending tasks; see the head of the module.
pub(super) struct Capacity {
    bound: usize,
    usage: Mutex<Usage>,
}

/// What came of a wait for room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    Acquired,
    GivenUp,
    TimeIsUp,
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

    /// Blocks until it can [acquire](Self::try_acquire) a permit, until the deadline, or until `gives_up`, whichever is
    /// first. What has the submitter give up is there before its [wake-up](Self::wake_all).
    pub(super) fn acquire_before(
        &self,
        clock: &Clock,
        deadline: Timestamp,
        is_closed: impl Fn() -> bool,
        gives_up: impl Fn() -> bool,
    ) -> Room {
        let room = wait::block_until(clock, deadline, |waker| {
            let is_granted = self.poll_acquire(waker, &is_closed).is_some();
            // Second: the waker is kept by now.
            if is_granted { Some(Room::Acquired) } else { gives_up().then_some(Room::GivenUp) }
        });
        let room = room.unwrap_or(Room::TimeIsUp);
        if room != Room::Acquired {
            self.cancel_wait(Parker::current().waker());
        }
        room
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
    #[inline(never)]
    pub(super) fn release(&self) {
        let mut usage = self.usage.lock();
        usage.acquired = usage.acquired.saturating_sub(1);
        let next = usage.waiters.take_one();
        drop(usage);
        unwind::wake_all(next);
    }

    /// Wakes all submitters that wait, after the queue has been closed, or something else that they ask has
    /// changed.
    pub(super) fn wake_all(&self) {
        let waiters = self.usage.lock().waiters.take();
        unwind::wake_all(waiters);
    }
}

#[cfg(test)]
mod tests;
