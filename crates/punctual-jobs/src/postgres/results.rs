//! Results in the tables: a row for each, with the moment until which it is kept.
//!
//! [`END`](super::statements::END) writes it when it removes the job, so there is no moment at which neither is there. Who waits asks
//! again, with pauses that grow. What is over is not read any more, and goes with the next look of a machine that stores results.

use tokio::time::sleep;
use tokio_postgres::Row;

use super::{
    connection::AskError,
    machine::Machine,
    verbs::{FIRST_PAUSE, LONGEST_PAUSE},
};
use crate::{JobId, JobResult, JobValue, QueueError, QueueFuture};

/// $1 id. One row: the result, whether there is such a job, whether it is discarded, and its last error.
const RESULT: &str = "\
select (select value from @schema.job_result where job = $1 and until > clock_timestamp()),
  j.id is not null, j.claim is null and j.attempts >= j.max_attempts, j.last_error
  from (select) one left join @schema.job j on j.id = $1";

/// One row: how many results are gone whose time is over.
pub(super) const PRUNE_RESULTS: &str = "\
with old as (
  select job from @schema.job_result where until < clock_timestamp() order by until limit 1000 for update skip locked
), gone as (
  delete from @schema.job_result r using old where r.job = old.job returning 1
)
select count(*) from gone";

impl Machine {
    pub(super) async fn result_of(&self, id: JobId) -> Result<JobResult, AskError> {
        let rows = self.ask(RESULT, &[&id.0]).await?;
        Ok(rows.first().map_or(JobResult::Gone, result))
    }

    /// Asks until the job has come to its end, or the caller waits no longer.
    pub(super) fn await_result_of(&self, id: JobId) -> QueueFuture<JobResult> {
        let Some(me) = self.me.upgrade() else {
            return QueueFuture::ready(Err(QueueError::ShutDown));
        };
        let (promise, reply) = QueueFuture::promised();
        self.runtime.spawn(async move {
            let mut pause = FIRST_PAUSE;
            while promise.is_awaited() {
                match me.result_of(id).await {
                    Ok(JobResult::Pending) => {}
                    answer => return promise.keep(answer.map_err(QueueError::from)),
                }
                sleep(pause).await;
                pause = (2 * pause).min(LONGEST_PAUSE);
            }
        });
        reply
    }
}

fn result(row: &Row) -> JobResult {
    if let Some(value) = row.get(0) {
        return JobResult::Ready(JobValue(value));
    }
    match (row.get(1), row.get::<_, Option<bool>>(2)) {
        (true, Some(true)) => {
            let last_error = row.get::<_, Option<String>>(3).unwrap_or_default();
            JobResult::Discarded { last_error }
        }
        (true, _) => JobResult::Pending,
        (false, _) => JobResult::Gone,
    }
}
