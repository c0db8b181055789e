//! What a future and a handle hold: a task, its pool, and its place in the queue.
//!
//! It knows no type of a result, so all that can be done to a task is compiled once, and not for each type of a
//! user. [`ScheduledFuture`](super::ScheduledFuture) adds that it takes the result, and
//! [`TaskHandle`](super::TaskHandle) that it can be cloned.

use std::{
    task::Waker,
    time::{Duration, Instant},
};

use crate::{
    CancelReason, Failure, Limit, TaskId, TaskState, WouldDeadlock,
    entry::Ticket,
    pool::{IfRunning, Pool, PoolRef},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Awaited, Change, Drops, Run, Task},
    time::{Clock, Timestamp},
    trigger::Trigger,
    unwind::{Contained, discard_with},
    wait::{self, Place},
};

/// See the [module](self).
pub(crate) struct TaskRef {
    task: Contained<Arc<Task>>,
    pool_ref: PoolRef,
    id: u64,
    /// The slot of the queue that the task was given when it was submitted.
    slot: u32,
    /// True if there is a waker for the `await` of this future. An atomic has no unused values, so a `Result` with a
    /// future keeps its variant in a pointer, and is moved by whole words.
    is_awaited: AtomicBool,
    /// True if there are handles that would keep the result.
    has_handles: AtomicBool,
}

impl TaskRef {
    pub(crate) fn new(task: Arc<Task>, pool_ref: PoolRef, ticket: Ticket) -> Self {
        let Ticket { slot, sequence: id } = ticket;
        let (task, is_awaited) = (Contained::new(task), AtomicBool::new(false));
        Self { task, pool_ref, id, slot, is_awaited, has_handles: AtomicBool::new(false) }
    }

    /// Returns another reference to the task, which never takes its result.
    pub(crate) fn share(&self) -> Self {
        Self::new(self.shared_task(), self.pool_ref.clone(), self.ticket())
    }

    /// As [`share`](Self::share). The result is given up when this reference is dropped, however long the other
    /// one keeps the task.
    pub(super) fn share_as_handle(&self) -> Self {
        // Relaxed: only the drop reads it, which comes after every use.
        self.has_handles.store(true, Ordering::Relaxed);
        self.share()
    }

    #[inline]
    pub(super) fn task(&self) -> &Task {
        &**self.task
    }

    pub(crate) fn shared_task(&self) -> Arc<Task> {
        Arc::clone(&self.task)
    }

    pub(super) fn pool(&self) -> &Arc<Pool> {
        self.pool_ref.pool()
    }

    pub(super) fn clock(&self) -> &Clock {
        self.pool().clock()
    }

    pub(super) fn id(&self) -> TaskId {
        TaskId(self.id)
    }

    pub(super) fn state(&self) -> TaskState {
        self.task.state()
    }

    fn ticket(&self) -> Ticket {
        Ticket { slot: self.slot, sequence: self.id }
    }

    /// Returns where a panic in the drop of the result is reported.
    fn drops(&self) -> Drops<'_> {
        self.pool().callbacks().hooks.drops(self.id)
    }

    /// Takes the task out of the queue of this pool, if it waits there. Returns `true` if it did.
    pub(super) fn remove_from(&self, pool: &Arc<Pool>) -> bool {
        self.pool_ref.belongs_to(pool) && pool.remove_waiting(self.task(), self.ticket())
    }

    // Control.

    pub(super) fn cancel(&self) -> bool {
        self.pool().cancel(
            self.task(),
            self.ticket(),
            CancelReason::Requested,
            IfRunning::LetReturn,
        )
    }

    pub(super) fn cancel_and_signal(&self) -> bool {
        self.pool().cancel(self.task(), self.ticket(), CancelReason::Requested, IfRunning::Signal)
    }

    pub(super) fn cancel_and_wait(&self) -> Result<bool, WouldDeadlock> {
        let has_ended = self.cancel_and_signal();
        if self.task.has_left() {
            return Ok(has_ended);
        }
        if Run::is_of(&self.task) {
            return Err(WouldDeadlock(()));
        }
        let _waiting = self.pool().enter_wait(|| Arc::new(Leaving(self.shared_task())))?;
        let mut place = Place::default();
        let poll = |waker: &Waker| self.task.poll_left(&mut place, waker).then_some(());
        wait::block_on(self.clock(), poll);
        Ok(has_ended)
    }

    pub(super) fn change(&self, change: Change) -> bool {
        self.pool_ref.control(&self.task, self.ticket(), change)
    }

    pub(super) fn reschedule(&self, delay: Duration) -> bool {
        let moment = self.clock().read().after(delay);
        self.change(Change::At(moment))
    }

    pub(super) fn reschedule_at(&self, instant: Option<Instant>) -> bool {
        let now = self.clock().read();
        let moment = |instant| self.clock().deadline_of(instant).max(now);
        let moment = instant.map_or(Timestamp::NEVER, moment);
        self.change(Change::At(moment))
    }

    pub(super) fn run_within(&self, delay: Duration) -> bool {
        let moment = self.clock().read().after(delay);
        self.change(Change::Within(moment))
    }

    pub(super) fn run_now(&self) -> bool {
        let now = self.clock().read();
        self.change(Change::RunNow(now))
    }

    pub(super) fn set_trigger(&self, trigger: impl Trigger) -> bool {
        match Change::schedule(trigger, self.task(), self.clock()) {
            Some(change) => self.change(change),
            None => false,
        }
    }

    pub(super) fn delay(&self) -> Option<Duration> {
        let deadline = self.pool().deadline(self.task(), self.ticket())?;
        Some(deadline.delay_at(self.clock().read()))
    }

    // Waiting.

    /// Blocks until the task has ended, and may spin for a while before it sleeps.
    pub(super) fn join(&self) -> Result<(), WouldDeadlock> {
        let _waiting = self.pool().enter_join(|| self.shared_task())?;
        let mut place = Place::default();
        while !self.block_soon(&mut place, Timestamp::NEVER) {}
        Ok(())
    }

    /// As [`join`](Self::join), but no longer than `timeout`. Returns `true` if the task has ended.
    pub(super) fn join_timeout(&self, timeout: Duration) -> bool {
        let mut place = Place::default();
        let has_ended = self.block_soon(&mut place, self.clock().read().after(timeout));
        self.forget_unless(has_ended, &mut place);
        has_ended
    }

    fn block_soon(&self, place: &mut Place, deadline: Timestamp) -> bool {
        let is_done = || self.state().is_done();
        let poll = |waker: &Waker| self.poll_done(place, waker);
        wait::block_soon(self.clock(), deadline, is_done, poll).is_some()
    }

    /// Blocks until the task has ended.
    pub(super) fn wait(&self) -> Result<(), WouldDeadlock> {
        let _waiting = self.pool().enter_join(|| self.shared_task())?;
        let mut place = Place::default();
        wait::block_on(self.clock(), |waker| self.poll_done(&mut place, waker));
        Ok(())
    }

    /// Blocks until the task has ended, or until `limit` is reached, whose deadline this is. Returns
    /// `true` if the task has ended, whatever the limit says. The result stays where it is.
    pub(super) fn ends_within(&self, limit: &Limit, deadline: Timestamp) -> bool {
        let mut place = Place::default();
        let poll = |waker: &Waker| self.poll_done(&mut place, waker);
        let has_ended = limit.block(self.clock(), deadline, poll).is_some();
        self.forget_unless(has_ended, &mut place);
        has_ended
    }

    /// The poll of [`wait`].
    fn poll_done(&self, place: &mut Place, waker: &Waker) -> Option<()> {
        self.task.poll_done(place, waker).then_some(())
    }

    /// Takes the waker of this thread off the task's list if its wait was given up. A task that has
    /// ended keeps no list.
    fn forget_unless(&self, has_ended: bool, place: &mut Place) {
        if !has_ended {
            self.task.forget(place);
        }
    }

    /// Takes the waker of an `await` off the task, and gives up the result that handles would keep.
    // Apart, so that a drop of any other reference saves no registers for it.
    #[cold]
    #[inline(never)]
    fn withdraw(&self) {
        if self.is_awaited.load(Ordering::Relaxed) {
            self.task.deregister_awaiting();
        }
        if self.has_handles.load(Ordering::Relaxed) {
            self.task.abandon(self.drops());
        }
    }

    /// The poll of an `await`. Returns `true` once the task has ended.
    pub(super) fn poll_awaited(&mut self, waker: &Waker) -> bool {
        let has_ended = self.task.poll_awaited(waker);
        self.is_awaited.store(!has_ended, Ordering::Relaxed);
        has_ended
    }
}

impl Drop for TaskRef {
    fn drop(&mut self) {
        // Relaxed: a drop comes after every use.
        let (is_awaited, has_handles) = (&self.is_awaited, &self.has_handles);
        if is_awaited.load(Ordering::Relaxed) || has_handles.load(Ordering::Relaxed) {
            self.withdraw();
        }
        let task = self.task.take();
        discard_with(task, |panic| self.drops().report(None, Failure::of_panic(panic)));
    }
}

/// A task whose body is still running, although the task has been cancelled.
struct Leaving(Arc<Task>);

impl Awaited for Leaving {
    fn is_done(&self) -> bool {
        self.0.has_left()
    }

    fn may_end_without_worker(&self, has_timer_thread: bool) -> bool {
        self.0.may_end_without_worker(has_timer_thread)
    }

    fn needs_free_worker(&self) -> bool {
        false
    }
}
