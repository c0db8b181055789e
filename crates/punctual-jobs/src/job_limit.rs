//! Limits of kinds: how many jobs of a kind run at once, over all machines.
//!
//! A limit is a value beside a kind's other settings, and what enforces it is beside each engine: slots in the tables
//! (`postgres/claiming.rs`), and a line in memory (`in_memory/slots.rs`). A kind
//! without a limit has neither.

/// How many jobs of a kind run at once; for [`Jobs::limit`](crate::Jobs::limit). Solid Queue: `limits_concurrency`,
/// Sidekiq: `Limiter.concurrent`, River: a concurrency limit. Java: a `Semaphore`, over machines.
///
/// On PostgreSQL the limit holds over all machines, and a database index enforces it: never more than n jobs of the kind
/// have a claim. A process that dies gives its places back when its lease is over. A handler whose claim was lost and that
/// does not look at its [token](crate::JobRun::token) goes on beside the others; a
/// [fencing token](crate::JobRun::fencing_token) keeps out what it does. In memory the limit holds in this process.
///
/// A job that finds no place waits, holds no worker, and begins when a place is free: by [priority](crate::Priority), and
/// then by moment. A job that waits for its next attempt has no place.
///
/// **Each machine claims by the limit of its own program.** While two versions run that differ, no more run at once than the
/// larger one says; jobs that a version without any limit claims do not count.
///
/// # Cost
///
/// On PostgreSQL a claim asks for the unlimited kinds together and for each limited kind alone, so each of these is two
/// statements more whenever a machine looks for jobs. The places are looked through at each claim: a limit of hundreds is
/// fine, and one of many thousands slow.
///
/// ```
/// use punctual::ScheduledThreadPoolExecutor;
/// use punctual_jobs::{InMemory, Job, JobLimit, JobRun, Jobs};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Export { user: u64 }
/// impl Job for Export { const NAME: &'static str = "export"; }
///
/// let executor = ScheduledThreadPoolExecutor::new(4);
/// let jobs = Jobs::new()
///     .on(|_: &JobRun, _: Export| Ok(()))
///     .limit::<Export>(JobLimit::at_once(2));
/// let queue = jobs.open(InMemory::on(&executor))?;
/// queue.now(Export { user: 42 }).enqueue()?;
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a limit does nothing until it is given to `Jobs::limit`"]
pub struct JobLimit {
    at_once: u32,
}

/// The largest limit: a claim looks through the places.
const MOST: u32 = 100_000;

impl JobLimit {
    /// Lets so many jobs run at once, at least one and at most 100,000.
    pub fn at_once(jobs: u32) -> Self {
        Self { at_once: jobs.clamp(1, MOST) }
    }

    pub(crate) fn places(self) -> usize {
        self.at_once as usize
    }
}
