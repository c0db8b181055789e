//! The statements that claim jobs of a kind with a limit: as many as there are free slots, and the keys in turn.
//!
//! # Slots
//!
//! A kind that may run n jobs at once has the *slots* 0 to n - 1, and so has each limit key of a kind that may run n of each.
//! A claim takes a slot for each job, and writes it into the row beside the claim that has it: `slot` and `slot_claim` for
//! that of the kind, `key_slot` and `key_claim` for that of the key. The indexes `job_slot` and `job_key_slot` allow one row
//! for each slot, of the rows whose claim is that claim. So there is no counter that could be wrong after a process was
//! killed: a slot is free as soon as its claim ends, by whatever statement ends it, of whatever version.
//!
//! A statement takes slots that are free when it begins. If another machine takes one of them meanwhile, the index refuses
//! the second claim, and the statement is asked again. Each worker begins its search at another slot, so that happens
//! rarely while more than one slot is free.
//!
//! # Turns
//!
//! Within one priority the limit keys take turns, and the jobs without one are a key like the others, the empty one. A
//! statement goes from key to key in the index `job_turns`, from the one that was served last on and round, until it has as
//! many keys as there is room for. Each of them gives its first jobs, and all of them equally many. So a statement looks past
//! no jobs of a key whose slots are taken, however many wait: it looks once at each key.
//!
//! If some keys have fewer jobs than their share, room is left, and the statement is asked again until it claims none. It
//! claims jobs of one priority at a time, which is the first one of which a job can be claimed.
//!
//! An index cannot say which keys have a job that is due, so jobs with a limit key are marked as those with an ordering key
//! are ([`MARK_DUE`](super::statements::MARK_DUE)).

/// The rows that wait and have no ordering key.
macro_rules! waits {
    () => {
        "ordering_key is null and claim is null and attempts < max_attempts"
    };
}

/// $3 how many, $5 how many slots of the kind, if it has a limit, $6 where the search begins: the room that there is. No row
/// for a worker whose lease is over.
macro_rules! room {
    () => {
        "free as materialized (
  select slot, row_number() over (order by (slot - $6 % $5 + $5) % $5) as place
    from generate_series(0, $5 - 1) every(slot)
   where not exists (select from @schema.job o where o.name = $1 and o.slot = every.slot and o.claim = o.slot_claim)
   order by place limit $3
), room as materialized (
  select case when $5 is null then $3 else (select count(*) from free) end as most
   where exists (select from @schema.job_worker where id = $2 and until > clock_timestamp())
)"
    };
}

/// $7 how many slots each key has, if it has a limit: how many of a key's are free, or null.
macro_rules! rest {
    ($key:literal) => {
        concat!(
            "(select $7 - count(*) as rest from @schema.job o
     where $7 is not null and o.name = $1 and o.limit_key = ",
            $key,
            " and o.claim = o.key_claim and o.key_slot < $7)"
        )
    };
}

/// $4 the key that was served last: the first jobs of the keys whose turn it is.
macro_rules! turns {
    () => {
        concat!(
            "turns as materialized (
  select priority, walk.key, rest, row_number() over () as turn
    from (values (-1::int2, false), (-1, true), (0, false), (0, true), (1, false), (1, true)) level(priority, is_round)
    cross join lateral (
      with recursive walk(key) as (
        select case when is_round then '' else (select min(limit_key) from @schema.job
          where name = $1 and priority = level.priority and limit_key <> '' and limit_key > $4 and due and ",
            waits!(),
            ") end
        union all
        select case when is_round and next.key > $4 then null else next.key end
          from walk cross join lateral (select min(limit_key) from @schema.job
            where name = $1 and priority = level.priority and limit_key <> '' and limit_key > walk.key and due and ",
            waits!(),
            ") next(key) where walk.key is not null
      ) select key from walk where key is not null
    ) walk
    cross join lateral ",
            rest!("walk.key"),
            " taken
    cross join lateral (
      select id from @schema.job
       where coalesce(rest > 0, true) and name = $1 and priority = level.priority and limit_key = walk.key and run_at <= now() and ",
            waits!(),
            " order by run_at, id limit 1 for update skip locked
    ) can_begin
   limit (select most from room)
), served as materialized (
  select priority, key, rest, turn, (select most from room) as most, count(*) over () as keys
    from turns where priority = (select min(priority) from turns)
), picked as materialized (
  select id, key, turn, most, row_number() over (partition by key order by run_at, id) as nth
    from served cross join lateral (
      select id, run_at from @schema.job
       where name = $1 and priority = served.priority and limit_key = served.key and run_at <= now() and ",
            waits!(),
            " order by run_at, id limit least((most + keys - 1) / keys, rest) for update skip locked
    ) job
)"
        )
    };
}

/// $4 the ordering key that was served last: the first jobs of the ordering keys after it.
macro_rules! first_of_keys {
    () => {
        concat!(
            "walk(key) as (
  select min(ordering_key) from @schema.job
   where ordering_key > $4 and name = $1 and due and claim is null and attempts < max_attempts
  union all
  select (select min(ordering_key) from @schema.job
    where ordering_key > walk.key and name = $1 and due and claim is null and attempts < max_attempts)
    from walk where key is not null
), first as (
  select job.id from walk cross join lateral (
    select id, name, run_at, limit_key from @schema.job
     where ordering_key = walk.key and claim is null and attempts < max_attempts
     order by run_at, id limit 1) job
   cross join lateral ",
            rest!("job.limit_key"),
            " taken
   where job.name = $1 and job.run_at <= now() and coalesce(rest > 0, true)
     and not exists (select from @schema.job o where o.ordering_key = walk.key and o.claim is not null)
   limit (select most from room)
), picked as materialized (
  select id, limit_key as key, 1::int8 as turn, most, row_number() over (partition by limit_key order by ordering_key) as nth
    from room cross join lateral (
      select id, limit_key, ordering_key from @schema.job
       where id in (select id from first) and claim is null and attempts < max_attempts and run_at <= now()
       for update skip locked) job
)"
        )
    };
}

/// A claim, a slot of the kind and one of its key for each job that was picked.
macro_rules! claiming {
    () => {
        ", numbered as materialized (
  select id, key, turn, nth, most, row_number() over (order by nth, turn) as place from picked
), key_free as materialized (
  select key, slots.slot, slots.nth from (select key, max(nth) as most from picked group by key) keys
    cross join lateral (
      select slot, row_number() over (order by (slot - $6 % $7 + $7) % $7) as nth
        from generate_series(0, $7 - 1) every(slot)
       where not exists (select from @schema.job o
         where o.name = $1 and o.limit_key = keys.key and o.key_slot = every.slot and o.claim = o.key_claim)
       order by nth limit keys.most
    ) slots
), placed as materialized (
  select numbered.id, turn, free.slot, key_free.slot as key_slot, nextval('@schema.job_claim') as claim
    from numbered left join free using (place)
    left join key_free on key_free.key = numbered.key and key_free.nth = numbered.nth
   where place <= most and ($5 is null or free.slot is not null) and ($7 is null or key_free.slot is not null)
)
update @schema.job j set claim = placed.claim, slot = placed.slot, key_slot = placed.key_slot,
  slot_claim = case when $5 is not null then placed.claim end, key_claim = case when $7 is not null then placed.claim end,
  worker = $2, claimed_at = clock_timestamp(), attempts = attempts + 1
  from placed where j.id = placed.id
returning j.id, j.claim, name, payload, attempts, max_attempts, key, ordering_key, tick, limit_key, turn"
    };
}

/// $1 name, $2 worker, $3 how many, $4 after which limit key, $5 how many slots the kind has or null, $6 from which slot on,
/// $7 how many slots each limit key has or null: claims jobs without an ordering key. The key with the highest `turn` was served
/// last. Fails with a violation of `job_slot` or `job_key_slot` if another machine has taken one of the slots: to be asked
/// again.
pub(crate) const CLAIM_TURNS: &str =
    concat!("with recursive ", room!(), ", ", turns!(), claiming!());

/// The same for the first jobs of ordering keys, $4 after which. Fails as
/// [`CLAIM_FIRST`](super::claiming::CLAIM_FIRST) does as well.
pub(crate) const CLAIM_FIRST_LIMITED: &str =
    concat!("with recursive ", room!(), ", ", first_of_keys!(), claiming!());
