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
use crate::{JobChange, When};

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
    change(rows, 0, JobChange::Done, JobChange::Running)
}

/// Returns what the rows of [`CANCEL`](statements::CANCEL) say.
pub(super) fn cancelled(rows: &[Row]) -> JobChange {
    change(rows, 1, JobChange::Signalled, JobChange::Done)
}

/// Returns `yes` or `no`, as this column of the row says. Without a row there is no such job.
pub(super) fn change(rows: &[Row], column: usize, yes: JobChange, no: JobChange) -> JobChange {
    rows.first().map_or(JobChange::Unknown, |row| if row.get(column) { yes } else { no })
}
