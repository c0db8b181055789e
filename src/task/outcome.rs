//! The types that closures may return. By its return value, a repeated closure reports that the run succeeded, that it
//! failed, that it was the last, or when the next run is due.
//!
//! [`Outcome`] is implemented for the types that a repeated closure may return, and [`Report`] turns their values into
//! [`RunReport`]s. The conversion of an error is user code, so it takes place where the closure is called: with no lock
//! held, and with panics caught.
//!
//! [`TaskOutput`] makes the compiler refuse a one-shot closure that returns a future, and say why. Calling such a
//! closure makes the future, but nothing would then run the future's body. Rust cannot say "not a future", but the
//! futures of `async` blocks and functions have a property that hardly any other value has: they are not [`Unpin`].

use std::{
    ops::ControlFlow,
    time::{Duration, Instant},
};

use crate::{Failure, error::BoxedError};

/// The report of a run of a [repeated](crate::Handle::repeat) closure: the value that it returns.
///
/// | the closure returns | meaning |
/// |---|---|
/// | `()` | the run has succeeded |
/// | `Ok(outcome)` | what the outcome inside says |
/// | `Err(error)` | the run has failed, as if it had panicked: the [policy](crate::FailurePolicy) says whether there is a next |
/// | `ControlFlow::Break(value)` | this was the last run, and the future returns the value |
/// | `ControlFlow::Continue(())` | the run has succeeded |
/// | `ControlFlow::Continue(delay)` | the run has succeeded, and the next one is due `delay` after its end; the trigger goes on from there |
/// | `ControlFlow::Continue(instant)` | the same, and the next one is due at this moment of the executor's [clock](crate::Handle::clock) |
///
/// `Result` and `ControlFlow` can be combined: a closure that returns `io::Result<ControlFlow<Page>>` may fail, and may
/// end the series with a page.
///
/// An error is anything that converts into a `Box<dyn Error + Send + Sync>`: the errors of most crates, a `String`, a
/// `&str`. For one that cannot be sent, like a `PoisonError` with its guard, write `map_err(|error|
/// error.to_string())`. A closure that uses `?` has to name its error type: `|| -> io::Result<()> { … }`.
///
/// A next run named for a past moment is due at once, ahead of all that is due after that moment: so a body that
/// computes its own moments makes up for those that it missed, in order.
///
/// This trait is sealed: no other type implements it.
///
/// ```
/// use std::{num::ParseIntError, ops::ControlFlow, time::Duration};
/// use punctual::{FailurePolicy, ScheduledThreadPoolExecutor, trigger::every};
///
/// let executor = ScheduledThreadPoolExecutor::new(1);
/// let mut lines = ["", "seven", "7"].into_iter();
/// let task = executor.task().on_failure(FailurePolicy::resume());
/// let number = task.repeat(
///     every(Duration::from_millis(1)),
///     move || -> Result<ControlFlow<u32>, ParseIntError> {
///         let Some(line) = lines.next().filter(|line| !line.is_empty()) else {
///             return Ok(ControlFlow::Continue(())); // nothing yet: the run has succeeded
///         };
///         Ok(ControlFlow::Break(line.parse()?)) // a line that is no number: the run has failed
///     },
/// )?;
/// assert_eq!(number.join()?, 7);
/// assert_eq!(number.last_failure().map(|failed| failed.run_number()), Some(2));
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "a run that repeats cannot report `{Self}`",
    label = "return (), Result<_, E> or ControlFlow<T>",
    note = "end the body with `;` if its value does not matter",
    note = "the error of a `Result` has to convert into `Box<dyn Error + Send + Sync>`"
)]
pub trait Outcome: Report {}

#[derive(Debug)]
pub enum NamedRun {
    After(Duration),
    At(Instant),
}

pub(super) type RunReport = Result<Next, Failure>;

/// What a run's return value says to do next.
#[derive(Debug)]
pub enum Next {
    Planned,
    /// This run has named the moment of the next run. Boxed, so that a report is returned in registers.
    Named(Box<NamedRun>),
    /// This was the last run, and it has returned the task's result.
    Nothing,
}

/// The conversion of an outcome. This trait cannot be named outside the crate.
pub trait Report {
    type Value: Send + 'static;

    /// Returns what to do next, or why the run failed. Sets `value` if the run says that it was the last. Calls user
    /// code, so the caller holds no lock.
    fn report(self, value: &mut Option<Self::Value>) -> RunReport;

    /// Returns the result of a series whose trigger has no next run; `None` if only a run can return a result.
    fn exhausted() -> Option<Self::Value>;
}

impl Outcome for () {}

impl Report for () {
    type Value = ();

    #[inline(always)]
    fn report(self, _: &mut Option<()>) -> RunReport {
        Ok(Next::Planned)
    }

    fn exhausted() -> Option<()> {
        Some(())
    }
}

#[diagnostic::do_not_recommend]
impl<O: Outcome, E: Into<BoxedError>> Outcome for Result<O, E> {}

impl<O: Outcome, E: Into<BoxedError>> Report for Result<O, E> {
    type Value = O::Value;

    fn report(self, value: &mut Option<O::Value>) -> RunReport {
        match self {
            Ok(outcome) => outcome.report(value),
            Err(error) => Err(Failure::of_error(error.into())),
        }
    }

    fn exhausted() -> Option<O::Value> {
        O::exhausted()
    }
}

#[diagnostic::do_not_recommend]
impl<T: Send + 'static, C: Onward> Outcome for ControlFlow<T, C> {}

impl<T: Send + 'static, C: Onward> Report for ControlFlow<T, C> {
    type Value = T;

    fn report(self, value: &mut Option<T>) -> RunReport {
        Ok(match self {
            Self::Break(last) => {
                *value = Some(last);
                Next::Nothing
            }
            Self::Continue(next) => next.next(),
        })
    }

    fn exhausted() -> Option<T> {
        None
    }
}

/// The value of a run that another run is to follow.
pub trait Onward {
    fn next(self) -> Next;
}

impl Onward for () {
    fn next(self) -> Next {
        Next::Planned
    }
}

impl Onward for Duration {
    fn next(self) -> Next {
        Next::Named(Box::new(NamedRun::After(self)))
    }
}

impl Onward for Instant {
    fn next(self) -> Next {
        Next::Named(Box::new(NamedRun::At(self)))
    }
}

/// The result of a closure that runs once: any type but the future of an `async` block, closure or function. The
/// future's body would never run, because the executor polls no futures.
///
/// Every type that is [`Unpin`] implements it, and nearly all are; a result that is not has to be boxed. Generic code
/// that submits closures for its callers needs this bound, or `Unpin`, for the type that they return.
///
/// ```
/// use punctual::{Handle, RejectedExecutionError, ScheduledFuture, TaskOutput};
///
/// fn submit_or_run<T: TaskOutput + Send + 'static>(
///     executor: &Handle,
///     closure: impl FnOnce() -> T + Send + 'static,
/// ) -> Result<ScheduledFuture<T>, RejectedExecutionError> {
///     executor.submit(closure).or_else(|refused| { /* … */ Err(refused) })
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "the closure returns a future, `{Self}`, that nothing would run",
    label = "the body of the future would never run",
    note = "block on the future inside the closure, or hand it to a runtime there: `move || runtime.spawn(future)`",
    note = "a future that is meant to be the result has to be boxed: `Box::pin(future)`"
)]
pub trait TaskOutput {}

#[diagnostic::do_not_recommend]
impl<T: Unpin> TaskOutput for T {}

/// The never type, `!`. Stable Rust can name it only as the return type of a function.
type Never = <fn() -> ! as Function>::Returned;

/// See [`Never`].
pub trait Function {
    type Returned;
}

impl<R> Function for fn() -> R {
    type Returned = R;
}

#[diagnostic::do_not_recommend]
impl Outcome for Never {}

impl Report for Never {
    type Value = ();

    fn report(self, _: &mut Option<()>) -> RunReport {
        self
    }

    fn exhausted() -> Option<()> {
        Some(())
    }
}
