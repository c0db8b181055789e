//! The time limit of a periodic task: one for each run.
//!
//! The code [around](Around) the closure arms an expiry when the run begins ([`Timer`]). If the task's policy
//! would end it at the first failure, the expiry ends the task. Otherwise the expiry only raises the token,
//! which is the run's own, and when the body has returned the run has failed, whatever it has returned
//! ([`Run::note_over_limit`]). As with the limit of a one-shot task, **the limit comes first**: a body that
//! ends at the very instant of its limit has exceeded it, however late the timer thread is.

use std::time::Duration;

use super::TaskBuilder;
use crate::{
    Failure,
    pool::{Exceeded, Expiry, Pool, PoolRef, TimeoutGuard, Timer},
    task::{Around, Cancellation, CurrentRun, FailedRun, FailureSource, Hooks, Run},
    time::Timestamp,
    unwind::discard,
};

impl TaskBuilder<'_> {
    /// Returns the code around each run that gives each run of a periodic task `budget` of time.
    pub(super) fn limit_runs(pool_ref: &PoolRef, budget: Duration) -> Option<Around> {
        let (timer, hooks) = (Timer::of(pool_ref)?, pool_ref.pool().callbacks.hooks.clone());
        Some(Around::new(move |body| {
            let Some(run) = Run::current() else { return body() };
            let limited = LimitedRun::begin(run, &timer, &hooks, budget);
            body();
            limited.end();
        }))
    }
}

/// A run of a periodic task that has a time limit. Until this is dropped the task's token belongs
/// to this run alone.
struct LimitedRun<'a> {
    run: CurrentRun,
    timer: &'a Timer,
    hooks: &'a Hooks,
    budget: Duration,
    limit: Timestamp,
    /// A run that takes too long ends the task if this is set, and otherwise fails.
    ends_task: bool,
    guard: Option<TimeoutGuard>,
    /// Set once the body has returned, to `true` if it took too long.
    is_over: Option<bool>,
}

impl<'a> LimitedRun<'a> {
    fn begin(run: CurrentRun, timer: &'a Timer, hooks: &'a Hooks, budget: Duration) -> Self {
        let ends_task = run.ends_by_failure;
        let limit = run.started.after(budget);
        run.task.begin_limited_run(limit);
        let (watched, watched_hooks) = (run.clone(), hooks.clone());
        let token = run.task.token(&run.stop);
        let exceeded = timer.exceeded.clone();
        let expiry = move |_: &Pool| {
            if ends_task {
                end_over_limit(&watched, &watched_hooks, budget, limit, &exceeded);
            }
            watched.task.note_run_over_limit(limit);
            token.cancel();
            discard(watched);
        };
        let guard = timer.arm(limit, Expiry::new(expiry));
        Self { run, timer, hooks, budget, limit, ends_task, guard, is_over: None }
    }

    /// Disarms the timeout. Returns `true` if the body, which has returned, took too long.
    fn disarm(&mut self) -> bool {
        // First: an expiry that is under way has found the limit exceeded, and so will this.
        drop(self.guard.take());
        *self.is_over.get_or_insert_with(|| self.limit <= self.timer.clock.read())
    }

    /// Ends the limit of a run whose body has returned. Notes if it took too long, which fails the run.
    fn end(mut self) {
        if !self.disarm() {
            return;
        }
        if self.ends_task {
            let exceeded = &self.timer.exceeded;
            end_over_limit(&self.run, self.hooks, self.budget, self.limit, exceeded);
        } else {
            self.timer.exceeded.count();
        }
        Run::note_over_limit(self.budget);
    }
}

impl Drop for LimitedRun<'_> {
    fn drop(&mut self) {
        let is_over = self.disarm();
        self.run.task.end_limited_run(is_over);
    }
}

/// Ends a periodic task because one of its runs took too long, and reports it, unless the task has
/// ended.
fn end_over_limit(
    run: &CurrentRun,
    hooks: &Hooks,
    budget: Duration,
    limit: Timestamp,
    exceeded: &Exceeded,
) {
    let failure = Failure::of_time_limit(budget);
    let failed = FailedRun::new(run.number, 1, &failure);
    let found = run.task.time_out(limit, Some(failed), hooks.drops(run.id));
    if found != Cancellation::TooLate {
        exceeded.note(&*run.task, run.id);
        hooks.tell_ended(FailureSource::TimeLimit, &run.subject(), &failure);
    }
}
