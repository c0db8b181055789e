//! One run of a task: the task, and the number, the planned moment and the start of the run. The running task sees the
//! run as a [`TaskContext`].
//!
//! While a task runs, a thread-local points to its [`Run`]. `scoped-tls` stores a plain reference for the length of a
//! call, so entering a run touches no reference count. With `DrainedTask::run`, a run can take place inside another.
//! When the inner run ends, even by unwinding, the outer run is current again.

use std::{cell::Cell, rc::Rc, time::SystemTime};

use super::{
    Task, TaskContext, extensions::RunExtensions, failure::FailedRun, observer::RunFacts,
    worker_context::WorkerContext,
};
use crate::{
    CancellationToken, Failure, TaskId,
    id::Subject,
    statistics::WorkerStats,
    sync::{Arc, scoped_thread_local},
    time::{Clock, Timestamp},
    trace,
};

scoped_thread_local!(static CURRENT: Run);

#[cfg_attr(any(shuttle, loom), derive(Clone))]
pub(crate) struct Run {
    pub(crate) worker: Rc<WorkerContext>,
    pub(crate) task: Arc<Task>,
    pub(crate) id: u64,
    /// The planned moment. At first, this is the deadline of the queue entry, at which a worker may only have to check
    /// the clock or ask user code again.
    pub(crate) planned: Cell<Timestamp>,
    /// When the worker took the task or, if user code was asked about the run, when that code let the run begin.
    pub(crate) started: Cell<Timestamp>,
    pub(super) number: Cell<u64>,
    pub(super) missed: Cell<u64>,
    /// How many of the missed runs the statistics have already counted.
    pub(super) counted: Cell<u64>,
    /// How many runs in a row have failed, this one included; zero if this run has not failed.
    pub(super) failures: Cell<u32>,
    /// 1 plus the number of runs in a row that failed before this one.
    pub(super) attempt: Cell<u32>,
    /// `true` for an extra run, beside the schedule.
    pub(crate) is_extra: Cell<bool>,
    /// `true` if one failure ends the task. Set only if there is code around the body.
    pub(super) ends_by_failure: Cell<bool>,
}

impl Run {
    pub(crate) fn new(
        worker: Rc<WorkerContext>,
        task: Arc<Task>,
        id: u64,
        planned: Timestamp,
        started: Timestamp,
    ) -> Self {
        Self {
            worker,
            task,
            id,
            planned: Cell::new(planned),
            started: Cell::new(started),
            number: Cell::new(1),
            missed: Cell::new(0),
            counted: Cell::new(0),
            failures: Cell::new(0),
            attempt: Cell::new(1),
            is_extra: Cell::new(false),
            ends_by_failure: Cell::new(false),
        }
    }

    /// Returns the facts about this run, which has ended. Its entry was due at `due`.
    pub(crate) fn facts(&self, due: Timestamp, has_failed: bool) -> RunFacts {
        let (id, number, attempt) = (TaskId(self.id), self.number(), self.attempt.get());
        let (planned, started) = (self.planned(), self.started());
        RunFacts { id, number, attempt, has_failed, planned, due, started }
    }

    /// Calls `part`, code other than the body, with this as the thread's current run.
    pub(crate) fn scoped<R>(&self, part: impl FnOnce() -> R) -> R {
        CURRENT.set(self, part)
    }

    /// Calls `body` in the tracing span of this run, and with this as the thread's current run.
    #[inline(always)]
    pub(super) fn enter<R>(&self, body: impl FnOnce() -> R) -> R {
        let fields = || trace::SpanFields {
            about: self.subject(),
            lateness: self.started().since(self.planned()),
            submitter: self.task.with(|parts| parts.extras_if_any()?.submitter.clone()),
            is_periodic: self.task.is_periodic(),
        };
        let run_time = || self.clock().read().since(self.started());
        trace::in_span(fields, run_time, || CURRENT.set(self, body))
    }

    pub(crate) fn stats(&self) -> &WorkerStats {
        &self.worker.stats
    }

    /// Returns `true` for a run by hand: it has no starting deadline, and features neither refuse it nor put it off.
    pub(crate) fn is_by_hand(&self) -> bool {
        !self.worker.keeps_limits
    }

    pub(super) fn subject(&self) -> Subject {
        let (id, name, run) = (Some(self.id), self.task.name(), Some(self.number.get()));
        Subject { id, name, run, attempt: None }
    }

    /// Returns the record of this failed run, for the task to keep.
    pub(super) fn failure(&self, failure: &Failure) -> FailedRun {
        FailedRun::new(self.number.get(), self.failures.get(), failure)
    }

    pub(super) fn context(&self) -> TaskContext {
        TaskContext {
            task: Arc::clone(&self.task),
            stop: self.stop(),
            extensions: self.worker.extensions.borrow().clone(),
            id: TaskId(self.id),
            number: self.number.get(),
            attempt: self.attempt.get(),
            missed: self.missed.get(),
            planned: self.planned(),
            planned_wall: self.planned_wall(),
            started: self.started(),
            ends_by_failure: self.ends_by_failure.get(),
        }
    }

    pub(crate) fn stop(&self) -> CancellationToken {
        let extensions = self.worker.extensions.borrow();
        extensions.lease.as_ref().map_or(&self.worker.stop, |held| &held.token).clone()
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.worker.stop.is_cancelled()
    }

    /// Returns when the next run is due: at `next`, as the plan says, unless other threads have noted changes. `None`
    /// if the task ends.
    pub(crate) fn next_due(&self, next: Timestamp) -> Option<Timestamp> {
        self.task.with(|parts| {
            let ends = self.is_stopped() || parts.stage.is_done() || parts.is_called_off();
            let due = parts.extensions().map_or(next, |extensions| extensions.next_due(next));
            (!ends).then_some(due)
        })
    }

    /// Notes the moment of the wall clock, if any, for which the run was planned.
    pub(crate) fn plan_on_wall(&self, moment: Option<SystemTime>) {
        self.worker.planned_wall.set(moment.map(|moment| (self.id, moment)));
    }

    pub(crate) fn planned_wall(&self) -> Option<SystemTime> {
        let (id, moment) = self.worker.planned_wall.get()?;
        (id == self.id).then_some(moment)
    }

    /// Makes the innermost run of the calling thread fail, whatever its body has returned.
    pub(crate) fn overrule(failure: Failure) {
        Self::with_current(|run| run.worker.overruled.set(Some(failure)));
    }

    pub(crate) fn number(&self) -> u64 {
        self.number.get()
    }

    /// Returns how many of the missed runs are not yet in the statistics.
    pub(crate) fn uncounted(&self) -> u64 {
        self.missed.get().saturating_sub(self.counted.get())
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

    /// Returns the context of the calling thread's innermost run, without the extensions, since the caller may keep the
    /// context after the run.
    pub(crate) fn watched() -> Option<TaskContext> {
        Self::with_current(|run| TaskContext {
            extensions: RunExtensions::default(),
            ..run.context()
        })
    }

    /// Calls `look` with the innermost run of the calling thread. Returns `None` if there is none.
    pub(crate) fn with_current<R>(look: impl FnOnce(&Self) -> R) -> Option<R> {
        CURRENT.is_set().then(|| CURRENT.with(look))
    }

    /// Returns `true` if the innermost run of the calling thread is a run of `task`.
    pub(crate) fn is_of(task: &Arc<Task>) -> bool {
        Self::with_current(|run| Arc::ptr_eq(&run.task, task)).unwrap_or(false)
    }
}

/// Returns the task that the calling thread is running, or `None` outside of any task.
/// [`with_context`](crate::with_context) passes it to a closure as an argument.
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
