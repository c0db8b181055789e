//! Either of the two queues, for tests that hold for both.

use std::{
    task::{Poll, Waker},
    time::Duration,
};

use super::{
    Admission, AsyncWaiter, DelayedWorkQueue, Drained, QueueEntry, RefusedElement, SingleQueue,
    SnapshotEntry, Source,
};
use crate::{
    entry::{Moved, Ticket, Timing},
    sync::Parker,
    time::{Clock, Timestamp},
    unwind::wake_all,
};

#[allow(clippy::large_enum_variant, reason = "a test has one of them")]
pub(super) enum AnyQueue<E> {
    Striped(DelayedWorkQueue<E>),
    Single(SingleQueue<E>),
}

/// Performs the same operation on either queue.
macro_rules! either {
    ($any:expr, $queue:ident => $act:expr) => {
        match $any {
            AnyQueue::Striped($queue) => $act,
            AnyQueue::Single($queue) => $act,
        }
    };
}

#[allow(dead_code, reason = "the models need less of it than the tests")]
impl<E> AnyQueue<E> {
    /// Makes a queue with the given number of stripes, or a single queue for `None`.
    pub(super) fn new(clock: Clock, stripes: Option<usize>, lead: Duration) -> Self {
        match stripes {
            Some(stripes) => Self::Striped(DelayedWorkQueue::new(clock, stripes, lead)),
            None => Self::Single(SingleQueue::new(clock)),
        }
    }

    pub(super) fn stripes(&self) -> usize {
        match self {
            Self::Striped(queue) => queue.stripes(),
            Self::Single(_) => 1,
        }
    }

    pub(super) fn is_single(&self) -> bool {
        matches!(self, Self::Single(_))
    }

    pub(super) fn clock(&self) -> &Clock {
        either!(self, queue => Source::clock(queue))
    }

    pub(super) fn head(&self) -> Timestamp {
        either!(self, queue => Source::head(queue))
    }

    pub(super) fn offer(
        &self,
        stripe: usize,
        now: Timestamp,
        deadline: Timestamp,
        element: E,
    ) -> Result<Ticket, RefusedElement<E>> {
        match self {
            Self::Striped(queue) => queue.offer_at(stripe, now, deadline, element),
            Self::Single(queue) => queue.insert(deadline, element),
        }
    }

    pub(super) fn take(&self) -> Option<(QueueEntry<E>, Timestamp)> {
        self.take_until(Timestamp::NEVER)
    }

    pub(super) fn take_until(&self, limit: Timestamp) -> Option<(QueueEntry<E>, Timestamp)> {
        let limit = |_| Some(limit);
        either!(self, queue => queue.take_until_by(Parker::current, limit))
    }

    pub(super) fn poll_timeout(&self, timeout: Duration) -> Option<(QueueEntry<E>, Timestamp)> {
        self.take_until(self.clock().read().after(timeout))
    }

    pub(super) fn try_take(&self) -> Option<QueueEntry<E>> {
        either!(self, queue => queue.try_take())
    }

    pub(super) fn poll_take<A>(
        &self,
        waiter: &mut AsyncWaiter<A>,
        waker: &Waker,
        set_alarm: impl Fn(Timestamp, Waker) -> Option<A>,
    ) -> Poll<Option<QueueEntry<E>>> {
        either!(self, queue => queue.poll_take(waiter, waker, set_alarm))
    }

    pub(super) fn cancel_wait<A>(&self, waiter: &mut AsyncWaiter<A>) {
        either!(self, queue => queue.cancel_wait(waiter));
    }

    pub(super) fn remove(&self, ticket: Ticket) -> Option<E> {
        either!(self, queue => queue.remove(ticket))
    }

    /// Returns the ticket that names the element from now on.
    pub(super) fn reset(&self, ticket: Ticket, timing: impl Into<Timing>) -> Option<Ticket> {
        let timing = timing.into();
        match self {
            Self::Striped(queue) => queue.reset_to(ticket, timing),
            Self::Single(queue) => {
                let (Timing::At(deadline) | Timing::Parked { due: deadline }) = timing;
                queue.reset(ticket, deadline).then_some(ticket)
            }
        }
    }

    pub(super) fn deadline(&self, ticket: Ticket) -> Option<Timestamp> {
        either!(self, queue => queue.deadline(ticket))
    }

    pub(super) fn drain(&self) -> Drained<E> {
        either!(self, queue => queue.drain())
    }

    /// A single queue can only be open or closed.
    pub(super) fn close(&self, admission: Admission) {
        match self {
            Self::Striped(queue) => queue.close(admission),
            Self::Single(queue) if admission != Admission(0) => queue.close(),
            Self::Single(_) => {}
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        either!(self, queue => queue.is_closed())
    }

    pub(super) fn is_finished(&self) -> bool {
        either!(self, queue => queue.is_finished())
    }
}

#[allow(dead_code, reason = "the models need less of it than the tests")]
impl<E: Clone> AnyQueue<E> {
    pub(super) fn len(&self) -> usize {
        either!(self, queue => queue.len())
    }

    pub(super) fn snapshot(&self) -> Vec<SnapshotEntry<E>> {
        match self {
            Self::Striped(queue) => queue.snapshot(),
            Self::Single(queue) => queue.snapshot(E::clone),
        }
    }
}

impl<E> DelayedWorkQueue<E> {
    /// Offers an element for the given moment.
    pub(crate) fn offer_at(
        &self,
        stripe: usize,
        now: Timestamp,
        deadline: Timestamp,
        element: E,
    ) -> Result<Ticket, RefusedElement<E>> {
        self.offer(stripe, now, Timing::At(deadline), element)
    }

    /// Moves an element to where `timing` says. Returns the ticket that names the element from now on.
    pub(crate) fn reset_to(&self, ticket: Ticket, timing: impl Into<Timing>) -> Option<Ticket> {
        let timing = timing.into();
        let (moved, waker) = self.reset(ticket, &mut |_, _| Some(timing));
        wake_all(waker);
        match moved {
            Moved::To(slot) => Some(ticket.moved_to(slot)),
            Moved::Declined | Moved::Absent => None,
        }
    }
}
