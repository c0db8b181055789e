//! A look inside: which jobs there are, and how each of them stands.
//!
//! A [`JobFilter`] says which jobs are asked for, and a [`JobStatus`] is what is told of one. Both queues answer in the
//! order of the ids, some jobs at a time: the next page begins after the last id of the one before. So a page costs the
//! same however many came before it, and a job that ends meanwhile moves no other one to another page.

use std::{fmt, time::SystemTime};

use crate::{JobId, Priority};

/// How far a job has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum JobStage {
    /// It waits for its moment, for its turn, or for its next attempt.
    Waiting,
    /// An attempt is running, or was when its machine was last heard of.
    Running,
    /// It has no attempts left, or was discarded by its handler or by [`JobQueue::discard`](crate::JobQueue::discard).
    Discarded,
}

impl fmt::Display for JobStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The statements have the same words for it.
        f.write_str(match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Discarded => "discarded",
        })
    }
}

/// What a job waits for that is due and does not run; from [`JobStatus::waits_for`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum JobWait {
    /// Another job with its [ordering key](crate::JobBuilder::ordering_key) runs, or comes before it.
    OrderingKey,
    /// The [limit](crate::JobLimit) of its kind: as many run as may, or there is no token.
    Limit,
    /// The limit of its [limit key](crate::JobBuilder::limit_key), that of the tenant, for instance.
    LimitOfKey,
}

impl fmt::Display for JobWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OrderingKey => "its ordering key",
            Self::Limit => "the limit of its kind",
            Self::LimitOfKey => "the limit of its limit key",
        })
    }
}

/// Which jobs [`JobQueue::list`](crate::JobQueue::list) has: those that are all of what this says. The default is the first hundred
/// of all jobs: `JobFilter { kind: Some("mail".into()), ..JobFilter::default() }`.
#[derive(Clone, Debug, Default)]
pub struct JobFilter {
    /// Jobs that wait, run or are discarded.
    pub stage: Option<JobStage>,
    /// Jobs of the kind with this name.
    pub kind: Option<String>,
    /// Jobs with this [key](crate::JobBuilder::key): one that waits or runs, and any that were discarded.
    pub key: Option<String>,
    /// Jobs that the schedule with this name has enqueued, if it is a row. An in-memory queue has none.
    pub schedule: Option<String>,
    /// Jobs with this [ordering key](crate::JobBuilder::ordering_key).
    pub ordering_key: Option<String>,
    /// Jobs with this [limit key](crate::JobBuilder::limit_key).
    pub limit_key: Option<String>,
    /// Jobs that wait and whose kind is [paused](crate::JobQueue::pause_kind).
    pub paused: bool,
    /// Jobs with greater ids: the page that follows the one whose last job this is.
    pub after: Option<JobId>,
    /// At most so many; `None` is a hundred.
    pub limit: Option<usize>,
    /// The list contains the [payloads](JobStatus::payload) of the jobs, all of which are in memory then; else they are left where they
    /// are.
    pub payloads: bool,
}

/// A job and how it stands; from [`JobQueue::list`](crate::JobQueue::list). By the time a caller looks at it, it may have
/// changed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct JobStatus {
    /// Its id.
    pub id: JobId,
    /// The name of its kind.
    pub kind: String,
    /// The JSON of its payload, as it was sent, if the list was [asked for it](JobFilter::payloads). `serde_json::from_str` makes
    /// the job of it again.
    pub payload: Option<String>,
    /// Its key. A job that runs and was cancelled or replaced has lost it.
    pub key: Option<String>,
    /// Its ordering key.
    pub ordering_key: Option<String>,
    /// Its limit key.
    pub limit_key: Option<String>,
    /// The schedule that has enqueued it, if that is a row.
    pub schedule: Option<String>,
    /// The tick for which that was.
    pub tick: Option<SystemTime>,
    /// Its priority.
    pub priority: Priority,
    /// How far it has come.
    pub stage: JobStage,
    /// It waits, and its kind is [paused](crate::JobQueue::pause_kind).
    pub paused: bool,
    /// The moment from which on it may run, or might. `None` if that never comes, in memory.
    pub due: Option<SystemTime>,
    /// What it waits for if it is due. `None` if it is not, and if it waits for nothing but a worker of a machine that handles its
    /// kind.
    ///
    /// On PostgreSQL a limit is the one that this program [defines](crate::Jobs::limit). If it defines none for the kind, the limit is taken
    /// to be reached while each of the places up to the last that is taken is taken.
    pub waits_for: Option<JobWait>,
    /// How many attempts have begun, the one that runs included.
    pub attempts: u32,
    /// How many it has.
    pub max_attempts: u32,
    /// The machine that runs it: a name without white space, for instance `web-1:4711`, of the host and the process.
    pub machine: Option<String>,
    /// Since when it runs there.
    pub since: Option<SystemTime>,
    /// The error of the last attempt that has failed.
    pub last_error: Option<String>,
}

/// One line for a log, without the payload: `job 17 "mail" waiting for its ordering key, attempts: 2 of 25, the last error: no route`.
impl fmt::Display for JobStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, kind, stage, attempts, max_attempts, .. } = self;
        write!(f, "job {id} {kind:?} {stage}{}", if self.paused { " (paused)" } else { "" })?;
        if let Some(waits_for) = self.waits_for {
            write!(f, " for {waits_for}")?;
        }
        if let Some(machine) = &self.machine {
            write!(f, " on {machine}")?;
        }
        write!(f, ", attempts: {attempts} of {max_attempts}")?;
        self.last_error.as_ref().map_or(Ok(()), |error| write!(f, ", the last error: {error}"))
    }
}
