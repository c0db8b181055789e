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

use std::task::{Poll, Waker};

use super::{DelayedWorkQueue, Entry, takers::SleeperId};
use crate::{
    time::Deadline,
    unwind::{discard, wake_all},
};

/// See the [module](self). `A` is the alarm that was set; dropping it calls it off.
pub(crate) struct Nap<A> {
    id: SleeperId,
    _alarm: Option<A>,
}

impl<E> DelayedWorkQueue<E> {
    /// Takes what is due, or keeps the waker until something is. Nothing once the queue is closed
    /// and empty. `nap` is the one of the same taker's last poll.
    pub(crate) fn poll_take<A>(
        &self,
        nap: &mut Option<Nap<A>>,
        waker: &Waker,
        mut set_alarm: impl FnMut(Deadline, Waker) -> A,
    ) -> Poll<Option<Entry<E>>> {
        self.rise(nap.take());
        loop {
            let (taken, _) = self.look();
            let round = self.takers.round();
            if taken.is_some() || self.is_finished() {
                wake_all(self.takers.leave(|| self.head()));
                self.end_if_finished();
                return Poll::Ready(taken);
            }
            let sleep = self.takers.lie_down(waker.clone(), self.first_two(), round);
            let is_armed = sleep.until < Deadline::NEVER;
            let _alarm = is_armed.then(|| set_alarm(sleep.until, waker.clone()));
            let latest = Nap { id: sleep.id, _alarm };
            let has_changed =
                sleep.is_late || sleep.is_last && !self.takers.is_covered(self.head());
            if !has_changed && !self.is_finished() {
                *nap = Some(latest);
                return Poll::Pending;
            }
            self.rise(Some(latest));
        }
    }

    /// The taker will not poll again.
    pub(crate) fn give_up<A>(&self, nap: Option<Nap<A>>) {
        if nap.is_some() {
            self.rise(nap);
            wake_all(self.takers.leave(|| self.head()));
        }
    }

    /// A taker searches that has slept so far, or was not there.
    fn rise<A>(&self, nap: Option<Nap<A>>) {
        match nap {
            Some(nap) => discard((self.takers.get_up(nap.id), nap)),
            None => self.takers.arrive(),
        }
    }
}
