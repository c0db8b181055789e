//! The reports of failures, and of periodic tasks that have ended although their users did not end them:
//! the argument of a failure handler, and the line on standard error if neither a handler nor a subscriber
//! is told.

use std::{
    fmt,
    io::{self, Write},
};

use crate::{Failure, FailureKind, PanicLocation, TaskId, id::Subject, sync::Arc};

/// Whose code failed; from [`FailureReport::source`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureSource {
    /// The task's own closure, or the code around it: it panicked, or returned an `Err`.
    Task,
    /// The hook before a run; the closure did not run.
    BeforeExecute,
    /// The hook after a run.
    AfterExecute,
    /// The hook that is called when the executor has terminated.
    Terminated,
    /// The hook at the start of a worker's thread.
    ThreadStart,
    /// The hook at the end of a worker's thread.
    ThreadStop,
    /// The trigger of a [repeated](crate::Handle::repeat) task, which has ended the task.
    Trigger,
    /// The [gate](crate::gate) of a task; the run was skipped.
    Gate,
    /// The [lease](crate::gate::Lease) of a run. If it failed to be watched, the run was skipped.
    Lease,
    /// The drop of a capture, a result or another value of a task.
    Drop,
    /// The callback for [slow runs](crate::Builder::on_slow_run).
    SlowRun,
    /// The callback for [starvation](crate::Builder::on_starvation).
    Starvation,
    /// No code failed: a run of a periodic task exceeded its [time limit](crate::TaskBuilder::timeout).
    /// With the default [policy](crate::FailurePolicy) that has ended the task, which the report's text
    /// says; with another the run has failed, and the policy decides.
    TimeLimit,
    /// No code failed: a periodic task lost its place in the queue, and that has ended it.
    /// Either the queue had no room for its next run, or another task
    /// [displaced it](crate::RejectedTask::discard_oldest), or its executor was shut down, had no worker left, and
    /// could start none.
    Displaced,
}

impl FailureSource {
    /// Returns the source of a run's failure.
    pub(super) fn of_run(kind: FailureKind) -> Self {
        match kind {
            FailureKind::Panic | FailureKind::Error => Self::Task,
            FailureKind::TimeLimit => Self::TimeLimit,
            FailureKind::Displaced => Self::Displaced,
        }
    }

    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Task => "a task",
            Self::BeforeExecute => "the hook before a task",
            Self::AfterExecute => "the hook after a task",
            Self::Terminated => "the hook at the end of the executor",
            Self::ThreadStart => "the hook at the start of a thread",
            Self::ThreadStop => "the hook at the end of a thread",
            Self::Trigger => "the trigger of a task",
            Self::Gate => "the gate of a task",
            Self::Lease => "the lease of a run",
            Self::SlowRun => "the callback for slow runs",
            Self::Starvation => "the callback for starvation",
            Self::Drop => "the drop of a task's value",
            Self::TimeLimit | Self::Displaced => "a periodic task",
        }
    }
}

/// A failure, or the end of a periodic task that its user did not end; the argument of a
/// [failure handler](crate::Builder::failure_handler). Its `Display` is a line for a log.
pub struct FailureReport<'a> {
    source: FailureSource,
    task: &'a Subject,
    failure: &'a Failure,
    /// The report is of the end of a task, and not of a failure.
    is_end: bool,
}

impl<'a> FailureReport<'a> {
    pub(super) fn new(source: FailureSource, task: &'a Subject, failure: &'a Failure) -> Self {
        Self { source, task, failure, is_end: false }
    }

    /// Returns the report of a periodic task that has ended, although no code failed.
    pub(super) fn of_end(source: FailureSource, task: &'a Subject, failure: &'a Failure) -> Self {
        Self { is_end: true, ..Self::new(source, task, failure) }
    }

    /// Says on standard error what has happened, and what follows, in one line.
    ///
    /// As the panic hook of `std`, this ignores that nothing can be written there; `eprintln` would panic.
    pub(super) fn print(&self, what_follows: &str) {
        let line = format!("punctual: {self}; {what_follows}");
        let _ = io::stderr().write_all((in_one_line(&line) + "\n").as_bytes());
    }
}

/// Returns the text with its control characters escaped: the message of an error may come from far away, and
/// is neither to begin a line of its own nor to speak to a terminal.
fn in_one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len() + 1);
    for letter in text.chars() {
        if letter.is_control() {
            line.extend(letter.escape_default());
        } else {
            line.push(letter);
        }
    }
    line
}

impl FailureReport<'_> {
    /// Returns whose code failed.
    #[must_use]
    pub fn source(&self) -> FailureSource {
        self.source
    }

    /// Returns the id of the task. `None` if the panic came from a hook that belongs to no task, or
    /// if the id is not known, as when many tasks are dropped at once.
    pub fn task_id(&self) -> Option<TaskId> {
        self.task.id.map(TaskId)
    }

    /// Returns the name of the task, if it has one.
    #[must_use]
    pub fn task_name(&self) -> Option<Arc<str>> {
        self.task.name.clone()
    }

    /// Returns which run of the task it was, 1 for the first. `None` outside of any run.
    #[must_use]
    pub fn run_number(&self) -> Option<u64> {
        self.task.run
    }

    /// Returns the message of the panic or of the error, or what happened if no code failed.
    #[must_use]
    pub fn message(&self) -> &str {
        self.failure.message()
    }

    /// Returns where the panic began. `None` if it was resumed there and began elsewhere, or if the
    /// program has replaced the panic hook that records locations.
    #[must_use]
    pub fn location(&self) -> Option<&PanicLocation> {
        self.failure.location()
    }

    /// Returns the failure itself.
    #[must_use]
    pub fn failure(&self) -> &Failure {
        self.failure
    }
}

impl fmt::Display for FailureReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.source.describe())?;
        let Subject { id, name, run } = self.task;
        let id = id.map(|id| format!("task {}", TaskId(id)));
        let name = name.as_ref().map(|name| format!("{name:?}"));
        let task: Vec<_> = id.into_iter().chain(name).collect();
        match (task.join(" "), run) {
            (task, Some(run)) => write!(f, " ({task}, run {run})")?,
            (task, None) if !task.is_empty() => write!(f, " ({task})")?,
            _ => {}
        }
        f.write_str(match self.failure.is_panic() {
            _ if self.is_end => " was ended",
            true => " panicked",
            false => " failed",
        })?;
        if let Some(location) = self.location() {
            write!(f, " at {location}")?;
        }
        write!(f, ": {}", self.message())
    }
}

impl fmt::Debug for FailureReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FailureReport")
            .field("source", &self.source)
            .field("task_id", &self.task_id())
            .field("task_name", &self.task_name())
            .field("run_number", &self.run_number())
            .field("message", &self.message())
            .field("location", &self.location())
            .finish()
    }
}
