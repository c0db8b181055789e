//! The verbs: enqueueing, moving, cancelling, and asking how a job stands.
//!
//! Each is one statement on one connection, where they follow each other without waiting. If a transaction of
//! the program's own holds the job, the statement fails at once and is asked again after a pause, until the limit:
//! one key that is held does not keep other callers from an answer. Lists, counts and the history have a connection of their
//! own, because they may read much.

use std::time::{Duration, SystemTime};

use tokio::time::{Instant, sleep};
use tokio_postgres::Row;

use super::{
    connection::{AskError, Param},
    engine::PostgresEngine,
    moment::moment,
    statements,
};
use crate::{JobChange, JobHandle, JobId, When, job::payload::Payload, queue::engine::NewJob};

/// How long a verb waits before it asks again for a job that is held.
pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(20);
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A job as [`SEND`](statements::SEND) takes it, or [`SEND_UNIQUE`](statements::SEND_UNIQUE), on whichever connection.
pub(super) struct Enqueue {
    name: &'static str,
    payload: Payload,
    ordering_key: Option<String>,
    time: Option<SystemTime>,
    delay: Option<f64>,
    max_attempts: i32,
    key: Option<String>,
    keeps_moment: bool,
    is_unique: bool,
    priority: i16,
    limit_key: String,
    traceparent: Option<String>,
}

impl Enqueue {
    pub(super) fn new(new_job: NewJob, clock: &punctual::Clock) -> Self {
        let (time, delay) = moment(new_job.when, clock);
        Self {
            name: new_job.name,
            payload: new_job.payload,
            ordering_key: new_job.ordering_key,
            time,
            delay,
            max_attempts: i32::try_from(new_job.max_attempts).unwrap_or(i32::MAX),
            key: new_job.key,
            keeps_moment: new_job.keeps_moment,
            is_unique: new_job.is_unique,
            priority: new_job.priority.number(),
            limit_key: new_job.limit_key.unwrap_or_default(),
            traceparent: new_job.traceparent,
        }
    }

    pub(super) fn statement(&self) -> &'static str {
        if self.is_unique { statements::SEND_UNIQUE } else { statements::SEND }
    }

    pub(super) fn params(&self) -> Vec<Param<'_>> {
        let mut params: Vec<Param<'_>> = vec![
            &self.name,
            &self.payload,
            &self.ordering_key,
            &self.time,
            &self.delay,
            &self.max_attempts,
            &self.key,
            &self.priority,
            &self.limit_key,
            &self.traceparent,
        ];
        if !self.is_unique {
            params.push(&self.keeps_moment);
        }
        params
    }

    /// Returns the answer of the statement. `None`: it is to be asked again.
    pub(super) fn handle(&self, rows: &[Row]) -> Option<JobHandle> {
        let row = rows.first()?;
        Some(JobHandle { id: JobId(row.get(0)), name: self.name, was_skipped: row.get(1) })
    }
}

impl PostgresEngine {
    /// Asks for one of the verbs, as often as it takes.
    pub(super) async fn ask(
        &self,
        statement: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, AskError> {
        self.ask_until(statement, params, Some).await
    }

    /// Asks until there is an answer, with pauses that grow. Asks no more after the limit.
    async fn ask_until<T>(
        &self,
        statement: &str,
        params: &[Param<'_>],
        read: impl Fn(Vec<Row>) -> Option<T>,
    ) -> Result<T, AskError> {
        let limit = self.settings.request_timeout;
        let (begun, mut pause) = (Instant::now(), FIRST_PAUSE);
        loop {
            let why = match self.verbs.ask(statement, params).await.map(&read) {
                Ok(Some(read)) => return Ok(read),
                Ok(None) => AskError::LeftOut(limit),
                Err(error) if error.is_lock() => error,
                Err(error) => return Err(error),
            };
            if begun.elapsed() + pause > limit {
                return Err(why);
            }
            sleep(pause).await;
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
    }

    pub(super) async fn enqueue(&self, new_job: NewJob) -> Result<JobHandle, AskError> {
        let when = new_job.when;
        let enqueue = Enqueue::new(new_job, self.executor.clock());
        let read = |rows: Vec<Row>| enqueue.handle(&rows);
        let job = self.ask_until(enqueue.statement(), &enqueue.params(), read).await?;
        self.wake_when_due(when);
        Ok(job)
    }

    pub(super) async fn move_job(&self, key: &str, when: When) -> Result<JobChange, AskError> {
        let (time, delay) = moment(when, self.executor.clock());
        let rows = self.ask(statements::RESCHEDULE, &[&key, &time, &delay]).await?;
        self.wake_when_due(when);
        Ok(moved(&rows))
    }

    pub(super) async fn cancel_job(&self, key: &str) -> Result<JobChange, AskError> {
        let rows = self.ask(statements::CANCEL, &[&key]).await?;
        let cancelled = cancelled(&rows);
        if let Some(row) = rows.first().filter(|_| cancelled == JobChange::Signalled) {
            self.claims.cancel(row.get(0));
        }
        Ok(cancelled)
    }
}

/// Returns what the rows of [`RESCHEDULE`](statements::RESCHEDULE) say.
pub(super) fn moved(rows: &[Row]) -> JobChange {
    match rows.first() {
        None => JobChange::Unknown,
        Some(row) if row.get(0) => JobChange::Done,
        Some(_) => JobChange::Running,
    }
}

/// Returns what the rows of [`CANCEL`](statements::CANCEL) say.
pub(super) fn cancelled(rows: &[Row]) -> JobChange {
    match rows.first() {
        None => JobChange::Unknown,
        Some(row) if row.get(1) => JobChange::Signalled,
        Some(_) => JobChange::Done,
    }
}
