//! The statements, each of them one and complete in itself.
//!
//! A job *waits* if it has no claim and attempts are left. A job that runs has a *claim*: a number that only rises,
//! drawn while the row is locked. A statement that ends a claim names it, so that what comes late finds nothing;
//! and the number is the fencing token of the run.
//!
//! # No statement waits for a row
//!
//! A transaction of the program's own may hold any row for as long as it likes: it has enqueued a key, or has written
//! into the table. So the worker's statements lock with `skip locked`, and pass over what is held until the next
//! round. Moving and cancelling lock with `nowait`, and are asked again. Enqueueing may wait for a job that has its key,
//! or for a key that another transaction has inserted and not committed: no longer than the lock time-out of
//! [`GREETING_OF_VERBS`], and it is asked again as well. In a transaction of the program's own each verb waits ([`in_a_transaction`]).
//!
//! # Ordering keys
//!
//! An ordering key has no row. The index `job_turn` allows one claim for each key; a statement that
//! would claim a second one fails. Of the jobs that wait with one key only the first, by moment and id, is claimed.
//!
//! A claim must not look at all jobs that are due and cannot run: 20,000 may wait behind one that does. So it
//! goes from one ordering key to the next ([`CLAIM_FIRST`](super::claiming::CLAIM_FIRST)), and looks at the first job of each. An index cannot
//! say which keys have a job that is due, since that changes with time; so a job is marked when its moment has come
//! ([`MARK_DUE`]), unless it was due when it was enqueued. The mark only leads to the key: whether the first job is due
//! is asked of its moment. A mark too many costs a look, and one that is missing is set at the next poll.
//!
//! # Clocks
//!
//! All moments are the server's. `clock_timestamp()` is the time of the statement; `now()` would be when a
//! transaction of the program's own has begun. On the queue's connections there is none, and both are one.

/// Whether a kind is not paused, as a condition on its name.
macro_rules! not_paused {
    ($name:literal) => {
        concat!(
            "not exists (select from @schema.job_pause pause where pause.name = ",
            $name,
            " and pause.until > clock_timestamp())"
        )
    };
}
pub(super) use not_paused;

macro_rules! greeting {
    ($lock_timeout:literal) => {
        concat!(
            "set session characteristics as transaction isolation level read committed, read write;
set lock_timeout = '",
            $lock_timeout,
            "';
set jit = off;
select pg_catalog.set_config('synchronous_commit', 'on', false)
  where pg_catalog.current_setting('synchronous_commit') = 'off';
select pg_catalog.set_config('client_encoding', 'SQL_ASCII', false)
  where pg_catalog.current_setting('server_encoding') = 'SQL_ASCII';
set search_path = pg_catalog"
        )
    };
}

/// Said on each connection of the queue's when it is made: what a database or a role has set otherwise does not
/// hold here.
///
/// A commit that the server has not written to its disk loses acknowledged jobs if the server crashes, and gives their fencing
/// tokens a second time. A role may ask for more than that, so only `off` is changed.
///
/// A database without an encoding holds any bytes, and the server would refuse a claim of many jobs for one that is not UTF-8.
///
/// The server compiles a statement (`jit`) if it expects much work. Where dead rows have made its estimates grow, each claim
/// would pay for that compilation and gain nothing.
pub(crate) const GREETING: &str = greeting!("100ms");

/// Has the server plan each statement once, without looking at the parameters: it would plan the longer ones anew each time, which takes
/// longer than carrying them out. Such a plan stays when the tables have grown, and it may have been made when they were empty; so it
/// may only have looks at an index, which cost the same beside many rows.
macro_rules! planned_once {
    ($greeting:expr) => {
        concat!(
            $greeting,
            ";
set plan_cache_mode = force_generic_plan;
set enable_seqscan = off;
set enable_bitmapscan = off;
set enable_hashjoin = off;
set enable_mergejoin = off"
        )
    };
}

/// The same on the connection of the verbs. On it the statements of all callers follow each other, so a statement that waits for
/// a lock makes all of them wait. It waits for as short a time as the server can count, and is asked again after a pause.
pub(crate) const GREETING_OF_VERBS: &str = planned_once!(greeting!("1ms"));

/// The same on the connection that claims jobs and writes down how they have ended.
pub(crate) const GREETING_OF_WORK: &str = planned_once!(greeting!("100ms"));

/// Tells the machines that a job is `$due` now, or when it will be. A moment that is more than a minute ahead is not told: each machine
/// asks again for the [next](super::coming) before it comes. A transaction of the program's own tells it, because it may be committed
/// after the moment.
macro_rules! told {
    ($due:literal) => {
        concat!(
            "case when ",
            $due,
            " then @notify('') when run_at < clock_timestamp() + interval '1 minute' then @notify('at ' || (extract(epoch from run_at) * 1000000)::int8) end"
        )
    };
}

/// $1 names, $2 payloads, $3 ordering keys, $4 moments, $5 delays in seconds, $6 attempts, $7 keys, $8 priorities, $9 limit keys or
/// the empty text, $10 which are unique, $11 the keys of those that are, $12 the keys of the others, $13 the keys whose jobs keep their
/// moments if they have not been tried, $14 trace contexts. No two jobs have one key. A row for each job: its id, its key, and whether it is one that
/// was there. Those without a key have rising ids, in their order. If a job was not stored, it is to be asked again: a single one has
/// null for its id, and several end in a division by zero.
///
/// A job that runs loses its key to one that is not unique, and is retired: it is over when its attempt is. A unique one is skipped if
/// a job with its key waits or runs, also if that one is locked. So it waits for less: for a transaction that has inserted, moved or
/// removed a job with that key and is not committed.
pub(crate) const STORE: &str = "\
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

/// $1 key, $2 moment, $3 delay in seconds
pub(crate) const RESCHEDULE: &str = concat!("\
with moment as materialized (
  select coalesce($2, clock_timestamp() + make_interval(secs => $3)) as run_at, clock_timestamp() as time
), found as (
  select id, claim is not null as runs from @schema.job
   where key = $1 and (claim is not null or attempts < max_attempts) for update nowait
), moved as (
  update @schema.job j set run_at = moment.run_at, due = moment.run_at <= time
    from found, moment where j.id = found.id and not runs returning due, j.run_at
)
select exists (select 1 from moved), (select ", told!("due"), " from moved) from found");

/// $1 key
pub(crate) const CANCEL: &str = "\
with found as (
  select id, claim is not null as runs from @schema.job
   where key = $1 and (claim is not null or attempts < max_attempts) for update nowait
), removed as (
  delete from @schema.job j using found where j.id = found.id and not runs returning ordering_key
), noted as (
  update @schema.job j set key = null, retired = true, cancelled = true
    from found where j.id = found.id and runs
)
select id, runs, (select @notify('') from removed where ordering_key is not null) from found";

/// $1 key: a row if a job that waits or runs has it.
pub(crate) const HAS_KEY: &str =
    "select from @schema.job where key = $1 and (claim is not null or attempts < max_attempts)";

/// $1 id, $2 claim: a row if it stands.
pub(crate) const STANDING: &str = "select from @schema.job where id = $1 and claim = $2";

/// $1 worker: its claims, with their jobs, and which of these were cancelled.
pub(crate) const OWN: &str =
    "select id, claim, cancelled from @schema.job where claim is not null and worker = $1";

/// $1 schedule, $2 ticks, $3 name, $4 payload, $5 ordering key, $6 attempts. Of the ticks that have come the last is
/// taken for all, unless the row has passed it. If a job of the schedule waits, none is enqueued, and that one is made
/// due. One row: the last tick that has come, whether it is taken, whether a job is enqueued, the seconds until the
/// first tick that has not come, and the seconds until that of the row, if it is not believed.
///
/// The row cannot have a tick that has not come, unless the server's clock was set back. A minute is left for
/// one that is corrected a little: within it moments that come twice are ticks once.
pub(crate) const TICK: &str = "\
with moment as materialized (
  select clock_timestamp() + interval '50 milliseconds' as time
), asked as materialized (
  select max(tick) filter (where tick <= time) as newest,
    extract(epoch from min(tick) filter (where tick > time) - min(time))::float8 as early
    from moment, unnest($2::timestamptz[]) tick
), ahead as materialized (
  select extract(epoch from tick - time)::float8 as ahead
    from moment, @schema.job_tick where name = $1 and tick > time + interval '1 minute'
), taken as (
  insert into @schema.job_tick as t (name, tick) select $1, newest from asked where newest is not null
  on conflict (name) do update set tick = excluded.tick
   where t.tick < excluded.tick or t.tick > (select time from moment) + interval '1 minute'
  returning 1
), waiting as materialized (
  select id from @schema.job, taken
   where ordering_key = $5 and name = $3 and claim is null and attempts < max_attempts
), put_off as (
  select id from @schema.job where id in (select id from waiting) and claim is null and run_at > clock_timestamp()
   for update skip locked
), brought_forward as (
  update @schema.job j set run_at = clock_timestamp(), due = true from put_off where j.id = put_off.id returning 1
), enqueued as (
  insert into @schema.job (name, payload, ordering_key, tick, run_at, due, max_attempts)
  select $3, $4, $5, newest, clock_timestamp(), true, $6 from taken, asked where not exists (select from waiting)
  returning 1
), told as (
  select @notify('')
    from (select from enqueued union all select from brought_forward) due limit 1
)
select newest, exists (select from taken), exists (select from enqueued), early,
  (select ahead from ahead where newest is not null), (select count(*) from told) from asked";

/// $1 names. Marks jobs with an ordering key or a limit key that have become due. One row: how many were marked; whether any job
/// with a limit key, of whatever kind, is due; and which priorities other than the usual one the jobs of these kinds have that wait without
/// an ordering key, due or not.
pub(crate) const MARK_DUE: &str = "\
with marked as (
  update @schema.job set due = true where id in (
    select id from @schema.job
     where (ordering_key is not null or limit_key <> '') and claim is null and attempts < max_attempts and not due and run_at <= now()
     order by run_at limit 1000 for update skip locked)
  returning limit_key
)
select count(*), coalesce(bool_or(limit_key <> ''), false) or exists (
    select from @schema.job
     where limit_key <> '' and ordering_key is null and claim is null and attempts < max_attempts and due),
  array(select priority::int8 from (values (-1::int2), (1::int2)) level(priority)
   where exists (
     select from unnest($1::text[]) kind(name) cross join lateral (
       select from @schema.job
        where name = kind.name and priority = level.priority
          and ordering_key is null and claim is null and attempts < max_attempts
        limit 1) waits))
  from marked";

pub(crate) const MARKED_AT_MOST: i64 = 1000;

/// The error of a claim that is freed because its answer was lost. It is for the history: the job keeps the error of its last run.
macro_rules! unanswered {
    () => {
        "the answer to the claim was lost, and nothing has run"
    };
}
pub(crate) const UNANSWERED: &str = unanswered!();

macro_rules! end {
    ($columns:literal, $history:literal) => {
        concat!(
            "with ended as (
  select * from unnest($1::int8[], $2::int8[], $3::text[], $4::float8[], $5::text[], $6::text[], $7::float8[])
    as ended(id, claim, how, delay, error, value, keep)
), standing as (
  select j.id, j.retired, how = 'discarded' or how <> 'ran' and j.cancelled
      or how = 'failed' and j.attempts >= j.max_attempts as discards",
            $columns,
            "
    from @schema.job j join ended on j.id = ended.id and j.claim = ended.claim
   for update of j skip locked
), gone as (
  delete from @schema.job j using ended, standing
   where j.id = standing.id and ended.id = j.id and ended.claim = j.claim and (how = 'ran' or standing.retired)
  returning ended.claim, ordering_key is not null or slot_claim is not null or key_claim is not null as wakes
), stored as (
  insert into @schema.job_result (job, value, until)
  select ended.id, value, clock_timestamp() + make_interval(secs => keep)
    from ended join gone on gone.claim = ended.claim where how = 'ran' and value is not null
  on conflict (job) do update set value = excluded.value, until = excluded.until
), kept as (
  update @schema.job j set claim = null, claimed_at = null,
    worker = case when discards then j.worker end, untold = discards,
    attempts = j.attempts - case when how in ('snoozed', 'freed') and not discards then 1 else 0 end,
    max_attempts = case when how = 'discarded' or j.cancelled then j.attempts else j.max_attempts end, cancelled = false,
    last_error = case when how = 'freed' and not discards then last_error
      when error = '",
            unanswered!(),
            "' then coalesce(last_error, error) else coalesce(error, last_error) end,
    run_at = coalesce(now() + make_interval(secs => delay), run_at),
    due = due and how = 'freed'
    from ended, standing
   where j.id = standing.id and ended.id = j.id and ended.claim = j.claim and how <> 'ran' and not standing.retired
  returning ended.claim, ordering_key is not null or slot_claim is not null or key_claim is not null or how = 'freed' as wakes, j.untold as is_discarded
)",
            $history,
            ", told as (
  select @notify('') from (select wakes from gone union all select wakes from kept) all_of_them
   where wakes limit 1
)
select ended.claim, case
    when kept.is_discarded then 'discarded'
    when kept.claim is not null then 'waiting'
    when gone.claim is not null then 'gone'
    when exists (select 1 from @schema.job j where j.id = ended.id and j.claim = ended.claim) then 'held'
    else 'lost' end,
  (select count(*) from told)
  from ended left join gone on gone.claim = ended.claim left join kept on kept.claim = ended.claim"
        )
    };
}

/// $1 ids, $2 claims, $3 how they have ended, $4 delays in seconds, $5 errors, $6 results of those that `ran`, $7 for how many seconds
/// they are kept. The rows say what became of
/// the job of each: `held` by a transaction, to be asked again; `waiting`; `discarded`; `gone`. Of a claim that is
/// `lost` nothing is changed.
///
/// `ran`: the job is gone. `failed`: it waits for the delay, or is discarded. `discarded`: it has no more attempts
/// than it has had. `snoozed`: it waits for the delay, and the attempt does not count. `freed`: the same, at once, and the error is for the
/// history alone, unless the job is discarded.
/// A job that was cancelled while it ran and is not retired has no further attempt, unless it `ran`. One that was retired is
/// gone in each case. Whether it was is read under the lock: a transaction may
/// have retired it since the statement began. One that is discarded stays this worker's, to be [told](TELL).
pub(crate) const END: &str = end!("", "");

/// The same, which writes each end into the history, as the row was when its lock was taken. An end that comes too late is
/// none.
pub(crate) const END_WITH_HISTORY: &str = end!(
    ", j.claim, j.name, j.key, j.schedule, j.tick, j.attempts, j.worker, j.claimed_at",
    ", noted as (
  insert into @schema.job_run (job, name, key, schedule, tick, attempt, machine, began, outcome, error)
  select standing.id, name, key, schedule, tick, attempts, split_part(coalesce(worker, ''), ' ', 1),
    coalesce(claimed_at, clock_timestamp()), case when how = 'ran' then how when retired then 'cancelled' when discards then 'discarded' else how end, error
    from ended join standing on standing.id = ended.id and standing.claim = ended.claim
)"
);

/// $1 worker, $2 lease in seconds: the worker lives.
pub(crate) const BEAT: &str = "\
insert into @schema.job_worker (id, until, lease_us)
values ($1, clock_timestamp() + make_interval(secs => $2), ($2 * 1000000)::int8)
on conflict (id) do update set until = excluded.until, lease_us = excluded.lease_us";

/// $1 worker
pub(crate) const LEAVE: &str = "delete from @schema.job_worker where id = $1";

/// Whether the worker of the job j has left, or is one of these [dead](super::dead) ones and was not heard of since.
macro_rules! is_dead {
    ($workers:literal, $untils:literal) => {
        concat!(
            "not exists (
     select 1 from @schema.job_worker w where w.id = j.worker and not exists (
       select 1 from unnest(",
            $workers,
            "::text[], ",
            $untils,
            "::timestamptz[]) as dead(id, until) where dead.id = w.id and dead.until = w.until))"
        )
    };
}

/// $1 dead workers, $2 their moments: forgets those that ended long ago without a word.
pub(crate) const FORGET: &str = "\
delete from @schema.job_worker w using unnest($1::text[], $2::timestamptz[]) as dead(id, until)
 where dead.id = w.id and dead.until = w.until and w.until < now() - interval '1 hour'";

/// $1 dead workers, $2 their moments: the ids of the jobs that [`SWEEP`] would free. In no order: each is reached at some time, however many are refused.
pub(crate) const DEAD: &str = concat!(
    "select id from @schema.job j where claim is not null and ",
    is_dead!("$1", "$2"),
    " order by random()"
);

macro_rules! sweep {
    ($columns:literal, $history:literal) => {
        concat!(
            "with dead as (
  select id, name, retired, ordering_key is not null or slot_claim is not null or key_claim is not null as wakes",
            $columns,
            " from @schema.job j where claim is not null and ",
            is_dead!("$2", "$3"),
            " and ($4 is null or id = $4)
   for update skip locked
), gone as (
  delete from @schema.job j using dead where j.id = dead.id and dead.retired
)",
            $history,
            ", swept as (
  update @schema.job j set claim = null, worker = null, claimed_at = null, last_error = $1, due = false,
    cancelled = false, untold = j.attempts >= j.max_attempts,
    run_at = now() + make_interval(secs => exp(least(j.attempts, 10)))
    from dead where j.id = dead.id and not dead.retired returning j.run_at, j.attempts < j.max_attempts as waits
), told as (
  select @notify('') from dead where wakes limit 1
), coming as (
  select @notify('at ' || (extract(epoch from min(run_at)) * 1000000)::int8) from swept where waits having count(*) > 0
)
select name, count(*), (select count(*) from told) + (select count(*) from coming) from dead group by name"
        )
    };
}

/// $1 error, $2 dead workers, $3 their moments, $4 a job if it is for that one alone: fails the attempts of these workers, and of those
/// that have left. Who [tells](TELL) of those that are discarded is open. A row for each kind: how many of its attempts. The workers are
/// told if one of them had an ordering key or a slot, for which another job may wait, and when the first of these jobs is due again.
pub(crate) const SWEEP: &str = sweep!("", "");

/// The same, which writes each of these attempts into the history.
pub(crate) const SWEEP_WITH_HISTORY: &str = sweep!(
    ", key, schedule, tick, attempts, worker, claimed_at",
    ", noted as (
  insert into @schema.job_run (job, name, key, schedule, tick, attempt, machine, began, outcome, error)
  select id, name, key, schedule, tick, attempts, split_part(coalesce(worker, ''), ' ', 1),
    coalesce(claimed_at, clock_timestamp()), 'lost', $1 from dead
)"
);

/// $1 worker, $2 jobs that it is telling of, $3 dead workers, $4 their moments: discarded jobs that are to be told by this worker, some
/// at a time. They are its own, and those of the dead.
pub(crate) const TELL: &str = concat!(
    "\
with picked as (
  select id from @schema.job j
   where untold and claim is null and attempts >= max_attempts and not id = any($2)
     and (worker = $1 or ",
    is_dead!("$3", "$4"),
    ")
   order by id limit 100 for update skip locked
)
update @schema.job j set worker = $1 from picked where j.id = picked.id
returning j.id, name, payload, attempts, coalesce(last_error, '')"
);

/// $1 worker, $2 jobs that it has told of, $3 after how many attempts: a job that was retried since and is discarded again
/// is another one to tell of. The rows are those for which that is written down, or that are not this
/// worker's any more; the others are held by a transaction.
pub(crate) const TOLD: &str = "\
with told as (
  select * from unnest($2::int8[], $3::int4[]) as told(id, attempts)
), free as (
  select j.id from @schema.job j join told on j.id = told.id and j.attempts = told.attempts
   where j.id = any($2) and untold and worker = $1 for update of j skip locked
), written as (
  update @schema.job j set untold = false, worker = null from free where j.id = free.id returning j.id
)
select told.id from told
 where exists (select from written where written.id = told.id)
    or not exists (select from @schema.job j
     where j.id = told.id and j.attempts = told.attempts and untold and worker = $1)";

/// Returns a statement for a transaction of the program's own. It waits for locks as long as the lock time-out of the transaction says,
/// which it leaves alone: an error of one that does not wait would end the transaction. It tells of moments however far ahead, as long as
/// microseconds can count them.
pub(crate) fn in_a_transaction(statement: &str) -> String {
    statement
        .replace(" nowait", "")
        .replace(" skip locked", "")
        .replace("@notify(", "pg_notify('@channel', ")
        .replace("() + interval '1 minute'", "() + interval '1000 years'")
}

/// $1 names, $2 the server's time at the last question, null at the first. One row: the first moment since then, or that comes, of a job of
/// these kinds, or of any job with an ordering key or a limit key, and the server's time, in microseconds since 1970. It looks no further
/// than a day ahead.
///
/// Each priority of each kind is one look at the index of [`CLAIM`](super::claiming::CLAIM), behind all jobs that are due.
pub(crate) const NEXT: &str = "\
with since as materialized (
  select coalesce(timestamptz 'epoch' + $2::int8 * interval '1 microsecond', now()) as at
)
select (extract(epoch from min(run_at)) * 1000000)::int8, (extract(epoch from now()) * 1000000)::int8 from (
  select (select run_at from @schema.job
     where limit_key = '' and ordering_key is null and claim is null and attempts < max_attempts
       and name = kind.name and priority = level.priority and run_at > (select at from since) and run_at < now() + interval '1 day'
     order by run_at limit 1) as run_at
    from unnest($1::text[]) kind(name), (values (-1::int2), (0::int2), (1::int2)) level(priority)
  union all (
  select run_at from @schema.job
   where (ordering_key is not null or limit_key <> '') and claim is null and attempts < max_attempts and not due
     and run_at > (select at from since) and run_at < now() + interval '1 day' order by run_at limit 1)
) coming";

pub(crate) const WORKERS: &str = "select id, until, lease_us from @schema.job_worker";
