//! What a running task can know about itself.
//!
//! While a task runs, its [`Run`] is reachable from a thread-local, for the length of the call
//! and no longer (`scoped-tls` holds a plain reference for a scope: no count is touched, and a
//! run inside a run, as by `PendingTask::run`, gives way to the outer one again, also when it
//! unwinds). Nothing is copied until somebody asks.

use std::{cell::Cell, fmt, rc::Rc, time::Duration, time::Instant};

use super::{Job, Runnable};
use crate::{
    CancellationToken,
    sync::Arc,
    time::{Clock, Deadline},
    trace,
};

scoped_tls::scoped_thread_local!(static CURRENT: Run);

/// The number of a task: unique within its executor, and in the order of submission: a task that
/// was submitted before another, in whichever thread, has the smaller number. It is made from the
/// moment of submission, so numbers do not follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub(crate) u64);

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What all runs on one thread have in common.
pub(crate) struct Ground {
    pub(crate) clock: Clock,
    /// The parent of the tokens of the tasks.
    pub(crate) stop: CancellationToken,
}

/// One run of one task.
pub(crate) struct Run {
    ground: Rc<Ground>,
    task: Arc<dyn Runnable>,
    id: u64,
    planned: Deadline,
    started: Deadline,
    number: Cell<u64>,
    missed: Cell<u64>,
}

impl Run {
    pub(crate) fn new(
        ground: Rc<Ground>,
        task: Arc<dyn Runnable>,
        id: u64,
        planned: Deadline,
        started: Deadline,
    ) -> Self {
        let (number, missed) = (Cell::new(1), Cell::new(0));
        Self { ground, task, id, planned, started, number, missed }
    }

    pub(crate) fn task(&self) -> &Arc<dyn Runnable> {
        &self.task
    }

    /// Notes which run of the job this is.
    pub(super) fn begin(&self, job: &impl Job) {
        self.number.set(job.runs() + 1);
        self.missed.set(job.missed(self.planned, self.started));
    }

    /// Makes this the current run of the thread while `body` runs.
    pub(super) fn call<R>(&self, body: impl FnOnce() -> R) -> R {
        let about = || trace::About {
            id: self.id,
            name: self.task.name(),
            run: self.number.get(),
            lateness: self.started.since(self.planned),
        };
        let run_time = || self.clock().now().since(self.started);
        trace::in_span(about, run_time, || CURRENT.set(self, body))
    }

    pub(super) fn planned(&self) -> Deadline {
        self.planned
    }

    pub(super) fn started(&self) -> Deadline {
        self.started
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.ground.clock
    }

    /// Whether the calling thread is in the middle of running a task, of whichever executor.
    pub(crate) fn is_any() -> bool {
        CURRENT.is_set()
    }

    /// Whether the calling thread is in the middle of running `task`.
    pub(crate) fn is_of(task: &Arc<dyn Runnable>) -> bool {
        CURRENT.is_set() && CURRENT.with(|run| Arc::ptr_eq(&run.task, task))
    }
}

/// The task that the calling thread runs, seen from inside; `None` outside of any task.
///
/// ```
/// use std::time::Duration;
/// use punctual::{ScheduledThreadPoolExecutor, current_task};
///
/// let executor = ScheduledThreadPoolExecutor::new(1);
/// let number = executor.submit(|| current_task().map(|task| task.run_number()))?;
/// assert_eq!(number.join()?, Some(1));
/// assert!(current_task().is_none());
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
pub fn current_task() -> Option<TaskContext> {
    if !CURRENT.is_set() {
        return None;
    }
    CURRENT.with(|run| {
        Some(TaskContext {
            task: Arc::clone(&run.task),
            stop: run.ground.stop.clone(),
            id: TaskId(run.id),
            number: run.number.get(),
            missed: run.missed.get(),
            planned: run.clock().instant_of(run.planned),
            lateness: run.started.since(run.planned),
        })
    })
}

/// What a task can know of its own run; from [`current_task`].
#[derive(Clone)]
pub struct TaskContext {
    task: Arc<dyn Runnable>,
    stop: CancellationToken,
    id: TaskId,
    number: u64,
    missed: u64,
    planned: Option<Instant>,
    lateness: Duration,
}

impl TaskContext {
    /// The number of the task, the same for all its runs.
    pub fn id(&self) -> TaskId {
        self.id
    }

    /// The name given by [`TaskBuilder::name`](crate::TaskBuilder::name), if one was.
    pub fn name(&self) -> Option<Arc<str>> {
        self.task.name()
    }

    /// Which run this is: 1 for the first, and always for a one-shot task.
    pub fn run_number(&self) -> u64 {
        self.number
    }

    /// How many runs of a fixed-rate task did not take place just before this one, by its
    /// [`MissedRuns`](crate::MissedRuns) policy.
    pub fn missed_runs(&self) -> u64 {
        self.missed
    }

    /// The moment for which this run was planned; `None` if an [`Instant`] cannot say it.
    pub fn planned(&self) -> Option<Instant> {
        self.planned
    }

    /// How long after that moment it started.
    pub fn lateness(&self) -> Duration {
        self.lateness
    }

    /// The token that is raised when this task is asked to stop. It is the task's, not the
    /// run's: once raised it stays so, and the task does not run again.
    pub fn token(&self) -> CancellationToken {
        self.task.token(&self.stop)
    }
}

impl fmt::Debug for TaskContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskContext")
            .field("id", &self.id)
            .field("name", &self.name())
            .field("run_number", &self.number)
            .field("missed_runs", &self.missed)
            .field("lateness", &self.lateness)
            .finish_non_exhaustive()
    }
}
