//! The time limit of a task: when it has to have ended, and when its present run has to.
//!
//! A task that runs once has to have ended its budget after it is due. The limit moves with the plan, under the lock
//! under which the plan moves; so an expiry that was armed for another limit finds that, and does nothing. A series
//! has a limit for each run, while it is under way.
//!
//! A series that goes on after a run that took too long is not called off by the token that its timer thread raises then: the
//! token is the run's own. So the expiry notes under the task's lock that it raises it, and what is asked of the
//! series until the body returns has its effect.
//!
//! An expiry itself is an entry of the timer thread's queue ([`timeouts`](crate::pool)). What disarms it is attached
//! here, and is dropped when the task has ended. The worker that has taken a task looks at the limit as well, so a
//! task whose time is up does not begin, whatever the timer thread does. A run by hand does not: the timer thread
//! may be gone, and the limit, and the token with it, is left to that thread alone.

use std::time::Duration;

use crate::{
    CancelReason, CancellationToken,
    task::{Call, Leftovers, Parts, Replan, Run, Task, Verdict},
    time::{Clock, Timestamp},
    unwind::discard,
};

/// A value that lives until its task has ended. Dropping it is user code.
pub(crate) type Attachment = Box<dyn Send>;

#[derive(Default)]
pub(crate) struct TimeLimit {
    of_task: Option<Budget>,
    of_run: Option<RunLimit>,
    is_ignored: bool,
    attachment: Option<Attachment>,
}

/// When a run of a series has to have ended.
struct RunLimit {
    moment: Timestamp,
    /// The timer thread raises the token, or has raised it.
    is_over: bool,
}

/// Until when a task that runs once has to have ended.
#[derive(Clone, Copy)]
struct Budget {
    moment: Timestamp,
    /// The time that it has from when it is due.
    budget: Duration,
}

impl TimeLimit {
    pub(crate) fn before_run(&mut self, call: &mut Call<'_>) -> Result<(), Verdict> {
        self.is_ignored = call.run.is_by_hand();
        if self.expiry().is_none_or(|moment| moment > call.run.started()) {
            return Ok(());
        }
        call.extras().gives_up = Some(CancelReason::TimedOut);
        Err(Verdict::Again(call.run.started()))
    }

    pub(crate) fn on_replan(&mut self, replan: &mut Replan) {
        let moved = replan.plan.zip(self.of_task);
        replan.expiry = moved.map(|(plan, limit)| self.set(plan, limit.budget));
    }

    pub(crate) fn on_end(&mut self, left: &mut Leftovers) {
        left.values.extend(self.attachment.take());
    }

    fn expiry(&self) -> Option<Timestamp> {
        self.of_task.filter(|_| !self.is_ignored).map(|limit| limit.moment)
    }

    pub(crate) fn token_limit(&self) -> Option<Timestamp> {
        self.expiry().or_else(|| self.of_run.as_ref().map(|limit| limit.moment))
    }

    pub(crate) fn has_run_over_limit(&self) -> bool {
        self.of_run.as_ref().is_some_and(|limit| limit.is_over)
    }

    fn has_moved(&self, limit: Timestamp) -> bool {
        self.of_task.is_some_and(|own| own.moment != limit)
    }

    /// Limits a task that is due at `due` to `budget` from then on. Returns the limit.
    fn set(&mut self, due: Timestamp, budget: Duration) -> Timestamp {
        let moment = due.after(budget);
        self.of_task = Some(Budget { moment, budget });
        moment
    }
}

impl Task {
    /// Adds a time limit, `budget` after `due`, to a task that is not queued yet.
    pub(crate) fn limit(&self, due: Timestamp, budget: Duration) {
        self.with(|parts| parts.limit_or_default().set(due, budget));
    }

    /// Begins a run that has a time limit, and so a token of its own.
    pub(crate) fn begin_limited_run(&self, limit: Timestamp) {
        let token = self.with(|parts| {
            parts.limit_or_default().of_run = Some(RunLimit { moment: limit, is_over: false });
            parts.extras().token.take()
        });
        discard(token);
    }

    /// Notes that the token of that run is about to be raised, because its time is up. If another run has begun meanwhile,
    /// it has another limit.
    pub(crate) fn note_run_over_limit(&self, limit: Timestamp) {
        self.with(|parts| {
            let of_run = parts.limit().and_then(|limit| limit.of_run.as_mut());
            if let Some(of_run) = of_run.filter(|of_run| of_run.moment == limit) {
                of_run.is_over = true;
            }
        });
    }

    /// Ends that run. Its token ends with it, raised if the limit `is_over`; but a token that the
    /// task itself has raised within the limit is kept, so that the task is then called off.
    pub(crate) fn end_limited_run(&self, is_over: bool) {
        let token: Option<CancellationToken> = self.with(|parts| {
            let is_kept = !is_over && parts.is_called_off();
            parts.limit_or_default().of_run = None;
            if is_kept { None } else { parts.extras().token.take() }
        });
        match token {
            Some(token) if is_over => token.cancel(),
            Some(token) => token.set_limit(None),
            None => {}
        }
    }

    /// Keeps the guard that disarms the expiry of `limit` until the task has ended; drops it at once if it has, or
    /// if the task has another limit meanwhile. It replaces the one before it.
    pub(crate) fn attach(&self, attachment: Attachment, limit: Timestamp) {
        let unused = self.with(|parts| {
            if parts.stage.is_done() || parts.has_moved(limit) {
                return Some(attachment);
            }
            parts.limit_or_default().attachment.replace(attachment)
        });
        discard(unused);
    }
}

impl Parts<'_> {
    fn limit(&mut self) -> Option<&mut TimeLimit> {
        self.extensions()?.limit.as_deref_mut()
    }

    fn limit_or_default(&mut self) -> &mut TimeLimit {
        self.extras().extensions.limit.get_or_insert_default()
    }

    /// Returns when the task has to have ended.
    pub(crate) fn expiry(&mut self) -> Option<Timestamp> {
        self.limit()?.expiry()
    }

    pub(crate) fn is_over(&mut self, clock: &Clock) -> bool {
        self.expiry().is_some_and(|moment| moment <= clock.read())
    }

    /// Returns when the token of the task is raised.
    pub(crate) fn token_limit(&mut self) -> Option<Timestamp> {
        self.limit()?.token_limit()
    }

    /// Returns `true` if the task has another limit than this one.
    pub(crate) fn has_moved(&mut self, limit: Timestamp) -> bool {
        self.limit().is_some_and(|own| own.has_moved(limit))
    }
}

impl Run {
    /// Returns the time limit, if the run exceeded it.
    pub(crate) fn take_over_limit(&self) -> Option<Duration> {
        self.worker.over_limit.take()
    }

    /// Notes that the innermost run that the calling thread is in exceeded this time limit.
    pub(crate) fn note_over_limit(limit: Duration) {
        Self::with_current(|run| run.worker.over_limit.set(Some(limit)));
    }
}
