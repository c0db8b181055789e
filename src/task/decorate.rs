//! Decoration: code around every run of a closure, for context, timing, tracing.
//!
//! A decorator is asked once for each task, in the thread that submits it, and gives a wrapper,
//! which is then called around each run. So what the submitter has around it can be brought into
//! the run. The wrapper stands beside the closure, not in its place: queue, order, ticket and
//! cancelling know nothing of it, and a task of an executor without a decorator has none of it.
//!
//! A wrapper cannot forget to run the task: it has to give back a [`Done`], and the only way to
//! one is [`TaskRun::run`]. The lifetime is fresh for each call, so no other run's will do.

use std::{fmt, marker::PhantomData, panic, time::Duration};

use crate::unwind::{contain, discard};

/// What is about to be submitted; what [`Builder::decorate_task`](crate::Builder::decorate_task)
/// calls the decorator with.
pub struct Submission<'a> {
    pub(crate) name: Option<&'a str>,
    pub(crate) is_periodic: bool,
    pub(crate) delay: Duration,
}

impl Submission<'_> {
    /// The name of the task, if it was given one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name
    }

    /// Whether it is a periodic task.
    #[must_use]
    pub fn is_periodic(&self) -> bool {
        self.is_periodic
    }

    /// How long until it is due for the first time; `Duration::MAX` for never.
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

/// One run of a task, as the wrapper around it sees it: the closure, and what other wrappers there
/// are inside. See
/// [`Builder::decorate_task`](crate::Builder::decorate_task).
#[must_use = "the task runs only if the wrapper runs it"]
pub struct TaskRun<'a>(&'a mut dyn FnMut());

impl<'a> TaskRun<'a> {
    /// Runs the task. A panic of the task goes through the wrapper.
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

/// The proof that the task was run; from [`TaskRun::run`].
#[derive(Debug)]
pub struct Done<'a>(PhantomData<fn(&'a ()) -> &'a ()>);

/// The code around the runs of one task.
pub(crate) struct Wrapper(Box<dyn FnMut(TaskRun<'_>) -> Done<'_> + Send>);

impl Wrapper {
    pub(crate) fn new(wrapper: impl FnMut(TaskRun<'_>) -> Done<'_> + Send + 'static) -> Self {
        Self(Box::new(wrapper))
    }

    /// This one around another, if there is another.
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

    /// Calls the body with the wrapper around it. user code. If the wrapper panics, the body it
    /// did not run or the result it leaves behind is dropped when the unwinding has stopped: a
    /// drop that panics as well must not abort the process.
    pub(super) fn call<R>(&mut self, body: impl FnOnce() -> R) -> R {
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
