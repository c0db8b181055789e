//! The report of a shutdown.

use std::fmt;

use crate::JobId;

/// The fate of the jobs of a queue that was [shut down](crate::JobQueue::shutdown_within), by id and name.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// The jobs that have ended well since the shutdown began.
    pub ran: Vec<JobSummary>,
    /// The jobs that this queue will not run. On PostgreSQL these were running here and are free for
    /// other machines now; the attempt was not counted. In memory, these are all jobs that were waiting
    /// as well, and they exist only here: send them to another queue, or lose them.
    pub released: Vec<ReleasedJob>,
    /// The jobs whose handlers have not returned in spite of a cancelled token.
    pub still_running: Vec<JobSummary>,
}

/// One line for a log: how many jobs have ended and were released, and which ones still run.
///
/// `2 ran, 1 released, 1 still running: 17 "mail"`
impl fmt::Display for ShutdownReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ran, released, still_running } = self;
        write!(f, "{} ran, {} released", ran.len(), released.len())?;
        if still_running.is_empty() {
            return Ok(());
        }
        let jobs: Vec<_> = still_running.iter().map(ToString::to_string).collect();
        write!(f, ", {} still running: {}", jobs.len(), jobs.join(", "))
    }
}

/// One job, in a report.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobSummary {
    /// The id of the job.
    pub id: JobId,
    /// The name of its kind.
    pub name: &'static str,
}

/// The id, and the name in quotes: `17 "mail"`.
impl fmt::Display for JobSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.id, self.name)
    }
}

/// A job that a queue has released.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ReleasedJob {
    /// The id of the job.
    pub id: JobId,
    /// The name of its kind.
    pub name: &'static str,
    /// The JSON of its payload, as it was sent.
    pub payload: String,
    /// Its key, if it has one.
    pub key: Option<String>,
    /// How many attempts have failed.
    pub attempts: u32,
}

/// One line for a log, without the payload: `17 "mail" with the key "k", failed attempts: 2`.
impl fmt::Display for ReleasedJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.id, self.name)?;
        if let Some(key) = &self.key {
            write!(f, " with the key {key:?}")?;
        }
        write!(f, ", failed attempts: {}", self.attempts)
    }
}
