//! Waiting for an element: the wait loop and the sleep protocol, written once for both queues.
//!
//! A thread that finds nothing due *searches*: it looks again, and spins if a deadline is near or elements arrive in
//! quick succession. Then it sleeps until it is woken or its moment comes ([`waiters`](super::waiters)). The steps of a
//! searcher:
//!
//! 1. It looks for an element, reads the [round](Waiters::round), and checks its limit and whether the queue is
//!    finished.
//! 2. It reads the next two deadlines and lists itself ([`Search::begin_wait`]).
//! 3. It looks at the heads once more if it was the last searcher.
//!
//! It sleeps only if step 3 found nothing new and no new round has begun: a thread parks
//! ([`take_until_by`](Source::take_until_by)), and a task returns `Pending` ([`poll_take`](Source::poll_take)).
//!
//! A task searches while it is polled. Between two polls its [`AsyncWaiter`] keeps the task's place in the list. A
//! thread wakes by itself at the moment for which it is armed; a task does not, so the caller of `poll_take` provides
//! an *alarm*. That caller must end the wait with `poll_take` or [`cancel_wait`](Source::cancel_wait): until a woken
//! waiter has looked, it counts as searching, and no other waiter is woken. If the waiter was woken, `cancel_wait`
//! passes the wake-up on.

use std::{
    mem,
    ops::Deref,
    task::{Poll, Waker},
};

use super::{QueueEntry, waiters::Waiters};
use crate::{
    sync::{Parker, spin_until},
    time::{Clock, PlaceId, Timestamp},
    unwind::{discard, wake_all},
};

/// A queue on which threads and tasks can wait.
pub(crate) trait Source: Sized {
    type Element;

    fn clock(&self) -> &Clock;

    fn waiters(&self) -> &Waiters;

    /// Returns the earliest published deadline, without taking a lock.
    fn head(&self) -> Timestamp;

    /// Returns the next two deadlines, or earlier moments; `NEVER` for an entry not found. May overlook the second.
    fn first_two(&self) -> [Timestamp; 2];

    /// Returns `true` if the queue is closed and empty. Only an element that its taker queues again may still come.
    ///
    /// Ordering: a thread that closes the queue, or takes the last element out of a closed one, calls this and then
    /// wakes every waiter. A thread that is about to sleep reads the round before it calls this.
    fn is_finished(&self) -> bool;

    fn take_due(&self, now: Timestamp) -> Option<QueueEntry<Self::Element>>;

    /// Takes the first element if it is due. Also returns the time that was compared with the deadline.
    fn take_now(&self) -> (Option<QueueEntry<Self::Element>>, Timestamp);

    /// Wakes every waiter if the queue is finished. Called when an element may have left, or the queue was closed.
    #[inline]
    fn notify_all_if_finished(&self) {
        if self.is_finished() {
            wake_all(self.waiters().notify_all());
        }
    }

    fn try_take(&self) -> Option<QueueEntry<Self::Element>> {
        let (taken, _) = self.take_now();
        self.notify_all_if_finished();
        taken
    }

    /// Waits for an element to become due, and takes it. Returns it with the time at which it was taken, or `None` once
    /// the queue is closed and empty.
    fn take(&self) -> Option<(QueueEntry<Self::Element>, Timestamp)> {
        self.take_until_by(Parker::current, |_| Some(Timestamp::NEVER))
    }

    /// Like [`take`](Self::take), but waits no longer than until `limit(since)`, where `since` is the time at which the
    /// wait began. The thread calls `limit` again after each wake-up. A `limit` that returns `None` has [ended the
    /// search](Waiters::end_search) on the thread's behalf, and the thread leaves.
    ///
    /// The thread parks on the parker that `parker` returns, which other threads may know and wake. If an element is
    /// due at once, neither closure is called.
    #[inline]
    fn take_until_by<P: Deref<Target = Parker>>(
        &self,
        parker: impl FnOnce() -> P,
        limit: impl Fn(Timestamp) -> Option<Timestamp>,
    ) -> Option<(QueueEntry<Self::Element>, Timestamp)> {
        let (taken, now) = self.take_now();
        if taken.is_some() {
            self.notify_all_if_finished();
            return taken.map(|entry| (entry, now));
        }
        wait_until(self, limit, now, &parker())
    }

    /// Takes a due element. If none is due, lists a clone of `waker`, and if the waiter is then armed, sets an alarm.
    /// Returns `Ready(None)` once the queue is finished.
    fn poll_take<A>(
        &self,
        waiter: &mut AsyncWaiter<A>,
        waker: &Waker,
        set_alarm: impl Fn(Timestamp, Waker) -> Option<A>,
    ) -> Poll<Option<QueueEntry<Self::Element>>> {
        loop {
            let search = waiter.search(self);
            let (taken, _) = self.take_now();
            let round = self.waiters().round();
            if taken.is_some() || self.is_finished() {
                drop(search);
                self.notify_all_if_finished();
                return Poll::Ready(taken);
            }
            // Both clones are made before the wait begins: cloning a waker is user code and may panic.
            let (to_list, for_alarm) = (waker.clone(), waker.clone());
            let (id, must_look_again) = search.begin_wait(to_list, round);
            let (until, _) = id;
            let alarm = if until < Timestamp::NEVER {
                set_alarm(until, for_alarm)
            } else {
                discard(for_alarm);
                None
            };
            waiter.listed = Some((id, alarm));
            if !must_look_again {
                return Poll::Pending;
            }
        }
    }

    /// Lists the queue's only waiter, which takes nothing here. Returns the first deadline, at which the waiter looks
    /// by itself; the offer of an element that is due earlier wakes it. It stays listed until
    /// [`cancel_wait`](Self::cancel_wait) or the next call. If the queue is finished, the waiter is not listed; returns
    /// `NEVER`.
    fn watch(&self, waiter: &mut AsyncWaiter<()>, waker: &Waker) -> Timestamp {
        loop {
            let search = waiter.search(self);
            let round = self.waiters().round();
            if self.is_finished() {
                return Timestamp::NEVER;
            }
            let (id, must_look_again) = search.begin_wait(waker.clone(), round);
            waiter.listed = Some((id, None));
            if !must_look_again {
                return id.0;
            }
        }
    }

    fn cancel_wait<A>(&self, waiter: &mut AsyncWaiter<A>) {
        if waiter.listed.is_some() {
            drop(waiter.search(self));
        }
    }
}

fn wait_until<Q: Source>(
    queue: &Q,
    limit: impl Fn(Timestamp) -> Option<Timestamp>,
    since: Timestamp,
    parker: &Parker,
) -> Option<(QueueEntry<Q::Element>, Timestamp)> {
    let mut waker = None;
    let wait = queue.clock().wait(parker);
    let mut search = Search::begin(queue);
    loop {
        let now = queue.clock().read();
        let taken = queue.take_due(now);
        let round = queue.waiters().round();
        let limit = if taken.is_some() { Some(now) } else { limit(since) };
        let Some(limit) = limit else {
            mem::forget(search);
            return None;
        };
        if taken.is_some() || now >= limit || queue.is_finished() {
            drop(search);
            queue.notify_all_if_finished();
            if let Some(entry) = &taken {
                parker.learn(entry.deadline.since(since));
            }
            return taken.map(|entry| (entry, now));
        }
        if spin_until_due(queue, now, limit, parker) {
            continue;
        }
        let waker_to_list = waker.unwrap_or_else(|| wait.parker.waker().clone());
        let (id, must_look_again) = search.begin_wait(waker_to_list, round);
        if !must_look_again {
            wait.park_until(id.0.before(queue.waiters().lead).min(limit));
        }
        (search, waker) = Search::resume(queue, id);
    }
}

/// Spins until a deadline that is near, or for a while if no other thread searches. Returns `true` if an entry is due.
fn spin_until_due(queue: &impl Source, now: Timestamp, limit: Timestamp, parker: &Parker) -> bool {
    let head = queue.head();
    let until = if queue.clock().is_manual() {
        return false;
    } else if head <= now.after(queue.waiters().lead) && head < Timestamp::NEVER {
        head
    } else if queue.waiters().is_only_searcher() {
        now.after(parker.spin.get())
    } else {
        return false;
    };
    spin_until(|| {
        let (now, next) = (queue.clock().read(), queue.head());
        let is_due = next <= now;
        // If the head has moved away, the queue may be finished.
        (is_due || next > head || now >= until.min(limit)).then_some(is_due)
    })
}

/// The search of a thread or task. Dropping it ends the search, and wakes a waiter if elements left behind need one.
struct Search<'a, Q: Source>(&'a Q);

impl<'a, Q: Source> Search<'a, Q> {
    fn begin(queue: &'a Q) -> Self {
        queue.waiters().begin_search();
        Self(queue)
    }

    /// Ends a wait and begins a search. Also returns the waker that was listed, unless a notifier has taken it.
    fn resume(queue: &'a Q, id: PlaceId) -> (Self, Option<Waker>) {
        let waker = queue.waiters().end_wait(id);
        (Self(queue), waker)
    }

    /// Ends the search and begins a wait, as [`Waiters::begin_wait`] does. The caller must have read `round` before it
    /// checked its limit and whether the queue is finished.
    fn begin_wait(self, waker: Waker, round: u64) -> (PlaceId, bool) {
        let queue = self.0;
        let begun = queue.waiters().begin_wait(waker, queue.first_two(), round, || queue.head());
        // `begin_wait` has ended the search.
        mem::forget(self);
        begun
    }
}

impl<Q: Source> Drop for Search<'_, Q> {
    fn drop(&mut self) {
        wake_all(self.0.waiters().end_search(|| self.0.head()));
    }
}

/// A task's place in the list of waiters between two polls, with its alarm `A`. Dropping the `A` cancels the alarm.
pub(crate) struct AsyncWaiter<A> {
    pub(super) listed: Option<(PlaceId, Option<A>)>,
}

impl<A> AsyncWaiter<A> {
    pub(crate) const fn new() -> Self {
        Self { listed: None }
    }

    fn search<'q, Q: Source>(&mut self, queue: &'q Q) -> Search<'q, Q> {
        let Some((id, alarm)) = self.listed.take() else { return Search::begin(queue) };
        let (search, waker) = Search::resume(queue, id);
        discard((waker, alarm));
        search
    }
}
