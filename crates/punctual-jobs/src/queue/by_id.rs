//! The verbs for a person who looks at a queue: list its jobs, and retry, discard or remove one by its id.
//!
//! The program's own code knows its jobs by their keys, and has `reschedule` and `cancel` for them. A person sees a list,
//! in which most jobs have no key, and those that matter are discarded, where no key leads.

use std::fmt;

use crate::{JobFilter, JobId, JobQueue, JobStatus, QueueError, QueueFuture};

/// The outcome of a retry; from [`JobQueue::retry`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobRetry {
    /// It waits, is due, and has an attempt.
    Due,
    /// It is running, and nothing was changed.
    Running,
    /// It was discarded, and another job that waits or runs has its key. Nothing was changed.
    KeyTaken,
    /// There is no such job any more.
    Unknown,
}

impl fmt::Display for JobRetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Due => "due",
            Self::Running => "running already",
            Self::KeyTaken => "left as it is: another job has its key",
            Self::Unknown => "unknown",
        })
    }
}

/// The outcome of discarding; from [`JobQueue::discard`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobDiscard {
    /// It is discarded now, or was before.
    Discarded,
    /// It is running, and its [token](crate::JobRun::token) is raised: at once on this machine, within a heartbeat on
    /// another one. It has no further attempt.
    Signalled,
    /// There is no such job any more.
    Unknown,
}

impl fmt::Display for JobDiscard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Discarded => "discarded",
            Self::Signalled => "asked to stop",
            Self::Unknown => "unknown",
        })
    }
}

/// The outcome of a removal; from [`JobQueue::remove`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobRemoval {
    /// It was waiting or discarded, and is gone.
    Removed,
    /// It is running, and nothing was changed.
    Running,
    /// There is no such job any more.
    Unknown,
}

impl fmt::Display for JobRemoval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Removed => "removed",
            Self::Running => "running, and not removed",
            Self::Unknown => "unknown",
        })
    }
}

/// The error of a job that has none, and was discarded by its id.
pub(crate) const BY_HAND: &str = "it was discarded by JobQueue::discard";

/// A look inside, and changes by id.
impl JobQueue {
    /// Lists jobs, in the order of their ids. (River: `JobList`, Oban and good_job: their dashboards.)
    ///
    /// On PostgreSQL it is one statement, which takes no locks. It finds jobs that run and those that are discarded
    /// by an index; for others it reads the table in the order of the ids until the page is full. An in-memory queue remembers
    /// the last thousand discarded jobs, and sorts the jobs it finds while it holds its lock.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    /// use punctual_jobs::{InMemory, Job, JobFilter, JobRetry, JobStage, Jobs};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Mail {}
    /// impl Job for Mail { const NAME: &'static str = "mail"; }
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let queue = Jobs::new().on(|_run, _: Mail| Ok(())).open(InMemory::on(&executor))?;
    /// queue.after(Duration::from_secs(60), Mail {}).enqueue()?;
    /// let waiting = queue.list(&JobFilter::new().stage(JobStage::Waiting).kind("mail"))?;
    /// for job in &waiting {
    ///     println!("{job}, due {:?}", job.due);
    /// }
    /// assert_eq!(queue.retry(waiting[0].id)?, JobRetry::Due);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`QueueError`], if the engine cannot be asked.
    pub fn list(&self, filter: &JobFilter) -> Result<Vec<JobStatus>, QueueError> {
        self.list_async(filter).wait(self.request_timeout())
    }

    /// The same as [`list`](Self::list), without blocking.
    pub fn list_async(&self, filter: &JobFilter) -> QueueFuture<Vec<JobStatus>> {
        self.engine.list(filter.clone())
    }

    /// Makes a job due at once. One that was discarded waits again, with one more attempt than it has had. One that
    /// waits has its moment brought forward, and keeps its attempts. (River: `JobRetry`, Oban: `retry_job`.)
    ///
    /// # Errors
    ///
    /// [`QueueError`], if the engine cannot be asked; in memory also [`Refused`](QueueError::Refused), and then the job is gone.
    pub fn retry(&self, id: JobId) -> Result<JobRetry, QueueError> {
        self.retry_async(id).wait(self.request_timeout())
    }

    /// The same as [`retry`](Self::retry), without blocking.
    pub fn retry_async(&self, id: JobId) -> QueueFuture<JobRetry> {
        self.engine.retry(id)
    }

    /// Has a job make no further attempt, on whichever machine it is. One that waits is discarded, and
    /// [`on_discarded`](crate::Jobs::on_discarded) is not told: the caller knows. One that runs has its token raised;
    /// unless it succeeds all the same it is discarded when its attempt has ended, and `on_discarded` is told. It can be
    /// [retried](Self::retry) later. (River: `JobCancel`, Oban: `cancel_job`.)
    ///
    /// # Errors
    ///
    /// [`QueueError`], if the engine cannot be asked.
    pub fn discard(&self, id: JobId) -> Result<JobDiscard, QueueError> {
        self.discard_async(id).wait(self.request_timeout())
    }

    /// The same as [`discard`](Self::discard), without blocking.
    pub fn discard_async(&self, id: JobId) -> QueueFuture<JobDiscard> {
        self.engine.discard(id)
    }

    /// Removes a job that waits or is discarded. Nothing is left of it. (River: `JobDelete`.)
    ///
    /// # Errors
    ///
    /// [`QueueError`], if the engine cannot be asked.
    pub fn remove(&self, id: JobId) -> Result<JobRemoval, QueueError> {
        self.remove_async(id).wait(self.request_timeout())
    }

    /// The same as [`remove`](Self::remove), without blocking.
    pub fn remove_async(&self, id: JobId) -> QueueFuture<JobRemoval> {
        self.engine.remove(id)
    }
}
