//! [`TaskBuilder`]: the settings of a task before it is submitted, and the methods that submit it. Each of these
//! methods makes a node from the closure and [launches](launching) the node. Only the code that makes the node and the
//! future is compiled per closure.

mod launching;

use std::{
    error::Error,
    ops::ControlFlow::{self, Break, Continue},
    time::Duration,
};

pub(crate) use self::launching::{execute, schedule};
use crate::{
    Backoff, FailurePolicy, Handle, MissedRuns, RejectedExecutionError, ScheduledFuture,
    TaskOutput,
    feature::{AtShutdown, Requested, ShutdownPolicy},
    pool::PoolRefs,
    schedule::Schedule,
    sync::Arc,
    task::{Node, Outcome},
    time::Clock,
    trigger::{Due, Retry, Trigger, from_fn},
};

/// Describes a task before it is submitted. [`Handle::task`](crate::Handle::task) makes one. It has the handle's
/// submitting methods, which fail, block and cost as they do there. A builder describes one task; a clone of it
/// describes another.
///
/// ```
/// use std::time::Duration;
/// use punctual::{MissedRuns, ScheduledThreadPoolExecutor, trigger::every};
///
/// let executor = ScheduledThreadPoolExecutor::new(1);
/// let (task, minute) = (executor.task().name("backup"), Duration::from_secs(60));
/// let backup = task.timeout(minute).submit(|| "saved")?;
/// assert_eq!((backup.name().as_deref(), backup.join()?), (Some("backup"), "saved"));
/// let task = executor.task().missed_runs(MissedRuns::Skip);
/// task.repeat(every(minute).first_in(minute), || { /* flush */ })?;
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[derive(Clone)]
#[must_use = "nothing is submitted until one of its submitting methods is called"]
pub struct TaskBuilder<'a> {
    pub(crate) pool_refs: &'a Arc<PoolRefs>,
    name: Option<Arc<str>>,
    /// `None` means the default of the method that submits the task.
    missed: Option<MissedRuns>,
    /// `None` means `stop`, or `resume` if the trigger retries.
    on_failure: Option<FailurePolicy>,
    /// `None` means the default of the executor.
    warn_after: Option<Duration>,
    pub(crate) requested: Requested,
    /// `true` if a refused submission fails at once, without asking the rejection handler.
    aborts: bool,
}

impl<'a> TaskBuilder<'a> {
    pub(crate) fn new(pool_refs: &'a Arc<PoolRefs>) -> Self {
        Self {
            pool_refs,
            name: None,
            missed: None,
            on_failure: None,
            warn_after: None,
            requested: Requested::default(),
            aborts: false,
        }
    }

    fn clock(&self) -> &Clock {
        self.pool_refs.pool().clock()
    }

    /// Sets the name of the task, for logs, spans, and [`DrainedTask`](crate::DrainedTask)s. Costs one more allocation.
    /// Several tasks may have the same name.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the policy for the runs that a periodic task misses (misfires); the default is [`MissedRuns::Burst`], and
    /// for [`repeat`](Self::repeat) [`MissedRuns::Coalesce`].
    #[doc(alias = "set_missed_tick_behavior")]
    pub fn missed_runs(mut self, policy: MissedRuns) -> Self {
        self.missed = Some(policy);
        self
    }

    /// Sets the policy of a periodic task for a run that failed; the default is [`FailurePolicy::stop`], and for a
    /// trigger that [retries](Trigger::retry) [`FailurePolicy::resume`].
    #[doc(alias = "retry")]
    pub fn on_failure(mut self, policy: FailurePolicy) -> Self {
        self.on_failure = Some(policy);
        self
    }

    /// Sets how long a run of the task may take before it is reported: in one warning event, and to the callback for
    /// [slow runs](crate::Builder::on_slow_run), each with the place where the task was scheduled. The run goes on;
    /// to end the task, set a [`timeout`](Self::timeout). The default is the
    /// [executor's setting](crate::Builder::warn_after), if it has one; `Duration::MAX` means never.
    ///
    /// A run that takes exactly this long is reported as well. Costs a few allocations for the task, and for each run
    /// three more and a submission to a thread that the first such run starts.
    #[doc(alias = "watchdog")]
    pub fn warn_after(mut self, limit: Duration) -> Self {
        self.warn_after = Some(limit);
        self
    }

    /// Makes the submission fail if the executor does not admit the task, without asking the executor's
    /// [handler](crate::RejectedExecutionHandler). For a thread that must neither run tasks nor wait for room, such as
    /// one that polls sockets. Java: `AbortPolicy`, for one task.
    pub fn abort_if_rejected(mut self) -> Self {
        self.aborts = true;
        self
    }

    /// Sets what a graceful [shutdown](crate::Handle::shutdown) does to this task; without this call its
    /// [group](crate::GroupBuilder::on_shutdown) or the executor's policies decide. The policy also holds for the
    /// shutdown of a group, for [`close`](crate::ScheduledThreadPoolExecutor::close), and for
    /// [`shutdown_within`](crate::Handle::shutdown_within), which in the end cancels what is left; but not for
    /// [`shutdown_now`](crate::Handle::shutdown_now), nor for a drop that [stops](crate::DropPolicy::Stop) the
    /// executor. Once a task has such a policy, or is a [call with retries](Self::retry), a shutdown takes O(n log n).
    /// Java has two policies, for all tasks.
    ///
    /// ```
    /// use std::{ops::ControlFlow, time::Duration};
    /// use punctual::{ScheduledThreadPoolExecutor, ShutdownPolicy, trigger};
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let upload = executor.task().on_shutdown(ShutdownPolicy::Keep);
    /// let upload = upload.repeat(trigger::every(Duration::from_millis(1)), || ControlFlow::<_>::Break("uploaded"))?;
    /// executor.close()?; // waits for it, and would cancel another series
    /// assert_eq!(upload.join()?, "uploaded");
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn on_shutdown(mut self, policy: ShutdownPolicy) -> Self {
        self.requested.at_shutdown = Some(AtShutdown::Chosen(policy));
        self
    }

    /// Returns a handle to the task's executor, for code that is passed a builder. Costs one reference count.
    pub fn handle(&self) -> Handle {
        Handle { pool_refs: Arc::clone(self.pool_refs) }
    }
}

/// # Submitting
impl TaskBuilder<'_> {
    /// Submits the task: see [`Handle::execute`](crate::Handle::execute).
    #[track_caller]
    pub fn execute(
        self,
        closure: impl FnOnce() + Send + 'static,
    ) -> Result<(), RejectedExecutionError> {
        self.submit(closure).map(drop)
    }

    /// Submits the task: see [`Handle::submit`](crate::Handle::submit).
    #[track_caller]
    pub fn submit<T: TaskOutput + Send + 'static>(
        self,
        closure: impl FnOnce() -> T + Send + 'static,
    ) -> Result<ScheduledFuture<T>, RejectedExecutionError> {
        self.schedule(Duration::ZERO, closure)
    }

    /// Submits the task: see [`Handle::schedule`](crate::Handle::schedule).
    #[track_caller]
    pub fn schedule<T: TaskOutput + Send + 'static>(
        self,
        delay: Duration,
        closure: impl FnOnce() -> T + Send + 'static,
    ) -> Result<ScheduledFuture<T>, RejectedExecutionError> {
        self.launch_after(Node::once(closure), delay).map(ScheduledFuture::new)
    }

    /// Submits the task: see [`Handle::schedule_at`](crate::Handle::schedule_at). At a wall-clock moment, a [time
    /// limit](Self::timeout) counts from when the closure begins, as for each run of a series.
    #[track_caller]
    pub fn schedule_at<T: TaskOutput + Send + 'static>(
        mut self,
        moment: impl Into<Due>,
        closure: impl FnOnce() -> T + Send + 'static,
    ) -> Result<ScheduledFuture<T>, RejectedExecutionError> {
        let instant = match moment.into() {
            Due::At(instant) => Some(instant),
            Due::OnDemand => None,
            Due::Wall(moment) => {
                // Only a trigger plans on the wall clock, so this is a series with one run. The caller's settings for a
                // series do not apply.
                (self.missed, self.on_failure, self.requested.runs_once) = (None, None, true);
                self.requested.at_shutdown.get_or_insert(AtShutdown::OneShot);
                let once =
                    from_fn(move |last| last.planned().is_none().then_some(Due::Wall(moment)));
                let mut closure = Some(closure);
                let body = move || closure.take().map_or(Continue(()), |closure| Break(closure()));
                return self.repeat(once, body);
            }
        };
        self.launch_at(Node::once(closure), instant).map(ScheduledFuture::new)
    }

    /// Submits the task: see [`Handle::schedule_at_fixed_rate`](crate::Handle::schedule_at_fixed_rate).
    #[track_caller]
    pub fn schedule_at_fixed_rate<O: Outcome>(
        self,
        initial_delay: Duration,
        period: Duration,
        closure: impl FnMut() -> O + Send + 'static,
    ) -> Result<ScheduledFuture<O::Value>, RejectedExecutionError> {
        let task = Node::repeated(closure);
        self.launch_periodic(task, initial_delay, period, Schedule::fixed_rate)
            .map(ScheduledFuture::new)
    }

    /// Submits the task: see [`Handle::schedule_with_fixed_delay`](crate::Handle::schedule_with_fixed_delay).
    #[track_caller]
    pub fn schedule_with_fixed_delay<O: Outcome>(
        self,
        initial_delay: Duration,
        delay: Duration,
        closure: impl FnMut() -> O + Send + 'static,
    ) -> Result<ScheduledFuture<O::Value>, RejectedExecutionError> {
        let task = Node::repeated(closure);
        self.launch_periodic(task, initial_delay, delay, Schedule::fixed_delay)
            .map(ScheduledFuture::new)
    }

    /// Submits the task: see [`Handle::repeat`](crate::Handle::repeat).
    #[track_caller]
    pub fn repeat<O: Outcome>(
        self,
        trigger: impl Trigger,
        body: impl FnMut() -> O + Send + 'static,
    ) -> Result<ScheduledFuture<O::Value>, RejectedExecutionError> {
        self.launch_series(Node::repeated(body), trigger).map(ScheduledFuture::new)
    }

    /// Submits the task: see [`Handle::retry`](crate::Handle::retry). A [time limit](Self::timeout) holds for each
    /// attempt, and an attempt that exceeds it has failed. A [policy](Self::on_failure) may end the task earlier than
    /// the backoff does.
    #[track_caller]
    pub fn retry<T: Send + 'static, E: Into<Box<dyn Error + Send + Sync>>>(
        mut self,
        backoff: Backoff,
        mut body: impl FnMut() -> Result<T, E> + Send + 'static,
    ) -> Result<ScheduledFuture<T>, RejectedExecutionError> {
        let attempt = move || body().map(ControlFlow::<T>::Break);
        self.requested.at_shutdown.get_or_insert(AtShutdown::OneShot);
        self.repeat(Retry::of_call(backoff), attempt)
    }
}

impl std::fmt::Debug for TaskBuilder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TaskBuilder").field("name", &self.name).finish_non_exhaustive()
    }
}
