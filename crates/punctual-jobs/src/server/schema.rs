//! The schema that the tables are in, and its name in the statements.

use std::borrow::Cow;

/// The name of a schema, checked. The channel of notifications has the same name.
#[derive(Clone, Debug)]
pub(crate) struct Schema(Cow<'static, str>);

impl Default for Schema {
    fn default() -> Self {
        Self(Cow::Borrowed("punctual"))
    }
}

impl Schema {
    /// Takes a name of small letters, digits and underscores, as long as PostgreSQL's names may be. `None` for others, and for those that
    /// begin with `pg_`, which are the server's.
    pub(crate) fn new(name: String) -> Option<Self> {
        let is_letter = |letter: u8| letter.is_ascii_lowercase() || letter == b'_';
        let begins = name.bytes().next().is_some_and(is_letter) && !name.starts_with("pg_");
        let goes_on = name.bytes().all(|letter| is_letter(letter) || letter.is_ascii_digit());
        (begins && goes_on && name.len() < 64).then_some(Self(Cow::Owned(name)))
    }

    /// Puts the name into a statement: `@schema` is the quoted name, `@channel` the name in a text, and `@notify(` begins a call that
    /// notifies the channel.
    ///
    /// A transaction that has notified takes a lock of the whole database to commit, and keeps it until the commit is on the disk. So
    /// such a statement waits longer for that than for rows, whose locks it has by then. The setting ends with the transaction.
    pub(crate) fn name_in(&self, statement: &str) -> String {
        let quoted = format!("\"{}\"", self.0);
        statement
            .replace("@notify(", NOTIFY)
            .replace("@schema", &quoted)
            .replace("@channel", &self.0)
    }
}

const NOTIFY: &str =
    "pg_notify(case when set_config('lock_timeout', '1s', true) is not null then '@channel' end, ";

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
