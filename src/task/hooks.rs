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

use std::fmt;

use super::{
    TaskId,
    context::{Run, TaskContext},
};
use crate::{
    Panic, PanicLocation,
    sync::Arc,
    trace,
    unwind::{Callback, contain, contain_located, discard},
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
    /// Calls the body with the hooks around it. Foreign code, all of it.
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
        if let Err(panic) = &result {
            self.report(part, Some(run), panic);
        }
        result
    }

    /// Tells everyone who wants to know of a panic.
    pub(crate) fn report(&self, source: PanicSource, run: Option<&Run>, panic: &Panic) {
        trace::panicked(source.describe(), panic.message());
        if let Some(on_panic) = &self.on_panic {
            let task = run.map(Run::context);
            let report = PanicReport { source, task: task.as_ref(), panic };
            discard(contain(|| on_panic(&report)));
        }
    }

    /// Calls a hook that belongs to no task; a panic is reported and goes no further.
    pub(crate) fn call_aside(&self, source: PanicSource, call: impl FnOnce()) {
        if let Err(panic) = contain_located(call).map_err(Panic::new) {
            self.report(source, None, &panic);
            discard(panic);
        }
    }
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
        }
    }
}

/// What is known of a panic; what [`Builder::panic_handler`](crate::Builder::panic_handler) calls
/// the handler with. Its `Display` is a line for a log.
pub struct PanicReport<'a> {
    source: PanicSource,
    task: Option<&'a TaskContext>,
    panic: &'a Panic,
}

impl PanicReport<'_> {
    /// Whose code it was.
    #[must_use]
    pub fn source(&self) -> PanicSource {
        self.source
    }

    /// The number of the task; `None` if it was a hook that belongs to no task.
    pub fn task_id(&self) -> Option<TaskId> {
        self.task.map(TaskContext::id)
    }

    /// The name of the task, if it has one.
    pub fn task_name(&self) -> Option<Arc<str>> {
        self.task.and_then(TaskContext::name)
    }

    /// Which run of the task it was; 1 for the first.
    pub fn run_number(&self) -> Option<u64> {
        self.task.map(TaskContext::run_number)
    }

    /// The text of the panic.
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
        if let Some(task) = self.task {
            write!(f, " (task {}", task.id())?;
            if let Some(name) = task.name() {
                write!(f, " {name:?}")?;
            }
            write!(f, ", run {})", task.run_number())?;
        }
        write!(f, " panicked")?;
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
