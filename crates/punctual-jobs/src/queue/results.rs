//! Results: what a handler returns is stored for a while, and awaited elsewhere, by the id of the job.
//!
//! A result is a text, as a payload is. It is written by the step that ends the run, so a job that has succeeded and has a result
//! is never seen without it; and it goes when its time is over, whether it was read or not.

use std::{fmt, time::Duration};

use serde::{Serialize, de::DeserializeOwned};

use crate::{JobError, JobId, JobQueue, QueueError, QueueFuture, job::payload::Payload};

/// How a job stands for one that waits for its result; from [`JobQueue::result`] and [`JobQueue::await_result`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum JobResult {
    /// It has not come to an end.
    Pending,
    /// It has succeeded, and this is what its handler has returned.
    Ready(JobValue),
    /// All attempts have failed, or its handler has [discarded](JobError::discard) it.
    Discarded {
        /// The error of the last attempt.
        last_error: String,
    },
    /// There is none: the job was cancelled, or its kind returns nothing, or the time of the result is over, or there was no such job.
    Gone,
}

/// A value that a handler has returned, as JSON. It prints its length alone.
#[derive(Clone, PartialEq)]
pub struct JobValue(pub(crate) Payload);

impl JobValue {
    /// Makes the value again.
    ///
    /// # Errors
    ///
    /// That of serde, if it is of another type.
    pub fn read<R: DeserializeOwned>(&self) -> Result<R, serde_json::Error> {
        self.0.parse()
    }
}

impl fmt::Debug for JobValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a run that has succeeded leaves, and for how long.
#[derive(Clone)]
pub(crate) struct Returned {
    pub(crate) value: Payload,
    pub(crate) keep: Duration,
}

impl Returned {
    pub(crate) fn new<R: Serialize>(value: &R, keep: Duration) -> Result<Self, JobError> {
        let failed =
            |error| JobError::new(format_args!("the result cannot be made into JSON: {error}"));
        Ok(Self { value: Payload::of_value(value).map_err(failed)?, keep })
    }
}

/// Results.
impl JobQueue {
    /// Returns how a job stands, and its result if it has one: that of a kind whose handler
    /// [returns a value](crate::Jobs::on_returning). (Celery: `AsyncResult`, Faktory and Sidekiq: none.)
    ///
    /// # Errors
    ///
    /// [`QueueError`], if the engine cannot be asked.
    pub fn result(&self, id: JobId) -> Result<JobResult, QueueError> {
        self.result_async(id).wait(self.request_timeout())
    }

    /// The same as [`result`](Self::result), without blocking.
    pub fn result_async(&self, id: JobId) -> QueueFuture<JobResult> {
        self.engine.result(id)
    }

    /// Waits for the result of a job for as long as `patience`, of real time, on whichever machine it runs. The answer is
    /// [`Pending`](JobResult::Pending) if it has none by then.
    ///
    /// On PostgreSQL the server is asked again after 20 ms, and then seldomer, once a second at last: so the answer may come a second late, and a caller
    /// that waits costs that statement a second. Do not wait in a handler for a job that may need the same worker, slot or ordering key.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    /// use punctual_jobs::{InMemory, Job, JobResult, JobRun, Jobs};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Count { text: String }
    /// impl Job for Count { const NAME: &'static str = "count"; }
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let hour = Duration::from_secs(3600);
    /// let jobs = Jobs::new().on_returning(hour, |_: &JobRun, job: Count| Ok(job.text.len()));
    /// let queue = jobs.open(InMemory::on(&executor))?;
    /// let job = queue.now(Count { text: "tea".into() }).enqueue()?;
    /// let JobResult::Ready(value) = queue.await_result(job.id(), hour)? else { panic!("it fails") };
    /// assert_eq!(value.read::<usize>()?, 3);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`QueueError`], if the engine cannot be asked.
    pub fn await_result(&self, id: JobId, patience: Duration) -> Result<JobResult, QueueError> {
        match self.await_result_async(id).wait(patience) {
            Err(QueueError::TimedOut { .. }) => Ok(JobResult::Pending),
            answer => answer,
        }
    }

    /// The same as [`await_result`](Self::await_result), without blocking and without a limit: it is never
    /// [`Pending`](JobResult::Pending). Drop the future, or let a time limit of the runtime do so, to wait no longer.
    pub fn await_result_async(&self, id: JobId) -> QueueFuture<JobResult> {
        self.engine.await_result(id)
    }
}
