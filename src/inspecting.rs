//! The observable state of an executor: the numbers of its workers and tasks in one consistent snapshot, and the
//! running and the pending tasks. The `serde` forms of task ids and pending tasks are here too. The counts of workers,
//! tasks and runs are read under the lock of the workers and all locks of the queue, taken in that order. So during
//! this read, no worker is added or removed, and no task is admitted, taken, queued again or removed. A task that has
//! been taken, and is neither counted as ended nor back in the queue, is *active*:
//!
//! ```text
//!   active = taken − requeued − ended        (each worker counts the ends of tasks: `crate::statistics`)
//! ```
//!
//! So every snapshot satisfies the equation and the bounds that [`Statistics`] documents. `active <= pool_size` holds
//! because a worker is counted before it takes its first task, and counts the end of each task, or queues the task
//! again, before it takes another.

use std::{
    fmt,
    ops::Deref,
    time::{Duration, Instant},
};

use crate::{
    Handle, TaskHandle, TaskId, TaskSummary,
    pool::{Phase, Pool, PoolRef},
    queue::{SnapshotEntry, in_order},
    sync::Arc,
    task::Task,
    unwind::discard,
};

/// # Inspecting
impl Handle {
    /// Returns how many workers and tasks there are and were, in one consistent snapshot. Takes time linear in the
    /// number of workers; submissions and workers wait meanwhile, for less than a microsecond. [`Statistics`] has an
    /// example.
    #[doc(alias("metrics", "stats"))]
    pub fn statistics(&self) -> Statistics {
        Statistics::of(self.pool())
    }

    /// Returns how many tasks are pending; running tasks do not count. Java: `getQueue().size()`.
    pub fn pending_count(&self) -> usize {
        self.pool().queue.len()
    }

    /// Returns a snapshot of the pending tasks, in the order in which they are due. Takes O(n log n). While it
    /// copies the queue, one handle for each task, nothing can be submitted or taken. Java: `getQueue`, whose
    /// iterator shows the heap's order.
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

    /// Returns the running tasks in no particular order, each with the time that its run has taken so far. Takes
    /// time linear in the number of workers.
    ///
    /// ```
    /// use punctual::{ScheduledThreadPoolExecutor, with_context};
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let (begin, begun) = std::sync::mpsc::channel();
    /// let task = executor.task().name("backup").submit(with_context(move |run| {
    ///     begin.send(()).ok();
    ///     run.token().wait()
    /// }))?;
    /// begun.recv()?;
    /// assert_eq!(executor.running_tasks()[0].name(), Some("backup"));
    /// task.cancel_and_signal();
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn running_tasks(&self) -> Vec<RunningTask> {
        RunningTask::all(self.pool())
    }

    /// Returns the first due task and how long it has been due, which is how far the executor is behind; `None` if
    /// nothing is due. Takes time linear in the number of cores.
    pub fn first_due(&self) -> Option<(TaskSummary, Duration)> {
        let now = self.pool().clock().read();
        let first = self.pool().queue.first_due(now)?;
        let (due, ticket, task) = (first.deadline, first.ticket, first.element);
        let summary = TaskSummary::new(ticket.sequence, task.name());
        discard(task);
        Some((summary, now.since(due)))
    }

    /// Returns how many workers sleep until a task is due.
    pub fn idle_count(&self) -> usize {
        self.pool().queue.waiting()
    }
}

/// The numbers of workers and tasks that an executor has and has had, in one consistent snapshot; from
/// [`Handle::statistics`](crate::Handle::statistics).
///
/// Always `submitted == pending + active + completed + failed + cancelled`,
/// `active <= pool_size <= largest_pool_size` and `failed <= failed_runs <= runs`.
///
/// ```
/// use std::time::Duration;
/// use punctual::ScheduledThreadPoolExecutor;
///
/// let executor = ScheduledThreadPoolExecutor::new(2);
/// executor.submit(|| "ran")?.join()?;
/// executor.schedule(Duration::from_secs(60), || "cancelled")?.cancel();
/// executor.schedule(Duration::from_secs(60), || "waits")?;
/// let now = executor.statistics();
/// assert_eq!((now.submitted, now.completed, now.cancelled, now.pending), (3, 1, 1, 1));
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Statistics {
    /// The state of the executor.
    pub state: ExecutorState,
    /// The number of workers that the executor is to have. Java: `getCorePoolSize`.
    pub core_pool_size: usize,
    /// The number of workers. Java: `getPoolSize`.
    pub pool_size: usize,
    /// The most workers there have ever been at once. Java: `getLargestPoolSize`.
    pub largest_pool_size: usize,
    /// The number of running tasks. Java: `getActiveCount`.
    pub active: usize,
    /// The number of pending tasks. Java: `getQueue().size()`.
    pub pending: usize,
    /// The number of tasks that have been admitted.
    pub submitted: u64,
    /// The number of tasks that ended with a result, or because their trigger ended.
    pub completed: u64,
    /// The number of tasks that ended because a run failed.
    pub failed: u64,
    /// The number of tasks that were cancelled: on request, by a timeout, a removal or a shutdown, or returned by
    /// `shutdown_now`, even if the caller then ran them. One that is cancelled while it runs counts as active until its
    /// body has returned.
    pub cancelled: u64,
    /// The number of submissions that were not admitted, whatever the handler did with them.
    pub rejected: u64,
    /// The number of rejected tasks that [`CallerRunsPolicy`](crate::CallerRunsPolicy), or another handler, ran on the
    /// submitting thread.
    pub caller_runs: u64,
    /// The number of those caller's runs that failed.
    pub caller_panics: u64,
    /// The number of runs. Each run of a periodic task counts; a run by the caller does not.
    pub runs: u64,
    /// The number of runs that failed, or exceeded their [time limit](crate::TaskBuilder::timeout), including those
    /// after which the task went on.
    pub failed_runs: u64,
    /// The number of periodic runs that the [`MissedRuns`](crate::MissedRuns) policy left out because they, or the run
    /// before, were late. [Overdue](crate::MissedRuns#overdue-runs) runs are counted at once, others with the next run,
    /// or with the next that a gate skips.
    pub missed_runs: u64,
    /// The number of runs that did not take place because the task's [gate](crate::TaskBuilder::gate) said so, or
    /// panicked. They do not count as runs.
    pub gate_skips: u64,
    /// The number of [time limits](crate::TaskBuilder::timeout) that have been exceeded: by one-shot tasks, whether
    /// they waited or ran, and by single runs of periodic tasks.
    pub timed_out: u64,
}

/// The state of an executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum ExecutorState {
    /// The executor admits tasks.
    Running,
    /// The executor was shut down and runs what its policies keep, or was dropped and runs what is due.
    ShuttingDown,
    /// The executor was shut down by `shutdown_now`, and waits for the running tasks; or everything has ended except
    /// the termination hook.
    Stopping,
    /// Everything has ended.
    Terminated,
}

impl fmt::Display for ExecutorState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Running => "running",
            Self::ShuttingDown => "shutting down",
            Self::Stopping => "stopping",
            Self::Terminated => "terminated",
        })
    }
}

impl From<Phase> for ExecutorState {
    fn from(phase: Phase) -> Self {
        match phase {
            Phase::Running => Self::Running,
            Phase::ShuttingDown | Phase::OwnerDropped => Self::ShuttingDown,
            Phase::Stopping | Phase::Tidying => Self::Stopping,
            Phase::Terminated => Self::Terminated,
        }
    }
}

impl Statistics {
    pub(super) fn of(pool: &Pool) -> Self {
        // The queue is counted under the lock of the workers, and takes its own locks for that.
        let (pool_size, largest_pool_size, (queue, done)) =
            pool.workers.count(|totals| pool.queue.counts(totals));
        let active = queue.taken - queue.requeued - done.ended();
        let [rejected, caller_runs, caller_panics] = pool.rejections.counts();
        Self {
            state: pool.lifecycle.phase().into(),
            core_pool_size: pool.workers.core_size(),
            pool_size,
            largest_pool_size,
            active: active as usize,
            pending: queue.len as usize,
            submitted: queue.offered,
            completed: done.completed,
            failed: done.failed,
            cancelled: done.cancelled + queue.removed(),
            rejected,
            caller_runs,
            caller_panics,
            runs: done.runs,
            failed_runs: done.failed_runs,
            missed_runs: done.missed_runs,
            gate_skips: done.gate_skips,
            timed_out: pool.extensions.timed_out(),
        }
    }
}

/// A task that occupies a worker; from [`Handle::running_tasks`](crate::Handle::running_tasks).
#[derive(Clone, Debug)]
pub struct RunningTask {
    task: TaskSummary,
    running_for: Duration,
}

impl RunningTask {
    pub(super) fn all(pool: &Pool) -> Vec<Self> {
        let (stats, now) = (pool.workers.worker_stats(), pool.clock().read());
        let running = stats.into_iter().filter_map(|worker| worker.current());
        running
            .map(|(id, name, since)| Self {
                task: TaskSummary::new(id, name),
                running_for: now.since(since),
            })
            .collect()
    }

    /// Returns the id of the task.
    pub fn id(&self) -> TaskId {
        self.task.id()
    }

    /// Returns the name of the task, if it was given one.
    pub fn name(&self) -> Option<&str> {
        self.task.name()
    }

    /// Returns how long the current run of the task has taken so far.
    pub fn running_for(&self) -> Duration {
        self.running_for
    }
}

/// Shows the task, and how long it has been running.
impl fmt::Display for RunningTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for {:?}", self.task, self.running_for)
    }
}

/// A pending task, as of the snapshot of [`Handle::pending_tasks`](crate::Handle::pending_tasks), which has an example.
/// It dereferences to a handle that can cancel the task, and that shows its current state.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PendingTask {
    handle: TaskHandle,
    /// When the task was due, or `None` if it is never due.
    pub next_run: Option<Instant>,
    /// How long it was until the task was due: zero if it was already due, `Duration::MAX` if it is never due.
    pub delay: Duration,
    /// How many times the task had run; zero for a one-shot task.
    pub run_count: u64,
    /// Whether the task is periodic.
    pub is_periodic: bool,
}

impl PendingTask {
    pub(super) fn new(listed: SnapshotEntry<Arc<Task>>, pool_ref: &PoolRef) -> Self {
        let SnapshotEntry { deadline, ticket, element: task } = listed;
        let clock = pool_ref.pool().clock();
        Self {
            next_run: clock.instant_of(deadline),
            delay: deadline.delay_at(clock.read()),
            // The run count of a task that is running by now cannot be read.
            run_count: task.runs().unwrap_or(0),
            is_periodic: task.is_periodic(),
            handle: TaskHandle::new(task, pool_ref.clone(), ticket),
        }
    }
}

impl Deref for PendingTask {
    type Target = TaskHandle;

    fn deref(&self) -> &TaskHandle {
        &self.handle
    }
}

/// One line for a log: `2v-9qk0 "tea" (paused): due in 58.5s, runs 1`. The state is the task's current one; the rest is
/// as of the snapshot.
impl fmt::Display for PendingTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let task = TaskSummary::new(self.id().0, self.name());
        write!(f, "{task} ({}): ", self.state())?;
        match self.delay {
            Duration::ZERO => f.write_str("due"),
            Duration::MAX => f.write_str("never due"),
            delay => write!(f, "due in {delay:?}"),
        }?;
        write!(f, ", runs {}", self.run_count)
    }
}

/// The observable state as data for `serde`. Most types derive their form where they are declared. A **task id** is its
/// text, `"2v-9qk0"`, in every format: a program in another language may read numbers as floating point, and lose the
/// last digits of this one. A **pending task** is written as the snapshot that it is, and cannot be read back, because
/// data cannot hold the task. An [`Instant`] means nothing in another process, so a pending task has its delay at the
/// time of the snapshot; one that is never due has none.
///
/// The names of fields and variants are part of the interface: `docs/observing.md` lists them, and a test compares the
/// two. Fields may be added.
#[cfg(feature = "serde")]
mod serialized {
    use std::borrow::Cow;

    use serde::{
        Deserialize, Deserializer, Serialize, Serializer, de::Error, ser::SerializeStruct,
    };

    use super::PendingTask;
    use crate::TaskId;

    impl Serialize for TaskId {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_str(self)
        }
    }

    impl<'de> Deserialize<'de> for TaskId {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let text = Cow::<'de, str>::deserialize(deserializer)?;
            text.parse().map_err(D::Error::custom)
        }
    }

    /// Writes the snapshot, and the task's current state.
    impl Serialize for PendingTask {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut shown = serializer.serialize_struct("PendingTask", 6)?;
            shown.serialize_field("id", &self.id())?;
            shown.serialize_field("name", &self.name())?;
            shown.serialize_field("state", &self.state())?;
            shown.serialize_field("delay", &self.next_run.map(|_| self.delay))?;
            shown.serialize_field("run_count", &self.run_count)?;
            shown.serialize_field("is_periodic", &self.is_periodic)?;
            shown.end()
        }
    }
}
