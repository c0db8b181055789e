//! Admission: how a task gets into the queue.
//!
//! ```text
//!   ensure_worker ──▶ admit ──▶ capacity ──▶ queue.offer ──▶ enough workers? ──▶ the ticket
//!                       ▲          │             │                 │ no
//!                       │          ▼             ▼                 ▼
//!                     retry ◀── rejection ◀──────┴────────────── rescue ──▶ the ticket
//! ```
//!
//! A submission first ensures that there is a worker ([`workers`](super::workers)), unless it has seen that
//! the pool has all of them. A queued task therefore always has a worker that will come for it, and a task
//! for which no worker could be started was never queued.
//!
//! # Where admission meets shutdown
//!
//! At the lock of a stripe of the queue, and nowhere else. If the submission gets that lock before the
//! shutdown does, the task is admitted and the shutdown sees it; otherwise the queue refuses it. A task can
//! still be refused with [`Saturated`](RejectionReason::Saturated) while the queue is being closed, since the
//! bound is asked before that, and an admitted task can be taken back by a rescue, as follows.
//!
//! # Rescue
//!
//! Between `ensure_worker` and the offer, workers may have retired or begun other tasks. So the submission
//! looks again once the task is queued. If there are fewer workers than wanted, it starts one; if there is
//! none at all and none can be started, it takes the task out again and reports the error. The head of
//! [`workers`](super::workers) has the argument why either the submission or the retiring worker sees the
//! other.
//!
//! # Capacity
//!
//! The permit of a task is released when the task is taken out of the queue, to run or to be dropped. A
//! periodic task that has run is queued again in any case, even if that is one too many ([`force_acquire`]):
//! if it were refused, it would be lost for being late.
//!
//! Each released permit wakes one waiter, and that wake-up is a baton (`queue::waiters`): a waiter whose time
//! ran out concurrently passes it on ([`acquire_before`]). A waiter may also wake for another reason and
//! acquire a permit that another one was woken for; it is taken off the list then, so no later permit is
//! announced to it. So no permit is left unused while a submitter waits.
//!
//! Once the queue is closed there is no bound: every submitter may acquire, and it is the queue that refuses
//! the task and says why. Whether the queue is closed is asked of the queue, under the lock of the capacity
//! (`is_closed`, an atomic read). The closer closes the queue first and calls
//! [`wake_all`](Capacity::wake_all) then; a waiter asks and is listed under that lock.
//!
//! The group of a task that waits is asked once the waiter is listed. A group that is shut down says so
//! first, under its own lock, and wakes all submitters then. One of its own gives up, and is told that the
//! group was shut down; so it does not hold up the group's end. The others wait on.
//!
//! [`force_acquire`]: Capacity::force_acquire
//! [`acquire_before`]: Capacity::acquire_before

use std::io;

use super::{Pool, Workers, rejecting::NotAdmitted};
use crate::{
    RejectedExecutionError, RejectionReason,
    entry::{Ticket, Timing},
    queue::{InsertError, RefusedElement},
    rejection::Room,
    sync::Arc,
    task::Task,
    time::{Clock, Timestamp},
    unwind::discard,
    wait::{self, Place, Watched},
};

impl Pool {
    /// Starts a worker, unless there are as many as the core pool size or the pool was shut down.
    /// Fails only if there is none at all, since a pool that has one can do its work.
    #[inline]
    pub(crate) fn ensure_worker(self: &Arc<Self>) -> io::Result<Staffing> {
        // Not the phase: it advances before the queue is closed, and until then tasks are admitted.
        if self.workers.is_complete() || self.queue.is_closed() {
            return Ok(Staffing::Complete);
        }
        let started = self.start_worker(Workers::wanted).map(|_| Staffing::Complete);
        started.or_else(|error| self.workers.tolerate(error).map(|()| Staffing::Short))
    }

    /// Offers a task to the queue, if there is capacity for it or a permit has been acquired already.
    #[inline(always)]
    pub(super) fn offer(
        self: &Arc<Self>,
        task: Arc<Task>,
        Arrival { stripe, now, timing, staffing, .. }: Arrival,
        permit: Permit,
    ) -> Result<Ticket, NotAdmitted> {
        if permit == Permit::ToAcquire && !self.capacity.try_acquire(|| self.queue.is_closed()) {
            let sequence = self.queue.next_sequence(stripe, now);
            return Err(NotAdmitted { reason: RejectionReason::Saturated, sequence, task });
        }
        match self.queue.offer(stripe, now, timing, task) {
            Ok(ticket) if self.workers.is_complete() => Ok(ticket),
            Ok(ticket) => self.rescue(ticket, staffing),
            Err(RefusedElement { why, sequence, element: task }) => {
                self.capacity.release();
                let reason = match why {
                    InsertError::Closed => RejectionReason::Shutdown,
                    InsertError::Full => RejectionReason::Full,
                };
                Err(NotAdmitted { reason, sequence, task })
            }
        }
    }

    /// Ensures a worker for a task that is in the queue while there are fewer workers than wanted, or
    /// takes the task out again; see the head of the module.
    #[cold]
    fn rescue(self: &Arc<Self>, ticket: Ticket, staffing: Staffing) -> Result<Ticket, NotAdmitted> {
        let started = match staffing {
            _ if self.workers.started() == 0 => self.start_worker(Workers::wanted).map(drop),
            Staffing::Complete => self.compensate(),
            // It has just been tried.
            Staffing::Short => Ok(()),
        };
        let Err(error) = started.or_else(|error| self.workers.tolerate(error)) else {
            return Ok(ticket);
        };
        // If it is not there, a worker has run it, or another thread has removed it.
        let removed = self.queue.withdraw(ticket).or_else(|| {
            // It may have been moved since it was submitted, to another slot.
            let all = self.queue.snapshot();
            let moved = all.iter().find(|one| one.ticket.sequence == ticket.sequence);
            let moved = moved.map(|one| one.ticket);
            discard(all);
            self.queue.withdraw(moved?)
        });
        // Others may have left the start to this thread.
        self.end_stranded();
        let Some(task) = removed else { return Ok(ticket) };
        self.entry_removed();
        let (reason, sequence) = (RejectionReason::Spawn(error), ticket.sequence);
        Err(NotAdmitted { reason, sequence, task })
    }
}

/// How a task that was submitted comes to the queue.
#[derive(Clone, Copy)]
pub(crate) struct Arrival {
    /// The stripe of the queue that the submitter uses.
    pub(super) stripe: usize,
    pub(super) now: Timestamp,
    pub(super) timing: Timing,
    pub(super) staffing: Staffing,
    /// The rejection handler decides if the pool does not admit the task; otherwise the submission fails.
    pub(super) asks_handler: bool,
}

/// Whether a pool had its workers when a submission [looked](Pool::ensure_worker).
#[derive(Clone, Copy)]
pub(crate) enum Staffing {
    Complete,
    /// One was missing, and could not be started.
    Short,
}

/// Whether the permit of the [capacity](Capacity) for a task has been acquired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Permit {
    ToAcquire,
    Acquired,
}

/// The fate of a task that was submitted and is not in the queue.
pub(crate) enum NotQueued {
    /// The rejection handler has dealt with it. It would have had this sequence.
    Handled(u64),
    /// The submission has failed. The error owns the task.
    Refused(RejectedExecutionError),
}

impl NotQueued {
    /// Returns the ticket of a task that was handled, which finds nothing in the queue.
    #[cold]
    pub(crate) fn ticket(self) -> Result<Ticket, RejectedExecutionError> {
        match self {
            Self::Handled(sequence) => Ok(Ticket::without_slot(sequence)),
            Self::Refused(refused) => Err(refused),
        }
    }
}

/// The permits for pending tasks, if there is a bound; see the head of the module.
pub(crate) struct Capacity {
    pub(crate) bound: Option<usize>,
    /// How many permits are acquired; not counted without a bound.
    acquired: Watched<usize>,
}

// What only a pool with a bound needs is in functions of their own, so that other pools have less to carry.
impl Capacity {
    pub(super) fn new(bound: Option<usize>) -> Self {
        Self { bound, acquired: Watched::default() }
    }

    /// Acquires a permit if one is left, or if the queue is closed.
    #[inline]
    pub(super) fn try_acquire(&self, is_closed: impl FnOnce() -> bool) -> bool {
        self.bound.is_none_or(|bound| self.acquire(bound, is_closed))
    }

    #[inline(never)]
    fn acquire(&self, bound: usize, is_closed: impl FnOnce() -> bool) -> bool {
        grant(&mut self.acquired.lock(), bound, is_closed).is_some()
    }

    /// Acquires a permit even if that is one too many.
    pub(super) fn force_acquire(&self) {
        if self.bound.is_some() {
            *self.acquired.lock() += 1;
        }
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
        let Some(bound) = self.bound else { return Room::Acquired };
        let mut place = Place::default();
        let room = wait::block_until(clock, deadline, |waker| {
            let grant = |acquired: &mut usize| grant(acquired, bound, &is_closed);
            match self.acquired.poll(&mut place, waker, grant) {
                Some(()) => Some(Room::Acquired),
                // Second: the waker is kept by now.
                None => gives_up().then_some(Room::GivenUp),
            }
        });
        let room = room.unwrap_or(Room::TimeIsUp);
        // A waiter that is off the list already was woken for a permit, which is free still.
        if room != Room::Acquired && !self.acquired.forget(&mut place) {
            self.acquired.lock().wake_one();
        }
        room
    }

    /// Releases the permit of a task that is no longer pending, and wakes a submitter that waits for one.
    #[inline]
    pub(super) fn release(&self) {
        if self.bound.is_some() {
            self.release_one();
        }
    }

    #[inline(never)]
    fn release_one(&self) {
        let mut acquired = self.acquired.lock();
        *acquired = acquired.saturating_sub(1);
        acquired.wake_one();
    }

    /// Wakes all submitters that wait, after the queue has been closed, or something else that they ask has
    /// changed.
    pub(crate) fn wake_all(&self) {
        self.acquired.lock().wake_all();
    }
}

fn grant(acquired: &mut usize, bound: usize, is_closed: impl FnOnce() -> bool) -> Option<()> {
    let is_granted = *acquired < bound || is_closed();
    *acquired += usize::from(is_granted);
    is_granted.then_some(())
}

#[cfg(test)]
mod tests;
