//! Control of a task that is alive, as the holder of its future has it.
//!
//! A future and a [`TaskHandle`](super::TaskHandle) can do the same; both do it through
//! [`TaskRef`](super::task_ref::TaskRef). What the changes mean, and what they race with: the module `control` of
//! the task.

use std::time::{Duration, Instant};

use super::ScheduledFuture;
use crate::{WouldDeadlock, task::Change, trigger::Trigger};

/// Control of a task that is alive. Each of these returns `true` if it had an effect, and `false` if it
/// came too late: the task has ended, or is a one-shot task that a worker has taken, or whose
/// [time](crate::TaskBuilder::timeout) is up, or the executor has stopped.
///
/// None of them interrupts a run. What is asked for while the task runs applies to the run after it,
/// and of two such wishes the later one holds. None of them blocks, and all take O(log n).
///
/// Once an executor has been [shut down](crate::Handle::shutdown) a task can be brought forward, but
/// not put off.
impl<T> ScheduledFuture<T> {
    /// Runs the task next after `delay`, whenever it was to run: a timeout that starts anew, a
    /// watchdog that is fed. The runs of a periodic task after that go on from there: a fixed rate
    /// has its grid moved, and a [trigger](crate::Trigger) is asked after the run as always. A time
    /// limit of a one-shot task moves along.
    ///
    /// A task that is [paused](Self::pause) stays paused.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let second = Duration::from_secs(1);
    /// let alarm = executor.schedule(5 * second, || "no sign of life")?;
    /// clock.run_for(4 * second);
    /// assert!(alarm.reschedule(5 * second));
    /// clock.run_for(4 * second);
    /// assert!(!alarm.is_done());
    /// clock.run_for(second);
    /// assert_eq!(alarm.join()?, "no sign of life");
    /// assert!(!alarm.reschedule(second), "it has run");
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias("reset", "postpone", "heartbeat", "dead_man_switch"))]
    #[allow(clippy::must_use_candidate, reason = "it is done for what it does")]
    pub fn reschedule(&self, delay: Duration) -> bool {
        self.inner.reschedule(delay)
    }

    /// As [`reschedule`](Self::reschedule), at an instant of the executor's
    /// [clock](crate::Handle::clock). One that has passed means now, and `None` never.
    #[allow(clippy::must_use_candidate, reason = "it is done for what it does")]
    pub fn reschedule_at(&self, instant: impl Into<Option<Instant>>) -> bool {
        self.inner.reschedule_at(instant.into())
    }

    /// Runs the task after `delay` at the latest: brings its next run forward, or leaves it as it is. It
    /// never puts a run off.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let second = Duration::from_secs(1);
    /// let report = executor.schedule(60 * second, || ())?;
    /// assert!(report.run_within(5 * second));
    /// assert!(report.run_within(10 * second), "it is earlier anyway");
    /// assert_eq!(report.delay(), Some(5 * second));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias = "bring_forward")]
    #[allow(clippy::must_use_candidate, reason = "it is done for what it does")]
    pub fn run_within(&self, delay: Duration) -> bool {
        self.inner.run_within(delay)
    }

    /// Runs the task now. For a periodic task that is one run more, and its schedule is as it was: the
    /// run that is planned takes place at its moment. If that run is due already, it is the one that was
    /// asked for. A periodic task runs also if it is [paused](Self::pause), and stays paused. A
    /// one-shot task runs now, and not again.
    ///
    /// A task of an [on-demand](crate::trigger::on_demand) trigger has no schedule: a run that is
    /// asked for is its next.
    ///
    /// ```
    /// use std::{sync::mpsc, time::Duration};
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let minute = Duration::from_secs(60);
    /// let (run, runs) = mpsc::channel();
    /// let (initial_delay, period) = (minute, minute);
    /// let backup = executor.schedule_at_fixed_rate(initial_delay, period, move || _ = run.send(()))?;
    /// assert!(backup.run_now());
    /// clock.run_until_idle();
    /// assert_eq!(runs.try_iter().count(), 1);
    /// assert_eq!(backup.delay(), Some(minute));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias("trigger", "notify", "fire"))]
    #[allow(clippy::must_use_candidate, reason = "it is done for what it does")]
    pub fn run_now(&self) -> bool {
        self.inner.run_now()
    }

    /// Gives a periodic task another schedule. The trigger is asked for its first run at once, on this
    /// thread, and that is when the task runs next. The old one is dropped. The task keeps its
    /// [policy](crate::MissedRuns) for missed runs.
    ///
    /// Returns `false`, and changes nothing, also if the task is a one-shot task, or if the trigger has
    /// no run or a period of zero, or cannot be [shared](crate::Trigger::share) behind the gate of the task.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor, trigger::every};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let (second, minute) = (Duration::from_secs(1), Duration::from_secs(60));
    /// let poll = executor.repeat(every(minute).first_in(minute), || { /* look */ })?;
    /// assert!(poll.set_trigger(every(second).first_in(second)), "there is news: look more often");
    /// clock.run_for(10 * second);
    /// assert_eq!(executor.statistics().runs, 10);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the trigger panics. The task is then as it was.
    #[allow(clippy::must_use_candidate, reason = "it is done for what it does")]
    pub fn set_trigger(&self, trigger: impl Trigger) -> bool {
        self.inner.set_trigger(trigger)
    }

    /// Keeps the task from running until it is [resumed](Self::resume). Its schedule goes on: what falls
    /// due meanwhile is late, and when the task is resumed its [policy](crate::MissedRuns) says what
    /// becomes of the runs that were missed, exactly as if all workers had been busy for that time. A
    /// moment that has not come by then stands. A run that is under way is not interrupted.
    ///
    /// A time limit goes on counting. A task that is paused is
    /// [`Paused`](crate::TaskState::Paused) and stays pending: an executor that is shut down waits for
    /// it as for every delayed task, until it has been resumed and has run, or has been cancelled.
    ///
    /// Returns `false` also if the task is paused already.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, MissedRuns, ScheduledThreadPoolExecutor, TaskState};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let second = Duration::from_secs(1);
    /// let (initial_delay, period) = (second, second);
    /// let tick = executor
    ///     .task()
    ///     .missed_runs(MissedRuns::Coalesce)
    ///     .schedule_at_fixed_rate(initial_delay, period, || {})?;
    /// assert!(tick.pause());
    /// assert_eq!(tick.state(), TaskState::Paused);
    /// clock.run_for(10 * second);
    /// assert_eq!(executor.statistics().runs, 0);
    /// assert!(tick.resume());
    /// clock.run_until_idle();
    /// assert_eq!(executor.statistics().runs, 1, "one run for the ten that were missed");
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias = "suspend")]
    #[allow(clippy::must_use_candidate, reason = "it is done for what it does")]
    pub fn pause(&self) -> bool {
        self.inner.change(Change::Pause)
    }

    /// Ends a [pause](Self::pause). Returns `false` also if the task is not paused.
    #[allow(clippy::must_use_candidate, reason = "it is done for what it does")]
    pub fn resume(&self) -> bool {
        self.inner.change(Change::Resume)
    }

    /// Ends the task as [`cancel_and_signal`](Self::cancel_and_signal) does, and blocks until its closure
    /// does not run any more: when this returns `Ok`, the closure is not running and never will, and
    /// what a run had borrowed is free. The captures of a periodic closure have been dropped, unless
    /// another thread that has cancelled the task is about to do so. Returns `true` if this call ended
    /// the task, and `false` if it had ended before; it waits in both cases.
    ///
    /// A body that does not look at its [token](crate::TaskContext::token) is waited for to its end. On
    /// a manual clock [somebody has to move it](crate::ManualClock#when-it-blocks) if the body waits
    /// for time.
    ///
    /// ```
    /// use std::{sync::mpsc, time::Duration};
    /// use punctual::{ScheduledThreadPoolExecutor, with_context};
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let (started, has_started) = mpsc::channel();
    /// let watch = executor.submit(with_context(move |run| {
    ///     started.send(()).ok();
    ///     run.token().wait(); // until it is asked to stop
    /// }))?;
    /// has_started.recv()?;
    /// assert!(watch.cancel_and_wait()?, "nothing of it runs any more");
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`WouldDeadlock`], at once, if this is called by the task itself, or by the last worker that does
    /// not wait, as with [`join`](Self::join). The task has been cancelled all the same.
    #[doc(alias("abort", "stop"))]
    pub fn cancel_and_wait(&self) -> Result<bool, WouldDeadlock> {
        self.inner.cancel_and_wait()
    }
}
