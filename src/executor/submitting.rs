//! The verbs that submit. Each is the short form of the one on [`TaskBuilder`], which is where
//! closures become tasks.

use std::{error::Error, time::Duration};

use super::Handle;
use crate::{
    Backoff, Outcome, RejectedExecutionError, ScheduledFuture, TaskBuilder, TaskOutput, Trigger,
    sync::Arc, task_builder, trigger::Due,
};

impl TaskBuilder<'_> {
    /// Returns a handle of the executor that the task is for: code that is passed a builder reads its
    /// [clock](Handle::clock) there, or whether it was shut down. Costs one reference count.
    pub fn handle(&self) -> Handle {
        Handle { pool_refs: Arc::clone(self.pool_refs) }
    }
}

impl Handle {
    /// Runs the closure as soon as a worker is free. Returns no future: the caller does not learn when it has
    /// ended, and a panic is only [reported](crate::Builder::failure_handler).
    /// [Blocks](Self#when-a-submission-blocks-and-what-it-costs) only while a worker is started, or if the
    /// [handler](crate::RejectedExecutionHandler) for rejected tasks does. Java: `execute`.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let (tell, told) = mpsc::channel();
    /// executor.execute(move || tell.send("done").unwrap_or(()))?;
    /// assert_eq!(told.recv()?, "done");
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`RejectedExecutionError`] if the executor was shut down, has no
    /// [capacity](crate::Builder::max_pending) left, or has no worker and cannot start one. The error owns
    /// the task, and [returns it](RejectedExecutionError::into_task).
    #[doc(alias("spawn", "fire_and_forget"))]
    #[track_caller]
    pub fn execute(
        &self,
        closure: impl FnOnce() + Send + 'static,
    ) -> Result<(), RejectedExecutionError> {
        task_builder::execute(&self.pool_refs, closure)
    }

    /// Runs the closure as soon as a worker is free, and returns a future for its result. Blocks as `execute`
    /// does. Java: `submit`.
    ///
    /// ```
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(2);
    /// let length = executor.submit(|| "punctual".len())?;
    /// assert_eq!(length.join()?, 8);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`execute`](Self::execute).
    ///
    /// An `Err` that the closure returns is a result like any other. If the future is dropped it is
    /// [reported](crate::ScheduledFuture#a-result-that-is-an-err) as a panic is.
    ///
    /// # Async closures
    ///
    /// The executor is not an async runtime, and polls no future. A closure that returns a future, as `||
    /// async { … }` and `async || { … }` do, has ended when it has made the future, whose body would never
    /// run. So the compiler refuses it here, and in every verb that returns a result ([`TaskOutput`]), and
    /// says what to write; [`execute`](Self::execute) and the periodic verbs take no such closure either.
    ///
    /// ```compile_fail,E0277
    /// # let executor = punctual::ScheduledThreadPoolExecutor::new(1);
    /// executor.submit(|| async { println!("never printed") })?; // an error: a future
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// Block on the future inside the closure (`|| smol::block_on(async { 6 * 7 })`, or tokio's
    /// `handle.block_on(future)`), which occupies the worker until the future has completed; or spawn it on a
    /// runtime (`handle.spawn(future)`), which occupies the worker only while the future is handed over. To
    /// return a future as the result, for the caller of `join` to await, put it into a box: `||
    /// Box::pin(async { … })`.
    #[doc(alias("async", "spawn", "spawn_blocking"))]
    #[track_caller]
    pub fn submit<T: TaskOutput + Send + 'static>(
        &self,
        closure: impl FnOnce() -> T + Send + 'static,
    ) -> Result<ScheduledFuture<T>, RejectedExecutionError> {
        task_builder::schedule(&self.pool_refs, Duration::ZERO, closure)
    }

    /// Runs the closure once, when `delay` has passed and never earlier. With a delay of zero the task is due
    /// at once, behind the tasks that are due already; with `Duration::MAX` it is never due. Blocks as
    /// `execute` does. Java: `schedule`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let timeout = executor.schedule(Duration::from_secs(30), || "too late")?;
    /// assert!(timeout.cancel()); // the answer came in time
    /// assert_eq!(executor.pending_count(), 0);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`execute`](Self::execute).
    #[doc(alias("spawn_after", "execute_after", "after", "AfterFunc", "setTimeout", "timer"))]
    #[doc(alias = "delay")]
    #[track_caller]
    pub fn schedule<T: TaskOutput + Send + 'static>(
        &self,
        delay: Duration,
        closure: impl FnOnce() -> T + Send + 'static,
    ) -> Result<ScheduledFuture<T>, RejectedExecutionError> {
        task_builder::schedule(&self.pool_refs, delay, closure)
    }

    /// Runs the closure once, at `moment`: an [`Instant`](std::time::Instant), or a
    /// [`SystemTime`](std::time::SystemTime) of the wall clock, which is
    /// [followed](crate::trigger::Due::Wall) when it is set. A moment in the past means now; `None` means
    /// never, and the task waits until it is cancelled. On a [`ManualClock`](crate::ManualClock) the instants
    /// are those of [`ManualClock::now`](crate::ManualClock::now). It blocks as `execute` does. Java has no
    /// such method.
    ///
    /// ```
    /// use std::time::{Duration, Instant, UNIX_EPOCH};
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let deadline = Instant::now() + Duration::from_millis(2);
    /// assert!(executor.schedule_at(deadline, Instant::now)?.join()? >= deadline);
    ///
    /// let new_year = UNIX_EPOCH + Duration::from_secs(1_767_225_600); // of 2026: it has passed
    /// assert_eq!(executor.schedule_at(new_year, || "now")?.join()?, "now");
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`execute`](Self::execute).
    #[doc(alias("spawn_at", "sleep_until"))]
    #[track_caller]
    pub fn schedule_at<T: TaskOutput + Send + 'static>(
        &self,
        moment: impl Into<Due>,
        closure: impl FnOnce() -> T + Send + 'static,
    ) -> Result<ScheduledFuture<T>, RejectedExecutionError> {
        self.task().schedule_at(moment, closure)
    }

    /// Runs the closure again and again: at `initial_delay`, then at `initial_delay + period`, `initial_delay
    /// + 2 * period`, and so on. Each of these times counts from the first, so the rate does not drift. Runs
    /// do not overlap: a run that takes longer than the period delays the next ones, and each of them is made
    /// up for (Java's rule; see [`MissedRuns`](crate::MissedRuns) for others). The first panic ends the
    /// periodic task (Java's rule again; see [`FailurePolicy`](crate::FailurePolicy)). If the next run would
    /// be beyond the last moment of the clock (584 years), the task never runs again, and waits until it is
    /// cancelled. Blocks as `execute` does. Java: `scheduleAtFixedRate`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let (initial_delay, period) = (Duration::from_secs(5), Duration::from_secs(1));
    /// executor.schedule_at_fixed_rate(initial_delay, period, || println!("tick"))?;
    /// clock.run_for(Duration::from_secs(7));
    /// assert_eq!(executor.statistics().runs, 3); // at 5, 6 and 7 seconds
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// What the closure returns is what the run reports, as with [`repeat`](Self::repeat): see [`Outcome`].
    ///
    /// # Errors
    ///
    /// [`RejectionReason::ZeroPeriod`](crate::RejectionReason::ZeroPeriod) if the period is zero; otherwise
    /// as [`execute`](Self::execute).
    #[doc(alias("setInterval", "interval", "every", "ticker", "tick", "execute_at_fixed_rate"))]
    #[track_caller]
    pub fn schedule_at_fixed_rate<O: Outcome>(
        &self,
        initial_delay: Duration,
        period: Duration,
        closure: impl FnMut() -> O + Send + 'static,
    ) -> Result<ScheduledFuture<O::Value>, RejectedExecutionError> {
        self.task().schedule_at_fixed_rate(initial_delay, period, closure)
    }

    /// Runs the closure again and again: first at `initial_delay`, and then each time `delay` after the end
    /// of the previous run. The first panic ends the periodic task, unless its
    /// [`FailurePolicy`](crate::FailurePolicy) says otherwise. Blocks as `execute` does. Java:
    /// `scheduleWithFixedDelay`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let mut left = 3;
    /// let (initial_delay, delay) = (Duration::ZERO, Duration::from_millis(1));
    /// let countdown = executor.schedule_with_fixed_delay(initial_delay, delay, move || {
    ///     left -= 1;
    ///     assert!(left > 0, "lift-off");
    /// })?;
    /// let end = countdown.join().expect_err("the panic ends it");
    /// assert_eq!(end.to_string(), "the task panicked: lift-off");
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`RejectionReason::ZeroPeriod`](crate::RejectionReason::ZeroPeriod) if the delay is zero; otherwise as
    /// [`execute`](Self::execute).
    #[doc(alias = "execute_with_fixed_delay")]
    #[track_caller]
    pub fn schedule_with_fixed_delay<O: Outcome>(
        &self,
        initial_delay: Duration,
        delay: Duration,
        closure: impl FnMut() -> O + Send + 'static,
    ) -> Result<ScheduledFuture<O::Value>, RejectedExecutionError> {
        self.task().schedule_with_fixed_delay(initial_delay, delay, closure)
    }

    /// Runs the closure again and again, when the [trigger](crate::trigger) says. What the closure
    /// returns is what the run reports: see [`Outcome`]. Runs that were missed are made up for by one,
    /// unless [`TaskBuilder::missed_runs`](crate::TaskBuilder::missed_runs) says otherwise. Blocks as `execute` does.
    ///
    /// Poll until there is an answer, for which the future can be waited:
    ///
    /// ```
    /// use std::{ops::ControlFlow, time::Duration};
    /// use punctual::{ScheduledThreadPoolExecutor, trigger::every};
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let mut asked = 0;
    /// let answer = executor.repeat(every(Duration::from_millis(1)), move || {
    ///     asked += 1;
    ///     if asked < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break("ready") }
    /// })?;
    /// assert_eq!(answer.join()?, "ready");
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// A `Duration` alone does not say whether it is a period or a delay:
    ///
    /// ```compile_fail,E0277
    /// # let executor = punctual::ScheduledThreadPoolExecutor::new(1);
    /// executor.repeat(std::time::Duration::from_secs(1), || ())?; // an error: it is not a trigger
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`schedule_at_fixed_rate`](Self::schedule_at_fixed_rate), and
    /// [`NeverRuns`](crate::RejectionReason::NeverRuns) if the trigger has no first run.
    ///
    /// # Panics
    ///
    /// If the trigger panics when it is asked for the first run.
    #[doc(alias("poll", "loop", "cron"))]
    #[track_caller]
    pub fn repeat<O: Outcome>(
        &self,
        trigger: impl Trigger,
        body: impl FnMut() -> O + Send + 'static,
    ) -> Result<ScheduledFuture<O::Value>, RejectedExecutionError> {
        self.task().repeat(trigger, body)
    }

    /// Runs the closure as soon as a worker is free, and again after each `Err` or panic, with the delays and
    /// the limits of `backoff`, until it returns `Ok`. Returns a future for that value. No worker waits
    /// between two attempts. [`Trigger::retry`] does the same for the runs of a series. Blocks as `execute`
    /// does.
    ///
    /// ```
    /// use std::{io, time::Duration};
    /// use punctual::{Backoff, ManualClock, ScheduledThreadPoolExecutor};
    ///
    /// let clock = ManualClock::new();
    /// clock.set_auto_advance(true);
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let second = Duration::from_secs(1);
    /// let mut answers = [Ok("the page"), Err("busy"), Err("busy")].to_vec();
    ///
    /// let page = executor.retry(Backoff::exponential(second, 16 * second), move || answers.pop().unwrap())?;
    /// assert_eq!(page.join()?, "the page");
    /// assert_eq!(clock.elapsed(), 3 * second); // attempts at 0, 1 and 3 seconds
    ///
    /// let fetch = || Err::<(), _>(io::Error::from(io::ErrorKind::TimedOut));
    /// let in_vain = executor.retry(Backoff::constant(second).max_attempts(3), fetch)?;
    /// let error: io::Error = in_vain.join().expect_err("no attempt worked").downcast()?;
    /// assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # The result of the future
    ///
    /// * The value of the attempt that worked.
    /// * [`TaskError::Failed`](crate::TaskError::Failed) when no further attempt may be made, with the error
    ///   of the last one, which [`downcast`](crate::TaskError::downcast) returns as what it is, or its panic.
    /// * [`TaskError::Cancelled`](crate::TaskError::Cancelled) if it was cancelled, also between two
    ///   attempts. It is a task that returns one value, so a graceful shutdown keeps it as it keeps [other
    ///   such tasks](crate::Builder::executes_existing_delayed_tasks_after_shutdown), unless its builder says
    ///   [otherwise](crate::TaskBuilder::on_shutdown). A drop that [stops](crate::DropPolicy::Stop) the
    ///   executor cancels it between two attempts.
    ///
    /// # Attempts
    ///
    /// An attempt that does not take place is no attempt, and the next one is planned as after the failure
    /// before: its [gate](crate::gate) has skipped it, or it was later than the
    /// [policy](crate::TaskBuilder::missed_runs) lets it be, if there is one. If none can be planned, the
    /// last error is the result.
    ///
    /// An attempt is a run: each that fails is counted, and [reported](crate::FailureReport::attempt) with
    /// which of how many it was, and when the next is. Inside of it,
    /// [`TaskContext::attempt`](crate::TaskContext::attempt) says which one it is. When a server says how
    /// long to wait, the attempt [reschedules](crate::TaskContext::reschedule) the next one and returns its
    /// error. An error that no further attempt can mend is no `Err` here, but a result: an attempt that
    /// returns `Ok(Err("there is no such page"))` is not tried again, and its future returns that `Err`.
    ///
    /// # Errors
    ///
    /// As for [`execute`](Self::execute).
    #[doc(alias("backoff", "with_retries"))]
    #[track_caller]
    pub fn retry<T: Send + 'static, E: Into<Box<dyn Error + Send + Sync>>>(
        &self,
        backoff: Backoff,
        body: impl FnMut() -> Result<T, E> + Send + 'static,
    ) -> Result<ScheduledFuture<T>, RejectedExecutionError> {
        self.task().retry(backoff, body)
    }
}
