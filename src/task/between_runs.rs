//! A task between two runs: it rests until it is queued again. It may also have been taken too early by the
//! wall clock, or be asked for another plan because that clock was set back.
//!
//! The worker that has taken an entry owns the task until it has queued it again. So what is decided here
//! needs no more protection than a run does. *Too early* is decided under the task's lock, and the task
//! stays in the state of one that waits. To *ask again* is to call user code: the task is in the state of
//! one that runs meanwhile, and the job is on the worker's stack. A cancellation then finds a task that
//! runs, and what was asked of it waits in [`control`](super::control), as during a run. Only no run is
//! counted.
//!
//! After a question the task is queued again, due or not. If it is due another taking runs it.
//!
//! A run that is *overdue* is left out here, by the worker that was about to start it: the job plans past it
//! as past a run, and the task rests again. What has been asked of the task meanwhile waits in `control`, too.
//!
//! A series may also end here, because its trigger has, or has panicked.

use super::{
    Cancellation, Enqueue, Failure, Hooks, Job, Run, Task, TaskState, Verdict, Wrapper,
    cell::TaskCell, discard, job::RunOutcome, state::Ending,
};
use crate::{CancelReason, statistics::Ended, sync::MutexGuard, time::Timestamp, trace};

impl<J: Job> Task<J> {
    /// Puts a periodic task to rest after a run.
    pub(super) fn rest(
        &self,
        job: J,
        next: Timestamp,
        wrapper: Option<Wrapper>,
        failed: Option<Failure>,
        run: &Run,
        hooks: &Hooks,
    ) -> Verdict {
        let has_failed = failed.is_some();
        let count = |ended| run.count(has_failed, ended);
        self.rest_after((job, wrapper), next, true, failed, (run, hooks), count)
    }

    /// Puts a periodic task to rest until it is queued again for `next`, unless it has been cancelled
    /// meanwhile, or has raised its own token. Its tick `is_over` unless it waits on. `count` counts what
    /// the worker has done, and how the task has ended by that, if it has.
    fn rest_after(
        &self,
        (job, wrapper): (J, Option<Wrapper>),
        next: Timestamp,
        is_over: bool,
        failed: Option<Failure>,
        (run, hooks): (&Run, &Hooks),
        count: impl FnOnce(Option<Ended>),
    ) -> Verdict {
        let failure = failed.as_ref().map(|panic| run.failure(panic));
        let mut cell = self.0.lock();
        if let Some(control) = cell.control().filter(|_| is_over) {
            control.tick_is_over();
        }
        let cancelled = cell.stage().rest(job);
        let goes_on = cancelled.is_none();
        count(if goes_on { None } else { Some(Ended::Cancelled) });
        if failure.is_some() {
            cell.extras().last_failure = failure;
        }
        // The wrapper was taken out of the task for the run.
        let unused = match wrapper {
            Some(wrapper) if goes_on => cell.extras().wrapper.replace(wrapper),
            wrapper => wrapper,
        };
        let replaced = cell.renew();
        let (is_called_off, is_on_wall) = (cell.is_called_off(), cell.is_on_wall());
        drop(cell);
        if !goes_on {
            self.discard((cancelled, unused), hooks.drops(run.id()));
            let mut cell = self.0.lock();
            cell.stage().body_returns();
            self.release(cell, false, hooks.drops(run.id()));
        }
        if replaced.is_some() {
            discard(replaced);
        }
        if failed.is_some() {
            discard(failed);
        }
        match goes_on {
            false => Verdict::Ended,
            true if is_called_off => Verdict::Cancelled(CancelReason::Requested),
            true if is_on_wall => Verdict::AgainOnWall(next),
            true => Verdict::Again(next),
        }
    }

    /// Queues a task again of which something may have been asked while its worker had it, or that its group has
    /// to hold.
    #[inline(never)]
    pub(super) fn rearm_extended(
        &self,
        mut cell: MutexGuard<'_, TaskCell<J>>,
        next: Timestamp,
        enqueue: &mut Enqueue<'_>,
    ) -> bool {
        // The job is at rest, so a schedule that has been set since is that of its next run.
        let replaced = cell.renew();
        let deadline = cell.settle(next);
        let (timing, how, effects) = cell.come_back(deadline);
        let is_queued = cell.rearm(timing, how, enqueue);
        drop(cell);
        effects.carry_out();
        if replaced.is_some() {
            discard(replaced);
        }
        is_queued
    }

    /// As [`rest`](Self::rest), in place of a run that did not take place. Its tick waits on unless it
    /// `is_over`.
    #[inline(never)]
    pub(super) fn rest_unrun(
        &self,
        rested: (J, Option<Wrapper>),
        next: Timestamp,
        is_over: bool,
        run: &Run,
        hooks: &Hooks,
    ) -> Verdict {
        self.rest_after(rested, next, is_over, None, (run, hooks), |ended| {
            if let Some(ended) = ended {
                run.stats().count_ended(ended);
            }
        })
    }

    /// Ends a task whose time was up before a worker took it: it does not run.
    #[cold]
    pub(super) fn time_out_unrun(
        &self,
        mut cell: MutexGuard<'_, TaskCell<J>>,
        run: &Run,
        hooks: &Hooks,
    ) -> Verdict {
        let found = cell.time_out();
        run.stats().count_cancelled();
        match self.complete_cancel(cell, found, true, hooks.drops(run.id())) {
            Cancellation::TooLate => Verdict::TooLate,
            _ => Verdict::TimedOut,
        }
    }

    /// As [`finish`](Self::finish), where no run has just ended: compiled once.
    #[cold]
    #[inline(never)]
    pub(super) fn finish_unrun(
        &self,
        ending: Ending<J::Output>,
        is_run: bool,
        run: &Run,
        hooks: &Hooks,
    ) -> Verdict {
        if is_run {
            self.count_run_in_group(ending.is_err());
        }
        self.finish(ending, false, is_run, (run, hooks))
    }

    /// Returns the job if its run may still start by the policy for missed runs. It is that of a periodic
    /// task; `is_extra` says whether the run is beside the schedule.
    ///
    /// # Errors
    ///
    /// What becomes of the task, whose run was left out.
    #[inline(never)]
    pub(super) fn in_time(
        &self,
        job: J,
        wrapper: &mut Option<Wrapper>,
        is_extra: bool,
        (run, hooks): (&Run, &Hooks),
    ) -> Result<J, Verdict> {
        if !job.has_deadline() || is_extra || !run.keeps_limits() {
            return Ok(job);
        }
        match self.is_overdue(&job, run, hooks) {
            Ok(false) => Ok(job),
            Ok(true) => {
                let left_out = job.leave_out(run, hooks);
                Err(self.leave_out(left_out, wrapper.take(), run, hooks))
            }
            Err(panic) => {
                discard(job.exhaust(run, hooks));
                Err(self.leave_out(RunOutcome::Ended(Err(panic)), wrapper.take(), run, hooks))
            }
        }
    }

    /// Returns `true` if a run must not start any more.
    ///
    /// # Errors
    ///
    /// The panic of the trigger.
    #[inline(never)]
    fn is_overdue(&self, job: &J, run: &Run, hooks: &Hooks) -> Result<bool, Failure> {
        // The estimate of a moment of the wall clock may be out of date.
        if run.started() <= run.planned() && !job.is_on_wall() {
            return Ok(false);
        }
        let asked = self.0.lock().control().and_then(|control| control.asked());
        job.is_overdue(asked.unwrap_or(Timestamp::from_nanos(0)), run, hooks)
    }

    /// Has a run left out, after which the job goes on so.
    #[cold]
    #[inline(never)]
    fn leave_out(
        &self,
        left_out: RunOutcome<J>,
        wrapper: Option<Wrapper>,
        run: &Run,
        hooks: &Hooks,
    ) -> Verdict {
        Self::leave_unrun(run, hooks);
        run.stats().leave();
        if trace::is_listening() {
            let late = run.started().since(run.planned());
            trace::left_out(run.id(), run.task().name().as_deref(), run.number(), late);
        }
        match left_out {
            RunOutcome::Again(job, next) | RunOutcome::Failed(job, next, _) => {
                self.rest_unrun((job, wrapper), next, true, run, hooks)
            }
            // The panic of a trigger ends the task as it does after a run, and so counts as one.
            RunOutcome::Ended(ending) => {
                self.discard(wrapper, hooks.drops(run.id()));
                let is_run = ending.is_err();
                self.finish_unrun(ending, is_run, run, hooks)
            }
            RunOutcome::Exhausted => self.exhaust(wrapper, false, run, hooks),
        }
    }

    /// Ends a repeated task whose trigger has ended without a result.
    #[cold]
    pub(super) fn exhaust(
        &self,
        wrapper: Option<Wrapper>,
        is_run: bool,
        run: &Run,
        hooks: &Hooks,
    ) -> Verdict {
        self.discard(wrapper, hooks.drops(run.id()));
        let mut cell = self.0.lock();
        cell.stage().exhaust();
        let is_cancelled = cell.stage().state() == TaskState::Cancelled;
        let ended = if is_cancelled { Ended::Cancelled } else { Ended::Completed };
        run.count_end(is_run, false, ended);
        self.release(cell, false, hooks.drops(run.id()));
        Verdict::Ended
    }

    /// Asks the trigger for the next run again, in place of the run for which the task was taken.
    #[cold]
    pub(super) fn ask_again(
        &self,
        mut cell: MutexGuard<'_, TaskCell<J>>,
        run: &Run,
        hooks: &Hooks,
    ) -> Verdict {
        let Some(job) = cell.stage().start() else {
            run.stats().count_cancelled();
            return Verdict::TooLate;
        };
        drop(cell);
        match job.ask_again(run, hooks) {
            Ok((job, next)) => self.rest_unrun((job, None), next, false, run, hooks),
            // The trigger has panicked, which ends the task as it does after a run.
            Err(failure) => self.finish_unrun(Err(failure), true, run, hooks),
        }
    }
}

impl<J: Job> TaskCell<J> {
    /// Returns `true` if the task waits for a moment of the wall clock.
    #[inline]
    pub(super) fn is_on_wall(&mut self) -> bool {
        !self.is_plain() && self.stage().job().is_some_and(|job| job.is_on_wall())
    }
}
