//! A group of tasks: how many of them may run at once, in which order, and whether any may run.
//!
//! A group has a lock of its own and knows its members, but neither the queue nor what a member runs. A task in a group
//! has a [`Membership`](super::Membership), which refers to the group.
//!
//! # A task that waits for its group
//!
//! A worker that has taken a member asks the group whether the member may start. If not, the worker queues the member
//! again, [parked](crate::entry::Timing). So a waiting member occupies no worker, other due tasks pass it, and every
//! call that counts, lists, moves, cancels or drains tasks finds it pending: its entry says when it is due.
//!
//! # The order
//!
//! Pending members are in an ordered map, by deadline and then by sequence, as in the queue. A member may start if
//! fewer than *free* members come before it, where *free* is the number of permits left. That order is strict: of two
//! workers that have taken two members, the one with the later member is refused even if it asks first and a permit is
//! free.
//!
//! # Why each member starts eventually
//!
//! While the group is not paused, none of its first *free* pending members is parked, except for those that a thread is
//! about to let go. Every step that gives a member another rank, or the group another number of permits, ends with a
//! search for parked members among the first *free*: when a run or a pause ends, when a member leaves, is queued again
//! or gets another plan, and when the limit or the pool size changes. Under the group's lock, the thread marks those
//! members as no longer parked; after it has released the lock, it moves their entries to their deadlines. No user code
//! runs in between.
//!
//! Only the step that queues a member again parks it. That step holds the task's lock, and asks the group a second
//! time, so it sees a permit released since the refusal. Any later step of the group finds the member parked; the
//! thread that lets the member go waits for the task's lock, and then finds the entry in the queue. A member that
//! starts takes one permit and leaves one place in the order, so no other member's turn changes.
//!
//! # Locks
//!
//! A thread takes a group's lock after a task's, and takes no lock while it holds the group's. It puts work on other
//! tasks into [`Deferred`], and does that work once it holds no lock.
//!
//! # Members that are not known yet
//!
//! A task enters its group once its submission has queued it or a worker asks about it, whichever comes first. Before
//! that it has no place in the order, since a submitter that waits for room may be waiting for a task that would come
//! after the one it submits. A submission under way keeps a group that was shut down from ending ([`Joining`]), so a
//! submitter that waits for room learns of the shutdown.

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

/// A submission that is under way to a group. The group does not end before this is dropped.
pub(crate) struct Joining(Arc<GroupState>);

impl Drop for Joining {
    fn drop(&mut self) {
        self.0.change(|roll| roll.joining -= 1);
    }
}

impl GroupState {
    /// Locks the group, to read it, or to make a change that gives no other member its turn.
    pub(crate) fn roll(&self) -> WatchedGuard<'_, Roll> {
        self.roll.lock()
    }

    /// Changes the group; the caller may hold a member's lock. Adds the rest to `deferred`: letting members go whose
    /// turn has come, and calling the wakers kept for the group's end.
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
            deferred.push(move || let_go(&pool, released));
        }
    }

    /// Changes the group, and lets members go whose turn has come. The caller holds no lock.
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

    /// Returns `Some` once the group has ended; until then keeps the waker, as [`wait`](crate::wait) says.
    pub(crate) fn poll_terminated(&self, place: &mut Place, waker: &Waker) -> Option<()> {
        self.roll.poll(place, waker, |roll| roll.is_terminated.then_some(()))
    }
}
