//! Several tasks as one: all of them, the first that succeeds, or each as it ends.
//!
//! A [`TaskSet`] is a list of futures, and waits for them one after the other. An [`ExecutorCompletionService`] returns
//! its futures in the order in which their tasks end ([`ScheduledFuture::poll_end`]).
//! [`invoke_all`](crate::Handle::invoke_all) uses a set, and [`invoke_any`](crate::Handle::invoke_any) uses a service.
//! The set or service is in a guard that, when dropped, cancels and signals the tasks. So when either call ends, with a
//! value, an error or a panic in the iterator, each of its tasks has ended, or was cancelled and asked to stop.

mod completion;

use std::{convert::Infallible, error::Error, fmt, mem, slice, vec};

pub use self::completion::ExecutorCompletionService;
use crate::{
    Handle, Limit, LimitReached, RejectedExecutionError, ScheduledFuture, TaskError, TaskOutput,
};

/// Futures that are joined or cancelled together. They may belong to several executors.
///
/// The futures stay in the order in which they were pushed, and so do the results. **Dropping it detaches** all tasks,
/// as dropping a [`ScheduledFuture`] does. To cancel them, keep a `Vec` of futures that [cancel on
/// drop](ScheduledFuture::cancel_on_drop). In async code, await one future after the other. An
/// [`ExecutorCompletionService`] returns the results in the order in which the tasks end.
///
/// ```
/// use punctual::{ScheduledThreadPoolExecutor, TaskSet};
///
/// let executor = ScheduledThreadPoolExecutor::new(2);
/// let mut squares = TaskSet::new();
/// for number in 1..=3_u64 {
///     squares.push(executor.submit(move || number * number)?);
/// }
/// let squares: Result<Vec<_>, _> = squares.join_all().into_iter().collect();
/// assert_eq!(squares?, [1, 4, 9]);
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[doc(alias = "JoinSet")]
pub struct TaskSet<T> {
    futures: Vec<ScheduledFuture<T>>,
}

impl<T> TaskSet<T> {
    /// Makes an empty set. Does not allocate.
    #[must_use]
    pub const fn new() -> Self {
        Self { futures: Vec::new() }
    }

    /// Adds a future at the end.
    pub fn push(&mut self, future: ScheduledFuture<T>) {
        self.futures.push(future);
    }

    /// Returns how many futures there are, whether their tasks have ended or not.
    pub fn len(&self) -> usize {
        self.futures.len()
    }

    /// Returns `true` if there are no futures.
    pub fn is_empty(&self) -> bool {
        self.futures.is_empty()
    }

    /// Returns `true` if every task has ended, or there are none. Stops at the first that has not.
    pub fn is_done(&self) -> bool {
        self.futures.iter().all(|task| task.is_done())
    }

    /// Iterates over the futures, in the order in which they were pushed.
    pub fn iter(&self) -> slice::Iter<'_, ScheduledFuture<T>> {
        self.futures.iter()
    }

    /// [Cancels](crate::TaskHandle::cancel) every task that has not ended, and returns how many it cancelled. The
    /// futures stay. Does not block.
    #[doc(alias = "abort_all")]
    pub fn cancel_all(&self) -> usize {
        self.futures.iter().rev().filter(|future| future.cancel()).count()
    }

    /// Cancels as [`cancel_all`](Self::cancel_all) does, and also cancels the [token](crate::TaskContext::token) of
    /// each running task, to ask its body to stop.
    pub fn cancel_and_signal_all(&self) -> usize {
        // From the last to the first: a worker whose task stops must not begin another task of the set before that is
        // cancelled.
        self.futures.iter().rev().filter(|future| future.cancel_and_signal()).count()
    }
}

impl<T: 'static> TaskSet<T> {
    /// Blocks until every task has ended, and returns their results. Afterwards the set is empty, except for futures
    /// whose wait was refused. On a manual clock [another thread has to move it](crate::ManualClock#when-it-blocks).
    ///
    /// # Errors
    ///
    /// Inside the `Vec`, for each future: as [`ScheduledFuture::join`].
    #[doc(alias = "join")]
    pub fn join_all(&mut self) -> Vec<Result<T, TaskError>> {
        let mut results = Vec::with_capacity(self.len());
        self.futures.retain(|future| {
            let result = future.join();
            let is_refused = matches!(result, Err(TaskError::WouldDeadlock));
            results.push(result);
            is_refused
        });
        results
    }

    /// Blocks until every task has ended, or `limit` is reached, and returns their results in the order of the futures.
    /// Afterwards the set is empty. Returns `None` if not all have ended: the tasks go on, and the set keeps its
    /// futures.
    ///
    /// # Errors
    ///
    /// Inside the `Vec`: as [`ScheduledFuture::join_within`].
    pub fn join_all_within(
        &mut self,
        limit: impl Into<Limit>,
    ) -> Option<Vec<Result<T, TaskError>>> {
        let limit = limit.into();
        // All limits count from one moment, each on its own clock, so no wait extends another's limit.
        let on_its_clock = |future: &ScheduledFuture<T>| limit.clone().from_now(future.clock());
        let limits: Vec<_> = self.futures.iter().map(on_its_clock).collect();
        let mut limited = self.futures.iter().zip(limits);
        let all_ended = limited.all(|(future, limit)| future.wait_within(limit));
        all_ended.then(|| self.join_all())
    }
}

impl<T> Default for TaskSet<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> FromIterator<ScheduledFuture<T>> for TaskSet<T> {
    fn from_iter<I: IntoIterator<Item = ScheduledFuture<T>>>(futures: I) -> Self {
        Self { futures: Vec::from_iter(futures) }
    }
}

impl<T> Extend<ScheduledFuture<T>> for TaskSet<T> {
    fn extend<I: IntoIterator<Item = ScheduledFuture<T>>>(&mut self, futures: I) {
        self.futures.extend(futures);
    }
}

impl<T> IntoIterator for TaskSet<T> {
    type Item = ScheduledFuture<T>;
    type IntoIter = vec::IntoIter<ScheduledFuture<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.futures.into_iter()
    }
}

impl<'a, T> IntoIterator for &'a TaskSet<T> {
    type Item = &'a ScheduledFuture<T>;
    type IntoIter = slice::Iter<'a, ScheduledFuture<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T> fmt::Debug for TaskSet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TaskSet ")?;
        f.debug_list().entries(&self.futures).finish()
    }
}

fn is_interrupted(limit: Option<&Limit>) -> bool {
    limit.is_some_and(|limit| limit.reached() == LimitReached::Cancelled)
}

#[track_caller]
pub(crate) fn invoke_all<T: TaskOutput + Send + 'static>(
    handle: &Handle,
    closures: impl IntoIterator<Item = impl FnOnce() -> T + Send + 'static>,
    limit: Option<Limit>,
) -> Result<Vec<ScheduledFuture<T>>, InvokeError> {
    let limit = limit.map(|limit| limit.from_now(handle.clock()));
    let mut submitted = Signalled(TaskSet::new(), TaskSet::cancel_and_signal_all);
    for closure in closures {
        if is_interrupted(limit.as_ref()) {
            return Err(InvokeError::Interrupted);
        }
        submitted.0.push(handle.submit(closure)?);
    }
    match &limit {
        None => {
            let mut waits = submitted.0.iter().map(ScheduledFuture::wait);
            waits.try_for_each(|end| end.map_err(|_| InvokeError::WouldDeadlock))?;
        }
        Some(limit) if submitted.0.iter().all(|future| future.wait_within(limit.clone())) => {}
        limit if is_interrupted(limit.as_ref()) => return Err(InvokeError::Interrupted),
        Some(_) => _ = submitted.0.cancel_and_signal_all(),
    }
    Ok(mem::take(&mut submitted.0.futures))
}

#[track_caller]
pub(crate) fn invoke_any<T, E>(
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
    let may_submit = || !is_interrupted(limit.as_ref());
    let mut closures = Some(closures.into_iter().take_while(|_| may_submit()));
    let service = ExecutorCompletionService::new(handle);
    let running = Signalled(service, ExecutorCompletionService::cancel_and_signal_all);
    let mut failure = InvokeError::NoTasks;
    loop {
        let mut ended = running.0.poll();
        if ended.is_none() {
            if let Some(closure) = closures.as_mut().and_then(Iterator::next) {
                running.0.submit(closure)?;
                continue;
            }
            closures = None;
            ended = wait(&running.0, limit.as_ref())?;
        }
        let Some(ended) = ended else { return Err(failure) };
        failure = match ended.join() {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(error)) => InvokeError::Failed(error),
            Err(error) => InvokeError::Task(error),
        };
    }
}

/// Blocks, up to the `limit`, until the next task ends, and returns its future; `None` if every future has been taken.
fn wait<T: 'static, E>(
    running: &ExecutorCompletionService<T>,
    limit: Option<&Limit>,
) -> Result<Option<ScheduledFuture<T>>, InvokeError<E>> {
    let Some(limit) = limit else {
        return running.take().map_err(|_| InvokeError::WouldDeadlock);
    };
    match running.take_within(limit.clone()) {
        Err(LimitReached::TimedOut) => Err(InvokeError::TimedOut),
        Err(LimitReached::Cancelled) => Err(InvokeError::Interrupted),
        // A closure that was not submitted might have succeeded.
        Ok(None) if is_interrupted(Some(limit)) => Err(InvokeError::Interrupted),
        Ok(ended) => Ok(ended),
    }
}

struct Signalled<S>(S, fn(&S) -> usize);

impl<S> Drop for Signalled<S> {
    fn drop(&mut self) {
        (self.1)(&self.0);
    }
}

/// The error of [`invoke_all`](Handle::invoke_all) and [`invoke_any`](Handle::invoke_any), whose tasks fail with an
/// `E`. The tasks that were submitted have ended or were cancelled. Java: `ExecutionException`, `TimeoutException`,
/// `InterruptedException`, `RejectedExecutionException`, `IllegalArgumentException`.
#[derive(Debug)]
#[non_exhaustive]
pub enum InvokeError<E = Infallible> {
    /// The iterator passed to `invoke_any` yielded no closure.
    NoTasks,
    /// Every task of an `invoke_any` failed; the last of them returned this.
    Failed(E),
    /// Every task of an `invoke_any` failed; the last of them panicked or was cancelled.
    Task(TaskError),
    /// The call timed out before a task succeeded.
    TimedOut,
    /// A task was rejected.
    Rejected(RejectedExecutionError),
    /// The call would have waited forever: no worker was left to run the tasks.
    WouldDeadlock,
    /// The token of the call was cancelled before the call had its answer.
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
