//! The statements. Long ones that share no text with others, and long texts that several share, are files of the folder
//! `sql`.
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
//! [`GREETING_OF_VERBS`], and it is asked again as well. In a transaction of the program's own each verb waits: `@nowait` is nothing there.
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
//! is asked of its moment. A mark too many costs a look, and one that is missing is set by the next
//! [whole look](super::frontier).
//!
//! # Clocks
//!
//! All moments are the server's. `clock_timestamp()` is the time of the statement; `now()` would be when a
//! transaction of the program's own has begun. On the queue's connections there is none, and both are one.

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
pub(crate) const GREETING: &str =
    concat!(include_str!("sql/greeting.sql"), "set lock_timeout = '100ms'");

/// The same on the connection that claims jobs and writes down how they have ended.
///
/// It has the server plan each statement once, without looking at the parameters: the server would plan the longer ones anew each time,
/// which takes longer than carrying them out. Such a plan stays when the tables have grown, and it may have been made when they were
/// empty; so it may only have looks at an index, which cost the same beside many rows.
pub(crate) const GREETING_OF_WORK: &str = concat!(
    include_str!("sql/greeting.sql"),
    include_str!("sql/planned_once.sql"),
    "set lock_timeout = '100ms'"
);

/// The same on the connection of the verbs. On it the statements of all callers follow each other, so a statement that waits for
/// a lock makes all of them wait. It waits for as short a time as the server can count, and is asked again after a pause.
pub(crate) const GREETING_OF_VERBS: &str = concat!(
    include_str!("sql/greeting.sql"),
    include_str!("sql/planned_once.sql"),
    "set lock_timeout = '1ms'"
);

/// $1 names, $2 payloads, $3 ordering keys, $4 moments, $5 delays in seconds, $6 attempts, $7 keys, $8 priorities, $9 limit keys or
/// the empty text, $10 which are unique, $11 the keys of those that are, $12 the keys of the others, $13 the keys whose jobs keep their
/// moments if they have not been tried, $14 trace contexts. No two jobs have one key. A row for each job: its id, its key, and whether it is one that
/// was there. Those without a key have rising ids, in their order. If a job was not stored, it is to be asked again: a single one has
/// null for its id, and several end in a division by zero.
///
/// A job that runs loses its key to one that is not unique, and is retired: it is over when its attempt is. A unique one is skipped if
/// a job with its key waits or runs, also if that one is locked. So it waits for less: for a transaction that has inserted, moved or
/// removed a job with that key and is not committed.
pub(crate) const STORE: &str = include_str!("sql/store.sql");

/// $1 key, $2 moment, $3 delay in seconds. Tells the machines that the job is due now, or when it will be. A moment that is more than a
/// minute ahead is not told: each machine asks again for the [next](super::coming) before it comes. A transaction of the program's own
/// tells it, because it may be committed after the moment.
pub(crate) const RESCHEDULE: &str = include_str!("sql/reschedule.sql");

/// $1 key
pub(crate) const CANCEL: &str = include_str!("sql/cancel.sql");

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
pub(crate) const TICK: &str = include_str!("sql/tick.sql");

/// $1 names, $2 how many, $3 the seconds since all that had become due was marked, or null, $4 the kinds without a limit, $5 which jobs not. Marks
/// jobs with an ordering key or a limit key that have become due. One row: how many were marked; whether any job of $4 with a limit key is due;
/// and which priorities other than the usual one the jobs of $1 have that wait without
/// an ordering key, due or not. It looks only at what has become due in the last $3 seconds, and at least in the last one.
pub(crate) const MARK_DUE: &str = include_str!("sql/mark_due.sql");

pub(crate) const MARKED_AT_MOST: usize = 1000;

/// The error of a claim that is freed because its answer was lost. It is for the history: the job keeps the error of its last run, which
/// `sql/ending.sql` sees to.
pub(crate) const UNANSWERED: &str = "the answer to the claim was lost, and nothing has run";

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
)",
            $history,
            include_str!("sql/ending.sql")
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

/// $1 job, $2 claim, $3 why the server has refused the end of the run.
pub(crate) const NOTE_REFUSED: &str = include_str!("sql/note_refused.sql");

/// $1 worker, $2 lease in seconds, $3 how many jobs it runs at once: the worker lives.
pub(crate) const BEAT: &str = "\
insert into @schema.job_worker (id, until, lease_us, slots)
values ($1, clock_timestamp() + make_interval(secs => $2), ($2 * 1000000)::int8, $3)
on conflict (id) do update set until = excluded.until, lease_us = excluded.lease_us";

/// $1 worker
pub(crate) const LEAVE: &str = "delete from @schema.job_worker where id = $1";

/// $1 dead workers, $2 their moments, $3 how many, $4 which not, by the hashes of their names: forgets those that ended long ago without
/// a word.
pub(crate) const FORGET: &str = include_str!("sql/forget.sql");

macro_rules! sweep {
    ($columns:literal, $history:literal) => {
        concat!(
            "with picked as (
  select id, name, retired, ordering_key is not null or limit_claim is not null as wakes",
            $columns,
            " from @schema.job j where claim is not null and worker is not null and ",
            include_str!("sql/is_dead.sql"),
            " and id <> all($5)
   order by id limit $4 for update skip locked
), gone as (
  delete from @schema.job j using picked where j.id = picked.id and picked.retired
)",
            $history,
            include_str!("sql/sweeping.sql")
        )
    };
}

/// $1 error, $2 dead workers, $3 their moments, $4 how many, $5 which jobs not: fails the attempts of these workers, and of those
/// that have left. Who [tells](TELL) of those that are discarded is open. A row for each kind: how many of its attempts. The workers are
/// told if one of them had an ordering key or was of a kind with a limit, for which another job may wait, and when the first of these jobs is due again.
pub(crate) const SWEEP: &str = sweep!("", "");

/// The same, which writes each of these attempts into the history.
pub(crate) const SWEEP_WITH_HISTORY: &str = sweep!(
    ", key, schedule, tick, attempts, worker, claimed_at",
    ", noted as (
  insert into @schema.job_run (job, name, key, schedule, tick, attempt, machine, began, outcome, error)
  select id, name, key, schedule, tick, attempts, split_part(coalesce(worker, ''), ' ', 1),
    coalesce(claimed_at, clock_timestamp()), 'lost', $1 from picked
)"
);

/// $1 worker, $2 dead workers, $3 their moments, $4 jobs that it is telling of, $5 how many, $6 which jobs not: discarded jobs that are to
/// be told by this worker. They are its own, and those of the dead.
pub(crate) const TELL: &str = concat!(
    "\
with picked as (
  select id from @schema.job j
   where untold and claim is null and attempts >= max_attempts and not id = any($4)
     and id <> all($6) and (worker = $1 or ",
    include_str!("sql/is_dead.sql"),
    "     )
   order by id limit $5 for update skip locked
)
update @schema.job j set worker = $1 from picked where j.id = picked.id
returning j.id, name, payload, attempts, coalesce(last_error, '')"
);

/// $1 worker, $2 jobs that it has told of, $3 after how many attempts, $4 how many, $5 which jobs not: a job that was retried since and is discarded again
/// is another one to tell of. The rows are those for which that is written down, or that are not this
/// worker's any more; the others are held by a transaction, or left out.
pub(crate) const TOLD: &str = include_str!("sql/told.sql");

/// $1 names, $2 the server's time at the last question, null at the first. One row: the first moment since then, or that comes, of a job of
/// these kinds, or of any job with an ordering key or a limit key, and the server's time, in microseconds since 1970. It looks no further
/// than a day ahead.
///
/// Each priority of each kind is one look at the index of [`CLAIM`](super::claiming::CLAIM), behind all jobs that are due.
pub(crate) const NEXT: &str = include_str!("sql/next.sql");

pub(crate) const WORKERS: &str = "select id, until, lease_us from @schema.job_worker";

#[cfg(test)]
mod tests {
    use super::{END, UNANSWERED};

    #[test]
    fn an_end_knows_the_error_of_a_claim_without_an_answer() {
        assert!(END.contains(&format!("'{UNANSWERED}'")));
    }
}
