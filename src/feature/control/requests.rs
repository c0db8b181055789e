//! The methods by which a caller, or the running task itself, makes a [request](Change).

use std::time::{Duration, Instant};

use super::Change;
use crate::{
    TaskContext, TaskHandle, entry::Moved, pool::Phase, sync::Arc, task::Run, time::Clock,
    trigger::Trigger, unwind::discard,
};

/// Control of when a task runs next. Each of these methods returns `true` if it had an effect, and `false` if it came
/// too late: the task has ended, or is a one-shot task that a worker has taken or whose
/// [time](crate::TaskBuilder::timeout) is up, or the executor has stopped. None of them blocks, and all take O(log n).
///
/// A change during a run applies to the run after it, and of two such changes the later one holds. Once an executor has
/// been [shut down](crate::Handle::shutdown), a task can be brought forward, but not put off.
#[allow(clippy::must_use_candidate, reason = "they are done for what they do")]
impl TaskHandle {
    /// Runs the task next after `delay`, whenever it was to run before: to restart a timeout, or feed a watchdog. Later
    /// runs of a periodic task go on from there: the grid of a fixed rate moves, and a [trigger](crate::Trigger) is
    /// asked after the run as always. A time limit of a one-shot task moves along. A task that is [paused](Self::pause)
    /// stays paused.
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
    /// assert_eq!(alarm.delay(), Some(5 * second));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias("reset", "postpone", "heartbeat", "dead_man_switch"))]
    pub fn reschedule(&self, delay: Duration) -> bool {
        self.change(Change::At(self.clock().read().after(delay)))
    }

    /// Like [`reschedule`](Self::reschedule), at an instant of the executor's [clock](crate::Handle::clock). One that
    /// has passed means now, and `None` never.
    pub fn reschedule_at(&self, instant: impl Into<Option<Instant>>) -> bool {
        let now = self.clock().read();
        self.change(Change::At(self.clock().deadline_of(instant).max(now)))
    }

    /// Runs the task after `delay` at the latest: brings its next run forward, or leaves it as it is.
    #[doc(alias = "bring_forward")]
    pub fn run_within(&self, delay: Duration) -> bool {
        self.change(Change::Within(self.clock().read().after(delay)))
    }

    /// Runs the task now. For a periodic task that is an extra run: the planned run still takes place at its moment,
    /// unless it is already due; then it is this run. A periodic task runs even if it is [paused](Self::pause), and
    /// stays paused. A one-shot task does not run again. A task of an [on-demand](crate::trigger::on_demand) trigger
    /// has no schedule: this run is its next.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor, trigger::every};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let minute = Duration::from_secs(60);
    /// let backup = executor.repeat(every(minute).first_in(minute), || { /* back up */ })?;
    /// assert!(backup.run_now());
    /// clock.run_until_idle();
    /// assert_eq!((executor.statistics().runs, backup.delay()), (1, Some(minute)));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias("trigger", "notify", "fire"))]
    pub fn run_now(&self) -> bool {
        self.change(Change::RunNow(self.clock().read()))
    }

    /// Gives a periodic task another schedule. This call asks the trigger, on this thread, when the task runs next. The
    /// task keeps its [policy](crate::MissedRuns) for missed runs. If the trigger [retries](crate::Trigger::retry),
    /// failures no longer end the task, unless its [policy](crate::TaskBuilder::on_failure) says so.
    ///
    /// Also returns `false`, and changes nothing, if the task is a one-shot task, or if the trigger has no run or a
    /// period of zero, or cannot be [shared](crate::Trigger::share) behind the task's gate.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ScheduledThreadPoolExecutor, trigger::every};
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let poll = executor.repeat(every(Duration::from_secs(60)), || { /* look */ })?;
    /// assert!(poll.set_trigger(every(Duration::from_secs(1))), "there is news: look more often");
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the trigger panics. The task is then as it was.
    pub fn set_trigger(&self, trigger: impl Trigger) -> bool {
        let change = Change::schedule(trigger, self.task(), self.clock());
        change.is_some_and(|change| self.change(change))
    }

    /// Keeps the task from running until it is [resumed](Self::resume). Its schedule goes on, and its
    /// [policy](crate::MissedRuns) decides what becomes of the runs that it misses meanwhile, as if all workers had
    /// been busy for that time. A run that is under way is not interrupted.
    ///
    /// A time limit goes on counting. The task is [`Paused`](crate::TaskState::Paused) and stays pending: an executor
    /// that is shut down waits for it as for every delayed task. Also returns `false` if the task is already paused.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor, trigger::every};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let second = Duration::from_secs(1);
    /// let tick = executor.repeat(every(second).first_in(second), || ())?;
    /// assert!(tick.pause());
    /// clock.run_for(10 * second);
    /// assert!(tick.resume());
    /// clock.run_until_idle();
    /// assert_eq!(executor.statistics().runs, 1, "one run for the ten that were missed");
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias = "suspend")]
    pub fn pause(&self) -> bool {
        self.change(Change::Pause)
    }

    /// Ends a [pause](Self::pause). Also returns `false` if the task is not paused.
    pub fn resume(&self) -> bool {
        self.change(Change::Resume)
    }

    fn change(&self, change: Change) -> bool {
        let pool = self.pool();
        if pool.lifecycle.phase() >= Phase::OwnerDropped {
            discard(change);
            return false;
        }
        let (changed, deferred) = pool
            .with_entry(self.ticket(), |entry| self.task().control(change, pool.clock(), entry));
        deferred.run();
        changed
    }
}

/// Control of a task from inside its own run.
#[allow(clippy::must_use_candidate, reason = "they are done for what they do")]
impl TaskContext {
    /// Reschedules the periodic task: it runs next after `delay`, counted from now; see
    /// [`TaskHandle::reschedule`](crate::TaskHandle::reschedule). Returns `false` for a one-shot task, and unless the
    /// task itself calls this, in its run.
    pub fn reschedule(&self, delay: Duration) -> bool {
        self.change(|clock| Some(Change::At(clock.read().after(delay))))
    }

    /// Gives the periodic task another schedule; see [`TaskHandle::set_trigger`](crate::TaskHandle::set_trigger). Also
    /// returns `false` unless the task itself calls this, in its run.
    ///
    /// # Panics
    ///
    /// If the trigger panics.
    pub fn set_trigger(&self, trigger: impl Trigger) -> bool {
        let task = Arc::clone(&self.task);
        self.change(|clock| Change::schedule(trigger, &*task, clock))
    }

    /// Pauses the periodic task after this run; see [`TaskHandle::pause`](crate::TaskHandle::pause). Also returns
    /// `false` unless the task itself calls this, in its run.
    pub fn pause(&self) -> bool {
        self.change(|_| Some(Change::Pause))
    }

    /// Changes the task if the calling thread is running it; otherwise returns `false`. Outside its run, the task may
    /// have an entry in the queue, which this method cannot move.
    fn change(&self, change: impl FnOnce(&Clock) -> Option<Change>) -> bool {
        if !Run::is_of(&self.task) {
            return false;
        }
        let clock = self.stop.clock();
        let Some(change) = change(clock) else { return false };
        let (changed, deferred) = self.task.control(change, clock, &mut |_, _| Moved::Absent);
        deferred.run();
        changed
    }
}
