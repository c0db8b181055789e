//! Submission: where a closure becomes a task, and a task is handed to the pool.

use std::time::{Duration, Instant};

use crate::{
    MissedRuns, Rejected, RejectedExecutionError, ScheduledFuture,
    pool::Ports,
    sync::Arc,
    task::{Job, OneShot, Periodic, Task},
    time::Deadline,
    trace,
    unwind::discard,
};

/// Describes a task before it is submitted; from [`Handle::task`](crate::Handle::task).
///
/// The verbs are the executor's own, each with a `try_` form that gives the closure back when
/// the task is not accepted.
///
/// ```
/// use std::time::Duration;
/// use punctual::{MissedRuns, ScheduledThreadPoolExecutor};
///
/// let executor = ScheduledThreadPoolExecutor::new(1);
/// executor.task().name("greeting").schedule(Duration::from_millis(1), || println!("hello"))?;
/// executor
///     .task()
///     .name("flush")
///     .missed_runs(MissedRuns::Coalesce)
///     .schedule_at_fixed_rate(Duration::ZERO, Duration::from_secs(5), || { /* flush */ })?;
///
/// executor.shutdown();
/// let refused = executor.task().try_submit(|| "not lost").expect_err("it was shut down");
/// assert_eq!(refused.into_closure()(), "not lost");
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[derive(Clone)]
#[must_use = "nothing is submitted until one of the verbs is called"]
pub struct TaskBuilder<'a> {
    ports: &'a Ports,
    name: Option<Arc<str>>,
    missed: MissedRuns,
}

/// The result of the `try_` verbs that give a future.
type Tried<T, F> = Result<ScheduledFuture<T>, Rejected<F>>;

impl<'a> TaskBuilder<'a> {
    pub(crate) fn new(ports: &'a Ports) -> Self {
        Self { ports, name: None, missed: MissedRuns::default() }
    }

    /// Names the task, for logs, spans, and [`PendingTask`](crate::PendingTask)s. Costs one
    /// allocation more; names need not differ.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// What becomes of the runs that a fixed-rate task misses; [`MissedRuns::Burst`] unless set.
    pub fn missed_runs(mut self, policy: MissedRuns) -> Self {
        self.missed = policy;
        self
    }

    /// See [`Handle::execute`](crate::Handle::execute).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn execute<F>(self, closure: F) -> Result<(), RejectedExecutionError>
    where
        F: FnOnce() + Send + 'static,
    {
        self.try_execute(closure).map_err(without_closure)
    }

    /// See [`Handle::execute`](crate::Handle::execute).
    ///
    /// # Errors
    ///
    /// As there, with the closure.
    pub fn try_execute<F>(self, closure: F) -> Result<(), Rejected<F>>
    where
        F: FnOnce() + Send + 'static,
    {
        self.try_submit(closure).map(drop)
    }

    /// See [`Handle::submit`](crate::Handle::submit).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn submit<F, T>(self, closure: F) -> Result<ScheduledFuture<T>, RejectedExecutionError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.try_submit(closure).map_err(without_closure)
    }

    /// See [`Handle::submit`](crate::Handle::submit).
    ///
    /// # Errors
    ///
    /// As there, with the closure.
    pub fn try_submit<F, T>(self, closure: F) -> Tried<T, F>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.try_schedule(Duration::ZERO, closure)
    }

    /// See [`Handle::schedule`](crate::Handle::schedule).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn schedule<F, T>(
        self,
        delay: Duration,
        closure: F,
    ) -> Result<ScheduledFuture<T>, RejectedExecutionError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.try_schedule(delay, closure).map_err(without_closure)
    }

    /// See [`Handle::schedule`](crate::Handle::schedule).
    ///
    /// # Errors
    ///
    /// As there, with the closure.
    pub fn try_schedule<F, T>(self, delay: Duration, closure: F) -> Tried<T, F>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let now = self.ports.pool().clock().now();
        self.launch(OneShot(closure), now, now.after(delay), |job| job.0)
    }

    /// See [`Handle::schedule_at`](crate::Handle::schedule_at).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn schedule_at<F, T>(
        self,
        instant: Instant,
        closure: F,
    ) -> Result<ScheduledFuture<T>, RejectedExecutionError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.try_schedule_at(instant, closure).map_err(without_closure)
    }

    /// See [`Handle::schedule_at`](crate::Handle::schedule_at).
    ///
    /// # Errors
    ///
    /// As there, with the closure.
    pub fn try_schedule_at<F, T>(self, instant: Instant, closure: F) -> Tried<T, F>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let clock = self.ports.pool().clock();
        let now = clock.now();
        // What is past is due now, and takes its turn with what else is due now.
        let deadline = clock.deadline_of(instant).max(now);
        self.launch(OneShot(closure), now, deadline, |job| job.0)
    }

    /// See [`Handle::schedule_at_fixed_rate`](crate::Handle::schedule_at_fixed_rate).
    ///
    /// # Errors
    ///
    /// As there.
    #[doc(alias = "scheduleAtFixedRate")]
    pub fn schedule_at_fixed_rate<F>(
        self,
        initial_delay: Duration,
        period: Duration,
        closure: F,
    ) -> Result<ScheduledFuture<()>, RejectedExecutionError>
    where
        F: FnMut() + Send + 'static,
    {
        self.try_schedule_at_fixed_rate(initial_delay, period, closure).map_err(without_closure)
    }

    /// See [`Handle::schedule_at_fixed_rate`](crate::Handle::schedule_at_fixed_rate).
    ///
    /// # Errors
    ///
    /// As there, with the closure.
    pub fn try_schedule_at_fixed_rate<F>(
        self,
        initial_delay: Duration,
        period: Duration,
        closure: F,
    ) -> Tried<(), F>
    where
        F: FnMut() + Send + 'static,
    {
        let missed = self.missed;
        self.repeat(initial_delay, period, closure, |closure| {
            Periodic::at_fixed_rate(closure, period, missed)
        })
    }

    /// See [`Handle::schedule_with_fixed_delay`](crate::Handle::schedule_with_fixed_delay).
    ///
    /// # Errors
    ///
    /// As there.
    #[doc(alias = "scheduleWithFixedDelay")]
    pub fn schedule_with_fixed_delay<F>(
        self,
        initial_delay: Duration,
        delay: Duration,
        closure: F,
    ) -> Result<ScheduledFuture<()>, RejectedExecutionError>
    where
        F: FnMut() + Send + 'static,
    {
        self.try_schedule_with_fixed_delay(initial_delay, delay, closure).map_err(without_closure)
    }

    /// See [`Handle::schedule_with_fixed_delay`](crate::Handle::schedule_with_fixed_delay).
    ///
    /// # Errors
    ///
    /// As there, with the closure.
    pub fn try_schedule_with_fixed_delay<F>(
        self,
        initial_delay: Duration,
        delay: Duration,
        closure: F,
    ) -> Tried<(), F>
    where
        F: FnMut() + Send + 'static,
    {
        self.repeat(initial_delay, delay, closure, |closure| {
            Periodic::with_fixed_delay(closure, delay)
        })
    }

    fn repeat<F>(
        self,
        initial_delay: Duration,
        period: Duration,
        closure: F,
        job: impl FnOnce(F) -> Periodic<F>,
    ) -> Tried<(), F>
    where
        F: FnMut() + Send + 'static,
    {
        if period.is_zero() {
            return Err(Rejected { error: RejectedExecutionError::ZeroPeriod, closure });
        }
        let now = self.ports.pool().clock().now();
        self.launch(job(closure), now, now.after(initial_delay), Periodic::into_body)
    }

    /// Hands a job to the pool. If that is refused `closure_of` takes the closure out again.
    fn launch<J: Job, F>(
        self,
        job: J,
        now: Deadline,
        deadline: Deadline,
        closure_of: impl FnOnce(J) -> F,
    ) -> Tried<J::Output, F> {
        let port = self.ports.here();
        if let Err(error) = port.ensure_worker() {
            let error = RejectedExecutionError::Spawn(error);
            return Err(Rejected { error, closure: closure_of(job) });
        }
        let listened_to = trace::is_listening().then(|| self.name.clone());
        let task = Arc::new(Task::new(job, self.name));
        match port.admit(port.stripe(), task.clone(), now, deadline) {
            Ok(ticket) => {
                if let Some(name) = listened_to {
                    trace::scheduled(ticket.sequence, name.as_deref(), deadline.since(now));
                }
                Ok(ScheduledFuture::new(task, Arc::clone(port), ticket))
            }
            Err(error) => match task.reclaim() {
                Some(job) => Err(Rejected { error, closure: closure_of(job) }),
                None => unreachable!("a task that was refused has been started"),
            },
        }
    }
}

/// Drops the closure of a refused task; a capture that panics then does not hide the reason.
fn without_closure<F>(rejected: Rejected<F>) -> RejectedExecutionError {
    let Rejected { error, closure } = rejected;
    discard(closure);
    error
}

impl std::fmt::Debug for TaskBuilder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TaskBuilder")
            .field("name", &self.name)
            .field("missed_runs", &self.missed)
            .finish_non_exhaustive()
    }
}
