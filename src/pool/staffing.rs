//! Staffing, a protocol of the pool: which threads start a worker, and what happens if none can be started.
//!
//! Only the holder of a [`SpawnPermit`] starts a thread, and does so without holding a lock: the thread factory is user
//! code. The head of [`workers`](super::workers) explains why no task is forgotten when several threads want a worker.

use std::io;

use super::{
    Pool, Workers,
    lifecycle::Role,
    worker::{Runner, WorkerThread},
    workers::SpawnPermit,
};
use crate::{sync::Arc, thread_factory::factory_error, time::Timestamp, trace, unwind::discard};

impl Pool {
    /// If a worker is missing, starts one and returns `true`. Blocks while another thread has the permit.
    pub(super) fn start_worker(self: &Arc<Self>) -> io::Result<bool> {
        self.start_worker_below(Workers::wanted)
    }

    /// If the queue is open, and fewer workers than the core size have started, starts one and returns `true`.
    pub(crate) fn start_core_worker(self: &Arc<Self>) -> io::Result<bool> {
        if self.queue.is_closed() {
            return Ok(false);
        }
        self.start_worker_below(Workers::core_size)
    }

    fn start_worker_below(self: &Arc<Self>, wanted: fn(&Workers) -> usize) -> io::Result<bool> {
        if self.is_driven {
            // The driver is the only worker.
            return Ok(false);
        }
        if self.lifecycle.has_caller_as(Role::Starter) {
            // The thread factory submits a task, for which a worker is already being started.
            let has_worker = self.workers.started() > 0;
            return if has_worker { Ok(false) } else { Err(factory_error("uses its executor")) };
        }
        let is_needed = |started| started < wanted(&self.workers);
        let Some(permit) = self.workers.spawn_permit(&is_needed) else { return Ok(false) };
        let has_started = self.spawn_worker(permit)?;
        // Threads that did not wait for the permit have left their tasks to this thread.
        self.compensate_or_report();
        Ok(has_started)
    }

    pub(crate) fn set_core_pool_size(self: &Arc<Self>, size: usize) {
        if self.is_driven {
            return;
        }
        let before = self.workers.set_core_size(size);
        if size < before {
            self.queue.reconsider();
        }
        self.extensions.on_resize(self);
        for _ in 0..size.saturating_sub(before).min(self.queue.len()) {
            // Even after a shutdown, for the tasks that it kept.
            match self.start_worker_below(Workers::core_size) {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => return self.go_without_worker(&error),
            }
        }
    }

    /// Starts a worker for a pending task that no worker would take; see the head of [`workers`](super::workers). Does
    /// not wait for the permit.
    #[inline]
    pub(super) fn compensate(self: &Arc<Self>) -> io::Result<()> {
        // A task that is never due needs no worker.
        if self.workers.is_complete() || self.queue.seems_empty() {
            return Ok(());
        }
        self.compensate_slow()
    }

    #[cold]
    fn compensate_slow(self: &Arc<Self>) -> io::Result<()> {
        // Called under the lock of the workers; reading the number of waiters takes the lock of their list.
        let is_uncovered = || self.queue.waiting() == 0 && !self.queue.seems_empty();
        // Repeated for the threads that found the permit taken meanwhile.
        while let Some(permit) = self.workers.try_spawn_permit(is_uncovered) {
            self.spawn_worker(permit)?;
        }
        Ok(())
    }

    /// Starts a worker. Returns `false`, and starts none, if the pool is tidying or has terminated.
    fn spawn_worker(self: &Arc<Self>, permit: SpawnPermit<'_>) -> io::Result<bool> {
        if !self.lifecycle.register() {
            return Ok(false);
        }
        self.clock().worker_starts();
        let (number, stats) = permit.add_worker();
        let name = format!("{}-{number}", self.spawner.thread_name);
        let runner = Runner::new(Arc::clone(self), number, stats, true);
        let worker = WorkerThread { runner, name: name.clone() };
        let started = Box::new(|| self.workers.begin(number, &self.queue));
        self.start_thread(permit, (name, Some(number)), started, Box::new(|| worker.work()))?;
        Ok(true)
    }

    /// If `is_needed` returns `true`, and the pool is not yet tidying, starts a helper thread and then calls `started`.
    /// `is_needed` is called **under the lock** of the workers. Blocks while another thread has the permit.
    pub(crate) fn start_helper(
        self: &Arc<Self>,
        name: &str,
        is_needed: &dyn Fn() -> bool,
        started: &dyn Fn(),
        work: &dyn Fn() -> Box<dyn FnOnce() + Send>,
    ) -> io::Result<()> {
        if self.lifecycle.has_caller_as(Role::Starter) {
            // The thread factory submits a task, and this thread has the permit.
            return Err(factory_error("uses its executor"));
        }
        let Some(permit) = self.workers.spawn_permit(&|_| is_needed()) else { return Ok(()) };
        // A party until the end, so that the thread that terminates the pool finds the helper's queue, and closes it.
        if !self.lifecycle.register() {
            return Ok(());
        }
        let name = format!("{}-{name}", self.spawner.thread_name);
        let result = self.start_thread(permit, (name, None), Box::new(started), work());
        // As in `start_worker_below`.
        self.compensate_or_report();
        self.deregister();
        result
    }

    /// Starts a thread: a worker if `number` is `Some`, else a helper. On success, calls `started`. Gives the permit
    /// back in any case.
    fn start_thread(
        &self,
        permit: SpawnPermit<'_>,
        (name, number): (String, Option<usize>),
        started: Box<dyn FnOnce() + '_>,
        work: Box<dyn FnOnce() + Send>,
    ) -> io::Result<()> {
        let starting = self.lifecycle.enter(Role::Starter);
        let made = self.spawner.new_thread(name, number, work);
        drop(starting);
        match made {
            Ok(thread) => {
                started();
                permit.succeed(thread);
                Ok(())
            }
            Err((error, payload)) => {
                // First: the drop of the payload is user code, and may need to start a thread.
                drop((started, permit));
                discard(payload);
                Err(error)
            }
        }
    }

    /// Like [`compensate`](Self::compensate), but on failure logs the error and calls
    /// [`end_stranded`](Self::end_stranded).
    pub(super) fn compensate_or_report(self: &Arc<Self>) {
        self.compensate().unwrap_or_else(|error| self.go_without_worker(&error));
    }

    #[cold]
    fn go_without_worker(&self, error: &io::Error) {
        trace::spawn_failed(error);
        self.end_stranded();
    }

    /// If the queue is closed and there is no worker, ends the tasks that are still to run, since no submission will
    /// start a worker. A task that is parked or never due stays: the thread that moves the task starts a worker.
    #[cold]
    pub(super) fn end_stranded(&self) {
        if !self.queue.is_closed() || self.workers.live() > 0 || !self.lifecycle.register() {
            return;
        }
        let _scope = self.lifecycle.enter(Role::Stopper);
        let reason = self.lifecycle.phase().reason();
        for listed in self.queue.list_due(Timestamp::NEVER) {
            // A task that is never due waits for a change, as a parked one does.
            if listed.deadline == Timestamp::NEVER {
                continue;
            }
            if let Some(task) = self.queue.withdraw(listed.ticket) {
                let why = "no thread could be started for it";
                self.displace(task, listed.ticket.sequence, reason, why);
            }
        }
        self.deregister();
    }
}
