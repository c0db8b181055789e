//! What a running task can know about itself.
//!
//! While a task runs, its [`Run`] is reachable from a thread-local, for the length of the call
//! and no longer (`scoped-tls` holds a plain reference for a scope: no count is touched, and a
//! run inside a run, as by `DrainedTask::run`, gives way to the outer one again, also when it
//! unwinds). Nothing is copied until somebody asks.

use std::{cell::Cell, fmt, rc::Rc, time::Duration, time::Instant};

use super::{
    Job, Runnable,
    decorate::Wrapper,
    failure::FailedRun,
    hooks::{Drops, Hooks, Subject},
};
use crate::{
    CancellationToken, Panic, TaskId,
    statistics::{Ended, WorkerStats},
    sync::{Arc, scoped_thread_local},
    time::{Clock, Timestamp},
    trace,
};

scoped_thread_local!(static CURRENT: Run);

/// What all runs on one thread have in common.
pub(crate) struct WorkerContext {
    pub(crate) clock: Clock,
    /// The parent of the tokens of the tasks.
    pub(crate) stop: CancellationToken,
    pub(crate) hooks: Hooks,
    pub(crate) stats: Arc<WorkerStats>,
    /// Whether runs keep to the time limits of their tasks. One by hand does not: the timer that
    /// raises the token may be gone.
    pub(crate) keeps_limits: bool,
}

/// One run of one task.
#[cfg_attr(any(shuttle, loom), derive(Clone))]
pub(crate) struct Run {
    worker: Rc<WorkerContext>,
    task: Arc<dyn Runnable>,
    id: u64,
    planned: Timestamp,
    started: Timestamp,
    number: Cell<u64>,
    missed: Cell<u64>,
    /// How many runs have failed in a row, with this one; zero if it has not.
    failures: Cell<u32>,
}

impl Run {
    pub(crate) fn new(
        worker: Rc<WorkerContext>,
        task: Arc<dyn Runnable>,
        id: u64,
        planned: Timestamp,
        started: Timestamp,
    ) -> Self {
        let (number, missed, failures) = (Cell::new(1), Cell::new(0), Cell::new(0));
        Self { worker, task, id, planned, started, number, missed, failures }
    }

    pub(crate) fn task(&self) -> &Arc<dyn Runnable> {
        &self.task
    }

    /// Notes which run of which job this is.
    #[inline]
    pub(super) fn begin(&self, job: &impl Job, name: Option<Arc<str>>) {
        self.stats().begin(self.id, name);
        self.number.set(job.runs() + 1);
        self.missed.set(job.missed(self.planned, self.started));
    }

    /// Calls the body, with everything around it that belongs there; meanwhile this is the
    /// thread's current run.
    pub(super) fn call<R>(
        &self,
        wrapper: Option<&mut Wrapper>,
        body: impl FnOnce() -> R,
    ) -> Result<R, Panic> {
        let hooks = &self.worker.hooks;
        let body = || match wrapper {
            None => hooks.around(self, body),
            Some(wrapper) => hooks.around(self, || wrapper.call(body)),
        };
        let about = || trace::About {
            id: self.id,
            name: self.task.name(),
            run: self.number.get(),
            lateness: self.started.since(self.planned),
        };
        let run_time = || self.clock().read().since(self.started);
        trace::in_span(about, run_time, || CURRENT.set(self, body))
    }

    pub(super) fn stats(&self) -> &WorkerStats {
        &self.worker.stats
    }

    /// Counts the run, and the end of its task if it was the last.
    #[inline]
    pub(super) fn count(&self, failed: bool, ended: Option<Ended>) {
        self.stats().count(failed, self.missed.get(), ended);
    }

    pub(super) fn keeps_limits(&self) -> bool {
        self.worker.keeps_limits
    }

    /// Where a panic in the drop of the task's values is reported.
    #[inline]
    pub(super) fn drops(&self) -> Drops<'_> {
        self.worker.hooks.drops(self.id)
    }

    /// Reports a panic in the drop of one of the task's values.
    #[cold]
    pub(super) fn report_drop(&self, panic: Panic) {
        self.drops().report(self.task.name(), panic);
    }

    /// This run, for a report.
    pub(super) fn subject(&self) -> Subject {
        Subject { id: Some(self.id), name: self.task.name(), run: Some(self.number.get()) }
    }

    /// Notes that this run of a periodic task has failed, and so many before it.
    pub(super) fn note_failure(&self, in_a_row: u32) {
        self.failures.set(in_a_row);
    }

    /// This run, which failed so.
    pub(super) fn failure(&self, panic: &Panic) -> FailedRun {
        let (run_number, in_a_row) = (self.number.get(), self.failures.get());
        FailedRun { run_number, in_a_row, message: panic.message().into() }
    }

    /// What is known of this run, for the user.
    pub(super) fn context(&self) -> TaskContext {
        TaskContext {
            task: Arc::clone(&self.task),
            stop: self.worker.stop.clone(),
            id: TaskId(self.id),
            number: self.number.get(),
            missed: self.missed.get(),
            planned: self.clock().instant_of(self.planned),
            lateness: self.started.since(self.planned),
        }
    }

    pub(super) fn planned(&self) -> Timestamp {
        self.planned
    }

    pub(super) fn started(&self) -> Timestamp {
        self.started
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.worker.clock
    }

    /// The run that the calling thread is in the middle of.
    pub(crate) fn current() -> Option<CurrentRun> {
        let current = |run: &Self| CurrentRun {
            task: Arc::clone(&run.task),
            id: run.id,
            number: run.number.get(),
            started: run.started,
            stop: run.worker.stop.clone(),
            hooks: run.worker.hooks.clone(),
        };
        CURRENT.is_set().then(|| CURRENT.with(current))
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

/// What is known of a run that is under way, for the one who watches over its time.
#[derive(Clone)]
pub(crate) struct CurrentRun {
    pub(crate) task: Arc<dyn Runnable>,
    pub(crate) id: u64,
    /// Which run of the task it is; 1 for the first.
    pub(crate) number: u64,
    pub(crate) started: Timestamp,
    /// The parent of the task's token.
    pub(crate) stop: CancellationToken,
    pub(crate) hooks: Hooks,
}

impl CurrentRun {
    /// The run, for a report.
    pub(crate) fn subject(&self) -> Subject {
        Subject { id: Some(self.id), name: self.task.name(), run: Some(self.number) }
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
#[must_use]
pub fn current_task() -> Option<TaskContext> {
    if !CURRENT.is_set() {
        return None;
    }
    CURRENT.with(|run| Some(run.context()))
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
    #[must_use]
    pub fn id(&self) -> TaskId {
        self.id
    }

    /// The name given by [`TaskBuilder::name`](crate::TaskBuilder::name), if one was.
    #[must_use]
    pub fn name(&self) -> Option<Arc<str>> {
        self.task.name()
    }

    /// Which run this is: 1 for the first, and always for a one-shot task.
    #[must_use]
    pub fn run_number(&self) -> u64 {
        self.number
    }

    /// How many runs of a fixed-rate task did not take place just before this one, by its
    /// [`MissedRuns`](crate::MissedRuns) policy.
    #[must_use]
    pub fn missed_runs(&self) -> u64 {
        self.missed
    }

    /// The moment for which this run was planned; `None` if an [`Instant`] cannot say it.
    #[must_use]
    pub fn planned(&self) -> Option<Instant> {
        self.planned
    }

    /// How long after that moment it started.
    #[must_use]
    pub fn lateness(&self) -> Duration {
        self.lateness
    }

    /// The token that is raised when this task is asked to stop. It is the task's, not the run's:
    /// once it is raised the task does not run again, whoever raised it. So a periodic task ends
    /// itself by raising its own token; its future is then cancelled, as
    /// [requested](crate::CancelReason::Requested), when the run is over. Only a task with a
    /// [time limit](crate::TaskBuilder::timeout) for each run has a new token for each run, and
    /// goes on, if its policy says so, after the limit has raised one.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ScheduledThreadPoolExecutor, current_task};
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let millisecond = Duration::from_millis(1);
    /// let countdown = executor.schedule_at_fixed_rate(millisecond, millisecond, || {
    ///     let task = current_task().expect("inside a task");
    ///     if task.run_number() == 3 {
    ///         task.token().cancel(); // the third run is the last
    ///     }
    /// })?;
    /// assert!(countdown.join().expect_err("it ended itself").is_cancelled());
    /// assert_eq!(executor.statistics().runs, 3);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[must_use]
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
