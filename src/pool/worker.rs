//! The worker: it takes a task when the task is due, runs it, and queues it again if it is periodic.
//!
//! A worker owns nothing but its thread. It ends when the queue is closed and empty, or when it
//! has been surplus and idle for long enough ([`workers`](super::workers)). Nothing that a task
//! does ends it: the task catches the panics of its closure and of its drops, and what is left to
//! drop here is dropped through `unwind` as well.
//!
//! The thread comes from a [`ThreadFactory`], which is handed the worker as a value to be run. The
//! pool counts a worker for as long as its [`WorkerThread`] lives, which is part of that value:
//! wherever it is dropped, at the end of the run or by a factory that never ran it, the worker is
//! removed from the count.

use std::{cell::Cell, fmt, io, rc::Rc};

use super::{
    Pool,
    deadlock::{PoolScope, Role},
    observing::Observed,
};
use crate::{
    queue::QueueEntry,
    statistics::WorkerStats,
    sync::{Arc, Parker, thread},
    task::{FailureSource, Requeued, Run, Task, Verdict, WorkerContext},
    time::{Clock, Timestamp, set_timer_slack},
    trace,
};

/// Starts the threads of an executor. Set by
/// [`Builder::thread_factory`](crate::Builder::thread_factory). Java: `ThreadFactory`.
///
/// Closures are factories. This one starts threads as the executor does by default:
///
/// ```
/// use punctual::{ScheduledThreadPoolExecutor, Worker};
///
/// let executor = ScheduledThreadPoolExecutor::builder()
///     .thread_factory(|worker: Worker| {
///         let mut thread = std::thread::Builder::new().name(worker.name().to_owned());
///         if let Some(bytes) = worker.stack_size() {
///             thread = thread.stack_size(bytes);
///         }
///         thread.spawn(move || worker.run()).map(Some)
///     })
///     .build()?;
/// # assert_eq!(executor.submit(|| 7)?.join()?, 7);
/// # executor.close()?;
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
pub trait ThreadFactory: Send + Sync {
    /// Starts a thread that [runs](Worker::run) the worker. Called by a thread that submits a task,
    /// and by a worker that is about to run one, if other tasks are due and no worker would take
    /// them. No lock is held. Each executor makes one call at a time, so other threads that submit,
    /// and that need a thread, wait for it. The factory may submit to its own executor, but must not
    /// wait for a task of that executor, nor for another thread that submits to it.
    ///
    /// A factory that returns `Ok` has to ensure that the worker is run. If the worker is dropped
    /// later, and all others are busy, tasks that are due wait until one of them is done, or until
    /// the next submission starts another.
    ///
    /// Return the handle of the thread if there is one:
    /// [`close`](crate::ScheduledThreadPoolExecutor::close) then waits until the thread itself has
    /// ended, and otherwise only until the worker has.
    ///
    /// # Errors
    ///
    /// Whatever keeps the thread from being started. The submission fails with it if there is no
    /// other worker. If there is one, the submission succeeds, and its task waits for the workers
    /// that exist. A factory that panics, or drops the worker, has failed.
    fn new_thread(&self, worker: Worker) -> io::Result<Option<thread::JoinHandle<()>>>;
}

impl<F> ThreadFactory for F
where
    F: Fn(Worker) -> io::Result<Option<thread::JoinHandle<()>>> + Send + Sync,
{
    fn new_thread(&self, worker: Worker) -> io::Result<Option<thread::JoinHandle<()>>> {
        self(worker)
    }
}

/// Starts a thread of the standard library, with the worker's name and stack size.
pub(super) fn std_thread(worker: Worker) -> io::Result<Option<thread::JoinHandle<()>>> {
    let mut builder = thread::Builder::new().name(worker.name.clone());
    if let Some(size) = worker.stack_size {
        builder = builder.stack_size(size);
    }
    builder.spawn(move || worker.run()).map(Some)
}

/// What a thread of an executor is to do, as handed to a [`ThreadFactory`].
#[must_use = "a worker that is dropped does no work"]
pub struct Worker {
    name: String,
    index: Option<usize>,
    stack_size: Option<usize>,
    work: Box<dyn FnOnce() + Send>,
}

impl Worker {
    pub(super) fn new(
        name: String,
        index: Option<usize>,
        stack_size: Option<usize>,
        work: Box<dyn FnOnce() + Send>,
    ) -> Self {
        Self { name, index, stack_size, work }
    }

    /// Returns the name that the thread is to have.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of the worker within its executor, counted from 1 in the order in which
    /// workers were to be started. No number is used twice, so a worker that replaces another has a
    /// number of its own. `None` for the thread that expires
    /// [timeouts](crate::TaskBuilder::timeout) and for the one that watches the
    /// [wall clock](crate::trigger::Due::Wall), which run no tasks.
    ///
    /// ```
    /// use punctual::{ScheduledThreadPoolExecutor, Worker};
    ///
    /// # fn pin_to(_core: usize) {}
    /// # fn cores() -> usize { 2 }
    /// let executor = ScheduledThreadPoolExecutor::builder()
    ///     .core_pool_size(cores())
    ///     .thread_factory(|worker: Worker| {
    ///         let name = match worker.index() {
    ///             Some(number) => format!("mail #{number}"),
    ///             None => "mail timeouts".to_owned(),
    ///         };
    ///         let thread = std::thread::Builder::new().name(name);
    ///         let work = move || {
    ///             if let Some(number) = worker.index() {
    ///                 pin_to((number - 1) % cores()); // one worker on each core
    ///             }
    ///             worker.run();
    ///         };
    ///         thread.spawn(work).map(Some)
    ///     })
    ///     .build()?;
    /// let name = executor.submit(|| std::thread::current().name().map(str::to_owned))?;
    /// assert_eq!(name.join()?.as_deref(), Some("mail #1"));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[must_use]
    pub fn index(&self) -> Option<usize> {
        self.index
    }

    /// Returns the stack size that the executor was built with, in bytes; `None` for the default of
    /// the standard library.
    #[must_use]
    pub fn stack_size(&self) -> Option<usize> {
        self.stack_size
    }

    /// Runs the worker. Blocks until the executor has no more use for the thread: at its
    /// termination, or when the pool becomes smaller.
    pub fn run(self) {
        (self.work)();
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("name", &self.name)
            .field("index", &self.index)
            .field("stack_size", &self.stack_size)
            .finish_non_exhaustive()
    }
}

/// One worker, as the pool counts it until this is dropped.
pub(super) struct WorkerThread {
    runner: Runner,
    name: String,
}

/// What a worker does with a task that it has taken, and what the others know of this worker.
pub(super) struct Runner {
    pool: Arc<Pool>,
    number: usize,
    stats: Arc<WorkerStats>,
    /// Other threads may rely on this worker to look for a task: it has been idle, or is about to
    /// search.
    is_relied_on: Cell<bool>,
    /// What watches it, if anything does.
    observed: Option<Observed>,
    /// It is about to search, as [`Workers`](super::workers::Workers) knows, and has not yet.
    will_search: Cell<bool>,
}

impl WorkerThread {
    pub(super) fn new(
        pool: Arc<Pool>,
        number: usize,
        stats: Arc<WorkerStats>,
        name: String,
    ) -> Self {
        Self { runner: Runner::new(pool, number, stats, true), name }
    }

    /// All that a worker does.
    pub(super) fn work(self) {
        // Until the very end: the hooks below must not wait for this thread either.
        let Runner { pool, number, .. } = &self.runner;
        let _scope = PoolScope::enter(pool, Role::Worker);
        pool.worker_started(*number);
        let callbacks = pool.callbacks();
        let parker = Parker::current();
        let before = pool.clock().worker_begins(&parker);
        set_timer_slack(pool.spawner.timer_slack());
        trace::worker("started", &self.name);
        callbacks.call(FailureSource::ThreadStart);
        self.runner.run_tasks();
        callbacks.call(FailureSource::ThreadStop);
        trace::worker("ended", &self.name);
        drop(self);
        // The thread may belong to somebody who goes on with it.
        Clock::worker_leaves(&parker, before);
    }
}

impl Runner {
    /// That of a worker which is about to search at first, or which nobody ever relies on.
    pub(super) fn new(
        pool: Arc<Pool>,
        number: usize,
        stats: Arc<WorkerStats>,
        will_search: bool,
    ) -> Self {
        let (is_relied_on, will_search) = (Cell::new(will_search), Cell::new(will_search));
        let observed = pool.observed();
        Self { pool, number, stats, is_relied_on, observed, will_search }
    }

    pub(super) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Returns how many runs there have been; called on the worker's thread.
    pub(super) fn runs(&self) -> u64 {
        self.stats.runs()
    }

    /// Returns what all runs on this worker have in common.
    pub(super) fn context(&self) -> Rc<WorkerContext> {
        let stop = self.pool.shutdown.token().clone();
        let (clock, stats) = (self.pool.clock().clone(), Arc::clone(&self.stats));
        Rc::new(WorkerContext::new(clock, stop, stats, true))
    }

    /// Takes and runs tasks until there is nothing more to do for this worker.
    fn run_tasks(&self) {
        let (pool, worker) = (&*self.pool, self.context());
        // The queue calls `parker` only if nothing was due at first, and from then on counts this
        // worker as idle; it calls `limit` each time it has looked in vain. So a worker that finds
        // its next task at once is never relied on.
        let limit = |since| {
            self.note_look(&worker, since);
            self.search_done();
            pool.idle_limit(self.number, since)
        };
        let parker = || {
            self.is_relied_on.set(true);
            Parker::current()
        };
        while let Some((entry, now)) = pool.queue.take_until_by(parker, limit) {
            if pool.minds_takes {
                self.mind_take(&worker, entry.deadline, now);
            }
            // Before the task, which may take long.
            self.stop_being_relied_on();
            self.process(&worker, entry, now);
        }
    }

    /// Notes that the worker has looked for a task in vain; the clock shows `now`.
    pub(super) fn note_look(&self, worker: &WorkerContext, now: Timestamp) {
        if let Some(observed) = &self.observed {
            observed.looks(worker, now);
        }
    }

    /// Does what there is to do about a taken entry in a pool with a bound, or one that is observed. It
    /// is one question for both, so that a pool without either has only that one to ask.
    #[inline(never)]
    pub(super) fn mind_take(&self, worker: &WorkerContext, planned: Timestamp, now: Timestamp) {
        self.pool.release_capacity();
        if let Some(observed) = &self.observed {
            observed.takes(&self.pool, worker, planned, now);
        }
    }

    /// Runs a task, and queues it again if it is to run again.
    pub(super) fn process(
        &self,
        worker: &Rc<WorkerContext>,
        entry: QueueEntry<Arc<Task>>,
        now: Timestamp,
    ) {
        let (pool, QueueEntry { deadline, sequence, element }) = (&*self.pool, entry);
        let run = Run::new(Rc::clone(worker), element, sequence, deadline, now);
        let (task, hooks) = (run.task(), &pool.callbacks().hooks);
        match task.run(&run, hooks) {
            Verdict::Again(next) => self.requeue(&worker.stats, task, sequence, next),
            Verdict::Ended => pool.shutdown.log().ended(sequence, &**task),
            rare => self.carry_out(rare, &worker.stats, task, sequence),
        }
        // This may be the last reference to a result that nobody wants.
        hooks.drops(sequence).discard(run);
    }

    /// Carries out a verdict that few runs have.
    #[cold]
    fn carry_out(&self, verdict: Verdict, stats: &WorkerStats, task: &Arc<Task>, sequence: u64) {
        let pool = &self.pool;
        match verdict {
            Verdict::TimedOut => pool.note_timed_out(&**task, sequence),
            Verdict::Cancelled(reason) => _ = pool.end_taken(&**task, sequence, reason, stats),
            Verdict::TooLate | Verdict::Again(_) | Verdict::Ended => {}
        }
    }

    /// Queues a task again that waits for its next run.
    #[inline(always)]
    fn requeue(&self, stats: &WorkerStats, task: &Arc<Task>, sequence: u64, next: Timestamp) {
        self.announce_search();
        match self.pool.requeue(task, sequence, next) {
            Requeued::Queued => {}
            Requeued::ByEstimate => self.pool.follow_estimate(&**task, sequence),
            Requeued::Refused => {
                self.stop_being_relied_on();
                self.pool.end_refused(task, sequence, stats);
            }
        }
    }

    /// Announces that this worker is about to queue a task again and to search then, so that no other
    /// need be started for that task.
    #[inline]
    fn announce_search(&self) {
        if self.pool.workers.started() < self.pool.workers.wanted() {
            self.pool.workers.announce_search(self.number);
            self.will_search.set(true);
            self.is_relied_on.set(true);
        }
    }

    /// Takes the announcement back: this worker has searched, and either is idle now, as the queue
    /// knows, or has found a task.
    fn search_done(&self) {
        if self.will_search.take() {
            self.pool.workers.search_done(self.number);
        }
    }

    /// Called before something that may take long. If other threads have relied on this worker,
    /// another is started in its place where one is needed.
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
        self.pool.compensate().unwrap_or_else(|error| trace::spawn_failed(&error));
    }
}

impl Drop for WorkerThread {
    fn drop(&mut self) {
        let Runner { pool, number, .. } = &self.runner;
        pool.workers.remove(*number);
        pool.watch_for_starvation();
        pool.release_hold();
        pool.clock().worker_ended();
    }
}
