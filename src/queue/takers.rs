//! Who looks for an element, who sleeps until when, and who is woken.
//!
//! A thread in `take` either *searches*, that is, it is awake and will look at the heads, or it
//! sleeps, armed with a moment at which it wakes by itself. Two threads are armed at most: the
//! **leader** until the first deadline and its **deputy** until the second; the others, the
//! **followers**, sleep without limit. So one deadline wakes one thread, however many there are,
//! and a leader that leaves with its element has nobody to wake: the deputy leads already.
//!
//! A task that awaits is one of them, too: it searches while it is polled, sleeps between two polls,
//! and is woken for its moment by an alarm ([`awaiting`](super::awaiting)).
//!
//! ```text
//!               lie_down                   its moment, or rouse
//!   searching ────────────▶ asleep, armed ──────────────────────▶ searching
//!       │  ▲
//!       │  └── arrive
//!       └── leave, with an element or without
//! ```
//!
//! # Who wakes somebody
//!
//! * *Whoever makes a head nearer*, after publishing it: if nobody searches and nobody is armed
//!   early enough.
//! * *Whoever leaves with an element*, for what it leaves behind: likewise. Of several searchers it
//!   is the last to leave. This is the baton.
//! * *Whoever empties a closed queue*: everyone, for there will be nothing more.
//! * *Whoever changes how long one may wait*: everyone, to ask for the limit again.
//!
//! News for everyone also concerns a thread that has looked and is not listed yet. So each such
//! waking is a *round*, counted under the gate: a thread reads the number before it looks, and one
//! that finds another when it lies down looks again.
//!
//! Nothing else wakes anybody. One who is woken searches from that moment, by the hand of the one
//! who wakes it; until it has looked nobody else is woken.
//!
//! # The invariant, and why nobody is missed
//!
//! > A published head is not forgotten: as long as it is there, somebody searches, or somebody
//! > sleeps who is armed for it or for an earlier moment, or nobody sleeps.
//!
//! Who sleeps is listed under a lock, the *gate*, but an offer must not take a lock that others
//! take. So two numbers stand outside, `searching` and `wake_before`, the smallest moment for
//! which a sleeper is armed, and each side first writes what the other reads:
//!
//! | the one who offers | the one who sleeps or leaves |
//! |---|---|
//! | 1. publishes the head | 1. lists itself, sets `wake_before` (to sleep) |
//! | 2. reads `searching`; not zero: done | 2. takes itself off `searching`; others left: done |
//! | 3. reads `wake_before`; not later: done | 3. reads the heads once more |
//! | 4. wakes somebody, under the gate | 4. nearer than `wake_before`: searches on, or wakes somebody |
//!
//! All of these are sequentially consistent, so there is one order of them. If the offer reads
//! `searching` before the last searcher takes itself off, that one reads the heads afterwards,
//! and sees the offer's. If it reads it later it finds zero, and `wake_before` as it was listed.
//! With other searchers left the question passes to them, and the last of them answers it.
//!
//! A head that is pushed back, removed, or taken by one who did not search wakes nobody: who is
//! armed for it wakes too early, once. `wake_before` is zero when nobody sleeps: all are busy, and
//! look when they are not.

use std::{collections::BTreeMap, task::Waker};

use crossbeam_utils::CachePadded;

use crate::{
    sync::{
        Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Timestamp,
};

/// See the [module](self).
pub(super) struct Takers {
    /// How many threads are in `take` and awake.
    searching: CachePadded<AtomicUsize>,
    /// The smallest moment that a sleeper is armed for; zero if nobody sleeps.
    wake_before: CachePadded<AtomicU64>,
    /// How often everyone was roused; written under the gate.
    rounds: AtomicU64,
    gate: Mutex<Gate>,
}

#[derive(Default)]
struct Gate {
    /// The leader is first. The followers are at the end, and of these the one that lay down last
    /// is the first to be woken: its core is still warm.
    sleepers: BTreeMap<SleeperId, Waker>,
    next: u64,
}

/// Names a thread while it sleeps once. In the order of the moments for which they are armed, and
/// of lying down.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SleeperId {
    armed: Timestamp,
    number: u64,
}

/// How a thread is to sleep.
pub(super) struct Sleep {
    pub(super) id: SleeperId,
    pub(super) until: Timestamp,
    /// Whether it was the last to search, and so has to look once more.
    pub(super) is_last: bool,
    /// Whether everyone has been roused since it read the round.
    pub(super) is_late: bool,
}

impl Takers {
    pub(super) fn new() -> Self {
        let (searching, wake_before) = (AtomicUsize::new(0), AtomicU64::new(0));
        Self {
            searching: CachePadded::new(searching),
            wake_before: CachePadded::new(wake_before),
            rounds: AtomicU64::new(0),
            gate: Mutex::default(),
        }
    }

    /// A thread begins to search.
    #[inline]
    pub(super) fn arrive(&self) {
        // Ordering: see the head of the module; so everywhere in this file.
        self.searching.fetch_add(1, Ordering::SeqCst);
    }

    /// Whether the calling thread is the only one that searches; a guess.
    pub(super) fn is_alone(&self) -> bool {
        self.searching.load(Ordering::SeqCst) == 1
    }

    /// A thread no longer searches, and does not sleep either. Gives whom to wake for what is
    /// left.
    #[inline]
    pub(super) fn leave(&self, head: impl FnOnce() -> Timestamp) -> Option<Waker> {
        if self.searching.fetch_sub(1, Ordering::SeqCst) > 1 {
            return None;
        }
        self.rouse(head())
    }

    /// Something waits for the moment `due`. Gives whom to wake, if anybody.
    #[inline]
    #[must_use]
    pub(super) fn rouse(&self, due: Timestamp) -> Option<Waker> {
        if self.searching.load(Ordering::SeqCst) > 0 || self.is_covered(due) {
            return None;
        }
        self.rouse_one(due)
    }

    /// Whether somebody is armed for that moment or an earlier one, or nobody sleeps.
    #[inline]
    pub(super) fn is_covered(&self, due: Timestamp) -> bool {
        due.as_nanos() >= self.wake_before.load(Ordering::SeqCst)
    }

    #[cold]
    fn rouse_one(&self, due: Timestamp) -> Option<Waker> {
        let mut gate = self.gate.lock();
        // It may all have changed while this thread waited for the gate.
        if self.searching.load(Ordering::SeqCst) > 0 || self.is_covered(due) {
            return None;
        }
        let (_, woken) = gate.sleepers.pop_last()?;
        self.searching.fetch_add(1, Ordering::SeqCst);
        self.set_wake_before(&gate);
        Some(woken)
    }

    /// To be read by a thread before it looks at anything of which [`rouse_all`](Self::rouse_all)
    /// brings news: one that lies down with an old round has missed some.
    #[inline]
    pub(super) fn round(&self) -> u64 {
        self.rounds.load(Ordering::SeqCst)
    }

    /// Everyone who sleeps.
    #[must_use]
    pub(super) fn rouse_all(&self) -> Vec<Waker> {
        let mut gate = self.gate.lock();
        self.rounds.fetch_add(1, Ordering::SeqCst);
        self.searching.fetch_add(gate.sleepers.len(), Ordering::SeqCst);
        let woken = std::mem::take(&mut gate.sleepers);
        self.set_wake_before(&gate);
        drop(gate);
        woken.into_values().collect()
    }

    /// How many threads are in `take` and have found nothing so far, asleep or awake.
    pub(super) fn count(&self) -> usize {
        // From awake to asleep and back one goes under the gate, so nobody is counted twice.
        let gate = self.gate.lock();
        gate.sleepers.len() + self.searching.load(Ordering::SeqCst)
    }

    /// A thread that searched lies down. `first` and `second` are the next deadlines, as it has
    /// seen them, and `round` is the [round](Self::round) it had read before.
    pub(super) fn lie_down(
        &self,
        waker: Waker,
        [first, second]: [Timestamp; 2],
        round: u64,
    ) -> Sleep {
        let mut gate = self.gate.lock();
        gate.next += 1;
        let until = gate.moment_for(first, second);
        let id = SleeperId { armed: until, number: gate.next };
        gate.sleepers.insert(id, waker);
        self.set_wake_before(&gate);
        let is_last = self.searching.fetch_sub(1, Ordering::SeqCst) == 1;
        Sleep { id, until, is_last, is_late: self.round() != round }
    }

    /// A thread is up, for whatever reason, and searches. Gives back its waker, if nobody used
    /// it.
    pub(super) fn get_up(&self, id: SleeperId) -> Option<Waker> {
        let mut gate = self.gate.lock();
        // Not there: it was roused, and counted then.
        let waker = gate.sleepers.remove(&id)?;
        self.searching.fetch_add(1, Ordering::SeqCst);
        self.set_wake_before(&gate);
        Some(waker)
    }

    fn set_wake_before(&self, gate: &Gate) {
        let smallest = gate.sleepers.first_key_value().map(|(id, _)| id.armed);
        let smallest = smallest.map_or(0, Timestamp::as_nanos);
        self.wake_before.store(smallest, Ordering::SeqCst);
    }
}

impl Gate {
    /// For which of the next two deadlines one who lies down is to be armed, if for any.
    fn moment_for(&self, first: Timestamp, second: Timestamp) -> Timestamp {
        let mut armed = self.sleepers.keys().map(|id| id.armed);
        let [leader, deputy] = [armed.next(), armed.next()];
        if leader.is_none_or(|moment| moment > first) {
            first
        } else if deputy.is_none_or(|moment| moment > second) {
            second
        } else {
            Timestamp::NEVER
        }
    }
}
