//! A batch: many one-shot tasks that are submitted as one.
//!
//! A batch is filled without the executor: each closure becomes a task as it is added. The submission then reads the clock
//! once, acquires the capacity for all of them in one step, and queues them under one lock (`pool::batch`). It admits all
//! or none, and a batch that is refused comes back as it was ([`RejectedBatch`]).

use std::{
    error::Error,
    fmt,
    marker::PhantomData,
    time::{Duration, Instant},
};

use crate::{
    Handle, RejectionReason, ScheduledFuture, TaskOutput,
    task::Node,
    task_builder::{Planned, submit_batch},
    unwind::discard,
};

/// One-shot tasks that are submitted as one, by [`Handle::schedule_batch`]. `T` is the type of their results; the closures may be of
/// different types.
///
/// Dropping it drops its closures.
///
/// ```
/// use std::time::Duration;
/// use punctual::{Batch, ScheduledThreadPoolExecutor};
///
/// let executor = ScheduledThreadPoolExecutor::new(2);
/// let squares: Batch<u64> = (1..=3).map(|n| (Duration::from_millis(n), move || n * n)).collect();
/// let mut results = Vec::new();
/// for future in executor.schedule_batch(squares)? {
///     results.push(future.join()?);
/// }
/// assert_eq!(results, [1, 4, 9]);
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[doc(alias("bulk", "schedule_all", "submit_all"))]
#[must_use = "nothing is submitted until the batch is scheduled"]
pub struct Batch<T> {
    tasks: Vec<Planned>,
    result: PhantomData<fn() -> T>,
}

impl<T> Batch<T> {
    /// Makes an empty batch.
    pub fn new() -> Self {
        Self::with_capacity(0)
    }

    /// Makes an empty batch with room for so many tasks.
    pub fn with_capacity(tasks: usize) -> Self {
        Self { tasks: Vec::with_capacity(tasks), result: PhantomData }
    }

    /// Returns how many tasks it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Returns `true` if it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }
}

impl<T: TaskOutput + Send + 'static> Batch<T> {
    /// Adds a task that is to run `delay` after the batch is scheduled. Zero is legal, and `Duration::MAX` means never.
    /// Costs one allocation.
    #[inline]
    pub fn add<F>(&mut self, delay: Duration, closure: F)
    where
        F: FnOnce() -> T + Send + 'static,
    {
        self.tasks.push(Planned::after(delay, Node::once(closure)));
    }

    /// As [`add`](Self::add), at an instant of the executor's [clock](Handle::clock). One that has passed means now, and
    /// `None` never.
    pub fn add_at<F>(&mut self, instant: impl Into<Option<Instant>>, closure: F)
    where
        F: FnOnce() -> T + Send + 'static,
    {
        self.tasks.push(Planned::at(instant.into(), Node::once(closure)));
    }
}

impl<T> Default for Batch<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, F> Extend<(Duration, F)> for Batch<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: TaskOutput + Send + 'static,
{
    fn extend<I: IntoIterator<Item = (Duration, F)>>(&mut self, tasks: I) {
        let tasks = tasks.into_iter();
        self.tasks.reserve(tasks.size_hint().0);
        tasks.for_each(|(delay, closure)| self.add(delay, closure));
    }
}

impl<T, F> FromIterator<(Duration, F)> for Batch<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: TaskOutput + Send + 'static,
{
    fn from_iter<I: IntoIterator<Item = (Duration, F)>>(tasks: I) -> Self {
        let mut batch = Self::new();
        batch.extend(tasks);
        batch
    }
}

impl<T> fmt::Debug for Batch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl<T> Drop for Batch<T> {
    /// Each closure is dropped by itself: a panic of one keeps none of the others.
    fn drop(&mut self) {
        self.tasks.drain(..).for_each(discard);
    }
}

impl Handle {
    /// Submits all tasks of a batch, or none. Returns their futures, in the order in which they were added. Tasks with equal
    /// moments run in that order, behind those that were submitted before. Java: `schedule` in a loop.
    ///
    /// It reads the clock once, so all delays count from one moment, and takes one lock of the queue, which it holds for some
    /// forty nanoseconds for each task: other threads that use this part of the queue wait meanwhile, so a million tasks are
    /// better submitted by a thousand at a time. A task in a batch costs about half of what a
    /// [`schedule`](Self::schedule) costs. Blocks only while workers are started: one for each task, as long as there are fewer
    /// than the core pool size.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{Batch, RejectionReason, ScheduledThreadPoolExecutor};
    ///
    /// let executor = ScheduledThreadPoolExecutor::builder().max_pending(2).build()?;
    /// let minute = Duration::from_secs(60);
    /// let batch: Batch<u32> = (0..3).map(|number| (minute, move || number)).collect();
    /// let refused = executor.schedule_batch(batch).unwrap_err();
    /// assert!(matches!(refused.reason(), RejectionReason::Saturated));
    /// assert_eq!((executor.pending_count(), refused.into_batch().len()), (0, 3));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`RejectedBatch`], which returns the batch, if the executor was shut down, if there is no
    /// [capacity](crate::Builder::max_pending) for all of them, if the queue is full (two billion), or if there is no worker
    /// and none can be started. A batch that is queued stays so, even if all workers have retired meanwhile and none can be
    /// started: the next thread that looks for a worker tries again. The
    /// [handler](crate::RejectedExecutionHandler) for rejected tasks is not asked: it decides about single tasks.
    ///
    /// # Panics
    ///
    /// If the [decorator](crate::Builder::decorate_task) of the executor panics. The tasks are dropped then.
    #[track_caller]
    pub fn schedule_batch<T>(
        &self,
        mut batch: Batch<T>,
    ) -> Result<Vec<ScheduledFuture<T>>, RejectedBatch<T>> {
        let tasks = std::mem::take(&mut batch.tasks);
        match submit_batch(self.pool_refs(), tasks) {
            // In the memory of the handles.
            Ok(handles) => Ok(handles.into_iter().map(ScheduledFuture::new).collect()),
            Err((reason, tasks)) => {
                batch.tasks = tasks;
                Err(RejectedBatch(Box::new(RefusedBatch { reason, batch })))
            }
        }
    }
}

/// The error of a batch that was refused as a whole. It owns the batch, and [returns it](Self::into_batch).
///
/// [`Handle::schedule_batch`] has an example.
pub struct RejectedBatch<T>(Box<RefusedBatch<T>>);

/// The content of the error, on the heap, so that the `Result` stays small.
struct RefusedBatch<T> {
    reason: RejectionReason,
    batch: Batch<T>,
}

impl<T> RejectedBatch<T> {
    /// Returns why it was refused.
    #[must_use]
    pub fn reason(&self) -> &RejectionReason {
        &self.0.reason
    }

    /// Returns the batch, to be scheduled again or elsewhere, or dropped. Its delays count from then.
    pub fn into_batch(self) -> Batch<T> {
        self.0.batch
    }
}

impl<T> fmt::Debug for RejectedBatch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RefusedBatch { reason, batch } = &*self.0;
        f.debug_struct("RejectedBatch").field("reason", reason).field("batch", batch).finish()
    }
}

impl<T> fmt::Display for RejectedBatch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "of {} tasks that were submitted as one: {}", self.0.batch.len(), self.0.reason)
    }
}

impl<T> Error for RejectedBatch<T> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.0.reason {
            RejectionReason::Spawn(error) => Some(error),
            _ => None,
        }
    }
}
