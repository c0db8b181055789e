//! Storing jobs: one, or many by one statement, of which all are stored or none.
//!
//! It may be asked again: no job is stored if one with its key was claimed or has ended just now. Of several jobs none is stored then:
//! the statement counts what it answers, and divides by zero if a job is missing.
//!
//! One job goes over the connection of the verbs, by a plan that the server keeps. Many go over the one of the lists, because the other
//! verbs must not wait for them.

use std::collections::HashMap;

use tokio_postgres::{Row, Transaction, error::SqlState};

use super::{
    connection::{AskError, Boxed, Typed, ask_in, borrowed},
    machine::Machine,
    moment::moment,
    postgres_queue::PostgresQueue,
    statements::in_a_transaction,
    transaction::ask_in_savepoint,
};
use crate::{
    JobBuilder, JobHandle, JobId, QueueError, When,
    queue::{batch::Batch, engine::NewJob},
};

/// $1 names, $2 payloads, $3 ordering keys, $4 moments, $5 delays in seconds, $6 attempts, $7 keys, $8 priorities, $9 limit keys or
/// the empty text, $10 which are unique, $11 the keys of those that are, $12 the keys of the others, $13 the keys whose jobs keep their
/// moments if they have not been tried, $14 trace contexts. No two jobs have one key. A row for each job: its id, its key, and whether it is one that
/// was there. Those without a key have rising ids, in their order. If a job was not stored, it is to be asked again: a single one has
/// null for its id, and several end in a division by zero.
///
/// A job that runs loses its key to one that is not unique, and is retired: it is over when its attempt is. A unique one is skipped if
/// a job with its key waits or runs, also if that one is locked. So it waits for less: for a transaction that has inserted, moved or
/// removed a job with that key and is not committed.
pub(super) const STORE: &str = "\
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
  select id, key, false as was_skipped from sent
  union all
  select id, key, false from made
  union all
  select id, key, true from @schema.job j
   where key = any($11) and (claim is not null or attempts < max_attempts) and not exists (select from made where made.key = j.key)
), checked as materialized (
  select 1 / case when (select count(*) from answered) = cardinality($1) or cardinality($1) = 1 then 1 else 0 end as is_all, (select count(*) from told) + (select count(*) from coming) as told
)
select id, key, was_skipped, is_all, told from checked left join answered on true";

/// How often a transaction asks, at most, for jobs of which one was not stored.
const TRIES: usize = 10;

/// Returns the parameters of [`STORE`].
pub(super) fn columns(jobs: &[NewJob], clock: &punctual::Clock) -> Vec<Boxed> {
    fn each<T>(jobs: &[NewJob], value: impl Fn(&NewJob) -> T) -> Boxed
    where
        Vec<T>: Typed + Send + Sync + 'static,
    {
        Box::new(jobs.iter().map(value).collect::<Vec<_>>())
    }
    let keys = |is_meant: fn(&NewJob) -> bool| -> Boxed {
        let meant = jobs.iter().filter(|job| is_meant(job));
        Box::new(meant.filter_map(|job| job.key.clone()).collect::<Vec<_>>())
    };
    let (times, delays): (Vec<_>, Vec<_>) = jobs.iter().map(|job| moment(job.when, clock)).unzip();
    vec![
        each(jobs, |job| job.name),
        each(jobs, |job| job.payload.clone()),
        each(jobs, |job| job.ordering_key.clone()),
        Box::new(times),
        Box::new(delays),
        each(jobs, |job| i32::try_from(job.max_attempts).unwrap_or(i32::MAX)),
        each(jobs, |job| job.key.clone()),
        each(jobs, |job| job.priority.number()),
        each(jobs, |job| job.limit_key.clone().unwrap_or_default()),
        each(jobs, |job| job.key.is_some() && job.is_unique),
        keys(|job| job.is_unique),
        keys(|job| !job.is_unique),
        keys(|job| !job.is_unique && job.keeps_moment),
        each(jobs, |job| job.traceparent.clone()),
    ]
}

/// Returns the handles of jobs from the rows of [`STORE`]; `None` if a job is missing. A single one was not stored then, and the statement
/// is to be asked again. Several are stored, and a trigger of the program's own has changed the key of one: they must not be stored twice.
fn handles(jobs: &[NewJob], rows: &[Row]) -> Option<Vec<JobHandle>> {
    let handle =
        |job: &NewJob, id, was_skipped| JobHandle { id: JobId(id), name: job.name, was_skipped };
    if let ([job], [row]) = (jobs, rows) {
        return Some(vec![handle(job, row.get::<_, Option<i64>>(0)?, row.get(2))]);
    }
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
    let found = |job: &NewJob| {
        let (id, was_skipped) = match &job.key {
            Some(key) => of_keys.get(key.as_str()).copied(),
            None => others.next().map(|id| (id, false)),
        }?;
        Some(handle(job, id, was_skipped))
    };
    jobs.iter().map(found).collect()
}

/// Returns the handle of the only job.
fn handle(jobs: &[NewJob; 1], rows: &[Row]) -> Option<JobHandle> {
    handles(jobs, rows)?.pop()
}

fn is_left_out(error: &AskError) -> bool {
    error.is(&SqlState::DIVISION_BY_ZERO)
}

impl Machine {
    pub(super) async fn enqueue(&self, new_job: NewJob) -> Result<JobHandle, AskError> {
        let jobs = [new_job];
        let params = columns(&jobs, self.executor.clock());
        let ask = || async {
            let rows = self.verbs.ask_prepared(STORE, &borrowed(&params)).await?;
            handle(&jobs, &rows).ok_or_else(|| self.left_out())
        };
        let handle = self.again(ask).await?;
        self.wake_when_due(jobs[0].when);
        Ok(handle)
    }

    pub(super) async fn enqueue_batch(&self, batch: Batch) -> Result<Vec<JobHandle>, AskError> {
        let params = columns(&batch.jobs, self.executor.clock());
        let ask = || async {
            let rows = self.looks.ask(STORE, &borrowed(&params)).await;
            let rows =
                rows.map_err(|error| if is_left_out(&error) { self.left_out() } else { error })?;
            match handles(&batch.jobs, &rows) {
                None if batch.jobs.len() == 1 => Err(self.left_out()),
                stored => Ok(stored),
            }
        };
        let stored = self.again(ask).await?;
        self.wake_for(&batch);
        Ok(batch.handles(&stored.ok_or_else(|| self.left_out())?))
    }

    fn left_out(&self) -> AskError {
        AskError::LeftOut(self.settings.request_timeout)
    }

    /// Wakes the worker when jobs of the batch are due: once for all that are due at once.
    fn wake_for(&self, batch: &Batch) {
        let mut delays: Vec<_> = batch.jobs.iter().map(|job| self.delay_of(job.when)).collect();
        delays.sort_unstable();
        delays.dedup();
        delays.into_iter().for_each(|delay| self.wake_when_due(When::After(delay)));
    }
}

/// Stores one job in a transaction.
pub(super) async fn store_in(
    transaction: &Transaction<'_>,
    machine: &Machine,
    new_job: NewJob,
) -> Result<JobHandle, AskError> {
    let jobs = [new_job];
    let params = columns(&jobs, machine.executor.clock());
    let statement = machine.address.schema.name_in(&in_a_transaction(STORE));
    for _ in 0..TRIES {
        let rows = ask_in(transaction, &statement, &borrowed(&params)).await?;
        if let Some(handle) = handle(&jobs, &rows) {
            return Ok(handle);
        }
    }
    Err(machine.left_out())
}

impl PostgresQueue {
    /// The same as [`enqueue_all`](crate::JobQueue::enqueue_all) in a transaction of the program's own, as
    /// [`enqueue_in`](Self::enqueue_in) is for one job. It takes a savepoint, so that the transaction goes on if a job with one of the
    /// keys has been claimed meanwhile and the statement is asked again.
    ///
    /// # Errors
    ///
    /// As of [`enqueue_in`](Self::enqueue_in).
    pub async fn enqueue_all_in<'a>(
        &'a self,
        transaction: &Transaction<'_>,
        jobs: impl IntoIterator<Item = JobBuilder<'a>>,
    ) -> Result<Vec<JobHandle>, QueueError> {
        let machine = &self.machine;
        let batch = Batch::of(jobs.into_iter().map(JobBuilder::checked))?;
        if batch.jobs.is_empty() {
            return Ok(Vec::new());
        }
        let params = columns(&batch.jobs, machine.executor.clock());
        let statement = machine.address.schema.name_in(&in_a_transaction(STORE));
        for _ in 0..TRIES {
            let left_some = SqlState::DIVISION_BY_ZERO;
            let params = borrowed(&params);
            let rows = ask_in_savepoint(transaction, &statement, &params, left_some).await?;
            match rows.map(|rows| handles(&batch.jobs, &rows)) {
                Some(Some(stored)) => return Ok(batch.handles(&stored)),
                Some(None) if batch.jobs.len() > 1 => break,
                _ => {}
            }
        }
        Err(machine.left_out().into())
    }
}
