//! A waiter that is polled: `take` for a task, which has a waker and no thread of its own.
//!
//! To the [`waiters`](super::waiters) it is like any other: it searches while it is polled, and
//! between two polls it is listed with its waker, as leader, deputy or follower. There is one
//! difference. A thread wakes by itself at the moment for which it is armed, and a waker does not.
//! So the caller of a poll provides an *alarm*, which is set for that moment; the queue does not
//! know what an alarm is made of.
//!
//! The place in the list between two polls belongs to an [`AsyncWaiter`]. The caller must end it
//! by [`poll_take`] or [`cancel`]: a waiter that has been woken counts as searching from then on,
//! and no other waiter is woken before it has looked. A waiter that is cancelled ends its search
//! like any other searcher, and so passes on the wake-up that it got.

use std::task::{Poll, Waker};

use super::{
    Entry,
    waiters::WaiterId,
    waiting::{Search, Source},
};
use crate::{time::Timestamp, unwind::discard};

/// See the [module](self). Dropping the alarm `A` cancels it.
pub(crate) struct AsyncWaiter<A> {
    listed: Option<Listed<A>>,
}

/// A place in the list of waiters.
struct Listed<A> {
    id: WaiterId,
    _alarm: Option<A>,
}

impl<A> AsyncWaiter<A> {
    pub(crate) const fn new() -> Self {
        Self { listed: None }
    }

    #[cfg(all(test, not(any(shuttle, loom))))]
    pub(super) fn is_listed(&self) -> bool {
        self.listed.is_some()
    }

    /// Begins to search, or goes on after a wait.
    fn search<'q, Q: Source>(&mut self, queue: &'q Q) -> Search<'q, Q> {
        let Some(listed) = self.listed.take() else { return Search::begin(queue) };
        let (search, waker) = Search::resume(queue, listed.id);
        discard((waker, listed));
        search
    }
}

/// Takes an element that is due, or keeps the waker until there is one. Ready with `None` once the
/// queue is closed and empty.
pub(super) fn poll_take<Q: Source, A>(
    queue: &Q,
    waiter: &mut AsyncWaiter<A>,
    waker: &Waker,
    set_alarm: impl Fn(Timestamp, Waker) -> A,
) -> Poll<Option<Entry<Q::Element>>> {
    loop {
        let search = waiter.search(queue);
        let (taken, _) = queue.take_now();
        let round = queue.waiters().round();
        if taken.is_some() || queue.is_finished() {
            drop(search);
            queue.notify_all_if_finished();
            return Poll::Ready(taken);
        }
        // Both clones before the wait begins: cloning a waker is user code and may panic.
        let (to_list, for_alarm) = (waker.clone(), waker.clone());
        let begun = search.begin_wait(to_list, round);
        let _alarm = if begun.until < Timestamp::NEVER {
            Some(set_alarm(begun.until, for_alarm))
        } else {
            discard(for_alarm);
            None
        };
        waiter.listed = Some(Listed { id: begun.id, _alarm });
        if !begun.must_look_again {
            return Poll::Pending;
        }
    }
}

/// Ends the wait of a waiter that will not be polled again.
pub(super) fn cancel<Q: Source, A>(queue: &Q, waiter: &mut AsyncWaiter<A>) {
    if waiter.listed.is_some() {
        drop(waiter.search(queue));
    }
}
