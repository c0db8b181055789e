//! Spawning: what a pool's threads are started with, and the threads that start them.
//!
//! A thread is started only by the holder of a [`SpawnPermit`], and with no lock held, since the thread
//! factory is user code. The [module above](super) has the argument why no task is forgotten between the
//! threads that want a worker. The handles of the threads are kept until they are joined.

use std::{io, time::Duration};

use super::{SpawnPermit, Workers};
use crate::{
    pool::{
        Config, Pool,
        deadlock::{PoolScope, Role},
        worker::{Runner, WorkerThread},
    },
    shared::Replaceable,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread_factory::{ThreadFactory, Worker},
    time::Timestamp,
    trace,
    unwind::{contain, discard, message_of},
};

/// The settings that the threads of a pool are started with.
pub(crate) struct Spawner {
    pub(crate) factory: Replaceable<dyn ThreadFactory>,
    /// The beginning of the names of the threads.
    pub(crate) thread_name: String,
    stack_size: Option<usize>,
    /// How late the system may wake a thread.
    pub(in crate::pool) timer_slack: Duration,
}

impl Spawner {
    pub(in crate::pool) fn new(config: &Config) -> Self {
        Self {
            factory: Replaceable::new(config.thread_factory.clone()),
            thread_name: config.thread_name.clone(),
            stack_size: config.stack_size,
            timer_slack: config.timer_slack,
        }
    }

    /// Starts a thread by the factory, with its number if it is a worker, and calls `started` once there is one: before
    /// the permit is returned. `starting` is the scope of the calling thread while the factory works.
    pub(in crate::pool) fn start_thread(
        &self,
        starting: PoolScope,
        permit: SpawnPermit<'_>,
        (name, number): (String, Option<usize>),
        started: impl FnOnce(),
        work: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        let began = Arc::new(AtomicBool::new(false));
        let begins = Arc::clone(&began);
        let work = Box::new(move || {
            // Ordering: read by the holder of the last reference.
            begins.store(true, Ordering::Relaxed);
            work();
        });
        let worker = Worker::new(name, number, self.stack_size, work);
        let factory = self.factory.get();
        let made = contain(|| factory.new_thread(worker));
        discard(factory);
        drop(starting);
        let was_dropped = Arc::into_inner(began).is_some_and(|began| !began.into_inner());
        match made {
            Ok(Ok(thread)) if !was_dropped => {
                started();
                permit.succeed(thread);
                Ok(())
            }
            Ok(Ok(_)) => Err(factory_error("dropped the worker")),
            Ok(Err(error)) => Err(error),
            Err(payload) => {
                // First: the drop of the payload is user code, and may need to start a thread.
                drop((started, permit));
                let error = factory_error(&format!("panicked: {}", message_of(&*payload)));
                discard(payload);
                Err(error)
            }
        }
    }
}

impl Pool {
    /// Starts a worker if there are fewer than `wanted`. Blocks while another thread starts one.
    /// Returns `true` if it started one.
    pub(in crate::pool) fn start_worker(
        self: &Arc<Self>,
        wanted: fn(&Workers) -> usize,
    ) -> io::Result<bool> {
        if self.is_driven {
            // The caller is the only worker.
            return Ok(false);
        }
        if self.has_caller_as(Role::Starter) {
            // The thread factory submits something, for which a worker is being started as well.
            let has_worker = self.workers.started() > 0;
            return if has_worker { Ok(false) } else { Err(factory_error("uses its executor")) };
        }
        let Some(permit) = self.workers.spawn_permit(&|started| started < wanted(&self.workers))
        else {
            return Ok(false);
        };
        let has_started = self.spawn_worker(permit)?;
        // Threads that wanted a worker too, and did not wait for the permit, have left it to this one.
        self.compensate().unwrap_or_else(|error| self.go_without_worker(&error));
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
        // Of two threads that do so at once the one that has the lock of a group later reads the newer number.
        self.groups.tell(|roll| roll.limits.workers = self.workers.wanted());
        for _ in 0..size.saturating_sub(before).min(self.queue.len()) {
            // Also after a shutdown, for the tasks that it has left.
            match self.start_worker(Workers::core_size) {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => return self.go_without_worker(&error),
            }
        }
    }

    /// Starts one worker that the core still lacks. Returns `true` if it started one.
    pub(crate) fn start_core_worker(self: &Arc<Self>) -> io::Result<bool> {
        if self.queue.is_closed() {
            return Ok(false);
        }
        self.start_worker(Workers::core_size)
    }

    /// Starts a worker if a task is pending for which none would come, although the pool may have one
    /// more. Does not block if another thread starts one. See the [head of the module](super).
    #[inline]
    pub(in crate::pool) fn compensate(self: &Arc<Self>) -> io::Result<()> {
        // A task that is never due needs no worker.
        if self.workers.is_complete() || self.queue.seems_empty() {
            return Ok(());
        }
        self.compensate_slow()
    }

    #[cold]
    fn compensate_slow(self: &Arc<Self>) -> io::Result<()> {
        // Asked under the lock of the workers; the number of waiters takes the lock of their list.
        let is_uncovered = || self.queue.waiting() == 0 && !self.queue.seems_empty();
        // More than once: threads that wanted to compensate meanwhile have left it to this one.
        while let Some(permit) = self.workers.try_spawn_permit(is_uncovered) {
            self.spawn_worker(permit)?;
        }
        Ok(())
    }

    /// Starts a worker. Returns `false` if it did not because the pool is at its end.
    fn spawn_worker(self: &Arc<Self>, permit: SpawnPermit<'_>) -> io::Result<bool> {
        if !self.lifecycle.register() {
            return Ok(false);
        }
        self.clock().worker_starts();
        let (number, stats) = permit.add_worker();
        let name = format!("{}-{number}", self.spawner.thread_name);
        let runner = Runner::new(Arc::clone(self), number, stats, true);
        let worker = WorkerThread { runner, name: name.clone() };
        let starting = PoolScope::enter(self, Role::Starter);
        let started = || self.workers.begin(number, &self.queue);
        self.spawner
            .start_thread(starting, permit, (name, Some(number)), started, || worker.work())?;
        Ok(true)
    }

    /// Reports that a worker was looked for and could not be started, and leaves the tasks that are pending to the next
    /// step that looks. In a closed queue there may be none.
    #[cold]
    pub(in crate::pool) fn go_without_worker(&self, error: &io::Error) {
        trace::spawn_failed(error);
        self.end_stranded();
    }

    /// Ends the tasks that are to come and that no worker would take: the queue is closed, so no submission looks for a
    /// worker, and there is none. A parked task stays: what moves it looks for one.
    #[cold]
    pub(in crate::pool) fn end_stranded(&self) {
        if !self.queue.is_closed() || self.workers.live() > 0 || !self.lifecycle.register() {
            return;
        }
        let _scope = PoolScope::enter(self, Role::Stopper);
        let reason = self.lifecycle.phase().reason();
        for (deadline, ticket) in self.queue.list_due(Timestamp::NEVER) {
            // A task that is never due waits for a change, as a parked one does.
            if deadline == Timestamp::NEVER {
                continue;
            }
            if let Some(task) = self.queue.remove(ticket) {
                let why = "no thread could be started for it";
                self.displace(task, ticket.sequence, reason, why);
            }
        }
        self.deregister();
    }
}

pub(in crate::pool) fn factory_error(what: &str) -> io::Error {
    io::Error::other(format!("the thread factory {what}"))
}
