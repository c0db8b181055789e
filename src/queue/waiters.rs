//! The waiters: which threads search for an element, which sleep, until when, and which is woken.
//!
//! A thread in `take` either *searches* (it is awake and will look at the heads) or *waits* (it sleeps and is
//! listed). At most two waiters are *armed*, listed with a deadline: the **leader** with the first, its **deputy** with
//! the second. The others are **followers**. (The caller's own limit, such as the keep-alive, is not listed.) So one
//! deadline wakes one thread, however many wait, and a leader that leaves with its element has no thread to wake,
//! because the deputy already leads.
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
//! * *A thread that closes an empty queue, or empties a closed one*: it wakes all, since no more
//!   elements will come.
//! * *A caller that changes how long a thread may wait*: it wakes all, so that each asks for its limit again.
//!
//! News for all also concerns a thread that has looked but is not yet listed. So waking all begins a new *round*,
//! counted under the lock of the list. A thread reads the round before it looks, and looks again if the round has changed
//! by the time the thread is listed.
//!
//! The notifier increments `searching` on behalf of the waiter that it wakes, so that no other is woken before it
//! has looked.
//!
//! # Why no wake-up is lost
//!
//! The argument is the same throughout the crate: other modules name their two sides and refer to it. One side brings
//! news, the other waits for it. *Each first writes what the other reads afterwards*:
//!
//! | the side that brings news | the side that waits |
//! |---|---|
//! | 1. publishes it | 1. says that it waits |
//! | 2. reads which threads wait, and wakes | 2. looks for news, and sleeps if there is none |
//!
//! A waiting side that finds no news looked before the other published it. By then it had said that it waits, so the
//! other side, reading later, sees it. At least one of the two sees the other. If both do, a wake-up is wasted.
//!
//! This needs both sides to agree on one order of the four steps. There are two ways:
//!
//! * *A lock* that each side takes in its first step, its second, or between them. The side that takes it later sees
//!   what the other has written. Most modules take both steps under it ([`Watched`](crate::wait)).
//! * *Sequential consistency* of all four, if the sides share no lock. With release and acquire alone
//!   a write may take effect after the read that follows it, so that neither side sees the other.
//!
//! Where news is for one waiter, the wake-up is a *baton*: a woken waiter that cannot use it passes it on when it leaves.
//!
//! # The two sides of a queue
//!
//! > While a head is published, either a thread searches, or a waiter is armed for that head's deadline
//! > or for an earlier moment, or there is no waiter.
//!
//! Waiters are listed under a lock, for which all insertions would contend. So two numbers are outside it: `searching`,
//! and `wake_before`, the earliest moment for which a waiter is armed. Every access below is sequentially consistent:
//!
//! | the inserting thread | the thread that waits or leaves |
//! |---|---|
//! | 1. publishes the head | 1. lists itself and sets `wake_before` (to wait) |
//! | 2. reads `searching`; not zero: done | 2. decrements `searching`; others remain: done |
//! | 3. reads `wake_before`; not later than the head: done | 3. reads the heads once more |
//! | 4. wakes a waiter, under the lock | 4. nearer than `wake_before`: searches on, or wakes a waiter |
//!
//! An inserting thread that finds a searcher leaves the wake-up to it, and a searcher leaves it to the other searchers: the
//! last of them decides. If the inserting thread finds none, it reads `wake_before` as the waiter set it.
//!
//! A thread that moves a head back, removes it, or takes it without a search wakes no thread: the waiter armed for
//! it wakes too early, once. `wake_before` is zero while no thread waits: all are busy then, and look when they are done.

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
    /// How many threads are in `take` and awake.
    searching: CachePadded<AtomicUsize>,
    /// The smallest moment for which a waiter is armed; zero if no thread waits.
    wake_before: CachePadded<AtomicU64>,
    /// How often all were notified. It is written under the lock of the list.
    rounds: AtomicU64,
    /// Each waiter with the moment for which it is armed. The leader is first, and the followers are at the end: the last to
    /// come is woken first, because its core is still warm.
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

    /// Ends the search of a thread that leaves. Returns the waiter that the caller has to wake for the elements that are left.
    #[inline]
    pub(super) fn end_search(&self, head: impl FnOnce() -> Timestamp) -> Option<Waker> {
        if self.searching.fetch_sub(1, Ordering::SeqCst) > 1 {
            return None;
        }
        self.notify(head())
    }

    /// Returns the waiter that the caller has to wake for an element that is due at `due`.
    #[inline]
    #[must_use]
    pub(super) fn notify(&self, due: Timestamp) -> Option<Waker> {
        if self.searching.load(Ordering::SeqCst) > 0 || self.is_covered(due) {
            return None;
        }
        self.notify_one(due)
    }

    /// Returns `true` if a waiter is armed for that moment or an earlier one, or no thread waits.
    #[inline]
    pub(super) fn is_covered(&self, due: Timestamp) -> bool {
        due.as_nanos() >= self.wake_before.load(Ordering::SeqCst)
    }

    #[cold]
    fn notify_one(&self, due: Timestamp) -> Option<Waker> {
        let mut list = self.list.lock();
        // Both may have changed while this thread waited for the lock.
        if self.searching.load(Ordering::SeqCst) > 0 || self.is_covered(due) {
            return None;
        }
        let woken = list.take_last()?;
        self.searching.fetch_add(1, Ordering::SeqCst);
        self.publish_wake_before(&list);
        Some(woken)
    }

    /// A thread reads the round before it looks for news of [`notify_all`](Self::notify_all).
    #[inline]
    pub(super) fn round(&self) -> u64 {
        self.rounds.load(Ordering::SeqCst)
    }

    /// Begins a new round and returns all waiters, which the caller has to wake.
    #[must_use]
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
        // A thread moves between the two under the lock, so none is counted twice.
        let list = self.list.lock();
        list.len() + self.searching.load(Ordering::SeqCst)
    }

    /// Returns how many threads sleep, or are about to.
    pub(super) fn listed(&self) -> usize {
        self.list.lock().len()
    }

    /// Lists a thread that searched. `first` and `second` are the next deadlines as it has seen them, and `round` is the
    /// [round](Self::round) that it read before. Returns its place, with the moment when it wakes by itself, and `true` if it
    /// must look again instead of sleeping: a new round has begun, or it was the last searcher, and found a head for which no
    /// waiter is armed.
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

    /// Ends a wait: the thread searches again. Returns its waker if no notifier has used it.
    pub(super) fn end_wait(&self, id: PlaceId) -> Option<Waker> {
        let mut list = self.list.lock();
        // If it is not listed, its notifier has counted it as searching already.
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
