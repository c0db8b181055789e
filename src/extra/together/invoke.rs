//! Running several closures, all of them or until one succeeds, and how that can fail.
//!
//! Both kinds of call submit the closures, and wait. A guard holds the submitted tasks from the first moment:
//! however the call ends, by a value, an error, or a panic of the iterator, the drop of the guard cancels the
//! tasks that have not ended, and asks the running ones to stop.

use std::{convert::Infallible, error::Error, fmt};

use super::{ExecutorCompletionService, TaskSet};
use crate::{
    Handle, Limit, LimitReached, RejectedExecutionError, ScheduledFuture, TaskError, TaskOutput,
};

/// Returns `true` if the token of the limit is raised.
fn is_interrupted(limit: Option<&Limit>) -> bool {
    limit.is_some_and(|limit| limit.reached() == LimitReached::Cancelled)
}

/// The body of [`Handle::invoke_all`] and [`Handle::invoke_all_within`].
#[track_caller]
pub(crate) fn all<T: TaskOutput + Send + 'static>(
    handle: &Handle,
    closures: impl IntoIterator<Item = impl FnOnce() -> T + Send + 'static>,
    limit: Option<Limit>,
) -> Result<Vec<ScheduledFuture<T>>, InvokeError> {
    let limit = limit.map(|limit| limit.from_now(handle.clock()));
    let mut submitted = TaskSet::new().cancel_and_signal_on_drop();
    for closure in closures {
        if is_interrupted(limit.as_ref()) {
            return Err(InvokeError::Interrupted);
        }
        submitted.push(handle.submit(closure)?);
    }
    match &limit {
        None => {
            let mut waits = submitted.iter().map(ScheduledFuture::wait);
            waits.try_for_each(|end| end.map_err(|_| InvokeError::WouldDeadlock))?;
        }
        Some(limit) if submitted.iter().all(|future| future.wait_within(limit.clone())) => {}
        limit if is_interrupted(limit.as_ref()) => return Err(InvokeError::Interrupted),
        Some(_) => _ = submitted.cancel_and_signal_all(),
    }
    Ok(submitted.into_iter().collect())
}

/// The body of [`Handle::invoke_any`] and [`Handle::invoke_any_within`].
#[track_caller]
pub(crate) fn any<T, E>(
    handle: &Handle,
    closures: impl IntoIterator<Item = impl FnOnce() -> Result<T, E> + Send + 'static>,
    limit: Option<Limit>,
) -> Result<T, InvokeError<E>>
where
    T: Send + 'static,
    E: Send + 'static,
    Result<T, E>: TaskOutput,
{
    let limit = limit.map(|limit| limit.from_now(handle.clock()));
    let mut first = FirstSuccess { running: ExecutorCompletionService::new(handle), failure: None };
    for closure in closures.into_iter().take_while(|_| !is_interrupted(limit.as_ref())) {
        first.running.submit(closure)?;
        while let Some(ended) = first.running.poll() {
            if let Some(value) = first.value_of(ended) {
                return Ok(value);
            }
        }
    }
    while let Some(ended) = first.wait(limit.as_ref())? {
        if let Some(value) = first.value_of(ended) {
            return Ok(value);
        }
    }
    Err(first.failure.take().unwrap_or(InvokeError::NoTasks))
}

/// An `invoke_any` that is under way. Its drop cancels what has not ended.
struct FirstSuccess<T: 'static, E: 'static> {
    running: ExecutorCompletionService<Result<T, E>>,
    /// The failure of the last task that failed.
    failure: Option<InvokeError<E>>,
}

type EndedFuture<T, E> = ScheduledFuture<Result<T, E>>;

impl<T, E> FirstSuccess<T, E> {
    /// Returns the next task that ends, or `None` if all have been taken.
    fn wait(&self, limit: Option<&Limit>) -> Result<Option<EndedFuture<T, E>>, InvokeError<E>> {
        let Some(limit) = limit else {
            return self.running.take().map_err(|_| InvokeError::WouldDeadlock);
        };
        match self.running.take_within(limit.clone()) {
            Err(LimitReached::TimedOut) => Err(InvokeError::TimedOut),
            Err(LimitReached::Cancelled) => Err(InvokeError::Interrupted),
            // Those that were not submitted might have succeeded.
            Ok(None) if is_interrupted(Some(limit)) => Err(InvokeError::Interrupted),
            Ok(ended) => Ok(ended),
        }
    }

    /// Returns the value of a task that has ended, or keeps its failure.
    fn value_of(&mut self, ended: EndedFuture<T, E>) -> Option<T> {
        self.failure = Some(match ended.join() {
            Ok(Ok(value)) => return Some(value),
            Ok(Err(failure)) => InvokeError::Failed(failure),
            Err(error) => InvokeError::Task(error),
        });
        None
    }
}

impl<T, E> Drop for FirstSuccess<T, E> {
    fn drop(&mut self) {
        self.running.cancel_and_signal_all();
    }
}

/// The error of [`invoke_all`](Handle::invoke_all) and [`invoke_any`](Handle::invoke_any), whose tasks fail with an `E`. The
/// tasks that were submitted have ended or are cancelled. Java: `ExecutionException`, `TimeoutException`,
/// `InterruptedException`, `RejectedExecutionException`, `IllegalArgumentException`.
#[derive(Debug)]
#[non_exhaustive]
pub enum InvokeError<E = Infallible> {
    /// The iterator yielded no closure, of which one was to succeed.
    NoTasks,
    /// Every task failed, of which one was to succeed; the last of them returned this.
    Failed(E),
    /// The same; the last of them panicked or was cancelled.
    Task(TaskError),
    /// The time of the call was up before a task succeeded.
    TimedOut,
    /// A task was not accepted.
    Rejected(RejectedExecutionError),
    /// The call would have waited for ever: no worker is left to run the tasks.
    WouldDeadlock,
    /// The token of the call was raised before.
    Interrupted,
}

impl<E: fmt::Display> fmt::Display for InvokeError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoTasks => "no task was passed; pass at least one",
            Self::Failed(failure) => {
                return write!(f, "every task failed; the last error: {failure}");
            }
            Self::Task(error) => return write!(f, "every task failed; the last error: {error}"),
            Self::TimedOut => {
                "no task succeeded before the timeout; those that had not ended were cancelled"
            }
            Self::Rejected(error) => return error.fmt(f),
            Self::WouldDeadlock => return TaskError::WouldDeadlock.fmt(f),
            Self::Interrupted => "the wait was interrupted by its token; the tasks were cancelled",
        })
    }
}

/// An error whatever the tasks fail with, as long as it can be displayed: even a `String`.
impl<E: fmt::Debug + fmt::Display> Error for InvokeError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        if let Self::Rejected(error) = self { error.source() } else { None }
    }
}

impl<E> From<RejectedExecutionError> for InvokeError<E> {
    fn from(error: RejectedExecutionError) -> Self {
        Self::Rejected(error)
    }
}
