//! Shutdown, a protocol of the pool: three ways to stop, the two policies, and waiting for termination.
//!
//! | | the queue still admits | taken out of the queue | tokens |
//! |---|---|---|---|
//! | `shutdown` | one-shot tasks that wait for their groups or for a gate's answer; one-shot tasks that were put off or will be retried, if the policies keep delayed tasks; periodic tasks in any of these states or between two runs, if the policies keep periodic tasks; a task's own policy takes precedence | what the policies do not keep | – |
//! | `stop` (drop) | tasks that wait for their groups or for a gate's answer, unless their own policy is to cancel them | what is not yet due | – |
//! | `shutdown_now` | nothing | everything, returned | cancelled |
//!
//! Each way advances the [`lifecycle`](super::lifecycle), closes the queue, wakes the submitters that wait for
//! capacity, and ends, or returns, the tasks that it has taken out. Whether a task is due is decided once the queue is
//! closed, so a task that was submitted with no delay counts as due. Workers end when the queue is closed and empty,
//! and the last party to deregister terminates the pool. `shutdown_within` begins with the first way. If the pool does
//! not terminate in time, the call goes on to the third way; if that takes too long as well, it gives the pool up.

use std::time::Duration;

use super::{
    Phase, Policies, Pool, driver,
    lifecycle::{PoolScope, Role, acts_for_a_pool},
};
use crate::{
    CancelReason, Grace, WouldDeadlock,
    drained::DrainedTasks,
    entry::Requeue,
    feature::AtShutdown,
    queue::{Admission, QueueEntry, SnapshotEntry, Source},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{FailureSource, Points, Task, is_releasing},
    time::Timestamp,
    trace,
    unwind::{discard, wake_all},
    wait::{self, Place},
};

/// How long a shutdown with a deadline waits between two checks of whether anything can still run.
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

// The three ways to stop.
impl Pool {
    /// Stops admitting tasks, and cancels the pending ones that the policies do not keep.
    pub(crate) fn shutdown(self: &Arc<Self>) {
        let stopping = Stopping::begin(self, "shut down", Phase::ShuttingDown);
        let keeps = self.policies.keeps(CancelReason::Shutdown);
        let of_series = [Requeue::NextRun, Requeue::SeriesTurn];
        let of_series = of_series.into_iter().filter(|_| keeps.periodic);
        let put_off = Some(Requeue::PutOff).filter(|_| keeps.delayed);
        let others = [Requeue::Turn, Requeue::Kept];
        let admitted = Admission::only(of_series.chain(put_off).chain(others));
        stopping.cancel(admitted, &|task, is_delayed| !keeps.keeps(task, is_delayed));
    }

    /// Stops admitting tasks, and cancels the pending ones not yet due. By default, the owner's drop does this.
    pub(crate) fn stop(self: &Arc<Self>) {
        let stopping = Stopping::begin(self, "dropped", Phase::OwnerDropped);
        let admitted = Admission::only([Requeue::Turn, Requeue::SeriesTurn]);
        stopping.cancel(admitted, &|_, is_delayed| is_delayed);
    }

    /// Stops admitting tasks, asks the running ones to stop, and returns the pending ones.
    pub(crate) fn shutdown_now(self: &Arc<Self>) -> DrainedTasks {
        let stopping = Stopping::begin(self, "shut down now", Phase::Stopping);
        stopping.close_queue(Admission::CLOSED);
        let drained = self.queue.drain();
        self.extensions.on_drain();
        self.token.cancel();
        // A driven executor starts no thread, and on a manual clock two threads would drop in no fixed order.
        let is_alone = self.is_driven || self.clock().is_manual();
        let may_share = if is_alone { || false } else { || !acts_for_a_pool() };
        DrainedTasks::new(drained, self.detached_context(), may_share)
    }

    /// Terminates the pool if nothing is left in its closed queue and no party is registered. Called after a task has
    /// been taken out without being run: all workers may have retired, since none stays for a parked task. In a driven
    /// pool this does nothing: the next call of the driver terminates the pool.
    #[cold]
    pub(super) fn terminate_if_finished(&self) {
        if !self.is_driven && self.queue.is_finished() && self.lifecycle.register() {
            self.deregister();
        }
    }

    /// Deregisters a party. If it was the last one, and nothing is left to run after a shutdown, terminates the pool.
    pub(crate) fn deregister(&self) {
        if !self.lifecycle.deregister(|| self.queue.is_finished()) {
            return;
        }
        // Threads that wait for termination wait for this thread now.
        let _scope = self.lifecycle.enter(Role::Stopper);
        self.extensions.on_termination();
        if self.is_driven {
            self.workers.remove(driver::NUMBER);
        }
        let hooks = &self.callbacks.hooks;
        hooks.tell(Points::TERMINATED, FailureSource::Terminated, &|told| told.terminated());
        let waiters = self.lifecycle.terminate();
        trace::lifecycle("terminated", &self.spawner.thread_name);
        wake_all(waiters);
    }
}

/// A shutdown that is under way: a party until this is dropped.
struct Stopping<'a> {
    pool: &'a Arc<Pool>,
    phase: Phase,
    _scope: PoolScope,
}

impl<'a> Stopping<'a> {
    fn begin(pool: &'a Arc<Pool>, what: &'static str, phase: Phase) -> Self {
        pool.lifecycle.advance(phase);
        trace::lifecycle(what, &pool.spawner.thread_name);
        Self { pool, phase, _scope: pool.lifecycle.enter(Role::Stopper) }
    }

    /// Closes the queue to all but `admission`, and wakes the submitters that wait for capacity.
    fn close_queue(&self, admission: Admission) {
        self.pool.queue.close(admission);
        // Second, because a woken submitter reads whether the queue is closed.
        self.pool.capacity.wake_all();
    }

    /// Closes the queue to all but `admission`. Ends the tasks that are unwanted, by what may keep them and by whether
    /// they are not yet due, and those that a feature has called off. Takes all unwanted tasks out before it ends the
    /// first, because an end calls user code, which could move others. If a worker was lost, starts another for what is
    /// left: from now on no submission does so.
    fn cancel(self, admission: Admission, is_unwanted: &dyn Fn(AtShutdown, bool) -> bool) {
        let (pool, reason) = (self.pool, self.phase.reason());
        self.close_queue(admission);
        let keeps = pool.policies.kept_in(pool.lifecycle.phase());
        let called_off = keeps.map(|keeps| pool.extensions.on_shutdown(pool, keeps));
        // Read once nothing more is admitted: whatever was submitted without delay is due now.
        let now = pool.clock().read();
        let removed = pool.remove_unwanted(&|due, task| is_unwanted(task, due > now));
        pool.workers.pending_decreased(&pool.queue);
        for QueueEntry { sequence, element: task, .. } in removed {
            pool.end_as_cancelled(&*task, sequence, reason);
            discard(task);
        }
        called_off.unwrap_or_default().run();
        if pool.workers.is_short() {
            pool.compensate_or_report();
        }
    }
}

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.pool.deregister();
    }
}

// The two policies.
impl Pool {
    /// Changes a policy, and applies it if the pool is shutting down. A policy that is switched on again brings no
    /// cancelled task back.
    ///
    /// Ordering: this writes the policy and then reads the phase; a shutdown advances the phase and then reads the
    /// policies. All four are sequentially consistent; see `queue::waiters`.
    pub(crate) fn set_policy(self: &Arc<Self>, policy: fn(&Policies) -> &AtomicBool, keep: bool) {
        policy(&self.policies).store(keep, Ordering::SeqCst);
        if self.lifecycle.phase() == Phase::ShuttingDown {
            self.shutdown();
        }
    }
}

// Waiting for termination.
impl Pool {
    /// Waits for at most `timeout` until the pool has terminated or, with `or_given_up`, has been given up. Returns
    /// `false` if the time is up first. Fails on a thread that acts for the pool, unless the pool has terminated.
    pub(crate) fn await_termination(
        &self,
        timeout: Duration,
        or_given_up: bool,
    ) -> Result<bool, WouldDeadlock> {
        if self.lifecycle.would_wait_for_itself() && self.lifecycle.phase() < Phase::Terminated {
            return Err(WouldDeadlock(()));
        }
        self.remove_released();
        let deadline = self.clock().read().after(timeout);
        let mut place = Place::default();
        let poll = |waker: &_| self.lifecycle.poll_terminated(&mut place, waker, or_given_up);
        let is_over = wait::block_until(self.clock(), deadline, poll).is_some();
        self.lifecycle.forget(&mut place);
        Ok(is_over)
    }

    /// Waits through `await_end` for at most `grace.patience`, then calls `stop`, and waits again for at most
    /// `grace.then`. Returns `true` if the end has come.
    ///
    /// The first wait ends early if nothing can run before its limit. No event announces that, so this checks
    /// repeatedly, but not where another thread decides what runs: on a manual clock, and in a pool with a driver.
    pub(crate) fn await_or_stop(
        &self,
        grace: Grace,
        can_come: &dyn Fn(Timestamp) -> bool,
        await_end: &dyn Fn(Duration) -> Result<bool, WouldDeadlock>,
        stop: &dyn Fn(),
    ) -> Result<bool, WouldDeadlock> {
        let deadline = self.clock().read().after(grace.patience);
        let looks = !self.clock().is_manual() && !self.is_driven;
        while looks && can_come(deadline) {
            let rest = deadline.since(self.clock().read());
            if rest.is_zero() || await_end(rest.min(BETWEEN_LOOKS))? {
                break;
            }
        }
        if await_end(if looks { Duration::ZERO } else { grace.patience })? {
            return Ok(true);
        }
        stop();
        await_end(grace.then)
    }

    /// Returns `true` if a worker has a task, or may have one by `deadline`. Checks the queue, then the workers, then
    /// the queue again, so as to miss no task that a worker takes or queues again meanwhile.
    pub(crate) fn can_run_until(&self, deadline: Timestamp) -> bool {
        let is_pending = || self.queue.has_any_until(deadline);
        is_pending() || self.queue.sleeping() < self.workers.live() || is_pending()
    }

    /// Waits without a limit until the pool has terminated or, with `or_given_up`, has been given up. If it has
    /// terminated, also joins its threads.
    pub(crate) fn join(&self, or_given_up: bool) -> Result<(), WouldDeadlock> {
        self.await_termination(Duration::MAX, or_given_up)?;
        if self.lifecycle.phase() == Phase::Terminated {
            self.workers.join_threads();
        }
        Ok(())
    }

    /// Takes out of the closed queue the entries of the tasks whose closures this thread is dropping. A thread that
    /// cancels a task takes its entry out only when it has dropped the closure, and may wait in that drop for
    /// termination. Entries whose closures another thread is dropping stay, because the pool does not terminate before
    /// those closures are gone. Linear in the queue, but only in such a drop.
    pub(super) fn remove_released(&self) {
        if !is_releasing() || !self.queue.is_closed() || self.queue.is_finished() {
            return;
        }
        let listed = self.queue.snapshot();
        for SnapshotEntry { ticket, element: task, .. } in &listed {
            if task.is_released_here() {
                self.evict(*ticket);
            }
        }
        // As in `remove_unwanted`.
        listed.into_iter().for_each(|entry| discard(entry.element));
    }

    /// Takes the unwanted tasks out of the closed queue, each by its deadline at the time of its removal. Whatever else
    /// keeps a task never changes, and is behind the task's lock, which comes before the queue's. So this asks
    /// each task beforehand, and misses no task that another thread is moving. A task that is queued later was admitted
    /// as kept.
    fn remove_unwanted(
        &self,
        is_unwanted: &dyn Fn(Timestamp, AtShutdown) -> bool,
    ) -> Vec<QueueEntry<Arc<Task>>> {
        if !self.policies.has_exceptions() {
            return self
                .queue
                .remove_where(&mut |due, task| is_unwanted(due, task.kind_at_shutdown()));
        }
        let address = |task: &Arc<Task>| Arc::as_ptr(task).cast::<()>();
        let mut listed = self.queue.snapshot();
        listed.sort_unstable_by_key(|entry| address(&entry.element));
        let asked = listed.iter().map(|entry| entry.element.at_shutdown()).collect::<Vec<_>>();
        let mut is_unwanted = |due, task: &Arc<Task>| {
            let found =
                listed.binary_search_by_key(&address(task), |entry| address(&entry.element));
            found.is_ok_and(|index| is_unwanted(due, asked[index]))
        };
        let removed = self.queue.remove_where(&mut is_unwanted);
        // Last, because this may drop the last reference to a task, and that runs user code.
        listed.into_iter().for_each(|entry| discard(entry.element));
        removed
    }
}
