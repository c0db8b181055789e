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
//! A series may also end here, because its trigger has, or has panicked.

use super::{
    Enqueue, Failure, Hooks, Job, Run, Task, TaskState, Verdict, Wrapper, cell::TaskCell, discard,
    state::Ending,
};
use crate::{CancelReason, statistics::Ended, sync::MutexGuard, time::Timestamp};

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
        self.rest_after(job, next, wrapper, failed, (run, hooks), count)
    }

    /// Puts a periodic task to rest until it is queued again for `next`, unless it has been cancelled
    /// meanwhile, or has raised its own token. `count` counts what the worker has done, and how the task
    /// has ended by that, if it has.
    fn rest_after(
        &self,
        job: J,
        next: Timestamp,
        wrapper: Option<Wrapper>,
        failed: Option<Failure>,
        (run, hooks): (&Run, &Hooks),
        count: impl FnOnce(Option<Ended>),
    ) -> Verdict {
        let failure = failed.as_ref().map(|panic| run.failure(panic));
        let mut cell = self.0.lock();
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
        let (deadline, how, effects) = cell.come_back(deadline);
        let is_queued = cell.rearm(deadline, how, enqueue);
        drop(cell);
        effects.carry_out();
        if replaced.is_some() {
            discard(replaced);
        }
        is_queued
    }

    /// As [`rest`](Self::rest), in place of a run that did not take place.
    #[inline(never)]
    pub(super) fn rest_unrun(&self, job: J, next: Timestamp, run: &Run, hooks: &Hooks) -> Verdict {
        self.rest_after(job, next, None, None, (run, hooks), |ended| {
            if let Some(ended) = ended {
                run.stats().count_ended(ended);
            }
        })
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
            Ok((job, next)) => self.rest_unrun(job, next, run, hooks),
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
