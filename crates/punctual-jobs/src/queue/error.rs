//! The errors of a queue: when it is opened, and when it is used.
//!
//! The message of each contains those of its sources, because a driver says "db error" and leaves the rest to the next
//! source, and a log that prints the message alone would not say what is wrong.

use std::{error::Error, fmt, time::Duration};

use crate::{InvalidName, job::with_sources};

/// An error of something else, kept as the source of one of ours.
pub(crate) type Source = Box<dyn Error + Send + Sync>;

/// The error of a queue that was not opened; from [`Jobs::open`](crate::Jobs::open).
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The program's definitions are wrong, as the text says: two handlers, two types or two schedules have one name; a periodic job of
    /// several machines has a trigger that is not on the wall clock; or one of an in-memory queue has no handler, so that nothing
    /// could ever run it.
    Definition(String),
    /// The name of a kind or of a schedule is none that a queue accepts.
    InvalidName(InvalidName),
    /// The executor has refused a task.
    Refused(Source),
    /// The connection goes through a pooler that gives each transaction another session.
    TransactionPooling(Source),
    /// The address of the server cannot be read.
    Address(Source),
    /// The server cannot be reached, or has refused what was asked of it.
    Server(Source),
    /// The tables were made by a newer version of this crate, and are left as they are.
    NewerTables {
        /// Their version.
        found: i32,
        /// The newest one that this program knows.
        known: i32,
    },
    /// The tables were made before the first release, and are left as they are.
    OlderTables {
        /// Their version.
        found: i32,
    },
    /// A setting does not go together with another one.
    Setting(&'static str),
    /// The queue's thread could not be started.
    Thread(std::io::Error),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Definition(what) => f.write_str(what),
            Self::InvalidName(invalid) => invalid.fmt(f),
            Self::Refused(_) => f.write_str("the executor has refused a task of the queue"),
            Self::TransactionPooling(_) => f.write_str(
                "the connection goes through a pooler with pool_mode = transaction, where sessions are \
                 not kept: connect to the server directly, or set pool_mode = session",
            ),
            Self::Address(_) => f.write_str("the address of the PostgreSQL server cannot be read"),
            Self::Server(_) => f.write_str("the PostgreSQL server could not be used"),
            Self::NewerTables { found, known } => write!(
                f,
                "the tables of the jobs have version {found}, and this program knows them up to version {known}: \
                 use the version of punctual-jobs that has made them, or a newer one"
            ),
            Self::OlderTables { found } => write!(
                f,
                "the tables of the jobs have version {found}, which is older than the first release: let the program that has \
                 made them finish its jobs, and drop the schema; or use another schema"
            ),
            Self::Setting(what) => f.write_str(what),
            Self::Thread(_) => f.write_str("the thread of the queue could not be started"),
        }?;
        write_sources(self, f)
    }
}

/// Writes what the sources of an error say, which its own message does not.
fn write_sources(error: &impl Error, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    error.source().map_or(Ok(()), |source| write!(f, ": {}", with_sources(source)))
}

impl Error for OpenError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Refused(source)
            | Self::TransactionPooling(source)
            | Self::Address(source)
            | Self::Server(source) => Some(&**source),
            Self::Thread(source) => Some(source),
            _ => None,
        }
    }
}

/// The error of a request that a queue could not carry out.
#[derive(Debug)]
#[non_exhaustive]
pub enum QueueError {
    /// The payload could not be made into JSON, or the JSON does not make a job again: a number in it is not finite, for
    /// instance. Nothing was stored.
    Payload {
        /// The name of the job.
        name: &'static str,
        /// The reason.
        source: serde_json::Error,
    },
    /// The queue is in memory, and nothing in this process handles the job. Nothing was stored.
    NoHandler {
        /// The name of the job.
        name: &'static str,
    },
    /// The name of the kind, the key or the ordering key is none that a queue accepts. Nothing was stored or asked.
    InvalidName(InvalidName),
    /// The queue was shut down.
    ShutDown,
    /// The executor has refused the task of the job. Nothing is kept of the job.
    Refused(Source),
    /// There was no answer in time. What was asked for may have been done, or may yet be.
    TimedOut {
        /// How long the call was allowed to take.
        timeout: Duration,
    },
    /// The server could not be asked, or has refused. A broken connection leaves open whether what was
    /// asked for has been done.
    Server(Source),
    /// The claim of the running job is lost: another machine may be running it. Stop without an effect.
    Lost,
}

impl fmt::Display for QueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Payload { name, .. } => write!(
                f,
                "the payload of a job {name:?} cannot be made into JSON that a run could read again"
            ),
            Self::NoHandler { name } => write!(
                f,
                "nothing in this process handles the job {name:?}: add a handler with Jobs::on"
            ),
            Self::InvalidName(invalid) => invalid.fmt(f),
            Self::ShutDown => f.write_str("the queue was shut down"),
            Self::Refused(_) => f.write_str("the executor has refused the task of a job"),
            Self::TimedOut { timeout } => {
                write!(
                    f,
                    "there was no answer within {timeout:?}; what was asked for may be done later"
                )
            }
            Self::Server(_) => f.write_str("the PostgreSQL server could not be asked"),
            Self::Lost => {
                f.write_str("the claim of this run is lost: another machine may run the job")
            }
        }?;
        write_sources(self, f)
    }
}

impl Error for QueueError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Payload { source, .. } => Some(source),
            Self::Refused(source) | Self::Server(source) => Some(&**source),
            _ => None,
        }
    }
}
