//! The time limit of a series, which applies to each of its runs.
//!
//! The code [around](Around) the task's closure enforces the limit. Before the body, this code arms an expiry for the
//! run ([`Timer`]); after the body, it disarms the expiry and checks the clock. If the time is up, the worker does
//! whatever the timer thread has not yet done. So a run whose body returns counts as too long if and only if it took at
//! least as long as the limit; on a manual clock, this is exact to the nanosecond.
//!
//! If the failure policy would end the task at its first failure, the expiry ends the task. Otherwise the expiry only
//! cancels the token, which is the run's own, and the run fails when the body returns, whatever the result
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
    /// Makes the code around each run of a series that limits the run to `budget`; `None` if the pool has no [`Timer`].
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

/// The time limit of each run of a series, shared by the worker and the timer thread.
#[derive(Clone)]
struct SeriesLimit {
    budget: Duration,
    hooks: Hooks,
    exceeded: Exceeded,
}

impl SeriesLimit {
    /// Ends the task because a run took too long, and reports the failure, unless the task has already ended.
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

/// A run of a series with a time limit. Until this is dropped, the task's token belongs to this run alone.
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
        // First: if an expiry is under way by now, its limit has come, and so the clock read below shows that, too.
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
