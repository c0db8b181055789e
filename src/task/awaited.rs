//! A task as its waiters see it. A waiter waits until the task has ended, or until the body of a cancelled task has
//! returned.
//!
//! Under the task's lock, a waiter checks whether the task has ended, and if it has not, registers a waker. Under the
//! same lock, the thread that ends the task publishes the end and takes out the wakers. So no wake-up is lost. Cloning
//! or dropping a waker runs user code, so a waker is cloned and dropped only with no lock held.

use std::task::Waker;

use super::{Task, cell::Extras, state::Stage};
use crate::{unwind::discard, wait::Place};

impl Task {
    /// Returns `true` if the task has ended. If not, registers a clone of `waker`, to be called when the task ends.
    pub(crate) fn poll_done(&self, place: &mut Place, waker: &Waker) -> bool {
        let keep = &mut |extras: &mut Extras, waker| extras.waiters.register(place, waker);
        self.poll_until(Stage::is_done, waker, keep)
    }

    /// Returns `true` if the task has ended and its body is not running. For a series that was cancelled during a run,
    /// `true` also means that its closure has been dropped.
    pub(crate) fn has_left(&self) -> bool {
        self.with(|parts| parts.stage.has_left())
    }

    /// Like `poll_done`, but returns `true` only when `has_left` does.
    pub(crate) fn poll_left(&self, place: &mut Place, waker: &Waker) -> bool {
        let keep = &mut |extras: &mut Extras, waker| extras.waiters.register(place, waker);
        self.poll_until(Stage::has_left, waker, keep)
    }

    pub(crate) fn forget(&self, place: &mut Place) {
        self.drop_from_extras(&mut |extras| extras.waiters.leave(place));
    }

    /// Like `poll_done`, for the async task that awaits the future. Keeps only the waker of the last poll.
    pub(crate) fn poll_awaited(&self, waker: &Waker) -> bool {
        self.poll_until(Stage::is_done, waker, &mut |extras, waker| extras.awaiting.replace(waker))
    }

    /// Drops the waker of an async task that no longer awaits the future.
    pub(crate) fn deregister_awaiting(&self) {
        self.drop_from_extras(&mut |extras| extras.awaiting.take());
    }

    /// Returns `true` if `is_there` says that the caller need not wait. Otherwise calls `keep`, which registers a clone
    /// of `waker` and returns the waker that the clone replaces, if any.
    fn poll_until(
        &self,
        is_there: fn(Stage) -> bool,
        waker: &Waker,
        keep: &mut dyn FnMut(&mut Extras, Waker) -> Option<Waker>,
    ) -> bool {
        if self.with(|parts| is_there(parts.stage)) {
            return true;
        }
        let waker = waker.clone();
        let (is_now, unused) = self.with(|parts| match is_there(parts.stage) {
            true => (true, Some(waker)),
            false => (false, keep(parts.extras(), waker)),
        });
        discard(unused);
        is_now
    }

    /// Takes a waker out under the task's lock, and drops it after releasing the lock.
    fn drop_from_extras(&self, take: &mut dyn FnMut(&mut Extras) -> Option<Waker>) {
        discard(self.with(|parts| parts.extras_if_any().and_then(take)));
    }
}
