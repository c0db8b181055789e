//! The statements that claim jobs: without an ordering key and with one, of kinds without a limit and of a kind with one.
//!
//! # Limits
//!
//! A kind that may run n jobs at once has the *slots* 0 to n - 1. A claim of such a kind takes a slot for each job, and
//! writes both into the row: the number of the slot, and the claim that has it (`slot_claim`). The index `job_slot` allows
//! one row for each slot of a kind, of the rows whose claim is that claim. So there is no counter that could be wrong after
//! a process was killed: a slot is free as soon as its claim ends, by whatever statement ends it, of whatever version.
//!
//! A statement takes slots that are free when it begins. If another machine takes one of them meanwhile, the index refuses
//! the second claim, and the statement is asked again. Each worker begins its search at another slot, so that happens
//! rarely while more than one slot is free.
//!
//! No statement looks past the jobs that there are slots for: of a long backlog behind a kind that is full it looks at
//! none.

/// The first jobs of the ordering keys after $4, as many as there is room for.
macro_rules! first_of_keys {
    ($most:literal) => {
        concat!(
            "keys(name, key) as (
  select kind.name, (select min(ordering_key) from @schema.job
    where ordering_key > $4 and name = kind.name and due and claim is null and attempts < max_attempts)
    from unnest($1::text[]) as kind(name)
  union all
  select keys.name, (select min(ordering_key) from @schema.job
    where ordering_key > keys.key and name = keys.name and due and claim is null and attempts < max_attempts)
    from keys where key is not null
), first as (
  select job.id from keys cross join lateral (
    select id, name, run_at from @schema.job
     where ordering_key = keys.key and claim is null and attempts < max_attempts
     order by run_at, id limit 1) job
   where job.name = keys.name and job.run_at <= now()
     and not exists (select 1 from @schema.job o where o.ordering_key = keys.key and o.claim is not null)
     and exists (select 1 from @schema.job_worker where id = $2 and until > clock_timestamp())
   limit ",
            $most,
            "
), picked as (
  select id from @schema.job
   where id in (select id from first) and claim is null and attempts < max_attempts and run_at <= now()
   for update skip locked
)"
        )
    };
}

/// The due jobs without an ordering key, as many as there is room for.
macro_rules! first_by_priority {
    ($most:literal) => {
        concat!(
            "picked as materialized (
  select job.id from (
    select name, priority from unnest($1::text[]) with ordinality as kind(name, place),
      (values (-1::int2), (0::int2), (1::int2)) level(priority) order by priority, place
  ) kind cross join lateral (
    select id from @schema.job
     where ordering_key is null and claim is null and attempts < max_attempts
       and name = kind.name and priority = kind.priority and run_at <= now()
     order by run_at, id limit ",
            $most,
            " for update skip locked) job
   where exists (select 1 from @schema.job_worker where id = $2 and until > clock_timestamp())
   limit ",
            $most,
            "
)"
        )
    };
}

/// The slots of the kind that are free: as many as are asked for, from some slot on, of so many.
macro_rules! free_slots {
    ($from:literal, $of:literal) => {
        concat!(
            "free as materialized (
  select place.slot from generate_series(0, ",
            $of,
            " - 1) place(slot)
   where not exists (select from @schema.job o
     where o.name = ($1::text[])[1] and o.slot = place.slot and o.claim = o.slot_claim)
   order by (place.slot - ",
            $from,
            " + ",
            $of,
            ") % ",
            $of,
            " limit $3
)"
        )
    };
}

/// A claim for each job that was picked.
macro_rules! claiming {
    () => {
        "
update @schema.job j set
  claim = nextval('@schema.job_claim'), worker = $2, claimed_at = clock_timestamp(), attempts = attempts + 1
  from picked where j.id = picked.id
returning j.id, claim, name, payload, attempts, max_attempts, key, ordering_key, tick"
    };
}

/// A claim and a slot for each job that was picked.
macro_rules! claiming_slots {
    () => {
        ", placed as materialized (
  select id, slot, nextval('@schema.job_claim') as claim
    from (select id, row_number() over () as place from picked) job
    join (select slot, row_number() over () as place from free) slots using (place)
)
update @schema.job j set claim = placed.claim, slot_claim = placed.claim, slot = placed.slot,
  worker = $2, claimed_at = clock_timestamp(), attempts = attempts + 1
  from placed where j.id = placed.id
returning j.id, j.claim, name, payload, attempts, max_attempts, key, ordering_key, tick"
    };
}

/// $1 names, $2 worker, $3 how many: claims jobs without an ordering key, of the first priority first, and of each of the
/// first name first. A worker whose lease is over gets none: the next sweep would take them for those of a dead process.
///
/// Each priority of each name is one look at the index, so jobs of a high priority that are not due cost nothing.
pub(crate) const CLAIM: &str = concat!("with ", first_by_priority!("$3"), claiming!());

/// The same of one kind with a limit: $1 its name, in an array, $4 from which slot on, $5 how many slots there are. Fails
/// with a violation of `job_slot` if another machine has taken one of the slots: to be asked again.
pub(crate) const CLAIM_LIMITED: &str = concat!(
    "with ",
    free_slots!("$4", "$5"),
    ", ",
    first_by_priority!("(select count(*) from free)"),
    claiming_slots!()
);

/// $1 names, $2 worker, $3 how many, $4 after which ordering key: claims the first job of each that follows.
///
/// Fails with a violation of `job_turn` if a job of the same key was enqueued for an earlier moment, and claimed, after
/// this statement has begun: to be asked again. A job that another statement has claimed meanwhile is passed over:
/// its row is locked, or has a claim when it is looked at under the lock.
pub(crate) const CLAIM_FIRST: &str = concat!("with recursive ", first_of_keys!("$3"), claiming!());

/// The same of one kind with a limit: $1 its name, in an array, $5 from which slot on, $6 how many slots there are. Fails
/// as [`CLAIM_FIRST`] does, and as [`CLAIM_LIMITED`].
pub(crate) const CLAIM_FIRST_LIMITED: &str = concat!(
    "with recursive ",
    free_slots!("$5", "$6"),
    ", ",
    first_of_keys!("(select count(*) from free)"),
    claiming_slots!()
);
