//! The `DelayedWorkQueue`: elements come in with a deadline and go out when it has come.
//!
//! One lock protects everything: the [`heap`], who waits ([`takers`]), and whether elements
//! are still let in. So three questions that are subtle in other designs have one-line answers.
//!
//! * **When is a submission too late?** [`offer`](DelayedWorkQueue::offer) and
//!   [`close`](DelayedWorkQueue::close) meet at the lock. Whoever comes first is first: the
//!   element is in the heap when the closer looks, or it is given back.
//! * **Who wakes the next leader?** The thread that leaves with an element, or the one that puts
//!   in a nearer one: `takers`, where the argument stands.
//! * **What is taken next?** The smallest deadline, and among equals the one that came first,
//!   by the lock's order.
//!
//! # What happens outside the lock
//!
//! The clock is read, elements are made and dropped, and threads are rung for outside. Under the
//! lock are only moves within the heap and the list of sleepers: no foreign code.
//!
//! # Wake-ups
//!
//! An offer wakes somebody only if its element is the new head and no thread is awake that will
//! look. A thread that leaves wakes one if something is left. Whoever makes a closed queue empty
//! wakes all, to end. Nothing else wakes anybody: removal does not (a leader that wakes early
//! sleeps again), and an idle queue makes no system call.
//!
//! # The way to several heaps
//!
//! Elements, tickets and the heap know nothing of each other's number. Where submitters of
//! several threads meet at the lock too often there can be several heaps, each with its own
//! lock, chosen by thread; `takers` is then the gate of those that sleep.

mod chunks;
mod heap;
mod slots;
mod takers;

use std::{task::Waker, time::Duration};

pub(crate) use self::heap::{Entry, Ticket};
use self::{
    heap::DelayHeap,
    takers::{TakerId, Takers},
};
use crate::{
    sync::{Mutex, Parker},
    time::{Clock, Deadline},
    unwind::wake_all,
};

/// See the [module](self).
pub(crate) struct DelayedWorkQueue<E> {
    clock: Clock,
    inner: Mutex<Inner<E>>,
}

struct Inner<E> {
    heap: DelayHeap<E>,
    takers: Takers,
    admission: Admission,
}

/// Who is still let in. It only ever goes down the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Admission {
    /// Every element.
    Open,
    /// Only elements that had been let in before and taken out: periodic ones between two runs.
    Returning,
    /// None.
    Closed,
}

/// An element that was not let in.
#[derive(Debug)]
pub(crate) enum Refused<E> {
    Closed(E),
    Full(E),
}

impl<E> DelayedWorkQueue<E> {
    pub(crate) fn new(clock: Clock) -> Self {
        let admission = Admission::Open;
        let inner = Inner { heap: DelayHeap::new(), takers: Takers::default(), admission };
        Self { clock, inner: Mutex::new(inner) }
    }

    /// Lets an element in, to be taken once `deadline` has come.
    pub(crate) fn offer(&self, deadline: Deadline, element: E) -> Result<Ticket, Refused<E>> {
        let mut inner = self.inner.lock();
        if inner.admission != Admission::Open {
            return Err(Refused::Closed(element));
        }
        let ticket = inner.heap.insert(deadline, element).map_err(Refused::Full)?;
        let wake = inner.rouse_for(ticket, deadline);
        drop(inner);
        wake_all(wake);
        Ok(ticket)
    }

    /// Lets an element in that was taken before, with the number it had. Gives the ticket and
    /// whom the caller is to wake, once it holds no lock.
    pub(crate) fn offer_again(
        &self,
        deadline: Deadline,
        sequence: u64,
        element: E,
    ) -> Result<(Ticket, Option<Waker>), Refused<E>> {
        let mut inner = self.inner.lock();
        if inner.admission == Admission::Closed {
            return Err(Refused::Closed(element));
        }
        let inserted = inner.heap.insert_again(deadline, sequence, element);
        let ticket = inserted.map_err(Refused::Full)?;
        let wake = inner.rouse_for(ticket, deadline);
        Ok((ticket, wake))
    }

    /// Waits for an element to fall due and takes it. Nothing once the queue is closed and empty.
    /// The moment of taking comes with it.
    pub(crate) fn take(&self) -> Option<(Entry<E>, Deadline)> {
        self.take_until(Deadline::NEVER)
    }

    /// The same, but waits no longer than `limit`.
    #[cfg_attr(not(test), allow(dead_code, reason = "the public queue will have it"))]
    pub(crate) fn poll_timeout(&self, limit: Duration) -> Option<(Entry<E>, Deadline)> {
        self.take_until(self.clock.now().after(limit))
    }

    /// Takes an element if one is due.
    #[cfg_attr(not(test), allow(dead_code, reason = "the public queue will have it"))]
    pub(crate) fn poll(&self) -> Option<Entry<E>> {
        let now = self.clock.now();
        self.inner.lock().heap.pop_due(now)
    }

    fn take_until(&self, limit: Deadline) -> Option<(Entry<E>, Deadline)> {
        let mut me: Option<TakerId> = None;
        loop {
            // Before the lock: a stale reading can only make this thread look once more.
            let now = self.clock.now();
            let mut inner = self.inner.lock();
            let unused = me.and_then(|id| inner.takers.wake(id));
            let taken = inner.heap.pop_due(now);
            if taken.is_some() || inner.is_finished() || (limit < Deadline::NEVER && now >= limit) {
                let wake = inner.depart(me);
                drop(inner);
                wake_all(wake);
                return taken.map(|entry| (entry, now));
            }
            let id = *me.get_or_insert_with(|| inner.takers.enter());
            let parker = Parker::current();
            let waker = unused.unwrap_or_else(|| parker.waker().clone());
            let head = inner.heap.head();
            let due = inner.takers.sleep(id, waker, head);
            drop(inner);
            self.clock.park_until(&parker, due.min(limit));
        }
    }

    /// Takes an element out, due or not.
    pub(crate) fn remove(&self, ticket: Ticket) -> Option<E> {
        let mut inner = self.inner.lock();
        let removed = inner.heap.remove(ticket);
        let wake = inner.rouse_all_if_finished();
        drop(inner);
        wake_all(wake);
        removed.map(|entry| entry.element)
    }

    /// Moves an element to another deadline. Whether it was there.
    #[cfg_attr(not(test), allow(dead_code, reason = "the public queue will have it"))]
    pub(crate) fn reset(&self, ticket: Ticket, deadline: Deadline) -> bool {
        let mut inner = self.inner.lock();
        let was_there = inner.heap.reset(ticket, deadline);
        let wake = if was_there { inner.rouse_for(ticket, deadline) } else { None };
        drop(inner);
        wake_all(wake);
        was_there
    }

    /// Until when the element waits; nothing if it is not there.
    pub(crate) fn deadline(&self, ticket: Ticket) -> Option<Deadline> {
        self.inner.lock().heap.deadline(ticket)
    }

    /// Whether it lets in no new elements.
    pub(crate) fn is_closed(&self) -> bool {
        self.inner.lock().admission != Admission::Open
    }

    pub(crate) fn len(&self) -> usize {
        self.inner.lock().heap.len()
    }

    /// Takes everything out, due or not.
    pub(crate) fn drain(&self) -> Vec<Entry<E>> {
        let mut inner = self.inner.lock();
        let everything = inner.heap.remove_all();
        let wake = inner.rouse_all_if_finished();
        drop(inner);
        wake_all(wake);
        everything.into_entries()
    }

    /// Takes out what is `unwanted`, in one step.
    pub(crate) fn remove_where(&self, unwanted: impl FnMut(Deadline, &E) -> bool) -> Vec<Entry<E>> {
        let mut inner = self.inner.lock();
        let removed = inner.heap.remove_where(unwanted);
        let wake = inner.rouse_all_if_finished();
        drop(inner);
        wake_all(wake);
        removed
    }

    /// Lets in no more than `admission` says from now on. What is inside will still be taken;
    /// when nothing is left `take` ends. May be called again, to close further.
    pub(crate) fn close(&self, admission: Admission) {
        let mut inner = self.inner.lock();
        inner.admission = inner.admission.max(admission);
        let wake = inner.rouse_all_if_finished();
        drop(inner);
        wake_all(wake);
    }
}

impl<E> Inner<E> {
    /// Whether there is and will be nothing to take.
    fn is_finished(&self) -> bool {
        self.admission != Admission::Open && self.heap.is_empty()
    }

    /// An entry has come to stand at `deadline`: gives whom to ring for, if it is the head.
    fn rouse_for(&mut self, ticket: Ticket, deadline: Deadline) -> Option<Waker> {
        if self.heap.is_head(ticket) { self.takers.rouse(deadline) } else { None }
    }

    /// A thread leaves: gives whom to ring for.
    fn depart(&mut self, id: Option<TakerId>) -> impl Iterator<Item = Waker> + use<E> {
        let next = self.takers.depart(id, !self.heap.is_empty());
        next.into_iter().chain(self.rouse_all_if_finished())
    }

    /// The last element is gone and none will come: gives everyone who still waits for one.
    fn rouse_all_if_finished(&mut self) -> Vec<Waker> {
        if self.is_finished() { self.takers.rouse_all() } else { Vec::new() }
    }
}

#[cfg(test)]
mod tests;
