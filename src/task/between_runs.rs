//! A task between two runs: it rests until it is queued again. It may also have been taken too early by the
//! wall clock, or be asked for another plan because that clock was set back.
//!
//! The worker that has taken an entry owns the task until it has queued it again. So what is decided here
//! needs no more protection than a run does. *Too early* is decided under the task's lock, and the task
//! stays in the state of one that waits. To *ask again* is to call user code: the task is in the state of
//! one that runs meanwhile, and closure and plan are on the worker's stack. A cancellation then finds a task
//! that runs, and what was asked of it waits in [`control`](super::control), as during a run. Only no run is
//! counted.
//!
//! After a question the task is queued again, due or not. If it is due another taking runs it.
//!
//! A run that is *overdue* is left out here, by the worker that was about to start it: the plan goes past it
//! as past a run, and the task rests again. What has been asked of the task meanwhile waits in `control`, too.
//!
//! A series may also end here, because its trigger has, or has panicked.

use super::{Enqueue, Task, call::Call, cell::Parts, discard, plan::RunOutcome};
use crate::{gate::RunEnd, time::Timestamp, trace};

impl Task {
    /// Queues a task again that rests between two runs, or was put off, for `next` unless something else has been
    /// asked of it meanwhile. `enqueue` is called under the task's lock; it returns the slot of the queue, or `None`
    /// if the queue accepts the task no more. Returns `true` if the task is in the queue now, and `false` if it was
    /// refused or has been cancelled meanwhile.
    pub(crate) fn requeue(&self, next: Timestamp, enqueue: &mut Enqueue<'_>) -> bool {
        let (is_queued, left) = self.with(|parts| {
            if parts.is_plain() {
                let why = parts.usual_requeue();
                return (parts.requeue(next.into(), why, enqueue), None);
            }
            // The plan is at rest, so a schedule that has been set since is that of its next run.
            let replaced = parts.renew();
            let deadline = parts.settle(next);
            let (timing, why, effects) = parts.requeue_in_group(deadline);
            (parts.requeue(timing, why, enqueue), Some((effects, replaced)))
        });
        if let Some((effects, replaced)) = left {
            effects.carry_out();
            discard(replaced);
        }
        is_queued
    }
}

impl Call<'_> {
    /// Asks whether the run may still start, by the policy for missed runs.
    ///
    /// # Errors
    ///
    /// What follows if it may not: it is left out.
    #[inline]
    pub(super) fn be_in_time(&mut self) -> Result<(), RunOutcome> {
        if self.plan.as_ref().is_some_and(|plan| plan.has_deadline()) {
            return self.be_in_time_by_plan();
        }
        Ok(())
    }

    #[inline(never)]
    fn be_in_time_by_plan(&mut self) -> Result<(), RunOutcome> {
        let (run, hooks, is_extra) = (self.run, self.hooks, self.is_extra());
        let Some(plan) = self.plan.as_mut().filter(|_| !is_extra && run.keeps_limits()) else {
            return Ok(());
        };
        // The estimate of a moment of the wall clock may be out of date.
        if run.started() <= run.planned() && !plan.is_on_wall() {
            return Ok(());
        }
        let asked = run.task().with(|parts| parts.control().and_then(|control| control.asked()));
        let asked = asked.unwrap_or(Timestamp::from_nanos(0));
        let left_out = match plan.is_overdue(asked, (run, hooks)) {
            Ok(false) => return Ok(()),
            Ok(true) => plan.leave_out(run, hooks),
            Err(panic) => RunOutcome::Ended(Err(panic)),
        };
        self.leave_lease(RunEnd::NotRun, None);
        if trace::is_listening() {
            let late = run.started().since(run.planned());
            trace::left_out(run.id(), run.task().name().as_deref(), run.number(), late);
        }
        Err(left_out)
    }

    /// Asks the trigger for the next run again, in place of the run for which the task was taken.
    #[cold]
    pub(super) fn ask_trigger_again(&mut self) -> RunOutcome {
        self.keep_tick();
        match &mut self.plan {
            Some(plan) => plan.ask_again(self.run, self.hooks),
            None => RunOutcome::Again(self.run.planned()),
        }
    }
}

impl Parts<'_> {
    /// Returns `true` if the task waits for a moment of the wall clock.
    #[inline]
    pub(super) fn is_on_wall(&mut self) -> bool {
        !self.is_plain() && self.plan().is_some_and(|plan| plan.is_on_wall())
    }
}
