//! The time limit of a task: the moment by which the task or, in a series, the current run must have ended.
//!
//! A one-shot task must end within its budget, counted from its planned moment. The limit moves with the plan, under
//! the task's lock. The thread that moves the plan arms another [expiry](timer) afterwards (`Task::arm_limits`). An
//! expiry whose limit has moved does nothing. In a series, each run has a limit while it is under way.
//!
//! The timer thread cancels the token of an overlong run. That does not call off a series that goes on after a failed
//! run, because the token belongs to the run. Before the expiry cancels the token, it notes under the task's lock that
//! it is about to do so. Otherwise a request to the series during the rest of the run, such as a new schedule, would
//! find the token cancelled, and would be refused.
//!
//! # Which thread wins
//!
//! The timer thread and any other thread that is about to end the task race for the task's lock; the second one finds
//! the task done, and does not end it again. The thread that ends a task drops the task's
//! [`TimeoutGuard`](timer::TimeoutGuard), which takes the expiry out of the timer's queue. If the task has ended before
//! the guard is attached, the guard is dropped at once. A later guard replaces an earlier one.
//!
//! **The limit comes first.** A task times out unless it ends before its limit, however late the timer thread is. The
//! worker that takes the task, or that has run it, compares the limit with the clock. If the limit has come, the worker
//! does what the expiry would do, under the task's lock. A task whose body returns at the very instant of the limit
//! times out, and a one-shot task with a limit of zero never runs. So on a manual clock every such tie has the same
//! outcome, and the task's token counts as cancelled from that instant too (`CancellationToken::set_limit`).
//!
//! If a one-shot task is run by hand, only the timer thread enforces the limit, and that thread may be gone.

mod of_runs;
mod timer;

use std::time::Duration;

pub(crate) use self::timer::{Timeouts, expire};
use self::timer::{Timer, expiry};
use crate::{
    CancelReason, CancellationToken, TaskBuilder,
    entry::Ticket,
    pool::{IfRunning, Pool, PoolRef},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Call, Cancellation, Leftovers, Parts, Replan, Task, Verdict},
    time::Timestamp,
    trace,
    unwind::discard,
};

/// How many time limits, of tasks and of single runs, have been exceeded in a pool.
#[derive(Clone, Default)]
pub(crate) struct Exceeded(Arc<AtomicU64>);

impl Exceeded {
    fn count(&self) {
        // Relaxed: orders no other access.
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn number(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts a limit that has ended a task, and emits the event `cancelled`.
    fn note(&self, task: &Task, id: u64) {
        self.count();
        if trace::is_listening() {
            trace::cancelled(id, task.name().as_deref(), &CancelReason::TimedOut);
        }
    }
}

/// A function that arms a task's expiry for a limit, in place of any earlier expiry. Its caller holds no lock.
type Arm = Arc<dyn Fn(Timestamp) + Send + Sync>;

impl TaskBuilder<'_> {
    /// Sets a time limit for the task; without this call it has none. The first limit makes the executor start a thread
    /// that watches over all of them; the first that expires makes it start a second, so that a capture that blocks in
    /// its drop holds up no other limit. Java 25: `submitWithTimeout`.
    ///
    /// * **A one-shot task** has this much time from the moment it is due, including any wait for a worker. When the
    ///   time is up, its future completes, with [`CancelReason::TimedOut`](crate::CancelReason). If the task is still
    ///   pending it never runs; if it runs, its [token](crate::TaskContext::token) is cancelled.
    /// * **A periodic task** has this much time for each run. If it is to [stop](crate::FailurePolicy::stop) at the first
    ///   failure, a run that takes longer ends the task in the same way, and the [failure
    ///   handler](crate::Builder::failure_handler) is called. Otherwise the token of such a run, a new one for each
    ///   run, is cancelled, and the run has failed once its body has returned, with the time limit as the
    ///   [cause](crate::FailureKind::TimeLimit).
    ///
    /// The limit has precedence: a body that returns at the very moment when its time is up has timed out, and a
    /// one-shot task with a timeout of zero never runs. A task that ends in time leaves nothing of its limit in the
    /// queue. A limit of `Duration::MAX` never expires.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ScheduledThreadPoolExecutor, with_context};
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let endless = with_context(|run| run.token().wait()); // until it is cancelled
    /// let endless = executor.task().timeout(Duration::from_millis(5)).submit(endless)?;
    /// assert!(endless.join().expect_err("it had five milliseconds").is_timeout());
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias("submitWithTimeout", "deadline", "time_limit"))]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.requested.limit = Some(timeout);
        self
    }
}

impl PoolRef {
    /// Arms the limit of a one-shot task, if it has one, now and each time the limit moves. Does nothing for a series.
    pub(crate) fn watch_limit(&self, task: &Arc<Task>, ticket: Ticket) {
        let Some(timer) = Timer::of(self).filter(|_| !task.is_periodic()) else { return };
        let of_task = Arc::downgrade(task);
        task.arm_limits(Arc::new(move |limit| {
            let Some(task) = of_task.upgrade().filter(|_| limit < Timestamp::NEVER) else { return };
            let watched = Arc::clone(&task);
            let act = move |pool: &Pool| {
                let drops = pool.callbacks.hooks.drops(ticket.sequence);
                let found = watched.time_out(limit, None, drops);
                if found != Cancellation::TooLate {
                    pool.note_timed_out(&*watched, ticket.sequence);
                }
                pool.take_out(&*watched, ticket, found, IfRunning::Signal);
                discard(watched);
            };
            if let Some(guard) = timer.arm(limit, expiry(act)) {
                task.attach(Box::new(guard), limit);
            }
            discard(task);
        }));
    }
}

impl Pool {
    #[cold]
    pub(crate) fn note_timed_out(&self, task: &Task, id: u64) {
        self.extensions.timeouts.exceeded.note(task, id);
        self.log.cancelled(id, || task.name());
    }
}

#[derive(Default)]
pub(crate) struct TimeLimit {
    /// When the task or, in a series, the current run must have ended; `None` between the runs of a series.
    moment: Option<Timestamp>,
    /// How long a one-shot task has from its planned moment; `None` for a series.
    budget: Option<Duration>,
    is_ignored: bool,
    /// `true` if the timer thread has cancelled the token of a series' current run, or is about to do so.
    pub(crate) is_run_over: bool,
    /// The function that arms an expiry; `None` for a series, during the submission, and once the task has ended.
    arm: Option<Arm>,
    /// The guard of the armed expiry; `None` before one is armed, and once the task has ended. Dropping the guard may
    /// run user code.
    guard: Option<Box<dyn Send>>,
}

impl TimeLimit {
    /// Makes the limit of a one-shot task. The budget is counted from `due`.
    pub(crate) fn new(due: Timestamp, budget: Duration) -> Self {
        Self { moment: Some(due.after(budget)), budget: Some(budget), ..Self::default() }
    }

    pub(crate) fn before_run(&mut self, call: &mut Call<'_>) -> Result<(), Verdict> {
        self.is_ignored = call.run.is_by_hand();
        if self.expiry().is_none_or(|moment| moment > call.run.started()) {
            return Ok(());
        }
        call.extras().gives_up = Some(CancelReason::TimedOut);
        Err(Verdict::Again(call.run.started()))
    }

    pub(crate) fn on_replan(&mut self, replan: &mut Replan<'_>) {
        let Some((plan, budget)) = replan.plan.zip(self.budget) else { return };
        let limit = plan.after(budget);
        self.moment = Some(limit);
        if let Some(arm) = self.arm.clone() {
            replan.deferred.push(move || arm(limit));
        }
    }

    pub(crate) fn on_end(&mut self, left: &mut Leftovers) {
        left.values.extend(self.guard.take());
        left.keep(self.arm.take());
    }

    pub(crate) fn expiry(&self) -> Option<Timestamp> {
        self.moment.filter(|_| self.budget.is_some() && !self.is_ignored)
    }

    /// Returns the moment at which a time limit cancels the task's token; `None` if no limit does.
    pub(crate) fn token_limit(&self) -> Option<Timestamp> {
        self.moment.filter(|_| self.budget.is_none() || !self.is_ignored)
    }

    /// Returns `true` if the task is a one-shot task, and its limit is no longer `limit`.
    pub(crate) fn has_moved(&self, limit: Timestamp) -> bool {
        self.budget.is_some() && self.moment != Some(limit)
    }
}

impl Task {
    /// Arms the task's current limit and each later one with `arm`. Does nothing if the task has no limit or has ended.
    pub(crate) fn arm_limits(&self, arm: Arm) {
        let present = self.with(|parts| {
            // A task that has already ended would never drop `arm`.
            let limit = if parts.stage.is_done() { None } else { parts.limit() }?;
            limit.arm = Some(Arc::clone(&arm));
            limit.moment
        });
        if let Some(present) = present {
            arm(present);
        }
    }

    /// Notes the limit of a run that is starting, and drops the task's token, so that the run gets one of its own.
    pub(crate) fn begin_limited_run(&self, limit: Timestamp) {
        let token = self.with(|parts| {
            parts.limit_or_default().moment = Some(limit);
            parts.extras().token.take()
        });
        discard(token);
    }

    /// If the run with this limit has not ended, notes that the timer thread is about to cancel the run's token.
    pub(crate) fn note_run_over_limit(&self, limit: Timestamp) {
        self.with(|parts| {
            if let Some(own) = parts.limit().filter(|own| own.moment == Some(limit)) {
                own.is_run_over = true;
            }
        });
    }

    /// Ends a limited run. If the limit has come (`is_over`), cancels and drops the run's token. Otherwise drops the
    /// token, unless the token itself (not just its parent) was cancelled: such a token stays, and calls the task off.
    pub(crate) fn end_limited_run(&self, is_over: bool) {
        let token: Option<CancellationToken> = self.with(|parts| {
            let is_kept = !is_over && parts.is_called_off();
            let limit = parts.limit_or_default();
            (limit.moment, limit.is_run_over) = (None, false);
            if is_kept { None } else { parts.extras().token.take() }
        });
        match token {
            Some(token) if is_over => token.cancel(),
            Some(token) => token.set_limit(None),
            None => {}
        }
    }

    /// Keeps the guard of the expiry for `limit`, in place of any earlier guard, until the task ends. Drops the guard
    /// at once if the task has ended, or has another limit.
    pub(crate) fn attach(&self, guard: Box<dyn Send>, limit: Timestamp) {
        let unused = self.with(|parts| {
            if parts.stage.is_done() || parts.has_other_limit(limit) {
                return Some(guard);
            }
            parts.limit_or_default().guard.replace(guard)
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
}
