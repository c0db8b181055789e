//! A job that is about to be enqueued, as its sender describes it.

use crate::{
    JobHandle, JobQueue, Priority, QueueError, QueueFuture,
    job::{clamped, names::Names},
    queue::engine::NewJob,
};

/// A job that is about to be enqueued; from [`JobQueue::after`] and its siblings.
#[derive(Debug)]
#[must_use = "nothing is stored until it is enqueued"]
pub struct JobBuilder<'a> {
    pub(crate) queue: &'a JobQueue,
    pub(crate) new_job: Result<NewJob, QueueError>,
}

impl JobBuilder<'_> {
    fn with(mut self, set: impl FnOnce(&mut NewJob)) -> Self {
        // A payload that is no JSON is told when the job is enqueued.
        let _ = self.new_job.as_mut().map(set);
        self
    }

    /// Gives the job a key, of 1 to 512 bytes, without a NUL. A job with this key that waits is replaced: it keeps its id, and has the
    /// payload, the moment and the settings of this one, and all its attempts. A job with this key that
    /// runs goes on, loses its key, and is not tried again; this one is another job, which may run beside it
    /// unless both have one [ordering key](Self::ordering_key).
    pub fn key(self, key: impl Into<String>) -> Self {
        self.with(|new_job| (new_job.key, new_job.is_unique) = (Some(key.into()), false))
    }

    /// Gives the job a [key](Self::key), and has it skipped if a job with this key is there: nothing is stored then,
    /// the other job stays as it is, and the handle [leads to it](JobHandle::was_skipped). River: `UniqueOpts`, Oban:
    /// `unique`.
    ///
    /// A job is there while it waits for its moment, its turn or its next attempt, and while it runs. Not so one that has
    /// ended or is discarded, nor one that runs and has lost the key, because it was cancelled or another was enqueued
    /// by [`key`](Self::key). Of several that are enqueued at once, on any machines, one is stored.
    ///
    /// A job that runs may have looked at the world already: what has changed since is then seen by no job. Where that
    /// matters use [`key`](Self::key), which enqueues another job beside one that runs.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    /// use punctual_jobs::{InMemory, Job, Jobs};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Reindex {}
    /// impl Job for Reindex { const NAME: &'static str = "reindex"; }
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let queue = Jobs::new().on(|_run, _: Reindex| Ok(())).open(InMemory::on(&executor))?;
    /// let minute = Duration::from_secs(60);
    /// let first = queue.after(minute, Reindex {}).unique("reindex").enqueue()?;
    /// let second = queue.after(minute, Reindex {}).unique("reindex").enqueue()?;
    /// assert!(second.was_skipped);
    /// assert_eq!(second.id, first.id);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn unique(self, key: impl Into<String>) -> Self {
        self.with(|new_job| (new_job.key, new_job.is_unique) = (Some(key.into()), true))
    }

    /// If a waiting job is replaced that has not been tried yet, its moment stays.
    pub fn keep_moment(self) -> Self {
        self.with(|new_job| new_job.keeps_moment = true)
    }

    /// Gives the job an ordering key, of 1 to 128 bytes, without a NUL. Of the jobs with one such key one runs at a time, on one machine, in the
    /// order of their moments. A job whose attempt has failed lets the others go first.
    pub fn ordering_key(self, key: impl Into<String>) -> Self {
        self.with(|new_job| new_job.ordering_key = Some(key.into()))
    }

    /// Gives the job a limit key, of 1 to 128 bytes, without a NUL: the tenant, the account or the service for which it is. A kind
    /// may have a [limit](crate::JobLimit) for each of them, and the limit keys of a kind with a limit take turns. A kind without a limit takes
    /// no notice of it. If a waiting job is replaced by its [key](Self::key), the new one's limit key counts. Solid Queue and Inngest: `key` of
    /// `concurrency`; River and Oban: `partition`; Hatchet: `expression`; BullMQ: `group`.
    pub fn limit_key(self, key: impl Into<String>) -> Self {
        self.with(|new_job| new_job.limit_key = Some(key.into()))
    }

    /// Sets whether the job begins before others that are due; without this call it is [`Priority::Normal`]. Every attempt
    /// has it. If a waiting job is replaced by its [key](Self::key), the new one's priority counts.
    pub fn priority(self, priority: Priority) -> Self {
        self.with(|new_job| new_job.priority = priority)
    }

    /// Gives the job the trace context of its sender, of 1 to 512 bytes, without a NUL: the value of a header `traceparent` of the
    /// [W3C](https://www.w3.org/TR/trace-context/). Every attempt reads it by [`JobRun::traceparent`](crate::JobRun::traceparent), on
    /// whichever machine, to make its span a child of the sender's, or to link it. The queue carries the text, and does not read it. If
    /// a waiting job is replaced by its [key](Self::key), the new one's context counts.
    ///
    /// ```
    /// use punctual::ScheduledThreadPoolExecutor;
    /// use punctual_jobs::{InMemory, Job, JobRun, Jobs};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Mail {}
    /// impl Job for Mail { const NAME: &'static str = "mail"; }
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let (tell, told) = std::sync::mpsc::channel();
    /// let jobs = Jobs::new().on(move |run: &JobRun, _: Mail| {
    ///     // With OpenTelemetry: its propagator extracts the parent of the run's span from this.
    ///     Ok(tell.send(run.traceparent.clone())?)
    /// });
    /// let queue = jobs.open(InMemory::on(&executor))?;
    /// // With OpenTelemetry: its propagator injects the context of the current span into a map.
    /// let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    /// queue.now(Mail {}).traceparent(traceparent).enqueue()?;
    /// assert_eq!(told.recv()?.as_deref(), Some(traceparent));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn traceparent(self, traceparent: impl Into<String>) -> Self {
        self.with(|new_job| new_job.traceparent = Some(traceparent.into()))
    }

    /// Sets how many attempts this job has, at least one.
    pub fn max_attempts(self, max_attempts: u32) -> Self {
        self.with(|new_job| new_job.max_attempts = clamped(max_attempts))
    }

    /// Stores the job.
    ///
    /// # Errors
    ///
    /// [`QueueError`], if the payload is not JSON, a key or the kind's name is not accepted, the queue was shut down, or
    /// the engine cannot be asked.
    pub fn enqueue(self) -> Result<JobHandle, QueueError> {
        let queue = self.queue;
        queue.engine.enqueue(self.checked()?).wait(queue.request_timeout())
    }

    /// The same as [`enqueue`](Self::enqueue), without blocking.
    pub fn enqueue_async(self) -> QueueFuture<JobHandle> {
        let queue = self.queue;
        match self.checked() {
            Ok(new_job) => queue.engine.enqueue(new_job),
            Err(error) => QueueFuture::ready(Err(error)),
        }
    }

    /// Returns the job as it is stored, if it can be.
    pub(crate) fn checked(self) -> Result<NewJob, QueueError> {
        let new_job = self.new_job?;
        let valid = Names::KIND.check(new_job.name);
        let valid = valid.and_then(|()| Names::JOB.check_if_any(&new_job.key));
        let valid = valid.and_then(|()| Names::ORDERING.check_if_any(&new_job.ordering_key));
        let valid = valid.and_then(|()| Names::LIMIT.check_if_any(&new_job.limit_key));
        let valid = valid.and_then(|()| Names::TRACE.check_if_any(&new_job.traceparent));
        valid.map_err(QueueError::InvalidName)?;
        Ok(new_job)
    }
}
