//! Admission control outside the queue: the bound on pending tasks, and the handler for tasks that are not admitted.
//!
//! # Capacity
//!
//! If there is a bound, each pending task has a permit. The thread that takes the task out of the queue, to run it or
//! to drop it, releases the permit. A worker queues a task again even beyond the bound ([`force_acquire`]): the bound
//! must not end a series.
//!
//! A thread that releases a permit wakes one waiter, and that wake-up is a baton (`queue::waiters`): a waiter that
//! gives up at the same time passes it on ([`acquire_before`]). A waiter that wakes for another reason may acquire the
//! permit before the waiter that was woken for it. A waiter that has acquired a permit leaves the list, and no later
//! wake-up goes to that waiter. So no permit stays unused while a submitter waits.
//!
//! Once the queue is closed there is no bound: every submitter gets a permit, and the queue refuses the task and says
//! why. Under the capacity's lock, a submitter that finds no permit reads whether the queue is closed (`is_closed`, an
//! atomic), and if not, lists itself. The closing thread first closes the queue, and then takes that lock to
//! [wake](Capacity::wake_all) all listed submitters, so no submitter sleeps through the closing.
//!
//! Once listed, a submitter also checks whether its task's group was shut down. A thread that shuts a group down first
//! marks the group, under the group's lock, and then wakes all submitters. Those with a task of this group give up, so
//! as not to delay the group's end.
//!
//! [`force_acquire`]: Capacity::force_acquire
//! [`acquire_before`]: Capacity::acquire_before

use crate::{
    rejection::{RejectedExecutionHandler, Room},
    statistics::Totals,
    sync::atomic::{AtomicU64, Ordering},
    time::{Clock, Timestamp},
    unwind::{Callback, Replaceable},
    wait::{self, Place, Watched},
};

/// The permits for pending tasks, if there is a bound.
pub(crate) struct Capacity {
    pub(crate) bound: Option<usize>,
    /// The number of permits in use; stays 0 if there is no bound.
    acquired: Watched<usize>,
}

// Only pools with a bound call the functions that are not inlined, so other pools pay for a single test.
impl Capacity {
    pub(super) fn new(bound: Option<usize>) -> Self {
        Self { bound, acquired: Watched::default() }
    }

    /// Acquires a permit if one is left or the queue is closed. Returns `true` on success, or if there is no bound.
    #[inline]
    pub(super) fn try_acquire(&self, is_closed: impl FnOnce() -> bool) -> bool {
        self.bound.is_none_or(|bound| self.acquire(bound, is_closed))
    }

    #[inline(never)]
    fn acquire(&self, bound: usize, is_closed: impl FnOnce() -> bool) -> bool {
        grant(&mut self.acquired.lock(), bound, is_closed).is_some()
    }

    /// Acquires a permit even beyond the bound.
    pub(super) fn force_acquire(&self) {
        if self.bound.is_some() {
            *self.acquired.lock() += 1;
        }
    }

    /// Blocks until a permit is [acquired](Self::try_acquire), the deadline has passed, or `gives_up` returns `true`. A
    /// thread that makes `gives_up` true must do so before it [wakes](Self::wake_all) the submitters.
    pub(super) fn acquire_before(
        &self,
        clock: &Clock,
        deadline: Timestamp,
        is_closed: impl Fn() -> bool,
        gives_up: impl Fn() -> bool,
    ) -> Room {
        let Some(bound) = self.bound else { return Room::Acquired };
        let mut place = Place::default();
        let room = wait::block_until(clock, deadline, |waker| {
            let grant = |acquired: &mut usize| grant(acquired, bound, &is_closed);
            match self.acquired.poll(&mut place, waker, grant) {
                Some(()) => Some(Room::Acquired),
                // Asked last, once the waker is listed.
                None => gives_up().then_some(Room::GivenUp),
            }
        });
        let room = room.unwrap_or(Room::TimeIsUp);
        // A waiter that is no longer listed was woken, perhaps for a permit that is still free.
        if room != Room::Acquired && !self.acquired.forget(&mut place) {
            self.acquired.lock().wake_one();
        }
        room
    }

    /// Releases a permit, and wakes a submitter that is waiting for one.
    #[inline]
    pub(crate) fn release(&self) {
        if self.bound.is_some() {
            self.release_one();
        }
    }

    #[inline(never)]
    fn release_one(&self) {
        let mut acquired = self.acquired.lock();
        *acquired = acquired.saturating_sub(1);
        acquired.wake_one();
    }

    /// Wakes all waiting submitters. Called after the queue has been closed or a group has been shut down.
    pub(crate) fn wake_all(&self) {
        self.acquired.lock().wake_all();
    }
}

fn grant(acquired: &mut usize, bound: usize, is_closed: impl FnOnce() -> bool) -> Option<()> {
    let is_granted = *acquired < bound || is_closed();
    *acquired += usize::from(is_granted);
    is_granted.then_some(())
}

pub(crate) struct Rejections {
    pub(crate) handler: Replaceable<dyn RejectedExecutionHandler>,
    /// The number of submissions that were not admitted.
    pub(super) rejected: AtomicU64,
    /// The number of rejected tasks that ran on the submitting thread.
    caller_runs: AtomicU64,
    /// The number of failed runs on submitting threads.
    caller_panics: AtomicU64,
}

/// Counts a rejection when this is dropped, even if the handler panics.
pub(super) struct CountOnDrop<'a>(pub(super) &'a AtomicU64);

impl Drop for CountOnDrop<'_> {
    fn drop(&mut self) {
        // Relaxed, like all counts here: orders no other access.
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Rejections {
    pub(super) fn new(handler: Callback<dyn RejectedExecutionHandler>) -> Self {
        let (rejected, caller_runs, caller_panics) = Default::default();
        Self { handler: Replaceable::new(handler), rejected, caller_runs, caller_panics }
    }

    /// Counts a submission that was not admitted and does not go to the handler.
    #[cold]
    pub(crate) fn count(&self) {
        drop(CountOnDrop(&self.rejected));
    }

    pub(crate) fn count_caller_run(&self, done: &Totals) {
        self.caller_runs.fetch_add(done.runs, Ordering::Relaxed);
        self.caller_panics.fetch_add(done.failed_runs, Ordering::Relaxed);
    }

    /// Returns `rejected`, `caller_runs` and `caller_panics`.
    pub(crate) fn counts(&self) -> [u64; 3] {
        let counts = [&self.rejected, &self.caller_runs, &self.caller_panics];
        counts.map(|count| count.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::sync::Parker;

    /// A submitter that gives up just as it is woken for a permit wakes the next submitter in its place.
    #[test]
    fn a_submitter_that_gives_up_passes_its_wake_up_on() {
        let (capacity, parker) = (Capacity::new(Some(1)), Parker::current());
        let place = Cell::new(Place::default());
        assert!(capacity.try_acquire(|| false));
        let gives_up = || {
            // The submitter that gives up is first on the list by now, so the permit goes to it.
            let mut next = Place::default();
            let answer = capacity.acquired.poll(&mut next, parker.waker(), |_| None::<()>);
            place.set(next);
            capacity.release();
            answer.is_none()
        };
        let room = capacity.acquire_before(&Clock::system(), Timestamp::NEVER, || false, gives_up);
        assert_eq!(room, Room::GivenUp);
        assert!(!capacity.acquired.forget(&mut place.get()), "it has been woken");
    }
}
