//! The statements that claim jobs of a kind with a limit: as many as the limit lets begin, and the keys in turn.
//!
//! # How many run
//!
//! A claim of a kind that may run n jobs at once, or n of each limit key, writes its number into `limit_claim` as well. The jobs whose
//! `limit_claim` is their claim are those that run, and there is no counter that could be wrong after a process was killed: a job
//! counts no longer as soon as its claim ends, by whatever statement ends it, of whatever version.
//!
//! Two machines that counted at the same moment could both claim the last place. So a statement that claims has an advisory lock of the kind
//! until it is committed, and counts once it has the lock. What it saw when it began may be older than the
//! lock, so it must not count by that. The function `job_gate` locks and counts, because each query in a function of the database sees what was
//! committed before that query. If another machine has the lock, the statement claims nothing, and is asked again two milliseconds later. No
//! statement waits.
//!
//! A limit cannot bind if the machines have no more slots than it allows, and then they share the lock and count nothing. Each
//! machine says in its row how many slots it has, before it claims. One that has died counts until its row is forgotten.
//! Whether a limit can bind is looked at once more under the lock, because a machine may have come. Claims that nothing runs, because
//! their answers were lost or their ends were refused, are not among the slots.
//!
//! # Which claims are counted
//!
//! The server keeps the claims that have ended in its index while any transaction has an old snapshot
//! ([`frontier`](super::frontier)), and a count from the beginning would walk over all of them. Numbers of claims only rise, and no claim of
//! the kind is under way while a statement has the lock alone. So a machine remembers which claims stood when it counted last, and the number that was the
//! last one then ([`Standing`]): those that stand now are among these or have a higher number. A server
//! that has crashed, or another one that has taken its place, may have lost numbers that were drawn, and gives them again. So a machine remembers this for
//! one session, which does not outlive that, and counts all in the next one.
//!
//! # Turns
//!
//! Within one priority the limit keys take turns, and the jobs without one are a key like the others, the empty one. A
//! statement goes from key to key in the index `job_turns`, from the one that was served last on and round, until it has as
//! many keys as there is room for. Each of them gives its first jobs, and all of them equally many. So a statement looks past
//! no jobs of a key that is full, however many wait: it looks once at each key. Between whole looks
//! a machine goes through the keys that it [remembers](super::known_keys).
//!
//! If some keys have fewer jobs than their share, room is left, and the statement is asked again until it claims none. It
//! claims jobs of one priority at a time, which is the first one of which a job can be claimed.
//!
//! An index cannot say which keys have a job that is due, so jobs with a limit key are marked as those with an ordering key
//! are ([`MARK_DUE`](super::statements::MARK_DUE)).
//!
//! # Tokens
//!
//! A limit for a window of time is a token bucket, by the algorithm GCRA: a row of `job_bucket` with one moment, at which the
//! bucket is full again (`tat`, the theoretical arrival time). A token moves it by a gap, from the present if it has passed; and
//! there is one as long as it is less than the whole bucket ahead. A bucket without a row is full. All moments are the server's,
//! in microseconds and whole numbers, and a claim has the moment that its bucket was asked for.
//!
//! **Why no window has too many.** Take the attempts in a window that begins at s and does not contain its end. The first of
//! them that was written has moved the bucket's moment beyond s by a gap, each other one moves it by another gap, and the last one was
//! let in because the moment was burst - 1 gaps ahead of it at most. So of m of them (m - 1) gaps are less than the window and
//! burst - 1 gaps, in whatever order their moments and their writes were: of n in a window, m is 2n - 1 at most.
//!
//! A claim reads the buckets without a lock to choose its jobs, and then locks those of the chosen keys with `skip locked`. What
//! another machine has locked is left to it, and looked at again a few milliseconds later. A bucket that has no row is inserted; if
//! another machine does so at the same moment, the one that is second claims nothing. Each window of a kind has buckets
//! of its own: of two versions with different windows neither waits for what the other has spent.

use tokio_postgres::Row;

/// Which claims of a kind stood when this machine has counted last.
#[derive(Default)]
pub(super) struct Standing {
    pub(super) claims: Vec<i64>,
    /// The last claim of all kinds then. What is above is not among these claims.
    pub(super) up_to: i64,
    /// The session of the server that has said so.
    pub(super) session: Option<String>,
}

impl Standing {
    /// Takes in what an answer says, if the statement has counted.
    pub(super) fn note(&mut self, said: &Row) {
        if let Some(up_to) = said.get(16) {
            *self = Self { claims: said.get(15), up_to, session: said.get(17) };
        }
    }
}

/// A claim for each job that was picked, and tokens for them, and the row that says the rest.
macro_rules! claiming {
    ($picking:literal, $kind_waits:expr, $key_waits:expr, $emptied:expr, $keys:expr) => {
        concat!(
            "with recursive ",
            include_str!("sql/room.sql"),
            include_str!($picking),
            include_str!("sql/placing.sql"),
            ", wait as (
  select case when exists (select from picked) then 5000 else least((
      select ahead - ($8 - 1) * $9 from bucket where $8 is not null and ahead > ($8 - 1) * $9 and ",
            $kind_waits,
            "), (
      select min(ahead) - ($10 - 1) * $11 from (
        select round(extract(epoch from tat - (select time from moment)) * 1000000)::int8 as ahead
          from @schema.job_bucket b
         where $10 is not null and name = $1 and is_of_key and burst = $10 and gap_us = $11
           and tat > (select time from moment) + ($10 - 1) * $11 * interval '1 microsecond' and ",
            $key_waits,
            ") empty)) end as micros
   where ($8 is not null or $10 is not null) and not exists (select from claimed) and (select may_claim from room)
  union all
  select 2000 from gate where not is_open
)
select *, null::int8, null::int8[], null::int8, null, null::text[], false, null::text[] from claimed
union all
select null::int8, null::int8, null, null, null::int4, null::int4, null, null, null::timestamptz, null, null, null::int8, null::int4, null::int8,
  (select min(micros) from wait), claims, last, pg_backend_pid() || ' ' || pg_postmaster_start_time(), ",
            $emptied,
            ", (select count(*) > 0 and (count(*) < (select most from room) or coalesce($8, $10) is not null) from claimed), ",
            $keys,
            " from gate"
        )
    };
}

/// Whether a job with an ordering key is due, whatever its limit key.
macro_rules! ordered_waits {
    () => {
        "exists (select from @schema.job where name = $1 and ordering_key is not null and due and claim is null and attempts < max_attempts)"
    };
}

/// $1 name, $2 worker, $3 how many, $4 after which limit key, $5 how many jobs of the kind may run at once or null, $6 which claims [stood](Standing),
/// $7 how many of each limit key may run at once or null, $8 and $9 how many tokens the kind's bucket has, and after how many
/// microseconds there is another, or null, $10 and $11 the same for each limit key, $12 up to which claim these are, $13 of which
/// session, $14 to $18 limit keys, priorities, and behind which jobs of them, as in [`CLAIM`](super::claiming::CLAIM), $19 whether it looks at all
/// limit keys, and not at these alone and those of the jobs that have become due in the last $21 seconds, $20 of how many it says at most that they are there, $22 which jobs not: claims jobs without an ordering key.
///
/// The key with the highest `turn` was served last. The row without an id says after how many microseconds to look again, if there was
/// no token or another machine was claiming jobs of this kind; which claims stand, up to which claim and of which session, if it has
/// counted; of which of these limit keys no job is left that might have been claimed; whether there may be more; and which
/// limit keys it has found.
pub(crate) const CLAIM_TURNS: &str = claiming!(
    "sql/turns.sql",
    "(exists (select from waiting) or $19 and exists (select from @schema.job where name = $1 and limit_key <> '' and due
         and ordering_key is null and claim is null and attempts < max_attempts))",
    "(b.limit_key in (select key from waiting) or $19 and exists (
         select from @schema.job j where j.name = $1 and j.priority in (-1, 0, 1) and j.limit_key = b.limit_key
         and j.limit_key <> '' and due and ordering_key is null and claim is null and attempts < max_attempts))",
    "array(select key from emptied)",
    "array(select distinct key from keys where $20 > 0 union select key from arrived)"
);

/// The same for the first jobs of ordering keys, $4 after which, $14 which jobs not. Fails as
/// [`CLAIM_FIRST`](super::claiming::CLAIM_FIRST) does.
pub(crate) const CLAIM_FIRST_LIMITED: &str =
    claiming!("sql/first_limited.sql", ordered_waits!(), ordered_waits!(), "null", "null");

/// $1 how many, $2 which not: removes buckets that have been full for a while. One that is not there is full.
pub(crate) const FORGET_BUCKETS: &str = include_str!("sql/forget_buckets.sql");
