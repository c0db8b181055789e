-- The tables of the queue. @schema is the schema that the program has named, "punctual" unless it has named another.
-- One transaction makes all of it (server/tables.rs), and writes the version into @schema.job_version.

create sequence @schema.job_claim;
create table @schema.job (
  id bigint generated always as identity primary key,
  name text not null,
  payload text not null,
  ordering_key text collate "C",
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
  untold boolean not null default false,
  schedule text,
  tick timestamptz,
  priority smallint not null default 0 check (priority between -1 and 1),
  limit_key text collate "C" not null default '',
  limit_claim bigint,
  at_once int,
  key_at_once int,
  traceparent text
);
create unique index job_key on @schema.job (key)
  where key is not null and (claim is not null or attempts < max_attempts);
-- Its condition names the worker, so that the server cannot take this index for the claims of a kind, of which it has all (job_limited).
create index job_of_worker on @schema.job (worker) where claim is not null and worker is not null;
create index job_waiting on @schema.job (name, priority, limit_key, run_at, id)
  where ordering_key is null and claim is null and attempts < max_attempts;
create index job_keyed on @schema.job (name, priority, run_at, id)
  where limit_key <> '' and ordering_key is null and claim is null and attempts < max_attempts;
create index job_turns on @schema.job (name, priority, limit_key)
  where limit_key <> '' and ordering_key is null and claim is null and attempts < max_attempts and due;
create unique index job_turn on @schema.job (ordering_key) where ordering_key is not null and claim is not null;
create index job_first on @schema.job (ordering_key, run_at, id)
  where ordering_key is not null and claim is null and attempts < max_attempts;
create index job_due on @schema.job (name, ordering_key)
  where ordering_key is not null and claim is null and attempts < max_attempts and due;
create index job_not_due on @schema.job (run_at)
  where (ordering_key is not null or limit_key <> '') and claim is null and attempts < max_attempts and not due;
create index job_untold on @schema.job (id) where untold;
create index job_discarded on @schema.job (id) where claim is null and attempts >= max_attempts;
-- Each claim of a kind with a limit writes its number into limit_claim as well. A claim that has ended is not in this index, because the
-- next claim of its row has another number.
create index job_limited on @schema.job (name, claim) where claim = limit_claim;
create index job_of_schedule on @schema.job (schedule)
  where schedule is not null and (claim is not null or attempts < max_attempts);
comment on table @schema.job is 'The jobs of punctual. To enqueue one: insert into job (name, payload) values (..., ...)';
create table @schema.job_worker (id text primary key, until timestamptz not null, lease_us bigint not null, slots bigint not null);
create table @schema.job_tick (name text primary key, tick timestamptz not null);
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
  priority smallint not null default 0 check (priority between -1 and 1),
  ordering_key text collate "C",
  limit_key text collate "C" not null default '',
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
comment on table @schema.job_schedule is 'The schedules of punctual. The ticks up to the column tick are settled.';
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
comment on table @schema.job_run is 'The runs of punctual that have ended, for as long as they are kept.';
create table @schema.job_bucket (
  name text not null,
  is_of_key boolean not null,
  limit_key text collate "C" not null,
  burst bigint not null,
  gap_us bigint not null,
  tat timestamptz not null,
  primary key (name, is_of_key, limit_key, burst, gap_us)
);
comment on table @schema.job_bucket is 'The token buckets of punctual that are not full. Each is full again at the moment tat.';
create table @schema.job_pause (name text primary key, until timestamptz not null default 'infinity');
comment on table @schema.job_pause is 'The kinds of jobs that are paused, until a moment.';
create table @schema.job_result (job bigint primary key, value text not null, until timestamptz not null);
create index job_result_until on @schema.job_result (until);
comment on table @schema.job_result is 'The results of jobs of punctual, until a moment.';
-- How many microseconds a bucket is ahead of a moment: none if it is full. If it is further ahead than such a bucket can be, the clock was set
-- back, and there is one token.
create function @schema.job_ahead(tat timestamptz, at timestamptz, burst bigint, gap bigint) returns bigint immutable language sql as $ahead$
  select case when round(extract(epoch from tat - at) * 1000000)::bigint > burst * gap + 60000000 then (burst - 1) * gap
    else greatest(coalesce(round(extract(epoch from tat - at) * 1000000)::bigint, 0), 0) end
$ahead$;
-- How many tokens are left in a bucket that is so far ahead; null without a window.
create function @schema.job_tokens(ahead bigint, burst bigint, gap bigint) returns bigint immutable language sql as $tokens$
  select case when burst is not null then greatest((burst * gap - ahead) / gap, 0) end
$tokens$;
-- Locks a kind for a statement that claims its jobs, and returns which of its claims stand (limiting.rs). Each query in here sees what
-- was committed before the query began, and so all that the lock waits for. The statement that calls it sees what was committed before it began itself.
-- A claim is looked for by "between", because from two equalities the server would conclude a third, and no longer find the condition of the index.
create function @schema.job_gate(kind text, gate bigint, may_share boolean, most int, known bigint[], up_to bigint, session text,
    out is_open boolean, out claims bigint[], out keys text[], out last bigint) language plpgsql as $gate$
begin
  claims := '{}';
  keys := '{}';
  if may_share and (select sum(slots) <= most from @schema.job_worker) then
    is_open := pg_try_advisory_xact_lock_shared(gate);
    if not is_open or (select sum(slots) <= most from @schema.job_worker) then
      return;
    end if;
  end if;
  is_open := pg_try_advisory_xact_lock(gate);
  if not is_open then
    return;
  end if;
  last := coalesce(pg_sequence_last_value('@schema.job_claim'), 0);
  if session is distinct from pg_backend_pid() || ' ' || pg_postmaster_start_time() or last < up_to then
    known := '{}';
    up_to := 0;
  end if;
  select coalesce(array_agg(standing.claim), '{}'), coalesce(array_agg(standing.limit_key), '{}') into claims, keys from (
    select job.claim, job.limit_key from @schema.job where job.name = kind and job.claim = job.limit_claim and job.claim > up_to
    union all
    select was.claim, still.limit_key from unnest(known) was(claim) cross join lateral (
      select job.limit_key from @schema.job
       where job.name = kind and job.claim = job.limit_claim and job.claim between was.claim and least(was.claim, up_to) limit 1) still
  ) standing;
end
$gate$;
