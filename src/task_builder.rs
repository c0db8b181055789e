//! Submission: what is said of a task before it is submitted, and how a closure becomes a task.
//!
//! The verbs of [`TaskBuilder`] differ in what they run and when. Each makes a node of the closure, and all of
//! them end in `launch`, which gives the node its settings and hands it to the pool. Only the making of the node
//! and that of the future are compiled for each closure.

mod joining;
mod retrying;
mod wrapping;

use std::{
    io,
    panic::{self, Location},
    time::{Duration, Instant},
};

use self::joining::{enter_or_leave_group, join};
use crate::{
    CancelReason, FailurePolicy, MissedRuns, RejectedExecutionError, RejectionReason, RunGate,
    ScheduledFuture, TaskOutput, UnitOutcome,
    entry::{Ticket, Timing},
    future::task_ref::TaskRef,
    pool::{NotQueued, Pool, PoolRef, PoolRefs},
    sync::Arc,
    task::{
        Drops, Gated, GroupState, Membership, Node, Observation, OnWall, Outcome, Period, Plan,
        SharedName, Task, Wrapped,
    },
    time::{Clock, Timestamp},
    trace,
    trigger::Trigger,
    unwind::{PanicPayload, contain, discard},
};

/// Describes a task before it is submitted. It is made by [`Handle::task`](crate::Handle::task).
///
/// Its methods that submit are those of the handle. A builder describes one task; a clone of it
/// describes another one.
///
/// ```
/// use std::time::Duration;
/// use punctual::{MissedRuns, ScheduledThreadPoolExecutor};
///
/// let executor = ScheduledThreadPoolExecutor::new(1);
/// executor.task().name("greeting").schedule(Duration::from_millis(1), || println!("hello"))?;
/// let (initial_delay, period) = (Duration::ZERO, Duration::from_secs(5));
/// executor
///     .task()
///     .name("flush")
///     .missed_runs(MissedRuns::Coalesce)
///     .schedule_at_fixed_rate(initial_delay, period, || { /* flush */ })?;
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[derive(Clone)]
#[must_use = "nothing is submitted until one of the verbs is called"]
pub struct TaskBuilder<'a> {
    pool_refs: &'a PoolRefs,
    name: Option<Arc<str>>,
    /// `None` for the default of the verb.
    missed: Option<MissedRuns>,
    /// `None` to stop, unless the trigger retries.
    on_failure: Option<FailurePolicy>,
    timeout: Option<Duration>,
    /// `None` for the default of the executor.
    warn_after: Option<Duration>,
    gate: Option<Arc<dyn RunGate>>,
    group: Option<Arc<GroupState>>,
}

impl<'a> TaskBuilder<'a> {
    pub(crate) fn new(pool_refs: &'a PoolRefs) -> Self {
        let (name, missed, on_failure, timeout) = (None, None, None, None);
        let (warn_after, gate, group) = (None, None, None);
        Self { pool_refs, name, missed, on_failure, timeout, warn_after, gate, group }
    }

    pub(crate) fn clock(&self) -> &Clock {
        self.pool_refs.pool().clock()
    }

    /// Sets the name of the task, for logs, spans, and [`DrainedTask`](crate::DrainedTask)s. Costs
    /// one more allocation. Several tasks may have the same name.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets what happens to the runs that a periodic task misses; the default is
    /// [`MissedRuns::Burst`], and for [`repeat`](Self::repeat) [`MissedRuns::Coalesce`].
    #[doc(alias = "set_missed_tick_behavior")]
    pub fn missed_runs(mut self, policy: MissedRuns) -> Self {
        self.missed = Some(policy);
        self
    }

    /// Sets what a periodic task does after a run that failed; the default is
    /// [`FailurePolicy::stop`], and for a trigger that [retries](Trigger::retry) [`FailurePolicy::resume`].
    #[doc(alias = "retry")]
    pub fn on_failure(mut self, policy: FailurePolicy) -> Self {
        self.on_failure = Some(policy);
        self
    }

    /// Sets a time limit for the task; without this call it has none. The first task with a time
    /// limit makes its executor start a thread that watches over all of them. Java 25:
    /// `submitWithTimeout`.
    ///
    /// * **A one-shot task** has this much time from the moment it is due, and time that it waits
    ///   for a worker counts. When the time is up, its future ends, with
    ///   [`CancelReason::TimedOut`](crate::CancelReason). If the task is still pending it never
    ///   runs; if it runs, its [token](crate::TaskContext::token) is raised.
    /// * **A periodic task** has this much time for each run. If it is to [stop](FailurePolicy::stop)
    ///   at the first failure, a run that takes longer ends the task in the same way, and the
    ///   [failure handler](crate::Builder::failure_handler) is called. Otherwise such a run has its
    ///   token raised, which is a new one for each run, and has failed when its body has returned, with the
    ///   time limit as the [cause](crate::FailureKind::TimeLimit).
    ///
    /// The limit has precedence: a body that returns at the very moment when its time is up has
    /// timed out, and a one-shot task with a timeout of zero never runs. A task that ends in time
    /// takes its limit with it: nothing stays queued, and nothing of the task stays in memory. (The queue of the
    /// limits keeps a piece of its own memory in reserve.) A limit of `Duration::MAX` never expires.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ScheduledThreadPoolExecutor, with_context};
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let limit = Duration::from_millis(5);
    /// let endless = executor.task().timeout(limit).submit(with_context(|run| {
    ///     run.token().wait(); // until it is raised
    /// }))?;
    /// assert!(endless.join().expect_err("it had five milliseconds").is_timeout());
    /// # executor.close()?;
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias = "submitWithTimeout")]
    #[doc(alias("deadline", "time_limit"))]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets how long a run of the task may take before it is named: by one warning event, and to the
    /// callback for [slow runs](crate::Builder::on_slow_run), each with the place where the task was
    /// scheduled. The run goes on; [`timeout`](Self::timeout) is what ends a task. The default is that of the
    /// [executor](crate::Builder::warn_after), if it has one; `Duration::MAX` is never.
    ///
    /// A run that takes exactly this long is named as well. Costs two allocations for the task, and one for
    /// each run with an entry in the queue of the timer thread, which the first such task starts.
    #[doc(alias = "watchdog")]
    pub fn warn_after(mut self, limit: Duration) -> Self {
        self.warn_after = Some(limit);
        self
    }

    /// Sets a gate, which is asked on the worker before each run of the task whether the run takes place:
    /// see [`gate`](crate::gate). One gate, in an `Arc`, may serve several tasks. A run by hand, as of a
    /// [`DrainedTask`](crate::DrainedTask), does not ask it.
    #[doc(alias("leader_election", "distributed_lock"))]
    pub fn gate(mut self, gate: impl RunGate) -> Self {
        self.gate = Some(Arc::new(gate));
        self
    }

    pub(crate) fn in_group(mut self, group: Arc<GroupState>) -> Self {
        self.group = Some(group);
        self
    }

    /// Submits the task: see [`Handle::execute`](crate::Handle::execute).
    ///
    /// # Errors
    ///
    /// The same as [`Handle::execute`](crate::Handle::execute).
    #[track_caller]
    pub fn execute<F>(self, closure: F) -> Result<(), RejectedExecutionError>
    where
        F: FnOnce() + Send + 'static,
    {
        self.submit(closure).map(drop)
    }

    /// Submits the task: see [`Handle::submit`](crate::Handle::submit).
    ///
    /// # Errors
    ///
    /// The same as [`Handle::submit`](crate::Handle::submit).
    #[track_caller]
    pub fn submit<F, T>(self, closure: F) -> Result<ScheduledFuture<T>, RejectedExecutionError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: TaskOutput + Send + 'static,
    {
        self.schedule(Duration::ZERO, closure)
    }

    /// Submits the task: see [`Handle::schedule`](crate::Handle::schedule).
    ///
    /// # Errors
    ///
    /// The same as [`Handle::schedule`](crate::Handle::schedule).
    #[track_caller]
    pub fn schedule<F, T>(
        self,
        delay: Duration,
        closure: F,
    ) -> Result<ScheduledFuture<T>, RejectedExecutionError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: TaskOutput + Send + 'static,
    {
        self.launch_after(Node::once(closure), delay).map(ScheduledFuture::new)
    }

    /// Submits the task: see [`Handle::schedule_at`](crate::Handle::schedule_at).
    ///
    /// # Errors
    ///
    /// The same as [`Handle::schedule_at`](crate::Handle::schedule_at).
    #[track_caller]
    pub fn schedule_at<F, T>(
        self,
        instant: impl Into<Option<Instant>>,
        closure: F,
    ) -> Result<ScheduledFuture<T>, RejectedExecutionError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: TaskOutput + Send + 'static,
    {
        self.launch_at(Node::once(closure), instant.into()).map(ScheduledFuture::new)
    }

    /// Submits the task: see
    /// [`Handle::schedule_at_fixed_rate`](crate::Handle::schedule_at_fixed_rate).
    ///
    /// # Errors
    ///
    /// The same as [`Handle::schedule_at_fixed_rate`](crate::Handle::schedule_at_fixed_rate).
    #[doc(alias = "scheduleAtFixedRate")]
    #[track_caller]
    pub fn schedule_at_fixed_rate<F, O>(
        self,
        initial_delay: Duration,
        period: Duration,
        closure: F,
    ) -> Result<ScheduledFuture<()>, RejectedExecutionError>
    where
        F: FnMut() -> O + Send + 'static,
        O: UnitOutcome,
    {
        let task = Node::repeated(closure);
        self.launch_periodic(task, initial_delay, period, Period::fixed_rate)
            .map(ScheduledFuture::new)
    }

    /// Submits the task: see
    /// [`Handle::schedule_with_fixed_delay`](crate::Handle::schedule_with_fixed_delay).
    ///
    /// # Errors
    ///
    /// The same as [`Handle::schedule_with_fixed_delay`](crate::Handle::schedule_with_fixed_delay).
    #[doc(alias = "scheduleWithFixedDelay")]
    #[track_caller]
    pub fn schedule_with_fixed_delay<F, O>(
        self,
        initial_delay: Duration,
        delay: Duration,
        closure: F,
    ) -> Result<ScheduledFuture<()>, RejectedExecutionError>
    where
        F: FnMut() -> O + Send + 'static,
        O: UnitOutcome,
    {
        let task = Node::repeated(closure);
        self.launch_periodic(task, initial_delay, delay, Period::fixed_delay)
            .map(ScheduledFuture::new)
    }

    /// Submits the task: see [`Handle::repeat`](crate::Handle::repeat).
    ///
    /// # Errors
    ///
    /// The same as [`Handle::repeat`](crate::Handle::repeat).
    ///
    /// # Panics
    ///
    /// The same as [`Handle::repeat`](crate::Handle::repeat).
    #[track_caller]
    pub fn repeat<G, F, O>(
        self,
        trigger: G,
        body: F,
    ) -> Result<ScheduledFuture<O::Value>, RejectedExecutionError>
    where
        G: Trigger,
        F: FnMut() -> O + Send + 'static,
        O: Outcome,
    {
        self.launch_series(Node::repeated(body), trigger).map(ScheduledFuture::new)
    }
}

impl TaskBuilder<'_> {
    #[track_caller]
    fn launch_after(
        self,
        task: Arc<Task>,
        delay: Duration,
    ) -> Result<TaskRef, RejectedExecutionError> {
        let now = self.clock().read();
        self.launch(task, now, Timing::At(now.after(delay)))
    }

    #[track_caller]
    fn launch_at(
        self,
        task: Arc<Task>,
        instant: Option<Instant>,
    ) -> Result<TaskRef, RejectedExecutionError> {
        let clock = self.clock();
        let now = clock.read();
        // An instant in the past means now: the task queues up behind those that are due already.
        let deadline = match instant {
            Some(instant) => clock.deadline_of(instant).max(now),
            None => Timestamp::NEVER,
        };
        self.launch(task, now, Timing::At(deadline))
    }

    #[track_caller]
    fn launch_periodic(
        self,
        task: Arc<Task>,
        initial_delay: Duration,
        period: Duration,
        kind: fn(Duration, MissedRuns) -> Period,
    ) -> Result<TaskRef, RejectedExecutionError> {
        let now = self.clock().read();
        let period = kind(period, self.missed.unwrap_or(MissedRuns::Burst));
        task.set_plan(Plan::new(period, self.on_failure.unwrap_or_default()));
        self.launch(task, now, Timing::At(now.after(initial_delay)))
    }

    /// Compiled for each type of trigger.
    #[track_caller]
    fn launch_series<G: Trigger>(
        mut self,
        task: Arc<Task>,
        trigger: G,
    ) -> Result<TaskRef, RejectedExecutionError> {
        let policy = self.on_failure;
        // With `stop`, nothing would be tried again.
        let policy = policy.or_else(|| trigger.retries().then(FailurePolicy::resume));
        self.on_failure = policy;
        let clock = self.clock();
        let (now, missed) = (clock.read(), self.missed.unwrap_or(MissedRuns::Coalesce));
        let shared = self.gate.as_ref().map(|_| SharedName { name: self.name.as_deref() });
        match contain(|| Period::of(trigger, missed, shared, clock, now)) {
            Ok((period, first)) => {
                task.set_plan(Plan::new(period, policy.unwrap_or_default()));
                self.launch(task, now, first.into())
            }
            Err(payload) => resume_unwind(task, payload),
        }
    }

    /// Gives a task its settings and submits it.
    #[inline(never)]
    #[track_caller]
    fn launch(
        self,
        task: Arc<Task>,
        now: Timestamp,
        timing: Timing,
    ) -> Result<TaskRef, RejectedExecutionError> {
        let deadline = timing.due();
        let pool_ref = self.pool_refs.local();
        let (is_periodic, traits) = (task.is_periodic(), task.traits());
        let is_on_wall = traits.is_estimated;
        // First: the wrapper that limits the runs of a periodic task needs the timer thread's queue.
        let (_joining, refusal) = join(pool_ref, self.group.as_ref());
        let staffed = match traits.refusal.or(refusal) {
            Some(reason) => Err(reason),
            None => ensure_threads(pool_ref, self.timeout, is_on_wall),
        };
        let budget = self.timeout.filter(|_| !is_periodic);
        let listened_to = trace::is_listening().then(|| self.name.clone());
        let group = self.group.clone();
        if let Err(payload) = self.extend(&*task, traits.has_trigger, now, deadline) {
            resume_unwind(task, payload);
        }
        // Not earlier: the error hands a refused task back, which needs its wrapper as well.
        let is_staffed = match staffed {
            Ok(is_staffed) => is_staffed,
            Err(reason) => return Err(pool_ref.refuse(task, now, deadline, reason)),
        };
        let admitted = pool_ref.admit(task.clone(), now, timing, is_staffed);
        if group.is_some() {
            enter_or_leave_group(pool_ref.pool(), &task, &admitted, (now, deadline));
        }
        let ticket = match admitted.or_else(NotQueued::ticket) {
            Ok(ticket) => ticket,
            Err(refused) => return end_or_error(task, pool_ref, refused),
        };
        if let Some(budget) = budget {
            pool_ref.set_timeout(task.clone(), ticket, deadline.after(budget));
        }
        if is_on_wall {
            pool_ref.pool().follow_wall(&*task, ticket);
        }
        if let Some(name) = listened_to {
            trace::scheduled(ticket.sequence, name.as_deref(), deadline.since(now));
        }
        Ok(TaskRef::new(task, pool_ref.clone(), ticket))
    }

    /// Gives a task what only some tasks have.
    ///
    /// # Errors
    ///
    /// The panic of the executor's decorator.
    #[track_caller]
    fn extend(
        self,
        task: &Task,
        has_trigger: bool,
        now: Timestamp,
        deadline: Timestamp,
    ) -> Result<(), PanicPayload> {
        let pool_ref = self.pool_refs.local();
        let is_periodic = task.is_periodic();
        let wrapper = self.wrapper(is_periodic, pool_ref, (now, deadline), Location::caller())?;
        let observation = pool_ref.pool().observation(self.name.as_ref(), self.group.as_ref());
        let Self { name, gate, group, timeout, .. } = self;
        let is_extended = name.is_some() || wrapper.is_some() || observation.is_any();
        if is_extended || has_trigger || gate.is_some() || group.is_some() {
            task.extend(|extras| {
                extras.name = name;
                let layers = &mut extras.layers;
                layers.add_if(has_trigger.then_some(OnWall));
                layers.add_if(group.map(Membership::new));
                layers.add_if(gate.map(Gated::new));
                layers.add_if(wrapper.map(Wrapped::new));
                layers.add_if(Some(observation).filter(Observation::is_any));
            });
        }
        if let Some(budget) = timeout.filter(|_| !is_periodic) {
            task.limit(deadline, budget);
        }
        Ok(())
    }
}

impl std::fmt::Debug for TaskBuilder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TaskBuilder")
            .field("name", &self.name)
            .field("missed_runs", &self.missed)
            .field("on_failure", &self.on_failure)
            .field("timeout", &self.timeout)
            .field("warn_after", &self.warn_after)
            .field("gate", &self.gate.is_some())
            .field("group", &self.group.as_ref().map(|group| group.name()))
            .finish_non_exhaustive()
    }
}

/// Submits a task of which nothing is said but what it runs, in a pool that adds nothing to a task. It is the
/// ordinary way, and so it makes no detour over a builder.
#[inline]
#[track_caller]
pub(crate) fn schedule<F, T>(
    pool_refs: &PoolRefs,
    delay: Duration,
    closure: F,
) -> Result<ScheduledFuture<T>, RejectedExecutionError>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    submit(pool_refs, Node::once(closure), delay).map(ScheduledFuture::new)
}

/// As [`schedule`], for a task at once, without a future.
#[inline]
#[track_caller]
pub(crate) fn execute<F>(pool_refs: &PoolRefs, closure: F) -> Result<(), RejectedExecutionError>
where
    F: FnOnce() + Send + 'static,
{
    submit_unawaited(pool_refs, Node::once(closure))
}

#[inline(never)]
#[track_caller]
fn submit(
    pool_refs: &PoolRefs,
    task: Arc<Task>,
    delay: Duration,
) -> Result<TaskRef, RejectedExecutionError> {
    let pool_ref = pool_refs.local();
    let now = pool_ref.pool().clock().read();
    let deadline = now.after(delay);
    if !admits_at_once(pool_ref.pool()) {
        return TaskBuilder::new(pool_refs).launch(task, now, Timing::At(deadline));
    }
    let admitted = pool_ref.admit(task.clone(), now, Timing::At(deadline), true);
    match admitted.or_else(NotQueued::ticket) {
        Ok(ticket) => Ok(TaskRef::new(task, pool_ref.clone(), ticket)),
        Err(refused) => end_or_error(task, pool_ref, refused),
    }
}

#[inline(never)]
#[track_caller]
fn submit_unawaited(pool_refs: &PoolRefs, task: Arc<Task>) -> Result<(), RejectedExecutionError> {
    let pool_ref = pool_refs.local();
    let now = pool_ref.pool().clock().read();
    if !admits_at_once(pool_ref.pool()) {
        return TaskBuilder::new(pool_refs).launch(task, now, Timing::At(now)).map(drop);
    }
    match pool_ref.admit(task, now, Timing::At(now), true).or_else(NotQueued::ticket) {
        Ok(_) => Ok(()),
        // As in `end_or_error`.
        Err(refused) if refused.task().is_done() => Ok(()),
        Err(refused) => Err(refused),
    }
}

/// Returns `true` if a plain task can go straight into the queue: there is a worker for it, and nobody
/// else has a say in it or is told of it.
#[inline]
fn admits_at_once(pool: &Pool) -> bool {
    pool.is_staffed() && !pool.extends_submissions() && !trace::is_listening()
}

/// Returns a task that was refused when it had ended already, or else the error.
#[cold]
fn end_or_error(
    task: Arc<Task>,
    pool_ref: &PoolRef,
    refused: RejectedExecutionError,
) -> Result<TaskRef, RejectedExecutionError> {
    refused.task().leave_group();
    if !refused.task().is_done() {
        return Err(refused);
    }
    // It was in the queue for a moment (see `rescue` in `pool::admission`), and somebody cancelled it
    // there. So it has ended, which a future can say and an error cannot.
    let ticket = Ticket::without_slot(refused.task().id().0);
    Ok(TaskRef::new(task, pool_ref.clone(), ticket))
}

/// Ensures that a worker will run the task, that the timer thread watches over its time limit, and that the
/// wall clock is watched for a task that waits for it. Returns `false` if a worker is missing that could
/// not be started, and the pool does without it.
#[inline]
fn ensure_threads(
    pool_ref: &PoolRef,
    timeout: Option<Duration>,
    is_on_wall: bool,
) -> Result<bool, RejectionReason> {
    let pool = pool_ref.pool();
    let is_staffed = pool.ensure_worker().map_err(|error| not_started(pool, error))?;
    if timeout.is_some() {
        pool.ensure_timer_thread().map_err(|error| not_started(pool, error))?;
    }
    if is_on_wall {
        pool.ensure_wall_watcher().map_err(|error| not_started(pool, error))?;
    }
    Ok(is_staffed)
}

/// Counts a submission for which no thread could be started.
#[cold]
fn not_started(pool: &Pool, error: io::Error) -> RejectionReason {
    pool.count_rejected();
    RejectionReason::Spawn(error)
}

/// Goes on with the panic of user code in a submission. What the task holds is dropped first: its drop may panic
/// as well, and the submitter holds the task, too.
#[cold]
fn resume_unwind(task: Arc<Task>, payload: PanicPayload) -> ! {
    let _ = task.cancel(CancelReason::Rejected, Drops::UNREPORTED);
    discard(task);
    panic::resume_unwind(payload)
}
