//! How an executor is stopped, by its verbs or by the drop of its owner, and how its end is awaited. The
//! protocol is the pool's (`pool::shutdown`).
//!
//! Every [`Handle`] has verbs that begin a shutdown, wait for its end, and ask how far it has come. Those
//! that consume the owner leave nothing for its drop to do. [`Termination`] awaits the end, with a place of
//! its own on the list of those that wait for the pool. The drop of the owner stops the pool in the way that
//! was selected ([`DropPolicy`]).

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    thread,
    time::Duration,
};

use super::{Handle, ScheduledThreadPoolExecutor};
use crate::{
    CancelReason, DrainedTasks, Limit, ShutdownReport, WouldDeadlock,
    pool::{Phase, Pool},
    sync::Arc,
    wait::Place,
};

impl Handle {
    /// Stops admitting tasks. The two policies decide whether pending tasks run or are cancelled: by default
    /// one-shot tasks still run, however far in the future, and periodic ones are cancelled. A one-shot task
    /// that is due runs in any case. A call with [retries](Self::retry) counts as one-shot, and a task may
    /// have [its own policy](crate::TaskBuilder::on_shutdown). Does not wait. Idempotent. Takes time linear
    /// in the number of pending tasks. Java: `shutdown`.
    ///
    /// A later drop of the owner cancels the tasks that are not yet due. To let them run, use
    /// [`close`](crate::ScheduledThreadPoolExecutor::close), wait with
    /// [`await_termination`](Self::await_termination) first, or have the drop
    /// [close](crate::DropPolicy::Close).
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let millisecond = Duration::from_millis(1);
    /// let report = executor.schedule(millisecond, || "written")?;
    /// let beat = executor.schedule_at_fixed_rate(millisecond, millisecond, || ())?;
    /// executor.shutdown();
    /// assert!(beat.is_cancelled() && executor.submit(|| "too late").is_err());
    /// assert_eq!(report.join()?, "written");
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias = "graceful_shutdown")]
    pub fn shutdown(&self) {
        self.pool().shutdown();
    }

    /// Shuts down within a time limit. It calls [`shutdown`](Self::shutdown), and waits for at most
    /// `patience` for the tasks that the policies keep; then it calls
    /// [`shutdown_now`](Self::shutdown_now), which cancels the tasks that are still pending and
    /// raises the tokens of those that run, and waits for at most `grace` for these to end. Returns
    /// a report that says what happened to the tasks, by number and name. Blocks for no longer than
    /// both times together, on the executor's clock; if that is a manual one
    /// [another thread has to move it](crate::ManualClock#when-it-blocks). On the system's clock it does not
    /// wait for what cannot come: once nothing runs, and no task is due before `patience` is over, it goes on. Java has no
    /// such method; its documentation has a page of code instead.
    ///
    /// **The shutdown is over when this returns.** If a task still runs then, the drop of the owner waits
    /// for nothing, whichever [`DropPolicy`] it has, and also if it waits already on another thread: at the end
    /// of `main` the task ends with the process. To wait for it nevertheless, call
    /// [`await_termination`](Self::await_termination), or [`close`](crate::ScheduledThreadPoolExecutor::close),
    /// which waits without a limit.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// executor.task().name("report").schedule(Duration::from_secs(3600), || { /* … */ })?;
    /// let (patience, grace) = (Duration::from_millis(5), Duration::from_secs(60));
    /// let report = executor.shutdown_within(patience, grace)?;
    /// assert!(report.is_terminated);
    /// assert_eq!(report.cancelled[0].name(), Some("report"));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`WouldDeadlock`], in the same cases as [`await_termination`](Self::await_termination). The
    /// executor has then been shut down, and nothing else has been done.
    #[doc(alias("shutdownAndAwaitTermination", "shutdown_timeout", "graceful_shutdown", "drain"))]
    pub fn shutdown_within(
        &self,
        patience: Duration,
        grace: Duration,
    ) -> Result<ShutdownReport, WouldDeadlock> {
        let pool = self.pool();
        let log = &pool.log;
        log.open();
        pool.shutdown();
        let is_over = pool.await_or_stop(
            (patience, grace),
            &|deadline| pool.can_run_until(deadline),
            &|limit| pool.await_termination(limit, false),
            &|| {
                for task in pool.shutdown_now() {
                    log.cancelled(task.id().0, || task.name());
                }
            },
        )?;
        if !is_over {
            // The owner's drop does not wait then.
            pool.lifecycle.give_up();
        }
        let running = pool.workers.worker_stats().into_iter().filter_map(|stats| stats.current());
        Ok(log.read().at_end(is_over, running.map(|(id, name, _)| (id, name))))
    }

    /// Stops admitting tasks, raises the [token](crate::TaskContext::token) of every running task, and
    /// returns the pending ones, in no particular order, to be run or dropped. Does not wait. Takes the same
    /// time however many tasks are pending; dropping them is linear in their number. Java: `shutdownNow`.
    /// [`DrainedTasks`] and [`DrainedTask`](crate::DrainedTask) have examples.
    #[doc(alias("abort_all", "drain"))]
    pub fn shutdown_now(&self) -> DrainedTasks {
        self.pool().shutdown_now()
    }

    /// Blocks until the executor has terminated, which means that it was shut down, everything has ended, and
    /// no worker is left, but for no longer than `timeout`. Returns `true` if it has terminated. A `timeout`
    /// of `Duration::MAX` waits without limit. On a manual clock [another thread has to move
    /// it](crate::ManualClock#when-it-blocks). Costs O(log n), for n that wait for this end, however many
    /// tasks are pending; in the drop of a capture whose task this thread cancels it is linear in those. Such
    /// a drop must not wait for another thread that waits for this end: the executor does not end before the
    /// capture is gone, and only the thread that drops it is told apart. Java: `awaitTermination`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// executor.schedule(Duration::from_millis(1), || println!("still runs"))?;
    /// executor.shutdown();
    /// assert!(executor.await_termination(Duration::from_secs(60))? && executor.is_terminated());
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`WouldDeadlock`], at once, wherever the executor could not terminate before this call returns: in one
    /// of its own tasks and the hooks around it; in the callbacks [at the
    /// start](crate::Builder::on_thread_start) and [at the end](crate::Builder::on_thread_stop) of its
    /// threads, and [at its own end](crate::Builder::terminated); in its thread factory; and in the drop of a
    /// value that a shutdown on this thread is cancelling.
    #[doc(alias = "WaitGroup")]
    pub fn await_termination(&self, timeout: Duration) -> Result<bool, WouldDeadlock> {
        self.pool().await_termination(timeout, false)
    }

    /// Returns a future that completes when the executor has terminated, as
    /// [`await_termination`](Self::await_termination) defines it. The future blocks no thread, needs no
    /// runtime, is `'static`, may be dropped at any time, and stops nothing itself: see [how an executor is
    /// stopped in async code](crate::ScheduledThreadPoolExecutor#dropping-it-stops-it), with an example. When
    /// it completes, every closure of the executor has been dropped; a thread may still be about to return. A
    /// poll and a drop cost O(log n), for n that wait for this end.
    ///
    /// A future does not know what will await it, so it fails nowhere. **A task that blocks on it, in a
    /// `block_on`, waits for itself and never ends.**
    pub fn termination(&self) -> Termination {
        Termination { handle: self.clone(), place: Place::default() }
    }

    /// Returns `true` if the executor was shut down, in whichever way; it may still be running tasks. Java:
    /// `isShutdown`.
    #[inline]
    pub fn is_shutdown(&self) -> bool {
        self.pool().lifecycle.phase() > Phase::Running
    }

    /// Returns `true` if the executor was shut down and has not terminated. Java: `isTerminating`.
    pub fn is_terminating(&self) -> bool {
        self.is_shutdown() && !self.is_terminated()
    }

    /// Returns `true` if the executor was shut down and everything has ended. Java: `isTerminated`.
    pub fn is_terminated(&self) -> bool {
        self.pool().lifecycle.phase() == Phase::Terminated
    }

    /// Returns `true` if one-shot tasks that are not yet due run after a shutdown. Java:
    /// `getExecuteExistingDelayedTasksAfterShutdownPolicy`.
    #[doc(alias = "getExecuteExistingDelayedTasksAfterShutdownPolicy")]
    pub fn executes_existing_delayed_tasks_after_shutdown(&self) -> bool {
        self.pool().policies.keeps(CancelReason::Shutdown).delayed
    }

    /// Sets whether one-shot tasks that are not yet due run after a shutdown. Called after a shutdown,
    /// `false` cancels at once the tasks that were kept; `true` brings none back. Java:
    /// `setExecuteExistingDelayedTasksAfterShutdownPolicy`.
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

    /// Sets whether periodic tasks continue after a shutdown; after one, as [for one-shot
    /// tasks](Self::set_executes_existing_delayed_tasks_after_shutdown). Java:
    /// `setContinueExistingPeriodicTasksAfterShutdownPolicy`.
    #[doc(alias = "setContinueExistingPeriodicTasksAfterShutdownPolicy")]
    pub fn set_continues_existing_periodic_tasks_after_shutdown(&self, keep: bool) {
        self.pool().set_policy(|policies| &policies.keep_periodic, keep);
    }
}

impl ScheduledThreadPoolExecutor {
    /// [Shuts down](Handle::shutdown) and blocks until every task that the policies keep has run and the
    /// threads have ended, however far in the future that is. On a manual clock [another thread has to move
    /// it](crate::ManualClock#when-it-blocks). Java: `close`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let task = executor.schedule(Duration::from_millis(5), || "ran")?;
    /// executor.close()?; // waits for it
    /// assert!(task.is_done());
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`WouldDeadlock`] on one of the executor's own workers, or in the drop of a value that a shutdown on
    /// this thread is cancelling. Then it has been shut down, and terminates by itself.
    #[doc(alias("graceful_shutdown", "join"))]
    pub fn close(self) -> Result<(), WouldDeadlock> {
        self.shutdown();
        let pool = self.into_pool();
        pool.join(false)
    }

    /// Closes as [`close`](Self::close) does until `limit` is reached, before or during the wait.
    /// From then on it does what [`shutdown_now`](Handle::shutdown_now) does: it cancels the
    /// pending tasks, asks the running ones to stop, and waits for these. Java: `close` in a thread
    /// that is interrupted.
    ///
    /// **The limit is not a deadline for the call**, which returns when nothing of the executor runs any more: a
    /// task that does not look at its token keeps it. A shutdown with a deadline is
    /// [`shutdown_within`](Handle::shutdown_within).
    ///
    /// # Errors
    ///
    /// As for [`close`](Self::close).
    pub fn close_within(self, limit: impl Into<Limit>) -> Result<(), WouldDeadlock> {
        let limit = limit.into();
        let deadline = limit.deadline(self.clock());
        self.shutdown();
        let pool = self.into_pool();
        if pool.lifecycle.would_wait_for_itself() {
            return Err(WouldDeadlock(()));
        }
        let mut place = Place::default();
        limit.block(pool.clock(), deadline, |waker| {
            pool.lifecycle.poll_terminated(&mut place, waker, false)
        });
        pool.lifecycle.forget(&mut place);
        if pool.lifecycle.phase() != Phase::Terminated {
            drop(pool.shutdown_now());
        }
        pool.join(false)
    }

    /// Closes as [`close`](Self::close) does, but does not wait: the threads continue by themselves
    /// until every task that the policies keep has run.
    pub fn close_background(self) {
        self.shutdown();
        self.into_pool();
    }

    /// Stops the executor as a default drop does, but does not wait: tasks that are due or running
    /// finish by themselves.
    pub fn shutdown_background(self) {
        self.into_pool().stop();
    }

    /// Returns the pool, and keeps the drop of the owner from stopping it.
    fn into_pool(mut self) -> Arc<Pool> {
        self.on_drop = None;
        Arc::clone(self.handle.pool())
    }
}

/// A future that completes when an executor has terminated: see [`Handle::termination`]. Like a
/// handle, it keeps no executor alive.
#[derive(Debug)]
#[must_use = "it waits for nothing unless it is awaited"]
pub struct Termination {
    handle: Handle,
    place: Place,
}

impl Future for Termination {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Self { handle, place } = &mut *self;
        let answer = handle.pool().lifecycle.poll_terminated(place, context.waker(), false);
        answer.map_or(Poll::Pending, Poll::Ready)
    }
}

impl Drop for Termination {
    fn drop(&mut self) {
        self.handle.pool().lifecycle.forget(&mut self.place);
    }
}

/// Selects what happens to an executor when its owner is dropped. It is set with
/// [`Builder::on_drop`](crate::Builder::on_drop).
///
/// Three cases are the same for all policies. While the thread panics, the drop is
/// [`ShutdownNow`](Self::ShutdownNow), because a task that never ends must not turn a panic into a hang. On
/// one of the executor's own workers the drop waits for nothing, because the worker would wait for itself;
/// the executor then terminates by itself. After a [shutdown with a deadline](crate::Handle::shutdown_within)
/// that has returned with a task still running the drop waits for nothing either, because its deadline has
/// passed.
///
/// ```
/// use std::time::Duration;
/// use punctual::{DropPolicy, ScheduledThreadPoolExecutor};
///
/// let executor = ScheduledThreadPoolExecutor::builder().on_drop(DropPolicy::Close).build()?;
/// let task = executor.schedule(Duration::from_millis(5), || "saved")?;
/// drop(executor); // waits for the scheduled task
/// assert_eq!(task.join()?, "saved");
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DropPolicy {
    /// Cancels the tasks that are not yet due, lets those that are due or running finish, and waits
    /// for the threads.
    #[default]
    Stop,
    /// Does the same without waiting: tasks that are due or running finish by themselves, unless the process
    /// ends first.
    ShutdownBackground,
    /// Closes, as [`close`](ScheduledThreadPoolExecutor::close) does. If the policies keep periodic tasks,
    /// the drop waits until these have been cancelled.
    Close,
    /// Does what [`shutdown_now`](crate::Handle::shutdown_now) does, and cancels all pending tasks, also
    /// those that are due.
    ShutdownNow,
}

impl DropPolicy {
    /// Stops the pool as the drop of its owner does. Returns the policy that held: while the thread panics that is another.
    pub(crate) fn carry_out(self, pool: &Arc<Pool>) -> Self {
        let policy = if thread::panicking() { Self::ShutdownNow } else { self };
        match policy {
            Self::Stop | Self::ShutdownBackground => pool.stop(),
            Self::Close => pool.shutdown(),
            Self::ShutdownNow => drop(pool.shutdown_now()),
        }
        policy
    }
}

impl Drop for ScheduledThreadPoolExecutor {
    fn drop(&mut self) {
        let Some(policy) = self.on_drop else { return };
        let pool = self.handle.pool();
        if matches!(policy.carry_out(pool), DropPolicy::Stop | DropPolicy::Close) {
            _ = pool.join(true);
        }
    }
}

/// No type implements this trait. The executor's own `clone` requires it and hides the `clone` of the handle,
/// which `executor.clone()` would otherwise find through `Deref`.
#[diagnostic::on_unimplemented(
    message = "an executor is an owner and cannot be cloned",
    label = "would return a handle, which keeps no executor alive",
    note = "to schedule from elsewhere write `executor.handle()`: it returns a `Handle`, which can \
            be cloned, and whose submissions are refused once the executor is gone",
    note = "to own it in several places share it: `Arc<ScheduledThreadPoolExecutor>`"
)]
pub trait Cloneable {}

impl ScheduledThreadPoolExecutor {
    #[doc(hidden)]
    #[allow(clippy::should_implement_trait, reason = "to be found before that of the handle")]
    pub fn clone<'a>(&'a self) -> Handle
    where
        // The bound is on a reference with a lifetime: a bound that has no parameter and is false
        // would be an error in this very line.
        &'a Self: Cloneable,
    {
        self.handle()
    }
}
