//! A look inside the tables, and the changes that a person makes there: by the id of a job.
//!
//! They are verbs like the others ([`verbs`](super::verbs)): each is one statement, and one for a row that another
//! transaction holds fails at once and is asked again. A statement decides by the row as it is under its lock. So of a
//! retry and a claim, or of a discard and the end of a run, one comes first, and the other one finds what it has left.
//!
//! A list takes no lock. Its conditions are chosen by parameters, which the server knows when it plans the statement: an
//! unnamed one is planned each time. It then finds what runs and what is discarded by an index that has nothing else.

use std::time::Duration;

use tokio_postgres::{Row, error::SqlState};

use super::{connection::AskError, machine::Machine, verbs::change};
use crate::{
    JobChange, JobFilter, JobId, JobStage, JobStatus, JobWait, KindCounts, Priority,
    job::payload::Payload,
    queue::{change::BY_HAND, history::PAGE},
};

/// $1 stage, $2 kind, $3 key, $4 schedule, $5 ordering key, $6 id after which, $7 how many, $8 limit key, $9 whether with payloads,
/// $10 kinds with limits, $11 how many of each may run, $12 how many of each limit key, $13 whether only those that
/// wait for the end of a pause.
const LIST: &str = include_str!("sql/list.sql");

/// A row for each kind: how many of its jobs wait, are due, run and are discarded, and for how many seconds the first one
/// has been due; and whether the kind is paused, and until when, if that ends by itself.
const COUNTS: &str = include_str!("sql/counts.sql");

/// $1 id. No row if there is no such job. One row: whether it runs, and whether another job has its key. One that was
/// discarded is to be told no more: it is not discarded any longer.
pub(super) const RETRY: &str = include_str!("sql/retry.sql");

/// $1 id, $2 the error of a job without one. No row if there is no such job. One row: whether it runs.
pub(super) const DISCARD: &str = include_str!("sql/discard.sql");

/// $1 id. No row if there is no such job. One row: whether it runs.
pub(super) const REMOVE: &str = include_str!("sql/remove.sql");

impl Machine {
    pub(super) async fn jobs_of(&self, filter: JobFilter) -> Result<Vec<JobStatus>, AskError> {
        let stage = filter.stage.map(|stage| stage.to_string());
        let limit = i64::try_from(filter.limit.unwrap_or(PAGE)).unwrap_or(i64::MAX);
        let after = filter.after.map_or(i64::MIN, |id| id.0);
        let (kinds, of_kinds, of_keys) = self.definitions.limits();
        Ok(self
            .looks
            .ask(
                LIST,
                &[
                    &stage,
                    &filter.kind,
                    &filter.key,
                    &filter.schedule,
                    &filter.ordering_key,
                    &after,
                    &limit,
                    &filter.limit_key,
                    &filter.payloads,
                    &kinds,
                    &of_kinds,
                    &of_keys,
                    &filter.paused,
                ],
            )
            .await?
            .iter()
            .map(status)
            .collect())
    }

    pub(super) async fn counts_by_kind(&self) -> Result<Vec<KindCounts>, AskError> {
        Ok(self.looks.ask(COUNTS, &[]).await?.iter().map(counts).collect())
    }

    pub(super) async fn retry_job(&self, id: JobId) -> Result<JobChange, AskError> {
        let rows = match self.ask(RETRY, &[&id.0]).await {
            // Another machine has enqueued the key while this statement ran.
            Err(error) if error.is(&SqlState::UNIQUE_VIOLATION) => return Ok(JobChange::KeyTaken),
            rows => rows?,
        };
        Ok(retried(&rows))
    }

    pub(super) async fn discard_job(&self, id: JobId) -> Result<JobChange, AskError> {
        let discarded = discarded(&self.ask(DISCARD, &[&id.0, &BY_HAND]).await?);
        if discarded == JobChange::Signalled {
            self.claims.cancel(id.0);
        }
        Ok(discarded)
    }

    pub(super) async fn remove_job(&self, id: JobId) -> Result<JobChange, AskError> {
        Ok(removed(&self.ask(REMOVE, &[&id.0]).await?))
    }
}

/// Returns what the rows of [`RETRY`] say.
pub(super) fn retried(rows: &[Row]) -> JobChange {
    match rows.first() {
        None => JobChange::Unknown,
        Some(row) if row.get(0) => JobChange::Running,
        Some(row) if row.get(1) => JobChange::KeyTaken,
        Some(_) => JobChange::Done,
    }
}

/// Returns what the rows of [`DISCARD`] say.
pub(super) fn discarded(rows: &[Row]) -> JobChange {
    change(rows, 0, JobChange::Signalled, JobChange::Done)
}

/// Returns what the rows of [`REMOVE`] say.
pub(super) fn removed(rows: &[Row]) -> JobChange {
    change(rows, 0, JobChange::Running, JobChange::Done)
}

fn counts(row: &Row) -> KindCounts {
    let count = |column| u64::try_from(row.get::<_, i64>(column)).unwrap_or(0);
    let latency = row.get::<_, Option<f64>>(5).unwrap_or(0.0);
    KindCounts {
        kind: row.get(0),
        waiting: count(1),
        due: count(2),
        running: count(3),
        discarded: count(4),
        latency: Duration::try_from_secs_f64(latency).unwrap_or_default(),
        paused: row.get(6),
        paused_until: row.get(7),
    }
}

fn status(row: &Row) -> JobStatus {
    let count = |column| u32::try_from(row.get::<_, i32>(column)).unwrap_or(0);
    JobStatus {
        id: JobId(row.get(0)),
        kind: row.get(1),
        payload: row.get::<_, Option<Payload>>(2).map(|payload| payload.to_text()),
        key: row.get(3),
        ordering_key: row.get(4),
        schedule: row.get(5),
        tick: row.get(6),
        stage: match row.get(7) {
            "running" => JobStage::Running,
            "waiting" => JobStage::Waiting,
            _ => JobStage::Discarded,
        },
        due: Some(row.get(8)),
        attempts: count(9),
        max_attempts: count(10),
        machine: row.get(11),
        since: row.get(12),
        last_error: row.get(13),
        priority: Priority::of_number(row.get(14)),
        limit_key: row.get(15),
        waits_for: match row.get(16) {
            Some("ordering key") => Some(JobWait::OrderingKey),
            Some("limit of key") => Some(JobWait::LimitOfKey),
            Some(_) => Some(JobWait::Limit),
            None => None,
        },
        paused: row.get(17),
    }
}
