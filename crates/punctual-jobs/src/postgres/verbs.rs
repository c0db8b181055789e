//! The verbs: moving, cancelling, and asking how a job stands; [`storing`](super::storing) has enqueueing.
//!
//! Each is one statement on one connection, where they follow each other without waiting. If a transaction of
//! the program's own holds the job, the statement fails at once and is asked again after a pause, until the limit:
//! one key that is held does not keep other callers from an answer. Lists, counts and the history have a connection of their
//! own, because they may read much.

use std::{future::Future, time::Duration};

use tokio::time::{Instant, sleep};
use tokio_postgres::Row;

use super::{
    connection::{AskError, Param},
    machine::Machine,
    moment::moment,
    statements,
};
use crate::{Cancellation, JobId, JobState, Rescheduling, When};

/// How long a verb waits before it asks again for a job that is held.
pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(20);
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(1);

impl Machine {
    /// Asks for one of the verbs, as often as it takes.
    pub(super) async fn ask(
        &self,
        statement: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, AskError> {
        self.again(|| self.verbs.ask(statement, params)).await
    }

    /// Asks until there is an answer, with pauses that grow. Asks no more after the limit.
    pub(super) async fn again<T, F>(&self, ask: impl Fn() -> F) -> Result<T, AskError>
    where
        F: Future<Output = Result<T, AskError>>,
    {
        let limit = self.settings.request_timeout;
        let (begun, mut pause) = (Instant::now(), FIRST_PAUSE);
        loop {
            match ask().await {
                Err(error) if error.may_pass() && begun.elapsed() + pause <= limit => {}
                answer => return answer,
            }
            sleep(pause).await;
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
    }

    pub(super) async fn move_job(&self, key: &str, when: When) -> Result<Rescheduling, AskError> {
        let (time, delay) = moment(when, self.executor.clock());
        let rows = self.ask(statements::RESCHEDULE, &[&key, &time, &delay]).await?;
        self.wake_when_due(when);
        Ok(moved(&rows))
    }

    pub(super) async fn cancel_job(&self, key: &str) -> Result<Cancellation, AskError> {
        let rows = self.ask(statements::CANCEL, &[&key]).await?;
        let cancelled = cancelled(&rows);
        if let Some(row) = rows.first().filter(|_| cancelled == Cancellation::Signalled) {
            self.claims.cancel(row.get(0));
        }
        Ok(cancelled)
    }

    pub(super) async fn state_of(&self, id: JobId) -> Result<JobState, AskError> {
        let rows = self.ask(statements::STATE, &[&id.0]).await?;
        let Some(row) = rows.first() else { return Ok(JobState::Gone) };
        let (begun, max_attempts): (i32, i32) = (row.get(1), row.get(2));
        let last_error: Option<String> = row.get(3);
        Ok(if row.get(0) {
            JobState::Running
        } else if begun >= max_attempts {
            JobState::Discarded { last_error: last_error.unwrap_or_default() }
        } else {
            JobState::Waiting { attempts: u32::try_from(begun).unwrap_or(0), last_error }
        })
    }
}

/// Returns what the rows of [`RESCHEDULE`](statements::RESCHEDULE) say.
pub(super) fn moved(rows: &[Row]) -> Rescheduling {
    match rows.first() {
        None => Rescheduling::Unknown,
        Some(row) if row.get(0) => Rescheduling::Moved,
        Some(_) => Rescheduling::Running,
    }
}

/// Returns what the rows of [`CANCEL`](statements::CANCEL) say.
pub(super) fn cancelled(rows: &[Row]) -> Cancellation {
    match rows.first() {
        None => Cancellation::Unknown,
        Some(row) if row.get(1) => Cancellation::Signalled,
        Some(_) => Cancellation::Removed,
    }
}
