//! What closures may return, where that is a question of the type alone: the result of a closure that runs once
//! ([`TaskOutput`]), and the nothing of one that runs at a fixed rate or with a fixed delay ([`UnitOutcome`]).
//!
//! Both traits are here for what the compiler says when they are missing.
//!
//! A closure that returns a future has done nothing yet, and the future's body would never run. Rust cannot say "not a
//! future", but the futures that the compiler makes of `async` blocks and functions have a property that hardly
//! any other value has: they are not [`Unpin`].

use super::outcome::{Outcome, Report, Step};
use crate::Failure;

/// What a closure that runs once may return: anything but the future of an `async` block, closure or function. Its body
/// would never run, because the executor polls no futures.
///
/// It is implemented for every type that is [`Unpin`], and nearly all are. Generic code that submits closures for its
/// callers needs this bound, or `Unpin`, for the type that they return. A result that is not `Unpin` has to be boxed.
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

/// What a closure that runs at a fixed rate or with a fixed delay returns: `()`, or nothing, if it never returns. A
/// closure that reports success and failure is for [`repeat`](crate::Handle::repeat), which takes every
/// [`Outcome`].
///
/// This trait is sealed: no other type implements it.
#[diagnostic::on_unimplemented(
    message = "a run at a fixed rate or with a fixed delay returns `()`, not `{Self}`",
    label = "the closure has to return `()`",
    note = "for runs that can fail, write `repeat(trigger::every(period), closure)` or `repeat(trigger::fixed_delay(delay), closure)`",
    note = "end the body with `;` if its value does not matter"
)]
pub trait UnitOutcome: Outcome + Report<Value = ()> {}

impl UnitOutcome for () {}

#[diagnostic::do_not_recommend]
impl UnitOutcome for Never {}

/// The type `!` of an expression that never returns, which stable Rust names only as what such a function returns.
type Never = <fn() -> ! as Function>::Returned;

/// See [`Never`].
pub trait Function {
    /// What the function returns.
    type Returned;
}

impl<R> Function for fn() -> R {
    type Returned = R;
}

#[diagnostic::do_not_recommend]
impl Outcome for Never {}

impl Report for Never {
    type Value = ();

    fn report(self) -> Result<Step<()>, Failure> {
        self
    }

    fn exhausted() -> Option<()> {
        Some(())
    }
}
