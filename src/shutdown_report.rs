//! A shutdown with a deadline: its limits ([`Grace`]), and its report of what became of the tasks.
//!
//! An executor records nothing until a caller asks for a report; from then on its [`EndLog`] records each task that
//! ends. The report reads from the workers' statistics which tasks are still running. A group has its own log, and its
//! list of members shows which tasks are running.

use std::{fmt, time::Duration};

use crate::{
    TaskId, TaskState,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::Task,
};

/// The two time limits of a graceful shutdown, on the executor's clock:
/// `Grace::patience(Duration::from_secs(10)).then(Duration::from_secs(2))`. For
/// [`Handle::shutdown_within`](crate::Handle::shutdown_within), which has an example, and
/// [`Group::shutdown_within`](crate::Group::shutdown_within).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[must_use = "it limits a shutdown that it is handed to"]
pub struct Grace {
    /// How long tasks may go on, as after a plain shutdown.
    pub patience: Duration,
    /// How long the tasks that still run after that have to stop, once their tokens are cancelled.
    pub then: Duration,
}

impl Grace {
    /// Lets tasks go on for this long. Without [`then`](Self::then) the shutdown is over after that: it cancels the
    /// tokens of the tasks that still run, and does not wait for them to stop.
    pub const fn patience(patience: Duration) -> Self {
        Self { patience, then: Duration::ZERO }
    }

    /// Gives the tasks that still run after that this much time to stop.
    pub const fn then(mut self, time: Duration) -> Self {
        self.then = time;
        self
    }
}

/// The id and the name of a task; from a [`ShutdownReport`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TaskSummary {
    id: TaskId,
    name: Option<Arc<str>>,
}

impl TaskSummary {
    pub(crate) fn new(id: u64, name: Option<Arc<str>>) -> Self {
        Self { id: TaskId(id), name }
    }

    /// Returns the id of the task, which is also its future's.
    pub fn id(&self) -> TaskId {
        self.id
    }

    /// Returns the name of the task, if it was given one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

/// The id, and the name in quotes if there is one: `2v-9qk0 "poller"`.
impl fmt::Display for TaskSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.id)?;
        self.name.as_ref().map_or(Ok(()), |name| write!(f, " {name:?}"))
    }
}

/// What became of the tasks of an executor, or of a group, in
/// [`Handle::shutdown_within`](crate::Handle::shutdown_within), which has an example, or
/// [`Group::shutdown_within`](crate::Group::shutdown_within).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Whether every task has ended and, of an executor, every worker.
    pub is_terminated: bool,
    /// The tasks that ran to their end meanwhile, with a result or a panic, in the order in which they ended.
    pub ran: Vec<TaskSummary>,
    /// The tasks that were cancelled meanwhile: those that the policies did not keep, and those that had not run in
    /// time.
    pub cancelled: Vec<TaskSummary>,
    /// The tasks that had been asked to stop, and still ran when time was up.
    pub still_running: Vec<TaskSummary>,
}

impl ShutdownReport {
    pub(crate) fn at_end(
        self,
        is_terminated: bool,
        running: impl Iterator<Item = (u64, Option<Arc<str>>)>,
    ) -> Self {
        let still_running = running.map(|(id, name)| TaskSummary::new(id, name)).collect();
        Self { is_terminated, still_running, ..self }
    }
}

/// One line for a log: how many tasks ran, how many were cancelled, and which tasks are still running.
///
/// `not terminated: 12 ran, 3 cancelled, 1 still running: 2v-9qk0 "upload"`
impl fmt::Display for ShutdownReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let not = if self.is_terminated { "" } else { "not " };
        let Self { ran, cancelled, still_running, .. } = self;
        write!(f, "{not}terminated: {} ran, {} cancelled", ran.len(), cancelled.len())?;
        if still_running.is_empty() {
            return Ok(());
        }
        write!(f, ", {} still running: ", still_running.len())?;
        for (place, task) in still_running.iter().enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            write!(f, "{comma}{task}")?;
        }
        Ok(())
    }
}

#[derive(Default)]
pub(crate) struct EndLog {
    is_open: AtomicBool,
    ended: Mutex<ShutdownReport>,
}

impl EndLog {
    /// Opens the log: every task that ends from now on is entered.
    pub(crate) fn open(&self) {
        // Ordering: what is admitted or ends after this call is ordered after it by the queue's locks.
        self.is_open.store(true, Ordering::Relaxed);
    }

    #[inline]
    fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn ended(&self, id: u64, task: &Task) {
        if self.is_open() {
            self.enter(id, task.name(), task.state() == TaskState::Cancelled);
        }
    }

    #[inline]
    pub(crate) fn cancelled(&self, id: u64, name: impl FnOnce() -> Option<Arc<str>>) {
        if self.is_open() {
            self.enter(id, name(), true);
        }
    }

    /// Adds a task to those that ran or to those that were cancelled, unless the log has it already.
    #[cold]
    fn enter(&self, id: u64, name: Option<Arc<str>>, is_cancelled: bool) {
        let summary = TaskSummary::new(id, name);
        let mut ended = self.ended.lock();
        let ShutdownReport { ran, cancelled, .. } = &mut *ended;
        if !ran.iter().chain(&*cancelled).any(|one| one.id == summary.id) {
            if is_cancelled { cancelled } else { ran }.push(summary);
        }
    }

    pub(crate) fn read(&self) -> ShutdownReport {
        self.ended.lock().clone()
    }
}
