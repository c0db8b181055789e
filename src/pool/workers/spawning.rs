//! Spawning: what a pool's threads are started with, and the threads that start them.
//!
//! A thread is started only by the holder of a [`SpawnPermit`], and with no lock held, since the
//! thread factory is user code. The [module above](super) has the argument why no task is forgotten
//! between the threads that want a worker.
//!
//! # The handles of the threads
//!
//! The handles of the threads that have been started are [kept](crate::pool::kept) until they are joined. A
//! thread that has ended needs no join.

use std::{io, time::Duration};

use super::SpawnPermit;
use crate::{
    lazy_thread::LazyThread,
    pool::{
        Config, Pool,
        deadlock::{self, PoolScope, Role},
        worker::WorkerThread,
    },
    shared::Replaceable,
    sync::{
        Arc, Parker,
        atomic::{AtomicBool, Ordering},
    },
    task::Cancellation,
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

    fn label_of_worker(&self, number: usize) -> ThreadLabel {
        ThreadLabel { name: format!("{}-{number}", self.thread_name), number: Some(number) }
    }

    fn label_of_service(&self, service: &str) -> ThreadLabel {
        ThreadLabel { name: format!("{}-{service}", self.thread_name), number: None }
    }

    /// Starts a thread with this label by the factory, and calls `started` once there is one: before the permit is
    /// returned. `starting` is the scope of the calling thread while the factory works.
    fn start_thread(
        &self,
        starting: PoolScope,
        permit: SpawnPermit<'_>,
        ThreadLabel { name, number }: ThreadLabel,
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

/// The name of a thread, and its number among the workers if it is one.
struct ThreadLabel {
    name: String,
    number: Option<usize>,
}

impl Pool {
    /// Starts a worker if there are fewer than `wanted`. Blocks while another thread starts one.
    /// Returns `true` if it started one.
    pub(in crate::pool) fn start_worker(
        self: &Arc<Self>,
        wanted: impl Fn() -> usize,
    ) -> io::Result<bool> {
        if self.is_driven {
            // The caller is the only worker.
            return Ok(false);
        }
        if deadlock::is_starting_thread_of(self) {
            // The thread factory submits something, for which a worker is being started as well.
            let has_worker = self.workers.started() > 0;
            return if has_worker { Ok(false) } else { Err(factory_error("uses its executor")) };
        }
        if let Some(starvation) = self.observing.starvation() {
            // An observation that cannot start fails no submission.
            self.ensure_timer_thread().unwrap_or_else(|error| trace::spawn_failed(&error));
            starvation.ensure_armed(self, self.clock().read());
        }
        let Some(permit) = self.workers.spawn_permit(|started| started < wanted()) else {
            return Ok(false);
        };
        let has_started = self.spawn_worker(permit)?;
        // Threads that wanted a worker too, and did not wait for the permit, have left it to this one.
        self.compensate().unwrap_or_else(|error| self.go_without_worker(&error));
        Ok(has_started)
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
        let label = self.spawner.label_of_worker(number);
        let worker = WorkerThread::new(Arc::clone(self), number, stats, label.name.clone());
        let starting = PoolScope::enter(self, Role::Starter);
        let started = || self.workers.begin(number, &self.queue);
        self.spawner.start_thread(starting, permit, label, started, || worker.work())?;
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
            let Some(task) = self.queue.remove(ticket) else { continue };
            let found = self.end_as_cancelled(&*task, ticket.sequence, reason);
            if found != Cancellation::TooLate && task.is_periodic() {
                let why = "no thread could be started for it";
                self.callbacks.hooks.tell_displaced(&*task, ticket.sequence, why);
            }
            discard(task);
        }
        self.deregister();
    }

    /// Starts the thread of a service unless there is one; `make_work` returns what it does with its queue. Blocks while
    /// another caller starts a thread.
    pub(in crate::pool) fn start_service<Q: Send + Sync + 'static, W>(
        self: &Arc<Self>,
        service: &LazyThread<Q>,
        name: &str,
        make_queue: impl FnOnce() -> Q,
        make_work: impl FnOnce() -> W,
    ) -> io::Result<()>
    where
        W: FnOnce(&Arc<Self>, &Arc<Q>) + Send + 'static,
    {
        if service.running().is_some() {
            return Ok(());
        }
        if deadlock::is_starting_thread_of(self) {
            // The thread factory submits something, and this thread has the permit.
            return Err(factory_error("uses its executor"));
        }
        let Some(permit) = self.workers.spawn_permit(|_| service.running().is_none()) else {
            return Ok(());
        };
        // As a party it lets the thread that ends the pool find the queue and close it.
        if !self.lifecycle.register() {
            return Ok(());
        }
        let started = match service.starting(make_queue) {
            // Only the holder of the permit starts it, so another thread has done so before this one got the permit.
            None => Ok(()),
            Some(starting) => {
                let queue = starting.queue();
                self.start_service_thread(permit, name, queue, || starting.succeed(), make_work())
            }
        };
        self.return_spawn_permit();
        started
    }

    /// Starts another thread of a service if it `is_needed`. Blocks while another caller starts a thread. If none can be
    /// started there is no other.
    pub(in crate::pool) fn start_stand_in<Q: Send + Sync + 'static, W>(
        self: &Arc<Self>,
        queue: &Arc<Q>,
        name: &str,
        is_needed: impl Fn() -> bool,
        make_work: impl FnOnce() -> W,
    ) where
        W: FnOnce(&Arc<Self>, &Arc<Q>) + Send + 'static,
    {
        // A thread that starts one has the permit.
        if deadlock::is_starting_thread_of(self) {
            return;
        }
        let Some(permit) = self.workers.spawn_permit(|_| is_needed()) else { return };
        if self.lifecycle.register() {
            let queue = Arc::clone(queue);
            let started = self.start_service_thread(permit, name, queue, || (), make_work());
            started.unwrap_or_else(|error| trace::spawn_failed(&error));
            self.return_spawn_permit();
        }
    }

    fn start_service_thread<Q: Send + Sync + 'static>(
        self: &Arc<Self>,
        permit: SpawnPermit<'_>,
        name: &str,
        queue: Arc<Q>,
        started: impl FnOnce(),
        work: impl FnOnce(&Arc<Self>, &Arc<Q>) + Send + 'static,
    ) -> io::Result<()> {
        self.clock().worker_starts();
        let (thread, label) =
            (ServiceThread(Arc::clone(self)), self.spawner.label_of_service(name));
        let work = move || thread.work(|pool| work(pool, &queue));
        let scope = PoolScope::enter(self, Role::Starter);
        self.spawner.start_thread(scope, permit, label, started, work)
    }

    /// Called when the permit for the thread of a service has been returned. Threads that wanted a worker meanwhile have
    /// left it to the holder of the permit. The caller is a party no longer.
    fn return_spawn_permit(self: &Arc<Self>) {
        self.compensate().unwrap_or_else(|error| self.go_without_worker(&error));
        self.deregister();
    }
}

pub(in crate::pool) fn factory_error(what: &str) -> io::Error {
    io::Error::other(format!("the thread factory {what}"))
}

/// A thread of a pool that is no worker, until this is dropped.
struct ServiceThread(Arc<Pool>);

impl ServiceThread {
    fn work(self, work: impl FnOnce(&Arc<Pool>)) {
        let pool = &self.0;
        // A caller that joins the pool's threads waits for this thread, too.
        let _scope = PoolScope::enter(pool, Role::Stopper);
        pool.clock().worker_begins(&Parker::current());
        work(pool);
    }
}

impl Drop for ServiceThread {
    fn drop(&mut self) {
        self.0.clock().worker_ended();
    }
}
