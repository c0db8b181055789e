//! The public face of the crate: the executor, which owns a pool, and the handle, which uses it.
//! [`ScheduledThreadPoolExecutor`] is not `Clone`, and dropping it stops the pool. [`Handle`] is cheap to clone and
//! does not keep the executor running. The executor dereferences to its handle, so the methods that they share are
//! defined once. A function that only schedules can take a `&Handle`, and then accepts either type.

use std::{fmt, io, ops::Deref, time::Duration};

use crate::{
    CancelReason, ConfigError, DropPolicy, Observer, RejectedExecutionHandler, ScheduledFuture,
    TaskHandle, ThreadFactory, WaitGuard, WouldDeadlock,
    pool::{Config, Pool, PoolRef, PoolRefs},
    queue::SnapshotEntry,
    sync::Arc,
    task::Task,
    unwind::{contain, discard, share},
};

/// Runs closures on a fixed pool of threads: after a delay, at a fixed rate or with a fixed delay. Java:
/// `ScheduledThreadPoolExecutor`. It has the methods of [`Handle`], to which it dereferences. The [front
/// page](crate) has an example.
///
/// # Dropping it stops it
///
/// The drop admits no more tasks, cancels those that are not yet due, lets those that are due or running finish,
/// and waits for the threads to end. So it never waits for the far future, and loses no run that has begun.
/// [`Builder::on_drop`](crate::Builder::on_drop) selects another way. While the thread panics, the drop is
/// [`shutdown_now`](Handle::shutdown_now) and waits for nothing; on one of the executor's own workers it does not
/// wait either.
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
/// To schedule from elsewhere, even inside a task, take a [`handle`](Self::handle). (`executor.clone()` returns one
/// too, not a second owner.) To own it in several places, put it into an `Arc`. A task that has captured its executor
/// keeps it until the task has ended, and one that is periodic or never due keeps it forever, unless it is cancelled or
/// the executor is shut down through a handle. Two executors, each dropped by a task of the other, wait for each other
/// forever.
///
/// # Ways to stop
///
/// | | not yet due | periodic | waits for the threads |
/// |---|---|---|---|
/// | drop ([`DropPolicy::Stop`]) | cancelled | cancelled, after a run that is due | yes |
/// | [`shutdown_background`](Self::shutdown_background), [`DropPolicy::ShutdownBackground`] | cancelled | the same | no |
/// | [`close`](Self::close), [`DropPolicy::Close`] | by policy: run | by policy: cancelled | yes, however long |
/// | [`close_background`](Self::close_background) | by policy: run | by policy: cancelled | no |
/// | [`close_within`](Self::close_within) | by policy, up to a time limit | by policy, up to a time limit | yes, however long the running tasks take to stop |
/// | [`Handle::shutdown`] | by policy: run | by policy: cancelled | no, but the later drop does what its row says |
/// | [`Handle::shutdown_within`] | by policy, up to a time limit | by policy, up to a time limit | yes, up to a time limit; after that the later drop waits for nothing |
/// | [`Handle::shutdown_now`] | returned to the caller | returned to the caller | no |
/// | [`DropPolicy::ShutdownNow`] | cancelled, and so is what is due | cancelled | no |
#[doc(alias("ScheduledExecutorService", "newScheduledThreadPool", "thread_pool", "scheduler"))]
pub struct ScheduledThreadPoolExecutor {
    pub(crate) handle: Handle,
    /// `None` if a method that consumed the executor has left nothing for the drop to do.
    pub(crate) on_drop: Option<DropPolicy>,
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

/// Uses an executor, from any thread and any task. Cheap to clone; keeps no executor alive. Once the executor has
/// been dropped, each submission is refused, as after a shutdown.
///
/// A hook, factory or handler that owns a handle to its own executor makes a reference cycle: when the executor has
/// ended, that callback, and the emptied memory of the executor, are not freed. A `Weak` to the holder of the
/// handle makes none.
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
/// A submission that finds a worker missing starts one, and blocks while the thread is being started; a rejection
/// handler may block, too. No other submission blocks. A submission costs one allocation, one clock reading, and an
/// insertion into the queue, in O(log n) under its lock. It wakes no thread unless the task is due before all others.
#[doc(alias = "Spawner")]
#[derive(Clone)]
pub struct Handle {
    pub(crate) pool_refs: Arc<PoolRefs>,
}

/// # For code built on an executor
impl Handle {
    /// Announces that this thread is about to block, without a time limit, until another task of this executor acts:
    /// sends a message, for instance. Until the guard is dropped, the thread counts as a waiting worker, unless
    /// `is_done` says that this has happened or will happen without the executor. Returns `None` on a thread that is no
    /// worker of this executor.
    ///
    /// ```
    /// use punctual::{CancellationToken, ScheduledThreadPoolExecutor};
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let handle = executor.handle();
    /// let wait = move || {
    ///     let news = CancellationToken::new(); // a task would cancel it
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

    /// Returns `true` if only a worker of this executor can end the task: it is the executor's, has not ended, has
    /// no [time limit](crate::TaskBuilder::timeout), and no [handler](crate::RejectedTask::keep) has kept it.
    pub fn has_to_run(&self, task: &TaskHandle) -> bool {
        task.needs_worker_of(self.pool())
    }

    /// Returns the first [observer](crate::Builder::observer) of this type, if the executor has one.
    ///
    /// ```
    /// # struct Seen;
    /// # impl punctual::Observer for Seen {}
    /// let executor = punctual::ScheduledThreadPoolExecutor::builder().observer(Seen).build()?;
    /// assert!(executor.observer::<Seen>().is_some());
    /// # Ok::<(), punctual::ConfigError>(())
    /// ```
    pub fn observer<T: Observer + 'static>(&self) -> Option<&T> {
        self.pool().callbacks.hooks.find()
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

    pub(crate) fn describe(&self, f: &mut fmt::Formatter<'_>, what: &str) -> fmt::Result {
        let name = &self.pool().spawner.thread_name;
        f.debug_struct(what).field("name", name).field("statistics", &self.statistics()).finish()
    }
}

/// # What Java has as well
///
/// The settings that can be read and changed while the executor runs, and the methods that are seldom needed here.
impl Handle {
    /// Returns the core pool size: how many workers the executor is to have. Java: `getCorePoolSize`.
    #[doc(alias("getCorePoolSize", "worker_threads", "num_threads", "num_workers"))]
    pub fn core_pool_size(&self) -> usize {
        self.pool().workers.core_size()
    }

    /// Sets the core pool size. Java: `setCorePoolSize`.
    ///
    /// Growing starts as many workers at once as there are pending tasks, even after a shutdown, and blocks while
    /// the threads are being started; the others start when they are needed. If a worker cannot be started, the
    /// executor tries again when the next one is needed. Shrinking does not wait, and disturbs no running task:
    /// idle workers retire after the [keep-alive](Self::keep_alive), counted from their last task.
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
    /// [`ConfigError::ZeroKeepAlive`] if the keep-alive is zero, so that they would retire at once. Nothing is
    /// changed then.
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

    /// Starts a worker, so that no submission has to. Returns `true` if one was missing, and `false` if all workers
    /// of the core have been started or the executor was shut down. Blocks while the thread is being started. Java:
    /// `prestartCoreThread`.
    ///
    /// # Errors
    ///
    /// The error that kept the thread from being started.
    pub fn prestart_core_thread(&self) -> io::Result<bool> {
        self.pool().start_core_worker()
    }

    /// Starts all missing workers of the core, and returns how many it started. Blocks while the threads are being
    /// started. Java: `prestartAllCoreThreads`.
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

    /// Returns the factory that starts the threads; it can be set in another executor too. Java: `getThreadFactory`.
    #[doc(alias = "getThreadFactory")]
    pub fn thread_factory(&self) -> Arc<dyn ThreadFactory> {
        self.pool().spawner.factory.get()
    }

    /// Sets the factory that starts the threads, from the next thread on. Java: `setThreadFactory`.
    pub fn set_thread_factory(&self, factory: impl ThreadFactory + 'static) {
        self.pool().spawner.factory.set(share::<dyn ThreadFactory, _>(factory, |it| Arc::new(it)));
    }

    /// Returns the handler of rejected tasks; it can be set in another executor too. Java:
    /// `getRejectedExecutionHandler`.
    #[doc(alias = "getRejectedExecutionHandler")]
    pub fn rejected_execution_handler(&self) -> Arc<dyn RejectedExecutionHandler> {
        self.pool().rejections.handler.get()
    }

    /// Sets the handler of rejected tasks, from the next one on. Java: `setRejectedExecutionHandler`.
    pub fn set_rejected_execution_handler(&self, handler: impl RejectedExecutionHandler + 'static) {
        let handler = share::<dyn RejectedExecutionHandler, _>(handler, |it| Arc::new(it));
        self.pool().rejections.handler.set(handler);
    }

    /// Returns the [bound](crate::Builder::max_pending) on pending tasks, if there is one.
    pub fn max_pending(&self) -> Option<usize> {
        self.pool().capacity.bound
    }

    /// Returns how many workers there are, not counting any that is still being started. Java: `getPoolSize`.
    #[doc(alias = "getPoolSize")]
    pub fn pool_size(&self) -> usize {
        self.pool().workers.size()
    }

    /// Returns the largest number of workers that there have ever been at once. Java: `getLargestPoolSize`.
    #[doc(alias = "getLargestPoolSize")]
    pub fn largest_pool_size(&self) -> usize {
        self.pool().workers.count(|_| ()).1
    }

    /// Returns [`Statistics::active`](crate::Statistics::active): how many tasks are running. Java: `getActiveCount`.
    #[doc(alias = "getActiveCount")]
    pub fn active_count(&self) -> usize {
        self.statistics().active
    }

    /// Returns how many tasks have run, are running or are pending; those that were cancelled do not count. Costs
    /// as much as [`statistics`](Self::statistics). Java: `getTaskCount`.
    #[doc(alias = "getTaskCount")]
    pub fn task_count(&self) -> u64 {
        let now = self.statistics();
        now.submitted - now.cancelled
    }

    /// Returns how many tasks have ended with a result or a failure. Costs as much as [`statistics`](Self::statistics),
    /// which tells the two apart. Java: `getCompletedTaskCount`, which counts runs, and cancelled tasks too.
    #[doc(alias = "getCompletedTaskCount")]
    pub fn completed_task_count(&self) -> u64 {
        let now = self.statistics();
        now.completed + now.failed
    }

    /// Removes a pending task from the queue, and returns `true` if it was there: a task that runs, has ended or
    /// belongs to another executor is left alone. The future of a removed task completes as cancelled, with
    /// [`CancelReason::Removed`](crate::CancelReason). Takes O(log n). Java: `remove`, after which the future stays
    /// pending forever.
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

    /// Removes cancelled tasks from the queue, and returns how many it removed: nearly always none, because cancelling
    /// a task removes it as well. This finds only tasks that a call in another thread has cancelled and not yet
    /// removed. Takes time linear in the number of pending tasks. Java: `purge`, which is needed there.
    pub fn purge(&self) -> usize {
        let pool = self.pool();
        let listed = pool.queue.snapshot();
        let has_ended = |one: &&SnapshotEntry<Arc<Task>>| one.element.state().is_done();
        let purged = listed.iter().filter(has_ended).filter(|one| pool.evict(one.ticket)).count();
        discard(listed);
        purged
    }

    /// Returns `true` if the executor was shut down and has not terminated. Java: `isTerminating`.
    pub fn is_terminating(&self) -> bool {
        self.is_shutdown() && !self.is_terminated()
    }

    /// Returns `true` if one-shot tasks that are not yet due run after a shutdown. Java:
    /// `getExecuteExistingDelayedTasksAfterShutdownPolicy`.
    #[doc(alias = "getExecuteExistingDelayedTasksAfterShutdownPolicy")]
    pub fn executes_existing_delayed_tasks_after_shutdown(&self) -> bool {
        self.pool().policies.keeps(CancelReason::Shutdown).delayed
    }

    /// Sets whether one-shot tasks that are not yet due run after a shutdown. After one, `false` cancels at once the
    /// tasks that were kept; `true` brings none back. Java: `setExecuteExistingDelayedTasksAfterShutdownPolicy`.
    #[doc(alias = "setExecuteExistingDelayedTasksAfterShutdownPolicy")]
    pub fn set_executes_existing_delayed_tasks_after_shutdown(&self, keep: bool) {
        self.pool().set_policy(|policies| &policies.keep_delayed, keep);
    }

    /// Returns `true` if periodic tasks continue after a shutdown. Java:
    /// `getContinueExistingPeriodicTasksAfterShutdownPolicy`.
    #[doc(alias = "getContinueExistingPeriodicTasksAfterShutdownPolicy")]
    pub fn continues_existing_periodic_tasks_after_shutdown(&self) -> bool {
        self.pool().policies.keeps(CancelReason::Shutdown).periodic
    }

    /// Sets whether periodic tasks continue after a shutdown; a change after one acts as [for one-shot
    /// tasks](Self::set_executes_existing_delayed_tasks_after_shutdown). Java:
    /// `setContinueExistingPeriodicTasksAfterShutdownPolicy`.
    #[doc(alias = "setContinueExistingPeriodicTasksAfterShutdownPolicy")]
    pub fn set_continues_existing_periodic_tasks_after_shutdown(&self, keep: bool) {
        self.pool().set_policy(|policies| &policies.keep_periodic, keep);
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
