//! A claimed job as a task of the executor.
//!
//! The worker has a future for each job that it has claimed. That future enters the run among the
//! [claims](super::claims), submits a task to the executor, and waits for one of two things: that the handler
//! has returned, or that a shutdown has lost its patience. What it returns is what is [written
//! down](super::ending).

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use punctual::{FailurePolicy, trigger};
use tokio::sync::oneshot;

use super::{
    claims::{Claimed, End},
    ending::How,
    machine::Machine,
    statements,
};
use crate::{
    JobId, JobQueue, JobRun, QueueError,
    job::{backoff, jobs::Definition},
    run::{self, Outcome},
};

/// The task of a run.
struct Body {
    machine: Arc<Machine>,
    definition: Arc<Definition>,
    job: Claimed,
    tell: oneshot::Sender<Outcome>,
}

/// Runs a job that was claimed, and returns how that has ended.
pub(super) async fn run(machine: Arc<Machine>, job: Claimed) -> How {
    let after_default =
        |error: String| How::Ended(Outcome::Failed(error, backoff::exponential(job.begun)));
    let Some(definition) = machine.definitions.handled(&job.name).map(Arc::clone) else {
        return after_default(format!("nothing in this process handles the job {:?}", job.name));
    };
    let claim = job.claim;
    let Some(released) = machine.claims.begin(&job, definition.name) else {
        return How::Freed(None);
    };
    let (tell, told) = oneshot::channel();
    let body = Body { machine: Arc::clone(&machine), definition, job: job.clone(), tell };
    if let Err(error) = body.submit() {
        machine.claims.end(claim, End::Over);
        return How::Refused(error.to_string());
    }
    let told = tokio::select! {
        biased;
        told = told => Some(told),
        Ok(()) = released => None,
    };
    let (end, how) = match told {
        None => (End::StillRuns, How::Freed(None)),
        Some(Ok(Outcome::Failed(error, _))) if machine.claims.has_asked() => {
            (End::Over, How::Freed(Some(error)))
        }
        Some(Ok(outcome @ Outcome::Succeeded(_))) => (End::Ran, How::Ended(outcome)),
        Some(Ok(outcome)) => (End::Over, How::Ended(outcome)),
        // A task that has begun always tells.
        Some(Err(_)) => (End::Over, How::Refused("it has dropped the task".to_owned())),
    };
    machine.claims.end(claim, end);
    how
}

impl Machine {
    /// Returns the fencing token of a run, which is its claim. The question waits for no row, and goes where nothing does:
    /// the handler may have a transaction open that holds this very job.
    async fn fencing_token(&self, id: i64, claim: i64) -> Result<u64, QueueError> {
        if !self.claims.stands(claim) {
            return Err(QueueError::Lost);
        }
        let rows = self.pulse.ask(statements::STANDING, &[&id, &claim]).await?;
        rows.first().ok_or(QueueError::Lost)?;
        Ok(u64::try_from(claim).unwrap_or(0))
    }
}

impl Body {
    fn submit(self) -> Result<(), punctual::RejectedExecutionError> {
        let machine = Arc::clone(&self.machine);
        // This thread must not run it, whatever the executor would do, and must not wait for room: heartbeats would stop.
        let task = machine.executor.task().name(self.definition.name).abort_if_rejected();
        match self.definition.timeout {
            None => task.execute(move || self.run()),
            // A task that is repeated once has its limit counted from the start of its run.
            Some(limit) => {
                let mut body = Some(self);
                let once = trigger::every(Duration::from_secs(1));
                let once = punctual::Trigger::times(once, 1);
                let task = task.timeout(limit).on_failure(FailurePolicy::resume());
                task.repeat(once, move || body.take().map_or((), Self::run)).map(drop)
            }
        }
    }

    fn run(self) {
        let Self { machine, definition, job, tell } = self;
        let clock = machine.executor.clock();
        let (stop, began) = run::begin(&machine.executor, definition.timeout);
        machine.claims.attach(job.claim, &stop);
        let asks = Arc::clone(&machine);
        let (id, claim) = (job.id, job.claim);
        let draw_fencing_token = move || {
            let me = Arc::clone(&asks);
            asks.answer(async move { me.fencing_token(id, claim).await })
                .wait(asks.settings.request_timeout)
        };
        let run = JobRun {
            id: JobId(job.id),
            name: definition.name,
            attempt: job.begun,
            max_attempts: job.max_attempts,
            key: job.key,
            tick: job.tick,
            traceparent: job.traceparent,
            stop,
            queue: JobQueue::borrowing(Arc::clone(&machine) as _, Arc::clone(&machine.definitions)),
            draw_fencing_token: Box::new(draw_fencing_token),
            fence: OnceLock::new(),
        };
        let outcome = run::call(&definition, &run, &job.payload, clock, began);
        drop(run);
        // The other end is gone if the job was released meanwhile.
        let _ = tell.send(outcome);
    }
}
