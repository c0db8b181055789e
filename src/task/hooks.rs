//! Hooks: the user's code around a run, the one place where a closure is called, and the reports
//! of failures.
//!
//! ```text
//!   before ──▶ wrapper ──▶ closure ──▶ wrapper ──▶ after ──▶ the outcome is published
//!      │ panics                │ panics, or returns an `Err`
//!      └──▶ failure handler    └──▶ failure handler, then after
//! ```
//!
//! A worker hands a [`Run`] and its hooks to the task; the task takes its closure, a
//! [`Job`](super::Job), out of its state and hands it an [`Invocation`]; and [`Invocation::call`]
//! does everything that the picture shows. This file knows runs, and a run knows nothing of it.
//!
//! All of this happens before the outcome is published, so a thread that has waited for a task finds
//! that its hooks have returned. A hook that panics affects its own run only:
//!
//! * *before* panics: the closure does not run, *after* is not called, and the run has failed with
//!   that panic.
//! * *after* panics: the outcome stands, and the panic is reported.
//! * the failure handler panics: nothing more happens.
//!
//! Hooks are called around closures only: a task that was cancelled before it ran has none.
//!
//! # What else the failure handler is told
//!
//! A capture or a result may panic when the crate drops it: in a `cancel`, in a shutdown, on a
//! worker. There is no caller who could be given that panic, so [`Drops`] reports it to the handler.
//! And a periodic task may end although its user did not end it, because a run exceeded its time
//! limit or because the queue has no room for the next one. The user believes that the task is
//! alive, so the handler and one warning event say that it is not ([`Hooks::tell_ended`]).

use std::fmt;

use super::{
    decorate::Wrapper,
    run::{Run, Subject, TaskContext},
};
use crate::{
    Failure, PanicLocation, TaskId,
    sync::Arc,
    trace,
    unwind::{AlreadyTold, Callback, contain, contain_located, discard, discard_with},
};

type Before = dyn Fn(&TaskContext) + Send + Sync;
type After = dyn Fn(&TaskContext, Result<(), &Failure>) + Send + Sync;
type OnPanic = dyn Fn(&FailureReport<'_>) + Send + Sync;

/// The hooks of an executor that concern its tasks.
#[derive(Clone, Default)]
pub(crate) struct Hooks {
    pub(crate) before: Option<Callback<Before>>,
    pub(crate) after: Option<Callback<After>>,
    pub(crate) on_failure: Option<Callback<OnPanic>>,
}

impl Hooks {
    /// Calls the hook before a run. An error fails the run.
    #[inline]
    fn before(&self, run: &Run) -> Result<(), Failure> {
        self.before.as_ref().map_or(Ok(()), |before| self.call_before(before, run))
    }

    /// Calls the hook after a run, whose outcome stands whatever the hook does.
    #[inline]
    fn after<R>(&self, run: &Run, outcome: &Result<R, Failure>) {
        if let Some(after) = &self.after {
            self.call_after(after, run, outcome.as_ref().map(|_| ()));
        }
    }

    #[inline(never)]
    fn call_before(&self, before: &Callback<Before>, run: &Run) -> Result<(), Failure> {
        self.contain(FailureSource::BeforeExecute, run, Ok, || before(&run.context()))
    }

    #[inline(never)]
    fn call_after(&self, after: &Callback<After>, run: &Run, outcome: Result<(), &Failure>) {
        let call = || after(&run.context(), outcome);
        discard(self.contain(FailureSource::AfterExecute, run, Ok, call));
    }

    /// Calls one part of a run, and reports its failure: a panic, or what `judge` makes of its result.
    #[inline]
    pub(super) fn contain<R, T>(
        &self,
        part: FailureSource,
        run: &Run,
        judge: impl FnOnce(R) -> Result<T, Failure>,
        call: impl FnOnce() -> R,
    ) -> Result<T, Failure> {
        let result = contain_located(call).map_err(Failure::of_panic).and_then(judge);
        match &result {
            // A run whose time limit has ended the task has been reported as that.
            Err(failure) if !failure.is::<AlreadyTold>() => {
                self.report(part, &run.subject(), failure);
            }
            _ => {}
        }
        result
    }

    /// Reports a failure to the failure handler and to `tracing`.
    #[cold]
    fn report(&self, source: FailureSource, task: &Subject, failure: &Failure) {
        trace::failed(source.describe(), failure);
        self.tell(&FailureReport { source, task, failure });
    }

    fn tell(&self, report: &FailureReport<'_>) {
        if let Some(on_failure) = &self.on_failure {
            discard(contain(|| on_failure(report)));
        }
    }

    /// Reports that a periodic task has ended although its user did not end it.
    #[cold]
    pub(crate) fn tell_ended(&self, source: FailureSource, task: &Subject, why: &str) {
        trace::ended(task.id.unwrap_or_default(), task.name.as_deref(), why);
        let failure = Failure::of_text(why);
        self.tell(&FailureReport { source, task, failure: &failure });
        discard(failure);
    }

    /// Returns where panics in the drops of this task's values are reported.
    #[inline]
    pub(crate) fn drops(&self, id: u64) -> Drops<'_> {
        Drops { hooks: Some(self), id: Some(id) }
    }

    /// Calls a hook that belongs to no task. A panic of it is reported and goes no further.
    pub(crate) fn call_aside(&self, source: FailureSource, call: impl FnOnce()) {
        if let Err(panic) = contain_located(call).map_err(Failure::of_panic) {
            self.report(source, &Subject::default(), &panic);
            discard(panic);
        }
    }
}

/// One call of a task's closure: the run that it is for, and the user's code around it.
pub(crate) struct Invocation<'a> {
    pub(super) run: &'a Run,
    pub(super) hooks: &'a Hooks,
    pub(super) wrapper: Option<&'a mut Wrapper>,
    /// True if the run is beside the schedule; see [`control`](super::control).
    pub(super) is_extra: bool,
}

impl<'a> Invocation<'a> {
    /// Calls the closure and everything around it, in the order shown at the head of the module. All
    /// of it is user code: the caller holds no lock. `judge` says whether the run has failed by what
    /// the closure has returned.
    pub(super) fn call<R, T>(
        self,
        judge: impl FnOnce(R) -> Result<T, Failure>,
        closure: impl FnOnce() -> R,
    ) -> Result<T, Failure> {
        let Self { run, hooks, wrapper, .. } = self;
        let source = FailureSource::Task;
        run.enter(|| {
            if let Err(panic) = hooks.before(run) {
                discard(closure);
                return Err(panic);
            }
            let outcome = match wrapper {
                None => hooks.contain(source, run, judge, closure),
                Some(wrapper) => hooks.contain(source, run, judge, || wrapper.call(closure)),
            };
            hooks.after(run, &outcome);
            outcome
        })
    }

    /// Returns where panics in the drops of the task's values are reported.
    pub(super) fn drops(&self) -> Drops<'a> {
        self.hooks.drops(self.run.id())
    }
}

/// Where panics in the drops of a task's values are reported.
#[derive(Clone, Copy)]
pub(crate) struct Drops<'a> {
    hooks: Option<&'a Hooks>,
    id: Option<u64>,
}

impl<'a> Drops<'a> {
    /// For the models, whose values do not panic.
    #[cfg(all(test, loom))]
    pub(crate) const UNREPORTED: Self = Self { hooks: None, id: None };

    /// For tasks whose ids are not at hand.
    pub(crate) fn of_any(hooks: &'a Hooks) -> Self {
        Self { hooks: Some(hooks), id: None }
    }

    /// Drops a value. A panic in its drop is reported, and goes no further.
    #[inline]
    pub(crate) fn discard<T>(self, value: T) {
        discard_with(value, |panic| self.report(None, Failure::of_panic(panic)));
    }

    #[cold]
    pub(crate) fn report(self, name: Option<Arc<str>>, panic: Failure) {
        if let Some(hooks) = self.hooks {
            let task = Subject { id: self.id, name, run: None };
            hooks.report(FailureSource::Drop, &task, &panic);
        }
        discard(panic);
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks")
            .field("before", &self.before.is_some())
            .field("after", &self.after.is_some())
            .field("on_failure", &self.on_failure.is_some())
            .finish()
    }
}

/// Whose code failed; from [`FailureReport::source`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureSource {
    /// The task's own closure, or its wrapper: it panicked, or returned an `Err`.
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
    /// Nobody's code failed: a run of a periodic task exceeded its
    /// [time limit](crate::TaskBuilder::timeout), and that has ended the task.
    TimeLimit,
    /// Nobody's code failed: a periodic task lost its place in the queue, and that has ended it.
    /// Either the queue had no room for its next run, or another task
    /// [displaced it](crate::RejectedTask::discard_oldest).
    Displaced,
}

impl FailureSource {
    fn describe(self) -> &'static str {
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

    /// Returns `true` if somebody's code failed.
    fn is_failure(self) -> bool {
        !matches!(self, Self::TimeLimit | Self::Displaced)
    }
}

/// A failure, or the end of a periodic task that its user did not end; the argument of a
/// [failure handler](crate::Builder::failure_handler). Its `Display` is a line for a log.
pub struct FailureReport<'a> {
    source: FailureSource,
    task: &'a Subject,
    failure: &'a Failure,
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

    /// Returns the message of the panic or of the error, or why the task has ended.
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
            _ if !self.source.is_failure() => " was ended",
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
