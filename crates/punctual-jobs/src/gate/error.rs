//! The error of a gate that cannot be opened, or of a name that cannot be used.

use std::{error::Error, fmt, io};

use crate::{job::with_sources, server::error::AskError};

/// The error if a [`Gate`](super::Gate) could not be opened, or a name of it could not be made.
#[derive(Debug)]
pub struct GateError {
    kind: GateErrorKind,
    detail: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// The kind of an error. See [`GateError::kind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GateErrorKind {
    /// The address of the database cannot be read.
    BadUrl,
    /// The name of the schema is not a lowercase identifier.
    BadSchema,
    /// The lease is shorter than a fifth of a second or longer than a day, or the limit is zero or longer than
    /// the lease.
    BadLease,
    /// The name is empty, or longer than 200 characters, or contains a zero.
    BadName,
    /// The thread or its runtime could not be started.
    Thread,
    /// The database could not be reached, or it refused the migration.
    Database,
    /// A newer version of this crate has made the tables. Use that version in this program too, or another schema.
    NewerTables,
}

impl GateError {
    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> GateErrorKind {
        self.kind
    }

    pub(crate) fn url(error: tokio_postgres::Error) -> Self {
        let detail = with_sources(&error);
        Self { kind: GateErrorKind::BadUrl, detail, source: Some(Box::new(error)) }
    }

    pub(crate) fn thread(error: io::Error) -> Self {
        let detail = error.to_string();
        Self { kind: GateErrorKind::Thread, detail, source: Some(Box::new(error)) }
    }

    pub(crate) fn database(error: &AskError) -> Self {
        Self::bad(GateErrorKind::Database, with_sources(error))
    }

    pub(crate) fn bad(kind: GateErrorKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), source: None }
    }
}

impl fmt::Display for GateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, detail, .. } = self;
        match kind {
            GateErrorKind::BadUrl => {
                write!(f, "the address of the database cannot be read: {detail}")
            }
            GateErrorKind::BadSchema => write!(
                f,
                "the schema {detail:?} cannot be used: its name is to be at most 63 lowercase letters, digits \
                 and underscores, and not to begin with a digit or with pg_"
            ),
            GateErrorKind::BadLease => f.write_str(detail),
            GateErrorKind::BadName => write!(
                f,
                "the name {detail:?} cannot be claimed: it is to have 1 to 200 characters, and none of them zero"
            ),
            GateErrorKind::Thread => {
                write!(f, "the thread of the gate could not be started: {detail}")
            }
            GateErrorKind::Database => write!(f, "the gate's table cannot be used: {detail}"),
            GateErrorKind::NewerTables => write!(
                f,
                "the gate's tables are those of a newer program: their version is {detail}; use a newer \
                 version of this crate, or another schema"
            ),
        }
    }
}

impl Error for GateError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
