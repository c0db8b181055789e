//! Why there is no answer.

use std::{error::Error as StdError, fmt, time::Duration};

use tokio_postgres::{
    Error,
    error::{DbError, SqlState},
};

use crate::{QueueError, queue::error::Source};

/// The reason for which there is no answer.
#[derive(Debug)]
pub(crate) enum AskError {
    /// There is no connection, for this reason.
    NoConnection(String),
    /// There was no answer by the deadline.
    NoAnswer,
    /// The server did not answer for this time.
    Silent(Duration),
    /// There is no connection, it broke, or the server has refused.
    Server(Error),
    /// A row was locked by other transactions for so long.
    Locked(Duration),
    /// For this long, the server has accepted jobs without storing each.
    LeftOut(Duration),
}

/// What the queue asks of it.
impl AskError {
    /// Returns `true` if the same may have an answer soon: another transaction has a row, or nothing was stored.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self, Self::Locked(_) | Self::LeftOut(_)) || self.is(&SqlState::LOCK_NOT_AVAILABLE)
    }

    /// Returns `true` if the server has refused this statement, and may take another one from this session.
    pub(crate) fn is_of_the_statement(&self) -> bool {
        matches!(self, Self::Server(error) if error.code().is_some()) && !self.is_of_the_session()
    }

    /// Returns `true` if the server has refused what the statement says, and will as long as the rows, the rights and the tables are as
    /// they are. A trigger may choose any code, so each code counts but those by which the server itself says that the same may pass later:
    /// those of connections (08, 28, 3D), of transactions that others have spoiled (40), of a lack of room (53), of an administrator
    /// or a time-out (57), of its system (58), and of a lock. Nor does the index that has one claim at most for an ordering key: another machine was first.
    pub(crate) fn is_refusal(&self) -> bool {
        let Self::Server(error) = self else { return false };
        let class = error.code().and_then(|code| code.code().get(..2));
        let constraint = error.as_db_error().and_then(DbError::constraint);
        self.is_of_the_statement()
            && !self.may_pass()
            && !matches!(class, Some("08" | "28" | "3D" | "40" | "53" | "57" | "58"))
            && !matches!(constraint, Some("job_turn"))
    }

    /// Returns `true` if another session is needed: this one is silent, or its server is not the primary.
    pub(crate) fn is_of_the_session(&self) -> bool {
        matches!(self, Self::Silent(_)) || self.is(&SqlState::READ_ONLY_SQL_TRANSACTION)
    }

    pub(crate) fn is(&self, state: &SqlState) -> bool {
        matches!(self, Self::Server(error) if error.code() == Some(state))
    }

    pub(crate) fn into_source(self) -> Source {
        match self {
            Self::Server(error) => error.into(),
            other => other.into(),
        }
    }
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoConnection(why) => write!(f, "there is no connection to the database ({why})"),
            Self::NoAnswer => f.write_str("the database did not answer in time"),
            Self::Silent(limit) => write!(f, "the server did not answer for {limit:?}"),
            Self::Server(error) => error.fmt(f),
            Self::Locked(limit) => write!(f, "other transactions kept a row locked for {limit:?}"),
            Self::LeftOut(limit) => write!(
                f,
                "the server has not stored a job as it was sent, for {limit:?}: look for a trigger of the program's own that leaves it out or changes its key"
            ),
        }
    }
}

impl StdError for AskError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Server(error) => error.source(),
            _ => None,
        }
    }
}

impl From<AskError> for QueueError {
    fn from(error: AskError) -> Self {
        Self::Server(error.into_source())
    }
}
