//! The face: the owner of a pool, and the handle through which everyone uses it.
//!
//! There are two types and one rule. [`ScheduledThreadPoolExecutor`] *owns*: it is not `Clone`,
//! and when it goes the pool stops. [`Handle`] *uses*: clones are cheap, and keep nothing alive.
//! The owner dereferences to its handle, so there is one list of verbs, and a function that only
//! schedules takes a `&Handle` and can be given either.
//!
//! Each verb is the unnamed form of the one on [`TaskBuilder`], which is
//! where closures become tasks. The verbs for stopping are in [`stopping`], those for changing how
//! the executor works in [`tuning`], and what can be seen of it in [`inspection`].

mod inspection;
mod owning;
mod stopping;
mod termination;
mod tuning;

use std::{
    ops::Deref,
    time::{Duration, Instant},
};

pub use self::{inspection::PendingTask, owning::DropPolicy, termination::Termination};
use crate::{
    Clock, Limit, RejectedExecutionError, ScheduledFuture, TaskBuilder, WouldDeadlock,
    pool::{Config, Phase, Pool, PoolRefs},
    sync::Arc,
};

/// Runs closures on a fixed pool of threads: after a delay, at a fixed rate or with a fixed
/// delay. Java's `ScheduledThreadPoolExecutor`.
///
/// The verbs are those of [`Handle`], to which it dereferences.
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
/// The drop takes no more tasks, cancels what is not yet due, lets what is due or running
/// finish, and waits for the threads. So it never waits for the far future, and nothing that had
/// begun is lost. [`Builder::on_drop`](crate::Builder::on_drop) has it do something else. While the
/// thread panics it is [`shutdown_now`](Handle::shutdown_now) and waits for nothing, whatever was
/// chosen; on one of the executor's own workers it does not wait either.
///
/// In an async function a drop that waits blocks the thread of the runtime. This way does not:
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
/// executor.shutdown_background(); // in place of the drop
/// handle.termination().await; // what is due has run, the threads have no more to do
/// assert_eq!(news.await?, "all is well");
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// # }).unwrap();
/// ```
///
/// A task that has captured the executor itself keeps it from being dropped until the task has
/// ended. One that is periodic or never due keeps it for ever, unless somebody cancels the task, or
/// shuts the executor down through a handle. To schedule more, a task needs a [`Handle`] and no
/// more.
///
/// # It cannot be cloned
///
/// It is an owner, and there is one. `executor.clone()` does not compile, though a [`Handle`] can be
/// cloned: a clone would look like a second owner, and keep nothing alive.
///
/// ```compile_fail,E0277
/// let executor = punctual::ScheduledThreadPoolExecutor::new(1);
/// let other = executor.clone(); // error: an executor is an owner and cannot be cloned
/// ```
///
/// To schedule from elsewhere write `executor.handle()`; to own it in several places, share it:
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
/// | [`Handle::shutdown`] | by policy: run | by policy: cancelled | no; the drop comes after it, and does what its line says |
/// | [`Handle::shutdown_now`] | given back | given back | no |
/// | [`Handle::shutdown_within`] | by policy, for a while | by policy, for a while | yes, for a while |
#[doc(alias = "ScheduledExecutorService")]
#[doc(alias = "newScheduledThreadPool")]
pub struct ScheduledThreadPoolExecutor {
    handle: Handle,
    /// Whether the drop still has to stop the pool.
    is_open: bool,
    on_drop: DropPolicy,
}

impl ScheduledThreadPoolExecutor {
    pub(crate) fn from_config(config: Config) -> Self {
        let handle = Handle { pool_refs: PoolRefs::to_new_pool(config) };
        Self { handle, is_open: true, on_drop: DropPolicy::default() }
    }

    pub(crate) fn on_drop(mut self, on_drop: DropPolicy) -> Self {
        self.on_drop = on_drop;
        self
    }

    /// A handle to be passed around. It schedules, and does not keep the executor alive.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// [Shuts down](Handle::shutdown) and waits until everything the policies keep has run and
    /// the threads have ended, however far in the future that is. Java: `close`.
    /// On a manual clock [somebody has to move it](crate::ManualClock#when-it-blocks).
    ///
    /// # Errors
    ///
    /// [`WouldDeadlock`] on one of the executor's own workers, or in the drop of what a shutdown on
    /// this thread is cancelling: then it has been shut down, and goes on to its end by itself.
    pub fn close(self) -> Result<(), WouldDeadlock> {
        self.shutdown();
        let pool = self.into_pool();
        pool.join()
    }

    /// As [`close`](Self::close), but once `limit` is reached, before or during the wait, as
    /// [`shutdown_now`](Handle::shutdown_now): the tasks that wait are cancelled, those that run are
    /// asked to stop and waited for. Java: `close` by a thread that is interrupted.
    ///
    /// # Errors
    ///
    /// As [`close`](Self::close).
    pub fn close_within(self, limit: impl Into<Limit>) -> Result<(), WouldDeadlock> {
        let limit = limit.into();
        let deadline = limit.deadline(self.clock());
        self.shutdown();
        let pool = self.into_pool();
        if pool.would_wait_for_itself() {
            return Err(WouldDeadlock(()));
        }
        limit.block(pool.clock(), deadline, |waker| pool.poll_terminated(waker));
        if pool.phase() != Phase::Terminated {
            drop(pool.shutdown_now());
        }
        pool.join()
    }

    /// As [`close`](Self::close), but without waiting: the threads go on by themselves until
    /// everything the policies keep has run.
    pub fn close_background(self) {
        self.shutdown();
        self.into_pool();
    }

    /// As a drop, but without waiting: what is due or running finishes by itself.
    pub fn shutdown_background(self) {
        self.into_pool().stop();
    }

    /// The pool, with nobody left whose drop would stop it.
    fn into_pool(mut self) -> Arc<Pool> {
        self.is_open = false;
        Arc::clone(self.handle.pool())
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
/// Once the executor is gone each submission is refused, as after a shutdown.
///
/// A hook, factory or handler that owns a handle to its own executor makes a circle, as any two
/// `Arc`s that own each other: when the executor has ended, that callback, and the emptied memory
/// of the executor, are not given back. A callback that has a `Weak` of what holds the handle makes
/// none.
///
/// # What a submission costs
///
/// One allocation, one reading of the clock, and an insertion into the queue, in O(log n) under
/// its lock. No submission waits for a task to run, and none wakes a thread unless the task is
/// due before all others. A submission for which a worker is missing starts one, and waits while
/// the thread is being started.
#[derive(Clone)]
pub struct Handle {
    pool_refs: Arc<PoolRefs>,
}

impl Handle {
    /// Describes a task further, before it is submitted: its name, its time limit, what becomes of
    /// missed runs and of those that panic.
    pub fn task(&self) -> TaskBuilder<'_> {
        TaskBuilder::new(&self.pool_refs)
    }

    /// The clock of the executor. Its [`now`](Clock::now) is the time that delays count from and
    /// that [`schedule_at`](Self::schedule_at) understands, also on a
    /// [`ManualClock`](crate::ManualClock).
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{Handle, ManualClock, ScheduledThreadPoolExecutor};
    ///
    /// /// How long a task had to wait: the same code in use and in tests.
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

    /// Runs the closure as soon as a worker is free. There is no future: nobody sees the result,
    /// and a panic is only [reported](crate::Builder::panic_handler). Does not block, unless the
    /// executor's [handler](crate::RejectedExecutionHandler) for what is not admitted does. Java:
    /// `execute`.
    ///
    /// # Errors
    ///
    /// [`RejectedExecutionError`] if the executor was shut down, has no
    /// [room](crate::Builder::max_pending), or has no worker and cannot start one.
    /// The error hands the task [back](RejectedExecutionError::into_task).
    pub fn execute<F>(&self, closure: F) -> Result<(), RejectedExecutionError>
    where
        F: FnOnce() + Send + 'static,
    {
        self.task().execute(closure)
    }

    /// Runs the closure as soon as a worker is free. Does not block. Java: `submit`.
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
    /// This is not a runtime, and polls no future. A closure that gives one, as `|| async { … }` and
    /// `async || { … }` do, has done its work when it has made the future: that is its result, and
    /// **the body of the future never runs**, unless who takes the result awaits it. The compiler
    /// says so where the result is taken and thrown away (`unused_must_use`), and not where nobody
    /// takes it. The same holds for [`schedule`](Self::schedule) and the other verbs that give a
    /// result; [`execute`](Self::execute) and the periodic ones take no such closure.
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
    /// Block on it inside the closure, which occupies the worker as long as that takes, or spawn it
    /// on a runtime, for which a worker is busy no longer than it takes to hand it over. Both are
    /// calls of the runtime's: `handle.block_on(future)` and `handle.spawn(future)` with tokio, for
    /// instance, if `handle` is tokio's.
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
    pub fn submit<F, T>(&self, closure: F) -> Result<ScheduledFuture<T>, RejectedExecutionError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.task().submit(closure)
    }

    /// Runs the closure once, when `delay` has passed; never earlier. A delay of zero is due at
    /// once, behind what is due already; `Duration::MAX` never is. Does not block. Java:
    /// `schedule`.
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
    pub fn schedule<F, T>(
        &self,
        delay: Duration,
        closure: F,
    ) -> Result<ScheduledFuture<T>, RejectedExecutionError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.task().schedule(delay, closure)
    }

    /// Runs the closure once, at `instant`; a moment that is past means now, and `None` never: the
    /// task waits until somebody ends it. On a [`ManualClock`](crate::ManualClock) the instants are
    /// those of [`ManualClock::now`](crate::ManualClock::now). Does not block.
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
    /// `initial_delay + 2 * period`, and so on, planned from the first moment, so without drift.
    /// Runs do not overlap: one that takes longer than the period makes the next ones late, and
    /// each of them is made up for (Java's rule; see [`MissedRuns`](crate::MissedRuns) for
    /// others). The first panic ends the periodic task (Java's rule again; see
    /// [`PanicPolicy`](crate::PanicPolicy)). After a period that ends beyond the last moment of
    /// the clock (584 years) it never runs again, and waits until somebody ends it. Does not block.
    /// Java: `scheduleAtFixedRate`.
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
    /// [`RejectionReason::ZeroPeriod`](crate::RejectionReason::ZeroPeriod) if the period is zero; else as
    /// [`execute`](Self::execute).
    #[doc(alias = "scheduleAtFixedRate")]
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

    /// Runs the closure again and again: first at `initial_delay`, and then each time `delay`
    /// after the end of the run before. The first panic ends the periodic task, unless its
    /// [`PanicPolicy`](crate::PanicPolicy) says otherwise. Does not block. Java:
    /// `scheduleWithFixedDelay`.
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
    /// [`RejectionReason::ZeroPeriod`](crate::RejectionReason::ZeroPeriod) if the delay is zero; else as
    /// [`execute`](Self::execute).
    #[doc(alias = "scheduleWithFixedDelay")]
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

    pub(crate) fn pool(&self) -> &Arc<Pool> {
        self.pool_refs.pool()
    }
}

#[cfg(test)]
mod tests;
