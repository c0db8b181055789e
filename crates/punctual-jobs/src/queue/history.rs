//! The history: which runs there were, on which machine, and how each of them has ended.
//!
//! A run is in the history from when its end is written down, by the same step that writes the end. So a run that has
//! ended is there, once; and one that has not is in the [list](crate::JobQueue::list), with its machine. A machine that
//! comes too late with an end, because its claim was lost, writes none: the end of that run is what took the claim away.
//!
//! A queue keeps no history unless it is asked to ([`InMemory::history`](crate::InMemory::history), `Postgres::history`).

use std::{fmt, time::SystemTime};

use crate::JobId;

/// How a run has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum JobOutcome {
    /// It has succeeded, and the job is gone.
    Succeeded,
    /// It has failed, and the job waits for its next attempt.
    Failed,
    /// It has failed or was asked to stop, and the job is discarded.
    Discarded,
    /// Its handler has put the job off; the attempt does not count.
    Snoozed,
    /// A shutdown has given the job back, or the executor had no room for it; the attempt does not count.
    Released,
    /// Its machine has died, or was not heard of for too long.
    Lost,
    /// It has not succeeded, and the job is gone: it was cancelled, or its key was enqueued again while it ran.
    Cancelled,
}

impl JobOutcome {
    pub(crate) const ALL: [Self; 7] = [
        Self::Succeeded,
        Self::Failed,
        Self::Discarded,
        Self::Snoozed,
        Self::Released,
        Self::Lost,
        Self::Cancelled,
    ];

    const WORDS: [(&'static str, Self); 7] = [
        ("ran", Self::Succeeded),
        ("failed", Self::Failed),
        ("discarded", Self::Discarded),
        ("snoozed", Self::Snoozed),
        ("freed", Self::Released),
        ("lost", Self::Lost),
        ("cancelled", Self::Cancelled),
    ];

    #[cfg(feature = "postgres")]
    pub(crate) fn of_word(word: &str) -> Self {
        let found = Self::WORDS.iter().find(|(known, _)| *known == word);
        found.map_or(Self::Failed, |(_, outcome)| *outcome)
    }
}

/// One word: `ran`, `failed`, `discarded`, `snoozed`, `freed`, `lost` or `cancelled`, as in the table.
impl fmt::Display for JobOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = Self::WORDS.iter().find(|(_, known)| known == self);
        f.write_str(found.map_or("failed", |(word, _)| word))
    }
}

/// Which runs [`JobQueue::history`](crate::JobQueue::history) has: those that are all of what this says. Without a word it is the last hundred.
#[derive(Clone, Debug)]
#[must_use = "it is given to `JobQueue::history`"]
pub struct HistoryFilter {
    pub(crate) job: Option<JobId>,
    pub(crate) kind: Option<String>,
    pub(crate) schedule: Option<String>,
    pub(crate) before: Option<i64>,
    pub(crate) limit: usize,
}

impl Default for HistoryFilter {
    fn default() -> Self {
        Self { job: None, kind: None, schedule: None, before: None, limit: 100 }
    }
}

impl HistoryFilter {
    /// All runs.
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs of this job.
    pub fn job(mut self, id: JobId) -> Self {
        self.job = Some(id);
        self
    }

    /// Runs of jobs of the kind with this name.
    pub fn kind(mut self, name: impl Into<String>) -> Self {
        self.kind = Some(name.into());
        self
    }

    /// Runs of jobs that the schedule with this name has enqueued, if it is a row. An in-memory queue has none.
    pub fn schedule(mut self, name: impl Into<String>) -> Self {
        self.schedule = Some(name.into());
        self
    }

    /// Runs that come after this one, which are older: the page that follows the one whose last run this is.
    pub fn before(mut self, run: &PastRun) -> Self {
        self.before = Some(run.id);
        self
    }

    /// At most so many; without this call it is a hundred.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }
}

/// A run that has ended; from [`JobQueue::history`](crate::JobQueue::history).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PastRun {
    /// The number of the run in the history. The number of a run that has ended later is greater, on one machine.
    pub id: i64,
    /// The id of its job.
    pub job: JobId,
    /// The name of its kind.
    pub kind: String,
    /// Its key, unless it has lost it.
    pub key: Option<String>,
    /// The schedule that has enqueued it, if that is a row.
    pub schedule: Option<String>,
    /// The tick for which that was.
    pub tick: Option<SystemTime>,
    /// Which attempt it was.
    pub attempt: u32,
    /// The machine that has run it, by [its name](crate::JobStatus::machine).
    pub machine: String,
    /// When it was claimed: on PostgreSQL by the server's clock, as when it ended.
    pub began: SystemTime,
    /// When its end was written down.
    pub ended: SystemTime,
    /// How it has ended.
    pub outcome: JobOutcome,
    /// The error, if it has failed.
    pub error: Option<String>,
}

/// One line for a log: `job 17 "mail" failed at attempt 2 on web-1:4711 after 1.2s: no route`.
impl fmt::Display for PastRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { job, kind, outcome, attempt, machine, .. } = self;
        let took = self.ended.duration_since(self.began).unwrap_or_default();
        write!(f, "job {job} {kind:?} {outcome} at attempt {attempt} on {machine} after {took:?}")?;
        self.error.as_ref().map_or(Ok(()), |error| write!(f, ": {error}"))
    }
}
