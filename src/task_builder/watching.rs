//! What watches each run of a task: a time limit of a periodic task, and the watchdog, which names a run that takes
//! longer than its set time.
//!
//! Both are code [around](Around) the closure. When the body begins they arm an expiry for the run ([`Timer`]), and when it
//! has returned they disarm that and look at the clock: if the time is up by then, the worker does what the timer thread
//! was late to do. So each run that took its time or longer is found, and no other is, on a manual clock to the
//! nanosecond.
//!
//! * *The limit.* If the task's policy would end it at the first failure, the expiry ends the task. Otherwise the expiry
//!   only raises the token, which is the run's own, and when the body has returned the run has failed, whatever it has
//!   returned ([`Run::note_over_limit`]).
//! * *The watchdog.* Whichever of the two threads comes first raises `is_told`, and names the run.

use std::{panic::Location, time::Duration};

use super::TaskBuilder;
use crate::{
    Failure, SlowRun, TaskContext,
    pool::{Exceeded, OnSlowRun, Pool, PoolRef, TimeoutGuard, Timer, expiry},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Around, Cancellation, FailedRun, FailureSource, Hooks, Run},
    time::{Clock, Timestamp},
    trace,
    unwind::{Callback, discard},
};

impl TaskBuilder<'_> {
    /// Returns the code around each run that gives each run of a periodic task `budget` of time.
    pub(super) fn limit_runs(pool_ref: &PoolRef, budget: Duration) -> Option<Around> {
        let (timer, hooks) = (Timer::of(pool_ref)?, pool_ref.pool().callbacks.hooks.clone());
        let limits = SeriesLimit { budget, hooks, exceeded: timer.exceeded.clone() };
        Some(Around::new(move |body| {
            let Some(run) = Run::watched() else { return body() };
            let limited = LimitedRun::begin(run, &limits, &timer);
            body();
            limited.end();
        }))
    }

    /// Returns the code around each run that names one which takes `limit` or longer; `None` if none can, or if the
    /// pool is at its end.
    pub(super) fn watch_runs(
        pool_ref: &PoolRef,
        limit: Duration,
        scheduled_at: &'static Location<'static>,
    ) -> Option<Around> {
        if limit == Duration::MAX {
            return None;
        }
        // If there is none, the worker names the run when it has ended.
        let started = pool_ref.pool().ensure_timer_thread();
        started.unwrap_or_else(|error| trace::spawn_failed(&error));
        let timer = Timer::of(pool_ref)?;
        let (clock, callbacks) = (pool_ref.pool().clock().clone(), &pool_ref.pool().callbacks);
        let (hooks, callback) = (callbacks.hooks.clone(), callbacks.slow_run.clone());
        let watchdog = Arc::new(Watchdog { limit, scheduled_at, clock, hooks, callback });
        Some(Around::new(move |body| {
            let watch = Run::watched().map(|run| Watch::begin(&watchdog, &timer, run));
            body();
            drop(watch);
        }))
    }
}

/// The time limit of a task's runs, the same for all.
#[derive(Clone)]
struct SeriesLimit {
    budget: Duration,
    hooks: Hooks,
    exceeded: Exceeded,
}

impl SeriesLimit {
    /// Ends the task because one of its runs took too long, and reports it, unless the task has ended.
    fn end_task(&self, run: &TaskContext, limit: Timestamp) {
        let failure = Failure::of_time_limit(self.budget);
        let failed = FailedRun::new(run.number, 1, &failure);
        let found = run.task.time_out(limit, Some(failed), self.hooks.drops(run.id.0));
        if found != Cancellation::TooLate {
            self.exceeded.note(&*run.task, run.id.0);
            self.hooks.tell_ended(FailureSource::TimeLimit, &run.subject(), &failure);
        }
    }
}

/// A run of a periodic task that has a time limit. Until this is dropped the task's token belongs
/// to this run alone. A run that takes too long ends the task if a failure would, and otherwise fails.
struct LimitedRun<'a> {
    run: TaskContext,
    limits: &'a SeriesLimit,
    clock: &'a Clock,
    limit: Timestamp,
    guard: Option<TimeoutGuard>,
    /// Set once the body has returned, to `true` if it took too long.
    is_over: Option<bool>,
}

impl<'a> LimitedRun<'a> {
    fn begin(run: TaskContext, limits: &'a SeriesLimit, timer: &'a Timer) -> Self {
        let limit = run.started.after(limits.budget);
        run.task.begin_limited_run(limit);
        let (watched, watched_limits) = (run.clone(), limits.clone());
        let token = run.task.token(&run.stop);
        let act = move |_: &Pool| {
            if watched.ends_by_failure {
                watched_limits.end_task(&watched, limit);
            }
            watched.task.note_run_over_limit(limit);
            token.cancel();
            discard(watched);
        };
        let guard = timer.arm(limit, expiry(act));
        Self { run, limits, clock: &timer.clock, limit, guard, is_over: None }
    }

    /// Disarms the timeout. Returns `true` if the body, which has returned, took too long.
    fn disarm(&mut self) -> bool {
        // First: an expiry that is under way has found the limit exceeded, and so will this.
        drop(self.guard.take());
        *self.is_over.get_or_insert_with(|| self.limit <= self.clock.read())
    }

    /// Ends the limit of a run whose body has returned. Notes if it took too long, which fails the run.
    fn end(mut self) {
        if !self.disarm() {
            return;
        }
        if self.run.ends_by_failure {
            self.limits.end_task(&self.run, self.limit);
        } else {
            self.limits.exceeded.count();
        }
        Run::note_over_limit(self.limits.budget);
    }
}

impl Drop for LimitedRun<'_> {
    fn drop(&mut self) {
        let is_over = self.disarm();
        self.run.task.end_limited_run(is_over);
    }
}

/// The facts that are the same for all runs of a task.
struct Watchdog {
    limit: Duration,
    scheduled_at: &'static Location<'static>,
    clock: Clock,
    hooks: Hooks,
    callback: Option<Callback<OnSlowRun>>,
}

/// One run that is watched, as the worker and the timer thread share it.
struct WatchedRun {
    watchdog: Arc<Watchdog>,
    run: TaskContext,
    is_told: AtomicBool,
}

impl WatchedRun {
    fn tell(&self) {
        // Relaxed: orders no other access.
        if self.is_told.swap(true, Ordering::Relaxed) {
            return;
        }
        let Watchdog { limit, scheduled_at, clock, hooks, callback } = &*self.watchdog;
        let slow = SlowRun::of(&self.run, clock.read(), *limit, scheduled_at);
        let (number, running_for) = (slow.run_number(), slow.running_for());
        trace::slow_run(self.run.id.0, slow.name(), number, running_for, scheduled_at);
        if let Some(callback) = callback {
            hooks.call_aside(FailureSource::SlowRun, || callback(&slow));
        }
    }
}

/// A run whose time is measured until this is dropped.
struct Watch {
    watched: Arc<WatchedRun>,
    moment: Timestamp,
    guard: Option<TimeoutGuard>,
}

impl Watch {
    fn begin(watchdog: &Arc<Watchdog>, timer: &Timer, run: TaskContext) -> Self {
        let moment = run.started.after(watchdog.limit);
        let is_told = AtomicBool::new(false);
        let watched = Arc::new(WatchedRun { watchdog: Arc::clone(watchdog), run, is_told });
        let seen = Arc::clone(&watched);
        let act = move |_: &_| {
            seen.tell();
            discard(seen);
        };
        let guard = timer.arm(moment, expiry(act));
        Self { watched, moment, guard }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        drop(self.guard.take());
        if self.moment <= self.watched.watchdog.clock.read() {
            self.watched.tell();
        }
    }
}
