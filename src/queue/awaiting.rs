//! A taker that is awaited: `take` as a poll, for who has a waker and no thread of its own.
//!
//! To [`takers`](super::takers) it is one like any other: it searches while it is being polled,
//! and between two polls it sleeps, listed with its waker, as leader, deputy or follower. One
//! thing is different: a thread wakes by itself at the moment for which it is armed, and a waker
//! does not. So whoever polls brings an *alarm*, which is set for that moment; the
//! queue does not know what it is made of.
//!
//! What keeps a place in the list between two polls is a [`Nap`]. It must be ended by
//! [`poll_take`](DelayedWorkQueue::poll_take) or [`give_up`](DelayedWorkQueue::give_up): one that
//! has been woken counts as searching from that moment, and nobody else is woken until it has
//! looked. Who gives up leaves like any other searcher, and passes on what it was woken for.

use std::{
    mem,
    task::{Poll, Waker},
};

use super::{
    DelayedWorkQueue, Entry,
    takers::{Sleep, SleeperId},
};
use crate::{
    time::Timestamp,
    unwind::{discard, wake_all},
};

/// See the [module](self). `A` is the alarm that was set; dropping it calls it off.
pub(crate) struct Nap<A> {
    id: SleeperId,
    _alarm: Option<A>,
}

/// A taker that searches. It leaves when this is dropped, also by a panic of the waker.
struct Search<'a, E>(&'a DelayedWorkQueue<E>);

impl<'a, E> Search<'a, E> {
    /// Begins, or goes on after a nap.
    fn begin<A>(queue: &'a DelayedWorkQueue<E>, nap: Option<Nap<A>>) -> Self {
        match nap {
            Some(nap) => discard((queue.takers.get_up(nap.id), nap)),
            None => queue.takers.arrive(),
        }
        Self(queue)
    }

    /// Lies down; whether there is news nevertheless.
    fn lie_down(self, waker: Waker, round: u64) -> (Sleep, bool) {
        let queue = self.0;
        let sleep = queue.takers.lie_down(waker, queue.first_two(), round);
        // It searches no longer, and has not left either.
        mem::forget(self);
        let is_missed = sleep.is_last && !queue.takers.is_covered(queue.head());
        let has_changed = sleep.is_late || is_missed;
        (sleep, has_changed)
    }
}

impl<E> Drop for Search<'_, E> {
    fn drop(&mut self) {
        wake_all(self.0.takers.leave(|| self.0.head()));
    }
}

impl<E> DelayedWorkQueue<E> {
    /// Takes what is due, or keeps the waker until something is. Nothing once the queue is closed
    /// and empty. `nap` is that of the same taker's last poll.
    pub(crate) fn poll_take<A>(
        &self,
        nap: &mut Option<Nap<A>>,
        waker: &Waker,
        set_alarm: impl Fn(Timestamp, Waker) -> A,
    ) -> Poll<Option<Entry<E>>> {
        loop {
            let search = Search::begin(self, nap.take());
            let (taken, _) = self.look();
            let round = self.takers.round();
            if taken.is_some() || self.is_finished() {
                drop(search);
                self.end_if_finished();
                return Poll::Ready(taken);
            }
            // Both before it lies down: cloning is user code, and may panic.
            let (own, alarms) = (waker.clone(), waker.clone());
            let (sleep, has_changed) = search.lie_down(own, round);
            let _alarm = if sleep.until < Timestamp::NEVER {
                Some(set_alarm(sleep.until, alarms))
            } else {
                discard(alarms);
                None
            };
            *nap = Some(Nap { id: sleep.id, _alarm });
            if !has_changed {
                return Poll::Pending;
            }
        }
    }

    /// The taker will not poll again.
    pub(crate) fn give_up<A>(&self, nap: Option<Nap<A>>) {
        if nap.is_some() {
            drop(Search::begin(self, nap));
        }
    }
}
