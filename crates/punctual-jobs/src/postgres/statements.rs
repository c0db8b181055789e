//! The statements of the desk, each of them one and complete in itself.
//!
//! They call the functions that the engine has in SQL for everybody. Its private tables are read, in four
//! places: which job has a key, how a job stands, which claims still stand, and for a fence. They are written
//! nowhere. What is the desk's own is in the schema `punctual`: a sequence of fences, the jobs that were
//! cancelled while they ran, and a row for each periodic job.
//!
//! Moments are the database's. A delay is added to `clock_timestamp()`, which is the time of the statement,
//! and not to `now()`, which is when the transaction began.

use std::time::{Duration, SystemTime};

/// Makes what is the desk's own. The lock is that of the gate's tables, which are in the same schema.
pub(super) const MIGRATION: &str = "\
select pg_advisory_xact_lock(hashtextextended('punctual.gate', 0));
create schema if not exists punctual;
create sequence if not exists punctual.fence;
create table if not exists punctual.cancelled (
  id bigint primary key,
  at timestamptz not null default clock_timestamp()
);
create table if not exists punctual.ticks (
  name text primary key check (length(name) between 1 and 200),
  tick timestamptz not null
);";

/// $1 name, $2 payload, $3 sequence, $4 moment, $5 delay in seconds, $6 attempts, $7 key, $8 how it replaces
pub(super) const SEND: &str = "\
select (graphile_worker.add_job(
  $1, $2::text::json, queue_name => $3,
  run_at => coalesce($4, clock_timestamp() + make_interval(secs => $5)),
  max_attempts => $6, job_key => $7, job_key_mode => $8)).id";

/// $1 key, $2 moment, $3 delay in seconds
pub(super) const RESCHEDULE: &str = "\
with found as (
  select id, locked_at is not null as runs from graphile_worker._private_jobs
   where key = $1 and (locked_at is not null or attempts < max_attempts)
), moved as (
  select (graphile_worker.reschedule_jobs(array[id],
    run_at => coalesce($2, clock_timestamp() + make_interval(secs => $3)))).id
    from found where not runs
)
select exists (select 1 from moved) from found";

/// $1 key
pub(super) const CANCEL: &str = "\
with found as (
  select key from graphile_worker._private_jobs
   where key = $1 and (locked_at is not null or attempts < max_attempts)
), removed as materialized (
  select graphile_worker.remove_job(key) as job from found
), noted as (
  insert into punctual.cancelled (id)
  select (job).id from removed where (job).locked_at is not null on conflict do nothing
)
select (job).id, (job).locked_at is not null from removed where (job).id is not null";

/// $1 id
pub(super) const STATE: &str = "\
select locked_at is not null, attempts::int4, max_attempts::int4, last_error,
       exists (select 1 from graphile_worker._private_job_retirements r where r.id = j.id)
  from graphile_worker._private_jobs j where id = $1";

/// $1 id, $2 worker, $3 when it was claimed. The row is locked while the number is drawn, so the order of the
/// numbers is that of the claims.
pub(super) const FENCE: &str = "\
with claim as (
  select id from graphile_worker._private_jobs
   where id = $1 and locked_by = $2 and locked_at = $3 for update
)
select nextval('punctual.fence') from claim";

/// $1 numbers, $2 ids, $3 workers, $4 when they were claimed
pub(super) const WATCH: &str = "\
select run.number, job.id is not null, cancelled.id is not null
  from unnest($1::int8[], $2::int8[], $3::text[], $4::timestamptz[]) as run(number, id, worker, at)
  left join graphile_worker._private_jobs job
    on job.id = run.id and job.locked_by = run.worker and job.locked_at = run.at
  left join punctual.cancelled cancelled on cancelled.id = run.id";

/// $1 names, $2 seconds
pub(super) const OVERDUE: &str = "\
select exists (
  select 1 from graphile_worker._private_jobs job
    join graphile_worker._private_tasks task on task.id = job.task_id
    left join graphile_worker._private_job_queues queue on queue.id = job.job_queue_id
   where task.identifier = any($1) and job.is_available
     and job.run_at < clock_timestamp() - make_interval(secs => $2)
     and (queue.id is null or queue.is_available))";

/// $1 worker, $2 id: frees a claim of ours, and does not count its attempt.
pub(super) const HAND_BACK: &str =
    "select graphile_worker._private_return_jobs($1, array[$2]::int8[])";

/// $1 id: removes a job that was cancelled or has lost its key while it ran, once its attempt has failed.
pub(super) const RETIRE: &str = "\
with retired as (
  select r.id from graphile_worker._private_job_retirements r
    join graphile_worker._private_jobs j on j.id = r.id and j.locked_at is null where r.id = $1
)
select (graphile_worker.complete_jobs(array[id])).id from retired";

/// $1 id, $2 attempts, $3 delay in seconds, $4 when the row was last changed before the attempt: another delay
/// than the engine's, unless somebody has moved or replaced the job since the attempt has failed.
pub(super) const BACK_OFF: &str = "\
select (graphile_worker.reschedule_jobs(array[id],
  run_at => clock_timestamp() + make_interval(secs => $3))).id
  from graphile_worker._private_jobs
 where id = $1 and attempts = $2 and attempts < max_attempts and locked_at is null
   and updated_at = $4";

/// Forgets what was cancelled and has ended.
pub(super) const FORGET: &str = "\
delete from punctual.cancelled c
 where not exists (select 1 from graphile_worker._private_jobs j where j.id = c.id and j.locked_at is not null)
   and at < clock_timestamp() - interval '1 minute'";

/// $1 name of the ledger's row, $2 tick, $3 name, $4 payload, $5 sequence, $6 attempts. The first column says
/// whether this call has taken the tick, the second how many seconds it was too early.
pub(super) const TICK: &str = "\
with now as materialized (
  select extract(epoch from $2 - clock_timestamp() - interval '50 milliseconds')::float8 as early
), taken as (
  insert into punctual.ticks as t (name, tick) select $1, $2 from now where early <= 0
  on conflict (name) do update set tick = excluded.tick where t.tick < excluded.tick
  returning 1
), sent as (
  select (graphile_worker.add_job($3, $4::text::json, queue_name => $5, max_attempts => $6)).id from taken
)
select exists (select 1 from sent), early from now";

/// The last moment that a job can have. The engine cannot read `infinity`.
const NEVER: Duration = Duration::from_secs(253_370_764_800); // 1 January 9999

/// Returns a moment as the statements take it: a time, or seconds from the time of the statement.
pub(super) fn moment(
    when: crate::When,
    clock: &punctual::Clock,
) -> (Option<SystemTime>, Option<f64>) {
    let last = SystemTime::UNIX_EPOCH + NEVER;
    let delay = match when {
        crate::When::Wall(time) => {
            return (Some(time.clamp(SystemTime::UNIX_EPOCH, last)), None);
        }
        crate::When::After(delay) => delay,
        crate::When::At(instant) => {
            let now = clock.now();
            // A sequence is ordered by moments, those that have passed included.
            let passed = now.saturating_duration_since(instant).min(NEVER / 8);
            if !passed.is_zero() {
                return (None, Some(-passed.as_secs_f64()));
            }
            instant.saturating_duration_since(now)
        }
    };
    if delay >= NEVER / 8 { (Some(last), None) } else { (None, Some(delay.as_secs_f64())) }
}
