//! What a task runs: a closure once, or a closure again and again.
//!
//! The difference is who owns the captures during a call. A one-shot closure is called by value, so
//! the call itself drops its captures. A periodic closure is borrowed by each call and is still there
//! afterwards, whatever the call did; if a panic ends the task, the closure is dropped explicitly,
//! through [`unwind`](crate::unwind).

use std::{mem, time::Duration};

use super::{
    failure::FailurePolicy,
    hooks::{Drops, FailureSource, Hooks, Invocation},
    outcome::{Outcome, Step},
    period::Period,
    run::Run,
};
use crate::{
    Failure, RejectionReason,
    time::Timestamp,
    trigger::LastRun,
    unwind::{discard, discard_with},
};

/// What a task runs.
pub(crate) trait Job: Send + Sized + 'static {
    /// The result of the task.
    type Output: Send + 'static;

    const IS_PERIODIC: bool;

    /// Returns why the job cannot be submitted, if it cannot.
    #[inline]
    fn refusal(&self) -> Option<RejectionReason> {
        None
    }

    /// Runs the closure once, by `invocation`. User code: the caller holds no lock.
    fn run(self, invocation: Invocation<'_>) -> RunOutcome<Self>;

    /// Returns the slot of the queue, if the task has been queued again.
    fn slot(&self) -> Option<u32>;

    /// Notes that the queue has accepted the task again, in this slot.
    fn set_slot(&mut self, slot: u32);

    /// Sets the schedule. Returns the one that is not needed any more, or this one if the job runs once;
    /// its trigger is the user's, so the caller drops it when it holds no lock.
    fn set_schedule(&mut self, schedule: Period) -> Option<Period>;

    /// Returns how many runs there have been.
    fn runs(&self) -> u64;

    /// Returns how many runs were missed just before the run that was planned and started at these
    /// moments.
    fn missed(&self, planned: Timestamp, started: Timestamp) -> u64;
}

/// What follows from one run.
#[must_use]
pub(crate) enum RunOutcome<J: Job> {
    /// It was the last run.
    Ended(Result<J::Output, Failure>),
    /// Another run is planned for this moment.
    Again(J, Timestamp),
    /// Another run is planned for this moment, although this one failed.
    Failed(J, Timestamp, Failure),
    /// It was the last run, because the trigger has ended, and only a run can return a result.
    Exhausted,
}

/// A closure that runs once.
pub(crate) struct OneShot<F>(pub(crate) F);

impl<F, T> Job for OneShot<F>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    type Output = T;

    const IS_PERIODIC: bool = false;

    fn run(self, invocation: Invocation<'_>) -> RunOutcome<Self> {
        RunOutcome::Ended(invocation.call(Ok, self.0))
    }

    fn slot(&self) -> Option<u32> {
        None
    }

    fn set_slot(&mut self, _: u32) {}

    fn set_schedule(&mut self, schedule: Period) -> Option<Period> {
        Some(schedule)
    }

    fn runs(&self) -> u64 {
        0
    }

    fn missed(&self, _: Timestamp, _: Timestamp) -> u64 {
        0
    }
}

/// A closure that runs until it is cancelled, until it or its trigger ends the series, or until a
/// failure ends it by its policy.
pub(crate) struct Periodic<F> {
    body: F,
    period: Period,
    on_failure: FailurePolicy,
    slot: Option<u32>,
    /// How many runs in a row have failed.
    failures: u32,
    runs: u64,
    /// How many runs were left out after the last one.
    skipped: u64,
}

impl<F> Periodic<F> {
    pub(crate) fn new(body: F, period: Period) -> Self {
        let on_failure = FailurePolicy::stop();
        Self { body, period, on_failure, slot: None, failures: 0, runs: 0, skipped: 0 }
    }

    pub(crate) fn on_failure(mut self, policy: FailurePolicy) -> Self {
        self.on_failure = policy;
        self
    }

    /// Drops the body and the trigger, which are the user's.
    fn discard(self, run: &Run, drops: Drops<'_>) {
        let report = |panic| drops.report(run.task().name(), Failure::of_panic(panic));
        discard_with(self.body, report);
        discard(self.period);
    }

    /// Returns when the next run is, by the schedule; `None` if there is none.
    ///
    /// # Errors
    ///
    /// The panic of a trigger.
    fn plan(&mut self, run: &Run, hooks: &Hooks) -> Result<Option<Timestamp>, Failure> {
        let (planned, started) = (run.planned(), run.started());
        let last = LastRun { planned, started, ended: run.clock().read() };
        if let Some(plan) = self.period.plan(last) {
            self.skipped = plan.skipped;
            return Ok(Some(plan.next));
        }
        let (runs, failures) = (self.runs, self.failures);
        let ask = || self.period.ask(last, run.clock(), runs, failures);
        hooks.contain(FailureSource::Trigger, run, Ok, ask)
    }
}

impl<F, O> Job for Periodic<F>
where
    F: FnMut() -> O + Send + 'static,
    O: Outcome,
{
    type Output = O::Value;

    const IS_PERIODIC: bool = true;

    fn refusal(&self) -> Option<RejectionReason> {
        match self.period {
            Period::Never => Some(RejectionReason::NeverRuns),
            _ if self.period.is_zero() => Some(RejectionReason::ZeroPeriod),
            _ => None,
        }
    }

    fn run(mut self, invocation: Invocation<'_>) -> RunOutcome<Self> {
        let (run, hooks, drops) = (invocation.run, invocation.hooks, invocation.drops());
        let is_extra = invocation.is_extra;
        let outcome = invocation.call(|report| report, || (self.body)().report());
        self.runs += 1;
        self.failures = if outcome.is_ok() { 0 } else { self.failures.saturating_add(1) };
        let failure = match outcome {
            Ok(Step::Break(value)) => {
                self.discard(run, drops);
                return RunOutcome::Ended(Ok(value));
            }
            Ok(Step::After(delay)) => {
                self.skipped = 0;
                let next = run.clock().read().after(delay);
                return RunOutcome::Again(self, next);
            }
            Ok(Step::Next) => None,
            Err(failure) => {
                run.note_failure(self.failures);
                if self.on_failure.ends_after(self.failures) {
                    self.discard(run, drops);
                    return RunOutcome::Ended(Err(failure));
                }
                Some(failure)
            }
        };
        // After an extra run the plan stands, which the task knows and not the job.
        let plan = if is_extra { Ok(Some(run.planned())) } else { self.plan(run, hooks) };
        match (plan, failure) {
            (Ok(Some(next)), None) => RunOutcome::Again(self, next),
            (Ok(Some(next)), Some(failure)) => {
                // Without a delay the plan stands, even if it is in the past.
                let next = match self.on_failure.delay_after(self.failures) {
                    Duration::ZERO => next,
                    delay => next.max(run.clock().read().after(delay)),
                };
                RunOutcome::Failed(self, next, failure)
            }
            (Ok(None), failure) => {
                self.discard(run, drops);
                match (failure, O::exhausted()) {
                    (Some(failure), _) => RunOutcome::Ended(Err(failure)),
                    (None, Some(value)) => RunOutcome::Ended(Ok(value)),
                    (None, None) => RunOutcome::Exhausted,
                }
            }
            (Err(panic), failure) => {
                self.discard(run, drops);
                discard(failure);
                RunOutcome::Ended(Err(panic))
            }
        }
    }

    fn slot(&self) -> Option<u32> {
        self.slot
    }

    fn set_slot(&mut self, slot: u32) {
        self.slot = Some(slot);
    }

    fn set_schedule(&mut self, schedule: Period) -> Option<Period> {
        let schedule = schedule.with_missed_runs_of(&self.period);
        self.skipped = 0;
        Some(mem::replace(&mut self.period, schedule))
    }

    fn runs(&self) -> u64 {
        self.runs
    }

    fn missed(&self, planned: Timestamp, started: Timestamp) -> u64 {
        self.skipped.saturating_add(self.period.covered(planned, started))
    }
}
