//! Decoration: code around every run of a closure, for context, timing and tracing.
//!
//! A decorator is called once for each task, in the thread that submits it, and returns a wrapper,
//! which is then called around each run. So it can carry the submitter's context into the run. The
//! wrapper is kept beside the closure and does not replace it: queue, order, ticket and cancelling
//! do not depend on it, and it costs nothing in an executor without a decorator.
//!
//! A wrapper cannot forget to run the task: it has to return a [`Done`], and only [`TaskRun::run`]
//! makes one. The lifetime is fresh for each call, so the proof of another run does not fit.

use std::{fmt, marker::PhantomData, panic, time::Duration};

use super::{Core, Layer, Left, NotYet};
use crate::{
    task::call::Call,
    unwind::{contain, discard},
};

/// A task that is about to be submitted; the argument of a
/// [decorator](crate::Builder::decorate_task).
pub struct Submission<'a> {
    pub(crate) name: Option<&'a str>,
    pub(crate) is_periodic: bool,
    pub(crate) delay: Duration,
}

impl Submission<'_> {
    /// Returns the name of the task, if it was given one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name
    }

    /// Returns `true` if the task is periodic.
    #[must_use]
    pub fn is_periodic(&self) -> bool {
        self.is_periodic
    }

    /// Returns the delay until the task is due for the first time; `Duration::MAX` means never.
    #[must_use]
    pub fn delay(&self) -> Duration {
        self.delay
    }
}

impl fmt::Debug for Submission<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Submission")
            .field("name", &self.name)
            .field("is_periodic", &self.is_periodic)
            .field("delay", &self.delay)
            .finish()
    }
}

/// One run of a task, as the [wrapper](crate::Builder::decorate_task) around it sees it: the closure,
/// and the wrappers inside this one.
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

/// The wrapper of one task. While a run is under way its worker has it.
pub(crate) struct Wrapped(Option<Wrapper>);

impl Wrapped {
    pub(crate) fn new(wrapper: Wrapper) -> Self {
        Self(Some(wrapper))
    }
}

impl Layer for Wrapped {
    fn before_run(&mut self, _: &mut Core<'_>, call: &mut Call<'_>) -> Result<(), NotYet> {
        call.take_along(self.0.take());
        Ok(())
    }

    fn after_run(&mut self, call: &mut Call<'_>) {
        // A run that was left out has not taken it along.
        if let around @ Some(_) = call.take_around() {
            self.0 = around;
        }
    }

    fn on_end(&mut self, _: &Core<'_>, left: &mut Left) {
        if let Some(wrapper) = self.0.take() {
            left.values.push(Box::new(wrapper));
        }
    }
}

/// The code around the runs of one task.
pub(crate) struct Wrapper(Box<dyn FnMut(TaskRun<'_>) -> Done<'_> + Send>);

impl Wrapper {
    pub(crate) fn new(wrapper: impl FnMut(TaskRun<'_>) -> Done<'_> + Send + 'static) -> Self {
        Self(Box::new(wrapper))
    }

    /// Returns this wrapper around `inner`, if there is one.
    pub(crate) fn around(self, inner: Option<Self>) -> Self {
        let Some(mut inner) = inner else { return self };
        let mut outer = self;
        Self::new(move |next| {
            let mut next = Some(next);
            outer.call(|| {
                next.take().map(|next| inner.0(next)).unwrap_or_else(|| unreachable!("run once"))
            })
        })
    }

    /// Calls the body with the wrapper around it. User code: the caller holds no lock. If the wrapper
    /// panics, the body that it has not run, or the result that it leaves, is dropped only when the
    /// unwinding has stopped: a drop that panics as well must not abort the process.
    pub(in crate::task) fn call<R>(&mut self, body: impl FnOnce() -> R) -> R {
        let (mut body, mut result) = (Some(body), None);
        let mut rest = || {
            if let Some(body) = body.take() {
                result = Some(body());
            }
        };
        let called = contain(|| {
            let Done(_) = self.0(TaskRun(&mut rest));
        });
        match (called, result) {
            (Ok(()), Some(result)) => result,
            (Ok(()), None) => unreachable!("there is no `Done` without a run"),
            (Err(payload), result) => {
                discard(body);
                discard(result);
                panic::resume_unwind(payload)
            }
        }
    }
}
