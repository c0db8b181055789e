//! Waiting: the wakers of waiters, and how a thread waits without a runtime.
//!
//! Blocking and awaiting are the same thing here. Each kind of wait has a *poll*: a function that returns the answer,
//! or else keeps the [`Waker`] it was given. The thread that supplies the answer calls that waker. A future passes the
//! waker of its context; a blocked thread passes the waker that unparks it ([`block_on`]).
//!
//! Most kinds of wait poll a [`Watched`] state. The poll looks for the answer and keeps the waker in one step, under a
//! lock that the thread with the answer also takes. So no wake-up is lost: the poll and that thread are the two sides
//! of the argument in `queue::waiters`. Cloning, calling or dropping a waker runs user code, so a thread does none of
//! these under the lock.
//!
//! A task has only one lock. So its [`WaitList`] is under that lock, and not in a [`Watched`] state; its polls take the
//! same steps (`task::awaited`).

use std::{
    mem,
    ops::{Deref, DerefMut},
    task::Waker,
};

use crate::{
    sync::{Mutex, MutexGuard, Parker, rank, spin_until},
    time::{Clock, Timestamp, Wakers},
    unwind::{self, discard},
};

/// A state under a lock, and the wakers of the waiters whose polls have found no answer in it.
#[derive(Debug, Default)]
pub(crate) struct Watched<T, const RANK: u8 = { rank::LEAF }>(Mutex<WatchedState<T>, RANK>);

#[derive(Debug, Default)]
struct WatchedState<T> {
    state: T,
    waiters: WaitList,
}

/// Access to the state under the lock. A thread that supplies an answer has to release the lock with one of the guard's
/// methods, so that the waiters are woken.
pub(crate) struct WatchedGuard<'a, T>(MutexGuard<'a, WatchedState<T>>);

impl<T, const RANK: u8> Watched<T, RANK> {
    pub(crate) fn new(state: T) -> Self {
        Self(Mutex::new(WatchedState { state, waiters: WaitList::default() }))
    }

    #[cfg_attr(debug_assertions, track_caller)]
    pub(crate) fn lock(&self) -> WatchedGuard<'_, T> {
        WatchedGuard(self.0.lock())
    }

    /// Calls `look` **under the lock**. If `look` finds an answer, returns the answer and takes the waiter off the
    /// list. If not, keeps a clone of the waker.
    pub(crate) fn poll<R>(
        &self,
        place: &mut Place,
        waker: &Waker,
        look: impl FnOnce(&mut T) -> Option<R>,
    ) -> Option<R> {
        let waker = waker.clone();
        let mut watched = self.0.lock();
        let answer = look(&mut watched.state);
        let unused = watched.waiters.note(answer.is_some(), place, waker);
        drop(watched);
        discard(unused);
        answer
    }

    /// Removes a waiter that gives up. Returns `true` if the waiter was still on the list; a woken waiter is not.
    #[inline(never)]
    pub(crate) fn forget(&self, place: &mut Place) -> bool {
        // The lock is released before the waker is dropped.
        let kept = if place.is_taken() { self.0.lock().waiters.leave(place) } else { None };
        let was_there = kept.is_some();
        discard(kept);
        was_there
    }
}

impl<T> WatchedGuard<'_, T> {
    /// Releases the lock, and wakes the waiter that has waited longest, if any.
    pub(crate) fn wake_one(mut self) {
        let woken = self.0.waiters.take_first();
        drop(self);
        unwind::wake_all(woken);
    }

    /// Releases the lock, and wakes all waiters.
    #[inline(never)]
    pub(crate) fn wake_all(self) {
        unwind::wake_all(self.take_wakers());
    }

    /// Releases the lock. Returns the wakers of all waiters, which the caller has to call.
    #[must_use]
    pub(crate) fn take_wakers(mut self) -> Vec<Waker> {
        self.0.waiters.take_all()
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

/// The wakers of all threads and futures that wait for one thing. They are in order of arrival, since all of them are
/// listed for the same moment.
pub(crate) type WaitList = Wakers;

/// The place of a waiter on a list, from its first poll until it has its answer or gives up. A waiter that was woken
/// for nothing gets its old place back. (A waker does not identify a waiter: several may share it.)
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place(u64);

impl Place {
    pub(crate) fn is_taken(self) -> bool {
        self.0 > 0
    }
}

impl WaitList {
    /// Puts a waiter's waker on the list. Returns the waiter's previous waker, if one was listed.
    pub(crate) fn register(&mut self, place: &mut Place, waker: Waker) -> Option<Waker> {
        if place.is_taken() {
            return self.put((Timestamp::PAST, place.0), waker);
        }
        (_, place.0) = self.add(Timestamp::PAST, waker);
        None
    }

    /// If the waiter has its answer, takes the waiter off the list; if not, keeps the waker. Returns the wakers that
    /// are no longer needed, which the caller drops after releasing the lock.
    pub(crate) fn note(
        &mut self,
        is_answered: bool,
        place: &mut Place,
        waker: Waker,
    ) -> [Option<Waker>; 2] {
        if is_answered {
            [self.leave(place), Some(waker)]
        } else {
            [self.register(place, waker), None]
        }
    }

    /// Takes a waiter off the list. Returns the waiter's waker, if one was listed.
    pub(crate) fn leave(&mut self, place: &mut Place) -> Option<Waker> {
        self.remove((Timestamp::PAST, mem::take(place).0))
    }
}

/// Blocks the thread until `poll` returns an answer, or until `deadline`. Polls one last time after the deadline.
pub(crate) fn block_until<R>(
    clock: &Clock,
    deadline: Timestamp,
    mut poll: impl FnMut(&Waker) -> Option<R>,
) -> Option<R> {
    let mut answer = None;
    park_until_there(clock, deadline, &mut |waker| {
        answer = poll(waker);
        answer.is_some()
    });
    answer
}

/// Parks the thread until `poll` returns `true`, or until `deadline`. Compiled once, for all kinds of wait.
fn park_until_there(clock: &Clock, deadline: Timestamp, poll: &mut dyn FnMut(&Waker) -> bool) {
    let parker = Parker::current();
    let wait = clock.wait(&parker);
    loop {
        // Read before the poll, so that an answer that comes in between does not count as late.
        let is_over = deadline < Timestamp::NEVER && clock.read() >= deadline;
        if poll(parker.waker()) || is_over {
            return;
        }
        wait.park_until(deadline);
    }
}

/// Like [`block_until`], but the thread first spins for a while (`Parker::spin`), unless the clock is manual.
/// `is_there` returns `true` once `poll` would return an answer; unlike `poll`, it keeps no waker.
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
    let until = start.after(parker.spin.get()).min(deadline);
    spin_until(|| (is_there() || clock.read() >= until).then_some(()));
    let answer = block_until(clock, deadline, poll);
    parker.learn(clock.read().since(start));
    answer
}

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

    /// Returns the answer that the polls here look for: a number other than zero.
    fn find(number: &mut u32) -> Option<u32> {
        (*number > 0).then_some(*number)
    }

    #[test]
    fn who_has_an_answer_is_not_on_the_list() {
        let (watched, parker) = (Watched::<u32>::default(), Parker::current());
        let mut places = [Place::default(); 2];
        for index in [0, 1, 0, 1] {
            assert_eq!(watched.poll(&mut places[index], parker.waker(), find), None);
        }
        *watched.lock() = 7;
        assert_eq!(watched.poll(&mut places[0], parker.waker(), find), Some(7));
        assert!(!places[0].is_taken());
        assert!(!watched.forget(&mut places[0]));
        assert_eq!(watched.lock().take_wakers().len(), 1, "the other one waits on");
        assert!(!watched.forget(&mut places[1]), "it has been woken");
    }

    #[test]
    fn one_that_was_woken_for_nothing_has_its_place_back() {
        let (watched, parker) = (Watched::<u32>::default(), Parker::current());
        let mut places = [Place::default(); 2];
        for place in &mut places {
            assert_eq!(watched.poll(place, parker.waker(), find), None);
        }
        watched.lock().wake_one();
        assert_eq!(watched.poll(&mut places[0], parker.waker(), find), None);
        watched.lock().wake_one();
        assert!(watched.forget(&mut places[1]), "the first was woken again");
        assert!(!watched.forget(&mut places[0]));
    }
}
