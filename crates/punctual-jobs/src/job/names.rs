//! The texts by which jobs are found: the name of a kind, a key, an ordering key, a limit key, the name of a schedule.
//!
//! They are checked here, before either engine sees them, so that both accept the same ones. A text of PostgreSQL has
//! no NUL; the rounds over the ordering keys and the limit keys begin after the empty one; and an index has no room for long ones.

use std::{error::Error, fmt};

/// The kind of thing that a text names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    Kind,
    Job,
    Ordering,
    Limit,
    Schedule,
    Trace,
}

/// A name of a kind or of a schedule, a key, an ordering key or a limit key that no queue accepts: it is empty, has a NUL character, or is too
/// long. Says which of them, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidName {
    names: Names,
    problem: Problem,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Problem {
    IsEmpty,
    HasNul,
    IsTooLong,
}

impl Names {
    /// Returns how many bytes it may have.
    fn longest(self) -> usize {
        match self {
            Self::Kind | Self::Ordering | Self::Limit | Self::Schedule => 128,
            Self::Job | Self::Trace => 512,
        }
    }

    pub(crate) fn check_if_any(self, text: &Option<String>) -> Result<(), InvalidName> {
        text.as_ref().map_or(Ok(()), |text| self.check(text))
    }

    pub(crate) fn check(self, text: &str) -> Result<(), InvalidName> {
        let problem = if text.is_empty() {
            Problem::IsEmpty
        } else if text.contains('\0') {
            Problem::HasNul
        } else if text.len() > self.longest() {
            Problem::IsTooLong
        } else {
            return Ok(());
        };
        Err(InvalidName { names: self, problem })
    }
}

/// For instance `the key of a job has more than 512 bytes`.
impl fmt::Display for InvalidName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.names {
            Names::Kind => "the name of a kind of jobs",
            Names::Job => "the key of a job",
            Names::Ordering => "an ordering key",
            Names::Limit => "a limit key",
            Names::Schedule => "the name of a schedule",
            Names::Trace => "a trace context",
        })?;
        match self.problem {
            Problem::IsEmpty => f.write_str(" is empty"),
            Problem::HasNul => f.write_str(" has a NUL character"),
            Problem::IsTooLong => write!(f, " has more than {} bytes", self.names.longest()),
        }
    }
}

impl Error for InvalidName {}
