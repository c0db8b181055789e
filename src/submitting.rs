//! The methods that submit a closure: short forms of the methods of [`TaskBuilder`], which makes the task.

use std::{error::Error, time::Duration};

use crate::{
    Backoff, Clock, Handle, Outcome, RejectedExecutionError, ScheduledFuture, TaskBuilder,
    TaskOutput, Trigger, task_builder, trigger::Due,
};

/// # Submitting
impl Handle {
    /// Runs the closure as soon as a worker is free. Returns no future: the caller does not learn when the closure
    /// ends, and a panic is only [reported](crate::Builder::failure_handler).
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
    /// [`RejectedExecutionError`] if the executor was shut down, has no [capacity](crate::Builder::max_pending)
    /// left, or has no worker and cannot start one. The error owns the task, and [returns
    /// it](RejectedExecutionError::into_task).
    #[doc(alias("spawn", "fire_and_forget"))]
    #[track_caller]
    pub fn execute(
        &self,
        closure: impl FnOnce() + Send + 'static,
    ) -> Result<(), RejectedExecutionError> {
        task_builder::execute(&self.pool_refs, closure)
    }

    /// Runs the closure as soon as a worker is free, and returns a future for its result. Blocks as `execute` does.
    /// Java: `submit`.
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
    /// As for [`execute`](Self::execute). An `Err` that the closure returns is a result like any other; if the future
    /// is dropped, it is [reported](crate::ScheduledFuture#a-result-that-is-an-err) like a panic.
    ///
    /// # Async closures
    ///
    /// The executor polls no future. A closure that returns one, as `|| async { … }` and `async || { … }` do, would end
    /// once it has made the future, and the future's body would never run. So the compiler refuses it in every method
    /// ([`TaskOutput`]), and says what to write.
    ///
    /// ```compile_fail,E0277
    /// # let executor = punctual::ScheduledThreadPoolExecutor::new(1);
    /// executor.submit(|| async { println!("never printed") })?; // an error: a future
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// Block on the future inside the closure (`|| smol::block_on(async { 6 * 7 })`, or tokio's
    /// `handle.block_on(future)`), which occupies the worker; or spawn it on a runtime (`handle.spawn(future)`). If the
    /// caller of `join` is to await the future, box it: `|| Box::pin(async { … })`.
    #[doc(alias("async", "spawn", "spawn_blocking"))]
    #[track_caller]
    pub fn submit<T: TaskOutput + Send + 'static>(
        &self,
        closure: impl FnOnce() -> T + Send + 'static,
    ) -> Result<ScheduledFuture<T>, RejectedExecutionError> {
        task_builder::schedule(&self.pool_refs, Duration::ZERO, closure)
    }

    /// Runs the closure once, when `delay` has passed and never earlier. With a delay of zero the task is due at
    /// once, behind the tasks that are due already; with `Duration::MAX` it is never due. Blocks as `execute` does.
    /// Java: `schedule`.
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

    /// Runs the closure once, at `moment`: an [`Instant`](std::time::Instant), on a [`ManualClock`](crate::ManualClock)
    /// one of its own; or a [`SystemTime`](std::time::SystemTime), for which the task
    /// [follows](crate::trigger::Due::Wall) the wall clock when that is set. A moment in the past means now; `None`
    /// means never. Blocks as `execute` does. Java has no such method.
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

    /// Runs the closure again and again, whenever the [trigger](crate::trigger) says. [`Outcome`] says what the
    /// closure's return value means. One run makes up for those that were missed, unless
    /// [`TaskBuilder::missed_runs`](crate::TaskBuilder::missed_runs) says otherwise. Blocks as `execute` does.
    ///
    /// ```
    /// use std::{ops::ControlFlow, time::Duration};
    /// use punctual::{ScheduledThreadPoolExecutor, trigger::every};
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let mut asked = 0;
    /// let answer = executor.repeat(every(Duration::from_millis(1)), move || {
    ///     asked += 1; // poll until there is an answer
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
    /// [`ZeroPeriod`](crate::RejectionReason::ZeroPeriod) if the period or delay of the trigger is zero,
    /// [`NeverRuns`](crate::RejectionReason::NeverRuns) if the trigger has no first run; otherwise as for
    /// [`execute`](Self::execute).
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

    /// Runs the closure as soon as a worker is free, and again after each `Err` or panic, with the delays and the
    /// limits of `backoff`, until it returns `Ok`. Returns a future for that value. No worker waits between two
    /// attempts. [`Trigger::retry`] does the same for the runs of a series. Blocks as `execute` does.
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
    /// let page = executor.retry(Backoff::exponential(second..=16 * second), move || answers.pop().unwrap())?;
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
    /// * The value of the attempt that succeeded.
    /// * [`TaskError::Failed`](crate::TaskError::Failed) after the last attempt, with its panic or its error, which
    ///   [`downcast`](crate::TaskError::downcast) returns as it was.
    /// * [`TaskError::Cancelled`](crate::TaskError::Cancelled) if it was cancelled, even between two attempts, as by a
    ///   [drop](crate::DropPolicy::Stop) of the executor. A graceful shutdown treats it as a [delayed
    ///   task](crate::Builder::executes_existing_delayed_tasks_after_shutdown), unless its builder says
    ///   [otherwise](crate::TaskBuilder::on_shutdown).
    ///
    /// # Attempts
    ///
    /// An attempt is a run: one that fails is counted, and [reported](crate::FailureReport::attempt) with its
    /// number and the time of the next. Inside it, [`TaskContext::attempt`](crate::TaskContext::attempt) has the
    /// number, and [`reschedule`](crate::TaskContext::reschedule) moves the next one, if a server says how long to
    /// wait. An error that no further attempt can mend is a result: return `Ok(Err("there is no such page"))`.
    ///
    /// A run that its [gate](crate::gate) skips, or that is later than its [policy](crate::TaskBuilder::missed_runs)
    /// allows, is no attempt: the next one is planned as after the previous failure. If none can be planned, the last
    /// error is the result.
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

    /// Runs the closure again and again: at `initial_delay`, then at `initial_delay + period`, `initial_delay + 2 *
    /// period`, and so on. Each of these times counts from the first, so the rate does not drift. Runs do not
    /// overlap: a run that takes longer than the period delays the next ones, and each of them is made up for,
    /// unless [`MissedRuns`](crate::MissedRuns) says otherwise. The first panic ends the task, unless its
    /// [`FailurePolicy`](crate::FailurePolicy) says otherwise. A run beyond the last moment of the clock (584
    /// years) never comes. Blocks as `execute` does. Java: `scheduleAtFixedRate`, with the same defaults.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let second = Duration::from_secs(1);
    /// executor.schedule_at_fixed_rate(5 * second, second, || println!("tick"))?;
    /// clock.run_for(7 * second);
    /// assert_eq!(executor.statistics().runs, 3); // at 5, 6 and 7 seconds
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// In new code, [`repeat`](Self::repeat) with [`every(period).first_in(delay)`](crate::trigger::every) names the
    /// two durations. The closure's return value means the same in both: see [`Outcome`].
    ///
    /// # Errors
    ///
    /// [`ZeroPeriod`](crate::RejectionReason::ZeroPeriod) if the period is zero; otherwise as for
    /// [`execute`](Self::execute).
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

    /// Runs the closure again and again: first at `initial_delay`, and then each time `delay` after the end of the
    /// previous run. The first panic ends the task, unless its [`FailurePolicy`](crate::FailurePolicy) says
    /// otherwise. Blocks as `execute` does. Java: `scheduleWithFixedDelay`. In new code,
    /// [`fixed_delay`](crate::trigger::fixed_delay) names the durations.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let mut left = 3;
    /// let countdown = executor.schedule_with_fixed_delay(Duration::ZERO, Duration::from_millis(1), move || {
    ///     left -= 1;
    ///     assert!(left > 0, "lift-off");
    /// })?;
    /// assert_eq!(countdown.join().unwrap_err().to_string(), "the task panicked: lift-off");
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`schedule_at_fixed_rate`](Self::schedule_at_fixed_rate).
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

    /// Returns a builder that describes a task before it is submitted: its name, its time limit, and what happens
    /// after missed runs and panics. [`TaskBuilder`] has an example.
    pub fn task(&self) -> TaskBuilder<'_> {
        TaskBuilder::new(&self.pool_refs)
    }

    /// Returns the clock of the executor. Delays count from its [`now`](Clock::now), and
    /// [`schedule_at`](Self::schedule_at) takes its instants, even on a [`ManualClock`](crate::ManualClock): code that
    /// reads this clock runs in production and in tests.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
    ///
    /// let clock = ManualClock::new();
    /// clock.set_auto_advance(true);
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock).build()?;
    /// let (clock, submitted) = (executor.clock().clone(), executor.clock().now());
    /// let ran = executor.schedule(Duration::from_millis(2), move || clock.now())?.join()?;
    /// assert_eq!(ran - submitted, Duration::from_millis(2));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn clock(&self) -> &Clock {
        self.pool().clock()
    }
}
