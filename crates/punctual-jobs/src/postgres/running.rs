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
use tokio_postgres::types::Type;

use super::{
    claims::{Claimed, End},
    connection::AskError,
    ending::How,
    office::Office,
    statements,
};
use crate::{Desk, DeskError, JobId, JobRun, backoff, jobs::Definition, run};

/// What a task reports: how the attempt has ended, and how long the job waits if it has failed.
type Report = (Result<(), String>, Duration);

/// The task of a run.
struct Body {
    office: Arc<Office>,
    definition: Arc<Definition>,
    job: Claimed,
    tell: oneshot::Sender<Report>,
}

/// Runs a job that was claimed, and returns how that has ended.
pub(super) async fn run(office: Arc<Office>, job: Claimed) -> How {
    let after_default = |error: String| How::Failed(error, backoff::exponential(job.begun));
    let Some(definition) = office.definitions.handled(&job.name).map(Arc::clone) else {
        return after_default(format!("nothing in this process handles the job {:?}", job.name));
    };
    let claim = job.claim;
    let Some(handed_back) = office.claims.begin(&job, definition.name) else {
        return How::Freed;
    };
    let (tell, told) = oneshot::channel();
    let body = Body { office: Arc::clone(&office), definition, job: job.clone(), tell };
    if let Err(error) = body.submit() {
        office.claims.end(claim, End::Failed);
        return after_default(format!("the executor has refused the task: {error}"));
    }
    let report = tokio::select! {
        biased;
        report = told => Some(report),
        Ok(()) = handed_back => None,
    };
    let (end, how) = match report {
        Some(Ok((Ok(()), _))) => (End::Ran, How::Ran),
        Some(Ok((Err(error), delay))) if !office.claims.has_asked() => {
            (End::Failed, How::Failed(error, delay))
        }
        Some(Err(_)) if !office.claims.has_asked() => {
            let error = "the executor has dropped the task: it was shut down before the desk";
            (End::Failed, after_default(error.to_owned()))
        }
        ended => (End::HandedBack { still_runs: ended.is_none() }, How::Freed),
    };
    office.claims.end(claim, end);
    how
}

impl Office {
    /// Returns the fence of a run, which is its claim. The question waits for no row, and goes where nothing does:
    /// the handler may have a transaction open that holds this very job.
    async fn fence(&self, id: i64, claim: i64) -> Result<u64, DeskError> {
        if !self.claims.stands(claim) {
            return Err(DeskError::Lost);
        }
        let (ids, claims) = ([id], [claim]);
        let params = [(&&ids[..] as _, Type::INT8_ARRAY), (&&claims[..] as _, Type::INT8_ARRAY)];
        let rows = self.pulse.ask(statements::STANDING, &params).await;
        let rows = rows.map_err(|error: AskError| DeskError::Server(error.into_source()))?;
        rows.first().ok_or(DeskError::Lost)?;
        Ok(u64::try_from(claim).unwrap_or(0))
    }
}

impl Body {
    fn submit(self) -> Result<(), punctual::RejectedExecutionError> {
        let office = Arc::clone(&self.office);
        let task = office.executor.task().name(self.definition.name);
        match self.definition.time_limit {
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
        let Self { office, definition, job, tell } = self;
        let clock = office.executor.clock();
        let (token, began) = run::begin(clock);
        office.claims.attach(job.claim, &token);
        let asks = Arc::clone(&office);
        let (id, claim) = (job.id, job.claim);
        let draw_fence = move || {
            let me = Arc::clone(&asks);
            asks.answer(async move { me.fence(id, claim).await }).wait(asks.settings.limit)
        };
        let run = JobRun {
            id: JobId(job.id),
            name: definition.name,
            attempt: job.begun,
            attempts: job.attempts,
            key: job.key,
            token,
            desk: Desk::borrowing(Arc::clone(&office) as _, Arc::clone(&office.definitions)),
            draw_fence: Box::new(draw_fence),
            fence: OnceLock::new(),
        };
        let result = run::call(&definition, &run, &job.payload, clock, began);
        drop(run);
        let delay =
            if result.is_err() { definition.delay_after(job.begun) } else { Duration::ZERO };
        // The other end is gone if the job was handed back meanwhile.
        let _ = tell.send((result, delay));
    }
}
