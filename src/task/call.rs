//! A call: the steps in which a worker runs a task once.
//!
//! The [`payload`](super::payload) moves the closure and the result. This file, which is compiled once, decides what
//! happens to them, in these steps:
//!
//! ```text
//!   start ──▶ carry_out ──▶ publish ──▶ (release) ──▶ end ──▶ verdict
//!   (lock)    (user code)   (lock)      (user code)   (user code)
//! ```
//!
//! * [`start`](Call::start) decides whether the run may begin. First it asks the task's token, and the features that
//!   may refuse the run ([`questions`](super::questions)). If the run may begin, the task is now *running*.
//! * [`carry_out`](Call::carry_out) puts the pending question, if there is one, to user code, and then calls the
//!   closure with the code around it.
//! * [`publish`](Call::publish) publishes the outcome, and says what the node keeps: the closure, the result, or
//!   nothing.
//! * [`release`](Call::release) is called only if the node keeps nothing: it wakes the waiters, and drops the closure
//!   and the result.
//! * [`end`](Call::end) wakes the waiters, if `release` has not, and drops the values that are left.
//!
//! A closure that will not run again is dropped before the outcome is published, so a thread that has waited for the
//! task finds the captures gone. One exception: the thread that cancels a running task publishes the end immediately.
//! If the task was to be queued again, the worker drops the closure after `publish`. Last, it wakes the threads that
//! wait for this drop.
//!
//! A run that is past its starting deadline, or that user code refuses, goes through the same steps, but the closure is
//! not called.

use std::mem::ManuallyDrop;

use super::{
    Cancellation, Drops, Hooks, Run, Task, Verdict,
    around::Around,
    cell::Parts,
    end::Leftovers,
    extensions::{Extensions, Question},
    hooks::Lent,
    plan::{Plan, RunOutcome},
    state::Stage,
};
use crate::{CancelReason, statistics::Ended, sync::Arc, time::Timestamp, unwind::discard};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToStore {
    Body,
    Value,
    Nothing,
}

pub(crate) struct Call<'a> {
    pub(crate) run: &'a Run,
    pub(crate) hooks: &'a Hooks,
    /// The plan of a periodic task, while the worker has the plan.
    pub(crate) plan: Option<Plan>,
    pub(crate) outcome: RunOutcome,
    verdict: Verdict,
    /// `false` if the run did not take place. A panic of the trigger counts as a run.
    pub(crate) is_run: bool,
    /// `true` if the task was to be queued again, but was cancelled during the run. The closure is then dropped after
    /// the task's end has been published.
    is_leaving: bool,
    /// What only some calls need; `None` in a call of a plain task, unless the task failed or was cancelled.
    pub(super) extras: Option<CallExtras>,
}

#[derive(Default)]
pub(crate) struct CallExtras {
    /// The code around the closure, while the worker has that code.
    pub(super) around: Option<Around>,
    /// The moment for which a caller last requested the run. Lateness counts from this moment or from the planned
    /// moment, whichever is later.
    pub(crate) late_from: Option<Timestamp>,
    /// The question that user code is to answer before the closure is called.
    pub(crate) question: Option<Question>,
    pub(super) name: Option<Arc<str>>,
    /// Why the task is to end instead of being run.
    pub(crate) gives_up: Option<CancelReason>,
    pub(super) leftovers: Option<Leftovers>,
}

impl Task {
    /// Runs the task once, with `hooks` around the run, unless the task has ended or may not run. Catches panics.
    #[inline]
    pub(crate) fn run(&self, run: &Run, hooks: &Hooks) -> Verdict {
        // `end` drops its parts. Drop glue would check them once more at each run.
        let mut call = ManuallyDrop::new(Call {
            run,
            hooks,
            plan: None,
            outcome: RunOutcome::Ended(Ok(())),
            verdict: Verdict::TooLate,
            is_run: true,
            is_leaving: false,
            extras: None,
        });
        self.call(&mut call);
        call.end();
        call.verdict
    }
}

impl Call<'_> {
    // First, under the lock: may the run begin?

    /// Decides whether the run may begin. Returns `true` if the payload is to take the closure out.
    pub(super) fn start(&mut self, parts: &mut Parts<'_>) -> bool {
        if parts.concerns_runs() && parts.stage.is_scheduled() {
            if let Err(verdict) = self.ask(parts) {
                self.verdict = verdict;
                return false;
            }
        }
        if !parts.stage.start() {
            self.run.stats().count_cancelled();
            return false;
        }
        if let Some(place) = &mut parts.plan {
            debug_assert!(self.plan.is_none(), "each run takes the plan once");
            self.plan = place.take();
        }
        true
    }

    // Second, with no lock held: user code.

    /// Calls the `lent` closure with the code around it, unless user code or the missed-runs policy refuses the run.
    pub(super) fn carry_out(&mut self, lent: &mut dyn Lent) {
        if self.plan.is_some() || self.extras.is_some() {
            return self.carry_out_extended(lent);
        }
        self.run.stats().begin(self.run.id, None, self.run.started());
        if let Err(failure) = self.hooks.invoke(self.run, None, lent, Hooks::tell_last) {
            self.outcome = RunOutcome::Ended(Err(failure));
            // The call has dropped the closure, unless a hook panicked before it.
            self.drop_if_last(lent);
        }
        self.run.stats().leave();
    }

    #[inline(never)]
    fn carry_out_extended(&mut self, lent: &mut dyn Lent) {
        match self.ask_user() {
            Ok(()) => {
                self.outcome = self.invoke(lent);
                self.drop_if_last(lent);
                Extensions::after_body(self);
            }
            Err(left_out) => {
                // A panic of the trigger ends the task as it does after a run, and so counts as a run.
                self.is_run = matches!(left_out, RunOutcome::Ended(Err(_)));
                self.outcome = left_out;
                self.drop_if_last(lent);
            }
        }
        self.run.stats().leave();
        if self.ends() {
            self.drop_around();
        }
    }

    /// Like [`carry_out`](Self::carry_out), but asks no question, and puts nothing around the body.
    pub(super) fn carry_out_bare(&mut self, lent: &mut dyn Lent) {
        self.begin();
        let _ = lent.run();
        self.run.stats().leave();
    }

    #[inline]
    pub(crate) fn begin(&mut self) {
        let name = self.extras.as_ref().and_then(|extras| extras.name.clone());
        self.run.stats().begin(self.run.id, name, self.run.started());
        if let Some(plan) = &self.plan {
            plan.place(self.run);
        }
    }

    pub(crate) fn extras(&mut self) -> &mut CallExtras {
        self.extras.get_or_insert_default()
    }

    fn invoke(&mut self, lent: &mut dyn Lent) -> RunOutcome {
        let (run, hooks) = (self.run, self.hooks);
        if let Some(plan) =
            self.plan.as_mut().filter(|plan| plan.has_trigger() && !run.is_extra.get())
        {
            if let Err(panic) = plan.count_covered(run, hooks) {
                return RunOutcome::Ended(Err(panic));
            }
        }
        let around = self.extras.as_mut().and_then(|extras| extras.around.as_mut());
        let has_around = around.is_some();
        if let Some(plan) = self.plan.as_ref().filter(|_| has_around) {
            run.ends_by_failure.set(plan.ends_by_failure());
        }
        let plan = &mut self.plan;
        let report = hooks.invoke(run, around, lent, |hooks, run, source, failure| match plan {
            Some(plan) => plan.fail(source, failure, run, hooks),
            None => RunOutcome::Ended(Err(hooks.tell_last(run, source, failure))),
        });
        let outcome = match (report, &mut self.plan) {
            (Ok(next), Some(plan)) => plan.follow(next, run, hooks),
            (Ok(_), None) => RunOutcome::Ended(Ok(())),
            (Err(outcome), _) => outcome,
        };
        if has_around && !matches!(outcome, RunOutcome::Ended(Ok(()))) {
            // If there is a value, code around the body failed after the body had returned, and that has been reported.
            self.drop_value(lent, Drops::UNREPORTED);
        }
        outcome
    }

    fn ends(&self) -> bool {
        matches!(self.outcome, RunOutcome::Ended(_) | RunOutcome::Exhausted)
    }

    /// After the last run, drops the closure and the plan. If the trigger has no next run, decides how the task ends.
    #[inline(never)]
    fn drop_if_last(&mut self, lent: &mut dyn Lent) {
        if !self.ends() {
            return;
        }
        let drops = match self.plan {
            Some(_) => self.hooks.drops(self.run.id),
            // The closure is still here only if user code around it failed first, and that has been reported.
            None => Drops::UNREPORTED,
        };
        drops.contain(&mut || lent.drop_body(), &*self.run.task);
        let mut plan = self.plan.take();
        if matches!(self.outcome, RunOutcome::Exhausted) {
            let ending = match lent.exhaust() {
                true => Some(Ok(())),
                false => plan.as_mut().and_then(Plan::take_failure).map(Err),
            };
            self.outcome = ending.map_or(RunOutcome::Exhausted, RunOutcome::Ended);
        }
        discard(plan);
    }

    fn drop_around(&mut self) {
        let mut around = self.extras.as_mut().and_then(|extras| extras.around.take());
        if around.is_some() {
            self.contain(&mut || drop(around.take()));
        }
    }

    /// Drops values of the task by calling `drop_them`. A panic is reported, and goes no further.
    fn contain(&self, drop_them: &mut dyn FnMut()) {
        self.hooks.drops(self.run.id).contain(drop_them, &*self.run.task);
    }

    // Third, under the lock again: the outcome is published.

    pub(super) fn publish(&mut self, parts: &mut Parts<'_>) -> ToStore {
        match self.outcome {
            RunOutcome::Ended(Ok(())) if parts.is_plain() => self.finish(parts, Stage::COMPLETED),
            RunOutcome::Again(next) if parts.is_plain() => self.rest(parts, next),
            _ => self.publish_rare(parts),
        }
    }

    #[inline(never)]
    fn publish_rare(&mut self, parts: &mut Parts<'_>) -> ToStore {
        if !parts.is_plain() {
            parts.split().0.after_run(self);
        }
        let ending = match &self.outcome {
            RunOutcome::Ended(Ok(())) => Stage::COMPLETED,
            RunOutcome::Exhausted => Stage::EXHAUSTED,
            RunOutcome::Ended(Err(failure)) => {
                if parts.is_periodic() {
                    parts.extras().last_failure = Some(self.run.failure(failure));
                }
                Stage::FAILED
            }
            RunOutcome::Again(next) => return self.rest(parts, *next),
            RunOutcome::Failed(next, failure) => {
                parts.extras().last_failure = Some(self.run.failure(failure));
                let stored = self.rest(parts, *next);
                self.keep_failure(parts);
                return stored;
            }
        };
        self.finish(parts, ending)
    }

    /// Ends the task after its last run: as timed out if its time is up, otherwise with `ending`. A task that was
    /// cancelled during the run stays cancelled.
    #[inline(always)]
    fn finish(&mut self, parts: &mut Parts<'_>, ending: Stage) -> ToStore {
        self.verdict = Verdict::Ended;
        if !parts.is_plain() {
            self.time_out_if_over(parts);
        }
        let is_kept = parts.stage.finish(ending);
        let has_failed = ending == Stage::FAILED;
        let ended = match is_kept {
            false => Ended::Cancelled,
            true if has_failed => Ended::Failed,
            true => Ended::Completed,
        };
        self.count(Some(ended));
        let keeps_value = is_kept && ending == Stage::COMPLETED;
        let keeps_value = keeps_value && (parts.is_plain() || !parts.is_abandoned());
        if !parts.is_plain() || has_failed {
            self.finish_extended(parts);
        }
        if keeps_value { ToStore::Value } else { ToStore::Nothing }
    }

    #[inline(never)]
    fn time_out_if_over(&mut self, parts: &mut Parts<'_>) {
        let is_over = self.is_run && parts.is_over(self.run.clock());
        if is_over && parts.stage.cancel(CancelReason::TimedOut) == Cancellation::Running {
            self.verdict = Verdict::TimedOut;
        }
    }

    /// Takes out what the task leaves behind, and keeps its failure for the caller that claims the result.
    #[inline(never)]
    fn finish_extended(&mut self, parts: &mut Parts<'_>) {
        self.extras().leftovers = Leftovers::of(parts);
        if parts.stage == Stage::FAILED && !parts.is_abandoned() {
            parts.extras().failure = self.outcome.take_failure();
        }
    }

    /// Has the worker queue the task again for `next`, unless the task was cancelled, directly or by its token.
    #[inline]
    fn rest(&mut self, parts: &mut Parts<'_>, next: Timestamp) -> ToStore {
        self.is_leaving = !parts.stage.rest();
        self.count(self.is_leaving.then_some(Ended::Cancelled));
        if self.is_leaving {
            self.verdict = Verdict::Ended;
            return ToStore::Nothing;
        }
        if let Some(place) = &mut parts.plan {
            debug_assert!(place.is_none(), "the worker has the plan");
            **place = self.plan.take();
        }
        self.verdict = Verdict::Again(next);
        if !parts.is_plain() {
            self.rest_extended(parts);
        }
        ToStore::Body
    }

    /// Moves the failure into the plan, if the plan is back in the node and its trigger retries.
    fn keep_failure(&mut self, parts: &mut Parts<'_>) {
        let Some(plan) = parts.plan() else { return };
        let unused = self.outcome.take_failure().and_then(|failure| plan.keep_failure(failure));
        self.outcome =
            unused.map_or(RunOutcome::Exhausted, |unused| RunOutcome::Ended(Err(unused)));
    }

    #[inline(never)]
    fn rest_extended(&mut self, parts: &mut Parts<'_>) {
        if let around @ Some(_) = self.extras.as_mut().and_then(|extras| extras.around.take()) {
            parts.extras().around = around;
        }
        if parts.is_called_off() {
            self.verdict = Verdict::Cancelled(CancelReason::Requested);
        }
    }

    /// Counts the run, if it took place, and the end of the task; `ended` is `None` if the task goes on.
    #[inline(always)]
    fn count(&self, ended: Option<Ended>) {
        if self.is_run {
            let (failed, missed) = (self.outcome.is_failure(), self.run.uncounted());
            self.run.stats().count(failed, missed, ended);
        } else if let Some(ended) = ended {
            self.run.stats().count_ended(ended);
        }
    }

    // Last, with no lock held.

    /// Wakes the waiters, and drops the closure and the result. Called only if the node keeps neither.
    #[cold]
    pub(super) fn release(&mut self, lent: &mut dyn Lent) {
        self.wake();
        self.contain(&mut || lent.drop_body());
        self.drop_value(lent, self.hooks.drops(self.run.id));
    }

    /// Drops a result that no caller can take, and reports it if it is an `Err`.
    fn drop_value(&self, lent: &mut dyn Lent, drops: Drops<'_>) {
        let mut untaken = None;
        drops.contain(&mut || untaken = lent.drop_value(), &*self.run.task);
        if let Some(failure) = untaken {
            self.hooks.drops(self.run.id).tell_untaken(&*self.run.task, failure);
        }
    }

    fn wake(&mut self) {
        if let Some(leftovers) = self.extras.as_mut().and_then(|extras| extras.leftovers.take()) {
            let (task, drops) = (&*self.run.task, self.hooks.drops(self.run.id));
            leftovers.release(self.verdict == Verdict::TimedOut, task, drops);
        }
    }

    /// Cleans up after the call: wakes the waiters, if `release` has not, and drops the user values that the call still
    /// has. If `gives_up` is set, calls `end_unrun`.
    #[inline]
    fn end(&mut self) {
        if self.extras.is_some() || self.is_leaving || self.outcome.is_failure() {
            self.end_extended();
        }
        debug_assert!(self.plan.is_none() && self.extras.is_none(), "all of it is the user's");
    }

    #[inline(never)]
    fn end_extended(&mut self) {
        self.wake();
        discard(self.plan.take());
        self.drop_around();
        if self.is_leaving {
            let left = self.run.task.with(|parts| {
                parts.stage.body_returns();
                Leftovers::of(parts)
            });
            self.extras().leftovers = left;
            self.wake();
        }
        let mut failure = self.outcome.take_failure();
        if failure.is_some() {
            self.contain(&mut || drop(failure.take()));
        }
        if let Some(reason) = self.extras.as_ref().and_then(|extras| extras.gives_up) {
            self.end_unrun(reason);
        }
        discard(self.extras.take());
    }

    /// If the task's time is up, ends the task. Otherwise has the worker cancel the task for `reason`. Does nothing if
    /// the task or its token was cancelled.
    #[cold]
    fn end_unrun(&mut self, reason: CancelReason) {
        if !matches!(self.verdict, Verdict::Again(_)) {
            return;
        }
        let limit = self.run.task.with(|parts| parts.expiry());
        let Some(limit) = limit.filter(|limit| *limit <= self.run.clock().read()) else {
            self.verdict = Verdict::Cancelled(reason);
            return;
        };
        self.run.stats().count_cancelled();
        let drops = self.hooks.drops(self.run.id);
        self.verdict = match self.run.task.time_out(limit, None, drops) {
            Cancellation::TooLate => Verdict::TooLate,
            _ => Verdict::TimedOut,
        };
    }
}
