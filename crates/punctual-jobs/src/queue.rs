//! The queue: where jobs are enqueued, moved and cancelled, whichever engine keeps them.
//!
//! There is one type for both engines, so that the line that opens the queue is the only one that knows.
//! A queue is a handle; clones are one queue. Of the clones, those that a program holds own the queue: when
//! the last of them is dropped the queue is closed. The one that a handler reaches through its run owns
//! nothing, or a handler that runs would keep the queue open.
//!
//! Every verb asks the engine, which answers with a [`QueueFuture`]. Those that block wait for it; their twins
//! return it.

pub(crate) mod batch;
pub(crate) mod by_id;
pub(crate) mod counts;
pub(crate) mod error;
pub(crate) mod handling;
pub(crate) mod history;
pub(crate) mod listing;
pub(crate) mod machine;
pub(crate) mod pausing;
pub(crate) mod queue_future;
pub(crate) mod report;
pub(crate) mod results;

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use punctual::WouldDeadlock;

use crate::{
    Cancellation, HistoryFilter, Job, JobDiscard, JobFilter, JobId, JobRemoval, JobResult,
    JobRetry, JobState, JobStatus, KindCounts, PastRun, Priority, QueueError, QueueFuture,
    Rescheduling, ShutdownReport, When,
    job::{
        jobs::{Definitions, attempts_of, clamped},
        names::Names,
        payload::Payload,
    },
    queue::batch::Batch,
    run::outcomes::Outcomes,
};

/// The engine that keeps the jobs.
pub(crate) trait Engine: Send + Sync + 'static {
    fn enqueue(&self, new_job: NewJob) -> QueueFuture<JobHandle>;
    fn enqueue_all(&self, batch: Batch) -> QueueFuture<Vec<JobHandle>>;
    fn reschedule(&self, key: &str, when: When) -> QueueFuture<Rescheduling>;
    fn cancel(&self, key: &str) -> QueueFuture<Cancellation>;
    fn state(&self, id: JobId) -> QueueFuture<JobState>;
    fn list(&self, filter: JobFilter) -> QueueFuture<Vec<JobStatus>>;
    fn counts(&self) -> QueueFuture<Vec<KindCounts>>;
    fn history(&self, filter: HistoryFilter) -> QueueFuture<Vec<PastRun>>;
    fn retry(&self, id: JobId) -> QueueFuture<JobRetry>;
    fn discard(&self, id: JobId) -> QueueFuture<JobDiscard>;
    fn remove(&self, id: JobId) -> QueueFuture<JobRemoval>;
    fn pause_kind(&self, kind: &str, until: Option<When>) -> QueueFuture<()>;
    fn resume_kind(&self, kind: &str) -> QueueFuture<bool>;
    fn result(&self, id: JobId) -> QueueFuture<JobResult>;
    fn await_result(&self, id: JobId) -> QueueFuture<JobResult>;
    fn shutdown(&self, patience: Duration, grace: Duration) -> ShutdownReport;
    /// The last owner is gone.
    fn close(&self);
    /// How long a verb may block.
    fn request_timeout(&self) -> Duration;
    /// The engine as what it is, for those who know it.
    #[cfg(feature = "postgres")]
    fn into_any(self: Arc<Self>) -> Arc<dyn std::any::Any + Send + Sync>;
    /// The clock and the schema for what is stored in tables of a database; `None` if there are none.
    #[cfg(feature = "postgres")]
    fn tables(&self) -> Option<(punctual::Clock, crate::postgres::Schema)> {
        None
    }
}

/// A job that is to be stored.
#[derive(Clone, Debug)]
pub(crate) struct NewJob {
    pub(crate) name: &'static str,
    pub(crate) payload: Payload,
    pub(crate) when: When,
    pub(crate) key: Option<String>,
    pub(crate) keeps_moment: bool,
    /// If a job with the key waits or runs, nothing is stored.
    pub(crate) is_unique: bool,
    pub(crate) ordering_key: Option<String>,
    pub(crate) max_attempts: u32,
    pub(crate) priority: Priority,
    pub(crate) limit_key: Option<String>,
    pub(crate) traceparent: Option<String>,
}

/// A queue of jobs, to enqueue, move and cancel them; from [`Jobs::open`](crate::Jobs::open).
///
/// Cheap to clone; all clones are one queue. Dropping the last one closes it, as
/// [`shutdown_within`](Self::shutdown_within) does without any patience, and without waiting. The executor
/// is not shut down, and has to outlive the queue: shut the queue down first.
///
/// The verbs that block do so on PostgreSQL, for at most the [request time-out](Self::request_timeout). Each has a twin that
/// returns a [`QueueFuture`], which any runtime can await.
#[derive(Clone)]
pub struct JobQueue {
    pub(crate) engine: Arc<dyn Engine>,
    definitions: Arc<Definitions>,
    _owner: Option<Arc<Owner>>,
}

struct Owner(Arc<dyn Engine>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl JobQueue {
    pub(crate) fn owning(engine: Arc<dyn Engine>, definitions: Arc<Definitions>) -> Self {
        let owner = Some(Arc::new(Owner(Arc::clone(&engine))));
        Self { engine, definitions, _owner: owner }
    }

    #[cfg(feature = "metrics")]
    pub(crate) fn handled_names(&self) -> Vec<&'static str> {
        self.definitions.handled_names()
    }

    pub(crate) fn ends(&self) -> &Outcomes {
        &self.definitions.outcomes
    }

    pub(crate) fn borrowing(engine: Arc<dyn Engine>, definitions: Arc<Definitions>) -> Self {
        Self { engine, definitions, _owner: None }
    }

    /// Prepares a job that runs after a delay. Nothing is stored until [`enqueue`](JobBuilder::enqueue).
    pub fn after<J: Job>(&self, delay: Duration, job: J) -> JobBuilder<'_> {
        self.at(delay, job)
    }

    /// Prepares a job that runs at an [`Instant`](std::time::Instant) of the executor's clock, or when the
    /// wall clock shows a [`SystemTime`]. Nothing is stored until [`enqueue`](JobBuilder::enqueue).
    pub fn at<J: Job>(&self, when: impl Into<When>, job: J) -> JobBuilder<'_> {
        let new_job = Payload::of(&job).map(|payload| NewJob {
            name: J::NAME,
            payload,
            when: when.into(),
            key: None,
            keeps_moment: false,
            is_unique: false,
            ordering_key: None,
            max_attempts: self.definitions.max_attempts(J::NAME, attempts_of::<J>()),
            priority: Priority::Normal,
            limit_key: None,
            traceparent: None,
        });
        JobBuilder { queue: self, name: J::NAME, new_job }
    }

    /// Prepares a job that runs as soon as it can. Nothing is stored until [`enqueue`](JobBuilder::enqueue).
    pub fn now<J: Job>(&self, job: J) -> JobBuilder<'_> {
        self.at(Duration::ZERO, job)
    }

    /// Moves the waiting job with this key to another moment. Its attempts are as they were.
    ///
    /// # Errors
    ///
    /// [`InvalidName`](QueueError::InvalidName), if no job can have this key; else [`QueueError`], if the engine
    /// cannot be asked.
    pub fn reschedule(&self, key: &str, when: impl Into<When>) -> Result<Rescheduling, QueueError> {
        self.reschedule_async(key, when).wait(self.request_timeout())
    }

    /// The same as [`reschedule`](Self::reschedule), without blocking.
    pub fn reschedule_async(&self, key: &str, when: impl Into<When>) -> QueueFuture<Rescheduling> {
        match Names::Job.check(key) {
            Ok(()) => self.engine.reschedule(key, when.into()),
            Err(invalid) => QueueFuture::ready(Err(QueueError::InvalidName(invalid))),
        }
    }

    /// Cancels the job with this key, on whichever machine it is: a waiting one is removed, and a running
    /// one has its token raised and is not tried again.
    ///
    /// # Errors
    ///
    /// [`InvalidName`](QueueError::InvalidName), if no job can have this key; else [`QueueError`], if the engine
    /// cannot be asked.
    pub fn cancel(&self, key: &str) -> Result<Cancellation, QueueError> {
        self.cancel_async(key).wait(self.request_timeout())
    }

    /// The same as [`cancel`](Self::cancel), without blocking.
    pub fn cancel_async(&self, key: &str) -> QueueFuture<Cancellation> {
        match Names::Job.check(key) {
            Ok(()) => self.engine.cancel(key),
            Err(invalid) => QueueFuture::ready(Err(QueueError::InvalidName(invalid))),
        }
    }

    /// Returns how a job stands.
    ///
    /// # Errors
    ///
    /// [`QueueError`], if the engine cannot be asked.
    pub fn state(&self, id: JobId) -> Result<JobState, QueueError> {
        self.state_async(id).wait(self.request_timeout())
    }

    /// The same as [`state`](Self::state), without blocking.
    pub fn state_async(&self, id: JobId) -> QueueFuture<JobState> {
        self.engine.state(id)
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn max_attempts_of(&self, name: &str, of_kind: u32) -> u32 {
        self.definitions.max_attempts(name, of_kind)
    }

    /// Shuts the queue down. It takes no more jobs and starts none. It waits for at most `patience` for
    /// those that run; then it raises the tokens of the others, and waits for at most `grace` for these to
    /// end. A handler that then returns an error has its job released, and this attempt is not counted.
    /// A handler that still runs after that time goes on by itself, and on PostgreSQL its job is released
    /// as well, so it runs a second time.
    ///
    /// Blocks for no longer than both times together, and on PostgreSQL the [request time-out](Self::request_timeout) for releasing
    /// jobs; in memory, they count on the executor's clock. A second call returns an empty report at once. While it
    /// waits, a job that runs can still be cancelled; when it has returned, each verb fails with
    /// [`ShutDown`](QueueError::ShutDown).
    ///
    /// Does not shut down the executor, whose drop waits for a handler that still runs. To have the process end at
    /// its deadline, shut the executor down with one as well:
    /// [`shutdown_within`](punctual::Handle::shutdown_within).
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    /// use punctual_jobs::{InMemory, Jobs};
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let queue = Jobs::new().open(InMemory::on(&executor))?;
    /// let (patience, grace) = (Duration::from_secs(5), Duration::from_secs(1));
    /// let report = queue.shutdown_within(patience, grace)?;
    /// println!("{report}");
    /// # assert_eq!(report.to_string(), "0 ran, 0 released");
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`WouldDeadlock`], in a handler of this queue or in [`on_discarded`](crate::Jobs::on_discarded), which would wait for itself. The queue goes on then:
    /// the jobs that an in-memory queue releases are in the report alone.
    pub fn shutdown_within(
        &self,
        patience: Duration,
        grace: Duration,
    ) -> Result<ShutdownReport, WouldDeadlock> {
        if handling::is_in_handler_of(&self.engine) {
            return Err(WouldDeadlock::new());
        }
        Ok(self.engine.shutdown(patience, grace))
    }

    /// Returns for how long a verb of this queue may block.
    #[must_use]
    pub fn request_timeout(&self) -> Duration {
        self.engine.request_timeout()
    }
}

impl fmt::Debug for JobQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobQueue")
            .field("names", &self.definitions.kinds.keys())
            .finish_non_exhaustive()
    }
}

/// A job that is about to be enqueued; from [`JobQueue::after`] and its siblings.
#[derive(Debug)]
#[must_use = "nothing is stored until it is enqueued"]
pub struct JobBuilder<'a> {
    queue: &'a JobQueue,
    name: &'static str,
    new_job: Result<NewJob, serde_json::Error>,
}

impl JobBuilder<'_> {
    /// Gives the job a key, of 1 to 512 bytes, without a NUL. A job with this key that waits is replaced: it keeps its id, and has the
    /// payload, the moment and the settings of this one, and all its attempts. A job with this key that
    /// runs goes on, loses its key, and is not tried again; this one is another job, which may run beside it
    /// unless both have one [ordering key](Self::ordering_key).
    pub fn key(mut self, key: impl Into<String>) -> Self {
        if let Ok(new_job) = &mut self.new_job {
            (new_job.key, new_job.is_unique) = (Some(key.into()), false);
        }
        self
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
    /// assert!(second.was_skipped());
    /// assert_eq!(second.id(), first.id());
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn unique(mut self, key: impl Into<String>) -> Self {
        if let Ok(new_job) = &mut self.new_job {
            (new_job.key, new_job.is_unique) = (Some(key.into()), true);
        }
        self
    }

    /// If a waiting job is replaced that has not been tried yet, its moment stays.
    pub fn keep_moment(mut self) -> Self {
        if let Ok(new_job) = &mut self.new_job {
            new_job.keeps_moment = true;
        }
        self
    }

    /// Gives the job an ordering key, of 1 to 128 bytes, without a NUL. Of the jobs with one such key one runs at a time, on one machine, in the
    /// order of their moments. A job whose attempt has failed lets the others go first.
    pub fn ordering_key(mut self, key: impl Into<String>) -> Self {
        if let Ok(new_job) = &mut self.new_job {
            new_job.ordering_key = Some(key.into());
        }
        self
    }

    /// Gives the job a limit key, of 1 to 128 bytes, without a NUL: the tenant, the account or the service for which it is. A kind
    /// may have a [limit](crate::JobLimit) for each of them, and the limit keys of a kind with a limit take turns. A kind without a limit takes
    /// no notice of it. If a waiting job is replaced by its [key](Self::key), the new one's limit key counts. Solid Queue and Inngest: `key` of
    /// `concurrency`; River and Oban: `partition`; Hatchet: `expression`; BullMQ: `group`.
    pub fn limit_key(mut self, key: impl Into<String>) -> Self {
        if let Ok(new_job) = &mut self.new_job {
            new_job.limit_key = Some(key.into());
        }
        self
    }

    /// Sets whether the job begins before others that are due; without this call it is [`Priority::Normal`]. Every attempt
    /// has it. If a waiting job is replaced by its [key](Self::key), the new one's priority counts.
    pub fn priority(mut self, priority: Priority) -> Self {
        if let Ok(new_job) = &mut self.new_job {
            new_job.priority = priority;
        }
        self
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
    ///     Ok(tell.send(run.traceparent().map(str::to_owned))?)
    /// });
    /// let queue = jobs.open(InMemory::on(&executor))?;
    /// // With OpenTelemetry: its propagator injects the context of the current span into a map.
    /// let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    /// queue.now(Mail {}).traceparent(traceparent).enqueue()?;
    /// assert_eq!(told.recv()?.as_deref(), Some(traceparent));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn traceparent(mut self, traceparent: impl Into<String>) -> Self {
        if let Ok(new_job) = &mut self.new_job {
            new_job.traceparent = Some(traceparent.into());
        }
        self
    }

    /// Sets how many attempts this job has, at least one.
    pub fn max_attempts(mut self, max_attempts: u32) -> Self {
        if let Ok(new_job) = &mut self.new_job {
            new_job.max_attempts = clamped(max_attempts);
        }
        self
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
        let name = self.name;
        let new_job = self.new_job.map_err(|source| QueueError::Payload { name, source })?;
        let valid = Names::Kind.check(name);
        let valid = valid.and_then(|()| Names::Job.check_if_any(&new_job.key));
        let valid = valid.and_then(|()| Names::Ordering.check_if_any(&new_job.ordering_key));
        let valid = valid.and_then(|()| Names::Limit.check_if_any(&new_job.limit_key));
        let valid = valid.and_then(|()| Names::Trace.check_if_any(&new_job.traceparent));
        valid.map_err(QueueError::InvalidName)?;
        Ok(new_job)
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn tables(&self) -> Option<(punctual::Clock, crate::postgres::Schema)> {
        self.queue.engine.tables()
    }
}

/// A job that was enqueued. It has an id, by which the [result](JobQueue::await_result) of a handler that returns a value is awaited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobHandle {
    pub(crate) id: JobId,
    pub(crate) name: &'static str,
    pub(crate) is_skipped: bool,
}

impl JobHandle {
    /// Returns the id of the job.
    #[must_use]
    pub fn id(&self) -> JobId {
        self.id
    }

    /// Returns the name of the kind that was enqueued.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns `true` if nothing was stored, because a job with the [unique](JobBuilder::unique) key was there. The
    /// [id](Self::id) is that job's.
    #[must_use]
    pub fn was_skipped(&self) -> bool {
        self.is_skipped
    }
}

/// Returns how long it is until `time` by a clock that shows `now`.
pub(crate) fn until(time: SystemTime, now: SystemTime) -> Duration {
    time.duration_since(now).unwrap_or(Duration::ZERO)
}
