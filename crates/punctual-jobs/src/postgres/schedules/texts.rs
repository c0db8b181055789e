//! The statements about schedules, each of them one and complete in itself.
//!
//! A row has a *revision*, which each statement that changes the row draws anew, from the sequence of claims. A machine
//! reads rows without a lock ([`DUE`]), decides, and writes what it has decided if the revision is still the one that it has
//! read ([`SETTLE`]). So of two machines that have read the same row one settles it, and a machine that was frozen in between
//! changes nothing. The job of a tick is enqueued in the same statement: no process can die between the two.
//!
//! # No statement waits for a row
//!
//! [`SETTLE`] passes over a row that another transaction has locked. The verbs lock with `nowait`, and are asked again until
//! their limit; [`PUT`] and [`DECLARE`] may wait for a row of that name as long as the lock time-out says. In a
//! transaction of the program's own a verb waits, because an error would end the transaction; the row stays locked until that
//! ends, and its ticks wait.
//!
//! # Room
//!
//! How many jobs of the schedule may be enqueued is counted in the statement, in the state of the database when it began. It
//! locks the row only if its revision is still the one of that state, and what enqueues jobs of a schedule draws a new one.
//! So there may be fewer jobs by then and never more. A rule that changes jobs, `replace` and `queue`, locks them first, and
//! `replace` does nothing at all if another transaction has locked one of them.
//!
//! [`SETTLE`] and [`RUN_NOW`] share `sql/enqueueing.sql`: once the row is `held`, the jobs that have not ended, the room, and the jobs
//! for as many of the `wanted` ticks as there is room for. A job that waits and stands for a tick, by `queue`, becomes what the
//! schedule says now, and has an attempt left.

/// What a definition is made of, in the order of its parameters, from $2 on.
macro_rules! definition {
    () => {
        "expression, zone, missing, repeated, period_us, begins, ends, jitter_us, kind, payload, max_attempts, \
         catch_up, catch_up_us, overlap, overlap_most, priority, ordering_key, limit_key"
    };
}

/// A row becomes what is inserted. Its ticks count from now on if they are others than before, and from no moment before the last one
/// that is settled: the server's clock may have been set back since.
macro_rules! becomes {
    () => {
        "expression = excluded.expression, zone = excluded.zone, missing = excluded.missing, \
         repeated = excluded.repeated, period_us = excluded.period_us, begins = excluded.begins, \
         ends = excluded.ends, jitter_us = excluded.jitter_us, kind = excluded.kind, payload = excluded.payload, \
         max_attempts = excluded.max_attempts, catch_up = excluded.catch_up, catch_up_us = excluded.catch_up_us, \
         overlap = excluded.overlap, overlap_most = excluded.overlap_most, removed = false, \
         priority = excluded.priority, ordering_key = excluded.ordering_key, limit_key = excluded.limit_key, \
         tick = case when s.removed or (s.expression, s.zone, s.missing, s.repeated, s.period_us, s.begins, s.ends) \
             is distinct from (excluded.expression, excluded.zone, excluded.missing, excluded.repeated, \
             excluded.period_us, excluded.begins, excluded.ends) then greatest(s.tick, clock_timestamp()) else s.tick end, \
         next_at = case when not s.paused then clock_timestamp() end, revision = excluded.revision"
    };
}

/// $1 name, and the definition: the row says whether there was one of that name that was not removed.
pub(crate) const PUT: &str = concat!(
    "with was as (select from @schema.job_schedule where name = $1 and not removed), \
     put as (insert into @schema.job_schedule as s (name, ",
    definition!(),
    ", revision) \
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, nextval('@schema.job_claim')) \
     on conflict (name) do update set ",
    becomes!(),
    ", edited = true returning 1) \
     select exists (select from was), @notify('schedule') from put"
);

/// The same, with $20 a text that says what the program declares, and $21 whether that wins over what a person has
/// changed. The row says what became of it: `declared`, `unchanged`, or `kept` as the person has left it.
/// A row that stays as it is is not locked: a conflict would lock it, and wait for it, before it compares.
pub(crate) const DECLARE: &str = concat!(
    "with put as (insert into @schema.job_schedule as s (name, ",
    definition!(),
    ", code, declared, revision) \
     select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, true, \
       nextval('@schema.job_claim') \
      where not exists (select from @schema.job_schedule where name = $1 \
        and (not $21 and (edited or not declared) or declared and not edited and code = $20)) \
     on conflict (name) do update set ",
    becomes!(),
    ", code = excluded.code, declared = true, edited = false \
     where ($21 or s.declared and not s.edited) \
       and (s.code is distinct from excluded.code or s.edited or not s.declared) returning name), \
     told as (select @notify('schedule') from put) \
     select 'declared', (select count(*) from told) from put \
     union all \
     select case when edited or not declared then 'kept' else 'unchanged' end, 0 from @schema.job_schedule \
      where name = $1 and not exists (select from put)"
);

/// $1 name, $2 whether it is to be paused. A schedule that goes on has missed nothing before, and repeats nothing.
pub(crate) const PAUSE: &str = include_str!("sql/pause.sql");

/// $1 name. Of one that a program has declared the row stays, so that the program does not bring it back.
/// A pause ends with it: a schedule that is put, or declared, in its place is another one.
pub(crate) const REMOVE: &str = include_str!("sql/remove.sql");

/// What says when a schedule ticks, and how its row stands.
macro_rules! state {
    () => {
        "name, revision, expression, zone, missing, repeated, period_us, begins, ends, jitter_us, catch_up, \
         catch_up_us, overlap, overlap_most, tick"
    };
}

/// Those of which this is true. A job that waits or runs has not ended.
macro_rules! listed {
    ($condition:literal) => {
        concat!(
    "select clock_timestamp(), ",
    state!(),
    ", kind, payload, paused, declared, edited, last_tick, last_job, last_at, enqueued, made_up, missed, skipped, \
     (select count(*) from @schema.job j where j.schedule = s.name and (claim is not null or attempts < max_attempts)), \
     priority, ordering_key, nullif(limit_key, '') from @schema.job_schedule s where not removed",
    $condition,
    " order by name"
)
    };
}

pub(crate) const LIST: &str = listed!("");

/// $1 name: that one.
pub(crate) const GET: &str = listed!(" and name = $1");

/// $1 the names that this program has declared, $2 the revisions of rows that it cannot read or settle: rows that are to be looked at now or
/// within a second and a half, the first ones first, and those whose moment has not come because the clock was set back. What a
/// program has declared is left to those that have declared it, until a person has put another one in its place.
pub(crate) const DUE: &str = concat!(
    "select clock_timestamp(), ",
    state!(),
    ", next_at from @schema.job_schedule \
     where (next_at <= now() + interval '1.5 seconds' or tick > now() + interval '1 minute') \
       and not paused and not removed and (not declared or edited or name = any($1)) and not revision = any($2) \
     order by next_at nulls first limit 100"
);

pub(crate) const DUE_AT_MOST: usize = 100;

/// $1 name, $2 revision, $3 ticks that are to have a job each, in their order, $4 whether they wait for room, $5 whether they
/// are late, $6 up to which tick the row is settled whatever becomes of these, $7 how many of those had no job, $8 when the
/// row is to be looked at once all are settled, $9 when the last of them is due. No row if the schedule is another one by
/// now, is locked, was paused by plain SQL, which draws no revision, or if that moment has not come by the server's clock: nothing is
/// changed then.
///
/// One row: how many jobs are enqueued, and which running ones are cancelled.
pub(crate) const SETTLE: &str = concat!(
    "with held as materialized (
  select *, $4::bool as waits from @schema.job_schedule
   where name = $1 and revision = $2 and not paused and not removed and ($9::timestamptz is null or $9 <= clock_timestamp() + interval '50 milliseconds')
   for update skip locked
), wanted(tick, number) as materialized (
  select * from unnest($3::timestamptz[]) with ordinality
), ",
    include_str!("sql/enqueueing.sql"),
    ", settled as (
  update @schema.job_schedule s set
    tick = coalesce(case when $4 then (select max(tick) from chosen) else $3[cardinality($3)] end, $6, s.tick),
    next_at = case when $4 and (select count(*) from chosen) < cardinality($3)
      then clock_timestamp() + interval '200 milliseconds' else $8 end,
    revision = nextval('@schema.job_claim'),
    enqueued = s.enqueued + (select count(*) from chosen),
    made_up = s.made_up + case when $5 then (select count(*) from chosen) else 0 end,
    missed = s.missed + $7,
    skipped = s.skipped + case when $4 then 0 else cardinality($3) - (select count(*) from chosen) end,
    last_tick = coalesce((select max(tick) from chosen), s.last_tick),
    last_job = coalesce((select max(id) from enqueued), s.last_job),
    last_at = case when exists (select from chosen) then clock_timestamp() else s.last_at end
    from asked where s.name = asked.name
  returning 1
), told as (
  select @notify('')
    from (select 1 from enqueued union all select 1 from brought_forward) due limit 1
)
select (select count(*) from enqueued), array(select id from cancelled), (select count(*) from told) from settled"
);

/// $1 name: enqueues a job beside the ticks, if there is room. No row if there is no such schedule. One row: the id of the
/// job, or of the one that waited for its next attempt and is due now, or null; which running ones are cancelled; and
/// [`ASK_AGAIN`] if the row was changed meanwhile, or a job that is to be replaced is locked: nothing is changed then.
pub(crate) const RUN_NOW: &str = concat!(
    "with seen as materialized (
  select revision from @schema.job_schedule where name = $1
), held as materialized (
  select s.*, false as waits from @schema.job_schedule s, seen
   where s.name = $1 and not s.removed and s.revision = seen.revision for update of s @nowait
), wanted(tick, number) as materialized (
  values (null::timestamptz, 1)
), ",
    include_str!("sql/enqueueing.sql"),
    ", settled as (
  update @schema.job_schedule s set
    enqueued = s.enqueued + (select count(*) from chosen),
    last_job = coalesce((select max(id) from enqueued), s.last_job),
    last_at = case when exists (select from chosen) then clock_timestamp() else s.last_at end,
    revision = nextval('@schema.job_claim')
    from asked where s.name = asked.name
  returning 1
), told as (
  select @notify('')
    from (select 1 from enqueued union all select 1 from brought_forward) due limit 1
)
select coalesce((select max(id) from enqueued), (select max(id) from brought_forward)), array(select id from cancelled),
  (select count(*) from told) from settled
union all
select null, '{}'::int8[], -1 from @schema.job_schedule
 where name = $1 and not removed and not exists (select from settled)"
);

/// What the last column of [`RUN_NOW`] is if it has to be asked again.
pub(crate) const ASK_AGAIN: i64 = -1;
