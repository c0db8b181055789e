//! Waiting: the wakers of those who wait, and how a thread waits without a runtime.
//!
//! Blocking and awaiting are the same thing here. Whatever can be waited for has a *poll*: a function
//! that returns the answer, or else keeps the [`Waker`] it was given, and wakes it once the answer is
//! there. A future passes the waker of its context; a blocked thread passes the one that unparks it
//! ([`block_on`]).
//!
//! Nearly all of them are a [`Watched`] state. Its poll looks for the answer and keeps the waker in one
//! step, under the lock under which the answer is published, so either the poll sees the answer or the
//! thread that publishes it finds the waker. Cloning, waking and dropping a waker is user code, so it
//! happens outside that lock. Elsewhere a poll does the same by hand, with a [`WaitList`]: the task
//! (`task::awaited`), whose node has one lock for everything.
//!
//! A wait that can be given up has to take its waker off the list again. Where a token ends it,
//! [`CancellationToken::block_unless_raised`](crate::CancellationToken) does that for the token.

use std::{
    ops::{Deref, DerefMut},
    task::Waker,
};

use crate::{
    sync::{Mutex, MutexGuard, Parker, rank, spin_until},
    time::{Clock, Timestamp},
    unwind::{self, discard},
};

/// A state under a lock, and the wakers of those who wait until a poll finds an answer in it.
#[derive(Debug, Default)]
pub(crate) struct Watched<T, const RANK: u8 = { rank::LEAF }>(Mutex<WatchedState<T>, RANK>);

#[derive(Debug, Default)]
struct WatchedState<T> {
    state: T,
    waiters: WaitList,
}

/// Access to the state; releases the lock when dropped. A thread that brings an answer ends with one of
/// the methods here.
pub(crate) struct WatchedGuard<'a, T>(MutexGuard<'a, WatchedState<T>>);

impl<T, const RANK: u8> Watched<T, RANK> {
    pub(crate) fn new(state: T) -> Self {
        Self(Mutex::new(WatchedState { state, waiters: WaitList::default() }))
    }

    #[cfg_attr(debug_assertions, track_caller)]
    pub(crate) fn lock(&self) -> WatchedGuard<'_, T> {
        WatchedGuard(self.0.lock())
    }

    /// The poll of a thread: returns what `look` finds, and keeps the waker if that is nothing. `look` is
    /// called **under the lock**. A thread that has its answer is not on the list any more.
    pub(crate) fn poll<R>(
        &self,
        waker: &Waker,
        look: impl FnOnce(&mut T) -> Option<R>,
    ) -> Option<R> {
        self.poll_with(waker, look, |waiters, kept| match kept {
            Some(kept) => waiters.register(kept),
            None => waiters.deregister(waker),
        })
    }

    /// The poll of a future, which has a place of its own on the list.
    pub(crate) fn poll_at<R>(
        &self,
        place: &mut Option<Place>,
        waker: &Waker,
        look: impl FnOnce(&mut T) -> Option<R>,
    ) -> Option<R> {
        self.poll_with(waker, look, |waiters, kept| match kept {
            Some(kept) => waiters.register_at(place, kept),
            None => waiters.leave(place),
        })
    }

    /// `list` keeps the waker, or takes the one off the list that was kept before. It returns the one that
    /// is not needed.
    fn poll_with<R>(
        &self,
        waker: &Waker,
        look: impl FnOnce(&mut T) -> Option<R>,
        list: impl FnOnce(&mut WaitList, Option<Waker>) -> Option<Waker>,
    ) -> Option<R> {
        let waker = waker.clone();
        let mut watched = self.0.lock();
        let answer = look(&mut watched.state);
        let (kept, unused) =
            if answer.is_none() { (Some(waker), None) } else { (None, Some(waker)) };
        let before = list(&mut watched.waiters, kept);
        drop(watched);
        discard(unused);
        discard(before);
        answer
    }

    /// Takes a thread that waits no longer off the list. Returns `false` if it has been woken already.
    pub(crate) fn forget(&self, waker: &Waker) -> bool {
        let kept = self.0.lock().waiters.deregister(waker);
        let was_listed = kept.is_some();
        discard(kept);
        was_listed
    }

    /// Takes a future that waits no longer off the list.
    pub(crate) fn forget_at(&self, place: &mut Option<Place>) {
        if place.is_some() {
            let kept = self.0.lock().waiters.leave(place);
            discard(kept);
        }
    }
}

impl<T> WatchedGuard<'_, T> {
    /// Releases the lock, and wakes the one that has waited longest, if any.
    pub(crate) fn wake_one(mut self) {
        let woken = self.0.waiters.take_one();
        drop(self);
        unwind::wake_all(woken);
    }

    /// Releases the lock, and wakes all that wait.
    pub(crate) fn wake_all(self) {
        unwind::wake_all(self.take_wakers());
    }

    /// Releases the lock. Returns the wakers of all that wait, for a caller that wakes them later.
    #[must_use]
    pub(crate) fn take_wakers(mut self) -> Vec<Waker> {
        self.0.waiters.take()
    }
}

impl<T> Deref for WatchedGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.state
    }
}

impl<T> DerefMut for WatchedGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0.state
    }
}

/// The wakers of all threads and futures that wait for one thing.
///
/// A thread waits for one thing at a time, so its waker identifies it. A future has a [`Place`] of its
/// own: several that one asynchronous task awaits come with the same waker, and one of them may leave.
#[derive(Debug, Default)]
pub(crate) struct WaitList {
    waiters: Vec<(Option<Place>, Waker)>,
    last: u64,
}

/// Identifies a future on a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(u64);

impl WaitList {
    /// Keeps the waker of a thread. Returns it if the thread is on the list already.
    pub(crate) fn register(&mut self, waker: Waker) -> Option<Waker> {
        if self.index_of(&waker).is_some() {
            return Some(waker);
        }
        self.waiters.push((None, waker));
        None
    }

    /// Takes the waker of a thread off the list.
    pub(crate) fn deregister(&mut self, waker: &Waker) -> Option<Waker> {
        let index = self.index_of(waker)?;
        Some(self.waiters.remove(index).1)
    }

    /// Keeps the waker of the future that has this place, or gives the future a place. Returns the
    /// waker that it had there before.
    pub(crate) fn register_at(&mut self, place: &mut Option<Place>, waker: Waker) -> Option<Waker> {
        let mut waiters = self.waiters.iter_mut();
        if let Some((_, known)) = waiters.find(|(at, _)| at.is_some() && *at == *place) {
            return Some(std::mem::replace(known, waker));
        }
        self.last += 1;
        *place = Some(Place(self.last));
        self.waiters.push((*place, waker));
        None
    }

    /// Takes the waker of a future off the list.
    pub(crate) fn leave(&mut self, place: &mut Option<Place>) -> Option<Waker> {
        let place = place.take()?;
        let index = self.waiters.iter().position(|(at, _)| *at == Some(place))?;
        Some(self.waiters.remove(index).1)
    }

    /// Takes the oldest waker, for the caller to wake after releasing the lock.
    pub(crate) fn take_one(&mut self) -> Option<Waker> {
        if self.waiters.is_empty() { None } else { Some(self.waiters.remove(0).1) }
    }

    /// Takes all wakers, for the caller to wake after releasing the lock.
    pub(crate) fn take(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.waiters).into_iter().map(|(_, waker)| waker).collect()
    }

    fn index_of(&self, waker: &Waker) -> Option<usize> {
        self.waiters.iter().position(|(place, known)| place.is_none() && known.will_wake(waker))
    }
}

/// Blocks the thread until `poll` has an answer, or until `deadline`.
///
/// The poll is asked once more when the time is up: an answer that is there counts.
pub(crate) fn block_until<R>(
    clock: &Clock,
    deadline: Timestamp,
    mut poll: impl FnMut(&Waker) -> Option<R>,
) -> Option<R> {
    let parker = Parker::current();
    let wait = clock.wait(&parker);
    loop {
        // Read before the poll, so that an answer that comes in between is not called late.
        let is_over = deadline < Timestamp::NEVER && clock.read() >= deadline;
        if let Some(answer) = poll(parker.waker()) {
            return Some(answer);
        }
        if is_over {
            return None;
        }
        wait.park_until(deadline);
    }
}

/// As [`block_until`], but spins for a while before it sleeps; see [`Parker::spin`]. `is_there`
/// returns `true` once `poll` has an answer, and registers nothing.
pub(crate) fn block_soon<R>(
    clock: &Clock,
    deadline: Timestamp,
    is_there: impl Fn() -> bool,
    poll: impl FnMut(&Waker) -> Option<R>,
) -> Option<R> {
    if is_there() || clock.is_manual() {
        return block_until(clock, deadline, poll);
    }
    let (parker, start) = (Parker::current(), clock.read());
    let until = start.after(parker.spin().span()).min(deadline);
    spin_until(|| (is_there() || clock.read() >= until).then_some(()));
    let answer = block_until(clock, deadline, poll);
    parker.spin().learn(clock.read().since(start));
    answer
}

/// Blocks the thread until `poll` has an answer.
pub(crate) fn block_on<R>(clock: &Clock, mut poll: impl FnMut(&Waker) -> Option<R>) -> R {
    loop {
        if let Some(answer) = block_until(clock, Timestamp::NEVER, &mut poll) {
            return answer;
        }
    }
}

#[cfg(test)]
#[cfg(not(any(shuttle, loom)))]
mod tests {
    use super::*;

    /// What all of the polls here look for: a number other than zero.
    fn find(number: &mut u32) -> Option<u32> {
        (*number > 0).then_some(*number)
    }

    #[test]
    fn who_has_an_answer_is_not_on_the_list() {
        let (watched, parker) = (Watched::<u32>::default(), Parker::current());
        let mut places = [None; 2];
        for _ in 0..2 {
            assert_eq!(watched.poll(parker.waker(), find), None);
            for place in &mut places {
                assert_eq!(watched.poll_at(place, parker.waker(), find), None);
            }
        }
        *watched.lock() = 7;
        assert_eq!(watched.poll_at(&mut places[0], parker.waker(), find), Some(7));
        assert_eq!(places[0], None);
        assert_eq!(watched.poll(parker.waker(), find), Some(7));
        assert!(!watched.forget(parker.waker()));
        assert_eq!(watched.lock().take_wakers().len(), 1, "the other future waits on");
    }

    #[test]
    fn one_that_waits_no_longer_takes_nothing_away_from_the_others() {
        let (watched, parker) = (Watched::<u32>::default(), Parker::current());
        let mut places = [None; 2];
        for place in &mut places {
            assert_eq!(watched.poll_at(place, parker.waker(), find), None);
        }
        assert_eq!(watched.poll(parker.waker(), find), None);
        watched.forget_at(&mut places[0]);
        watched.lock().wake_one();
        assert!(watched.forget(parker.waker()), "the second future came before the thread");
        assert!(watched.lock().take_wakers().is_empty());
    }
}
