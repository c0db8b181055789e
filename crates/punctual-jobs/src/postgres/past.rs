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
    refused::Picks,
    results::PRUNE_RESULTS,
};
use crate::{HistoryFilter, JobId, JobOutcome, PastRun, queue::history::PAGE};

/// $1 job, $2 kind, $3 schedule, $4 run before which, $5 how many.
const HISTORY: &str = include_str!("sql/history.sql");

/// $1 for how many seconds runs are kept, $2 how many, $3 which not. One row: how many are gone.
const PRUNE: Picks = (include_str!("sql/prune.sql"), "a run that is pruned,");

const PRUNED_AT_MOST: usize = 1000;

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
    async fn prune(&self, picks: Picks, params: &[Param<'_>]) {
        let is_full = |rows: &[Row]| {
            rows.first().is_some_and(|row| row.get::<_, i64>(0) == PRUNED_AT_MOST as i64)
        };
        loop {
            match self.ask_in_parts(&self.ticking, picks, (params, &[]), PRUNED_AT_MOST).await {
                Ok((rows, is_all)) if !is_all || is_full(&rows) => {}
                Err(error) if error.is_refusal() => return self.report_failure(&error),
                _ => return,
            }
        }
    }

    pub(super) async fn past_runs(&self, filter: HistoryFilter) -> Result<Vec<PastRun>, AskError> {
        let job = filter.job.map(|id| id.0);
        let limit = i64::try_from(filter.limit.unwrap_or(PAGE)).unwrap_or(i64::MAX);
        let params: [Param<'_>; 5] = [&job, &filter.kind, &filter.schedule, &filter.before, &limit];
        Ok(self.looks.ask(HISTORY, &params).await?.iter().map(past_run).collect())
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
