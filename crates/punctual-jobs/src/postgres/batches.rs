//! Many jobs by one statement: all of them are stored, or none.
//!
//! The statement does for each row what [`SEND`](super::statements::SEND) and [`SEND_UNIQUE`](super::statements::SEND_UNIQUE) do for
//! one. Where those answer with no row, because a job with the key was claimed or has ended just now, this one fails: it counts
//! what it answers, and divides by zero if a job is missing. So nothing is stored, and it is asked again.
//!
//! It goes over the connection of the lists, because the other verbs must not wait for it.

use std::collections::HashMap;

use tokio::time::{Instant, sleep};
use tokio_postgres::{Row, Transaction, error::SqlState};

use super::{
    connection::{AskError, Param, ask_in},
    engine::PostgresEngine,
    moment::moment,
    statements::in_a_transaction,
    transaction::engine_of,
    verbs::{FIRST_PAUSE, LONGEST_PAUSE},
};
use crate::{
    JobBuilder, JobHandle, JobId, JobQueue, QueueError, When, job::payload::Payload,
    queue::batch::Batch,
};

/// $1 names, $2 payloads, $3 ordering keys, $4 moments, $5 delays in seconds, $6 attempts, $7 keys, $8 priorities, $9 limit keys or
/// the empty text, $10 which are unique, $11 the keys of those that are, $12 the keys of the others, $13 the keys whose jobs keep their
/// moments if they have not been tried, $14 trace contexts. No two jobs have one key. A row for each job: its id, its key, and whether it is one that
/// was there. Those without a key have rising ids, in their order. Fails with a division by zero if a job was not stored: to be asked
/// again.
const SEND_ALL: &str = "\
with moment as materialized (
  select clock_timestamp() as time
), asked as materialized (
  select asked.*, coalesce(at, time + make_interval(secs => delay)) as run_at, time
    from moment, unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::float8[], $6::int4[], $7::text[], $8::int2[],
      $9::text[], $10::bool[], $14::text[]) with ordinality
      as asked(name, payload, ordering_key, at, delay, max_attempts, key, priority, limit_key, is_unique, traceparent, place)
), runs as (
  select id from @schema.job where key = any($12) and claim is not null for update
), retired as (
  update @schema.job j set key = null, retired = true from runs where j.id = runs.id returning 1
), sent as (
  insert into @schema.job as j (name, payload, ordering_key, run_at, due, max_attempts, key, priority, limit_key, traceparent)
  select name, payload, ordering_key, run_at, run_at <= time, max_attempts, key, priority, limit_key, traceparent
    from asked, (select count(*) from retired) before_the_keys_are_free
   where not is_unique order by place
  on conflict (key) where key is not null and (claim is not null or attempts < max_attempts) do update set
    name = excluded.name, payload = excluded.payload, ordering_key = excluded.ordering_key,
    run_at = case when excluded.key = any($13) and j.attempts = 0 then j.run_at else excluded.run_at end,
    due = case when excluded.key = any($13) and j.attempts = 0 then j.due else excluded.due end,
    attempts = 0, max_attempts = excluded.max_attempts, last_error = null, priority = excluded.priority,
    limit_key = excluded.limit_key, traceparent = excluded.traceparent
   where j.claim is null
  returning id, key, due, run_at
), made as (
  insert into @schema.job (name, payload, ordering_key, run_at, due, max_attempts, key, priority, limit_key, traceparent)
  select name, payload, ordering_key, run_at, run_at <= time, max_attempts, key, priority, limit_key, traceparent
    from asked where is_unique order by place
  on conflict (key) where key is not null and (claim is not null or attempts < max_attempts) do nothing
  returning id, key, due, run_at
), stored as materialized (
  select due, run_at from sent union all select due, run_at from made
), told as (
  select @notify('') from stored where due limit 1
), coming as (
  select @notify('at ' || (extract(epoch from min(run_at)) * 1000000)::int8)
    from stored where not due and run_at < clock_timestamp() + interval '1 minute' having count(*) > 0
), answered as materialized (
  select id, key, false as is_skipped from sent
  union all
  select id, key, false from made
  union all
  select id, key, true from @schema.job j
   where key = any($11) and (claim is not null or attempts < max_attempts) and not exists (select from made where made.key = j.key)
), checked as materialized (
  select 1 / case when (select count(*) from answered) = cardinality($1) then 1 else 0 end as is_all, (select count(*) from told) + (select count(*) from coming) as told
)
select id, key, is_skipped, is_all, told from checked left join answered on true";

/// How often a transaction asks, at most, for a batch of which a job was not stored.
const TRIES: usize = 10;

/// A batch as [`SEND_ALL`] takes it.
struct Columns {
    names: Vec<&'static str>,
    payloads: Vec<Payload>,
    ordering_keys: Vec<Option<String>>,
    times: Vec<Option<std::time::SystemTime>>,
    delays: Vec<Option<f64>>,
    max_attempts: Vec<i32>,
    keys: Vec<Option<String>>,
    priorities: Vec<i16>,
    limit_keys: Vec<String>,
    are_unique: Vec<bool>,
    unique: Vec<String>,
    replacing: Vec<String>,
    keeping: Vec<String>,
    traceparents: Vec<Option<String>>,
}

impl Columns {
    fn of(batch: &Batch, clock: &punctual::Clock) -> Self {
        let jobs = &batch.jobs;
        let (times, delays) = jobs.iter().map(|job| moment(job.when, clock)).unzip();
        let attempts = |attempts| i32::try_from(attempts).unwrap_or(i32::MAX);
        let with_keys = |are_unique| {
            jobs.iter().filter(move |job| job.key.is_some() && job.is_unique == are_unique)
        };
        let keeping = with_keys(false).filter(|job| job.keeps_moment);
        Self {
            names: jobs.iter().map(|job| job.name).collect(),
            payloads: jobs.iter().map(|job| job.payload.clone()).collect(),
            ordering_keys: jobs.iter().map(|job| job.ordering_key.clone()).collect(),
            times,
            delays,
            max_attempts: jobs.iter().map(|job| attempts(job.max_attempts)).collect(),
            keys: jobs.iter().map(|job| job.key.clone()).collect(),
            priorities: jobs.iter().map(|job| job.priority.number()).collect(),
            limit_keys: jobs.iter().map(|job| job.limit_key.clone().unwrap_or_default()).collect(),
            are_unique: jobs.iter().map(|job| job.key.is_some() && job.is_unique).collect(),
            unique: with_keys(true).filter_map(|job| job.key.clone()).collect(),
            replacing: with_keys(false).filter_map(|job| job.key.clone()).collect(),
            keeping: keeping.filter_map(|job| job.key.clone()).collect(),
            traceparents: jobs.iter().map(|job| job.traceparent.clone()).collect(),
        }
    }

    fn params(&self) -> [Param<'_>; 14] {
        [
            &self.names,
            &self.payloads,
            &self.ordering_keys,
            &self.times,
            &self.delays,
            &self.max_attempts,
            &self.keys,
            &self.priorities,
            &self.limit_keys,
            &self.are_unique,
            &self.unique,
            &self.replacing,
            &self.keeping,
            &self.traceparents,
        ]
    }
}

/// Returns the handles of a batch from the rows of [`SEND_ALL`]; `None` if a key has no row, which a trigger of the program's own may have
/// changed.
fn handles(batch: &Batch, rows: &[Row]) -> Option<Vec<JobHandle>> {
    let mut of_keys = HashMap::<&str, (i64, bool)>::new();
    let mut others = Vec::<i64>::new();
    for row in rows {
        match row.get(1) {
            Some(key) => drop(of_keys.insert(key, (row.get(0), row.get(2)))),
            None => others.push(row.get(0)),
        }
    }
    others.sort_unstable();
    let mut others = others.into_iter();
    let handle = |job: &crate::queue::engine::NewJob| {
        let stored = match &job.key {
            Some(key) => of_keys.get(key.as_str()).copied(),
            None => others.next().map(|id| (id, false)),
        };
        let (id, is_skipped) = stored?;
        Some(JobHandle { id: JobId(id), name: job.name, is_skipped })
    };
    let stored = batch.jobs.iter().map(handle).collect::<Option<Vec<_>>>()?;
    Some(batch.handles(&stored))
}

fn left_out() -> QueueError {
    QueueError::Server(
        "a job of the batch is not stored as it was sent: look for a trigger of the program's own that leaves it out or changes its key".into(),
    )
}

fn is_left_out(error: &AskError) -> bool {
    error.is(&SqlState::DIVISION_BY_ZERO)
}

impl PostgresEngine {
    /// Asks until all jobs are stored, with pauses that grow. Asks no more after the limit.
    pub(super) async fn enqueue_batch(&self, batch: Batch) -> Result<Vec<JobHandle>, AskError> {
        let columns = Columns::of(&batch, self.executor.clock());
        let limit = self.settings.request_timeout;
        let (begun, mut pause) = (Instant::now(), FIRST_PAUSE);
        let rows = loop {
            let why = match self.looks.ask(SEND_ALL, &columns.params()).await {
                Ok(rows) => break rows,
                Err(error) if is_left_out(&error) => AskError::LeftOut(limit),
                Err(error) if error.is_lock() => error,
                Err(error) => return Err(error),
            };
            if begun.elapsed() + pause > limit {
                return Err(why);
            }
            sleep(pause).await;
            pause = (2 * pause).min(LONGEST_PAUSE);
        };
        self.wake_for(&batch);
        handles(&batch, &rows).ok_or(AskError::LeftOut(limit))
    }

    /// Wakes the worker when jobs of the batch are due: once for all that are due at once.
    fn wake_for(&self, batch: &Batch) {
        let mut delays: Vec<_> = batch.jobs.iter().map(|job| self.delay_of(job.when)).collect();
        delays.sort_unstable();
        delays.dedup();
        delays.into_iter().for_each(|delay| self.wake_when_due(When::After(delay)));
    }
}

impl JobQueue {
    /// The same as [`enqueue_all`](Self::enqueue_all) in a transaction of the program's own, as
    /// [`enqueue_in`](JobBuilder::enqueue_in) is for one job. It takes a savepoint, so that the transaction goes on if a job with one of the
    /// keys has been claimed meanwhile and the statement is asked again.
    ///
    /// # Errors
    ///
    /// As of [`enqueue_in`](JobBuilder::enqueue_in).
    pub async fn enqueue_all_in<'a>(
        &'a self,
        transaction: &Transaction<'_>,
        jobs: impl IntoIterator<Item = JobBuilder<'a>>,
    ) -> Result<Vec<JobHandle>, QueueError> {
        let engine = engine_of(self)?;
        let server = |error: tokio_postgres::Error| QueueError::Server(error.into());
        let batch = Batch::of(jobs.into_iter().map(JobBuilder::checked))?;
        if batch.jobs.is_empty() {
            return Ok(Vec::new());
        }
        let columns = Columns::of(&batch, engine.executor.clock());
        let statement = engine.schema().name_in(&in_a_transaction(SEND_ALL));
        for _ in 0..TRIES {
            transaction.batch_execute("savepoint punctual_all").await.map_err(server)?;
            match ask_in(transaction, &statement, &columns.params()).await {
                Ok(rows) => {
                    let done = transaction.batch_execute("release savepoint punctual_all").await;
                    done.map_err(server)?;
                    return handles(&batch, &rows).ok_or_else(left_out);
                }
                Err(error) if is_left_out(&error) => {
                    let undo = "rollback to savepoint punctual_all; release savepoint punctual_all";
                    transaction.batch_execute(undo).await.map_err(server)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(left_out())
    }
}
