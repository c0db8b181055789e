//! A group of tasks: how many of them may run at the same time, in which order they start, and whether any may start.
//!
//! A group has a lock of its own. It knows its members, but nothing about the queue or about what a member runs. A task
//! in a group has a [`Membership`](super::Membership), which refers to the group.
//!
//! # A task that waits for its group
//!
//! A worker that has taken a member asks the group whether the member may start. If not, the worker queues the member
//! again, [parked](crate::entry::Timing). So a waiting member occupies no worker, and other due tasks pass it. The
//! member's entry is in the queue and says when the member is due, so every call that counts, lists, moves, cancels or
//! drains tasks finds the member pending.
//!
//! # The order
//!
//! Pending members are in an ordered map, by deadline and then by sequence number, as in the queue. A member may start
//! if fewer than *free* members come before it, where *free* is the number of permits left. That order is strict: if
//! two workers have each taken a member and only one permit is free, the group refuses the later member even if its
//! worker asks first.
//!
//! # Why each member starts eventually
//!
//! While the group is not paused, none of its first *free* pending members is parked, except for those that a thread is
//! about to unpark. Every step that may give a member its turn ends with a search for parked members among the first
//! *free*. Such a step ends a run or a pause, removes or moves a member, queues a member again, shuts the group down,
//! or changes the limit, the pool size or the number of reserved workers. Under the group's lock, the thread that takes
//! the step notes that the members it found are no longer parked. After it has released the lock, it moves the members'
//! entries to their deadlines. Only the waker of a driven executor and the thread factory may be called in between.
//!
//! Only the step that queues a member again parks it. In that step the worker holds the task's lock, and asks the group
//! a second time, so it sees a permit released since the refusal. Any later step of the group finds the member parked;
//! the thread that unparks the member waits for the task's lock, and then finds the entry in the queue. A member that
//! starts takes one permit and gives up its place in the order, so no other member's turn changes.
//!
//! # Locks
//!
//! A thread may take a group's lock while it holds a task's, and takes no lock while it holds the group's. The thread
//! puts any work that concerns other tasks into [`Deferred`], and does that work once it holds no lock.
//!
//! # Tasks that have not entered yet
//!
//! A task enters its group once its submission has queued it or a worker asks about it, whichever comes first. Before
//! that it has no place in the order. Otherwise the submitter could wait for a later member to make room in a full
//! queue, while that member waited for its turn behind the task being submitted. While a submission is under way, a
//! group that was shut down does not end ([`Joining`]), because the task may still enter.

use std::task::Waker;

use super::roll::Roll;
use crate::{
    RejectionReason,
    feature::{ShutdownPolicy, parked::let_go},
    pool::Pool,
    sync::{Arc, Weak},
    task::Deferred,
    unwind::wake_all,
    wait::{Place, Watched, WatchedGuard},
};

pub(crate) struct GroupState {
    pub(crate) name: Arc<str>,
    pub(super) pool: Weak<Pool>,
    pub(crate) at_shutdown: Option<ShutdownPolicy>,
    pub(super) roll: Watched<Roll>,
}

/// A submission to a group, while it is under way. The group does not end before this is dropped.
pub(crate) struct Joining(Arc<GroupState>);

impl Drop for Joining {
    fn drop(&mut self) {
        self.0.change(|roll| roll.joining -= 1);
    }
}

impl GroupState {
    /// Locks the group, to read it, or to make a change that gives no parked member its turn.
    pub(crate) fn roll(&self) -> WatchedGuard<'_, Roll> {
        self.roll.lock()
    }

    /// Changes the group; the caller may hold a member's lock. Adds to `deferred` what must be done with no lock held:
    /// unparking members, and calling the wakers kept for the group's end.
    pub(crate) fn step<R>(
        &self,
        deferred: &mut Deferred,
        change: impl FnOnce(&mut Roll) -> R,
    ) -> R {
        let mut roll = self.roll.lock();
        let answer = change(&mut roll);
        self.end_step(roll, deferred);
        answer
    }

    fn end_step(&self, mut roll: WatchedGuard<'_, Roll>, deferred: &mut Deferred) {
        let released = roll.release();
        if roll.terminate() {
            let wakers = roll.take_wakers();
            deferred.push(|| wake_all(wakers));
        }
        if !released.is_empty() {
            let pool = Weak::clone(&self.pool);
            deferred.push_first(move || let_go(&pool, released));
        }
    }

    /// Like [`step`](Self::step), but does the deferred work at once. The caller holds no lock.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut Roll) -> R) -> R {
        let mut deferred = Deferred::default();
        let answer = self.step(&mut deferred, change);
        deferred.run();
        answer
    }

    /// Begins a submission to the group. Fails if the group was shut down, or belongs to another pool.
    pub(crate) fn join(self: &Arc<Self>, pool: &Arc<Pool>) -> Result<Joining, RejectionReason> {
        if !std::ptr::eq(self.pool.as_ptr(), Arc::as_ptr(pool)) {
            return Err(RejectionReason::ForeignGroup);
        }
        let mut roll = self.roll.lock();
        if roll.refuses_more() {
            return Err(RejectionReason::GroupShutdown);
        }
        roll.joining += 1;
        Ok(Joining(Arc::clone(self)))
    }

    /// Returns `Some` once the group has ended; until then keeps the waker, as described in [`wait`](crate::wait).
    pub(crate) fn poll_terminated(&self, place: &mut Place, waker: &Waker) -> Option<()> {
        self.roll.poll(place, waker, |roll| roll.is_terminated.then_some(()))
    }
}
