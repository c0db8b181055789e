//! Drained tasks: those that no executor will run, because `shutdown_now` returned them or because they were not
//! admitted.
//!
//! Running or dropping a [`DrainedTask`] completes its future, so no thread waits for the future forever. A submission
//! moves its closure into a task before the pool decides whether to admit the task. If the pool rejects the task, the
//! submission's error ([`RejectedExecutionError`]) owns the task, and is `Send + Sync` whatever the closure captured.

use std::{error::Error, fmt, iter::FusedIterator, rc::Rc, thread, time::Instant};

use crate::{
    CancelReason, CancellationToken, RejectionReason, TaskId,
    queue::{Drained, QueueEntry},
    statistics::{Totals, WorkerStats},
    sync::{Arc, Mutex},
    task::{Drops, Hooks, Run, Task, Verdict, WorkerContext},
    time::{Clock, Timestamp},
    trace,
    unwind::discard,
};

/// The tasks that were pending when an executor was [shut down now](crate::Handle::shutdown_now), as an iterator in no
/// particular order.
///
/// **Dropping it cancels the tasks that are left** ([`CancelReason::ShutdownNow`]) and drops their closures before the
/// drop returns. A million tasks take tens of milliseconds. [`DrainedTask`] has an example.
///
/// From 65,536 tasks on, a second thread, which no factory starts, drops half of them. So the caller must hold no lock
/// that the drop of a capture takes, not even one that a thread may take twice, such as standard output's, and a
/// capture cannot rely on the caller's thread-locals. Where that matters, drop the tasks one by one, by
/// `for_each(drop)`: the calling thread then drops them all. It also does so on a manual clock, and while it runs a
/// task or shuts an executor down.
#[must_use = "dropping pending tasks cancels them"]
pub struct DrainedTasks {
    drained: Drained<Arc<Task>>,
    detached_context: DetachedContext,
    /// Called by the thread that drops this value. Returns `true` if a second thread may share the drop.
    may_share: fn() -> bool,
}

/// The parts of an executor that a task still needs after it has left the queue.
#[derive(Clone)]
pub(crate) struct DetachedContext {
    pub(crate) clock: Clock,
    pub(crate) hooks: Hooks,
}

impl DrainedTasks {
    pub(crate) fn new(
        drained: Drained<Arc<Task>>,
        detached_context: DetachedContext,
        may_share: fn() -> bool,
    ) -> Self {
        Self { drained, detached_context, may_share }
    }

    /// Returns `true` if no task was pending, or none is left.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Iterator for DrainedTasks {
    type Item = DrainedTask;

    fn next(&mut self) -> Option<DrainedTask> {
        let entry = self.drained.next()?;
        Some(DrainedTask::new(entry, &self.detached_context, CancelReason::ShutdownNow))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.drained.size_hint()
    }
}

impl ExactSizeIterator for DrainedTasks {}

impl FusedIterator for DrainedTasks {}

/// A second thread may share the drop of this many tasks or more.
const MANY: usize = 64 << 10;

/// The stack size of the second thread, in bytes: drops may nest as deeply as on a main thread.
const STACK: usize = 8 << 20;

impl Drop for DrainedTasks {
    fn drop(&mut self) {
        if trace::is_listening() {
            // One by one, since each task is traced with its id.
            return self.for_each(drop);
        }
        let drops = Drops::of_any(&self.detached_context.hooks);
        // The crate refuses some waits because of what the calling thread does for an executor. It would not refuse
        // them to a second thread.
        let is_shared = self.len() >= MANY && (self.may_share)();
        let chunks = self.drained.take_chunks().into_iter();
        if !is_shared {
            return chunks.for_each(|chunk| cancel(chunk, drops));
        }
        let chunks = Mutex::<_>::new(chunks);
        let next = || chunks.lock().next();
        let share = || {
            while let Some(chunk) = next() {
                cancel(chunk, drops);
            }
        };
        thread::scope(|scope| {
            // If no second thread can be started, this thread drops all.
            let builder = thread::Builder::new().name("punctual-drop".into()).stack_size(STACK);
            let _second = builder.spawn_scoped(scope, share);
            share();
        });
    }
}

fn cancel(chunk: Vec<Option<Arc<Task>>>, drops: Drops<'_>) {
    for task in chunk.into_iter().flatten() {
        task.cancel(CancelReason::ShutdownNow, drops);
        discard(task);
    }
}

impl fmt::Debug for DrainedTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DrainedTasks").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// A task that was pending when its executor was [shut down now](crate::Handle::shutdown_now), or that was [not
/// admitted](crate::RejectedTask::keep). Its holder may still [run](Self::run) it.
///
/// **Dropping it cancels the task** ([`CancelReason::ShutdownNow`] or [`CancelReason::Rejected`]) and drops the
/// closure.
///
/// ```
/// use std::time::Duration;
/// use punctual::ScheduledThreadPoolExecutor;
///
/// let executor = ScheduledThreadPoolExecutor::new(1);
/// let report = executor.task().name("report").schedule(Duration::from_secs(3600), || "written")?;
/// for task in executor.shutdown_now() {
///     assert_eq!(task.name().as_deref(), Some("report"));
///     task.run();
/// }
/// assert_eq!(report.join()?, "written");
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[must_use = "dropping a pending task cancels it"]
pub struct DrainedTask {
    /// `None` once the task has been taken out, to be run or offered to the pool again.
    pub(crate) task: Option<Arc<Task>>,
    id: u64,
    deadline: Timestamp,
    detached_context: DetachedContext,
    /// The reason for cancelling the task when this is dropped, or when a run by hand does not end the task.
    reason: CancelReason,
}

impl DrainedTask {
    pub(crate) fn new(
        entry: QueueEntry<Arc<Task>>,
        detached_context: &DetachedContext,
        reason: CancelReason,
    ) -> Self {
        let QueueEntry { deadline, sequence, element } = entry;
        Self {
            id: sequence,
            deadline: element.due_by(deadline),
            task: Some(element),
            detached_context: detached_context.clone(),
            reason,
        }
    }

    /// Returns the id of the task, which is also its future's.
    pub fn id(&self) -> TaskId {
        TaskId(self.id)
    }

    /// Returns the name of the task, if it was given one.
    pub fn name(&self) -> Option<Arc<str>> {
        self.task.as_ref()?.name()
    }

    /// Returns the instant for which it was scheduled; `None` for never.
    pub fn deadline(&self) -> Option<Instant> {
        self.detached_context.clock.instant_of(self.deadline)
    }

    /// Returns `true` if that instant has come.
    pub fn is_due(&self) -> bool {
        self.deadline <= self.detached_context.clock.read()
    }

    /// Returns `true` if the task is periodic.
    pub fn is_periodic(&self) -> bool {
        self.task.as_ref().is_some_and(|task| task.is_periodic())
    }

    /// Runs the task on this thread, due or not, and completes its future: with the result, with the panic, or, for a
    /// periodic task, as cancelled after this one run. Calls the executor's hooks, but asks no
    /// [gate](crate::TaskBuilder::gate). A timeout can expire only until the executor has terminated. Blocks as long as
    /// the closure runs, and contains its panic. Does nothing if the task was cancelled meanwhile.
    pub fn run(self) {
        self.run_here();
    }

    /// Runs the task as [`run`](Self::run) does, and returns the counts of the run.
    pub(crate) fn run_here(mut self) -> Totals {
        let deadline = self.deadline;
        let Some(task) = self.task.take() else { return Totals::default() };
        let DetachedContext { clock, hooks } = self.detached_context.clone();
        task.leave_schedule();
        let (stop, stats) =
            (CancellationToken::with_clock(clock.clone()), Arc::new(WorkerStats::default()));
        let now = clock.read();
        let keeps_limits = false;
        let worker = WorkerContext::new(clock, stop, Arc::clone(&stats), keeps_limits);
        let run = Run::new(Rc::new(worker), task, self.id, deadline, now);
        let reason = match run.task.run(&run, &hooks) {
            Verdict::Again(_) => Some(self.reason),
            Verdict::Cancelled(reason) => Some(reason),
            _ => None,
        };
        if let Some(reason) = reason {
            run.task.end_as_cancelled(self.id, reason, &hooks);
        }
        hooks.drops(self.id).discard(run.task);
        stats.totals()
    }
}

impl Drop for DrainedTask {
    #[inline(never)]
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.end_as_cancelled(self.id, self.reason, &self.detached_context.hooks);
            discard(task);
        }
    }
}

impl fmt::Debug for DrainedTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DrainedTask")
            .field("id", &self.id())
            .field("name", &self.name())
            .field("is_periodic", &self.is_periodic())
            .field("deadline", &self.deadline())
            .finish_non_exhaustive()
    }
}

/// The error of a submission that was rejected. It holds the reason and the task. Java: `RejectedExecutionException`,
/// and `IllegalArgumentException` for a period of zero.
///
/// [`into_task`](Self::into_task) returns the task with its closure, to be run in this thread or in another, kept for
/// later, or dropped. Dropping the error drops the task.
///
/// ```
/// use punctual::{RejectionReason, ScheduledThreadPoolExecutor};
///
/// let executor = ScheduledThreadPoolExecutor::new(1);
/// executor.shutdown();
/// let refused = executor.execute(|| println!("not lost")).unwrap_err();
/// assert!(matches!(refused.reason(), RejectionReason::Shutdown));
/// refused.into_task().run();
/// ```
///
/// A rejected submission returns no future, so the result of a run by hand is lost. A caller that wants a future from a
/// second executor submits a closure that can be cloned, or sends the result over a channel.
#[doc(alias("SendError", "TrySendError", "SpawnError"))]
#[derive(Debug)]
// On the heap, so that the `Result` of a submission stays small.
pub struct RejectedExecutionError(Box<(RejectionReason, DrainedTask)>);

impl RejectedExecutionError {
    pub(crate) fn new(reason: RejectionReason, task: DrainedTask) -> Self {
        Self(Box::new((reason, task)))
    }

    /// Returns the reason why the task was rejected.
    pub fn reason(&self) -> &RejectionReason {
        &self.0.0
    }

    /// Returns the rejected task.
    pub fn task(&self) -> &DrainedTask {
        &self.0.1
    }

    /// Returns the rejected task, to be run, kept or dropped.
    pub fn into_task(self) -> DrainedTask {
        self.0.1
    }
}

impl fmt::Display for RejectedExecutionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason().fmt(f)
    }
}

impl Error for RejectedExecutionError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self.reason() {
            RejectionReason::Spawn(error) => Some(error),
            _ => None,
        }
    }
}
