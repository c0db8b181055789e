//! The texts by which jobs are found: the name of a kind, a key, an ordering key, a limit key, the name of a schedule.
//!
//! They are checked here, before either engine sees them, so that both accept the same ones. A text of PostgreSQL has
//! no NUL; the rounds over the ordering keys and the limit keys begin after the empty one; and an index has no room for long ones.

use std::{error::Error, fmt};

/// The kind of thing that a text names: what an error calls it, and how many bytes it may have.
pub(crate) struct Names(&'static str, usize);

/// A name of a kind or of a schedule, a key, an ordering key or a limit key that no queue accepts: it is empty, has a NUL character, or is too
/// long. Says which of them, and why: `the key of a job has more than 512 bytes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidName(String);

impl Names {
    pub(crate) const KIND: Self = Self("the name of a kind of jobs", 128);
    pub(crate) const JOB: Self = Self("the key of a job", 512);
    pub(crate) const ORDERING: Self = Self("an ordering key", 128);
    pub(crate) const LIMIT: Self = Self("a limit key", 128);
    pub(crate) const SCHEDULE: Self = Self("the name of a schedule", 128);
    pub(crate) const TRACE: Self = Self("a trace context", 512);

    pub(crate) fn check_if_any(self, text: &Option<String>) -> Result<(), InvalidName> {
        text.as_ref().map_or(Ok(()), |text| self.check(text))
    }

    pub(crate) fn check(self, text: &str) -> Result<(), InvalidName> {
        let Self(what, longest) = self;
        Err(InvalidName(if text.is_empty() {
            format!("{what} is empty")
        } else if text.contains('\0') {
            format!("{what} has a NUL character")
        } else if text.len() > longest {
            format!("{what} has more than {longest} bytes")
        } else {
            return Ok(());
        }))
    }
}

impl fmt::Display for InvalidName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for InvalidName {}
