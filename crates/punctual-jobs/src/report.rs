//! What a shutdown has found and done.

use crate::JobId;

/// What happened to the jobs of a desk that was [shut down](crate::Desk::shutdown_within), by id and name.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// The jobs that have ended well since the shutdown began.
    pub ran: Vec<JobSummary>,
    /// The jobs that this desk will not run. On PostgreSQL these were running here and are free for
    /// other machines now; the attempt was not counted. Embedded, these are all jobs that were waiting
    /// as well, and they exist only here: send them to another desk, or lose them.
    pub handed_back: Vec<HandedBack>,
    /// The jobs whose handlers have not returned in spite of a raised token.
    pub still_running: Vec<JobSummary>,
}

/// One job, in a report.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobSummary {
    /// Which job it is.
    pub id: JobId,
    /// The name of its kind.
    pub name: &'static str,
}

/// A job that a desk has given back.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct HandedBack {
    /// Which job it is.
    pub id: JobId,
    /// The name of its kind.
    pub name: &'static str,
    /// Its payload.
    pub payload: serde_json::Value,
    /// Its key, if it has one.
    pub key: Option<String>,
    /// How many attempts have failed.
    pub attempts: u32,
}
