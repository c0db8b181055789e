//! How [`invoke_all`](crate::Handle::invoke_all) and [`invoke_any`](crate::Handle::invoke_any) can
//! fail. These errors can hold a task that was refused, so they stand beside the calls and not with
//! the plain errors of the crate.

use std::{error::Error, fmt};

use crate::{RejectedExecutionError, TaskError};

/// Why [`Handle::invoke_all`](crate::Handle::invoke_all) returned no futures. The tasks that it had
/// submitted are cancelled. Java: `RejectedExecutionException`, `InterruptedException`.
#[derive(Debug)]
#[non_exhaustive]
pub enum InvokeError {
    /// A task was not accepted.
    Rejected(RejectedExecutionError),
    /// The call would have waited for ever: no worker is left to run the tasks.
    WouldDeadlock,
    /// The token of the call was raised before all tasks had ended.
    Interrupted,
}

impl fmt::Display for InvokeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected(error) => error.fmt(f),
            Self::WouldDeadlock => TaskError::WouldDeadlock.fmt(f),
            Self::Interrupted => f.write_str(INTERRUPTED),
        }
    }
}

impl Error for InvokeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Rejected(error) => error.source(),
            _ => None,
        }
    }
}

impl From<RejectedExecutionError> for InvokeError {
    fn from(error: RejectedExecutionError) -> Self {
        Self::Rejected(error)
    }
}

/// Why [`Handle::invoke_any`](crate::Handle::invoke_any) returned no value. The tasks that it had
/// submitted have ended or are cancelled. Java: `ExecutionException`, `TimeoutException`,
/// `InterruptedException`, `RejectedExecutionException`, `IllegalArgumentException`.
#[derive(Debug)]
#[non_exhaustive]
pub enum InvokeAnyError<E> {
    /// The iterator yielded no closure.
    NoTasks,
    /// Every task failed; the last of them returned this.
    Failed(E),
    /// Every task failed; the last of them panicked or was cancelled.
    Task(TaskError),
    /// The timeout of the call expired before a task succeeded.
    TimedOut,
    /// A task was not accepted.
    Rejected(RejectedExecutionError),
    /// The call would have waited for ever: no worker is left to run the tasks.
    WouldDeadlock,
    /// The token of the call was raised before a task succeeded.
    Interrupted,
}

impl<E> InvokeAnyError<E> {
    /// Returns the error that the last task returned, if every task failed and the last one did so by
    /// returning it.
    #[must_use]
    pub fn into_failure(self) -> Option<E> {
        match self {
            Self::Failed(failure) => Some(failure),
            _ => None,
        }
    }
}

impl<E: fmt::Display> fmt::Display for InvokeAnyError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTasks => f.write_str("no task was passed; pass at least one"),
            Self::Failed(failure) => write!(f, "every task failed; the last error: {failure}"),
            Self::Task(error) => write!(f, "every task failed; the last error: {error}"),
            Self::TimedOut => f.write_str(
                "no task succeeded before the timeout; those that had not ended were cancelled",
            ),
            Self::Rejected(error) => error.fmt(f),
            Self::WouldDeadlock => TaskError::WouldDeadlock.fmt(f),
            Self::Interrupted => f.write_str(INTERRUPTED),
        }
    }
}

/// An error whatever the tasks fail with, as long as it can be displayed: even a `String`.
impl<E: fmt::Debug + fmt::Display> Error for InvokeAnyError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Rejected(error) => error.source(),
            _ => None,
        }
    }
}

impl<E> From<RejectedExecutionError> for InvokeAnyError<E> {
    fn from(error: RejectedExecutionError) -> Self {
        Self::Rejected(error)
    }
}

const INTERRUPTED: &str = "the wait was interrupted by its token; the tasks were cancelled";
