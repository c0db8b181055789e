//! The public face of the crate: the executor, which owns a pool, and the handle, which uses it.
//!
//! There are two types. [`ScheduledThreadPoolExecutor`] *owns* the pool: it is not `Clone`, and
//! dropping it stops the pool. [`Handle`] *uses* the pool: it is cheap to clone and keeps nothing
//! alive. The owner dereferences to its handle, so each method exists once, and a function that
//! only schedules takes a `&Handle` and accepts either type.
//!
//! Each method that submits is the short form of the one on [`TaskBuilder`], which is where
//! closures become tasks. What stops an executor is in [`stopping`]: the verbs of the handle, those that consume the
//! owner, and the owner's drop. What tunes it while it runs is in [`tuning`], what inspects it in [`inspection`].

mod inspection;
mod stopping;
mod tuning;

use std::{
    ops::Deref,
    time::{Duration, Instant},
};

pub use self::{
    inspection::PendingTask,
    stopping::{DropPolicy, Termination},
};
use crate::{
    Clock, Outcome, RejectedExecutionError, ScheduledFuture, TaskBuilder, Trigger,
    pool::{Config, Pool, PoolRef, PoolRefs},
    sync::Arc,
    task_builder,
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
/// let beat = executor.schedule_at_fixed_rate(Duration::ZERO, Duration::from_secs(1), || {
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
/// let other = executor.clone(); // error: an executor is an owner and cannot be cloned
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
/// | [`Handle::shutdown_within`] | by policy, up to a time limit | by policy, up to a time limit | yes, up to a time limit |
#[doc(alias = "ScheduledExecutorService")]
#[doc(alias = "newScheduledThreadPool")]
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
/// # When a submission blocks, and what it costs
///
/// A submission for which a worker is missing starts one, and blocks while the thread is being
/// started; a rejection handler may block, too. Otherwise none blocks. A submission costs one
/// allocation, one reading of the clock, and an insertion into the queue, in O(log n) under its
/// lock. It wakes no thread unless the task is due before all others.
#[derive(Clone)]
pub struct Handle {
    pool_refs: Arc<PoolRefs>,
}

impl Handle {
    /// Returns a builder that describes a task before it is submitted: its name, its time limit,
    /// and what happens after missed runs and panics.
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

    /// Runs the closure as soon as a worker is free. Returns no future: the caller does not learn
    /// when it has ended, and a panic is only [reported](crate::Builder::failure_handler).
    /// [Blocks](Self#when-a-submission-blocks-and-what-it-costs) only while a worker is started, or
    /// if the [handler](crate::RejectedExecutionHandler) for rejected tasks does. Java: `execute`.
    ///
    /// # Errors
    ///
    /// [`RejectedExecutionError`] if the executor was shut down, has no
    /// [capacity](crate::Builder::max_pending) left, or has no worker and cannot start one. The
    /// error owns the task, and [returns it](RejectedExecutionError::into_task).
    #[track_caller]
    pub fn execute<F>(&self, closure: F) -> Result<(), RejectedExecutionError>
    where
        F: FnOnce() + Send + 'static,
    {
        task_builder::execute(&self.pool_refs, closure)
    }

    /// Runs the closure as soon as a worker is free, and returns a future for its result.
    /// [Blocks](Self#when-a-submission-blocks-and-what-it-costs) as `execute` does. Java: `submit`.
    ///
    /// ```
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(2);
    /// let length = executor.submit(|| "punctual".len())?;
    /// assert_eq!(length.join()?, 8);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`execute`](Self::execute).
    ///
    /// # Async closures
    ///
    /// The executor is not an async runtime, and polls no future. A closure that returns a future,
    /// as `|| async { … }` and `async || { … }` do, has ended when it has made the future. The
    /// future is its result, and **the body of the future never runs**, unless the caller that
    /// takes the result awaits it. The compiler warns where the result is taken and thrown away
    /// (`unused_must_use`), but not if it is never taken. The same holds for
    /// [`schedule`](Self::schedule) and the other methods that return a result;
    /// [`execute`](Self::execute) and the periodic ones accept no such closure.
    ///
    /// ```compile_fail
    /// #![deny(unused_must_use)]
    /// # let executor = punctual::ScheduledThreadPoolExecutor::new(1);
    /// executor.submit(|| async { println!("never printed") })?.join()?; // error: unused `Future`
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// ```compile_fail,E0308
    /// # let executor = punctual::ScheduledThreadPoolExecutor::new(1);
    /// executor.execute(|| async { println!("never printed") })?; // error: expected `()`
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// Block on the future inside the closure, which occupies the worker until the future has
    /// completed, or spawn it on a runtime, which occupies the worker only while the future is
    /// handed over. Both are calls to the runtime: `handle.block_on(future)` and
    /// `handle.spawn(future)` with tokio, for instance, where `handle` is tokio's.
    ///
    /// ```
    /// # fn block_on<F: Future>(future: F) -> F::Output {
    /// #     let mut future = std::pin::pin!(future);
    /// #     let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    /// #     loop {
    /// #         if let std::task::Poll::Ready(output) = future.as_mut().poll(&mut context) { return output }
    /// #     }
    /// # }
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let answer = executor.submit(|| block_on(async { 6 * 7 }))?;
    /// assert_eq!(answer.join()?, 42);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias = "async")]
    #[doc(alias = "spawn")]
    #[track_caller]
    pub fn submit<F, T>(&self, closure: F) -> Result<ScheduledFuture<T>, RejectedExecutionError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        task_builder::schedule(&self.pool_refs, Duration::ZERO, closure)
    }

    /// Runs the closure once, when `delay` has passed and never earlier. With a delay of zero the
    /// task is due at once, behind the tasks that are due already; with `Duration::MAX` it is never
    /// due. Blocks as `execute` does. Java: `schedule`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let timeout = executor.schedule(Duration::from_secs(30), || "too late")?;
    /// clock.run_for(Duration::from_secs(29));
    /// assert!(timeout.cancel()); // the answer came in time
    /// assert_eq!(executor.pending_count(), 0);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`execute`](Self::execute).
    #[track_caller]
    pub fn schedule<F, T>(
        &self,
        delay: Duration,
        closure: F,
    ) -> Result<ScheduledFuture<T>, RejectedExecutionError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        task_builder::schedule(&self.pool_refs, delay, closure)
    }

    /// Runs the closure once, at `instant`. An instant in the past means now; `None` means never,
    /// and the task waits until it is cancelled. On a [`ManualClock`](crate::ManualClock) the
    /// instants are those of [`ManualClock::now`](crate::ManualClock::now). It
    /// blocks as `execute` does.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let deadline = Instant::now() + Duration::from_millis(2);
    /// let ran_at = executor.schedule_at(deadline, Instant::now)?.join()?;
    /// assert!(ran_at >= deadline);
    ///
    /// let some_day = executor.schedule_at(None, || "not yet planned")?;
    /// assert_eq!(some_day.delay(), Some(Duration::MAX));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`execute`](Self::execute).
    #[track_caller]
    pub fn schedule_at<F, T>(
        &self,
        instant: impl Into<Option<Instant>>,
        closure: F,
    ) -> Result<ScheduledFuture<T>, RejectedExecutionError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.task().schedule_at(instant, closure)
    }

    /// Runs the closure again and again: at `initial_delay`, then at `initial_delay + period`,
    /// `initial_delay + 2 * period`, and so on. Each of these times counts from the first, so the
    /// rate does not drift. Runs do not overlap: a run that takes longer than the period delays the
    /// next ones, and each of them is made up for (Java's rule; see
    /// [`MissedRuns`](crate::MissedRuns) for others). The first panic ends the periodic task
    /// (Java's rule again; see [`FailurePolicy`](crate::FailurePolicy)). If the next run would be
    /// beyond the last moment of the clock (584 years), the task never runs again, and waits until
    /// it is cancelled. Blocks as `execute` does. Java: `scheduleAtFixedRate`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor, current_task};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let (report, reports) = std::sync::mpsc::channel();
    /// let second = Duration::from_secs(1);
    /// let beat = executor.schedule_at_fixed_rate(second, second, move || {
    ///     let run = current_task().map(|task| task.run_number());
    ///     report.send(run).ok();
    /// })?;
    /// clock.run_for(Duration::from_secs(3));
    /// beat.cancel();
    /// assert_eq!(reports.iter().collect::<Vec<_>>(), [Some(1), Some(2), Some(3)]);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`RejectionReason::ZeroPeriod`](crate::RejectionReason::ZeroPeriod) if the period is zero;
    /// otherwise as [`execute`](Self::execute).
    #[doc(alias = "scheduleAtFixedRate")]
    #[track_caller]
    pub fn schedule_at_fixed_rate<F>(
        &self,
        initial_delay: Duration,
        period: Duration,
        closure: F,
    ) -> Result<ScheduledFuture<()>, RejectedExecutionError>
    where
        F: FnMut() + Send + 'static,
    {
        self.task().schedule_at_fixed_rate(initial_delay, period, closure)
    }

    /// Runs the closure again and again: first at `initial_delay`, and then each time `delay` after
    /// the end of the previous run. The first panic ends the periodic task, unless its
    /// [`FailurePolicy`](crate::FailurePolicy) says otherwise. Blocks as `execute` does.
    /// Java: `scheduleWithFixedDelay`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let mut left = 3;
    /// let delay = Duration::from_millis(1);
    /// let countdown = executor.schedule_with_fixed_delay(Duration::ZERO, delay, move || {
    ///     left -= 1;
    ///     assert!(left > 0, "lift-off");
    /// })?;
    /// let end = countdown.join().expect_err("the panic ends it");
    /// assert_eq!(end.to_string(), "the task panicked: lift-off");
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`RejectionReason::ZeroPeriod`](crate::RejectionReason::ZeroPeriod) if the delay is zero;
    /// otherwise as [`execute`](Self::execute).
    #[doc(alias = "scheduleWithFixedDelay")]
    #[track_caller]
    pub fn schedule_with_fixed_delay<F>(
        &self,
        initial_delay: Duration,
        delay: Duration,
        closure: F,
    ) -> Result<ScheduledFuture<()>, RejectedExecutionError>
    where
        F: FnMut() + Send + 'static,
    {
        self.task().schedule_with_fixed_delay(initial_delay, delay, closure)
    }

    /// Runs the closure again and again, when the [trigger](crate::trigger) says. What the closure
    /// returns is what the run reports: see [`Outcome`]. Runs that were missed are made up for by one,
    /// unless [`TaskBuilder::missed_runs`] says otherwise. Blocks as `execute` does.
    ///
    /// Poll until there is an answer, for which the future can be waited:
    ///
    /// ```
    /// use std::{ops::ControlFlow, time::Duration};
    /// use punctual::{ScheduledThreadPoolExecutor, trigger::every};
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let mut asked = 0;
    /// let answer = executor.repeat(every(Duration::from_millis(1)), move || {
    ///     asked += 1;
    ///     if asked < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break("ready") }
    /// })?;
    /// assert_eq!(answer.join()?, "ready");
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`schedule_at_fixed_rate`](Self::schedule_at_fixed_rate), and
    /// [`NeverRuns`](crate::RejectionReason::NeverRuns) if the trigger has no first run.
    ///
    /// # Panics
    ///
    /// If the trigger panics when it is asked for the first run.
    #[track_caller]
    pub fn repeat<G, F, O>(
        &self,
        trigger: G,
        body: F,
    ) -> Result<ScheduledFuture<O::Value>, RejectedExecutionError>
    where
        G: Trigger,
        F: FnMut() -> O + Send + 'static,
        O: Outcome,
    {
        self.task().repeat(trigger, body)
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
