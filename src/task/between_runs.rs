//! A task between two runs: it rests until it is queued again.
//!
//! The worker that has taken an entry owns the task until it has queued it again. So what is decided here
//! needs no more protection than a run does. What is asked of the task meanwhile is noted, and followed in the step
//! that queues it.
//!
//! A run that is *overdue* is left out, by the worker that was about to start it: the plan goes past it
//! as past a run, and the task rests again.
//!
//! A series may also end here, because its trigger has, or has panicked.

use super::{
    Enqueue, Task, call::Call, cell::Parts, discard, layer::Queuing, plan::RunOutcome,
    verdict::Requeued,
};
use crate::{entry::Requeue, time::Timestamp, trace};

impl Task {
    /// Queues a task again that rests between two runs, or was put off, for `next` unless something else has been
    /// asked of it meanwhile. `enqueue` is called under the task's lock; it returns the slot of the queue, or `None`
    /// if the queue accepts the task no more.
    pub(crate) fn requeue(&self, next: Timestamp, enqueue: &mut Enqueue<'_>) -> Requeued {
        let (requeued, left) = self.with(|parts| {
            let why = if parts.is_periodic() { Requeue::NextRun } else { Requeue::PutOff };
            if parts.is_plain() {
                return (Requeued::of(parts.enqueue(next.into(), why, enqueue), false), None);
            }
            parts.requeue_extended(Queuing::new(next, why), enqueue)
        });
        if let Some(Queuing { deferred, replaced, .. }) = left {
            deferred.run();
            discard(replaced);
        }
        requeued
    }
}

impl Parts<'_> {
    /// As `Task::requeue`, after the layers of the task have changed how.
    #[inline(never)]
    fn requeue_extended(
        &mut self,
        mut queuing: Queuing,
        enqueue: &mut Enqueue<'_>,
    ) -> (Requeued, Option<Queuing>) {
        let (layers, mut core) = self.split();
        layers.all().for_each(|layer| layer.on_requeue(&mut core, &mut queuing));
        let is_estimated = layers.all().any(|layer| layer.is_estimated(&core));
        let is_queued = self.enqueue(queuing.timing(), queuing.why, enqueue);
        (Requeued::of(is_queued, is_estimated), Some(queuing))
    }
}

impl Call<'_> {
    /// Asks whether the run may still start, by the policy for missed runs.
    ///
    /// # Errors
    ///
    /// What follows if it may not: it is left out.
    #[inline]
    pub(crate) fn be_in_time(&mut self) -> Result<(), RunOutcome> {
        if self.plan.as_ref().is_some_and(|plan| plan.has_deadline()) {
            return self.be_in_time_by_plan();
        }
        Ok(())
    }

    #[inline(never)]
    fn be_in_time_by_plan(&mut self) -> Result<(), RunOutcome> {
        let (run, hooks, late_from) = (self.run, self.hooks, self.late_from());
        let is_exempt = self.is_extra() || self.is_by_hand();
        let Some(plan) = self.plan.as_mut().filter(|_| !is_exempt) else { return Ok(()) };
        // An estimate of when the run is due may be out of date.
        if run.started() <= run.planned() && !plan.is_estimated() {
            return Ok(());
        }
        let left_out = match plan.is_overdue(late_from, run, hooks) {
            Ok(false) => return Ok(()),
            Ok(true) => plan.leave_out(run, hooks),
            Err(panic) => RunOutcome::Ended(Err(panic)),
        };
        if trace::is_listening() {
            let late = run.started().since(run.planned());
            trace::left_out(run.id(), run.task().name().as_deref(), run.number(), late);
        }
        Err(left_out)
    }
}
