//! The schema that the tables are in, and its name in the statements.

use std::{borrow::Cow, time::Duration};

/// The name of a schema, checked. The channel of notifications has the same name.
#[derive(Clone, Debug)]
pub(crate) struct Schema {
    name: Cow<'static, str>,
    /// How long a commit waits for others that have notified, at most. It holds up what is asked behind it on the same connection.
    pub(crate) commit_timeout: Duration,
}

impl Default for Schema {
    fn default() -> Self {
        Self { name: Cow::Borrowed("punctual"), commit_timeout: Duration::from_secs(1) }
    }
}

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

    /// Puts the name into a statement: `@schema` is the quoted name, `@channel` the name in a text, and `@notify(` begins a call that
    /// notifies the channel.
    ///
    /// A transaction that has notified takes a lock of the whole database to commit, and keeps it until the commit is on the disk. So
    /// such a statement waits longer for that than for rows, whose locks it has by then. The setting ends with the transaction.
    pub(crate) fn name_in(&self, statement: &str) -> String {
        let quoted = format!("\"{}\"", self.name);
        let millis = self.commit_timeout.as_millis();
        let notify = format!(
            "pg_notify(case when set_config('lock_timeout', '{millis}ms', true) is not null then '@channel' end, "
        );
        statement
            .replace("@notify(", &notify)
            .replace("@schema", &quoted)
            .replace("@channel", &self.name)
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
