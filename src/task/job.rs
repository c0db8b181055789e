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

    /// Returns how many runs in a row have failed.
    #[inline]
    fn failures(&self) -> u32 {
        0
    }

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
    fn leave_plan(&mut self) {}

    /// Returns the tick of the next run on the wall clock; `None` if it is on another.
    fn tick_on_wall(&self) -> Option<SystemTime> {
        None
    }

    /// Returns how long after its tick the next run is planned.
    fn offset(&self) -> Duration {
        Duration::ZERO
    }

    /// Returns `true` if a run can be overdue.
    #[inline]
    fn has_deadline(&self) -> bool {
        false
    }

    /// Returns `true` if this run must not start any more, by the policy for missed runs; `asked` is the moment
    /// at which it was asked for when it was due already. Calls the trigger, which is user code: the caller
    /// holds no lock.
    ///
    /// # Errors
    ///
    /// The panic of the trigger.
    fn is_overdue(&self, _asked: Timestamp, _run: &Run, _: &Hooks) -> Result<bool, Failure> {
        Ok(false)
    }

    /// Leaves this run out, which is overdue, and plans the next, if there is one. Calls the trigger, which
    /// is user code: the caller holds no lock.
    fn leave_out(self, run: &Run, _: &Hooks) -> RunOutcome<Self> {
        RunOutcome::Again(self, run.planned())
    }

    /// Ends a job whose series is over: only a run could return a result, or it is at hand.
    fn exhaust(self, _: &Run, _: &Hooks) -> RunOutcome<Self> {
        RunOutcome::Exhausted
    }

    /// Leaves this run out because its gate says so, and plans the next, if there is one. Calls the trigger,
    /// which is user code: the caller holds no lock.
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

    /// Returns how many of them the statistics know already.
    #[inline]
    fn counted(&self) -> u64 {
        0
    }
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
    /// How many of them the statistics know already: an overdue run is counted at once.
    counted: u64,
}

impl<F> Periodic<F> {
    pub(crate) fn new(body: F, period: Period) -> Self {
        let on_failure = FailurePolicy::stop();
        Self { body, period, on_failure, slot: None, failures: 0, runs: 0, skipped: 0, counted: 0 }
    }

    pub(crate) fn on_failure(mut self, policy: FailurePolicy) -> Self {
        self.on_failure = policy;
        self
    }

    /// Returns `true` if there is a back-off, and a regular wait that it never exceeds.
    fn is_back_off_in_vain(&self) -> bool {
        let longest = self.on_failure.longest_back_off();
        let (Some(longest), Some(wait)) = (longest, self.period.regular()) else { return false };
        longest <= wait
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
            (self.skipped, self.counted) = (plan.skipped, 0);
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
        (self.skipped, self.counted) = (asked.map_or(0, |(_, skipped)| skipped), 0);
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
            Period::Unshared => Some(RejectionReason::UnsharedTrigger),
            _ if self.period.is_zero() => Some(RejectionReason::ZeroPeriod),
            _ if self.is_back_off_in_vain() => Some(RejectionReason::BackOffWithinPeriod),
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
                (self.skipped, self.counted) = (0, 0);
                if !is_extra {
                    self.leave_plan();
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
                            self.leave_plan();
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
        (self.skipped, self.counted) = (0, 0);
        Some(mem::replace(&mut self.period, schedule))
    }

    fn has_trigger(&self) -> bool {
        self.period.triggered().is_some()
    }

    fn is_on_wall(&self) -> bool {
        self.period.is_on_wall()
    }

    fn tick_on_wall(&self) -> Option<SystemTime> {
        self.period.triggered()?.tick_on_wall()
    }

    fn offset(&self) -> Duration {
        self.period.triggered().map_or(Duration::ZERO, |triggered| triggered.offset())
    }

    fn skip(mut self, is_extra: bool, run: &Run, hooks: &Hooks) -> RunOutcome<Self> {
        let plan = if is_extra {
            Ok(Some(run.planned()))
        } else {
            self.count_covered(run, hooks).and_then(|()| self.plan(run, hooks))
        };
        match plan {
            Ok(Some(next)) => RunOutcome::Again(self, next),
            Ok(None) => self.exhaust(run, hooks),
            Err(panic) => {
                self.discard(run, hooks.drops(run.id()));
                RunOutcome::Ended(Err(panic))
            }
        }
    }

    fn exhaust(self, run: &Run, hooks: &Hooks) -> RunOutcome<Self> {
        self.discard(run, hooks.drops(run.id()));
        O::exhausted().map_or(RunOutcome::Exhausted, |value| RunOutcome::Ended(Ok(value)))
    }

    #[inline]
    fn has_deadline(&self) -> bool {
        self.period.has_deadline()
    }

    #[cold]
    fn is_overdue(&self, asked: Timestamp, run: &Run, hooks: &Hooks) -> Result<bool, Failure> {
        let (planned, now) = (run.planned(), run.started());
        let look = || self.period.is_overdue(planned, asked, now, run.clock());
        hooks.contain(FailureSource::Trigger, run, Ok, look)
    }

    #[cold]
    fn leave_out(mut self, run: &Run, hooks: &Hooks) -> RunOutcome<Self> {
        let (before, counted) = (self.skipped, self.counted);
        match self.plan(run, hooks) {
            Ok(next) => {
                // This run, and those between it and the next.
                let all = before.saturating_add(self.skipped).saturating_add(1);
                run.stats().count_missed(all.saturating_sub(counted));
                (self.skipped, self.counted) = (all, all);
                match next {
                    Some(next) => RunOutcome::Again(self, next),
                    None => self.exhaust(run, hooks),
                }
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

    fn leave_plan(&mut self) {
        if let Some(triggered) = self.period.triggered_mut() {
            triggered.leave_plan();
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

    fn failures(&self) -> u32 {
        self.failures
    }

    fn missed(&self, planned: Timestamp, started: Timestamp) -> u64 {
        self.skipped.saturating_add(self.period.covered(planned, started))
    }

    #[inline]
    fn counted(&self) -> u64 {
        self.counted
    }
}
