//! Waiting: the wakers of those who wait, and how a thread waits without a runtime.
//!
//! Blocking and awaiting are the same thing here. Whatever can be waited for has a *poll*: a function
//! that returns the answer, or else keeps the [`Waker`] it was given, and wakes it once the answer is
//! there. A future passes the waker of its context; a blocked thread passes the one that unparks it
//! ([`block_on`]).
//!
//! A poll keeps the waker under the same lock under which the answer is published, so either the poll
//! sees the answer or the answer finds the waker. Cloning and dropping a waker is user code, so it
//! happens outside that lock: a poll clones first and locks then, and drops what the list returns
//! after releasing the lock.
//!
//! A wait that can be given up has to take its waker off the list again. Where a token ends it,
//! [`CancellationToken::block_unless_raised`](crate::CancellationToken) does that for the token.

use std::task::Waker;

use crate::{
    sync::{Parker, spin_until},
    time::{Clock, Timestamp},
};

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
        Some(self.waiters.swap_remove(index).1)
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
        Some(self.waiters.swap_remove(index).1)
    }

    /// Takes roughly the oldest waker, for the caller to wake after releasing the lock.
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
