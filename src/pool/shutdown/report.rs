//! The record of a shutdown: who has ended while it went on, and how.
//!
//! Nothing is recorded until somebody asks for a report; then each task that ends says so here,
//! by name. Who is still at work when the report is due stands on the statistics of the workers.

use crate::{
    TaskId, TaskState,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::Runnable,
};

/// Which task it was; from a [`ShutdownReport`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSummary {
    id: TaskId,
    name: Option<Arc<str>>,
}

impl TaskSummary {
    pub(in crate::pool) fn new(id: u64, name: Option<Arc<str>>) -> Self {
        Self { id: TaskId(id), name }
    }

    /// The number of the task, as its future has it.
    #[must_use]
    pub fn id(&self) -> TaskId {
        self.id
    }

    /// The name of the task, if it was given one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

/// What became of an executor's tasks while it was
/// [shut down with a deadline](crate::Handle::shutdown_within).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShutdownReport {
    pub(in crate::pool) is_terminated: bool,
    pub(in crate::pool) ran: Vec<TaskSummary>,
    pub(in crate::pool) cancelled: Vec<TaskSummary>,
    pub(in crate::pool) still_running: Vec<TaskSummary>,
}

impl ShutdownReport {
    /// Whether everything has ended, and no worker lives.
    #[must_use]
    pub fn is_terminated(&self) -> bool {
        self.is_terminated
    }

    /// The tasks that ran to their end meanwhile, with a result or a panic, in that order.
    #[must_use]
    pub fn ran(&self) -> &[TaskSummary] {
        &self.ran
    }

    /// The tasks that were cancelled meanwhile: those that the policies did not keep, and those
    /// that had not run in time.
    #[must_use]
    pub fn cancelled(&self) -> &[TaskSummary] {
        &self.cancelled
    }

    /// The tasks that had been asked to stop and had not, when time was up.
    #[must_use]
    pub fn still_running(&self) -> &[TaskSummary] {
        &self.still_running
    }
}

/// See the [module](self).
#[derive(Default)]
pub(in crate::pool) struct Record {
    is_open: AtomicBool,
    ended: Mutex<Ended>,
}

#[derive(Clone, Default)]
struct Ended {
    ran: Vec<TaskSummary>,
    cancelled: Vec<TaskSummary>,
}

impl Record {
    /// From now on everything is recorded.
    pub(in crate::pool) fn open(&self) {
        // Ordering: what is admitted or ends after this call is ordered after it by the queue's locks.
        self.is_open.store(true, Ordering::Relaxed);
    }

    #[inline]
    fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }

    /// A worker has done with a task.
    #[inline]
    pub(in crate::pool) fn ended(&self, id: u64, task: &dyn Runnable) {
        if self.is_open() {
            self.note(id, task);
        }
    }

    /// A task that runs has been ended by its time limit; one that has got a value for that case is
    /// noted when its body has returned.
    pub(in crate::pool) fn timed_out(&self, id: u64, task: &dyn Runnable) {
        if task.state() == TaskState::Cancelled {
            self.ended(id, task);
        }
    }

    /// Notes how a task has ended, unless that is noted already.
    #[cold]
    fn note(&self, id: u64, task: &dyn Runnable) {
        let is_cancelled = task.state() == TaskState::Cancelled;
        let summary = TaskSummary::new(id, task.name());
        let mut ended = self.ended.lock();
        let noted = ended.ran.iter().chain(&ended.cancelled).any(|one| one.id == summary.id);
        match (noted, is_cancelled) {
            (true, _) => {}
            (false, true) => ended.cancelled.push(summary),
            (false, false) => ended.ran.push(summary),
        }
    }

    /// A task has been cancelled.
    #[inline]
    pub(in crate::pool) fn cancelled(&self, id: u64, name: impl FnOnce() -> Option<Arc<str>>) {
        if self.is_open() {
            let summary = TaskSummary::new(id, name());
            let mut ended = self.ended.lock();
            if !ended.cancelled.contains(&summary) {
                ended.cancelled.push(summary);
            }
        }
    }

    /// What has been recorded.
    pub(in crate::pool) fn report(
        &self,
        is_terminated: bool,
        running: Vec<TaskSummary>,
    ) -> ShutdownReport {
        let Ended { ran, cancelled } = self.ended.lock().clone();
        ShutdownReport { is_terminated, ran, cancelled, still_running: running }
    }
}
