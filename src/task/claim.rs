//! A task as those see it who wait for it: the holder of its future, who takes the result, and the
//! pool's detection of deadlocks.
//!
//! A waiter looks for the end and leaves its waker in one step, under the task's lock, under which the
//! end is published and the wakers are taken out. So no waiter is missed. Wakers are cloned before
//! the lock is taken and dropped after it has been released: both are user code.

use std::task::Waker;

use super::{Drops, Job, Runnable, Task, TaskState, cell::Extras, state::Stage};
use crate::{TaskError, sync::Arc, unwind::discard};

/// What a worker can wait for, as the pool's detection of deadlocks sees it.
pub(crate) trait Awaited: Send + Sync {
    /// Returns `true` if it is done, so that whoever waits for it goes on.
    fn is_done(&self) -> bool;
    /// Returns `true` if it can become done although no worker of the pool runs anything, in a pool that
    /// has a timer thread or has none.
    fn may_end_without_worker(&self, has_timer_thread: bool) -> bool;
    /// Returns `true` if no worker has begun what is awaited, so that another worker could do it.
    fn needs_free_worker(&self) -> bool;
}

/// A task, as the holder of its future sees it.
pub(crate) trait Claim<T>: Runnable {
    /// Takes the result; `None` as long as there is none. A result can be taken once; the error of a
    /// task that was cancelled is there for every call.
    fn claim(&self) -> Option<Result<T, TaskError>>;

    /// As [`poll_done`](Runnable::poll_done), for the asynchronous task that awaits the future: only
    /// the last of its wakers is kept.
    fn poll_awaited(&self, waker: &Waker) -> bool;
    /// Drops the waker of an asynchronous task that no longer awaits the future.
    fn deregister_awaiting(&self);

    /// Drops the result, now or as soon as it is there: nobody will claim it.
    fn abandon(&self, drops: Drops<'_>);

    fn erase(self: Arc<Self>) -> Arc<dyn Runnable>;
}

impl<J: Job> Task<J> {
    /// Returns `true` if the task `is_there`, as far as somebody waits for. If not, `keep` keeps the
    /// waker, and returns one that is not needed.
    pub(super) fn poll_until(
        &self,
        is_there: fn(&Stage<J, J::Output>) -> bool,
        waker: &Waker,
        keep: fn(&mut Extras, Waker) -> Option<Waker>,
    ) -> bool {
        if is_there(self.0.lock().stage()) {
            return true;
        }
        let waker = waker.clone();
        let mut cell = self.0.lock();
        let is_now = is_there(cell.stage());
        let unused = if is_now { Some(waker) } else { keep(cell.extras(), waker) };
        drop(cell);
        discard(unused);
        is_now
    }

    /// Takes a waker out, and drops it after releasing the lock.
    pub(super) fn drop_from_extras(&self, take: impl FnOnce(&mut Extras) -> Option<Waker>) {
        let mut cell = self.0.lock();
        let taken = cell.extras_if_any().and_then(take);
        drop(cell);
        discard(taken);
    }
}

impl<J: Job> Claim<J::Output> for Task<J> {
    fn claim(&self) -> Option<Result<J::Output, TaskError>> {
        self.0.lock().stage().claim()
    }

    fn poll_awaited(&self, waker: &Waker) -> bool {
        self.poll_until(Stage::is_done, waker, |extras, waker| extras.awaiting.replace(waker))
    }

    fn deregister_awaiting(&self) {
        self.drop_from_extras(|extras| extras.awaiting.take());
    }

    fn abandon(&self, drops: Drops<'_>) {
        let mut cell = self.0.lock();
        let unclaimed = cell.stage().claim();
        if unclaimed.is_none() {
            cell.extras().is_abandoned = true;
        }
        drop(cell);
        self.discard(unclaimed, drops);
    }

    fn erase(self: Arc<Self>) -> Arc<dyn Runnable> {
        self
    }
}

impl<J: Job> Awaited for Task<J> {
    fn is_done(&self) -> bool {
        self.state().is_done()
    }

    fn may_end_without_worker(&self, has_timer_thread: bool) -> bool {
        Runnable::may_end_without_worker(self, has_timer_thread)
    }

    fn needs_free_worker(&self) -> bool {
        self.state() == TaskState::Scheduled
    }
}
