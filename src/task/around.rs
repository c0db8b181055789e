//! Code around every run of a closure, for context, timing and tracing.
//!
//! A task has at most one [`Around`]. The worker takes the `Around` and the closure out of the node as a pair, and
//! returns them as a pair. So the next run has the `Around`, however the previous run ended.
//!
//! A *decorator* is called once for each task, on the submitter's thread, and returns a wrapper, which is then called
//! around each run. So the wrapper can carry the submitter's context into the run. A wrapper cannot forget to run the
//! task: it has to return a [`Done`], which only [`TaskRun::run`] makes. The lifetime of a `Done` ties the `Done` to
//! one call of the wrapper.

use std::{fmt, marker::PhantomData, panic::Location, time::Duration};

/// A task that is about to be submitted; the argument of a [decorator](crate::Builder::decorate_task).
#[derive(Debug)]
pub struct Submission<'a> {
    pub(crate) name: Option<&'a str>,
    pub(crate) is_periodic: bool,
    pub(crate) delay: Duration,
    pub(crate) scheduled_at: &'static Location<'static>,
}

impl Submission<'_> {
    /// Returns the name of the task, if it was given one.
    pub fn name(&self) -> Option<&str> {
        self.name
    }

    /// Returns `true` if the task is periodic.
    pub fn is_periodic(&self) -> bool {
        self.is_periodic
    }

    /// Returns the delay until the task is due for the first time; `Duration::MAX` means never.
    pub fn delay(&self) -> Duration {
        self.delay
    }

    /// Returns where the task is submitted: the call of [`schedule`](crate::Handle::schedule), for instance.
    pub fn scheduled_at(&self) -> &'static Location<'static> {
        self.scheduled_at
    }
}

/// One run of a task, as the [wrapper](crate::Builder::decorate_task) around it sees it: the closure, and the wrappers
/// inside this one.
#[must_use = "the task runs only if the wrapper runs it"]
pub struct TaskRun<'a>(&'a mut dyn FnMut());

impl<'a> TaskRun<'a> {
    /// Runs the task, and returns the proof that it was run.
    ///
    /// # Panics
    ///
    /// With the panic of the task, which unwinds through the wrapper.
    #[must_use]
    pub fn run(self) -> Done<'a> {
        (self.0)();
        Done(PhantomData)
    }
}

impl fmt::Debug for TaskRun<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskRun").finish_non_exhaustive()
    }
}

/// The proof that a task was run; from [`TaskRun::run`].
#[derive(Debug)]
pub struct Done<'a>(PhantomData<fn(&'a ()) -> &'a ()>);

type Surrounding = dyn FnMut(&mut dyn FnMut()) + Send;

/// The code around the runs of one task. This code takes the body as an argument, and either calls the body once or
/// panics before the call. This code may call user code, so the caller holds no lock.
pub(crate) struct Around(pub(super) Box<Surrounding>);

impl Around {
    pub(crate) fn new(around: impl FnMut(&mut dyn FnMut()) + Send + 'static) -> Self {
        Self(Box::new(around))
    }

    /// Makes the code that calls `wrapper` around each run.
    pub(crate) fn of_wrapper(
        mut wrapper: impl FnMut(TaskRun<'_>) -> Done<'_> + Send + 'static,
    ) -> Self {
        Self::new(move |body| {
            let Done(_) = wrapper(TaskRun(body));
        })
    }

    /// Puts this code around `inner`. Without an `inner`, returns this code.
    pub(crate) fn enclose(self, inner: Option<Self>) -> Self {
        let Some(mut inner) = inner else { return self };
        let mut outer = self;
        Self::new(move |body| outer.0(&mut || inner.0(body)))
    }
}
