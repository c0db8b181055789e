//! A worker: it takes tasks as they fall due, runs them, and queues again those that are to run again.
//!
//! A worker ends once the queue is closed and empty, or once the worker has been surplus and idle for long enough
//! ([`workers`](super::workers)). No task can end the worker: a task catches every panic of its closure, even a panic
//! while the closure is dropped, and the worker calls and drops all other user code through `unwind`.
//!
//! [`Runner::requeue`] holds the task's lock while the queue takes a stripe's lock and the waiters' lock, one after the
//! other. The order, task before queue, is never reversed. Under the task's lock the check for a cancellation and the
//! insertion are one step, so a cancelled periodic task is never queued again, not even briefly.
//!
//! A worker's thread comes from a [`ThreadFactory`](crate::ThreadFactory), which receives a [`Worker`](crate::Worker)
//! to run. The `Worker` owns the [`WorkerThread`]. The pool counts the worker until the worker retires or the
//! `WorkerThread` is dropped. The `WorkerThread` is dropped when its work ends, or with a `Worker` that was never run.

use std::{cell::Cell, rc::Rc};

use super::{Pool, lifecycle::Role, takes::Takes};
use crate::{
    CancelReason,
    entry::Timing,
    queue::{QueueEntry, Source},
    statistics::WorkerStats,
    sync::{Arc, Parker},
    task::{FailureSource, Points, Requeued, Run, Task, Verdict, WorkerContext},
    time::{Timestamp, set_timer_slack},
    trace,
    unwind::wake_all,
};

/// A worker. The pool counts the worker until the worker retires or this value is dropped.
pub(super) struct WorkerThread {
    pub(super) runner: Runner,
    pub(super) name: String,
}

/// Runs the tasks that a worker takes, and records whether other threads rely on that worker.
pub(super) struct Runner {
    pub(super) pool: Arc<Pool>,
    number: usize,
    stats: Arc<WorkerStats>,
    /// True if other threads may rely on this worker to take a task: the worker has been idle, or is about to search.
    is_relied_on: Cell<bool>,
    pub(super) takes: Takes,
    /// True if the worker has announced a search and has not [withdrawn](Runner::search_done) the announcement.
    will_search: Cell<bool>,
}

impl WorkerThread {
    pub(super) fn work(self) {
        // Lasts to the very end: the hooks below must not wait for this thread either.
        let Runner { pool, number, .. } = &self.runner;
        let _scope = pool.lifecycle.enter(Role::Worker);
        pool.workers.begin(*number, &pool.queue);
        let hooks = &pool.callbacks.hooks;
        let parker = Parker::current();
        let before = pool.clock().worker_begins(&parker);
        set_timer_slack(pool.spawner.timer_slack);
        trace::worker("started", &self.name);
        hooks.tell(Points::WORKER, FailureSource::ThreadStart, &|told| told.worker_started());
        self.runner.run_tasks();
        hooks.tell(Points::WORKER, FailureSource::ThreadStop, &|told| told.worker_ended());
        trace::worker("ended", &self.name);
        drop(self);
        // The factory may have lent a thread that now continues with other work.
        parker.works_for.set(before);
    }
}

impl Runner {
    /// Makes a runner. A worker thread starts with a search (`will_search`); a driver does not.
    pub(super) fn new(
        pool: Arc<Pool>,
        number: usize,
        stats: Arc<WorkerStats>,
        will_search: bool,
    ) -> Self {
        let (is_relied_on, will_search) = (Cell::new(will_search), Cell::new(will_search));
        let takes = Takes::default();
        Self { pool, number, stats, is_relied_on, takes, will_search }
    }

    pub(super) fn runs(&self) -> u64 {
        self.stats.counted().0
    }

    pub(super) fn context(&self) -> Rc<WorkerContext> {
        let stop = self.pool.token.clone();
        let (clock, stats) = (self.pool.clock().clone(), Arc::clone(&self.stats));
        Rc::new(WorkerContext::new(clock, stop, stats, true))
    }

    /// Takes and runs tasks until the queue is finished or this worker has retired.
    fn run_tasks(&self) {
        let (pool, worker) = (&*self.pool, self.context());
        // The queue calls `parker` only if nothing was due at first, and from then on counts this worker as idle; it
        // calls `limit` after each search in vain. So no thread relies on a worker that finds a task at once.
        let limit = |since| {
            self.takes.look(&pool.callbacks.hooks, &worker, since);
            self.search_done();
            pool.workers.idle_limit(self.number, &pool.queue, &pool.clock, since)
        };
        let parker = || {
            self.is_relied_on.set(true);
            Parker::current()
        };
        while let Some((entry, now)) = pool.queue.take_until_by(parker, limit) {
            self.process(&worker, entry, now);
        }
    }

    /// Runs a taken task, and queues it again if it is to run again.
    pub(super) fn process(
        &self,
        worker: &Rc<WorkerContext>,
        entry: QueueEntry<Arc<Task>>,
        now: Timestamp,
    ) {
        let (pool, QueueEntry { deadline, sequence, element }) = (&*self.pool, entry);
        if pool.follows_takes {
            // First, because the next step may call a thread factory, which may submit a task.
            pool.capacity.release();
        }
        // Before any call of user code, which may take a while.
        self.stop_being_relied_on();
        if pool.follows_takes {
            self.takes.take(pool, worker, (sequence, deadline), now);
        }
        let run = Run::new(Rc::clone(worker), element, sequence, deadline, now);
        let (task, hooks) = (&run.task, &pool.callbacks.hooks);
        match task.run(&run, hooks) {
            Verdict::Again(next) => self.requeue(&worker.stats, task, sequence, next),
            Verdict::Ended => pool.log.ended(sequence, &**task),
            rare => self.carry_out(rare, &worker.stats, task, sequence),
        }
        if pool.follows_takes {
            self.takes.note(&run, deadline);
        }
        // This may drop the last reference to a result that no future takes. Only the task is moved, not the whole run.
        let Run { task, .. } = run;
        hooks.drops(sequence).discard(task);
    }

    #[cold]
    fn carry_out(&self, verdict: Verdict, stats: &WorkerStats, task: &Arc<Task>, sequence: u64) {
        let pool = &self.pool;
        match verdict {
            Verdict::TimedOut => pool.note_timed_out(&**task, sequence),
            Verdict::Cancelled(reason) => self.end_taken(&**task, sequence, reason, stats),
            Verdict::TooLate | Verdict::Again(_) | Verdict::Ended => {}
        }
    }

    /// Queues a task again for `next`, or ends it if that fails.
    #[inline(always)]
    fn requeue(&self, stats: &WorkerStats, task: &Arc<Task>, sequence: u64, next: Timestamp) {
        self.announce_search();
        if let Err(reason) = self.try_requeue(task, sequence, next) {
            self.stop_being_relied_on();
            self.end_refused(task, sequence, reason, stats);
        }
    }

    /// Offers a task to the queue again, for `next`. Fails if the queue refuses it, or if it has ended or is to end.
    fn try_requeue(&self, task: &Arc<Task>, sequence: u64, next: Timestamp) -> Requeued {
        let Pool { queue, capacity, .. } = &*self.pool;
        let mut wake = None;
        let mut enqueue = |timing: Timing, why| {
            let (ticket, waker) = queue.requeue(timing, sequence, why, Arc::clone(task)).ok()?;
            wake = waker;
            Some(ticket.slot)
        };
        // If the task is not queued after all, `end_refused` releases the permit.
        capacity.force_acquire();
        let (requeued, deferred) = task.requeue(next, &mut enqueue);
        wake_all(wake);
        if deferred.0.is_some() {
            self.stop_being_relied_on();
            deferred.run();
        }
        requeued
    }

    #[cold]
    fn end_refused(
        &self,
        task: &Arc<Task>,
        sequence: u64,
        reason: Option<CancelReason>,
        stats: &WorkerStats,
    ) {
        let pool = &self.pool;
        pool.capacity.release();
        let reason = reason.unwrap_or_else(|| pool.lifecycle.phase().reason());
        self.end_taken(&**task, sequence, reason, stats);
    }

    /// Ends a taken task as cancelled. The worker counts this end, since the queue counts only the tasks that are
    /// removed from it.
    fn end_taken(&self, task: &Task, id: u64, reason: CancelReason, stats: &WorkerStats) {
        stats.count_cancelled();
        self.pool.end_as_cancelled(task, id, reason);
    }

    /// Announces that this worker will queue a task again and then search, so no thread starts a worker for that task.
    #[inline]
    fn announce_search(&self) {
        if !self.pool.workers.is_complete() {
            self.pool.workers.announce_search(self.number);
            self.will_search.set(true);
            self.is_relied_on.set(true);
        }
    }

    /// If this worker has announced a search, withdraws the announcement. Called once the queue counts this worker as
    /// idle, and before a step that may take a while.
    fn search_done(&self) {
        if self.will_search.take() {
            self.pool.workers.search_done(self.number);
        }
    }

    /// Starts another worker if tasks need one and other threads may rely on this worker. Called before a step that may
    /// take long.
    #[inline]
    fn stop_being_relied_on(&self) {
        if self.is_relied_on.get() {
            self.be_compensated();
        }
    }

    #[cold]
    fn be_compensated(&self) {
        self.is_relied_on.set(false);
        self.search_done();
        self.pool.compensate_or_report();
    }
}

impl Drop for WorkerThread {
    fn drop(&mut self) {
        let Runner { pool, number, .. } = &self.runner;
        pool.workers.remove(*number);
        pool.deregister();
        pool.clock().worker_ended();
        // A factory may have kept the worker until now. Once the queue is closed, no submission starts another, and
        // workers that wait for tasks may have relied on this one.
        if pool.queue.is_closed() || pool.has_only_waiting_workers() {
            pool.compensate_or_report();
        }
    }
}
