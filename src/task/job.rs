//! What a task runs: a closure once, or a closure again and again.
//!
//! The difference is who owns the captures during a call. A one-shot closure is called by value, so
//! the call itself drops its captures. A periodic closure is borrowed by each call and is still there
//! afterwards, whatever the call did; if a panic ends the task, the closure is dropped explicitly,
//! through [`unwind`](crate::unwind).

use std::{
    mem,
    time::{Duration, SystemTime},
};

use super::{
    FailureSource,
    failure::FailurePolicy,
    hooks::{Drops, Hooks, Invocation},
    outcome::{NamedRun, Outcome, Step},
    period::Period,
    run::Run,
    triggered::WallView,
};
use crate::{
    Failure, RejectionReason,
    time::{Clock, Timestamp},
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

    /// Tells a job that waits that its task has ended as cancelled. The caller holds the task's lock, and
    /// drops the job without it.
    #[inline]
    fn will_not_run(&mut self) {}

    /// Returns the slot of the queue, if the task has been queued again.
    fn slot(&self) -> Option<u32>;

    /// Notes that the queue has accepted the task again, in this slot.
    fn set_slot(&mut self, slot: u32);

    /// Sets the schedule. Returns the one that is not needed any more, or this one if the job runs once;
    /// its trigger is the user's, so the caller drops it when it holds no lock.
    fn set_schedule(&mut self, schedule: Period) -> Option<Period>;

    /// Returns how many runs there have been.
    fn runs(&self) -> u64;

    /// Returns `true` if the schedule is a trigger of the user's. Only that can plan on the wall clock.
    #[inline]
    fn has_trigger(&self) -> bool {
        false
    }

    /// Returns `true` if the next run is planned on the wall clock.
    fn is_on_wall(&self) -> bool {
        false
    }

    /// Returns how the plan stands by the wall clock; `None` if it is on another.
    fn view_wall(&self, _: &Clock) -> Option<WallView> {
        None
    }

    /// As [`view_wall`](Self::view_wall), for a run that starts if its moment has come.
    fn start_on_wall(&mut self, _: &Clock) -> Option<WallView> {
        None
    }

    /// Forgets the plan on the wall clock.
    fn leave_wall(&mut self) {}

    /// Returns the moment of the wall clock for which the next run is planned; `None` if it is on another.
    fn planned_wall(&self) -> Option<SystemTime> {
        None
    }

    /// Leaves this run out, and plans the next, if there is one. Calls the trigger, which is user code: the
    /// caller holds no lock.
    fn skip(self, _is_extra: bool, run: &Run, _: &Hooks) -> RunOutcome<Self> {
        RunOutcome::Again(self, run.planned())
    }

    /// Asks the trigger again for the run that it has planned. User code: the caller holds no lock.
    ///
    /// # Errors
    ///
    /// The panic of the trigger.
    fn ask_again(self, run: &Run, _: &Hooks) -> Result<(Self, Timestamp), Failure> {
        Ok((self, run.planned()))
    }

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
    #[inline(always)]
    fn plan(&mut self, run: &Run, hooks: &Hooks) -> Result<Option<Timestamp>, Failure> {
        let (planned, started) = (run.planned(), run.started());
        if let Some(plan) = self.period.plan(planned, started, || run.clock().read()) {
            self.skipped = plan.skipped;
            return Ok(Some(plan.next));
        }
        let ended = run.clock().read();
        let last = LastRun { planned, planned_wall: None, started, ended };
        let (runs, failures) = (self.runs, self.failures);
        let Some(triggered) = self.period.triggered_mut() else { return Ok(None) };
        let ask = || {
            let next = triggered.ask(last, run.clock(), runs, failures)?;
            Some((next, triggered.skipped(next, run.clock())))
        };
        let asked = hooks.contain(FailureSource::Trigger, run, Ok, ask)?;
        self.skipped = asked.map_or(0, |(_, skipped)| skipped);
        Ok(asked.map(|(next, _)| next))
    }

    /// Tells a run how many moments of its trigger it stands for.
    ///
    /// # Errors
    ///
    /// The panic of the trigger.
    #[cold]
    fn count_covered(&self, run: &Run, hooks: &Hooks) -> Result<(), Failure> {
        let Some(triggered) = self.period.triggered() else { return Ok(()) };
        let count = || triggered.covered(run.planned(), run.started(), run.clock());
        let covered = hooks.contain(FailureSource::Trigger, run, Ok, count)?;
        run.add_missed(covered);
        Ok(())
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
        if self.has_trigger() && !is_extra {
            if let Err(panic) = self.count_covered(run, hooks) {
                self.discard(run, drops);
                return RunOutcome::Ended(Err(panic));
            }
        }
        let outcome = invocation.call(|report| report, || (self.body)().report());
        self.runs += 1;
        self.failures = if outcome.is_ok() { 0 } else { self.failures.saturating_add(1) };
        let failure = match outcome {
            Ok(Step::Break(value)) => {
                self.discard(run, drops);
                return RunOutcome::Ended(Ok(value));
            }
            Ok(Step::Named(named)) => {
                self.skipped = 0;
                if !is_extra {
                    self.leave_wall();
                }
                let next = match named {
                    NamedRun::After(delay) => run.clock().read().after(delay),
                    NamedRun::At(moment) => run.clock().deadline_of(moment),
                };
                return RunOutcome::Again(self, next);
            }
            Ok(Step::Next) => None,
            Err(failure) => {
                run.note_failure(self.failures);
                if self.on_failure.ends_after(self.failures) {
                    hooks.tell_failed_end(run, &failure);
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
                    delay => {
                        let later = run.clock().read().after(delay);
                        if later > next && !is_extra {
                            self.leave_wall();
                        }
                        next.max(later)
                    }
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

    fn has_trigger(&self) -> bool {
        self.period.triggered().is_some()
    }

    fn is_on_wall(&self) -> bool {
        self.period.is_on_wall()
    }

    fn planned_wall(&self) -> Option<SystemTime> {
        self.period.triggered()?.planned_wall()
    }

    fn skip(mut self, is_extra: bool, run: &Run, hooks: &Hooks) -> RunOutcome<Self> {
        let plan = if is_extra {
            Ok(Some(run.planned()))
        } else {
            self.count_covered(run, hooks).and_then(|()| self.plan(run, hooks))
        };
        match plan {
            Ok(Some(next)) => RunOutcome::Again(self, next),
            Ok(None) => {
                self.discard(run, hooks.drops(run.id()));
                O::exhausted().map_or(RunOutcome::Exhausted, |value| RunOutcome::Ended(Ok(value)))
            }
            Err(panic) => {
                self.discard(run, hooks.drops(run.id()));
                RunOutcome::Ended(Err(panic))
            }
        }
    }

    fn view_wall(&self, clock: &Clock) -> Option<WallView> {
        self.period.triggered()?.view_wall(clock)
    }

    fn start_on_wall(&mut self, clock: &Clock) -> Option<WallView> {
        self.period.triggered_mut()?.start_on_wall(clock)
    }

    fn leave_wall(&mut self) {
        if let Some(triggered) = self.period.triggered_mut() {
            triggered.leave_wall();
        }
    }

    fn ask_again(mut self, run: &Run, hooks: &Hooks) -> Result<(Self, Timestamp), Failure> {
        let (runs, failures) = (self.runs, self.failures);
        let planned = run.planned();
        let Some(triggered) = self.period.triggered_mut() else { return Ok((self, planned)) };
        let ask = || triggered.ask_again(run.clock(), runs, failures);
        match hooks.contain(FailureSource::Trigger, run, Ok, ask) {
            Ok(next) => Ok((self, next.unwrap_or(planned))),
            Err(panic) => {
                self.discard(run, hooks.drops(run.id()));
                Err(panic)
            }
        }
    }

    fn runs(&self) -> u64 {
        self.runs
    }

    fn missed(&self, planned: Timestamp, started: Timestamp) -> u64 {
        self.skipped.saturating_add(self.period.covered(planned, started))
    }
}
