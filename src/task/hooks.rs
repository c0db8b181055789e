//! Hooks: the user's code before and after every run, and what is told of a panic.
//!
//! ```text
//!   before ──▶ wrapper ──▶ closure ──▶ wrapper ──▶ after ──▶ the outcome is published
//!      │ panics                │ panics
//!      └──▶ panic handler      └──▶ panic handler, then after
//! ```
//!
//! All of it happens before the outcome can be seen, so whoever waits for a task finds that its
//! hooks have returned. A hook that panics harms nobody but its run:
//!
//! * *before* panics: the closure does not run, *after* is not called, and the run has failed with
//!   that panic.
//! * *after* panics: the outcome stands, the panic is reported.
//! * the panic handler panics: nothing more happens.
//!
//! Hooks are called around bodies only: a task that was cancelled before it ran has none.
//!
//! # What else the panic handler is told
//!
//! A capture or a result may panic when the crate drops it: in a `cancel`, in a shutdown, on a
//! worker. No caller can be given that panic, so [`Drops`] brings it to the handler. And a periodic
//! task may end without its user's doing, because a run exceeded its time limit or because the
//! queue has no place for it. The user believes it alive, so the handler and one warning event say
//! that it is not ([`Hooks::tell_ended`]).

use std::fmt;

use super::context::{Run, TaskContext};
use crate::{
    Panic, PanicLocation, TaskId,
    sync::Arc,
    trace,
    unwind::{AlreadyTold, Callback, contain, contain_located, discard, discard_with},
};

type Before = dyn Fn(&TaskContext) + Send + Sync;
type After = dyn Fn(&TaskContext, Result<(), &Panic>) + Send + Sync;
type OnPanic = dyn Fn(&PanicReport<'_>) + Send + Sync;

/// What an executor calls around the runs of its tasks.
#[derive(Clone, Default)]
pub(crate) struct Hooks {
    pub(crate) before: Option<Callback<Before>>,
    pub(crate) after: Option<Callback<After>>,
    pub(crate) on_panic: Option<Callback<OnPanic>>,
}

impl Hooks {
    /// Calls the body with the hooks around it. user code, all of it.
    pub(super) fn around<R>(&self, run: &Run, body: impl FnOnce() -> R) -> Result<R, Panic> {
        if let Some(before) = &self.before {
            if let Err(panic) = self.call(PanicSource::BeforeExecute, run, || {
                before(&run.context());
            }) {
                discard(body);
                return Err(panic);
            }
        }
        let result = self.call(PanicSource::Task, run, body);
        if let Some(after) = &self.after {
            let outcome = result.as_ref().map(|_| ());
            let told = self.call(PanicSource::AfterExecute, run, || after(&run.context(), outcome));
            discard(told);
        }
        result
    }

    /// Calls one part of a run, and reports its panic.
    fn call<R>(&self, part: PanicSource, run: &Run, call: impl FnOnce() -> R) -> Result<R, Panic> {
        let result = contain_located(call).map_err(Panic::new);
        match &result {
            Err(panic) if !panic.is::<AlreadyTold>() => self.report(part, &run.subject(), panic),
            _ => {}
        }
        result
    }

    /// Tells everyone who wants to know of a panic.
    #[cold]
    fn report(&self, source: PanicSource, task: &Subject, panic: &Panic) {
        trace::panicked(source.describe(), panic.message());
        self.tell(&PanicReport { source, task, panic });
    }

    fn tell(&self, report: &PanicReport<'_>) {
        if let Some(on_panic) = &self.on_panic {
            discard(contain(|| on_panic(report)));
        }
    }

    /// Says that a periodic task has ended although its user did not end it.
    #[cold]
    pub(crate) fn tell_ended(&self, source: PanicSource, task: &Subject, why: &str) {
        trace::ended(task.id.unwrap_or_default(), task.name.as_deref(), why);
        let panic = Panic::of_text(why);
        self.tell(&PanicReport { source, task, panic: &panic });
        discard(panic);
    }

    /// Where a panic in the drop of this task's values is reported.
    #[inline]
    pub(crate) fn drops(&self, id: u64) -> Drops<'_> {
        Drops { hooks: Some(self), id: Some(id) }
    }

    /// Calls a hook that belongs to no task; a panic is reported and goes no further.
    pub(crate) fn call_aside(&self, source: PanicSource, call: impl FnOnce()) {
        if let Err(panic) = contain_located(call).map_err(Panic::new) {
            self.report(source, &Subject::default(), &panic);
            discard(panic);
        }
    }
}

/// Where a panic is reported that comes out of the drop of a task's values.
#[derive(Clone, Copy)]
pub(crate) struct Drops<'a> {
    hooks: Option<&'a Hooks>,
    id: Option<u64>,
}

impl<'a> Drops<'a> {
    /// For the models, whose values do not panic.
    #[cfg(all(test, loom))]
    pub(crate) const UNREPORTED: Self = Self { hooks: None, id: None };

    /// For tasks whose numbers are not at hand.
    pub(crate) fn of_any(hooks: &'a Hooks) -> Self {
        Self { hooks: Some(hooks), id: None }
    }

    /// Drops a value; a panic in its drop is reported, and goes no further.
    #[inline]
    pub(crate) fn discard<T>(self, value: T) {
        discard_with(value, |panic| self.report(None, Panic::new(panic)));
    }

    #[cold]
    pub(crate) fn report(self, name: Option<Arc<str>>, panic: Panic) {
        if let Some(hooks) = self.hooks {
            let task = Subject { id: self.id, name, run: None };
            hooks.report(PanicSource::Drop, &task, &panic);
        }
        discard(panic);
    }
}

/// Which task, and which run of it, is spoken of.
#[derive(Debug, Default)]
pub(crate) struct Subject {
    pub(crate) id: Option<u64>,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) run: Option<u64>,
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks")
            .field("before", &self.before.is_some())
            .field("after", &self.after.is_some())
            .field("on_panic", &self.on_panic.is_some())
            .finish()
    }
}

/// Whose code panicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PanicSource {
    /// The task's own closure, or its wrapper.
    Task,
    /// The hook before it; the closure did not run.
    BeforeExecute,
    /// The hook after it.
    AfterExecute,
    /// The hook that is called at the end of the executor.
    Terminated,
    /// The hook at the start of a worker's thread.
    ThreadStart,
    /// The hook at the end of a worker's thread.
    ThreadStop,
    /// A capture, a result or another value of a task's, when the executor dropped it.
    Drop,
    /// Nobody's code panicked: a run of a periodic task exceeded its
    /// [time limit](crate::TaskBuilder::timeout), and that has ended the task.
    TimeLimit,
    /// Nobody's code panicked: a periodic task lost its place in the queue, and that has ended it.
    /// The queue had no place for its next run, or another task
    /// [displaced it](crate::RejectedTask::discard_oldest).
    Displaced,
}

impl PanicSource {
    fn describe(self) -> &'static str {
        match self {
            Self::Task => "a task",
            Self::BeforeExecute => "the hook before a task",
            Self::AfterExecute => "the hook after a task",
            Self::Terminated => "the hook at the end of the executor",
            Self::ThreadStart => "the hook at the start of a thread",
            Self::ThreadStop => "the hook at the end of a thread",
            Self::Drop => "the drop of a task's value",
            Self::TimeLimit | Self::Displaced => "a periodic task",
        }
    }

    /// Whether somebody's code panicked.
    fn is_panic(self) -> bool {
        !matches!(self, Self::TimeLimit | Self::Displaced)
    }
}

/// What is known of a panic, or of the end of a periodic task that its user did not end; what
/// [`Builder::panic_handler`](crate::Builder::panic_handler) calls the handler with. Its `Display`
/// is a line for a log.
pub struct PanicReport<'a> {
    source: PanicSource,
    task: &'a Subject,
    panic: &'a Panic,
}

impl PanicReport<'_> {
    /// Whose code it was.
    #[must_use]
    pub fn source(&self) -> PanicSource {
        self.source
    }

    /// The number of the task; `None` if it was a hook that belongs to no task, or if the number
    /// is not known, as where many tasks are dropped at once.
    pub fn task_id(&self) -> Option<TaskId> {
        self.task.id.map(TaskId)
    }

    /// The name of the task, if it has one.
    #[must_use]
    pub fn task_name(&self) -> Option<Arc<str>> {
        self.task.name.clone()
    }

    /// Which run of the task it was; 1 for the first. `None` outside of any run.
    #[must_use]
    pub fn run_number(&self) -> Option<u64> {
        self.task.run
    }

    /// The text of the panic, or why the task has ended.
    #[must_use]
    pub fn message(&self) -> &str {
        self.panic.message()
    }

    /// Where it panicked. `None` if the panic was resumed and not begun there, or if the program
    /// has replaced the panic hook that notes it.
    #[must_use]
    pub fn location(&self) -> Option<&PanicLocation> {
        self.panic.location()
    }

    /// The panic itself.
    #[must_use]
    pub fn panic(&self) -> &Panic {
        self.panic
    }
}

impl fmt::Display for PanicReport<'_> {
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
        f.write_str(if self.source.is_panic() { " panicked" } else { " was ended" })?;
        if let Some(location) = self.location() {
            write!(f, " at {location}")?;
        }
        write!(f, ": {}", self.message())
    }
}

impl fmt::Debug for PanicReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PanicReport")
            .field("source", &self.source)
            .field("task_id", &self.task_id())
            .field("task_name", &self.task_name())
            .field("run_number", &self.run_number())
            .field("message", &self.message())
            .field("location", &self.location())
            .finish()
    }
}
