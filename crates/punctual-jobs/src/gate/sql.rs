//! The statements, and the table that they work on.
//!
//! Each statement is sent alone, in one flight and without a name, and commits by itself. So nothing is kept
//! in the session, and the connection may lead through a pooler that changes backends between any two of them.
//!
//! # No statement waits for a row
//!
//! One connection carries the statements of all names of a process, one after the other. If one of them
//! waited for a row's lock, the renewals behind it would wait as well, and leases would end that have
//! nothing to do with that row. So each takes its row by `skip locked`, and an answer without a row means:
//! look again soon. Rows are locked for long by whoever calls `guard` or `finish` in a transaction of their
//! own.
//!
//! # Three strengths of locks
//!
//! | statement | lock of the row | waits for, or is refused by |
//! |---|---|---|
//! | take | `for update` | all others |
//! | renew, leave, finish | `for no key update` | each other and take |
//! | guard | `for key share` | take |
//!
//! So a transaction that is guarded keeps others from taking over until it ends, and does not keep its own
//! lease from being renewed.
//!
//! # Time
//!
//! All times are `clock_timestamp()`: what the clock shows when the row is there to be written. `now()` is the
//! beginning of the transaction, which is before any wait for a lock on the *table*.

use std::time::Duration;

/// The texts of the statements, for one schema.
#[derive(Debug)]
pub(crate) struct Statements {
    pub(crate) look: String,
    pub(crate) insert: String,
    pub(crate) take: String,
    pub(crate) renew: String,
    pub(crate) leave: String,
    pub(crate) give_back: String,
    pub(crate) guard: String,
    pub(crate) finish: String,
    pub(crate) version: String,
    pub(crate) migration: String,
}

/// What the comment of the table says once [`Statements::migration`] has run.
pub(crate) const VERSION: &str = "punctual gate 1";

impl Statements {
    /// Makes the texts for a schema, whose name is one that needs no quotes.
    pub(crate) fn new(schema: &str) -> Self {
        let text =
            |template: &str| template.replace("@schema", schema).replace("@version", VERSION);
        Self {
            look: text(LOOK),
            insert: text(INSERT),
            take: text(TAKE),
            renew: text(RENEW),
            leave: text(LEAVE),
            give_back: text(GIVE_BACK),
            guard: text("select @schema.guard($1, $2)"),
            finish: text("select @schema.finish($1, $2)"),
            version: text("select obj_description(to_regclass('@schema.gate'), 'pg_class')"),
            migration: text(MIGRATION),
        }
    }
}

/// Returns a span as the seconds that the statements take.
pub(crate) fn seconds(span: Duration) -> f64 {
    span.as_secs_f64()
}

/// `$1` name. One row, always: the clock, and the row of the name or nulls.
const LOOK: &str = "\
select clock_timestamp(), g.tick, g.done, g.fence, g.lease_until, g.holder
  from (select) one left join @schema.gate g on g.name = $1";

/// `$1` name, `$2` tick, `$3` holder, `$4` lease. The first claim of a name.
const INSERT: &str = "\
insert into @schema.gate (name, tick, done, fence, holder, lease_until)
values ($1, $2, false, 1, $3, clock_timestamp() + make_interval(secs => $4))
on conflict (name) do nothing returning fence";

/// `$1` name, `$2` tick, `$3` holder, `$4` lease, and the row that was seen: `$5` fencing token, `$6` done,
/// `$7` end of the lease.
const TAKE: &str = "\
update @schema.gate g
   set tick = $2, done = false, fence = g.fence + 1, holder = $3,
       lease_until = clock_timestamp() + make_interval(secs => $4)
  from (select name from @schema.gate
         where name = $1 and fence = $5 and done = $6 and lease_until = $7
           for update skip locked) seen
 where g.name = seen.name returning g.fence";

/// `$1` name, `$2` fencing token, `$3` lease.
const RENEW: &str = "\
update @schema.gate g set lease_until = clock_timestamp() + make_interval(secs => $3)
  from (select name from @schema.gate where name = $1 and fence = $2 and not done
           for no key update skip locked) seen
 where g.name = seen.name returning g.fence";

/// `$1` name, `$2` fencing token. The end of the lease is that of the run, from which a delay is counted.
const LEAVE: &str = "\
update @schema.gate g set done = true, lease_until = clock_timestamp()
  from (select name from @schema.gate where name = $1 and fence = $2
           for no key update skip locked) seen
 where g.name = seen.name returning g.fence";

/// `$1` name, `$2` fencing token. Of a tick that did not run: afterwards it is as if the one before had been the last.
const GIVE_BACK: &str = "\
update @schema.gate g set done = true, lease_until = to_timestamp(0),
       tick = g.tick - interval '1 microsecond'
  from (select name from @schema.gate where name = $1 and fence = $2 and not done
           for no key update skip locked) seen
 where g.name = seen.name returning g.fence";

/// Sent as one text, and therefore one transaction. The lock lets replicas that start together migrate one
/// after the other.
const MIGRATION: &str = "\
select pg_advisory_xact_lock(hashtextextended('@schema.gate', 0));
create schema if not exists @schema;
create table if not exists @schema.gate (
  name        text primary key check (length(name) between 1 and 200),
  tick        timestamptz not null,
  done        boolean     not null,
  fence       bigint      not null,
  holder      text        not null,
  lease_until timestamptz not null
) with (fillfactor = 50);
create or replace function @schema.guard(of_name text, of_fence bigint) returns void
language plpgsql as $guard$
begin
  perform 1 from @schema.gate g where g.name = of_name and g.fence = of_fence for key share;
  if not found then
    raise exception 'fence % of % is stale: the run has lost its lease, and another one may have begun',
      of_fence, quote_literal(of_name)
      using errcode = 'PJ001', hint = 'Roll this transaction back and end the run.';
  end if;
end $guard$;
create or replace function @schema.finish(of_name text, of_fence bigint) returns void
language plpgsql as $finish$
begin
  update @schema.gate g set done = true, lease_until = clock_timestamp()
   where g.name = of_name and g.fence = of_fence and not g.done;
  if not found then
    raise exception 'fence % of % is stale or finished', of_fence, quote_literal(of_name)
      using errcode = 'PJ001', hint = 'Roll this transaction back and end the run.';
  end if;
end $finish$;
comment on table @schema.gate is '@version';
";
