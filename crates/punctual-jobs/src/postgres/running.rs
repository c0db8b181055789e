//! A claimed job as a task of the executor.
//!
//! The engine awaits a future for each job that it has claimed. That future enters the run among the
//! [claims](super::claims), submits a task to the executor, and waits for one of two things: that the handler
//! has returned, or that a shutdown has lost its patience. What it answers is what the engine writes down.
//!
//! A job is handed back by a statement of ours, before the engine is answered with an error. The engine then
//! fails an attempt that its worker does not have any more, which changes nothing.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, OnceLock},
    time::Duration,
};

use punctual::{FailurePolicy, trigger};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio_postgres::types::Type;

use super::{
    claims::End,
    engine::{Claimed, Failed, Runs},
    office::Office,
    statements,
};
use crate::{Desk, DeskError, GivenUp, JobId, JobRun, jobs::Definition, run};

/// The error of an attempt that does not count.
const HANDED_BACK: &str = "handed back";

/// By how much a job that was claimed is late if there may be others that wait.
const LATE: Duration = Duration::from_millis(5);

/// What a task reports: how the attempt has ended, and how long the user's function has the job wait.
type Report = (Result<(), String>, Option<Duration>);

/// The task of a run.
struct Body {
    office: Arc<Office>,
    definition: Arc<Definition>,
    number: u64,
    job: Claimed,
    tell: oneshot::Sender<Report>,
}

impl Runs for Office {
    fn run(&self, job: Claimed) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>> {
        let office = self.me.upgrade();
        Box::pin(async move {
            match office {
                Some(office) => office.run_claimed(job).await,
                None => Err(HANDED_BACK.to_owned()),
            }
        })
    }

    fn failed(&self, job: Failed) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let office = self.me.upgrade();
        Box::pin(async move {
            if let Some(office) = office.filter(|_| job.error != HANDED_BACK) {
                office.after_failure(job).await;
            }
        })
    }

    fn given_up(&self, job: Failed) {
        let given_up = GivenUp {
            id: JobId(job.id),
            name: job.name,
            payload: job.payload,
            attempts: job.begun,
            last_error: job.error,
        };
        let definitions = Arc::clone(&self.definitions);
        // If the executor takes no task any more, the program is at its end and does not want to know.
        let _ = self.executor.execute(move || definitions.tell_given_up(&given_up));
    }
}

impl Office {
    async fn run_claimed(self: Arc<Self>, job: Claimed) -> Result<(), String> {
        let Some(definition) = self.definitions.handled(&job.name).map(Arc::clone) else {
            return Err(format!("nothing in this process handles the job {:?}", job.name));
        };
        if job.locked_at.duration_since(job.run_at).is_ok_and(|late| late > LATE) {
            self.kick.kick();
        }
        let (worker, id) = (job.worker.clone(), job.id);
        let Some((number, handed_back)) = self.claims.begin(&job, definition.name) else {
            self.hand_back(&worker, id).await;
            return Err(HANDED_BACK.to_owned());
        };
        let (tell, told) = oneshot::channel();
        let body = Body { office: Arc::clone(&self), definition, number, job, tell };
        if let Err(error) = body.submit() {
            self.claims.end(number, End::Failed);
            return Err(format!("the executor has refused the task: {error}"));
        }
        let report = tokio::select! {
            biased;
            report = told => Some(report),
            Ok(()) = handed_back => None,
        };
        match report {
            Some(Ok((Ok(()), _))) => {
                self.claims.end(number, End::Ran);
                Ok(())
            }
            Some(Ok((Err(error), delay))) if !self.claims.has_asked() => {
                if let Some(delay) = delay {
                    self.delays.lock().insert(id, delay);
                }
                self.claims.end(number, End::Failed);
                Err(error)
            }
            Some(Err(_)) if !self.claims.has_asked() => {
                self.claims.end(number, End::Failed);
                Err("the executor has dropped the task: it was shut down before the desk"
                    .to_owned())
            }
            ended => {
                self.hand_back(&worker, id).await;
                self.claims.end(number, End::HandedBack { still_runs: ended.is_none() });
                Err(HANDED_BACK.to_owned())
            }
        }
    }

    /// Frees a claim, and does not count its attempt. If that fails, the job is found when the lease is over.
    async fn hand_back(&self, worker: &str, id: i64) {
        let params: super::connection::Params<'_> = &[(&worker, Type::TEXT), (&id, Type::INT8)];
        let _ = self.connection.query(statements::HAND_BACK, params).await;
    }

    /// The engine has written down a failed attempt. If a statement here fails, the engine's delay applies, or
    /// a job that is over stays in the table.
    async fn after_failure(&self, job: Failed) {
        let delay = self.delays.lock().remove(&job.id);
        let id = (&job.id as _, Type::INT8);
        match self.connection.query(statements::RETIRE, std::slice::from_ref(&id)).await {
            // It was cancelled, or has lost its key, while it ran.
            Ok(rows) if !rows.is_empty() => return,
            _ => {}
        }
        if job.is_last {
            self.given_up(job);
        } else if let Some(delay) = delay {
            let seconds = delay.as_secs_f64().min(1e9);
            let begun = i32::try_from(job.begun).unwrap_or(i32::MAX);
            let params: super::connection::Params<'_> = &[
                id,
                (&begun, Type::INT4),
                (&seconds, Type::FLOAT8),
                (&job.updated_at, Type::TIMESTAMPTZ),
            ];
            let _ = self.connection.query(statements::BACK_OFF, params).await;
            self.kick_when_due(crate::When::After(delay));
        }
    }

    async fn draw_fence(&self, number: u64) -> Result<u64, DeskError> {
        let Some(claim) = self.claims.standing(number) else { return Err(DeskError::Lost) };
        let params: super::connection::Params<'_> = &[
            (&claim.id, Type::INT8),
            (&claim.worker, Type::TEXT),
            (&claim.locked_at, Type::TIMESTAMPTZ),
        ];
        let rows = self.connection.query(statements::FENCE, params).await;
        let rows = rows.map_err(|error| DeskError::Server(error.into()))?;
        let fence = rows.first().ok_or(DeskError::Lost)?.get::<_, i64>(0);
        Ok(u64::try_from(fence).unwrap_or(0))
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
        let Self { office, definition, number, job, tell } = self;
        let clock = office.executor.clock();
        let (token, began) = run::begin(clock);
        office.claims.attach(number, &token);
        let asks = Arc::clone(&office);
        let draw_fence = move || {
            let me = Arc::clone(&asks);
            asks.ask(async move { me.draw_fence(number).await }).wait(asks.settings.limit)
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
        let payload: Value = job.payload;
        let result = run::call(&definition, &run, &payload, clock, began);
        drop(run);
        let backoff = definition.backoff.as_ref().filter(|_| result.is_err());
        let delay = backoff.map(|backoff| backoff(job.begun));
        // Nobody listens if the job was handed back meanwhile.
        let _ = tell.send((result, delay));
    }
}
