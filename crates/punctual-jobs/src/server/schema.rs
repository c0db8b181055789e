//! The schema that the tables are in, and its name in the statements.

use std::{borrow::Cow, time::Duration};

/// The name of a schema, checked. The channel of notifications has the same name.
#[derive(Clone, Debug)]
pub(crate) struct Schema {
    name: Cow<'static, str>,
    /// How long a commit waits for others that have notified, at most. It holds up what is asked behind it on the same connection.
    pub(crate) commit_timeout: Duration,
}

/// The names that a transaction of the program's own has other texts for than the queue has.
const BY_USE: [&str; 4] = ["@notify(", " @nowait", " @skip_locked", "@told_ahead"];

impl Default for Schema {
    fn default() -> Self {
        Self { name: Cow::Borrowed("punctual"), commit_timeout: Duration::from_secs(1) }
    }
}

/// Any level but `off` stays as the role has set it. The setting ends with the transaction, so a pooler does not matter.
const DURABLE: &str = "(select set_config('synchronous_commit', coalesce(nullif(level, 'off'), 'on'), true) is not null
  from current_setting('synchronous_commit') level)";

impl Schema {
    /// Takes a name of small letters, digits and underscores, as long as PostgreSQL's names may be. `None` for others, and for those that
    /// begin with `pg_`, which are the server's.
    pub(crate) fn new(name: String) -> Option<Self> {
        let is_letter = |letter: u8| letter.is_ascii_lowercase() || letter == b'_';
        let begins = name.bytes().next().is_some_and(is_letter) && !name.starts_with("pg_");
        let goes_on = name.bytes().all(|letter| is_letter(letter) || letter.is_ascii_digit());
        let is_name = begins && goes_on && name.len() < 64;
        is_name.then(|| Self { name: Cow::Owned(name), ..Self::default() })
    }

    /// Fills in the names in a statement for one of the queue's own connections: `@schema` is the quoted name, `@channel` the name in
    /// a text, and those of [`BY_USE`], which begin a call that notifies the channel, follow a lock, and say how far ahead moments are told.
    /// `@durable` is true, and has the commit of the statement wait for the disk if a role has set that off.
    ///
    /// A transaction that has notified takes a lock of the whole database to commit, and keeps it until the commit is on the disk. So
    /// such a statement waits longer for that than for rows, whose locks it has by then. The setting ends with the transaction.
    pub(crate) fn name_in(&self, statement: &str) -> String {
        let millis = self.commit_timeout.as_millis();
        let notify = format!(
            "pg_notify(case when set_config('lock_timeout', '{millis}ms', true) is not null then '@channel' end, "
        );
        self.fill(statement, [&notify, " nowait", " skip locked", "interval '1 minute'"])
    }

    /// The same for a transaction of the program's own. The statement waits for locks as long as the lock time-out of the transaction
    /// says, which it leaves alone: an error would end the transaction. It tells of all moments that microseconds can count.
    pub(crate) fn name_in_transaction(&self, statement: &str) -> String {
        self.fill(statement, ["pg_notify('@channel', ", "", "", "interval '1000 years'"])
    }

    fn fill(&self, statement: &str, by_use: [&str; 4]) -> String {
        let quoted = format!("\"{}\"", self.name);
        let names = BY_USE.into_iter().zip(by_use);
        let names =
            names.chain([("@durable", DURABLE), ("@schema", &quoted), ("@channel", &self.name)]);
        let filled = names.fold(statement.to_owned(), |text, (name, by)| text.replace(name, by));
        debug_assert!(!filled.contains('@'), "a name is left in {filled}");
        filled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_are_taken() {
        for name in ["jobs", "_1", "a_2"] {
            let schema = Schema::new(name.to_owned()).expect("a plain name");
            assert_eq!(schema.name_in("@schema.job"), format!("\"{name}\".job"));
        }
        for name in ["", "1a", "Jobs", "a b", "a\"b", "a'b", "pg_jobs", "ä", &"a".repeat(64)] {
            assert!(Schema::new(name.to_owned()).is_none(), "{name}");
        }
    }
}
