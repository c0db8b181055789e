//! The history in the tables: how it is read, and how what is old goes.
//!
//! The statements that end a claim write it ([`END_WITH_HISTORY`](super::statements::END_WITH_HISTORY),
//! [`SWEEP_WITH_HISTORY`](super::statements::SWEEP_WITH_HISTORY)). Each machine that keeps a history looks from time to time
//! whether there are runs that ended longer ago than it keeps them, by the server's clock. It takes the oldest ones off, a
//! thousand at a time, under an advisory lock that it only tries: one machine does it, and none waits.
//!
//! The oldest runs are those with the smallest numbers, so no index on the time is needed. A number is drawn a moment before its
//! statement commits; what is out of order by that goes with the next look.

use std::{sync::Arc, time::Duration};

use tokio::time::sleep;
use tokio_postgres::Row;

use super::{
    connection::{AskError, Param},
    machine::Machine,
    results::PRUNE_RESULTS,
};
use crate::{HistoryFilter, JobId, JobOutcome, PastRun, queue::history::PAGE};

/// $1 job, $2 kind, $3 schedule, $4 run before which, $5 how many.
const HISTORY: &str = "\
select id, job, name, key, schedule, tick, attempt, machine, began, ended, outcome, error from @schema.job_run
 where ($1 is null or job = $1) and ($2 is null or name = $2) and ($3 is null or schedule = $3)
   and ($4 is null or id < $4)
 order by id desc limit $5";

/// $1 for how many seconds runs are kept. One row: how many are gone.
const PRUNE: &str = include_str!("sql/prune.sql");

const PRUNED_AT_MOST: i64 = 1000;

/// How often a machine looks for old runs: twenty times while a run is kept, within these bounds.
const LOOKS: u32 = 20;
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(60);

/// Takes old runs and old results off until it is aborted, if this machine keeps a history or handles a kind with results.
pub(super) async fn prune_on(machine: Arc<Machine>) {
    let keep = machine.settings.history;
    let has_results = machine.definitions.kinds.values().any(|kind| kind.keeps_results);
    if keep.is_none() && !has_results {
        return;
    }
    let pause = keep.map_or(LONGEST, |keep| (keep / LOOKS).clamp(SHORTEST, LONGEST));
    loop {
        if let Some(keep) = keep {
            // A century: what is longer is no interval of the server's.
            machine.prune(PRUNE, &[&keep.as_secs_f64().min(3.2e9)]).await;
        }
        if has_results {
            machine.prune(PRUNE_RESULTS, &[]).await;
        }
        sleep(pause).await;
    }
}

impl Machine {
    /// Has rows removed until there are few. What fails is made up for by the next look.
    async fn prune(&self, statement: &str, params: &[Param<'_>]) {
        let is_to_go_on =
            |rows: Vec<Row>| rows.first().is_some_and(|row| row.get::<_, i64>(0) >= PRUNED_AT_MOST);
        while self.ticking.ask(statement, params).await.is_ok_and(is_to_go_on) {}
    }

    pub(super) async fn past_runs(&self, filter: HistoryFilter) -> Result<Vec<PastRun>, AskError> {
        let job = filter.job.map(|id| id.0);
        let limit = i64::try_from(filter.limit.unwrap_or(PAGE)).unwrap_or(i64::MAX);
        Ok(self
            .looks
            .ask(HISTORY, &[&job, &filter.kind, &filter.schedule, &filter.before, &limit])
            .await?
            .iter()
            .map(past_run)
            .collect())
    }
}

fn past_run(row: &Row) -> PastRun {
    PastRun {
        id: row.get(0),
        job: JobId(row.get(1)),
        kind: row.get(2),
        key: row.get(3),
        schedule: row.get(4),
        tick: row.get(5),
        attempt: u32::try_from(row.get::<_, i32>(6)).unwrap_or(0),
        machine: row.get(7),
        began: row.get(8),
        ended: row.get(9),
        outcome: JobOutcome::of_word(row.get(10)),
        error: row.get(11),
    }
}
