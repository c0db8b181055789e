//! The time limit of a series, which applies to each run.
//!
//! It is code [around](Around) the closure. When the body begins it arms an expiry for the run ([`Timer`]); when the
//! body has returned it disarms that and checks the clock. If the time is up, the worker does what the timer thread has
//! not done. So a run fails if and only if it took its limit or longer, on a manual clock to the nanosecond.
//!
//! If the task's policy would end it at the first failure, the expiry ends the task. Otherwise the expiry only cancels
//! the token, which is the run's own, and the run fails when the body returns, whatever it returns
//! ([`Run::overrule`]).

use std::time::Duration;

use super::{
    Exceeded,
    timer::{TimeoutGuard, Timer, expiry},
};
use crate::{
    Failure, TaskContext,
    pool::{Pool, PoolRef},
    task::{Around, Cancellation, FailedRun, FailureSource, Hooks, Run},
    time::{Clock, Timestamp},
    unwind::discard,
};

impl Around {
    /// Returns the code around each run that limits the run to `budget`.
    pub(crate) fn limiting(pool_ref: &PoolRef, budget: Duration) -> Option<Self> {
        let (timer, pool) = (Timer::of(pool_ref)?, pool_ref.pool());
        let (hooks, exceeded) =
            (pool.callbacks.hooks.clone(), pool.extensions.timeouts.exceeded.clone());
        let limits = SeriesLimit { budget, hooks, exceeded };
        Some(Self::new(move |body| {
            let mut limited = Run::watched().map(|run| LimitedRun::begin(run, &limits, &timer));
            body();
            if let Some(limited) = &mut limited {
                limited.has_returned = true;
            }
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
    has_returned: bool,
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
        Self { run, limits, clock: &timer.clock, limit, guard, has_returned: false }
    }
}

impl Drop for LimitedRun<'_> {
    fn drop(&mut self) {
        let Self { run, limits, .. } = self;
        // First: an expiry that is under way has found the limit exceeded, and so will this.
        drop(self.guard.take());
        let is_over = self.limit <= self.clock.read();
        if is_over && self.has_returned {
            if run.ends_by_failure {
                limits.end_task(run, self.limit);
            } else {
                limits.exceeded.count();
            }
            Run::overrule(Failure::of_time_limit(limits.budget));
        }
        run.task.end_limited_run(is_over);
    }
}
