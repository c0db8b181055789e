//! One run of a task: which run of which task it is, and what the running task can see of it.
//!
//! While a task runs, its [`Run`] can be reached through a thread-local, for the length of the call
//! and no longer. `scoped-tls` stores a plain reference for a scope, so entering a run touches no
//! reference count. After a run inside a run, as by `DrainedTask::run`, the outer one is current
//! again, also after unwinding. Nothing is copied until somebody asks.
//!
//! A run consists of facts. It knows neither hooks nor wrappers; those are called around it by
//! [`Invocation`](super::hooks::Invocation).

use std::{
    cell::Cell,
    fmt,
    rc::Rc,
    time::{Duration, Instant},
};

use super::{
    Job, Runnable,
    control::{Change, ChooseDeadline, Moved},
    failure::FailedRun,
    gated::Held,
    worker_context::WorkerContext,
};
#[cfg(feature = "histograms")]
use crate::histogram::Recorders;
use crate::{
    CancellationToken, Failure, TaskId,
    gate::Lease,
    statistics::{Ended, WorkerStats},
    sync::{Arc, scoped_thread_local},
    time::{Clock, Timestamp},
    trace,
    trigger::Trigger,
};

scoped_thread_local!(static CURRENT: Run);

/// One run of one task.
#[cfg_attr(any(shuttle, loom), derive(Clone))]
pub(crate) struct Run {
    worker: Rc<WorkerContext>,
    task: Arc<dyn Runnable>,
    id: u64,
    planned: Cell<Timestamp>,
    started: Cell<Timestamp>,
    number: Cell<u64>,
    missed: Cell<u64>,
    /// How many of the missed runs the statistics know already.
    counted: Cell<u64>,
    /// How many runs in a row have failed, this one included; zero if this one has not.
    failures: Cell<u32>,
    /// 1 plus how many runs in a row had failed before this one.
    attempt: Cell<u32>,
}

impl Run {
    pub(crate) fn new(
        worker: Rc<WorkerContext>,
        task: Arc<dyn Runnable>,
        id: u64,
        planned: Timestamp,
        started: Timestamp,
    ) -> Self {
        let (number, missed, failures) = (Cell::new(1), Cell::new(0), Cell::new(0));
        let (planned, started, counted) = (Cell::new(planned), Cell::new(started), Cell::new(0));
        let attempt = Cell::new(1);
        Self { worker, task, id, planned, started, number, missed, counted, failures, attempt }
    }

    pub(crate) fn task(&self) -> &Arc<dyn Runnable> {
        &self.task
    }

    /// Records which run of which job this is, before the job runs.
    #[inline]
    pub(super) fn begin(&self, job: &impl Job, name: Option<Arc<str>>) {
        self.stats().begin(self.id, name);
        self.number.set(job.runs() + 1);
        self.attempt.set(job.failures().saturating_add(1));
        self.missed.set(job.missed(self.planned(), self.started()));
        self.counted.set(job.counted());
    }

    /// Records for which moment the run was planned, if it was put off since.
    pub(super) fn plan_for(&self, planned: Timestamp) {
        self.planned.set(planned);
    }

    /// Records that the run starts only now, if it does: its gate had to be asked.
    pub(super) fn starts_now(&self) {
        self.started.set(self.clock().read());
    }

    /// Has the run recorded with the moments that it has now, and not with those at which it was taken.
    pub(super) fn has_passed(&self) {
        #[cfg(feature = "histograms")]
        self.worker.passed.set(Some((self.planned(), self.started())));
    }

    /// Keeps what the run holds of its gate.
    pub(super) fn hold(&self, held: Held) {
        debug_assert!(!self.is_leased(), "a worker has one run at a time");
        *self.worker.held.borrow_mut() = Some(held);
    }

    /// Returns `true` if the run holds a lease.
    pub(super) fn is_leased(&self) -> bool {
        self.worker.held.borrow().is_some()
    }

    /// Takes the task's token, if the run holds a lease: it then has one of its own.
    pub(super) fn replace_token(&self, token: &mut Option<CancellationToken>) {
        if let Some(held) = &mut *self.worker.held.borrow_mut() {
            held.replaced = token.take();
        }
    }

    /// Returns what the run has held of its gate.
    pub(super) fn release_hold(&self) -> Option<Held> {
        self.worker.held.borrow_mut().take()
    }

    /// Has the run recorded apart, if there is a place for that.
    #[cfg(feature = "histograms")]
    pub(super) fn record_in(&self, recorders: Option<&Arc<Recorders>>) {
        self.worker.record_in(recorders);
    }

    /// Calls `part`, which is not the body, as the thread's current run.
    pub(super) fn scoped<R>(&self, part: impl FnOnce() -> R) -> R {
        CURRENT.set(self, part)
    }

    /// Records that so many runs more were missed before this one.
    pub(super) fn add_missed(&self, runs: u64) {
        self.missed.set(self.missed.get().saturating_add(runs));
    }

    /// Calls `body` in the tracing span of this run, and as the thread's current run.
    #[inline]
    pub(super) fn enter<R>(&self, body: impl FnOnce() -> R) -> R {
        let fields = || trace::SpanFields {
            id: self.id,
            name: self.task.name(),
            run: self.number.get(),
            lateness: self.lateness(),
            submitter: self.task.submitter(),
            is_periodic: self.task.is_periodic(),
        };
        let run_time = || self.clock().read().since(self.started());
        trace::in_span(fields, run_time, || CURRENT.set(self, body))
    }

    pub(super) fn stats(&self) -> &WorkerStats {
        &self.worker.stats
    }

    /// Counts this run, and the end of its task if it was the last.
    #[inline]
    pub(super) fn count(&self, failed: bool, ended: Option<Ended>) {
        self.stats().count(failed, self.uncounted(), ended);
    }

    /// Counts the end of the task, and this run if it `is_run` that ends with it.
    #[inline]
    pub(super) fn count_end(&self, is_run: bool, failed: bool, ended: Ended) {
        if is_run {
            self.count(failed, Some(ended));
        } else {
            self.stats().count_ended(ended);
        }
    }

    pub(super) fn keeps_limits(&self) -> bool {
        self.worker.keeps_limits
    }

    /// Returns what a report says of this run.
    pub(super) fn subject(&self) -> Subject {
        Subject { id: Some(self.id), name: self.task.name(), run: Some(self.number.get()) }
    }

    /// Records that this run has failed, and is the last of `in_a_row` that have.
    pub(super) fn note_failure(&self, in_a_row: u32) {
        self.failures.set(in_a_row);
    }

    /// Returns what is kept of this run, which has failed with `panic`.
    pub(super) fn failure(&self, panic: &Failure) -> FailedRun {
        let (run_number, in_a_row) = (self.number.get(), self.failures.get());
        FailedRun { run_number, in_a_row, message: panic.message().into() }
    }

    /// Returns what the user can see of this run.
    pub(super) fn context(&self) -> TaskContext {
        TaskContext {
            task: Arc::clone(&self.task),
            stop: self.stop(),
            lease: self.worker.held.borrow().as_ref().map(|held| Arc::clone(&held.lease)),
            id: TaskId(self.id),
            number: self.number.get(),
            attempt: self.attempt.get(),
            missed: self.missed.get(),
            planned: self.planned(),
            lateness: self.lateness(),
        }
    }

    /// Returns the parent of the task's token.
    pub(super) fn stop(&self) -> CancellationToken {
        let held = self.worker.held.borrow();
        held.as_ref().map_or(&self.worker.stop, |held| &held.token).clone()
    }

    /// Returns `true` if the tasks of this worker have been asked to stop.
    pub(super) fn is_stopped(&self) -> bool {
        self.worker.stop.is_cancelled()
    }

    pub(super) fn number(&self) -> u64 {
        self.number.get()
    }

    /// Returns how many runs were missed before this one of which the statistics do not know.
    #[inline]
    pub(super) fn uncounted(&self) -> u64 {
        self.missed.get().saturating_sub(self.counted.get())
    }

    fn lateness(&self) -> Duration {
        self.started().since(self.planned())
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    pub(super) fn planned(&self) -> Timestamp {
        self.planned.get()
    }

    pub(super) fn started(&self) -> Timestamp {
        self.started.get()
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.worker.clock
    }

    /// Returns the innermost run that the calling thread is in.
    pub(crate) fn current() -> Option<CurrentRun> {
        let current = |run: &Self| CurrentRun {
            task: Arc::clone(&run.task),
            id: run.id,
            number: run.number.get(),
            started: run.started(),
            stop: run.stop(),
        };
        CURRENT.is_set().then(|| CURRENT.with(current))
    }

    /// Tells the task that the calling thread is running that its body begins, for the
    /// [calls](super::calls) that wait for it.
    pub(crate) fn body_begins() {
        if CURRENT.is_set() {
            CURRENT.with(|run| {
                let mut move_entry = |_, _: &mut ChooseDeadline<'_>| Moved::Absent;
                let change = Change::Begin(run.clock().read());
                let _ = run.task.control(change, run.clock(), &mut move_entry);
            });
        }
    }

    /// Returns `true` if the calling thread is running a task, of whichever executor.
    pub(crate) fn is_any() -> bool {
        CURRENT.is_set()
    }

    /// Returns `true` if `task` is the innermost task that the calling thread is running.
    pub(crate) fn is_of(task: &Arc<dyn Runnable>) -> bool {
        CURRENT.is_set() && CURRENT.with(|run| Arc::ptr_eq(&run.task, task))
    }
}

/// A run that is under way, as the guard of its time limit sees it. Unlike a [`Run`], it can be
/// sent to another thread.
#[derive(Clone)]
pub(crate) struct CurrentRun {
    pub(crate) task: Arc<dyn Runnable>,
    pub(crate) id: u64,
    /// Which run of the task it is, 1 for the first.
    pub(crate) number: u64,
    pub(crate) started: Timestamp,
    /// The parent of the task's token.
    pub(crate) stop: CancellationToken,
}

impl CurrentRun {
    /// Returns what a report says of this run.
    pub(crate) fn subject(&self) -> Subject {
        Subject { id: Some(self.id), name: self.task.name(), run: Some(self.number) }
    }
}

/// Which task, and which run of it, a report is about.
#[derive(Debug, Default)]
pub(crate) struct Subject {
    pub(crate) id: Option<u64>,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) run: Option<u64>,
}

/// Returns the task that the calling thread is running, or `None` outside of any task. A body that takes
/// it as an argument is made by [`with_context`](crate::with_context).
///
/// Does not block, and does not panic. Costs a thread-local access and two reference counts.
///
/// ```
/// use std::time::Duration;
/// use punctual::{ScheduledThreadPoolExecutor, current_task};
///
/// let executor = ScheduledThreadPoolExecutor::new(1);
/// let number = executor.submit(|| current_task().map(|task| task.run_number()))?;
/// assert_eq!(number.join()?, Some(1));
/// assert!(current_task().is_none());
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[doc(alias("task_local", "try_id"))]
#[must_use]
pub fn current_task() -> Option<TaskContext> {
    if !CURRENT.is_set() {
        return None;
    }
    CURRENT.with(|run| Some(run.context()))
}

/// A running task, as it sees itself; from [`current_task`], and the argument of the hooks around a
/// run.
#[derive(Clone)]
pub struct TaskContext {
    task: Arc<dyn Runnable>,
    stop: CancellationToken,
    lease: Option<Arc<dyn Lease>>,
    id: TaskId,
    number: u64,
    attempt: u32,
    missed: u64,
    planned: Timestamp,
    lateness: Duration,
}

impl TaskContext {
    /// Returns the id of the task, the same for all its runs.
    #[must_use]
    pub fn id(&self) -> TaskId {
        self.id
    }

    /// Returns the name that [`TaskBuilder::name`](crate::TaskBuilder::name) has given the task.
    #[must_use]
    pub fn name(&self) -> Option<Arc<str>> {
        self.task.name()
    }

    /// Returns which run this is: 1 for the first, and always 1 for a one-shot task.
    #[must_use]
    pub fn run_number(&self) -> u64 {
        self.number
    }

    /// Returns 1 plus the number of runs just before this one that have failed in a row: which attempt it is, if
    /// failed runs are [tried again](crate::Handle::retry).
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Returns how many runs were left out just before this one, by the
    /// [`MissedRuns`](crate::MissedRuns) policy of the task. Only a fixed rate and triggers that
    /// [count](crate::Trigger::between) know that; a calendar counts up to a thousand.
    #[must_use]
    pub fn missed_runs(&self) -> u64 {
        self.missed
    }

    /// Returns the moment for which this run was planned; `None` if no [`Instant`] can represent it.
    #[must_use]
    pub fn planned(&self) -> Option<Instant> {
        self.stop.clock().instant_of(self.planned)
    }

    /// Returns how long after that moment the run started.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor, with_context};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let second = Duration::from_secs(1);
    /// let lateness = executor.schedule(second, with_context(|run| run.lateness()))?;
    /// clock.advance(3 * second);
    /// assert_eq!(lateness.join()?, 2 * second);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias = "latency")]
    #[must_use]
    pub fn lateness(&self) -> Duration {
        self.lateness
    }

    /// Returns the token that is raised when this task is asked to stop. Java: the interrupt status
    /// of the thread, but of the task alone.
    ///
    /// The token belongs to the task, not to the run: once anyone has raised it, the task does
    /// not run again. So a periodic task can end itself by raising its own token. Its future is then
    /// cancelled, as [requested](crate::CancelReason::Requested), when the run has returned. A
    /// periodic task with a [time limit](crate::TaskBuilder::timeout) has a new token for each run,
    /// and goes on, if its policy says so, after the limit has raised one; so has a run under a
    /// [lease](crate::gate::Lease).
    ///
    /// Allocates at the first call for a task. Does not block.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ScheduledThreadPoolExecutor, trigger::every, with_context};
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let countdown = executor.repeat(every(Duration::from_millis(1)), with_context(|run| {
    ///     if run.run_number() == 3 {
    ///         run.token().cancel(); // the third run is the last
    ///     }
    /// }))?;
    /// assert!(countdown.join().expect_err("it ended itself").is_cancelled());
    /// assert_eq!(executor.statistics().runs, 3);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[must_use]
    pub fn token(&self) -> CancellationToken {
        self.task.token(&self.stop)
    }

    /// Returns the [fence](crate::gate::Lease::fence) of the lease that the task's
    /// [gate](crate::TaskBuilder::gate) has handed out for this run; `None` without a lease, and if the
    /// lease has no fence.
    #[must_use]
    pub fn fence(&self) -> Option<u64> {
        self.lease.as_ref().and_then(|lease| lease.fence())
    }

    /// Returns `true` if the lease of this run is [lost](crate::gate::Lease::is_lost), as far as is known;
    /// `false` without a lease. A lease that is lost also raises the [token](Self::token).
    #[must_use]
    pub fn is_lease_lost(&self) -> bool {
        self.lease.as_ref().is_some_and(|lease| lease.is_lost())
    }

    /// Has the periodic task run next after `delay`, counted from now; see
    /// [`ScheduledFuture::reschedule`](crate::ScheduledFuture::reschedule). Returns `false` for a
    /// one-shot task, and if this is not called by the task, in its run.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor, trigger::every, with_context};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let second = Duration::from_secs(1);
    /// let poll = executor.repeat(every(second), with_context(move |run| {
    ///     run.reschedule(60 * second); // nothing is expected for a minute
    /// }))?;
    /// clock.run_until_idle();
    /// assert_eq!(poll.delay(), Some(60 * second));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[allow(clippy::must_use_candidate, reason = "it is done for what it does")]
    pub fn reschedule(&self, delay: Duration) -> bool {
        self.change(|clock| Some(Change::At(clock.read().after(delay))))
    }

    /// Gives the periodic task another schedule; see
    /// [`ScheduledFuture::set_trigger`](crate::ScheduledFuture::set_trigger). Returns `false` also if
    /// this is not called by the task, in its run.
    ///
    /// # Panics
    ///
    /// If the trigger panics.
    #[allow(clippy::must_use_candidate, reason = "it is done for what it does")]
    pub fn set_trigger(&self, trigger: impl Trigger) -> bool {
        let task = Arc::clone(&self.task);
        self.change(|clock| Change::schedule(trigger, &*task, clock))
    }

    /// Pauses the periodic task after this run; see
    /// [`ScheduledFuture::pause`](crate::ScheduledFuture::pause). Returns `false` also if this is not
    /// called by the task, in its run.
    #[allow(clippy::must_use_candidate, reason = "it is done for what it does")]
    pub fn pause(&self) -> bool {
        self.change(|_| Some(Change::Pause))
    }

    /// Changes the task whose run the calling thread is in. Only there it is known that the task has no
    /// entry in a queue, which this could not move.
    fn change(&self, change: impl FnOnce(&Clock) -> Option<Change>) -> bool {
        if !Run::is_of(&self.task) {
            return false;
        }
        CURRENT.with(|run| {
            let Some(change) = change(run.clock()) else { return false };
            let mut move_entry = |_, _: &mut ChooseDeadline<'_>| Moved::Absent;
            self.task.control(change, run.clock(), &mut move_entry).had_effect
        })
    }
}

impl fmt::Debug for TaskContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskContext")
            .field("id", &self.id)
            .field("name", &self.name())
            .field("run_number", &self.number)
            .field("missed_runs", &self.missed)
            .field("lateness", &self.lateness)
            .finish_non_exhaustive()
    }
}
