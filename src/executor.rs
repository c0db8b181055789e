//! The public face of the crate: the executor, which owns a pool, and the handle, which uses it.
//!
//! [`ScheduledThreadPoolExecutor`] is not `Clone`, and dropping it stops the pool. [`Handle`] is cheap to
//! clone and keeps nothing alive. The owner dereferences to its handle, so each method exists once, and a
//! function that only schedules takes a `&Handle` and accepts either type.
//!
//! Here are the two, how the executor is tuned while it runs, and what can be seen of it. The verbs that
//! submit are in [`submitting`], what stops an executor is in [`stopping`].

mod statistics;
mod stopping;
mod submitting;

use std::{fmt, io, ops::Deref, time::Duration};

pub(crate) use self::statistics::others;
pub use self::{
    statistics::{ExecutorState, PendingTask, RunningTask, Statistics},
    stopping::{DropPolicy, Termination},
};
use crate::{
    Clock, ConfigError, Observer, RejectedExecutionHandler, ScheduledFuture, TaskBuilder,
    TaskHandle, TaskSummary, ThreadFactory, WaitGuard, WouldDeadlock,
    pool::{Config, Pool, PoolRef, PoolRefs},
    queue::{SnapshotEntry, in_order},
    sync::Arc,
    task::Task,
    unwind::{contain, discard, share},
};

/// Runs closures on a fixed pool of threads: after a delay, at a fixed rate or with a fixed delay. Java:
/// `ScheduledThreadPoolExecutor`.
///
/// Its methods are those of [`Handle`], to which it dereferences.
///
/// ```
/// use std::time::Duration;
/// use punctual::ScheduledThreadPoolExecutor;
///
/// let executor = ScheduledThreadPoolExecutor::new(4);
/// let answer = executor.schedule(Duration::from_millis(5), || 6 * 7)?;
/// assert_eq!(answer.join()?, 42);
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
///
/// # Dropping it stops it
///
/// The drop admits no more tasks, cancels those that are not yet due, lets those that are due or running
/// finish, and waits for the threads to end. So it never waits for the far future, and loses no run that has
/// begun. [`Builder::on_drop`](crate::Builder::on_drop) selects another way. While the thread panics, the
/// drop is [`shutdown_now`](Handle::shutdown_now) and waits for nothing, whatever was selected; on one of the
/// executor's own workers it does not wait either.
///
/// In an async function, a drop that waits blocks the thread of the runtime. This does not:
///
/// ```
/// use punctual::ScheduledThreadPoolExecutor;
///
/// # smol::block_on(async {
/// let executor = ScheduledThreadPoolExecutor::new(2);
/// let news = executor.submit(|| "all is well")?;
/// let handle = executor.handle();
/// executor.shutdown_background(); // instead of dropping it
/// handle.termination().await; // every due task has run, the threads have nothing left to do
/// assert_eq!(news.await?, "all is well");
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// # }).unwrap();
/// ```
///
/// A task that has captured the executor itself keeps it from being dropped until the task has ended. A task
/// that is periodic or never due keeps it forever, unless the task is cancelled, or the executor is shut down
/// through a handle. To schedule more tasks, a task needs only a [`Handle`]. Two executors of which each is
/// dropped by a task of the other wait for each other for ever.
///
/// # It cannot be cloned
///
/// An executor has one owner. `executor.clone()` does not compile, although a [`Handle`] can be cloned: the
/// clone would look like a second owner, but keep nothing alive. To schedule from elsewhere, call
/// `executor.handle()`; to own it in several places, put it into an `Arc`.
///
/// ```compile_fail,E0277
/// let executor = punctual::ScheduledThreadPoolExecutor::new(1);
/// let other = executor.clone(); // an error: an executor is an owner and cannot be cloned
/// ```
///
/// # Ways to stop
///
/// | | not yet due | periodic | waits for the threads |
/// |---|---|---|---|
/// | drop ([`DropPolicy::Stop`]) | cancelled | cancelled, after a run that is due | yes |
/// | [`shutdown_background`](Self::shutdown_background), [`DropPolicy::ShutdownBackground`] | cancelled | the same | no |
/// | [`close`](Self::close), [`DropPolicy::Close`] | by policy: run | by policy: cancelled | yes, however long |
/// | [`close_background`](Self::close_background) | by policy: run | by policy: cancelled | no |
/// | [`close_within`](Self::close_within) | by policy, up to a time limit | by policy, up to a time limit | yes, however long what runs takes to stop |
/// | [`Handle::shutdown`] | by policy: run | by policy: cancelled | no, but the later drop does what its row says |
/// | [`Handle::shutdown_within`] | by policy, up to a time limit | by policy, up to a time limit | yes, up to a time limit; after that the later drop waits for nothing |
/// | [`Handle::shutdown_now`] | returned to the caller | returned to the caller | no |
/// | [`DropPolicy::ShutdownNow`] | cancelled, and so is what is due | cancelled | no |
#[doc(alias("ScheduledExecutorService", "newScheduledThreadPool", "thread_pool", "scheduler"))]
pub struct ScheduledThreadPoolExecutor {
    handle: Handle,
    /// `None` once the drop has nothing left to do.
    on_drop: Option<DropPolicy>,
}

impl ScheduledThreadPoolExecutor {
    pub(crate) fn from_config(config: Config) -> Self {
        Self { handle: Handle::to_new_pool(config), on_drop: Some(DropPolicy::default()) }
    }

    pub(crate) fn on_drop(mut self, on_drop: DropPolicy) -> Self {
        self.on_drop = Some(on_drop);
        self
    }

    /// Returns a handle, which schedules tasks and does not keep the executor alive.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }
}

impl Deref for ScheduledThreadPoolExecutor {
    type Target = Handle;

    fn deref(&self) -> &Handle {
        &self.handle
    }
}

/// Uses an executor, from any thread and any task. Cheap to clone; keeps no executor alive. Once the executor
/// has been dropped, each submission is refused, as after a shutdown.
///
/// A hook, factory or handler that owns a handle to its own executor makes a reference cycle, as any two
/// `Arc`s that own each other do: when the executor has ended, that callback, and the emptied memory of the
/// executor, are not freed. A callback that has a `Weak` to the holder of the handle makes no cycle.
///
/// ```
/// use std::thread;
/// use punctual::ScheduledThreadPoolExecutor;
///
/// let executor = ScheduledThreadPoolExecutor::new(2);
/// let (here, there) = (executor.handle(), executor.handle());
/// let news = thread::spawn(move || there.submit(|| "news")).join().expect("it does not panic")?;
/// assert_eq!(news.join()?, "news");
/// drop(executor);
/// assert!(here.submit(|| "too late").is_err());
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
///
/// # When a submission blocks, and what it costs
///
/// A submission for which a worker is missing starts one, and blocks while the thread is being started; a
/// rejection handler may block, too. Otherwise none blocks. A submission costs one allocation, one reading of
/// the clock, and an insertion into the queue, in O(log n) under its lock. It wakes no thread unless the task
/// is due before all others.
#[doc(alias = "Spawner")]
#[derive(Clone)]
pub struct Handle {
    pub(crate) pool_refs: Arc<PoolRefs>,
}

impl Handle {
    /// Returns a builder that describes a task before it is submitted: its name, its time limit, and what
    /// happens after missed runs and panics. [`TaskBuilder`] has an example.
    pub fn task(&self) -> TaskBuilder<'_> {
        TaskBuilder::new(&self.pool_refs)
    }

    /// Returns the clock of the executor. Delays count from its [`now`](Clock::now), and
    /// [`schedule_at`](Self::schedule_at) takes its instants, also on a [`ManualClock`](crate::ManualClock):
    /// code that reads it runs in production and in tests.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
    ///
    /// let clock = ManualClock::new();
    /// clock.set_auto_advance(true);
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock).build()?;
    /// let (clock, submitted) = (executor.clock().clone(), executor.clock().now());
    /// let ran = executor.schedule(Duration::from_millis(2), move || clock.now())?.join()?;
    /// assert_eq!(ran - submitted, Duration::from_millis(2));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn clock(&self) -> &Clock {
        self.pool().clock()
    }

    /// Announces that this thread is about to block, without a limit, until another task of this executor has acted: has sent
    /// a message, for instance. Until the guard is dropped, the thread counts as a waiting worker, unless `is_done` says that
    /// this has happened or will happen without the executor. Returns `None` on a thread that is no worker of this executor.
    ///
    /// ```
    /// use punctual::{CancellationToken, ScheduledThreadPoolExecutor};
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let handle = executor.handle();
    /// let wait = move || {
    ///     let news = CancellationToken::new(); // a task would raise it
    ///     let told = news.clone();
    ///     let _waiting = handle.enter_wait(move || told.is_cancelled())?;
    ///     Ok(news.wait())
    /// };
    /// let refused: Result<(), punctual::WouldDeadlock> = executor.submit(wait)?.join()?;
    /// assert!(refused.is_err(), "no worker is left that could raise it");
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`WouldDeadlock`], if every other worker waits as well and no further one can be started.
    #[doc(alias("blocking", "block_in_place"))]
    pub fn enter_wait(
        &self,
        is_done: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Result<Option<WaitGuard<'_>>, WouldDeadlock> {
        let is_stuck = move |_: bool| !contain(&is_done).unwrap_or(true);
        self.pool().enter_wait(|| Arc::new(is_stuck))
    }

    /// Returns `true` if only a worker of this executor can end the task: it belongs to this executor, has not ended, has no
    /// [time limit](TaskBuilder::timeout), and no [handler](crate::RejectedTask::keep) has kept it.
    pub fn has_to_run(&self, task: &TaskHandle) -> bool {
        task.needs_worker_of(self.pool())
    }

    /// Returns the [observer](crate::Builder::observer) of this type, if the executor has one; the first, if it has several.
    ///
    /// ```
    /// # struct Seen;
    /// # impl punctual::Observer for Seen {}
    /// let executor = punctual::ScheduledThreadPoolExecutor::builder().observer(Seen).build()?;
    /// assert!(executor.observer::<Seen>().is_some());
    /// # Ok::<(), punctual::ConfigError>(())
    /// ```
    pub fn observer<T: Observer + 'static>(&self) -> Option<&T> {
        self.pool().callbacks.hooks.observers.find()
    }

    pub(crate) fn to_new_pool(config: Config) -> Self {
        Self { pool_refs: PoolRefs::to_new_pool(config) }
    }

    pub(crate) fn pool_ref(&self) -> &PoolRef {
        self.pool_refs.local()
    }

    pub(crate) fn pool(&self) -> &Arc<Pool> {
        self.pool_refs.pool()
    }
}

/// The settings of an executor that can be read and changed while it runs.
impl Handle {
    /// Returns the core pool size: how many workers the executor is to have. Java: `getCorePoolSize`.
    #[doc(alias("getCorePoolSize", "worker_threads", "num_threads", "num_workers"))]
    pub fn core_pool_size(&self) -> usize {
        self.pool().workers.core_size()
    }

    /// Sets the core pool size. Java: `setCorePoolSize`.
    ///
    /// Growing starts as many workers at once as there are pending tasks, even if a shutdown has left these,
    /// and blocks while the threads are being started. The other workers are started as they are needed: by
    /// later submissions, or when tasks are due and no worker is idle. If a worker cannot be started, the
    /// executor tries again when the next one is needed.
    ///
    /// Shrinking lets idle workers retire after the [keep-alive](Self::keep_alive), counted from their last
    /// task, and does not wait for that. Running tasks are not disturbed.
    #[doc(alias("resize", "set_num_threads"))]
    pub fn set_core_pool_size(&self, size: usize) {
        self.pool().set_core_pool_size(size);
    }

    /// Returns how long a worker that may retire stays idle before it does. Java: `getKeepAliveTime`.
    #[doc(alias = "getKeepAliveTime")]
    pub fn keep_alive(&self) -> Duration {
        self.pool().workers.keep_alive()
    }

    /// Sets how long a worker that may retire stays idle before it does; see
    /// [`Builder::keep_alive`](crate::Builder::keep_alive). Java: `setKeepAliveTime`.
    ///
    /// # Errors
    ///
    /// [`ConfigError::ZeroKeepAlive`] if it is zero and core threads may time out. Nothing is changed then.
    #[doc(alias = "setKeepAliveTime")]
    pub fn set_keep_alive(&self, keep_alive: Duration) -> Result<(), ConfigError> {
        self.set_times(Some(keep_alive), None)
    }

    /// Returns `true` if workers of the core retire as well. Java: `allowsCoreThreadTimeOut`.
    pub fn allows_core_thread_timeout(&self) -> bool {
        self.pool().workers.core_timeout()
    }

    /// Sets whether workers of the core retire as well; see
    /// [`Builder::allows_core_thread_timeout`](crate::Builder::allows_core_thread_timeout). Java:
    /// `allowCoreThreadTimeOut`.
    ///
    /// # Errors
    ///
    /// [`ConfigError::ZeroKeepAlive`] if the keep-alive is zero, so that they would retire at once. Nothing
    /// is changed then.
    #[doc(alias = "allowCoreThreadTimeOut")]
    pub fn set_allows_core_thread_timeout(&self, allow: bool) -> Result<(), ConfigError> {
        self.set_times(None, Some(allow))
    }

    fn set_times(
        &self,
        keep_alive: Option<Duration>,
        core_timeout: Option<bool>,
    ) -> Result<(), ConfigError> {
        let pool = self.pool();
        if !pool.workers.set_times(keep_alive, core_timeout) {
            return Err(ConfigError::ZeroKeepAlive);
        }
        pool.queue.reconsider();
        Ok(())
    }

    /// Starts a worker, so that no submission has to. Returns `true` if one was missing, and `false` if all
    /// workers of the core have been started or the executor was shut down. Blocks while the thread is being
    /// started. Java: `prestartCoreThread`.
    ///
    /// # Errors
    ///
    /// The error that kept the thread from being started.
    pub fn prestart_core_thread(&self) -> io::Result<bool> {
        self.pool().start_core_worker()
    }

    /// Starts all workers of the core that are missing, and returns how many these were. Blocks
    /// while the threads are being started. Java: `prestartAllCoreThreads`.
    ///
    /// # Errors
    ///
    /// The error that kept a thread from being started; the threads before it have been started.
    pub fn prestart_all_core_threads(&self) -> io::Result<usize> {
        let mut started = 0;
        while self.prestart_core_thread()? {
            started += 1;
        }
        Ok(started)
    }

    /// Returns the factory that starts the threads. What it returns is a factory itself, and can be
    /// set [here](Self::set_thread_factory) or in another executor. Java: `getThreadFactory`.
    #[doc(alias = "getThreadFactory")]
    pub fn thread_factory(&self) -> Arc<dyn ThreadFactory> {
        self.pool().spawner.factory.get()
    }

    /// Sets the factory that starts the threads, from the next thread on. Java: `setThreadFactory`.
    pub fn set_thread_factory(&self, factory: impl ThreadFactory + 'static) {
        self.pool().spawner.factory.set(share::<dyn ThreadFactory, _>(factory, |it| Arc::new(it)));
    }

    /// Returns the handler that decides about rejected tasks. What it returns is a handler itself,
    /// and can be set [here](Self::set_rejected_execution_handler) or in another executor. Java:
    /// `getRejectedExecutionHandler`.
    #[doc(alias = "getRejectedExecutionHandler")]
    pub fn rejected_execution_handler(&self) -> Arc<dyn RejectedExecutionHandler> {
        self.pool().rejections.handler.get()
    }

    /// Sets the handler that decides about rejected tasks, from the next one on. Java:
    /// `setRejectedExecutionHandler`.
    pub fn set_rejected_execution_handler(&self, handler: impl RejectedExecutionHandler + 'static) {
        let handler = share::<dyn RejectedExecutionHandler, _>(handler, |it| Arc::new(it));
        self.pool().rejections.handler.set(handler);
    }

    /// Returns how many tasks may be pending, or `None` if there is no bound; see
    /// [`Builder::max_pending`](crate::Builder::max_pending).
    pub fn max_pending(&self) -> Option<usize> {
        self.pool().capacity.bound
    }
}

/// Counts, and the pending tasks. There is no live view of the queue, unlike in Java, whose iterator shows the heap's
/// order and whose `remove` leaves the future pending. There is a snapshot, in due order, and each task in it can be
/// cancelled.
impl Handle {
    /// Returns how many workers and tasks there are and were, in one consistent snapshot. Takes time linear
    /// in the number of workers; submissions and workers wait while it counts, which is less than a
    /// microsecond. [`Statistics`] has an example.
    #[doc(alias("metrics", "stats"))]
    pub fn statistics(&self) -> Statistics {
        Statistics::of(self.pool())
    }

    /// Returns how many workers there are, without one that is still being started. Java: `getPoolSize`.
    #[doc(alias = "getPoolSize")]
    pub fn pool_size(&self) -> usize {
        self.pool().workers.size()
    }

    /// Returns the largest number of workers that there have ever been at once. Java: `getLargestPoolSize`.
    #[doc(alias = "getLargestPoolSize")]
    pub fn largest_pool_size(&self) -> usize {
        self.pool().workers.count(|_| ()).1
    }

    /// Returns how many workers are idle, asleep until a task is due; one that starts or has just run a task is not.
    pub fn idle_count(&self) -> usize {
        self.pool().queue.waiting()
    }

    /// Returns the running tasks in no particular order, each with the time that its run has taken so far. Takes time linear
    /// in the number of workers.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let ((begin, begun), (end, ends)) = (mpsc::channel(), mpsc::channel::<()>());
    /// executor.task().name("backup").execute(move || {
    ///     begin.send(()).ok();
    ///     ends.recv().ok();
    /// })?;
    /// begun.recv()?;
    /// assert_eq!(executor.running_tasks()[0].name(), Some("backup"));
    /// end.send(())?;
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn running_tasks(&self) -> Vec<RunningTask> {
        RunningTask::all(self.pool())
    }

    /// Returns the first of the due tasks and how long it has been due, which is how far the executor is behind. `None` if
    /// nothing is due. Takes time linear in the number of cores.
    pub fn first_due(&self) -> Option<(TaskSummary, Duration)> {
        let now = self.pool().clock().read();
        let first = self.pool().queue.first_due(now)?;
        let (due, ticket, task) = (first.deadline, first.ticket, first.element);
        let summary = TaskSummary::new(ticket.sequence, task.name());
        discard(task);
        Some((summary, now.since(due)))
    }

    /// Returns how many tasks are running. Costs as much as [`statistics`](Self::statistics). Java:
    /// `getActiveCount`.
    #[doc(alias = "getActiveCount")]
    pub fn active_count(&self) -> usize {
        self.statistics().active
    }

    /// Returns how many tasks have run, are running or are pending; those that were cancelled do
    /// not count. Costs as much as [`statistics`](Self::statistics). Java: `getTaskCount`.
    #[doc(alias = "getTaskCount")]
    pub fn task_count(&self) -> u64 {
        let now = self.statistics();
        now.submitted - now.cancelled
    }

    /// Returns how many tasks have run to their end, with a result or a panic. Costs as much as
    /// [`statistics`](Self::statistics), which tells the two apart, and counts the runs of periodic
    /// tasks in its `runs`. Java: `getCompletedTaskCount`, which counts runs, and cancelled tasks
    /// too.
    #[doc(alias = "getCompletedTaskCount")]
    pub fn completed_task_count(&self) -> u64 {
        let now = self.statistics();
        now.completed + now.failed
    }

    /// Returns how many tasks are pending; those that run do not count. Java: `getQueue().size()`.
    pub fn pending_count(&self) -> usize {
        self.pool().queue.len()
    }

    /// Returns a snapshot of the pending tasks, in the order in which they are due. Takes O(n log n). While
    /// it copies the queue, one handle for each task, nothing can be submitted or taken. Java: `getQueue`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// for (name, minutes) in [("lunch", 240), ("tea", 30)] {
    ///     executor.task().name(name).schedule(Duration::from_secs(60 * minutes), || ())?;
    /// }
    /// let pending = executor.pending_tasks();
    /// assert_eq!(pending[0].name().as_deref(), Some("tea"));
    /// pending[0].cancel();
    /// assert_eq!(executor.pending_count(), 1);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias("getQueue", "queue"))]
    pub fn pending_tasks(&self) -> Vec<PendingTask> {
        let mut listed = self.pool().queue.snapshot();
        listed.iter_mut().for_each(|one| one.deadline = one.element.due_by(one.deadline));
        let listed = in_order(listed).into_iter();
        listed.map(|one| PendingTask::new(one, self.pool_refs.local())).collect()
    }

    /// Removes a pending task from the queue, and returns `true` if it was there: a task that runs,
    /// has ended or belongs to another executor is left alone. The future of a removed task ends as
    /// cancelled, with [`CancelReason::Removed`](crate::CancelReason). Takes O(log n). Java:
    /// `remove`, after which the future stays pending forever.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{CancelReason, ScheduledThreadPoolExecutor, TaskError};
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let task = executor.schedule(Duration::from_secs(60), || ())?;
    /// assert!(executor.remove(&task));
    /// assert!(matches!(task.join(), Err(TaskError::Cancelled(CancelReason::Removed))));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn remove<T>(&self, task: &ScheduledFuture<T>) -> bool {
        task.handle.remove_from(self.pool())
    }

    /// Removes cancelled tasks from the queue, and returns how many these were. That is nearly
    /// always zero, because cancelling a task removes it as well: this finds only the tasks that a
    /// call in another thread has cancelled and not yet removed. Takes time linear in the number of
    /// pending tasks. Java: `purge`, which is needed there.
    pub fn purge(&self) -> usize {
        let pool = self.pool();
        let listed = pool.queue.snapshot();
        let has_ended = |one: &&SnapshotEntry<Arc<Task>>| one.element.state().is_done();
        let purged = listed.iter().filter(has_ended).filter(|one| pool.remove(one.ticket)).count();
        discard(listed);
        purged
    }

    pub(crate) fn describe(&self, f: &mut fmt::Formatter<'_>, what: &str) -> fmt::Result {
        let name = &self.pool().spawner.thread_name;
        f.debug_struct(what).field("name", name).field("statistics", &self.statistics()).finish()
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe(f, "Handle")
    }
}

impl fmt::Debug for ScheduledThreadPoolExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.handle.describe(f, "ScheduledThreadPoolExecutor")
    }
}

#[cfg(test)]
mod tests;
