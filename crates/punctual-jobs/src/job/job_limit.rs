//! Limits of kinds: how many jobs of a kind, or of one limit key of it, run at once, or begin in a window of time, over all machines.
//!
//! A limit is a value beside a kind's other settings, and what enforces it is beside each engine: a count and buckets in the tables
//! (`postgres/limiting.rs`), and lines and buckets in memory (`in_memory/slots.rs`, `in_memory/tokens.rs`). A kind
//! without a limit has neither.

use std::time::Duration;

/// How many jobs of a kind run at once, or begin in a window of time; for [`Jobs::limit`](crate::Jobs::limit). Solid Queue: `limits_concurrency`,
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
    bounds: Bounds,
    is_for_each_key: bool,
}

/// What a limit allows: of a kind, or of each of its limit keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) at_once: Option<usize>,
    pub(crate) window: Option<JobWindow>,
}

/// How many jobs may begin in a window of time: a token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JobWindow {
    /// How many tokens the bucket has when it is full.
    pub(crate) burst: u32,
    /// After how many microseconds it has another one.
    pub(crate) gap: u64,
}

/// The largest limit: a claim looks through the places.
const MOST: u32 = 100_000;

const LONGEST_WINDOW: Duration = Duration::from_secs(400 * 24 * 3600);

impl JobLimit {
    /// Lets so many jobs run at once, at least one and at most 100,000.
    pub fn at_once(jobs: u32) -> Self {
        let at_once = Some(jobs.clamp(1, MOST) as usize);
        Self { bounds: Bounds { at_once, window: None }, is_for_each_key: false }
    }

    /// Lets so many jobs begin in a window of time, at least one and at most 100,000; the window is at least a millisecond and at most
    /// 400 days. A rate limit: Inngest: `throttle`, Oban: `rate_limit`, Sidekiq: `Limiter.leaky`.
    ///
    /// It is a **token bucket** (GCRA): n jobs may begin at once if none has for a while, and after that one each n-th part of the
    /// window. So in a window of that length, wherever it begins, 2n - 1 jobs begin at most, and over longer times n in each.
    /// A service that counts in windows of its own and must never see more than n is given a limit of half of that.
    ///
    /// **An attempt takes a token when it is claimed.** One that fails, is put off, or is lost with its machine has spent it, and so has a
    /// claim that a shutdown gives back. On PostgreSQL the moments are those of the claims by the database's clock, so a machine
    /// that has claimed a job and is held up begins it later. In memory they are those of the executor's clock.
    ///
    /// If no token is there, the machines look again when the next one is. While two versions with different windows run, each
    /// has a bucket of its own.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual_jobs::JobLimit;
    ///
    /// // Two at once, and a hundred each minute, of each limit key.
    /// let limit = JobLimit::at_once(2).and_in_window(100, Duration::from_secs(60)).for_each_key();
    /// # let _ = limit;
    /// ```
    pub fn in_window(jobs: u32, window: Duration) -> Self {
        Self { bounds: Bounds::default(), is_for_each_key: false }.and_in_window(jobs, window)
    }

    /// Adds a limit for a [window of time](Self::in_window): both hold.
    pub fn and_in_window(mut self, jobs: u32, window: Duration) -> Self {
        let burst = jobs.clamp(1, MOST);
        let window = window.clamp(Duration::from_millis(1), LONGEST_WINDOW);
        // Rounded up: never more than were asked for.
        let gap = (window.as_micros() as u64).div_ceil(burst.into());
        self.bounds.window = Some(JobWindow { burst, gap });
        self
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
#[derive(Clone, Copy, Default, PartialEq)]
pub(crate) struct Limits {
    pub(crate) kind: Bounds,
    pub(crate) key: Bounds,
}

impl Limits {
    /// Adds a limit, in place of the one before that held for the same.
    pub(crate) fn set(&mut self, limit: JobLimit) {
        let place = if limit.is_for_each_key { &mut self.key } else { &mut self.kind };
        *place = limit.bounds;
    }

    pub(crate) fn is_some(self) -> bool {
        self != Self::default()
    }

    pub(crate) fn has_window(self) -> bool {
        self.kind.window.is_some() || self.key.window.is_some()
    }
}
