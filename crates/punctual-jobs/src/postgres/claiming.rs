//! The statements that claim jobs of kinds without a limit: without any key, with a limit key and with an ordering key.
//!
//! A kind without a limit takes no notice of limit keys. Its jobs that have one are claimed by a statement of their own, which is
//! asked only if there are some, because they must not lie in the way of those that look for jobs without one
//! ([`limiting`](super::limiting)).
//!
//! # Rows that have ended
//!
//! While any transaction of the server has an old snapshot, the server keeps each row that has ended since, and its place in the
//! index. A claim that began at the beginning of the index would walk over all of them. So it begins behind the last job that it
//! has claimed, and only now and then at the beginning ([`frontier`](super::frontier)).

/// The due jobs without an ordering key and with these limit keys, by priority and moment.
macro_rules! claim {
    ($which:literal) => {
        concat!(
            "with picked as materialized (
  select job.id, job.run_at, kind.place from (
    select name, priority, place, id as last_id, least(now() - interval '1 second', greatest(
        coalesce(timestamptz '2000-01-01 00:00:00+00' + micros * interval '1 microsecond', '-infinity'),
        now() - make_interval(secs => age))) as last
      from unnest($1::text[], $4::int4[], $5::int8[], $6::int8[], $7::float8[]) with ordinality
        as kind(name, priority, micros, id, age, place)
     where not exists (select from @schema.job_pause pause where pause.name = kind.name and pause.until > clock_timestamp())
     order by place
  ) kind cross join lateral (
    select id, run_at from @schema.job
     where ",
            $which,
            " and ordering_key is null and claim is null and attempts < max_attempts
       and name = kind.name and priority = kind.priority and run_at <= now() and (run_at, id) > (kind.last, kind.last_id)
       and id <> all($8)
     order by run_at, id limit $3 for update skip locked) job
   where exists (select 1 from @schema.job_worker where id = $2 and until > clock_timestamp())
   limit $3
)
update @schema.job j set
  claim = nextval('@schema.job_claim'), worker = $2, claimed_at = clock_timestamp(), attempts = attempts + 1
  from picked where j.id = picked.id
returning j.id, claim, name, payload, attempts, max_attempts, key, ordering_key, tick, traceparent, place,
  case when isfinite(picked.run_at)
    then round(extract(epoch from picked.run_at - timestamptz '2000-01-01 00:00:00+00') * 1000000)::int8 end"
        )
    };
}

/// $1 names, $2 worker, $3 how many, $4 priorities, $5 to $7 behind which jobs, $8 which not: claims jobs without a key, of the first name and
/// priority first. A worker whose lease is over gets none: the next sweep would take them for those of a dead process.
///
/// It looks at no job before the one with the moment $5 (in microseconds since the year 2000, null for none) and the id $6, and
/// at none that was due $7 seconds ago or before (null for none); but always at what has become due in the last second. A row
/// says by its `place` to which name and priority it belongs, and which moment it had.
///
/// Each priority of each name is one look at the index, so jobs of a high priority that are not due cost nothing.
pub(crate) const CLAIM: &str = claim!("limit_key = ''");

/// The same for jobs with a limit key.
pub(crate) const CLAIM_KEYED: &str = claim!("limit_key <> ''");

/// $1 names, $2 worker, $3 how many, $4 after which ordering key, $5 which jobs not: claims the first job of each that follows.
///
/// Fails with a violation of `job_turn` if a job of the same key was enqueued for an earlier moment, and claimed, after
/// this statement has begun: to be asked again. A job that another statement has claimed meanwhile is passed over:
/// its row is locked, or has a claim when it is looked at under the lock.
pub(crate) const CLAIM_FIRST: &str = include_str!("sql/claim_first.sql");
