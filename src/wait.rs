//! Waiting: who waits for something, and how a thread waits without a runtime.
//!
//! Blocking and awaiting are the same thing here. Whatever can be waited for has a *poll*: a
//! function that gives the answer, or else keeps the [`Waker`] it was given and wakes it once
//! the answer is there. A future passes its context's waker; a blocked thread passes the one
//! that unparks it ([`block_on`]).
//!
//! A poll keeps the waker under the same lock under which the answer is set, so an answer is
//! either seen by the poll or finds the waker. Cloning and dropping a waker is foreign code, so
//! it happens outside that lock: clone first, then lock; what the list gives back is dropped
//! after the lock is released.

use std::task::Waker;

use crate::{
    sync::{Parker, patience},
    time::{Clock, Deadline},
};

/// The wakers of everyone who waits for one thing.
#[derive(Debug, Default)]
pub(crate) struct WaitList(Vec<Waker>);

impl WaitList {
    /// Keeps the waker, once. Gives it back if its task is on the list already.
    pub(crate) fn register(&mut self, waker: Waker) -> Option<Waker> {
        if self.0.iter().any(|known| known.will_wake(&waker)) {
            return Some(waker);
        }
        self.0.push(waker);
        None
    }

    /// Takes off the list who no longer waits.
    pub(crate) fn deregister(&mut self, waker: &Waker) -> Option<Waker> {
        let index = self.0.iter().position(|known| known.will_wake(waker))?;
        Some(self.0.swap_remove(index))
    }

    /// The one who has waited longest, roughly, to be woken once the lock is released.
    pub(crate) fn take_one(&mut self) -> Option<Waker> {
        if self.0.is_empty() { None } else { Some(self.0.remove(0)) }
    }

    /// Everyone, to be woken once the lock is released.
    pub(crate) fn take(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.0)
    }
}

/// Blocks the thread until `poll` has an answer, or until the moment `deadline` has come.
///
/// The poll is asked once more when the time is up: an answer that is there counts.
pub(crate) fn block_until<R>(
    clock: &Clock,
    deadline: Deadline,
    mut poll: impl FnMut(&Waker) -> Option<R>,
) -> Option<R> {
    let parker = Parker::current();
    let wait = clock.wait(&parker);
    loop {
        // Read before the poll, so that what happens in between is not called late.
        let is_over = deadline < Deadline::NEVER && clock.read() >= deadline;
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
/// [`patience`]. `is_there` is a look that leaves nothing behind.
pub(crate) fn block_soon<R>(
    clock: &Clock,
    deadline: Deadline,
    is_there: impl Fn() -> bool,
    poll: impl FnMut(&Waker) -> Option<R>,
) -> Option<R> {
    if is_there() || clock.is_manual() {
        return block_until(clock, deadline, poll);
    }
    let (parker, start) = (Parker::current(), clock.read());
    let until = start.after(parker.patience().span()).min(deadline);
    patience::look_on(|| (is_there() || clock.read() >= until).then_some(()));
    let answer = block_until(clock, deadline, poll);
    parker.patience().learn(clock.read().since(start));
    answer
}

/// Blocks the thread until `poll` has an answer.
pub(crate) fn block_on<R>(clock: &Clock, mut poll: impl FnMut(&Waker) -> Option<R>) -> R {
    loop {
        if let Some(answer) = block_until(clock, Deadline::NEVER, &mut poll) {
            return answer;
        }
    }
}
