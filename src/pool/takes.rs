//! Calls the observers of runs, which only some pools have ([`Pool::follows_takes`](Pool)).
//!
//! Two clock readings measure a run, and a third would cost more than the rest of the record. A worker reads the clock
//! anyway when it looks for its next task, right after the run. So it keeps the facts of a run until then, and takes
//! that reading as the run's end. Another thread may therefore see an outcome before the observers hear of its run.

use std::cell::Cell;

use super::Pool;
use crate::{
    TaskId,
    task::{EndedRun, FailureSource, Hooks, Observer, Points, Run, RunFacts, WorkerContext},
    time::Timestamp,
};

#[derive(Default)]
pub(super) struct Takes {
    /// The facts of the last run, until the worker has read the clock.
    ended: Cell<Option<RunFacts>>,
    /// How many of the worker's runs have been counted, and how many of these have failed.
    counted: Cell<(u64, u64)>,
}

impl Takes {
    /// Tells the observers of the last run, and then that the worker has taken a task, which was due at `due`.
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

    /// Keeps the facts of a run that has ended, if it took place. The task was due at `due`.
    pub(super) fn note(&self, run: &Run, due: Timestamp) {
        let counted = run.stats().counted();
        let (runs, failed) = self.counted.replace(counted);
        if counted.0 == runs {
            return;
        }
        self.ended.set(Some(run.facts(due, counted.1 > failed)));
    }

    /// Tells the observers of the last run, once the worker has looked for a task and so read `now` from the clock.
    pub(super) fn look(&self, hooks: &Hooks, worker: &WorkerContext, now: Timestamp) {
        let Some(facts) = self.ended.take() else { return };
        worker.with_names(facts.id, |names| {
            let run = EndedRun { facts, names, ended: now, clock: &worker.clock };
            hooks.tell(Points::ENDED, FailureSource::Observer, &|told| told.run_ended(&run));
        });
    }
}
