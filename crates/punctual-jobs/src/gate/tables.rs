//! The gate's tables: what they are, which version of them is there, and how they are made.
//!
//! Opening looks first, and makes nothing if the version is right, so a program whose role has rights to rows alone
//! can open. What is missing is made by one text, which is one transaction, under a lock that is the job queue's as
//! well, because both may make the schema: of many replicas that start at once, one makes the tables and the others
//! find them. Each step looks at the version itself, so a text that had to wait for another replica's does nothing.
//!
//! A program never touches tables of a version that it does not know, and does not open on them: an older version
//! would put its own functions back in the place of the newer ones.

use tokio::time::Instant;
use tokio_postgres::error::SqlState;

use crate::server::error::AskError;

use super::{
    connection::Connection,
    error::{GateError, GateErrorKind},
};

/// The steps from each version to the next. A step that was released is not changed any more.
const STEPS: &[&str] = &[FIRST];

const FIRST: &str = "\
create sequence @schema.gate_fence;
create table @schema.gate (
  name        text primary key check (length(name) between 1 and 200),
  tick        timestamptz not null,
  done        boolean     not null,
  fence       bigint      not null,
  overtaken   bigint      not null,
  holder      text        not null,
  lease       interval    not null,
  lease_until timestamptz not null
) with (fillfactor = 50);
comment on column @schema.gate.overtaken is 'Of the fences up to this one, each whose run had not ended was overtaken.';
create function @schema.guard(of_name text, of_fence bigint) returns void
language plpgsql as $guard$
begin
  perform 1 from @schema.gate g where g.name = of_name and g.fence = of_fence for key share;
  if not found then
    raise exception 'fence % of % is stale: the run has lost its lease, and another one may have begun',
      of_fence, quote_literal(of_name)
      using errcode = 'PJ001', hint = 'Roll this transaction back and end the run.';
  end if;
end $guard$;
create function @schema.finish(of_name text, of_fence bigint) returns void
language plpgsql as $finish$
begin
  update @schema.gate g set done = true, lease_until = clock_timestamp()
   where g.name = of_name and g.fence = of_fence and not g.done;
  if not found then
    raise exception 'fence % of % is stale or finished', of_fence, quote_literal(of_name)
      using errcode = 'PJ001', hint = 'Roll this transaction back and end the run.';
  end if;
end $finish$;
";

/// The version is read again under the lock, which a snapshot from before it would not show.
const PREPARE: &str = "\
set transaction isolation level read committed;
select pg_advisory_xact_lock(hashtextextended('@channel.gate', 0));
do $prepare$ begin
  if to_regnamespace('@schema') is null then create schema @schema; end if;
  if to_regclass('@schema.gate_version') is null then
    create table @schema.gate_version (version int primary key, at timestamptz not null default clock_timestamp());
  end if;
end $prepare$;
";

const VERSION: &str = "select max(version) from @schema.gate_version";

fn newest() -> i32 {
    i32::try_from(STEPS.len()).unwrap_or(i32::MAX)
}

/// Returns the text that makes the tables, or brings them up to date.
fn script() -> String {
    let guarded = STEPS.iter().zip(1..).map(|(step, made)| {
        format!(
            "do $step$ begin\nif (select coalesce(max(version), 0) from @schema.gate_version) < {made} then\n\
             {step}insert into @schema.gate_version (version) values ({made});\nend if;\nend $step$;\n"
        )
    });
    std::iter::once(PREPARE.to_owned()).chain(guarded).collect()
}

/// Makes the tables, or brings them up to date, unless they are.
pub(crate) async fn make(connection: &Connection, deadline: Instant) -> Result<(), GateError> {
    if look(connection, deadline).await? == newest() {
        return Ok(());
    }
    let made = connection.run_script(deadline, &script()).await;
    made.map_err(|why| GateError::database(&why))?;
    // A newer program may have come first.
    look(connection, deadline).await.map(drop)
}

/// Returns which version is there, 0 if there is none.
async fn look(connection: &Connection, deadline: Instant) -> Result<i32, GateError> {
    let found = match connection.ask(deadline, VERSION, &[]).await {
        Ok(rows) => rows.first().and_then(|row| row.get::<_, Option<i32>>(0)).unwrap_or(0),
        Err(AskError::Server(error)) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => 0,
        Err(why) => return Err(GateError::database(&why)),
    };
    if found > newest() {
        let detail = format!("{found}, and this program knows {}", newest());
        return Err(GateError::bad(GateErrorKind::NewerTables, detail));
    }
    Ok(found)
}
