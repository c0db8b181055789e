//! One run of a task: which run of which task it is. What the running task can see of it is a
//! [`TaskContext`].
//!
//! While a task runs, its [`Run`] can be reached through a thread-local, for the length of the call
//! and no longer. `scoped-tls` stores a plain reference for a scope, so entering a run touches no
//! reference count. After a run inside a run, as by `DrainedTask::run`, the outer one is current
//! again, also after unwinding. Nothing is copied until user code asks for it.
//!
//! A run consists of facts. It knows neither hooks nor the code around it; both are called by
//! [`Hooks::invoke`](super::Hooks::invoke).

use std::{cell::Cell, rc::Rc, time::Duration};

use super::{
    Task, TaskContext, failure::FailedRun, observer::RunFacts, plan::Plan,
    worker_context::WorkerContext,
};
use crate::{
    CancellationToken, Failure, TaskId,
    id::Subject,
    statistics::{Ended, WorkerStats},
    sync::{Arc, scoped_thread_local},
    time::{Clock, Timestamp},
    trace,
};

scoped_thread_local!(static CURRENT: Run);

#[cfg_attr(any(shuttle, loom), derive(Clone))]
pub(crate) struct Run {
    pub(crate) worker: Rc<WorkerContext>,
    task: Arc<Task>,
    id: u64,
    planned: Cell<Timestamp>,
    started: Cell<Timestamp>,
    number: Cell<u64>,
    missed: Cell<u64>,
    /// How many of the missed runs the statistics know already.
    counted: Cell<u64>,
    /// How many runs in a row have failed, this one included; zero if this one has not.
    failures: Cell<u32>,
    /// 1 plus how many runs in a row had failed before this one.
    attempt: Cell<u32>,
    /// True if the run is beside the schedule.
    is_extra: Cell<bool>,
    /// True if one failure is enough to end the task, for the code around the body.
    ends_by_failure: Cell<bool>,
}

impl Run {
    pub(crate) fn new(
        worker: Rc<WorkerContext>,
        task: Arc<Task>,
        id: u64,
        planned: Timestamp,
        started: Timestamp,
    ) -> Self {
        let (number, missed, failures) = (Cell::new(1), Cell::new(0), Cell::new(0));
        let (planned, started, counted) = (Cell::new(planned), Cell::new(started), Cell::new(0));
        let (attempt, is_extra, ends_by_failure) =
            (Cell::new(1), Cell::new(false), Cell::new(false));
        Self {
            worker,
            task,
            id,
            planned,
            started,
            number,
            missed,
            counted,
            failures,
            attempt,
            is_extra,
            ends_by_failure,
        }
    }

    pub(crate) fn task(&self) -> &Arc<Task> {
        &self.task
    }

    /// Records which run of its task this is, before the closure is called. A task that runs once has no plan. What was missed
    /// is said of the runs of the plan: an extra one stands for no other.
    #[inline]
    pub(super) fn begin(&self, plan: Option<&Plan>, has_name: bool) {
        let name = if has_name { self.task.name() } else { None };
        self.stats().begin(self.id, name, self.started());
        let Some(plan) = plan else { return };
        self.number.set(plan.runs + 1);
        self.attempt.set(plan.failures.saturating_add(1));
        if !self.is_extra() {
            self.missed.set(plan.missed(self.planned(), self.started()));
            self.counted.set(plan.counted);
        }
    }

    /// Records for which moment the run was planned, if it was put off since.
    pub(crate) fn plan_for(&self, planned: Timestamp) {
        self.planned.set(planned);
    }

    pub(crate) fn is_extra(&self) -> bool {
        self.is_extra.get()
    }

    /// Records whether the run is beside the schedule.
    pub(crate) fn set_extra(&self, is_extra: bool) {
        self.is_extra.set(is_extra);
    }

    /// Records what the policy of the task is about this run.
    pub(super) fn note_policy(&self, plan: &Plan) {
        self.ends_by_failure.set(plan.ends_by_failure());
    }

    /// Records that the run starts only now, if it does: its gate had to be asked.
    pub(crate) fn starts_now(&self) {
        self.started.set(self.clock().read());
    }

    /// Returns what is known of the run when it is over. Its task was due at `due`.
    pub(crate) fn facts(&self, due: Timestamp, has_failed: bool) -> RunFacts {
        let (id, number, attempt) = (TaskId(self.id), self.number(), self.attempt.get());
        let (planned, started) = (self.planned(), self.started());
        RunFacts { id, number, attempt, has_failed, planned, due, started }
    }

    /// Calls `part`, which is not the body, as the thread's current run.
    pub(crate) fn scoped<R>(&self, part: impl FnOnce() -> R) -> R {
        CURRENT.set(self, part)
    }

    pub(super) fn add_missed(&self, runs: u64) {
        self.missed.set(self.missed.get().saturating_add(runs));
    }

    /// Calls `body` in the tracing span of this run, and as the thread's current run.
    #[inline(always)]
    pub(super) fn enter<R>(&self, body: impl FnOnce() -> R) -> R {
        let fields = || trace::SpanFields {
            id: self.id,
            name: self.task.name(),
            run: self.number.get(),
            lateness: self.lateness(),
            submitter: self.task.submitter(),
            is_periodic: self.task.is_periodic(),
        };
        let run_time = || self.clock().read().since(self.started());
        trace::in_span(fields, run_time, || CURRENT.set(self, body))
    }

    pub(crate) fn stats(&self) -> &WorkerStats {
        &self.worker.stats
    }

    /// Counts this run, and the end of its task if it was the last.
    #[inline]
    pub(super) fn count(&self, failed: bool, ended: Option<Ended>) {
        self.stats().count(failed, self.uncounted(), ended);
    }

    pub(super) fn keeps_limits(&self) -> bool {
        self.worker.keeps_limits
    }

    pub(super) fn subject(&self) -> Subject {
        let (id, name, run) = (Some(self.id), self.task.name(), Some(self.number.get()));
        Subject { id, name, run, attempt: None }
    }

    /// Records that this run has failed, and is the last of `in_a_row` that have.
    pub(super) fn note_failure(&self, in_a_row: u32) {
        self.failures.set(in_a_row);
    }

    /// Returns what is kept of this run, which has failed.
    pub(super) fn failure(&self, failure: &Failure) -> FailedRun {
        FailedRun::new(self.number.get(), self.failures.get(), failure)
    }

    pub(super) fn context(&self) -> TaskContext {
        TaskContext {
            task: Arc::clone(&self.task),
            stop: self.stop(),
            lease: self.lease(),
            id: TaskId(self.id),
            number: self.number.get(),
            attempt: self.attempt.get(),
            missed: self.missed.get(),
            planned: self.planned(),
            planned_wall: self.planned_wall(),
            lateness: self.lateness(),
        }
    }

    pub(crate) fn stop(&self) -> CancellationToken {
        let held = self.worker.held.borrow();
        held.as_ref().map_or(&self.worker.stop, |held| &held.token).clone()
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.worker.stop.is_cancelled()
    }

    /// Returns when the next run is due, by what was asked of the task meanwhile, if its plan says `next`; `None` if its end
    /// was asked for.
    pub(crate) fn next_due(&self, next: Timestamp) -> Option<Timestamp> {
        if self.is_stopped() { None } else { self.task.with(|parts| parts.next_due(next)) }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number.get()
    }

    /// Returns how many runs were missed before this one of which the statistics do not know.
    #[inline]
    pub(crate) fn uncounted(&self) -> u64 {
        self.missed.get().saturating_sub(self.counted.get())
    }

    fn lateness(&self) -> Duration {
        self.started().since(self.planned())
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn planned(&self) -> Timestamp {
        self.planned.get()
    }

    pub(crate) fn started(&self) -> Timestamp {
        self.started.get()
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.worker.clock
    }

    pub(crate) fn current() -> Option<CurrentRun> {
        Self::with_current(|run| CurrentRun {
            task: Arc::clone(&run.task),
            id: run.id,
            number: run.number.get(),
            started: run.started(),
            ends_by_failure: run.ends_by_failure.get(),
            stop: run.stop(),
        })
    }

    /// Shows the innermost run that the calling thread is in, if there is one.
    pub(crate) fn with_current<R>(look: impl FnOnce(&Self) -> R) -> Option<R> {
        CURRENT.is_set().then(|| CURRENT.with(look))
    }

    /// Returns `true` if the calling thread is in a run of the task.
    pub(crate) fn is_of(task: &Arc<Task>) -> bool {
        Self::with_current(|run| Arc::ptr_eq(&run.task, task)).unwrap_or(false)
    }
}

/// A run that is under way, as the guard of its time limit sees it. Unlike a [`Run`], it can be
/// sent to another thread.
#[derive(Clone)]
pub(crate) struct CurrentRun {
    pub(crate) task: Arc<Task>,
    pub(crate) id: u64,
    pub(crate) number: u64,
    pub(crate) started: Timestamp,
    /// True if one failure is enough to end the task.
    pub(crate) ends_by_failure: bool,
    pub(crate) stop: CancellationToken,
}

impl CurrentRun {
    pub(crate) fn subject(&self) -> Subject {
        let (id, name, run) = (Some(self.id), self.task.name(), Some(self.number));
        Subject { id, name, run, attempt: None }
    }
}

/// Returns the task that the calling thread is running, or `None` outside of any task. A body that takes
/// it as an argument is made by [`with_context`](crate::with_context).
///
/// Does not block, and does not panic. Costs a thread-local access and two reference counts.
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
#[doc(alias("task_local", "try_id"))]
#[must_use]
pub fn current_task() -> Option<TaskContext> {
    Run::with_current(Run::context)
}
