//! The verbs for stopping, on the handle. What they do is in `pool::shutdown`.

use std::time::Duration;

use super::{Handle, Termination};
use crate::{DrainedTasks, ShutdownReport, WouldDeadlock, pool::Phase};

impl Handle {
    /// Takes no more tasks. What waits is run or cancelled by the two policies: by default
    /// one-shot tasks still run, however far in the future, and periodic ones are cancelled.
    /// A one-shot task that is due runs in any case. Does not wait; doing it twice is doing it once. Linear in
    /// the number of tasks that wait. Java: `shutdown`.
    ///
    /// The owner's drop comes after it, and stops what is not yet due: to see it through, use
    /// [`close`](crate::ScheduledThreadPoolExecutor::close), wait with
    /// [`await_termination`](Self::await_termination) first, or have the drop
    /// [close](crate::DropPolicy::Close).
    pub fn shutdown(&self) {
        self.pool().shutdown();
    }

    /// Shuts down with a deadline: [`shutdown`](Self::shutdown), and a wait of at most `patience`
    /// for what the policies keep; then [`shutdown_now`](Self::shutdown_now), which cancels what
    /// still waits and raises the tokens of what runs, and a wait of at most `grace` for that to
    /// end. Says what became of the tasks, by number and name. Blocks for no longer than both,
    /// on the executor's clock; if that is a manual one
    /// [somebody has to move it](crate::ManualClock#when-it-blocks). Java has no such call, and its
    /// documentation a page of code.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// executor.task().name("report").schedule(Duration::from_secs(3600), || { /* … */ })?;
    /// let report = executor.shutdown_within(Duration::from_millis(5), Duration::from_secs(60))?;
    /// assert!(report.is_terminated());
    /// assert_eq!(report.cancelled()[0].name(), Some("report"));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`WouldDeadlock`], as [`await_termination`](Self::await_termination): then it has been shut
    /// down, and nothing more.
    #[doc(alias = "shutdownAndAwaitTermination")]
    pub fn shutdown_within(
        &self,
        patience: Duration,
        grace: Duration,
    ) -> Result<ShutdownReport, WouldDeadlock> {
        self.pool().shutdown_within(patience, grace)
    }

    /// Takes no more tasks, raises the [token](crate::TaskContext::token) of every task that
    /// runs, and gives back those that wait, in no particular order, to be run or dropped. Does
    /// not wait, and takes the same time however many tasks wait: it is dropping them that is
    /// linear in their number. Java: `shutdownNow`.
    #[doc(alias = "shutdownNow")]
    pub fn shutdown_now(&self) -> DrainedTasks {
        self.pool().shutdown_now()
    }

    /// Blocks until the executor has terminated: it was shut down, everything has ended, and no
    /// worker lives. Gives whether it has, after at most `timeout`; `Duration::MAX` waits without
    /// limit. On a manual clock [somebody has to move it](crate::ManualClock#when-it-blocks).
    /// Java: `awaitTermination`. [`termination`](Self::termination) is the same without blocking.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// executor.schedule(Duration::from_millis(1), || println!("still runs"))?;
    /// executor.shutdown();
    /// assert!(executor.await_termination(Duration::from_secs(60))?);
    /// assert!(executor.is_terminated());
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`WouldDeadlock`], at once, wherever the end could not come before this call has returned:
    /// in one of the executor's own tasks and the hooks around it; in what is called
    /// [at the start](crate::Builder::on_thread_start) or [at the end](crate::Builder::on_thread_stop)
    /// of one of its threads, and [at its end](crate::Builder::terminated); in its thread factory;
    /// and in the drop of what a shutdown on this thread is cancelling.
    #[doc(alias = "awaitTermination")]
    pub fn await_termination(&self, timeout: Duration) -> Result<bool, WouldDeadlock> {
        self.pool().await_termination(timeout)
    }

    /// A future that ends when the executor has terminated, as
    /// [`await_termination`](Self::await_termination) does, and blocks no thread. It needs no
    /// runtime, is `'static`, may be dropped at any time, and stops nothing itself: see
    /// [how an executor is stopped in async code](crate::ScheduledThreadPoolExecutor#dropping-it-stops-it).
    /// When it ends every closure of the executor has been dropped; a thread may still be about to
    /// return.
    ///
    /// Unlike [`await_termination`](Self::await_termination) it gives no error in one of the
    /// executor's own tasks, because a future does not know what will await it. **A task that blocks
    /// on it, in a `block_on`, waits for itself and never ends.**
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
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// # block_on(async {
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let last = executor.schedule(Duration::from_millis(1), || "still runs")?;
    /// executor.shutdown();
    /// executor.termination().await;
    /// assert!(executor.is_terminated() && last.is_done());
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// # }).unwrap();
    /// ```
    pub fn termination(&self) -> Termination {
        Termination::new(self.clone())
    }

    /// Whether it was shut down, in whichever way; perhaps it still works. Java: `isShutdown`.
    #[doc(alias = "isShutdown")]
    #[must_use]
    pub fn is_shutdown(&self) -> bool {
        self.pool().phase() > Phase::Running
    }

    /// Whether it was shut down and has not terminated. Java: `isTerminating`.
    #[doc(alias = "isTerminating")]
    #[must_use]
    pub fn is_terminating(&self) -> bool {
        self.is_shutdown() && !self.is_terminated()
    }

    /// Whether it was shut down and everything has ended. Java: `isTerminated`.
    #[doc(alias = "isTerminated")]
    #[must_use]
    pub fn is_terminated(&self) -> bool {
        self.pool().phase() == Phase::Terminated
    }

    /// Whether one-shot tasks that are not yet due run after a shutdown. Java:
    /// `getExecuteExistingDelayedTasksAfterShutdownPolicy`.
    #[doc(alias = "getExecuteExistingDelayedTasksAfterShutdownPolicy")]
    #[must_use]
    pub fn executes_existing_delayed_tasks_after_shutdown(&self) -> bool {
        self.pool().keeps_delayed()
    }

    /// Changes that policy. After a shutdown, switching it off cancels at once what was kept;
    /// switching it on brings nothing back.
    #[doc(alias = "setExecuteExistingDelayedTasksAfterShutdownPolicy")]
    pub fn set_executes_existing_delayed_tasks_after_shutdown(&self, keep: bool) {
        self.pool().set_keep_delayed(keep);
    }

    /// Whether periodic tasks go on after a shutdown. Java:
    /// `getContinueExistingPeriodicTasksAfterShutdownPolicy`.
    #[doc(alias = "getContinueExistingPeriodicTasksAfterShutdownPolicy")]
    #[must_use]
    pub fn continues_existing_periodic_tasks_after_shutdown(&self) -> bool {
        self.pool().keeps_periodic()
    }

    /// Changes that policy. After a shutdown, switching it off cancels at once what was kept;
    /// switching it on brings nothing back.
    #[doc(alias = "setContinueExistingPeriodicTasksAfterShutdownPolicy")]
    pub fn set_continues_existing_periodic_tasks_after_shutdown(&self, keep: bool) {
        self.pool().set_keep_periodic(keep);
    }
}
