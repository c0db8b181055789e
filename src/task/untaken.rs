//! An `Err` that no call can take any more: the result of a task that was cancelled while it ran, or whose future was
//! dropped.
//!
//! Stable Rust has no way to ask whether a type is a `Result`. So this module looks at the type's `type_name`, and then
//! at the `Debug` output of the value's `discriminant`, which shows whether the value is an `Err`. Neither output is
//! guaranteed. If either changed, an `Err` would be dropped without a report, and the tests, which run with each
//! toolchain, would fail. For a `Result<(), E>` with a common error type, the report has the error's text; for any
//! other result, the name of its type.

use std::{
    any::{Any, type_name},
    fmt::{Debug, Display},
    io,
    mem::discriminant,
};

use crate::{
    Failure, FailureKind,
    error::BoxedError,
    unwind::{contain, discard},
};

#[inline(always)]
pub(crate) fn is_result<T>() -> bool {
    type_name::<T>().starts_with("core::result::Result<")
}

/// Returns the failure to report for a result that no call has taken; `None` if it is not an `Err`.
#[inline(always)]
pub(super) fn failure_of<T: 'static>(result: &T) -> Option<Failure> {
    if is_result::<T>() { failure(&discriminant(result), result, type_name::<T>()) } else { None }
}

/// The part of [`failure_of`] that is compiled once, not once for each result type.
#[cold]
fn failure(variant: &dyn Debug, result: &dyn Any, name: &str) -> Option<Failure> {
    if format!("{variant:?}") != "Discriminant(1)" {
        return None;
    }
    let error = error::<io::Error>(result)
        .or_else(|| error::<BoxedError>(result))
        .or_else(|| error::<String>(result))
        .or_else(|| error::<&str>(result));
    // User code: an error prints itself.
    let text = error.and_then(|error| contain(|| error.to_string()).map_err(discard).ok());
    Some(Failure::of_nothing(
        FailureKind::Error,
        text.unwrap_or_else(|| format!("the `Err` of a `{name}`")),
    ))
}

/// Returns the error of a `Result<(), E>`; `None` for an `Ok` and for other types.
fn error<E: Display + 'static>(result: &dyn Any) -> Option<&dyn Display> {
    let error = result.downcast_ref::<Result<(), E>>()?.as_ref().err()?;
    Some(error)
}
