//! The report of a failure, or of the unexpected end of a periodic task: the argument of a failure handler. If neither
//! a handler nor a subscriber hears of what happened, [`hooks`](super::hooks) may write the report to standard error.

use std::{
    fmt,
    io::{self, Write},
    time::Duration,
};

use crate::{Attempt, Failure, FailureKind, PanicLocation, TaskId, id::Subject, sync::Arc};

/// Whose code failed; from [`FailureReport::source`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureSource {
    /// The task's own closure or the code around it, which panicked or returned an `Err`.
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
    /// The trigger of a [repeated](crate::Handle::repeat) task; the panic has ended the task.
    Trigger,
    /// The [gate](crate::gate) of a task; the run was skipped.
    Gate,
    /// The [lease](crate::gate::Lease) of a run. If its `watch` panicked, the run was skipped.
    Lease,
    /// The drop of a capture, a result or another value of a task.
    Drop,
    /// The callback for [slow runs](crate::Builder::on_slow_run).
    SlowRun,
    /// An [observer](crate::Observer) that was called because a task was taken or a run has ended.
    Observer,
    /// The callback for [starvation](crate::Builder::on_starvation).
    Starvation,
    /// No code failed: a run of a periodic task exceeded its [time limit](crate::TaskBuilder::timeout). If the
    /// [policy](crate::FailurePolicy) stops the task at the first failure, the task has
    /// [ended](FailureReport::is_final). If not, the run has failed, and the policy decides what follows.
    TimeLimit,
    /// No code failed: a periodic task has ended, because another task [displaced
    /// it](crate::RejectedTask::discard_oldest), or because, after a shutdown, its executor had no worker left and
    /// could start none.
    Displaced,
}

impl FailureSource {
    #[cold]
    pub(super) fn of_run(failure: &Failure) -> Self {
        match failure.kind() {
            FailureKind::Panic | FailureKind::Error => Self::Task,
            FailureKind::TimeLimit => Self::TimeLimit,
            FailureKind::Displaced => Self::Displaced,
        }
    }

    /// Returns a phrase for what failed. In the phrase, the report replaces "a task" with the task's name and id.
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Task | Self::TimeLimit | Self::Displaced => "a task",
            Self::BeforeExecute => "the hook before a task",
            Self::AfterExecute => "the hook after a task",
            Self::Terminated => "the hook at the end of the executor",
            Self::ThreadStart => "the hook at the start of a thread",
            Self::ThreadStop => "the hook at the end of a thread",
            Self::Trigger => "the trigger of a task",
            Self::Gate => "the gate of a task",
            Self::Lease => "the lease of a task",
            Self::SlowRun => "the callback for slow runs",
            Self::Observer => "an observer",
            Self::Starvation => "the callback for starvation",
            Self::Drop => "the drop of a value of a task",
        }
    }
}

/// A failure, or the unexpected end of a periodic task; the argument of a [failure
/// handler](crate::Builder::failure_handler). Its `Display` is a line for a log, in one form for all: `task "mirror"
/// (2v-9qk0), attempt 2 of 5: exceeded its time limit of 300ms; again in 100ms`.
///
/// ```
/// use std::{sync::mpsc, time::Duration};
/// use punctual::{Backoff, FailureReport, ManualClock, ScheduledThreadPoolExecutor};
///
/// let (tell, told) = mpsc::channel();
/// let clock = ManualClock::new();
/// let executor = ScheduledThreadPoolExecutor::builder()
///     .clock(clock.clone())
///     .failure_handler(move |report: &FailureReport<'_>| {
///         let attempt = report.attempt().map(|attempt| attempt.to_string());
///         tell.send((attempt, report.again_in(), report.is_final())).ok();
///     })
///     .build()?;
/// let second = Duration::from_secs(1);
/// let backoff = Backoff::constant(second).max_attempts(2);
/// let page = executor.retry(backoff, || Err::<(), _>("no connection"))?;
/// clock.run_for(second);
/// assert!(page.join().is_err());
/// assert_eq!(told.recv()?, (Some("1 of 2".to_owned()), Some(second), false));
/// assert_eq!(told.recv()?, (Some("2 of 2".to_owned()), None, true));
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[derive(Debug)]
pub struct FailureReport<'a> {
    pub(super) source: FailureSource,
    pub(super) task: &'a Subject,
    pub(super) failure: &'a Failure,
    /// How long after the end of the failed run the next run is due; `Duration::MAX` if the next run has no planned
    /// moment. `None` if no run is to follow, or if no run failed.
    pub(super) again: Option<Duration>,
}

/// Returns the text with its control characters escaped. The message of an error may come from outside the program, and
/// must neither begin a new line nor control a terminal.
fn in_one_line(text: &str) -> String {
    let escaped = |letter: char| match letter.is_control() {
        true => letter.escape_default().to_string(),
        false => letter.to_string(),
    };
    text.chars().map(escaped).collect()
}

impl FailureReport<'_> {
    /// Writes the report and `what_follows` to standard error. Ignores a failed write, as the panic hook of `std` does;
    /// `eprintln` would panic.
    pub(super) fn print(&self, what_follows: &str) {
        let line = format!("punctual: {self}; {what_follows}");
        let _ = io::stderr().write_all((in_one_line(&line) + "\n").as_bytes());
    }

    /// Returns whose code failed.
    pub fn source(&self) -> FailureSource {
        self.source
    }

    /// Returns the id of the task. `None` if the panic came from a hook that belongs to no task, or if the id is not
    /// known, as when many tasks are dropped at once.
    pub fn task_id(&self) -> Option<TaskId> {
        self.task.id.map(TaskId)
    }

    /// Returns the name of the task, if it has one.
    pub fn task_name(&self) -> Option<Arc<str>> {
        self.task.name.clone()
    }

    /// Returns which run of the task it was, 1 for the first. `None` outside of any run.
    pub fn run_number(&self) -> Option<u64> {
        self.task.run
    }

    /// Returns which attempt it was, and of how many, if failed runs are tried again, by
    /// [`Handle::retry`](crate::Handle::retry) or [`Trigger::retry`](crate::Trigger::retry). `None` for all other
    /// tasks, for a run [beside the schedule](crate::TaskHandle::run_now), and if it was no run that failed.
    pub fn attempt(&self) -> Option<Attempt> {
        self.task.attempt
    }

    /// Returns how long after the end of the failed run the next one is due; a shutdown may still end the task first.
    /// `None` if no run is to follow, if no moment is planned for it, because the task is paused or runs on demand, and
    /// if no run failed.
    pub fn again_in(&self) -> Option<Duration> {
        self.again.filter(|span| *span < Duration::MAX)
    }

    /// Returns `true` if the task has failed or ended with this: no run of it is to follow. Also `false` for what has
    /// no effect on the outcome of a task, such as the panic of a [hook after a run](FailureSource::AfterExecute), a
    /// [gate](FailureSource::Gate) or a [drop](FailureSource::Drop).
    pub fn is_final(&self) -> bool {
        use FailureSource::{BeforeExecute, Displaced, Task, TimeLimit, Trigger};
        self.again.is_none()
            && matches!(self.source, Task | BeforeExecute | Trigger | TimeLimit | Displaced)
    }

    /// Returns the message of the panic or of the error, or what happened if no code failed.
    pub fn message(&self) -> &str {
        self.failure.message()
    }

    /// Returns where the panic began. `None` if it began elsewhere and was only resumed there, or if the program has
    /// replaced the panic hook that records locations.
    pub fn location(&self) -> Option<&PanicLocation> {
        self.failure.location()
    }

    /// Returns the failure itself.
    pub fn failure(&self) -> &Failure {
        self.failure
    }
}

impl fmt::Display for FailureReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Subject { run, attempt, .. } = self.task;
        let what = self.source.describe();
        match what.strip_suffix("a task") {
            Some(before) => write!(f, "{before}{}", self.task)?,
            None => f.write_str(what)?,
        }
        let is_attempt = |run: u64| attempt.is_some_and(|it| u64::from(it.number) == run);
        if let Some(run) = run.filter(|run| !is_attempt(*run)) {
            write!(f, ", run {run}")?;
        }
        if let Some(attempt) = attempt {
            write!(f, ", attempt {attempt}")?;
        }
        match self.location() {
            Some(location) => write!(f, ": panicked at {location}: {}", self.message())?,
            None => write!(f, ": {}", self.failure)?,
        }
        match self.again_in() {
            None => Ok(()),
            Some(Duration::ZERO) => f.write_str("; again at once"),
            Some(span) => write!(f, "; again in {span:?}"),
        }
    }
}
