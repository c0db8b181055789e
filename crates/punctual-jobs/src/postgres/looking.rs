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

use super::{connection::AskError, machine::Machine, statements::not_paused};
use crate::{
    JobChange, JobFilter, JobId, JobStage, JobStatus, JobWait, KindCounts, Priority,
    job::payload::Payload,
    queue::{change::BY_HAND, history::PAGE},
};

/// Whether all places of a limit are taken: `$most` of them, or all up to the last that is.
macro_rules! is_full {
    ($most:literal, $slot:literal, $claim:literal, $($which:literal)?) => {
        concat!(
            "(select count(*) >= coalesce(", $most, ", max(o.", $slot, ") + 1) from @schema.job o
       where o.name = job.name and o.claim = o.", $claim, $($which,)? ")"
        )
    };
}

/// Whether a limit for a window of time has no token, by the buckets that there are.
macro_rules! is_dry {
    ($which:literal) => {
        concat!(
            "exists (select from @schema.job_bucket b
       where b.name = job.name and ",
            $which,
            " and b.tat > clock_timestamp() + (b.burst - 1) * b.gap_us * interval '1 microsecond')"
        )
    };
}

/// $1 stage, $2 kind, $3 key, $4 schedule, $5 ordering key, $6 id after which, $7 how many, $8 limit key, $9 whether with payloads,
/// $10 kinds with limits, $11 how many of each may run, $12 how many of each limit key, $13 whether only those that
/// wait for the end of a pause.
const LIST: &str = concat!("\
select id, name, case when $9 then payload end, key, ordering_key, schedule, tick,
  case when claim is not null then 'running' when attempts < max_attempts then 'waiting' else 'discarded' end,
  run_at, attempts, max_attempts, case when claim is not null then split_part(worker, ' ', 1) end, claimed_at, last_error, priority,
  nullif(limit_key, ''),
  case when claim is not null or attempts >= max_attempts or run_at > clock_timestamp() then null
    when ordering_key is not null and exists (
      select from @schema.job o where o.ordering_key = job.ordering_key and (o.claim is not null
         or o.claim is null and o.attempts < o.max_attempts and (o.run_at, o.id) < (job.run_at, job.id))) then 'ordering key'
    when ", is_full!("of_key", "key_slot", "key_claim", " and o.limit_key = job.limit_key"), "
      or ", is_dry!("b.is_of_key and b.limit_key = job.limit_key"), " then 'limit of key'
    when ", is_full!("of_kind", "slot", "slot_claim",), "
      or ", is_dry!("not b.is_of_key"), " then 'limit' end,
  claim is null and attempts < max_attempts and not ", not_paused!("job.name"), "
  from (select * from @schema.job
 where id > $6 and ($1 is null
     or $1 = 'running' and claim is not null
     or $1 = 'waiting' and claim is null and attempts < max_attempts
     or $1 = 'discarded' and claim is null and attempts >= max_attempts)
   and ($2 is null or name = $2) and ($3 is null or key = $3)
   and ($4 is null or schedule = $4) and ($5 is null or ordering_key = $5)
   and ($8 is null or limit_key = $8 and limit_key <> '')
   and (not $13 or claim is null and attempts < max_attempts and not ", not_paused!("job.name"), ")
 order by id limit $7) job
  left join unnest($10::text[], $11::int4[], $12::int4[]) as limits(kind, of_kind, of_key) on kind = name
 order by id");

/// A row for each kind: how many of its jobs wait, are due, run and are discarded, and for how many seconds the first one
/// has been due; and whether the kind is paused, and until when, if that ends by itself.
const COUNTS: &str = "\
select coalesce(job.name, pause.name), coalesce(waiting, 0), coalesce(due, 0), coalesce(running, 0), coalesce(discarded, 0), latency,
  pause.name is not null, nullif(pause.until, 'infinity')
  from (
select name, count(*) filter (where stage = 'w') as waiting, count(*) filter (where stage = 'w' and run_at <= time) as due,
  count(*) filter (where stage = 'r') as running, count(*) filter (where stage = 'd') as discarded,
  extract(epoch from max(time - run_at) filter (where stage = 'w' and run_at <= time and isfinite(run_at)))::float8 as latency
  from (select name, run_at, case when claim is not null then 'r' when attempts < max_attempts then 'w' else 'd' end as stage
    from @schema.job) job, (select clock_timestamp() as time offset 0) now
 group by name) job
  full join (select * from @schema.job_pause where until > clock_timestamp()) pause using (name)
 order by coalesce(job.name, pause.name) collate \"C\"";

/// $1 id. No row if there is no such job. One row: whether it runs, and whether another job has its key. One that was
/// discarded is to be told no more: it is not discarded any longer.
pub(super) const RETRY: &str = "\
with found as (
  select id, key, claim is not null as runs, attempts >= max_attempts as is_discarded
    from @schema.job where id = $1 for update nowait
), judged as materialized (
  select id, runs, is_discarded and not runs and exists (
    select from @schema.job o where o.key = found.key and o.id <> found.id
       and (o.claim is not null or o.attempts < o.max_attempts)) as is_taken from found
), moved as (
  update @schema.job j set run_at = least(j.run_at, clock_timestamp()), due = true, untold = false, worker = null,
    cancelled = false, max_attempts = greatest(j.max_attempts, j.attempts + 1)
    from judged where j.id = judged.id and not runs and not is_taken returning 1
), told as (
  select @notify('') from moved
)
select runs, is_taken, (select count(*) from told) from judged";

/// $1 id, $2 the error of a job without one. No row if there is no such job. One row: whether it runs.
pub(super) const DISCARD: &str = "\
with found as (
  select id, claim is not null as runs, attempts < max_attempts as is_left
    from @schema.job where id = $1 for update nowait
), discarded as (
  update @schema.job j set max_attempts = j.attempts, last_error = coalesce(last_error, $2), cancelled = runs
    from found where j.id = found.id and (runs or is_left) returning ordering_key
), told as (
  select @notify('') from discarded where ordering_key is not null
)
select runs, (select count(*) from told) from found";

/// $1 id. No row if there is no such job. One row: whether it runs.
pub(super) const REMOVE: &str = "\
with found as (
  select id, claim is not null as runs from @schema.job where id = $1 for update nowait
), removed as (
  delete from @schema.job j using found where j.id = found.id and not runs returning ordering_key
), told as (
  select @notify('') from removed where ordering_key is not null
)
select runs, (select count(*) from told) from found";

impl Machine {
    pub(super) async fn jobs_of(&self, filter: JobFilter) -> Result<Vec<JobStatus>, AskError> {
        let stage = filter.stage.map(JobStage::word);
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
    match rows.first() {
        None => JobChange::Unknown,
        Some(row) if row.get(0) => JobChange::Signalled,
        Some(_) => JobChange::Done,
    }
}

/// Returns what the rows of [`REMOVE`] say.
pub(super) fn removed(rows: &[Row]) -> JobChange {
    match rows.first() {
        None => JobChange::Unknown,
        Some(row) if row.get(0) => JobChange::Running,
        Some(_) => JobChange::Done,
    }
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
