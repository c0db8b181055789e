//! The waiters: which threads search for an element, which sleep and until when, and which one is woken.
//!
//! A thread in `take` either *searches* (it is awake and will look at the heads) or *waits* (it is listed, and sleeps).
//! A waiter that is listed with a deadline is *armed*: the **leader** with the first deadline, its **deputy** with the
//! second. When an element with an earlier deadline arrives, one more waiter arms itself. The rest are **followers**.
//! (A thread's own limit, such as the keep-alive, is not listed.) So each deadline wakes one thread, however many wait,
//! and a leader that leaves with its element need not wake another thread, because the deputy already leads.
//!
//! ```text
//!                    begin_wait               its moment, or notify
//!       searching ──────────────▶ waiting ──────────────────────────▶ searching
//!          │  ▲
//!          │  └── begin_search
//!          └── end_search, with or without an element
//! ```
//!
//! # Which thread wakes a waiter
//!
//! * *A thread that makes a head nearer*, after publishing the head, if no thread searches and
//!   no waiter is armed early enough.
//! * *The last searcher to leave*, for the elements it leaves behind, under the same condition.
//! * *A thread that closes an empty queue, or empties a closed one*: it wakes all waiters, since no new element will
//!   come.
//! * *A thread that changes how long others may wait*: it wakes all waiters, so that each asks for its limit again.
//!
//! News for all waiters also concerns a thread that has looked but is not yet listed. So a thread that wakes all
//! waiters begins a new *round*, counted under the lock of the list. A searcher reads the round before it looks for
//! such news, and looks again if the round has changed by the time it is listed.
//!
//! The thread that wakes a waiter increments `searching`, the number of searchers, on the waiter's behalf, so that no
//! other waiter is woken before this one has looked.
//!
//! # Why no wake-up is lost
//!
//! The argument is the same throughout the crate: other modules name their two sides and refer to it. One side brings
//! news, and the other waits for it. *Each side writes first what the other reads second*:
//!
//! | the side that brings news | the side that waits |
//! |---|---|
//! | 1. publishes it | 1. announces that it waits |
//! | 2. reads which threads wait, and wakes them | 2. looks for news, and sleeps if there is none |
//!
//! If the waiting side finds no news, it looked before the other side published any. By then it had announced its wait,
//! so the other side, reading later, sees the wait. At least one side sees the other; if both do, a wake-up is wasted.
//!
//! The argument holds only if both sides agree on one order of the four steps. There are two ways to achieve that:
//!
//! * *A lock* that each side takes in its first step, in its second, or between the two. The side that takes it later
//!   sees what the other has written. Most modules do both steps under the lock ([`Watched`](crate::wait)).
//! * *Sequential consistency* of all four, if the sides share no lock. With release and acquire alone, a write may take
//!   effect after the read that follows it, and then neither side need see the other.
//!
//! If the news is for one waiter, the wake-up is a *baton*: a waiter that leaves without using the baton passes it on.
//!
//! # The two sides of a queue
//!
//! > Once both sides have taken the steps below, at least one of these holds for each published head: a thread
//! > searches; a waiter is armed for the head's deadline or an earlier moment; there is no waiter.
//!
//! Insertions must not contend for the lock of the list of waiters. So an insertion reads two numbers without that
//! lock: `searching`, and `wake_before`, the earliest moment for which a waiter is armed. Every access below is
//! sequentially consistent:
//!
//! | the inserting thread | the thread that waits or leaves |
//! |---|---|
//! | 1. publishes the head | 1. if it is to wait: lists itself and sets `wake_before` |
//! | 2. reads `searching`; not zero: done | 2. decrements `searching`; others remain: done |
//! | 3. reads `wake_before`; not later than the head: done | 3. reads the heads once more |
//! | 4. wakes a waiter, under the lock | 4. if one is nearer than `wake_before`: searches on, or wakes a waiter |
//!
//! An inserting thread that finds a searcher leaves the wake-up to the searchers: the last of them to wait or leave
//! reads the heads once more. An inserting thread that finds no searcher can rely on `wake_before`, since each waiter
//! first sets `wake_before` and then decrements `searching`.
//!
//! A thread that postpones a head, removes it, or takes it without a search wakes no waiter: the waiter armed for it
//! wakes too early, once. While no thread waits, `wake_before` is zero: all threads are busy, and look at the heads
//! when they are done.

use std::{task::Waker, time::Duration};

use crossbeam_utils::CachePadded;

use crate::{
    sync::{
        Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{PlaceId, Timestamp, Wakers},
};

pub(crate) struct Waiters {
    /// How long before a deadline a sleeping thread wakes, to spin until the deadline has come.
    pub(super) lead: Duration,
    /// How many threads in `take` search, including those that have been woken but are not running yet.
    searching: CachePadded<AtomicUsize>,
    /// The earliest moment for which a waiter is armed: `NEVER` if none is armed, zero if no thread waits.
    wake_before: CachePadded<AtomicU64>,
    /// The number of the current round. Written under the lock of the list.
    rounds: AtomicU64,
    /// Each waiter with the moment for which it is armed, `NEVER` for a follower. The leader is first, the newest
    /// follower last. `notify` wakes the last waiter, because that thread's data is the most likely to be cached.
    list: Mutex<Wakers>,
}

impl Waiters {
    pub(super) fn new(lead: Duration) -> Self {
        let (searching, wake_before) = (AtomicUsize::new(0), AtomicU64::new(0));
        Self {
            lead,
            searching: CachePadded::new(searching),
            wake_before: CachePadded::new(wake_before),
            rounds: AtomicU64::new(0),
            list: Mutex::default(),
        }
    }

    #[inline]
    pub(super) fn begin_search(&self) {
        // Ordering: see the head of the module; likewise everywhere in this file.
        self.searching.fetch_add(1, Ordering::SeqCst);
    }

    /// Returns `true` if the calling thread is probably the only one that searches.
    pub(super) fn is_only_searcher(&self) -> bool {
        self.searching.load(Ordering::SeqCst) == 1
    }

    /// Ends a leaving thread's search. Returns the waker, if any, that the caller has to call for elements left behind.
    #[inline]
    pub(super) fn end_search(&self, head: impl FnOnce() -> Timestamp) -> Option<Waker> {
        if self.searching.fetch_sub(1, Ordering::SeqCst) > 1 {
            return None;
        }
        self.notify(head())
    }

    /// Returns the waker that the caller has to call for an element due at `due`, if a waiter has to be woken for it.
    #[inline]
    #[must_use]
    pub(super) fn notify(&self, due: Timestamp) -> Option<Waker> {
        if self.searching.load(Ordering::SeqCst) > 0 || self.is_covered(due) {
            return None;
        }
        self.notify_one(due)
    }

    /// Returns `true` if a waiter is armed for `due` or an earlier moment, or if no thread waits.
    #[inline]
    pub(super) fn is_covered(&self, due: Timestamp) -> bool {
        due.as_nanos() >= self.wake_before.load(Ordering::SeqCst)
    }

    #[cold]
    fn notify_one(&self, due: Timestamp) -> Option<Waker> {
        let mut list = self.list.lock();
        // Both numbers may have changed while this thread waited for the lock.
        if self.searching.load(Ordering::SeqCst) > 0 || self.is_covered(due) {
            return None;
        }
        let woken = list.take_last()?;
        self.searching.fetch_add(1, Ordering::SeqCst);
        self.publish_wake_before(&list);
        Some(woken)
    }

    /// Returns the current round, which a thread reads before it looks for news for [all waiters](Self::notify_all).
    #[inline]
    pub(super) fn round(&self) -> u64 {
        self.rounds.load(Ordering::SeqCst)
    }

    /// Begins a new round and takes all waiters off the list. Returns their wakers, which the caller has to call.
    #[must_use]
    #[inline(never)]
    pub(super) fn notify_all(&self) -> Vec<Waker> {
        let mut list = self.list.lock();
        self.rounds.fetch_add(1, Ordering::SeqCst);
        self.searching.fetch_add(list.len(), Ordering::SeqCst);
        let woken = list.take_all();
        self.publish_wake_before(&list);
        woken
    }

    /// Returns how many threads are in `take`, asleep or awake.
    pub(super) fn count(&self) -> usize {
        // A thread moves between list and `searching` under the lock, so none is counted twice.
        let list = self.list.lock();
        list.len() + self.searching.load(Ordering::SeqCst)
    }

    /// Returns how many threads sleep, or are about to.
    pub(super) fn listed(&self) -> usize {
        self.list.lock().len()
    }

    /// Lists a searcher as a waiter. `first` and `second` are the next two deadlines that it has seen, and `round` is
    /// the [round](Self::round) that it read before. `second` may be late: no wake-up depends on a deputy, because the
    /// last searcher to leave reads the heads. Returns its place, with the moment at which it wakes by itself, and
    /// `true` if it must look again instead of sleeping: a new round has begun, or it was the last searcher and no
    /// waiter is armed for the head.
    pub(super) fn begin_wait(
        &self,
        waker: Waker,
        [first, second]: [Timestamp; 2],
        round: u64,
        head: impl FnOnce() -> Timestamp,
    ) -> (PlaceId, bool) {
        let mut list = self.list.lock();
        let until = if list.first() > first {
            first
        } else if list.second() > second {
            second
        } else {
            Timestamp::NEVER
        };
        let id = list.add(until, waker);
        self.publish_wake_before(&list);
        let was_last_searcher = self.searching.fetch_sub(1, Ordering::SeqCst) == 1;
        let is_round_over = self.round() != round;
        drop(list);
        (id, is_round_over || was_last_searcher && !self.is_covered(head()))
    }

    /// Ends a wait: the thread searches again. Returns the listed waker, unless a notifier has taken it.
    pub(super) fn end_wait(&self, id: PlaceId) -> Option<Waker> {
        let mut list = self.list.lock();
        // If the thread is no longer listed, its notifier has already counted it as searching.
        let waker = list.remove(id)?;
        self.searching.fetch_add(1, Ordering::SeqCst);
        self.publish_wake_before(&list);
        Some(waker)
    }

    fn publish_wake_before(&self, list: &Wakers) {
        let smallest = if list.len() == 0 { Timestamp::PAST } else { list.first() };
        self.wake_before.store(smallest.as_nanos(), Ordering::SeqCst);
    }
}
