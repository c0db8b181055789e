//! A set of futures: joined, awaited or cancelled as one.
//!
//! A set is a list and nothing more. Its waits go from the first future to the last, and wait for each
//! that has not ended. A wait that may be given up takes no result before all are there, so that a
//! wait that is given up has taken nothing.

use std::{
    fmt,
    future::Future,
    ops::{Deref, DerefMut},
    pin::Pin,
    slice,
    task::{Context, Poll, ready},
    vec,
};

use crate::{Limit, ScheduledFuture, TaskError, unwind::discard};

/// Futures that are joined, awaited or cancelled together. They may be of several executors.
///
/// The futures stay in the order in which they were pushed, and so do the results. **Dropping it detaches**
/// all tasks, as dropping a [`ScheduledFuture`] does; [`cancel_on_drop`](Self::cancel_on_drop) makes a guard
/// that cancels.
///
/// To take the results in the order in which the tasks end, use an
/// [`ExecutorCompletionService`](crate::ExecutorCompletionService).
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

    /// Returns `true` if there is no future.
    pub fn is_empty(&self) -> bool {
        self.futures.is_empty()
    }

    /// Returns `true` if every task has ended, also if there is none. Stops at the first that has not.
    pub fn is_done(&self) -> bool {
        self.futures.iter().all(|task| task.is_done())
    }

    /// Iterates over the futures, in the order in which they were pushed.
    pub fn iter(&self) -> slice::Iter<'_, ScheduledFuture<T>> {
        self.futures.iter()
    }

    /// [Cancels](crate::TaskHandle::cancel) every task that has not ended, and returns how many that were.
    /// The futures stay. Does not block.
    #[doc(alias = "abort_all")]
    pub fn cancel_all(&self) -> usize {
        self.futures.iter().rev().filter(|future| future.cancel()).count()
    }

    /// Cancels as [`cancel_all`](Self::cancel_all) does, and raises the
    /// [token](crate::TaskContext::token) of each running task, to ask its body to stop.
    pub fn cancel_and_signal_all(&self) -> usize {
        // From the last to the first: a worker whose task stops must not begin another one of the set
        // before that one is cancelled.
        self.futures.iter().rev().filter(|future| future.cancel_and_signal()).count()
    }

    /// Turns the set into a guard that, when it is dropped, cancels the tasks that have not ended.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ScheduledThreadPoolExecutor, TaskSet};
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let mut guard = TaskSet::new().cancel_on_drop();
    /// guard.push(executor.schedule(Duration::from_secs(60), || "too late")?);
    /// drop(guard);
    /// assert_eq!(executor.pending_count(), 0);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn cancel_on_drop(self) -> CancelAllOnDrop<T> {
        CancelAllOnDrop { set: self, signals: false }
    }

    /// Turns the set into a guard that, when it is dropped, [cancels and
    /// signals](Self::cancel_and_signal_all) the tasks that have not ended.
    pub fn cancel_and_signal_on_drop(self) -> CancelAllOnDrop<T> {
        CancelAllOnDrop { set: self, signals: true }
    }
}

impl<T: 'static> TaskSet<T> {
    /// Blocks until every task has ended, and returns their results. The set is empty then, except for
    /// the futures whose wait was refused: those stay, in their order.
    ///
    /// On a manual clock [another thread has to move it](crate::ManualClock#when-it-blocks).
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

    /// Blocks until every task has ended, or until `limit` is reached, and returns their results in the order
    /// of the futures. The set is empty then. Returns `None` if not all have ended by then: the tasks go on,
    /// and the set keeps all futures with their results.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ScheduledThreadPoolExecutor, TaskSet};
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let mut set = TaskSet::new();
    /// set.push(executor.schedule(Duration::from_secs(60), || 8)?);
    /// assert!(set.join_all_within(Duration::from_millis(1)).is_none());
    /// assert_eq!(set.cancel_all(), 1);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Inside the `Vec`: as [`ScheduledFuture::join_within`].
    pub fn join_all_within(
        &mut self,
        limit: impl Into<Limit>,
    ) -> Option<Vec<Result<T, TaskError>>> {
        let limit = limit.into();
        // All from one moment, and each on its own clock: no wait makes another's limit later.
        let deadline = |future: &ScheduledFuture<T>| limit.deadline(future.handle.pool().clock());
        let deadlines: Vec<_> = self.futures.iter().map(deadline).collect();
        let mut limited = self.futures.iter().zip(deadlines);
        let all_ended =
            limited.all(|(future, deadline)| future.handle.ends_within(&limit, deadline));
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

/// Awaiting a set awaits its futures, one after the other: [`join_all`](TaskSet::join_all) without
/// blocking.
impl<T: 'static> IntoFuture for TaskSet<T> {
    type Output = Vec<Result<T, TaskError>>;
    type IntoFuture = JoinAll<T>;

    fn into_future(self) -> JoinAll<T> {
        let results = Vec::with_capacity(self.len());
        JoinAll { left: self.into_iter(), results }
    }
}

/// Awaits a [`TaskSet`]; from its [`into_future`](TaskSet::into_future). Needs no runtime. If it is
/// dropped before its end, it detaches the tasks that have not ended, and drops the results it has.
#[must_use = "a future does nothing unless it is awaited"]
pub struct JoinAll<T> {
    left: vec::IntoIter<ScheduledFuture<T>>,
    results: Vec<Result<T, TaskError>>,
}

/// No result is ever pinned.
impl<T> Unpin for JoinAll<T> {}

impl<T: 'static> Future for JoinAll<T> {
    type Output = Vec<Result<T, TaskError>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { left, results } = &mut *self;
        while let Some(first) = left.as_mut_slice().first_mut() {
            results.push(ready!(Pin::new(first).poll(context)));
            left.next();
        }
        Poll::Ready(std::mem::take(results))
    }
}

impl<T> Drop for JoinAll<T> {
    fn drop(&mut self) {
        // One by one: if the drop of one panics, the others are dropped as well.
        self.results.drain(..).for_each(discard);
    }
}

impl<T> fmt::Debug for JoinAll<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinAll")
            .field("ended", &self.results.len())
            .field("left", &self.left.as_slice())
            .finish()
    }
}

/// A set that cancels its tasks when it is dropped; from [`TaskSet::cancel_on_drop`] or
/// [`TaskSet::cancel_and_signal_on_drop`]. It dereferences to the set.
#[must_use = "the tasks are cancelled at once if the guard is not kept"]
pub struct CancelAllOnDrop<T> {
    /// Empty once detached.
    set: TaskSet<T>,
    /// True if running bodies are asked to stop as well.
    signals: bool,
}

impl<T> CancelAllOnDrop<T> {
    /// Returns the set, which no longer cancels when it is dropped.
    #[must_use]
    pub fn detach(mut self) -> TaskSet<T> {
        std::mem::take(&mut self.set)
    }
}

impl<T> Deref for CancelAllOnDrop<T> {
    type Target = TaskSet<T>;

    fn deref(&self) -> &TaskSet<T> {
        &self.set
    }
}

impl<T> DerefMut for CancelAllOnDrop<T> {
    fn deref_mut(&mut self) -> &mut TaskSet<T> {
        &mut self.set
    }
}

impl<T> Drop for CancelAllOnDrop<T> {
    fn drop(&mut self) {
        if self.signals {
            self.set.cancel_and_signal_all();
        } else {
            self.set.cancel_all();
        }
    }
}

impl<T> fmt::Debug for CancelAllOnDrop<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CancelAllOnDrop").field(&self.set).finish()
    }
}
