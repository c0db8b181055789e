//! The plan of a periodic task: its schedule, its failure policy, and its counts.
//!
//! The plan stays in the node while the task waits, and goes with the closure to the worker that runs the task. So
//! while the task waits, any thread may change the plan, under the task's lock. While the task runs, only that worker
//! may change the plan; a change that another thread requests meanwhile waits in [`control`](crate::feature). The
//! worker asks the trigger with no lock held, because a trigger is user code.
//!
//! A thread that takes a plan out for good drops it only after releasing the lock, because dropping a plan also drops
//! the user's trigger.

use std::{mem, time::Duration};

use super::{
    FailureSource,
    failure::FailurePolicy,
    observer::Hooks,
    outcome::{NamedRun, Next},
    run::Run,
};
use crate::{
    Attempt, Failure, FailureKind, RejectionReason, id::Subject, schedule::Schedule,
    time::Timestamp, trigger::LastRun, unwind::discard,
};

/// The outcome of a run, even of one that did not take place.
#[must_use]
#[derive(Debug)]
pub(crate) enum RunOutcome {
    /// This was the last run. If `Ok`, the task has a result.
    Ended(Result<(), Failure>),
    Again(Timestamp),
    /// The run failed, and the next one is planned for this moment.
    Failed(Timestamp, Failure),
    /// This was the last run, because the trigger has no next run. The payload knows whether the task has a result.
    Exhausted,
}

impl RunOutcome {
    /// Returns the outcome of a run that did not fail. `next` is the moment of the next run, if there is one, or the
    /// panic of the trigger.
    fn of(next: Result<Option<Timestamp>, Failure>) -> Self {
        match next {
            Ok(next) => next.map_or(Self::Exhausted, Self::Again),
            Err(panic) => Self::Ended(Err(panic)),
        }
    }

    pub(crate) fn is_failure(&self) -> bool {
        matches!(self, Self::Ended(Err(_)) | Self::Failed(..))
    }

    /// Takes out the failure, if there is one. Leaves `Exhausted` behind in any case, as a placeholder.
    pub(super) fn take_failure(&mut self) -> Option<Failure> {
        match mem::replace(self, Self::Exhausted) {
            Self::Ended(Err(failure)) | Self::Failed(_, failure) => Some(failure),
            _ => None,
        }
    }
}

pub(crate) struct Plan {
    pub(crate) schedule: Schedule,
    on_failure: Option<FailurePolicy>,
    /// The last failure, if the trigger retries. If no further attempt takes place, the task fails with this failure.
    last_failure: Option<Failure>,
    /// The queue slot of the task's entry, if the task was queued again or moved.
    pub(super) slot: Option<u32>,
    failures: u32,
    pub(super) runs: u64,
    /// How many runs have been left out since the last run.
    skipped: u64,
    /// `true` if the statistics have counted the `skipped` runs, because an overdue run was left out.
    are_counted: bool,
}

impl Plan {
    pub(crate) fn new(schedule: Schedule, on_failure: Option<FailurePolicy>) -> Self {
        let (slot, last_failure) = (None, None);
        let (failures, runs, skipped, are_counted) = (0, 0, 0, false);
        Self { schedule, on_failure, last_failure, slot, failures, runs, skipped, are_counted }
    }

    /// Notes how many runs have been left out since the last run. The statistics have not counted them.
    fn note_skipped(&mut self, runs: u64) {
        (self.skipped, self.are_counted) = (runs, false);
    }

    fn counted(&self) -> u64 {
        if self.are_counted { self.skipped } else { 0 }
    }

    /// Returns the reason, if any, to refuse a task with this plan. For instance, a backoff that is never longer than
    /// the period would have no effect.
    pub(crate) fn refusal(&self) -> Option<RejectionReason> {
        let waits = self.policy().longest_back_off().zip(self.schedule.regular());
        let is_in_vain = waits.is_some_and(|(longest, regular)| longest <= regular);
        let in_vain = is_in_vain.then_some(RejectionReason::BackOffWithinPeriod);
        self.schedule.refusal().or(in_vain)
    }

    // Questions to the plan.

    fn retries(&self) -> bool {
        self.attempt().is_some()
    }

    fn attempt(&self) -> Option<Attempt> {
        self.schedule.triggered()?.attempt
    }

    /// Returns the policy for failed runs. The default is `resume` if the trigger retries, and `stop` otherwise.
    fn policy(&self) -> FailurePolicy {
        let default = if self.retries() { FailurePolicy::resume() } else { FailurePolicy::stop() };
        self.on_failure.unwrap_or(default)
    }

    /// Returns `true` if the schedule asks a trigger. Only a trigger can plan on the wall clock.
    pub(crate) fn has_trigger(&self) -> bool {
        self.schedule.triggered().is_some()
    }

    pub(super) fn ends_by_failure(&self) -> bool {
        self.policy().ends_after(1)
    }

    /// Sets the run's number and attempt. Unless the run is an extra run, also sets its counts of missed runs.
    #[inline]
    pub(super) fn place(&self, run: &Run) {
        run.number.set(self.runs + 1);
        run.attempt.set(self.failures.saturating_add(1));
        if !run.is_extra.get() {
            let covered = self.schedule.covered(run.planned(), run.started());
            run.missed.set(self.skipped.saturating_add(covered));
            run.counted.set(self.counted());
        }
    }

    // Changes to the plan, under the task's lock.

    /// Replaces the schedule, but keeps the `missed` policy. Returns the old schedule, to be dropped with no lock held.
    pub(crate) fn set_schedule(&mut self, mut schedule: Schedule) -> Schedule {
        schedule.missed = self.schedule.missed;
        self.note_skipped(0);
        mem::replace(&mut self.schedule, schedule)
    }

    pub(crate) fn leave_wall(&mut self) {
        if let Some(triggered) = self.schedule.triggered_mut() {
            triggered.leave_plan();
        }
    }

    // The worker's questions. Each may call the trigger, which is user code: no lock is held.

    /// Counts a run that did not fail, and plans the next, if there is one. Returns the run's outcome.
    pub(super) fn follow(&mut self, next: Next, run: &Run, hooks: &Hooks) -> RunOutcome {
        self.runs += 1;
        self.failures = 0;
        match next {
            Next::Nothing => RunOutcome::Ended(Ok(())),
            Next::Named(named) => RunOutcome::Again(self.next_named(*named, run)),
            // After an extra run the planned moment stands, which the task knows and the plan does not.
            Next::Planned if run.is_extra.get() => RunOutcome::Again(run.planned()),
            Next::Planned => RunOutcome::of(self.next(run, true, None, hooks)),
        }
    }

    /// Like [`follow`](Self::follow), for a failed run. Also reports a failure that has not been reported yet.
    #[cold]
    pub(super) fn fail(
        &mut self,
        source: FailureSource,
        failure: Failure,
        run: &Run,
        hooks: &Hooks,
    ) -> RunOutcome {
        self.runs += 1;
        self.failures = self.failures.saturating_add(1);
        run.failures.set(self.failures);
        // A time limit that ends the task was reported when it ended the task.
        let is_told = failure.kind() == FailureKind::TimeLimit && self.ends_by_failure();
        let attempt = self.attempt().filter(|_| !run.is_extra.get());
        let subject = Subject { attempt, ..run.subject() };
        let ends = self.policy().ends_after(self.failures);
        let ended = run.clock().read();
        let next = match ends {
            true => Ok(None),
            false if run.is_extra.get() => Ok(Some(run.planned())),
            false => self.next(run, true, Some(ended), hooks),
        };
        let next =
            next.map(|next| next.map(|next| self.backed_off(next, run.is_extra.get(), ended)));
        let mut is_heard = is_told;
        if !is_told {
            let due = next.as_ref().ok().copied().flatten().and_then(|next| run.next_due(next));
            is_heard = hooks.report(source, &subject, &failure, due.map(|due| due.delay_at(ended)));
        }
        if ends && !is_heard {
            Hooks::tell_failed_end(run, &subject, &failure);
        }
        match next {
            Ok(Some(next)) => RunOutcome::Failed(next, failure),
            Ok(None) => RunOutcome::Ended(Err(failure)),
            Err(panic) => {
                discard(failure);
                RunOutcome::Ended(Err(panic))
            }
        }
    }

    #[cold]
    fn next_named(&mut self, named: NamedRun, run: &Run) -> Timestamp {
        self.note_skipped(0);
        if !run.is_extra.get() {
            self.leave_wall();
        }
        match named {
            NamedRun::After(delay) => run.clock().read().after(delay),
            NamedRun::At(moment) => run.clock().deadline_of(moment),
        }
    }

    /// Returns when the run planned for `next` is due, given the backoff after a failed run.
    #[cold]
    fn backed_off(&mut self, next: Timestamp, is_extra: bool, ended: Timestamp) -> Timestamp {
        // Without a delay the plan stands, even if it is in the past.
        let delay = self.policy().delay_after(self.failures);
        if delay == Duration::ZERO {
            return next;
        }
        let later = ended.after(delay);
        if later > next && !is_extra {
            self.leave_wall();
        }
        next.max(later)
    }

    /// If the trigger retries, keeps `failure`, and returns the failure kept before, if any. If not, returns `failure`.
    /// The caller drops the returned failure with no lock held.
    pub(super) fn keep_failure(&mut self, failure: Failure) -> Option<Failure> {
        if self.retries() { self.last_failure.replace(failure) } else { Some(failure) }
    }

    /// Takes the last run's failure, if there is one and the trigger retries. Called when the trigger has no next run.
    pub(super) fn take_failure(&mut self) -> Option<Failure> {
        self.last_failure.take().filter(|_| self.failures > 0 && self.retries())
    }

    /// Plans the run after this one; `None` if there is none. `took_place` is `false` if this one was left out.
    ///
    /// # Errors
    ///
    /// The panic of a trigger.
    #[inline(always)]
    fn next(
        &mut self,
        run: &Run,
        took_place: bool,
        ended: Option<Timestamp>,
        hooks: &Hooks,
    ) -> Result<Option<Timestamp>, Failure> {
        let (planned, started) = (run.planned(), run.started());
        let ended = || ended.unwrap_or_else(|| run.clock().read());
        if let Some(plan) = self.schedule.plan(planned, started, ended) {
            self.note_skipped(plan.skipped);
            return Ok(Some(plan.next));
        }
        self.ask(run, took_place, ended(), hooks)
    }

    #[inline(never)]
    fn ask(
        &mut self,
        run: &Run,
        took_place: bool,
        ended: Timestamp,
        hooks: &Hooks,
    ) -> Result<Option<Timestamp>, Failure> {
        let (planned, started) = (run.planned(), run.started());
        let last = LastRun { planned, planned_wall: None, started, ended, took_place };
        let (runs, failures, missed) = (self.runs, self.failures, self.schedule.missed);
        let Some(triggered) = self.schedule.triggered_mut() else { return Ok(None) };
        let (mut next, mut skipped) = (None, 0);
        hooks.contain(FailureSource::Trigger, run, &mut || {
            next = triggered.ask(missed, last, run.clock(), runs, failures);
            if let Some(next) = next.filter(|_| missed.has_deadline()) {
                skipped = triggered.skipped(next, run.clock());
            }
        })?;
        self.note_skipped(skipped);
        Ok(next)
    }

    /// Adds to the missed runs of a run the moments of its trigger, beyond its own, that it stands for.
    ///
    /// # Errors
    ///
    /// The panic of the trigger.
    #[cold]
    pub(super) fn count_covered(&mut self, run: &Run, hooks: &Hooks) -> Result<(), Failure> {
        let stands_for_others = self.schedule.missed.stands_for_others();
        let triggered = self.schedule.triggered_mut().filter(|_| stands_for_others);
        let Some(triggered) = triggered else { return Ok(()) };
        let mut covered = 0;
        let count = &mut || covered = triggered.covered(run.planned(), run.started(), run.clock());
        hooks.contain(FailureSource::Trigger, run, count)?;
        run.missed.set(run.missed.get().saturating_add(covered));
        Ok(())
    }

    /// Returns `true` if this run must no longer start; see [`Schedule::is_overdue`].
    ///
    /// # Errors
    ///
    /// The panic of the trigger.
    #[cold]
    pub(super) fn is_overdue(
        &mut self,
        asked: Timestamp,
        run: &Run,
        hooks: &Hooks,
    ) -> Result<bool, Failure> {
        let (planned, now, mut is_overdue) = (run.planned(), run.started(), false);
        let look = &mut || is_overdue = self.schedule.is_overdue(planned, asked, now, run.clock());
        hooks.contain(FailureSource::Trigger, run, look)?;
        Ok(is_overdue)
    }

    /// Leaves out this overdue run, and plans the next, if there is one.
    #[cold]
    pub(super) fn leave_out(&mut self, run: &Run, hooks: &Hooks) -> RunOutcome {
        let (before, counted) = (self.skipped, self.counted());
        let next = self.next(run, false, None, hooks);
        if next.is_ok() {
            // The runs left out before, this run, and those between it and the next.
            let all = before.saturating_add(self.skipped).saturating_add(1);
            run.stats().count_missed(all.saturating_sub(counted));
            (self.skipped, self.are_counted) = (all, true);
        }
        RunOutcome::of(next)
    }

    /// Leaves this run out because user code refused it, and plans the next, if there is one.
    #[cold]
    pub(crate) fn skip(&mut self, run: &Run, hooks: &Hooks) -> RunOutcome {
        if run.is_extra.get() {
            return RunOutcome::Again(run.planned());
        }
        let covered = self.count_covered(run, hooks);
        RunOutcome::of(covered.and_then(|()| self.next(run, false, None, hooks)))
    }

    #[cold]
    pub(crate) fn ask_again(&mut self, run: &Run, hooks: &Hooks) -> RunOutcome {
        let (runs, failures, planned) = (self.runs, self.failures, run.planned());
        let Some(triggered) = self.schedule.triggered_mut() else {
            return RunOutcome::Again(planned);
        };
        let mut next = None;
        let ask = &mut || next = triggered.ask_again(run.clock(), runs, failures);
        match hooks.contain(FailureSource::Trigger, run, ask) {
            Ok(()) => RunOutcome::Again(next.unwrap_or(planned)),
            Err(panic) => RunOutcome::Ended(Err(panic)),
        }
    }
}
