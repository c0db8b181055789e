//! How [`invoke_all`](crate::Handle::invoke_all) and [`invoke_any`](crate::Handle::invoke_any) can
//! fail. These errors can hold a task that was refused, so they stand beside the calls and not with
//! the plain errors of the crate.

use std::{error::Error, fmt};

use crate::{RejectedExecutionError, TaskError};

/// Why [`Handle::invoke_all`](crate::Handle::invoke_all) gave no futures. Whatever it had submitted
/// is cancelled. Answers to Java's `RejectedExecutionException` and `InterruptedException`.
#[derive(Debug)]
#[non_exhaustive]
pub enum InvokeError {
    /// A task was not accepted.
    Rejected(RejectedExecutionError),
    /// The call would have waited for ever: every worker waits.
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

/// Why [`Handle::invoke_any`](crate::Handle::invoke_any) gave no value. Whatever it had submitted
/// has ended or is cancelled. Answers to Java's `ExecutionException`, `TimeoutException`,
/// `InterruptedException`, `RejectedExecutionException` and `IllegalArgumentException`.
#[derive(Debug)]
#[non_exhaustive]
pub enum InvokeAnyError<E> {
    /// There was no closure to be run.
    NoTasks,
    /// Every task failed; the last of them returned this.
    Failed(E),
    /// Every task failed; the last of them panicked or was cancelled.
    Task(TaskError),
    /// The time was up before a task succeeded.
    TimedOut,
    /// A task was not accepted.
    Rejected(RejectedExecutionError),
    /// The call would have waited for ever: every worker waits.
    WouldDeadlock,
    /// The token of the call was raised before a task succeeded.
    Interrupted,
}

impl<E> InvokeAnyError<E> {
    /// What the last task returned, if that is why there is no value.
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
            Self::NoTasks => f.write_str("there is no task to choose from; pass at least one"),
            Self::Failed(failure) => write!(f, "every task failed, the last with: {failure}"),
            Self::Task(error) => write!(f, "every task failed, the last so: {error}"),
            Self::TimedOut => {
                f.write_str("no task succeeded in time; those that had not ended were cancelled")
            }
            Self::Rejected(error) => error.fmt(f),
            Self::WouldDeadlock => TaskError::WouldDeadlock.fmt(f),
            Self::Interrupted => f.write_str(INTERRUPTED),
        }
    }
}

/// An error whatever the tasks fail with, as long as it can be shown: a text as well.
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

const INTERRUPTED: &str = "the wait was called off by its token; the tasks were cancelled";
