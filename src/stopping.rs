//! Stopping an executor, by a method or by dropping its owner, and waiting for termination. The pool implements the
//! shutdown protocol (`pool::shutdown`). A method that consumes the owner removes the owner's [`DropPolicy`], so the
//! owner's drop does nothing. Any other drop follows the policy, or [`DropPolicy::ShutdownNow`] while the thread
//! panics.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    thread,
    time::Duration,
};

use crate::{
    DrainedTasks, Grace, Handle, Limit, ScheduledThreadPoolExecutor, ShutdownReport, WouldDeadlock,
    pool::{Phase, Pool},
    sync::Arc,
    wait::Place,
};

/// # Stopping
///
/// A [table](ScheduledThreadPoolExecutor#ways-to-stop) lists all ways to stop, including those that consume the owner.
impl Handle {
    /// Stops admitting tasks. The two policies decide whether pending tasks run or are cancelled: by default
    /// one-shot tasks still run, however far in the future, and periodic ones are cancelled. A one-shot task that
    /// is due runs in any case. A call with [retries](Self::retry) counts as one-shot, and a task may have [its own
    /// policy](crate::TaskBuilder::on_shutdown). Does not wait. Idempotent. Takes time linear in the number of
    /// pending tasks. Java: `shutdown`.
    ///
    /// A later drop of the owner cancels the tasks that are not yet due, unless it
    /// [closes](crate::DropPolicy::Close) or [`await_termination`](Self::await_termination) has waited for them.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ScheduledThreadPoolExecutor, trigger::every};
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let report = executor.schedule(Duration::from_millis(1), || "written")?;
    /// let beat = executor.repeat(every(Duration::from_secs(1)), || ())?;
    /// executor.shutdown();
    /// assert!(executor.submit(|| "too late").is_err());
    /// assert_eq!(report.join()?, "written");
    /// assert!(beat.join().unwrap_err().is_cancelled());
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias = "graceful_shutdown")]
    pub fn shutdown(&self) {
        self.pool().shutdown();
    }

    /// Shuts down within a time limit. It calls [`shutdown`](Self::shutdown), and waits for at most the
    /// [patience](Grace::patience) for the tasks that the policies keep; then it calls
    /// [`shutdown_now`](Self::shutdown_now), which cancels the tasks still pending and the tokens of those running, and
    /// waits for the latter as long as [`then`](Grace::then) allows. Returns a report of the tasks, by number and name.
    /// Blocks for no longer than both times together, on the executor's clock; if that is a manual one [another thread
    /// has to move it](crate::ManualClock#when-it-blocks). On the system's clock the patience ends early once nothing
    /// runs and no task is due before its end. Java has no such method; its documentation has a page of code instead.
    ///
    /// **The shutdown is over when this returns.** If a task still runs then, the drop of the owner waits for nothing,
    /// whichever [`DropPolicy`] it has, even if it is already waiting on another thread: at the end of `main` the task
    /// ends with the process. To wait for it nevertheless, call [`await_termination`](Self::await_termination), or
    /// [`close`](crate::ScheduledThreadPoolExecutor::close).
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{Grace, ScheduledThreadPoolExecutor};
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// executor.task().name("report").schedule(Duration::from_secs(3600), || { /* … */ })?;
    /// let grace = Grace::patience(Duration::from_secs(10)).then(Duration::from_secs(2));
    /// let report = executor.shutdown_within(grace)?; // at once: nothing is due within ten seconds
    /// assert!(report.is_terminated);
    /// assert_eq!(report.cancelled[0].name(), Some("report"));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`WouldDeadlock`], in the same cases as [`await_termination`](Self::await_termination). The executor has
    /// then been shut down, and nothing else has been done.
    #[doc(alias("shutdownAndAwaitTermination", "shutdown_timeout", "graceful_shutdown", "drain"))]
    pub fn shutdown_within(&self, grace: Grace) -> Result<ShutdownReport, WouldDeadlock> {
        let pool = self.pool();
        let log = &pool.log;
        log.open();
        pool.shutdown();
        let is_over = pool.await_or_stop(
            grace,
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

    /// Stops admitting tasks, cancels the [token](crate::TaskContext::token) of every running task, and returns the
    /// pending ones, in no particular order, to be run or dropped. Does not wait. Takes the same time however many
    /// tasks are pending; dropping them is linear in their number. Java: `shutdownNow`. [`DrainedTasks`] and
    /// [`DrainedTask`](crate::DrainedTask) have examples.
    #[doc(alias("abort_all", "drain"))]
    pub fn shutdown_now(&self) -> DrainedTasks {
        self.pool().shutdown_now()
    }

    /// Blocks until the executor has terminated: it was shut down, everything has ended, and no worker is left. Blocks
    /// for at most `timeout`; `Duration::MAX` means no limit. Returns `true` if it has terminated. On a manual clock
    /// [another thread has to move it](crate::ManualClock#when-it-blocks). Costs O(log n) for n waiters; in the drop of
    /// a capture whose task this thread cancels, the cost is linear in the pending tasks. Such a drop must not wait for
    /// another thread that waits for this end, because the executor cannot terminate before the capture is gone: only
    /// the thread that drops it is refused. Java: `awaitTermination`.
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
    /// [`WouldDeadlock`], at once, where the executor cannot terminate before this call returns: in its own tasks and
    /// the hooks around them; in the callbacks [at the start](crate::Builder::on_thread_start) and [at the
    /// end](crate::Builder::on_thread_stop) of its threads, and [at its own end](crate::Builder::terminated); in its
    /// thread factory; and in the drop of a value that a shutdown on this thread is cancelling.
    #[doc(alias = "WaitGroup")]
    pub fn await_termination(&self, timeout: Duration) -> Result<bool, WouldDeadlock> {
        self.pool().await_termination(timeout, false)
    }

    /// Returns a future that completes when the executor has terminated, as
    /// [`await_termination`](Self::await_termination) defines it; by then every closure has been dropped, though a
    /// thread may still be about to return. It needs no runtime, is `'static`, may be dropped at any time, and stops
    /// nothing itself: see [how an executor is stopped in async
    /// code](crate::ScheduledThreadPoolExecutor#dropping-it-stops-it), with an example. A poll and a drop cost O(log n)
    /// for n waiters. **A task that blocks on it, in a `block_on`, waits for itself and never ends.**
    pub fn termination(&self) -> Termination {
        Termination { handle: self.clone(), place: Place::default() }
    }

    /// Returns `true` if the executor was shut down, in whichever way; it may still be running tasks. Java:
    /// `isShutdown`.
    #[inline]
    pub fn is_shutdown(&self) -> bool {
        self.pool().lifecycle.phase() > Phase::Running
    }

    /// Returns `true` if the executor was shut down and everything has ended. Java: `isTerminated`.
    pub fn is_terminated(&self) -> bool {
        self.pool().lifecycle.phase() == Phase::Terminated
    }
}

impl ScheduledThreadPoolExecutor {
    /// [Shuts down](Handle::shutdown) and blocks until every task that the policies keep has run, however far in
    /// the future, and the threads have ended. On a manual clock [another thread has to move
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
    /// [`WouldDeadlock`] on one of the executor's own workers, or in the drop of a value that a shutdown on this
    /// thread is cancelling. Then it has been shut down, and terminates by itself.
    #[doc(alias("graceful_shutdown", "join"))]
    pub fn close(self) -> Result<(), WouldDeadlock> {
        self.shutdown();
        let pool = self.into_pool();
        pool.join(false)
    }

    /// [Closes](Self::close); when `limit` is reached, before or during the wait, calls
    /// [`shutdown_now`](Handle::shutdown_now) and waits for the running tasks. **The limit is no deadline for the
    /// call**: a task that ignores its token keeps it waiting. [`shutdown_within`](Handle::shutdown_within) has a
    /// deadline. Java: `close` in a thread that is interrupted.
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

    /// [Closes](Self::close), but does not wait: the threads go on by themselves.
    pub fn close_background(self) {
        self.shutdown();
        self.into_pool();
    }

    /// Stops the executor as a default drop does, but does not wait: tasks that are due or running finish by
    /// themselves.
    pub fn shutdown_background(self) {
        self.into_pool().stop();
    }

    fn into_pool(mut self) -> Arc<Pool> {
        self.on_drop = None;
        Arc::clone(self.handle.pool())
    }
}

/// Completes when an executor has terminated; from [`Handle::termination`]. It keeps no executor alive.
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

/// What happens to an executor when its owner is dropped; for [`Builder::on_drop`](crate::Builder::on_drop).
///
/// Under every policy, the drop is [`ShutdownNow`](Self::ShutdownNow) while the thread panics, since a task that
/// never ends must not turn a panic into a hang. It waits for nothing on one of the executor's own workers, which
/// would wait for itself, and after a [shutdown with a deadline](crate::Handle::shutdown_within) that has
/// returned with a task still running.
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
    /// Cancels the tasks that are not yet due, lets those that are due or running finish, and waits for the threads.
    #[default]
    Stop,
    /// Like [`Stop`](Self::Stop), but does not wait: if the process ends first, the tasks end with it.
    ShutdownBackground,
    /// [Closes](ScheduledThreadPoolExecutor::close) the executor. If the policies keep periodic tasks, the drop waits
    /// until these have ended or been cancelled.
    Close,
    /// Calls [`shutdown_now`](crate::Handle::shutdown_now) and cancels all pending tasks, even those already due. Does
    /// not wait for running tasks.
    ShutdownNow,
}

impl DropPolicy {
    /// Stops the pool as the drop of its owner does, but does not wait. Returns the policy that was followed:
    /// `ShutdownNow` if the thread is panicking, and otherwise `self`.
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
