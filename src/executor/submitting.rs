//! The verbs that submit. Each is the short form of the one on [`TaskBuilder`](crate::TaskBuilder), which is where
//! closures become tasks.

use std::time::{Duration, Instant};

use super::Handle;
use crate::{Outcome, RejectedExecutionError, ScheduledFuture, Trigger, task_builder};

impl Handle {
    /// Runs the closure as soon as a worker is free. Returns no future: the caller does not learn
    /// when it has ended, and a panic is only [reported](crate::Builder::failure_handler).
    /// [Blocks](Self#when-a-submission-blocks-and-what-it-costs) only while a worker is started, or
    /// if the [handler](crate::RejectedExecutionHandler) for rejected tasks does. Java: `execute`.
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
    /// [capacity](crate::Builder::max_pending) left, or has no worker and cannot start one. The
    /// error owns the task, and [returns it](RejectedExecutionError::into_task).
    #[doc(alias("spawn", "fire_and_forget"))]
    #[track_caller]
    pub fn execute<F>(&self, closure: F) -> Result<(), RejectedExecutionError>
    where
        F: FnOnce() + Send + 'static,
    {
        task_builder::execute(&self.pool_refs, closure)
    }

    /// Runs the closure as soon as a worker is free, and returns a future for its result.
    /// [Blocks](Self#when-a-submission-blocks-and-what-it-costs) as `execute` does. Java: `submit`.
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
    /// As [`execute`](Self::execute).
    ///
    /// # Async closures
    ///
    /// The executor is not an async runtime, and polls no future. A closure that returns a future,
    /// as `|| async { … }` and `async || { … }` do, has ended when it has made the future. The
    /// future is its result, and **the body of the future never runs**, unless the caller that
    /// takes the result awaits it. The compiler warns where the result is taken and thrown away
    /// (`unused_must_use`), but not if it is never taken. The same holds for
    /// [`schedule`](Self::schedule) and the other methods that return a result;
    /// [`execute`](Self::execute) and the periodic ones accept no such closure.
    ///
    /// ```compile_fail
    /// #![deny(unused_must_use)]
    /// # let executor = punctual::ScheduledThreadPoolExecutor::new(1);
    /// executor.submit(|| async { println!("never printed") })?.join()?; // an error: an unused future
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// ```compile_fail,E0308
    /// # let executor = punctual::ScheduledThreadPoolExecutor::new(1);
    /// executor.execute(|| async { println!("never printed") })?; // an error: it is not `()`
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// Block on the future inside the closure, which occupies the worker until the future has
    /// completed, or spawn it on a runtime, which occupies the worker only while the future is
    /// handed over. Both are calls to the runtime: `handle.block_on(future)` and
    /// `handle.spawn(future)` with tokio, for instance, where `handle` is tokio's.
    ///
    /// ```
    /// # fn block_on<F: Future>(future: F) -> F::Output {
    /// #     let mut future = std::pin::pin!(future);
    /// #     let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    /// #     loop {
    /// #         if let std::task::Poll::Ready(output) = future.as_mut().poll(&mut context) { return output }
    /// #     }
    /// # }
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let answer = executor.submit(|| block_on(async { 6 * 7 }))?;
    /// assert_eq!(answer.join()?, 42);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias = "async")]
    #[doc(alias = "spawn")]
    #[doc(alias = "spawn_blocking")]
    #[track_caller]
    pub fn submit<F, T>(&self, closure: F) -> Result<ScheduledFuture<T>, RejectedExecutionError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        task_builder::schedule(&self.pool_refs, Duration::ZERO, closure)
    }

    /// Runs the closure once, when `delay` has passed and never earlier. With a delay of zero the
    /// task is due at once, behind the tasks that are due already; with `Duration::MAX` it is never
    /// due. Blocks as `execute` does. Java: `schedule`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let timeout = executor.schedule(Duration::from_secs(30), || "too late")?;
    /// clock.run_for(Duration::from_secs(29));
    /// assert!(timeout.cancel()); // the answer came in time
    /// assert_eq!(executor.pending_count(), 0);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`execute`](Self::execute).
    #[doc(alias(
        "spawn_after",
        "after",
        "AfterFunc",
        "setTimeout",
        "set_timeout",
        "timer",
        "delay",
        "execute_after"
    ))]
    #[track_caller]
    pub fn schedule<F, T>(
        &self,
        delay: Duration,
        closure: F,
    ) -> Result<ScheduledFuture<T>, RejectedExecutionError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        task_builder::schedule(&self.pool_refs, delay, closure)
    }

    /// Runs the closure once, at `instant`. An instant in the past means now; `None` means never,
    /// and the task waits until it is cancelled. On a [`ManualClock`](crate::ManualClock) the
    /// instants are those of [`ManualClock::now`](crate::ManualClock::now). It
    /// blocks as `execute` does.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let deadline = Instant::now() + Duration::from_millis(2);
    /// let ran_at = executor.schedule_at(deadline, Instant::now)?.join()?;
    /// assert!(ran_at >= deadline);
    ///
    /// let some_day = executor.schedule_at(None, || "not yet planned")?;
    /// assert_eq!(some_day.delay(), Some(Duration::MAX));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`execute`](Self::execute).
    #[doc(alias("spawn_at", "sleep_until"))]
    #[track_caller]
    pub fn schedule_at<F, T>(
        &self,
        instant: impl Into<Option<Instant>>,
        closure: F,
    ) -> Result<ScheduledFuture<T>, RejectedExecutionError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.task().schedule_at(instant, closure)
    }

    /// Runs the closure again and again: at `initial_delay`, then at `initial_delay + period`,
    /// `initial_delay + 2 * period`, and so on. Each of these times counts from the first, so the
    /// rate does not drift. Runs do not overlap: a run that takes longer than the period delays the
    /// next ones, and each of them is made up for (Java's rule; see
    /// [`MissedRuns`](crate::MissedRuns) for others). The first panic ends the periodic task
    /// (Java's rule again; see [`FailurePolicy`](crate::FailurePolicy)). If the next run would be
    /// beyond the last moment of the clock (584 years), the task never runs again, and waits until
    /// it is cancelled. Blocks as `execute` does. Java: `scheduleAtFixedRate`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor, current_task};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let (report, reports) = std::sync::mpsc::channel();
    /// let second = Duration::from_secs(1);
    /// let beat = executor.schedule_at_fixed_rate(second, second, move || {
    ///     let run = current_task().map(|task| task.run_number());
    ///     report.send(run).ok();
    /// })?;
    /// clock.run_for(Duration::from_secs(3));
    /// beat.cancel();
    /// assert_eq!(reports.iter().collect::<Vec<_>>(), [Some(1), Some(2), Some(3)]);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`RejectionReason::ZeroPeriod`](crate::RejectionReason::ZeroPeriod) if the period is zero;
    /// otherwise as [`execute`](Self::execute).
    #[doc(alias = "scheduleAtFixedRate")]
    #[doc(alias(
        "setInterval",
        "set_interval",
        "interval",
        "every",
        "ticker",
        "tick",
        "execute_at_fixed_rate"
    ))]
    #[track_caller]
    pub fn schedule_at_fixed_rate<F>(
        &self,
        initial_delay: Duration,
        period: Duration,
        closure: F,
    ) -> Result<ScheduledFuture<()>, RejectedExecutionError>
    where
        F: FnMut() + Send + 'static,
    {
        self.task().schedule_at_fixed_rate(initial_delay, period, closure)
    }

    /// Runs the closure again and again: first at `initial_delay`, and then each time `delay` after
    /// the end of the previous run. The first panic ends the periodic task, unless its
    /// [`FailurePolicy`](crate::FailurePolicy) says otherwise. Blocks as `execute` does.
    /// Java: `scheduleWithFixedDelay`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let mut left = 3;
    /// let delay = Duration::from_millis(1);
    /// let countdown = executor.schedule_with_fixed_delay(Duration::ZERO, delay, move || {
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
    /// [`RejectionReason::ZeroPeriod`](crate::RejectionReason::ZeroPeriod) if the delay is zero;
    /// otherwise as [`execute`](Self::execute).
    #[doc(alias = "scheduleWithFixedDelay")]
    #[doc(alias = "execute_with_fixed_delay")]
    #[track_caller]
    pub fn schedule_with_fixed_delay<F>(
        &self,
        initial_delay: Duration,
        delay: Duration,
        closure: F,
    ) -> Result<ScheduledFuture<()>, RejectedExecutionError>
    where
        F: FnMut() + Send + 'static,
    {
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
    /// # Errors
    ///
    /// As [`schedule_at_fixed_rate`](Self::schedule_at_fixed_rate), and
    /// [`NeverRuns`](crate::RejectionReason::NeverRuns) if the trigger has no first run.
    ///
    /// # Panics
    ///
    /// If the trigger panics when it is asked for the first run.
    #[doc(alias("retry", "poll", "loop", "cron"))]
    #[track_caller]
    pub fn repeat<G, F, O>(
        &self,
        trigger: G,
        body: F,
    ) -> Result<ScheduledFuture<O::Value>, RejectedExecutionError>
    where
        G: Trigger,
        F: FnMut() -> O + Send + 'static,
        O: Outcome,
    {
        self.task().repeat(trigger, body)
    }
}
