//! Inspection of an executor: counts, and the pending tasks.
//!
//! There is no live view of the queue, unlike in Java, whose iterator shows the heap's order and
//! whose `remove` leaves the future pending. There is a snapshot, in due order, and each task in it
//! can be cancelled.

use std::{
    fmt,
    time::{Duration, Instant},
};

use super::{Handle, ScheduledThreadPoolExecutor};
use crate::{
    ScheduledFuture, Statistics, TaskHandle, TaskId, pool::PoolRef, queue::SnapshotEntry,
    sync::Arc, task::Task,
};

impl Handle {
    /// Returns how many workers and tasks there are and were, in one consistent snapshot. Takes
    /// time linear in the number of workers; submissions and workers wait while it counts, which is
    /// less than a microsecond.
    ///
    /// [`Statistics`] has an example.
    #[doc(alias("metrics", "stats"))]
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.pool().statistics()
    }

    /// Returns how late tasks started and how long they took, in the pool and by name; `None` unless
    /// [histograms](crate::Builder::histograms) are kept. Takes some microseconds for each name and
    /// each worker that there ever was at once; a worker that records a run meanwhile waits for one of
    /// these.
    #[doc(alias("percentiles", "latency"))]
    #[cfg(feature = "histograms")]
    #[must_use]
    pub fn histograms(&self) -> Option<crate::Histograms> {
        self.pool().histograms()
    }

    /// Returns how many workers there are, without one that is still being started. Java:
    /// `getPoolSize`.
    #[doc(alias = "getPoolSize")]
    #[must_use]
    pub fn pool_size(&self) -> usize {
        self.pool().workers().size()
    }

    /// Returns the largest number of workers that there have ever been at once. Java:
    /// `getLargestPoolSize`.
    #[doc(alias = "getLargestPoolSize")]
    #[must_use]
    pub fn largest_pool_size(&self) -> usize {
        self.pool().workers().largest()
    }

    /// Returns how many tasks are running. Costs as much as [`statistics`](Self::statistics). Java:
    /// `getActiveCount`.
    #[doc(alias = "getActiveCount")]
    #[must_use]
    pub fn active_count(&self) -> usize {
        self.statistics().active
    }

    /// Returns how many tasks have run, are running or are pending; those that were cancelled do
    /// not count. Costs as much as [`statistics`](Self::statistics). Java: `getTaskCount`.
    #[doc(alias = "getTaskCount")]
    #[must_use]
    pub fn task_count(&self) -> u64 {
        let now = self.statistics();
        now.submitted - now.cancelled
    }

    /// Returns how many tasks have run to their end, with a result or a panic. Costs as much as
    /// [`statistics`](Self::statistics), which tells the two apart, and counts the runs of periodic
    /// tasks in its `runs`. Java: `getCompletedTaskCount`, which counts runs, and cancelled tasks
    /// too.
    #[doc(alias = "getCompletedTaskCount")]
    #[must_use]
    pub fn completed_task_count(&self) -> u64 {
        let now = self.statistics();
        now.completed + now.failed
    }

    /// Returns how many tasks are pending; those that run do not count. Java: `getQueue().size()`.
    #[must_use]
    pub fn pending_count(&self) -> usize {
        self.pool().pending_count()
    }

    /// Returns a snapshot of the pending tasks, in the order in which they are due. Takes O(n log
    /// n). While it copies the queue, one handle for each task, nothing can be submitted or taken.
    /// Java: `getQueue`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// for (name, minutes) in [("lunch", 240), ("tea", 30), ("dinner", 600)] {
    ///     executor.task().name(name).schedule(Duration::from_secs(60 * minutes), || ())?;
    /// }
    /// let pending = executor.pending_tasks();
    /// let names: Vec<_> = pending.iter().filter_map(|task| task.name()).collect();
    /// assert_eq!(names.iter().map(|name| &**name).collect::<Vec<_>>(), ["tea", "lunch", "dinner"]);
    /// pending[0].task_handle().cancel();
    /// assert_eq!(executor.pending_count(), 2);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias = "getQueue")]
    #[doc(alias = "queue")]
    #[must_use]
    pub fn pending_tasks(&self) -> Vec<PendingTask> {
        let listed = self.pool().pending();
        listed.into_iter().map(|one| PendingTask::new(one, self.pool_refs.local())).collect()
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
        task.remove_from(self.pool())
    }

    /// Removes cancelled tasks from the queue, and returns how many these were. That is nearly
    /// always zero, because cancelling a task removes it as well: this finds only the tasks that a
    /// call in another thread has cancelled and not yet removed. Takes time linear in the number of
    /// pending tasks. Java: `purge`, which is needed there.
    #[allow(clippy::must_use_candidate, reason = "it is done for what it does")]
    pub fn purge(&self) -> usize {
        self.pool().purge()
    }

    pub(crate) fn describe(&self, f: &mut fmt::Formatter<'_>, what: &str) -> fmt::Result {
        let now = self.statistics();
        f.debug_struct(what)
            .field("name", &self.pool().thread_name())
            .field("state", &now.state)
            .field("core_pool_size", &now.core_pool_size)
            .field("pool_size", &now.pool_size)
            .field("active", &now.active)
            .field("pending", &now.pending)
            .field("completed", &now.completed)
            .field("failed", &now.failed)
            .field("cancelled", &now.cancelled)
            .field("rejected", &now.rejected)
            .finish_non_exhaustive()
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

/// A task that was pending when [`Handle::pending_tasks`] took its snapshot.
///
/// [`pending_tasks`](Handle::pending_tasks) has an example.
#[derive(Clone)]
pub struct PendingTask {
    handle: TaskHandle,
    next_run: Option<Instant>,
    delay: Duration,
    runs: u64,
    is_periodic: bool,
}

impl PendingTask {
    fn new(listed: SnapshotEntry<Arc<Task>>, pool_ref: &PoolRef) -> Self {
        let SnapshotEntry { deadline, ticket, element: task } = listed;
        Self {
            next_run: pool_ref.pool().clock().instant_of(deadline),
            delay: deadline.delay_at(pool_ref.pool().clock().read()),
            // The count of a task that has begun since cannot be read.
            runs: task.runs().unwrap_or(0),
            is_periodic: task.is_periodic(),
            handle: TaskHandle::new(task, pool_ref.clone(), ticket),
        }
    }

    /// Returns the number of the task.
    #[must_use]
    pub fn id(&self) -> TaskId {
        self.handle.id()
    }

    /// Returns the name of the task, if it has one.
    #[must_use]
    pub fn name(&self) -> Option<Arc<str>> {
        self.handle.name()
    }

    /// Returns when the task was due, or `None` for a task that was never due.
    #[must_use]
    pub fn next_run(&self) -> Option<Instant> {
        self.next_run
    }

    /// Returns how long it was, at the time of the snapshot, until the task was due: zero if it was
    /// due already, `Duration::MAX` for a task that was never due.
    #[must_use]
    pub fn delay(&self) -> Duration {
        self.delay
    }

    /// Returns how many runs the task had had; zero for a one-shot task.
    #[must_use]
    pub fn run_count(&self) -> u64 {
        self.runs
    }

    /// Returns `true` if the task is periodic.
    #[must_use]
    pub fn is_periodic(&self) -> bool {
        self.is_periodic
    }

    /// Returns a handle that can cancel the task, and that shows its present state.
    #[must_use]
    pub fn task_handle(&self) -> &TaskHandle {
        &self.handle
    }
}

/// One line for a log, with the present state and the rest as of the snapshot:
/// `2v-9qk0 "tea" (paused): due in 58.5s, runs 1`.
impl fmt::Display for PendingTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.id())?;
        if let Some(name) = self.name() {
            write!(f, " {name:?}")?;
        }
        write!(f, " ({}): ", self.handle.state())?;
        match self.delay {
            Duration::ZERO => f.write_str("due"),
            Duration::MAX => f.write_str("never due"),
            delay => write!(f, "due in {delay:?}"),
        }?;
        write!(f, ", runs {}", self.runs)
    }
}

impl fmt::Debug for PendingTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingTask")
            .field("id", &format_args!("{}", self.id()))
            .field("name", &self.name())
            .field("delay", &self.delay)
            .field("run_count", &self.runs)
            .field("is_periodic", &self.is_periodic)
            .finish_non_exhaustive()
    }
}
