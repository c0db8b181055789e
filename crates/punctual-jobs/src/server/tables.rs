//! Tables with a version: which one is there, and how they are made.
//!
//! Opening looks first, and makes nothing if the version is right, so a program whose role has rights to rows alone
//! can open. What is missing is made by one text, which is one transaction, under a lock that the gate and the queue share, because both
//! may make the schema: of many machines that start at once, one makes the tables and the others find them. Each step looks at the
//! version itself, so a text that had to wait for another machine's does nothing.
//!
//! What waits for a table's lock has all others wait behind it that ask of this table: heartbeats, too. So a step waits for less
//! than any lease, and is tried again.
//!
//! A program never touches tables of a version that it does not know, and does not open on them: an older version
//! would put its own functions back in the place of the newer ones.

use std::time::Duration;

use tokio::time::sleep;
use tokio_postgres::{Client, Error, error::SqlState};

use super::schema::Schema;

/// See the [module](self).
pub(crate) struct Tables {
    /// The name of the table with the versions.
    pub(crate) versions: &'static str,
    /// The version that the first step makes. No program knows the way from an older one.
    pub(crate) first: i32,
    /// The steps from each version to the next. A step that was released is not changed any more.
    pub(crate) steps: &'static [&'static str],
}

/// After which time tables are tried again that other transactions have locked.
const AGAIN: Duration = Duration::from_millis(200);

/// The version is read again under the lock, which a snapshot from before it would not show. A machine that makes the tables at this
/// moment is waited for, as long as it takes.
const PREPARE: &str = "\
set transaction isolation level read committed;
set local lock_timeout = 0;
select pg_advisory_xact_lock(hashtextextended('@channel.gate', 0));
set local lock_timeout = '50ms';
do $prepare$ begin
  if to_regnamespace('@schema') is null then create schema @schema; end if;
  if to_regclass('@schema.@versions') is null then
    create table @schema.@versions (version int primary key, at timestamptz not null default clock_timestamp());
  end if;
end $prepare$;
";

impl Tables {
    /// Returns the version that this program knows.
    pub(crate) fn newest(&self) -> i32 {
        self.versions_of_steps().last().unwrap_or(self.first)
    }

    fn versions_of_steps(&self) -> impl Iterator<Item = i32> {
        (self.first..).take(self.steps.len())
    }

    /// Takes the steps that are missing. Returns the version that is there if this program does not know it:
    /// nothing is changed then.
    pub(crate) async fn make(
        &self,
        client: &Client,
        schema: &Schema,
    ) -> Result<Option<i32>, Error> {
        let mut found = self.version(client, schema).await?;
        let script = schema.name_in(&self.script());
        let is_known = |found| found == 0 || (self.first..=self.newest()).contains(&found);
        while is_known(found) && found < self.newest() {
            match client.batch_execute(&script).await {
                Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
                    sleep(AGAIN).await;
                }
                made => made?,
            }
            // A newer program may have come first.
            found = self.version(client, schema).await?;
        }
        Ok((!is_known(found)).then_some(found))
    }

    /// Returns the text that takes the steps.
    fn script(&self) -> String {
        let guarded = self.steps.iter().zip(self.versions_of_steps()).map(|(step, made)| {
            format!(
                "do $step$ begin\nif (select coalesce(max(version), 0) from @schema.@versions) < {made} then\n\
                 {step}insert into @schema.@versions (version) values ({made});\nend if;\nend $step$;\n"
            )
        });
        let script: String = std::iter::once(PREPARE.to_owned()).chain(guarded).collect();
        script.replace("@versions", self.versions)
    }

    /// Returns which version is there, 0 if there is none.
    async fn version(&self, client: &Client, schema: &Schema) -> Result<i32, Error> {
        let text = format!("select max(version) from @schema.{}", self.versions);
        match client.query_typed(&schema.name_in(&text), &[]).await {
            Ok(rows) => Ok(rows.first().and_then(|row| row.get(0)).unwrap_or(0)),
            Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Ok(0),
            Err(error) => Err(error),
        }
    }
}
