//! How a group is stopped, and how its end is awaited.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use super::Group;
use crate::{DrainedTask, ShutdownReport, WouldDeadlock, wait::Place};

impl Group {
    /// Stops admitting tasks to the group; what is submitted from now on is refused, as after the
    /// [shutdown](crate::Handle::shutdown) of an executor, with
    /// [`GroupShutdown`](crate::RejectionReason::GroupShutdown) and with its closure, and no handler is asked. The executor and its
    /// other tasks go on.
    ///
    /// The executor's two policies decide whether pending tasks run or are cancelled: by default one-shot tasks still run, and
    /// periodic ones are cancelled. A periodic task that runs finishes its run, and its future has ended at once. A paused
    /// group is resumed: what is kept has to run to its end. A submission to the group that waits for room in the
    /// executor is refused, and does not hold up the group's end. Does not wait. Idempotent. Takes time linear in the number of
    /// the group's tasks.
    pub fn shutdown(&self) {
        self.handle.pool().shut_group_down(&self.state);
    }

    /// Stops admitting tasks to the group, raises the [token](crate::TaskContext::token) of each of its tasks that
    /// runs, and returns the pending ones, to be run or dropped, in the order in which they were submitted. Does not wait. A
    /// task that a worker was just about to start ends as cancelled. Takes O(n log n).
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{DrainedTask, ScheduledThreadPoolExecutor};
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let mail = executor.group("mail").build()?;
    /// let letter = mail.schedule(Duration::from_secs(3600), || "sent")?;
    /// mail.shutdown_now().into_iter().for_each(DrainedTask::run);
    /// assert_eq!(letter.join()?, "sent");
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[must_use = "dropping pending tasks cancels them"]
    pub fn shutdown_now(&self) -> Vec<DrainedTask> {
        self.handle.pool().stop_group(&self.state)
    }

    /// Shuts the group down within a time limit: calls [`shutdown`](Self::shutdown), waits for at most `patience` for
    /// its tasks, then calls [`shutdown_now`](Self::shutdown_now) and drops what it returns, and waits for at most `grace` for
    /// those that run. Returns a report that says what became of the tasks, by number and name. Blocks for no longer
    /// than both times together, on the executor's clock; if that is a manual one
    /// [somebody has to move it](crate::ManualClock#when-it-blocks).
    ///
    /// The deadline is the group's. The executor goes on, and its drop waits for a task of the group that still runs as for
    /// any other, unless the executor was [shut down with a deadline](crate::Handle::shutdown_within) as well.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let reports = executor.group("reports").build()?;
    /// reports.task().name("yearly").schedule(Duration::from_secs(3600), || { /* … */ })?;
    /// let (patience, grace) = (Duration::from_millis(5), Duration::from_secs(60));
    /// let report = reports.shutdown_within(patience, grace)?;
    /// assert!(report.is_terminated() && reports.is_terminated());
    /// assert_eq!(report.cancelled()[0].name(), Some("yearly"));
    /// assert!(executor.submit(|| "goes on")?.join().is_ok());
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`WouldDeadlock`], in the same cases as [`await_termination`](Self::await_termination). The group has then
    /// been shut down, and nothing else has been done.
    pub fn shutdown_within(
        &self,
        patience: Duration,
        grace: Duration,
    ) -> Result<ShutdownReport, WouldDeadlock> {
        self.handle.pool().stop_group_within(&self.state, patience, grace)
    }

    /// Blocks until the group has ended, which means that it or its executor was shut down and none of its tasks is left,
    /// but for no longer than `timeout`. Returns `true` if it has ended. A `timeout` of `Duration::MAX` waits without limit.
    /// On a manual clock [somebody has to move it](crate::ManualClock#when-it-blocks).
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let mail = executor.group("mail").build()?;
    /// let last = mail.schedule(Duration::from_millis(1), || "still runs")?;
    /// mail.shutdown();
    /// assert!(mail.submit(|| "too late").is_err());
    /// assert!(mail.await_termination(Duration::from_secs(60))?);
    /// assert!(last.is_done() && !executor.is_shutdown());
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`WouldDeadlock`], at once, wherever a wait for the [executor](crate::Handle::await_termination) is refused: the
    /// group may need the calling thread.
    pub fn await_termination(&self, timeout: Duration) -> Result<bool, WouldDeadlock> {
        self.handle.pool().await_group(&self.state, timeout)
    }

    /// Returns a future that completes when the group has ended, as [`await_termination`](Self::await_termination)
    /// defines it. It blocks no thread, needs no runtime, is `'static`, may be dropped at any time, and
    /// stops nothing itself. A task that blocks on it may wait for itself.
    pub fn termination(&self) -> GroupTermination {
        GroupTermination { group: self.clone(), place: Place::default() }
    }

    /// Returns `true` if the group was shut down; some of its tasks may still be there.
    #[must_use]
    pub fn is_shutdown(&self) -> bool {
        self.state.is_shut_down()
    }

    /// Returns `true` if the group or its executor was shut down, and none of its tasks is left.
    #[must_use]
    pub fn is_terminated(&self) -> bool {
        self.state.is_terminated()
    }
}

/// A future that completes when a group has ended: see [`Group::termination`].
#[must_use = "it waits for nothing unless it is awaited"]
pub struct GroupTermination {
    group: Group,
    place: Place,
}

impl Future for GroupTermination {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Self { group, place } = &mut *self;
        let answer = group.state.poll_terminated(place, context.waker());
        answer.map_or(Poll::Pending, Poll::Ready)
    }
}

impl Drop for GroupTermination {
    fn drop(&mut self) {
        self.group.state.forget(&mut self.place);
    }
}

impl fmt::Debug for GroupTermination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupTermination")
            .field("group", &self.group.name())
            .field("is_terminated", &self.group.is_terminated())
            .finish()
    }
}
