//! Running several closures, all of them or until one succeeds, and how that can fail.
//!
//! Both kinds of call submit the closures, and wait. A guard holds the submitted tasks from the first moment:
//! however the call ends, by a value, an error, or a panic of the iterator, the drop of the guard cancels the
//! tasks that have not ended, and asks the running ones to stop.

use std::{error::Error, fmt, time::Duration};

use super::{ExecutorCompletionService, TaskSet};
use crate::{
    Handle, Limit, LimitReached, RejectedExecutionError, ScheduledFuture, TaskError, TaskOutput,
    task_builder, unwind::discard,
};

impl Handle {
    /// Submits the closures, blocks until all have ended, and returns their futures in the order of the
    /// closures. Each future is done. Java: `invokeAll`.
    ///
    /// On a manual clock [another thread has to move it](crate::ManualClock#when-it-blocks).
    ///
    /// ```
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(2);
    /// let words = ["no", "unsafe", "code"];
    /// let lengths = executor.invoke_all(words.map(|word| move || word.len()))?;
    /// let lengths: Result<Vec<_>, _> = lengths.into_iter().map(|future| future.join()).collect();
    /// assert_eq!(lengths?, [2, 6, 4]);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// * [`InvokeError::Rejected`] as soon as one closure is not accepted.
    /// * [`InvokeError::WouldDeadlock`] where [`ScheduledFuture::wait`] would return it.
    ///
    /// In both cases, and if the iterator panics, the tasks that were submitted are
    /// [cancelled and signalled](crate::TaskHandle::cancel_and_signal).
    #[doc(alias = "join_all")]
    #[track_caller]
    pub fn invoke_all<T: TaskOutput + Send + 'static>(
        &self,
        closures: impl IntoIterator<Item = impl FnOnce() -> T + Send + 'static>,
    ) -> Result<Vec<ScheduledFuture<T>>, InvokeError> {
        let mut submitted = TaskSet::new().cancel_and_signal_on_drop();
        for closure in closures {
            submitted.push(self.submit(closure)?);
        }
        for future in submitted.iter() {
            future.wait().map_err(|_| InvokeError::WouldDeadlock)?;
        }
        Ok(submitted.into_iter().collect())
    }

    /// Runs the closures as [`invoke_all`](Self::invoke_all) does, but blocks no longer than until
    /// `limit` is reached, which counts from the call. When its time is up, the tasks that have not ended are
    /// [cancelled and signalled](crate::TaskHandle::cancel_and_signal), and all futures are returned. When
    /// its token is raised, no more closures are submitted, and those that were are cancelled and
    /// signalled too. Java: `invokeAll(tasks, timeout, unit)`, and in a thread that may be interrupted.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ScheduledThreadPoolExecutor, with_context};
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let nap = with_context(|run| run.token().wait());
    /// let naps = executor.invoke_all_within([nap], Duration::from_millis(5))?;
    /// assert!(naps[0].is_cancelled());
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvokeError::Interrupted`] if the token is raised, before the call or during it, and not all have
    /// ended. Otherwise as [`invoke_all`](Self::invoke_all), but never [`InvokeError::WouldDeadlock`].
    #[track_caller]
    pub fn invoke_all_within<T: TaskOutput + Send + 'static>(
        &self,
        closures: impl IntoIterator<Item = impl FnOnce() -> T + Send + 'static>,
        limit: impl Into<Limit>,
    ) -> Result<Vec<ScheduledFuture<T>>, InvokeError> {
        let limit = limit.into();
        let deadline = limit.deadline(self.pool().clock());
        let mut submitted = TaskSet::new().cancel_and_signal_on_drop();
        for closure in closures {
            if limit.is_cancelled() {
                return Err(InvokeError::Interrupted);
            }
            submitted.push(self.submit(closure)?);
        }
        if !submitted.iter().all(|future| future.handle.ends_within(&limit, deadline)) {
            match limit.reached() {
                LimitReached::Cancelled => return Err(InvokeError::Interrupted),
                LimitReached::TimedOut => submitted.cancel_and_signal_all(),
            };
        }
        Ok(submitted.into_iter().collect())
    }

    /// Submits the closures, blocks until the first returns `Ok`, and returns its value. The other tasks
    /// are [cancelled and signalled](crate::TaskHandle::cancel_and_signal), and closures that were not
    /// yet submitted are not run. Java: `invokeAny`.
    ///
    /// ```
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(2);
    /// let texts = ["seven", "7", "VII"];
    /// let number = executor.invoke_any(texts.map(|text| move || text.parse::<u32>()))?;
    /// assert_eq!(number, 7);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// * If all tasks fail, the failure of the one that ended last: [`InvokeAnyError::Failed`] with the
    ///   error that it returned, or [`InvokeAnyError::Task`] if it panicked or was cancelled.
    /// * [`InvokeAnyError::NoTasks`] if there are no closures.
    /// * [`InvokeAnyError::Rejected`] as soon as one closure is not accepted.
    /// * [`InvokeAnyError::WouldDeadlock`] where [`ScheduledFuture::wait`] would return it.
    ///
    /// In each case, and if the iterator panics, the tasks that were submitted have ended or are
    /// cancelled and signalled.
    #[doc(alias("select_ok", "race"))]
    #[track_caller]
    pub fn invoke_any<T: Send + 'static, E: Send + 'static>(
        &self,
        closures: impl IntoIterator<Item = impl FnOnce() -> Result<T, E> + Send + 'static>,
    ) -> Result<T, InvokeAnyError<E>> {
        FirstSuccess::new(self)
            .run(closures, |running| running.take().map_err(|_| InvokeAnyError::WouldDeadlock))
    }

    /// Runs the closures as [`invoke_any`](Self::invoke_any) does, but blocks no longer than until
    /// `limit` is reached, which counts from the call. Once its token is raised, no more closures are submitted. Java:
    /// `invokeAny(tasks, timeout, unit)`, and in a thread that may be interrupted.
    ///
    /// # Errors
    ///
    /// [`InvokeAnyError::TimedOut`] if by then none has succeeded and not all have failed;
    /// [`InvokeAnyError::Interrupted`] if the token is raised, before the call or during it, and no
    /// task had succeeded. Otherwise as [`invoke_any`](Self::invoke_any), but never
    /// [`InvokeAnyError::WouldDeadlock`].
    #[track_caller]
    pub fn invoke_any_within<T: Send + 'static, E: Send + 'static>(
        &self,
        closures: impl IntoIterator<Item = impl FnOnce() -> Result<T, E> + Send + 'static>,
        limit: impl Into<Limit>,
    ) -> Result<T, InvokeAnyError<E>> {
        let limit = limit.into();
        let deadline = limit.deadline(self.pool().clock());
        let closures = closures.into_iter().take_while(|_| !limit.is_cancelled());
        FirstSuccess::new(self).run(closures, |running| match running.take_by(&limit, deadline) {
            Err(LimitReached::TimedOut) => Err(InvokeAnyError::TimedOut),
            Err(LimitReached::Cancelled) => Err(InvokeAnyError::Interrupted),
            // Those that were not submitted might have succeeded.
            Ok(None) if limit.is_cancelled() => Err(InvokeAnyError::Interrupted),
            Ok(ended) => Ok(ended),
        })
    }
}

/// An `invoke_any` that is under way. Its drop cancels what has not ended.
struct FirstSuccess<'a, T: 'static, E: 'static> {
    handle: &'a Handle,
    running: ExecutorCompletionService<Result<T, E>>,
    /// The failure of the last task that failed.
    failure: Option<InvokeAnyError<E>>,
}

type Running<T, E> = ExecutorCompletionService<Result<T, E>>;
type EndedFuture<T, E> = ScheduledFuture<Result<T, E>>;

impl<'a, T: Send + 'static, E: Send + 'static> FirstSuccess<'a, T, E> {
    fn new(handle: &'a Handle) -> Self {
        Self { handle, running: ExecutorCompletionService::new(handle), failure: None }
    }

    /// Submits the closures until one has succeeded, and then waits for one that does. `wait` returns
    /// the next task that ends, or `None` if all have been taken.
    #[track_caller]
    fn run(
        mut self,
        closures: impl IntoIterator<Item = impl FnOnce() -> Result<T, E> + Send + 'static>,
        wait: impl Fn(&Running<T, E>) -> Result<Option<EndedFuture<T, E>>, InvokeAnyError<E>>,
    ) -> Result<T, InvokeAnyError<E>> {
        for closure in closures {
            let refs = &self.handle.pool_refs;
            self.running.push(task_builder::schedule(refs, Duration::ZERO, closure)?);
            while let Some(ended) = self.running.poll() {
                if let Some(value) = self.value_of(ended) {
                    return Ok(value);
                }
            }
        }
        while let Some(ended) = wait(&self.running)? {
            if let Some(value) = self.value_of(ended) {
                return Ok(value);
            }
        }
        Err(self.failure.take().unwrap_or(InvokeAnyError::NoTasks))
    }

    /// Returns the value of a task that has ended, or keeps its failure.
    fn value_of(&mut self, ended: EndedFuture<T, E>) -> Option<T> {
        let failure = match ended.join() {
            Ok(Ok(value)) => return Some(value),
            Ok(Err(failure)) => InvokeAnyError::Failed(failure),
            Err(error) => InvokeAnyError::Task(error),
        };
        discard(self.failure.replace(failure));
        None
    }
}

impl<T, E> Drop for FirstSuccess<'_, T, E> {
    fn drop(&mut self) {
        self.running.cancel_and_signal_all();
        discard(self.failure.take());
    }
}

/// The error if [`Handle::invoke_all`](crate::Handle::invoke_all) returned no futures. The tasks that it had
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

/// The error if [`Handle::invoke_any`](crate::Handle::invoke_any) returned no value. The tasks that it had
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
