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
    /// All of them in their order, with the words of the table.
    pub(crate) const ALL: [(&'static str, Self); 7] = [
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
        let found = Self::ALL.iter().find(|(known, _)| *known == word);
        found.map_or(Self::Failed, |(_, outcome)| *outcome)
    }
}

/// One word: `ran`, `failed`, `discarded`, `snoozed`, `freed`, `lost` or `cancelled`, as in the table.
impl fmt::Display for JobOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ALL[*self as usize].0)
    }
}

/// Which runs [`JobQueue::history`](crate::JobQueue::history) has: those that are all of what this says. The default is the last
/// hundred: `HistoryFilter { kind: Some("mail".into()), ..HistoryFilter::default() }`.
#[derive(Clone, Debug, Default)]
pub struct HistoryFilter {
    /// Runs of this job.
    pub job: Option<JobId>,
    /// Runs of jobs of the kind with this name.
    pub kind: Option<String>,
    /// Runs of jobs that the schedule with this name has enqueued, if it is a row. An in-memory queue has none.
    pub schedule: Option<String>,
    /// Runs that come after the one with this [number](PastRun::id), which are older: the page that follows the one whose last run it
    /// is.
    pub before: Option<i64>,
    /// At most so many; `None` is a hundred.
    pub limit: Option<usize>,
}

/// How many rows a list or the history has if its filter does not say.
pub(crate) const PAGE: usize = 100;

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
    /// The error, if its handler has failed, or the answer to its claim was lost.
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
