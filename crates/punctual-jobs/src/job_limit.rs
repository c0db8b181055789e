//! Limits of kinds: how many jobs of a kind, or of one limit key of it, run at once, over all machines.
//!
//! A limit is a value beside a kind's other settings, and what enforces it is beside each engine: slots in the tables
//! (`postgres/limiting.rs`), and lines in memory (`in_memory/slots.rs`). A kind
//! without a limit has neither.

/// How many jobs of a kind run at once; for [`Jobs::limit`](crate::Jobs::limit). Solid Queue: `limits_concurrency`,
/// Sidekiq: `Limiter.concurrent`, River: a concurrency limit, Inngest: `concurrency`. Java: a `Semaphore`, over machines.
///
/// On PostgreSQL the limit holds over all machines, and a database index enforces it: never more than n jobs of the kind,
/// or of one [limit key](Self::for_each_key), have a claim. A process that dies gives its places back when its lease is over. A handler whose claim was lost and that
/// does not look at its [token](crate::JobRun::token) goes on beside the others; a
/// [fencing token](crate::JobRun::fencing_token) keeps out what it does. In memory the limit holds in this process.
///
/// A job that finds no place waits, holds no worker, and begins when a place is free. A job that waits for its next attempt has
/// no place. A job with an [ordering key](crate::JobBuilder::ordering_key) needs both: its turn and a place.
///
/// **Fair between limit keys.** Of a kind with a limit, for each key or not, jobs of a higher [priority](crate::Priority) begin
/// first, then the limit keys take turns, and of one key the job whose moment is earlier comes first. So a tenant with a hundred
/// thousand jobs holds up no job of another. The jobs without a limit key are one of those that take turns.
///
/// **Each machine claims by the limits of its own program.** While two versions run that differ, no more run at once than the
/// larger one says; jobs that a version without any limit claims do not count.
///
/// # Cost
///
/// On PostgreSQL a claim asks for the unlimited kinds together and for each limited kind alone, so each of these is two
/// statements more whenever a machine looks for jobs, and one more if it claims some. The places are looked through at each claim: a limit of hundreds is
/// fine, and one of many thousands slow. A look asks about each limit key that has a job that is due, so a thousand keys are fine,
/// and a hundred thousand at once slow; how many jobs each of them has does not matter.
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
    is_for_each_key: bool,
}

/// The largest limit: a claim looks through the places.
const MOST: u32 = 100_000;

impl JobLimit {
    /// Lets so many jobs run at once, at least one and at most 100,000.
    pub fn at_once(jobs: u32) -> Self {
        Self { at_once: jobs.clamp(1, MOST), is_for_each_key: false }
    }

    /// Has the limit hold for each [limit key](crate::JobBuilder::limit_key) of the kind, and not for the kind as a whole. The
    /// jobs without a limit key share one limit, as if they had one key.
    ///
    /// A kind may have both: `jobs.limit::<J>(JobLimit::at_once(20)).limit::<J>(JobLimit::at_once(2).for_each_key())`.
    ///
    /// ```
    /// use punctual::ScheduledThreadPoolExecutor;
    /// use punctual_jobs::{InMemory, Job, JobLimit, JobRun, Jobs};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Export { tenant: u64 }
    /// impl Job for Export { const NAME: &'static str = "export"; }
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(4);
    /// let jobs = Jobs::new()
    ///     .on(|_: &JobRun, _: Export| Ok(()))
    ///     .limit::<Export>(JobLimit::at_once(1).for_each_key());
    /// let queue = jobs.open(InMemory::on(&executor))?;
    /// queue.now(Export { tenant: 7 }).limit_key("tenant/7").enqueue()?;
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn for_each_key(mut self) -> Self {
        self.is_for_each_key = true;
        self
    }
}

/// The limits of a kind: as a whole, and for each of its limit keys.
#[derive(Clone, Copy, Default)]
pub(crate) struct Limits {
    kind: Option<JobLimit>,
    key: Option<JobLimit>,
}

impl Limits {
    /// Adds a limit, in place of the one before that held for the same.
    pub(crate) fn set(&mut self, limit: JobLimit) {
        let place = if limit.is_for_each_key { &mut self.key } else { &mut self.kind };
        *place = Some(limit);
    }

    pub(crate) fn is_some(self) -> bool {
        self.kind.is_some() || self.key.is_some()
    }

    /// Returns how many jobs of the kind run at once, if there is a limit.
    pub(crate) fn of_kind(self) -> Option<usize> {
        self.kind.map(|limit| limit.at_once as usize)
    }

    /// Returns how many jobs of one key run at once, if there is a limit.
    pub(crate) fn of_key(self) -> Option<usize> {
        self.key.map(|limit| limit.at_once as usize)
    }
}
