//! The public face of the crate: the executor, which owns a pool, and the handle, which uses it.
//!
//! There are two types. [`ScheduledThreadPoolExecutor`] *owns* the pool: it is not `Clone`, and
//! dropping it stops the pool. [`Handle`] *uses* the pool: it is cheap to clone and keeps nothing
//! alive. The owner dereferences to its handle, so each method exists once, and a function that
//! only schedules takes a `&Handle` and accepts either type.
//!
//! The verbs that submit are in [`submitting`]. What stops an executor is in [`stopping`]: the verbs of the handle,
//! those that consume the owner, and the owner's drop. What tunes it while it runs is in [`tuning`], what inspects it
//! in [`inspection`].

mod inspection;
mod stopping;
mod submitting;
mod tuning;

use std::ops::Deref;

pub use self::{
    inspection::PendingTask,
    stopping::{DropPolicy, Termination},
};
use crate::{
    Clock, TaskBuilder,
    pool::{Config, Pool, PoolRef, PoolRefs},
    sync::Arc,
};

/// Runs closures on a fixed pool of threads: after a delay, at a fixed rate or with a fixed delay.
/// Java: `ScheduledThreadPoolExecutor`.
///
/// Its methods are those of [`Handle`], to which it dereferences.
///
/// ```
/// use std::time::Duration;
/// use punctual::ScheduledThreadPoolExecutor;
///
/// let executor = ScheduledThreadPoolExecutor::new(4);
/// let answer = executor.schedule(Duration::from_millis(5), || 6 * 7)?;
/// let (initial_delay, period) = (Duration::ZERO, Duration::from_secs(1));
/// let beat = executor.schedule_at_fixed_rate(initial_delay, period, || {
///     // once a second
/// })?;
/// assert_eq!(answer.join()?, 42);
/// beat.cancel();
/// executor.close()?;
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
///
/// # Dropping it stops it
///
/// The drop admits no more tasks, cancels those that are not yet due, lets those that are due or
/// running finish, and waits for the threads to end. So it never waits for the far future, and
/// loses no run that has begun. [`Builder::on_drop`](crate::Builder::on_drop) selects another way.
/// While the thread panics, the drop is [`shutdown_now`](Handle::shutdown_now) and waits for
/// nothing, whatever was selected; on one of the executor's own workers it does not wait either.
///
/// In an async function, a drop that waits blocks the thread of the runtime. This does not:
///
/// ```
/// # fn block_on<F: std::future::Future>(future: F) -> F::Output {
/// #     struct Unpark(std::thread::Thread);
/// #     impl std::task::Wake for Unpark { fn wake(self: std::sync::Arc<Self>) { self.0.unpark(); } }
/// #     let waker = std::sync::Arc::new(Unpark(std::thread::current())).into();
/// #     let mut context = std::task::Context::from_waker(&waker);
/// #     let mut future = std::pin::pin!(future);
/// #     loop {
/// #         match future.as_mut().poll(&mut context) {
/// #             std::task::Poll::Ready(output) => return output,
/// #             std::task::Poll::Pending => std::thread::park(),
/// #         }
/// #     }
/// # }
/// use punctual::ScheduledThreadPoolExecutor;
///
/// # block_on(async {
/// let executor = ScheduledThreadPoolExecutor::new(2);
/// let news = executor.submit(|| "all is well")?;
///
/// let handle = executor.handle();
/// executor.shutdown_background(); // instead of dropping it
/// handle.termination().await; // every due task has run, the threads have nothing left to do
/// assert_eq!(news.await?, "all is well");
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// # }).unwrap();
/// ```
///
/// A task that has captured the executor itself keeps it from being dropped until the task has
/// ended. A task that is periodic or never due keeps it forever, unless the task is cancelled, or
/// the executor is shut down through a handle. To schedule more tasks, a task needs only a
/// [`Handle`].
///
/// # It cannot be cloned
///
/// An executor has one owner. `executor.clone()` does not compile, although a [`Handle`] can be
/// cloned: the clone would look like a second owner, but keep nothing alive.
///
/// ```compile_fail,E0277
/// let executor = punctual::ScheduledThreadPoolExecutor::new(1);
/// let other = executor.clone(); // an error: an executor is an owner and cannot be cloned
/// ```
///
/// To schedule from elsewhere, call `executor.handle()`; to own it in several places, share it:
///
/// ```
/// use std::sync::Arc;
/// use punctual::ScheduledThreadPoolExecutor;
///
/// let executor = Arc::new(ScheduledThreadPoolExecutor::new(1));
/// let (owner, handle) = (Arc::clone(&executor), executor.handle());
/// drop(executor);
/// assert!(!handle.is_shutdown()); // there is still an owner
/// drop(owner);
/// assert!(handle.is_shutdown());
/// ```
///
/// # Ways to stop
///
/// | | not yet due | periodic | waits for the threads |
/// |---|---|---|---|
/// | drop, or with [`DropPolicy::Stop`] | cancelled | cancelled, after a run that is due | yes |
/// | drop with [`DropPolicy::ShutdownBackground`] | cancelled | the same | no |
/// | drop with [`DropPolicy::Close`] | by policy: run | by policy: cancelled | yes, however long |
/// | drop with [`DropPolicy::ShutdownNow`] | cancelled, and so is what is due | cancelled | no |
/// | [`shutdown_background`](Self::shutdown_background) | cancelled | the same | no |
/// | [`close`](Self::close) | by policy: run | by policy: cancelled | yes, however long |
/// | [`close_background`](Self::close_background) | by policy: run | by policy: cancelled | no |
/// | [`Handle::shutdown`] | by policy: run | by policy: cancelled | no, but the later drop does what its row says |
/// | [`Handle::shutdown_now`] | returned to the caller | returned to the caller | no |
/// | [`close_within`](Self::close_within) | by policy, up to a time limit | by policy, up to a time limit | yes, however long what runs takes to stop |
/// | [`Handle::shutdown_within`] | by policy, up to a time limit | by policy, up to a time limit | yes, up to a time limit; after that the later drop waits for nothing |
#[doc(alias = "ScheduledExecutorService")]
#[doc(alias = "newScheduledThreadPool")]
#[doc(alias("thread_pool", "ThreadPool", "scheduler"))]
pub struct ScheduledThreadPoolExecutor {
    handle: Handle,
    /// True while the drop still has to stop the pool.
    is_open: bool,
    on_drop: DropPolicy,
}

impl ScheduledThreadPoolExecutor {
    pub(crate) fn from_config(config: Config) -> Self {
        let handle = Handle::to_new_pool(config);
        Self { handle, is_open: true, on_drop: DropPolicy::default() }
    }

    pub(crate) fn on_drop(mut self, on_drop: DropPolicy) -> Self {
        self.on_drop = on_drop;
        self
    }

    /// Returns a handle, which schedules tasks and does not keep the executor alive.
    #[must_use]
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

/// Uses an executor, from any thread and any task. Cheap to clone; keeps no executor alive.
///
/// Once the executor has been dropped, each submission is refused, as after a shutdown.
///
/// A hook, factory or handler that owns a handle to its own executor makes a reference cycle, as
/// any two `Arc`s that own each other do: when the executor has ended, that callback, and the
/// emptied memory of the executor, are not freed. A callback that has a `Weak` to the holder of the
/// handle makes no cycle.
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
/// A submission for which a worker is missing starts one, and blocks while the thread is being
/// started; a rejection handler may block, too. Otherwise none blocks. A submission costs one
/// allocation, one reading of the clock, and an insertion into the queue, in O(log n) under its
/// lock. It wakes no thread unless the task is due before all others.
#[doc(alias = "Spawner")]
#[derive(Clone)]
pub struct Handle {
    pool_refs: Arc<PoolRefs>,
}

impl Handle {
    /// Returns a builder that describes a task before it is submitted: its name, its time limit,
    /// and what happens after missed runs and panics.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let limit = Duration::from_secs(60);
    /// let backup = executor.task().name("backup").timeout(limit).submit(|| "saved")?;
    /// assert_eq!((backup.name().as_deref(), backup.join()?), (Some("backup"), "saved"));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn task(&self) -> TaskBuilder<'_> {
        TaskBuilder::new(&self.pool_refs)
    }

    /// Returns the clock of the executor. Delays count from its [`now`](Clock::now), and
    /// [`schedule_at`](Self::schedule_at) takes its instants, also on a
    /// [`ManualClock`](crate::ManualClock).
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{Handle, ManualClock, ScheduledThreadPoolExecutor};
    ///
    /// /// Returns how long a task had to wait. The same code runs in production and in tests.
    /// fn measure(executor: &Handle) -> Result<Duration, Box<dyn std::error::Error + Send + Sync>> {
    ///     let (clock, submitted) = (executor.clock().clone(), executor.clock().now());
    ///     let task = executor.schedule(Duration::from_millis(2), move || clock.now())?;
    ///     Ok(task.join()? - submitted)
    /// }
    ///
    /// assert!(measure(&ScheduledThreadPoolExecutor::new(1))? >= Duration::from_millis(2));
    ///
    /// let clock = ManualClock::new();
    /// clock.set_auto_advance(true);
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock).build()?;
    /// assert_eq!(measure(&executor)?, Duration::from_millis(2));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[must_use]
    pub fn clock(&self) -> &Clock {
        self.pool().clock()
    }

    pub(crate) fn to_new_pool(config: Config) -> Self {
        Self { pool_refs: PoolRefs::to_new_pool(config) }
    }

    /// Returns the reference that the calling thread submits through.
    pub(crate) fn pool_ref(&self) -> &PoolRef {
        self.pool_refs.local()
    }

    pub(crate) fn pool(&self) -> &Arc<Pool> {
        self.pool_refs.pool()
    }
}

#[cfg(test)]
mod tests;
