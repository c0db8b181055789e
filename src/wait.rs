//! Waiting: who waits for something, and how a thread waits without a runtime.
//!
//! Blocking and awaiting are the same thing here. Whatever can be waited for has a *poll*: a
//! function that gives the answer, or else keeps the [`Waker`] it was given and wakes it once
//! the answer is there. A future passes its context's waker; a blocked thread passes the one
//! that unparks it ([`block_on`]).
//!
//! A poll keeps the waker under the same lock under which the answer is set, so an answer is
//! either seen by the poll or finds the waker. Cloning and dropping a waker is user code, so
//! it happens outside that lock: clone first, then lock; what the list gives back is dropped
//! after the lock is released.

use std::task::Waker;

use crate::{
    sync::{Parker, spin},
    time::{Clock, Timestamp},
};

/// The wakers of everyone who waits for one thing.
///
/// A thread waits for one thing at a time, so its waker names it. A future has a [`Place`] of its
/// own: several that one task awaits come with the same waker, and one of them may leave.
#[derive(Debug, Default)]
pub(crate) struct WaitList {
    waiters: Vec<(Option<Place>, Waker)>,
    last: u64,
}

/// Where a future stands on a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(u64);

impl WaitList {
    /// Keeps the waker, once. Gives it back if its task is on the list already.
    pub(crate) fn register(&mut self, waker: Waker) -> Option<Waker> {
        if self.index_of(&waker).is_some() {
            return Some(waker);
        }
        self.waiters.push((None, waker));
        None
    }

    /// Takes off the list who no longer waits.
    pub(crate) fn deregister(&mut self, waker: &Waker) -> Option<Waker> {
        let index = self.index_of(waker)?;
        Some(self.waiters.swap_remove(index).1)
    }

    /// Keeps the waker for the future that has this place, or gives it one. Gives back the waker
    /// that it had there.
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

    /// The future leaves its place.
    pub(crate) fn leave(&mut self, place: &mut Option<Place>) -> Option<Waker> {
        let place = place.take()?;
        let index = self.waiters.iter().position(|(at, _)| *at == Some(place))?;
        Some(self.waiters.swap_remove(index).1)
    }

    /// The one who has waited longest, roughly, to be woken once the lock is released.
    pub(crate) fn take_one(&mut self) -> Option<Waker> {
        if self.waiters.is_empty() { None } else { Some(self.waiters.remove(0).1) }
    }

    /// Everyone, to be woken once the lock is released.
    pub(crate) fn take(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.waiters).into_iter().map(|(_, waker)| waker).collect()
    }

    fn index_of(&self, waker: &Waker) -> Option<usize> {
        self.waiters.iter().position(|(place, known)| place.is_none() && known.will_wake(waker))
    }
}

/// Blocks the thread until `poll` has an answer, or until the moment `deadline` has come.
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
        // Read before the poll, so that what happens in between is not called late.
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

/// Blocks until it is there, looking on for a while before it sleeps: see
/// [`spin`]. `is_there` is a look that leaves nothing behind.
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
    spin::spin_until(|| (is_there() || clock.read() >= until).then_some(()));
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
