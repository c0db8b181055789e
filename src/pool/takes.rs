//! Reports each task that a worker takes, and each run, to the observers. A pool skips this if it has no bound and no
//! observer of takes or runs. One flag ([`Pool::follows_takes`](Pool)) covers both conditions.
//!
//! An extra clock reading at the end of each run would cost more than the rest of the report. The worker reads the
//! clock anyway, right after the run, when it looks for its next task. So it keeps the facts of a run until then, and
//! takes that reading as the run's end. Another thread may therefore see the outcome of a run before the observers hear
//! of it.

use std::cell::Cell;

use super::Pool;
use crate::{
    TaskId,
    task::{EndedRun, FailureSource, Hooks, Observer, Points, Run, RunFacts, WorkerContext},
    time::Timestamp,
};

#[derive(Default)]
pub(super) struct Takes {
    /// The facts of the last run, until the observers have been told of it.
    ended: Cell<Option<RunFacts>>,
    /// The worker's counts of runs and of failed runs, as they were after the last task.
    counted: Cell<(u64, u64)>,
}

impl Takes {
    /// Reports the last run to the observers, and then tells them that the worker has taken task `id`, due at `due`.
    #[inline(never)]
    pub(super) fn take(
        &self,
        pool: &Pool,
        worker: &WorkerContext,
        (id, due): (u64, Timestamp),
        now: Timestamp,
    ) {
        self.look(&pool.callbacks.hooks, worker, now);
        let (hooks, overdue) = (&pool.callbacks.hooks, now.since(due));
        if hooks.has(Points::TAKEN) {
            let taken = pool.clock().shown_at(now);
            let tell = |told: &dyn Observer| told.task_taken(TaskId(id), taken, overdue);
            hooks.tell(Points::TAKEN, FailureSource::Observer, &tell);
        }
    }

    /// If the run took place, keeps its facts for the observers. The run's entry was due at `due`.
    pub(super) fn note(&self, run: &Run, due: Timestamp) {
        let counted = run.stats().counted();
        let (runs, failed) = self.counted.replace(counted);
        if counted.0 == runs {
            return;
        }
        self.ended.set(Some(run.facts(due, counted.1 > failed)));
    }

    /// Reports the last run to the observers, unless that has been done. `now` counts as the end of that run.
    pub(super) fn look(&self, hooks: &Hooks, worker: &WorkerContext, now: Timestamp) {
        let Some(facts) = self.ended.take() else { return };
        worker.with_names(facts.id, |names| {
            let run = EndedRun { facts, names, ended: now, clock: &worker.clock };
            hooks.tell(Points::ENDED, FailureSource::Observer, &|told| told.run_ended(&run));
        });
    }
}
