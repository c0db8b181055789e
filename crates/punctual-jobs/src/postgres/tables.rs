//! The tables: what they are, which version of them is there, and how they are made.
//!
//! Opening looks first, and makes nothing if the version is right, so a program whose role has rights to rows alone
//! can open. What is missing is made in one transaction, under a lock that is the gate's as well, because both may
//! make the schema: of many machines that start at once, one makes the tables and the others find them.
//!
//! A program never touches tables of a version that it does not know, and does not open on them.

use std::time::Duration;

use tokio_postgres::{Client, error::SqlState};

use super::{connection::Address, statements};
use crate::OpenError;

/// The steps from each version to the next. A step that was released is not changed any more.
const STEPS: &[&str] = &[
    FIRST, SCHEDULES, PRIORITIES, LOOKING, SLOTS, KEYS, PAUSES, SCHEDULED, TRACES, RESULTS, LEASES,
];

const FIRST: &str = "\
create sequence @schema.job_claim;
create table @schema.job (
  id bigint generated always as identity primary key,
  name text not null,
  payload text not null,
  ordering_key text collate \"C\",
  key text,
  run_at timestamptz not null default clock_timestamp(),
  due boolean not null default false,
  attempts int not null default 0,
  max_attempts int not null default 25,
  claim bigint,
  worker text,
  claimed_at timestamptz,
  last_error text,
  retired boolean not null default false,
  cancelled boolean not null default false,
  untold boolean not null default false
);
create table @schema.job_worker (id text primary key, until timestamptz not null);
create table @schema.job_tick (name text primary key, tick timestamptz not null);
create index job_waiting on @schema.job (name, run_at, id)
  where ordering_key is null and claim is null and attempts < max_attempts;
create unique index job_key on @schema.job (key)
  where key is not null and (claim is not null or attempts < max_attempts);
create index job_of_worker on @schema.job (worker) where claim is not null;
create unique index job_turn on @schema.job (ordering_key) where ordering_key is not null and claim is not null;
create index job_first on @schema.job (ordering_key, run_at, id)
  where ordering_key is not null and claim is null and attempts < max_attempts;
create index job_due on @schema.job (name, ordering_key)
  where ordering_key is not null and claim is null and attempts < max_attempts and due;
create index job_not_due on @schema.job (run_at)
  where ordering_key is not null and claim is null and attempts < max_attempts and not due;
create index job_untold on @schema.job (id) where untold;
comment on table @schema.job is 'The jobs of punctual. To enqueue one: insert into job (name, payload) values (..., ...)';
";

/// A program of version 1 that is open meanwhile goes on: it knows neither the table nor the columns.
const SCHEDULES: &str = "\
create table @schema.job_schedule (
  name text primary key,
  expression text,
  zone text,
  missing text,
  repeated text,
  period_us bigint check (period_us >= 10000),
  begins timestamptz,
  ends timestamptz,
  jitter_us bigint not null default 0,
  kind text not null,
  payload text not null,
  max_attempts int not null default 25 check (max_attempts > 0),
  catch_up text not null default 'last',
  catch_up_us bigint not null default 3600000000,
  overlap text not null default 'queue',
  overlap_most int not null default 1 check (overlap_most > 0),
  paused boolean not null default false,
  removed boolean not null default false,
  declared boolean not null default false,
  edited boolean not null default false,
  code text,
  revision bigint not null default nextval('@schema.job_claim'),
  tick timestamptz not null default clock_timestamp(),
  next_at timestamptz default clock_timestamp(),
  last_tick timestamptz,
  last_job bigint,
  last_at timestamptz,
  enqueued bigint not null default 0,
  made_up bigint not null default 0,
  missed bigint not null default 0,
  skipped bigint not null default 0,
  check ((expression is null) = (zone is null) and (expression is null) <> (period_us is null))
);
create index job_schedule_next on @schema.job_schedule (next_at);
create index job_schedule_tick on @schema.job_schedule (tick);
alter table @schema.job add column schedule text, add column tick timestamptz;
create index job_of_schedule on @schema.job (schedule)
  where schedule is not null and (claim is not null or attempts < max_attempts);
comment on table @schema.job_schedule is 'The schedules of punctual. The ticks up to the column tick are settled.';
";

/// A program of an older version that is open meanwhile goes on. It looks at moments alone, and no index has them in that
/// order any more: with a long backlog it claims slowly until it is gone.
const PRIORITIES: &str = "\
alter table @schema.job add column priority smallint not null default 0 check (priority between -1 and 1);
drop index @schema.job_waiting;
create index job_waiting on @schema.job (name, priority, run_at, id)
  where ordering_key is null and claim is null and attempts < max_attempts;
";

/// The history, and what a list of the discarded jobs is read by.
const LOOKING: &str = "\
create table @schema.job_run (
  id bigint generated always as identity primary key,
  job bigint not null,
  name text not null,
  key text,
  schedule text,
  tick timestamptz,
  attempt int not null,
  machine text not null,
  began timestamptz not null,
  ended timestamptz not null default clock_timestamp(),
  outcome text not null,
  error text
);
create index job_run_of_job on @schema.job_run (job, id);
create index job_run_of_name on @schema.job_run (name, id);
create index job_run_of_schedule on @schema.job_run (schedule, id) where schedule is not null;
create index job_discarded on @schema.job (id) where claim is null and attempts >= max_attempts;
comment on table @schema.job_run is 'The runs of punctual that have ended, for as long as they are kept.';
";

/// A program of an older version that is open meanwhile goes on. It knows no limits: a claim of its has no slot. The row may
/// have the slot of an earlier claim, which the index does not see, because that claim is another one.
const SLOTS: &str = "\
alter table @schema.job add column slot int, add column slot_claim bigint;
create unique index job_slot on @schema.job (name, slot) where claim = slot_claim;
";

/// A program of an older version that is open meanwhile goes on. It knows no limit keys, and claims jobs with one as if they
/// had none. With a long backlog it claims slowly until it is gone, since no index is in its order any more.
const KEYS: &str = "\
alter table @schema.job add column limit_key text collate \"C\" not null default '',
  add column key_slot int, add column key_claim bigint;
drop index @schema.job_waiting, @schema.job_not_due;
create index job_waiting on @schema.job (name, priority, limit_key, run_at, id)
  where ordering_key is null and claim is null and attempts < max_attempts;
create index job_keyed on @schema.job (name, priority, run_at, id)
  where limit_key <> '' and ordering_key is null and claim is null and attempts < max_attempts;
create index job_turns on @schema.job (name, priority, limit_key)
  where limit_key <> '' and ordering_key is null and claim is null and attempts < max_attempts and due;
create index job_not_due on @schema.job (run_at)
  where (ordering_key is not null or limit_key <> '') and claim is null and attempts < max_attempts and not due;
create unique index job_key_slot on @schema.job (name, limit_key, key_slot) where claim = key_claim;
create table @schema.job_bucket (
  name text not null,
  is_of_key boolean not null,
  limit_key text collate \"C\" not null,
  burst bigint not null,
  gap_us bigint not null,
  tat timestamptz not null,
  primary key (name, is_of_key, limit_key, burst, gap_us)
);
comment on table @schema.job_bucket is 'The token buckets of punctual that are not full. Each is full again at the moment tat.';
";

/// A program of an older version that is open meanwhile goes on. It knows no pauses, and claims jobs of a kind that is paused.
const PAUSES: &str = "\
create table @schema.job_pause (name text primary key, until timestamptz not null default 'infinity');
comment on table @schema.job_pause is 'The kinds of jobs that are paused, until a moment.';
";

/// A program of an older version that is open meanwhile goes on. The jobs of its ticks have none of these.
const SCHEDULED: &str = "\
alter table @schema.job_schedule add column priority smallint not null default 0 check (priority between -1 and 1),
  add column ordering_key text collate \"C\", add column limit_key text collate \"C\" not null default '';
";

/// A program of an older version that is open meanwhile goes on, and neither writes nor reads it.
const TRACES: &str = "\
alter table @schema.job add column traceparent text;
";

/// A program of an older version that is open meanwhile goes on, and stores none.
const RESULTS: &str = "\
create table @schema.job_result (job bigint primary key, value text not null, until timestamptz not null);
create index job_result_until on @schema.job_result (until);
comment on table @schema.job_result is 'The results of jobs of punctual, until a moment.';
";

/// A program of an older version that is open meanwhile goes on: it does not write how long its lease is.
const LEASES: &str = "\
alter table @schema.job_worker add column lease_us bigint;
";

const PREPARE: &str = "\
select pg_advisory_xact_lock(hashtextextended('@channel.gate', 0));
do $$ begin
  if to_regnamespace('@schema') is null then create schema @schema; end if;
  if to_regclass('@schema.job_version') is null then
    create table @schema.job_version (version int primary key, at timestamptz not null default clock_timestamp());
  end if;
end $$";

fn newest() -> i32 {
    i32::try_from(STEPS.len()).unwrap_or(i32::MAX)
}

/// Makes the tables, or brings them up to date, unless they are.
pub(super) async fn make(address: &Address) -> Result<(), OpenError> {
    let server = |error: tokio_postgres::Error| OpenError::Server(error.into());
    let (mut client, driver) =
        address.connect().await.map_err(|error| OpenError::Server(error.into_source()))?;
    // It ends with the client.
    tokio::spawn(driver);
    client.batch_execute(statements::GREETING).await.map_err(server)?;
    if version(&client, address).await? == newest() {
        return Ok(());
    }
    while !step(&mut client, address).await? {
        tokio::time::sleep(AGAIN).await;
    }
    Ok(())
}

/// After which time tables are tried again that other transactions have locked.
const AGAIN: Duration = Duration::from_millis(200);

/// Takes all steps in one transaction. Returns `false` if a table was locked for too long: nothing is changed then.
///
/// What waits for a table's lock has all others wait behind it that ask of this table: heartbeats, too. So it waits for less
/// than any lease, and tries again.
async fn step(client: &mut Client, address: &Address) -> Result<bool, OpenError> {
    let server = |error: tokio_postgres::Error| OpenError::Server(error.into());
    let transaction = client.transaction().await.map_err(server)?;
    // A machine that makes them at this moment is waited for, as long as it takes.
    transaction.batch_execute("set local lock_timeout = 0").await.map_err(server)?;
    let prepare = address.schema.name_in(PREPARE);
    transaction.batch_execute(&prepare).await.map_err(server)?;
    transaction.batch_execute("set local lock_timeout = '50ms'").await.map_err(server)?;
    let found = version(transaction.client(), address).await?;
    for (step, made) in STEPS.iter().zip(1..).skip(usize::try_from(found).unwrap_or(0)) {
        let note = format!("insert into @schema.job_version (version) values ({made})");
        let step = address.schema.name_in(&format!("{step}{note}"));
        match transaction.batch_execute(&step).await {
            Ok(()) => {}
            Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => return Ok(false),
            Err(error) => return Err(server(error)),
        }
    }
    transaction.commit().await.map_err(server)?;
    Ok(true)
}

/// Returns which version is there, 0 if there is none.
async fn version(client: &Client, address: &Address) -> Result<i32, OpenError> {
    let statement = address.schema.name_in(statements::VERSION);
    match client.query_typed(&statement, &[]).await {
        Ok(rows) => {
            let found = rows.first().and_then(|row| row.get::<_, Option<i32>>(0)).unwrap_or(0);
            if found > newest() {
                return Err(OpenError::NewerTables { found, known: newest() });
            }
            Ok(found)
        }
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Ok(0),
        Err(error) => Err(OpenError::Server(error.into())),
    }
}
