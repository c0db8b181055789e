//! How a job stands, and results in the tables: a row for each, with the moment until which it is kept.
//!
//! [`END`](super::statements::END) writes it when it removes the job, so there is no moment at which neither is there. Who waits asks
//! again, with pauses that grow. What is over is not read any more, and goes with the next look of a machine that stores results.

use tokio::time::sleep;
use tokio_postgres::Row;

use super::{
    connection::AskError,
    machine::Machine,
    refused::Picks,
    verbs::{FIRST_PAUSE, LONGEST_PAUSE},
};
use crate::{JobId, JobState, JobValue, QueueError, QueueFuture};

/// $1 id. One row: whether it runs, how many attempts it has had and how many it has, its last error, and its result.
const STATE: &str = include_str!("sql/state.sql");

/// $1 how many, $2 of which jobs not. One row: how many results are gone whose time is over.
pub(super) const PRUNE_RESULTS: Picks =
    (include_str!("sql/prune_results.sql"), "the result of the job");

impl Machine {
    pub(super) async fn state_of(&self, id: JobId) -> Result<JobState, AskError> {
        let rows = self.ask(STATE, &[&id.0]).await?;
        Ok(rows.first().map_or(JobState::Gone, state))
    }

    /// Asks until the job has come to its end, or the caller waits no longer.
    pub(super) fn await_result_of(&self, id: JobId) -> QueueFuture<JobState> {
        let Some(me) = self.me.upgrade() else {
            return QueueFuture::ready(Err(QueueError::ShutDown));
        };
        let (promise, reply) = QueueFuture::promised();
        self.runtime.spawn(async move {
            let mut pause = FIRST_PAUSE;
            while promise.is_awaited() {
                match me.state_of(id).await {
                    Ok(JobState::Waiting { .. } | JobState::Running) => {}
                    answer => return promise.keep(answer.map_err(QueueError::from)),
                }
                sleep(pause).await;
                pause = (2 * pause).min(LONGEST_PAUSE);
            }
        });
        reply
    }
}

fn state(row: &Row) -> JobState {
    if let Some(value) = row.get(4) {
        return JobState::Returned(JobValue(value));
    }
    let (begun, max_attempts): (Option<i32>, Option<i32>) = (row.get(1), row.get(2));
    let Some(begun) = begun else { return JobState::Gone };
    let last_error: Option<String> = row.get(3);
    if row.get(0) {
        JobState::Running
    } else if Some(begun) >= max_attempts {
        JobState::Discarded { last_error: last_error.unwrap_or_default() }
    } else {
        JobState::Waiting { attempts: u32::try_from(begun).unwrap_or(0), last_error }
    }
}
