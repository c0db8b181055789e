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
pub(crate) mod change;
pub(crate) mod counts;
pub(crate) mod engine;
pub(crate) mod error;
pub(crate) mod handling;
pub(crate) mod history;
pub(crate) mod job_builder;
pub(crate) mod listing;
pub(crate) mod machine;
#[cfg(feature = "metrics")]
mod metrics;
pub(crate) mod queue_future;
pub(crate) mod report;
pub(crate) mod results;
mod verbs;

use std::{fmt, sync::Arc, time::Duration};

use punctual::{Grace, WouldDeadlock};

use crate::{
    Job, JobBuilder, JobChange, JobId, JobState, QueueError, QueueFuture, ShutdownReport, When,
    job::{attempts_of, jobs::Definitions, names::Names, payload::Payload},
    queue::engine::{Engine, NewJob},
};

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
    pub(crate) definitions: Arc<Definitions>,
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

    pub(crate) fn borrowing(engine: Arc<dyn Engine>, definitions: Arc<Definitions>) -> Self {
        Self { engine, definitions, _owner: None }
    }

    /// Prepares a job that runs after a delay. Nothing is stored until [`enqueue`](JobBuilder::enqueue).
    pub fn after<J: Job>(&self, delay: Duration, job: J) -> JobBuilder<'_> {
        self.at(delay, job)
    }

    /// Prepares a job that runs at an [`Instant`](std::time::Instant) of the executor's clock, or when the
    /// wall clock shows a [`SystemTime`](std::time::SystemTime). Nothing is stored until [`enqueue`](JobBuilder::enqueue).
    pub fn at<J: Job>(&self, when: impl Into<When>, job: J) -> JobBuilder<'_> {
        let max_attempts = self.definitions.max_attempts(J::NAME, attempts_of::<J>());
        let new_job = Payload::of(&job).map(|payload| NewJob {
            when: when.into(),
            ..NewJob::new(J::NAME, payload, max_attempts)
        });
        let refused = |source| QueueError::Payload { name: J::NAME, source };
        JobBuilder { queue: self, new_job: new_job.map_err(refused) }
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
    pub fn reschedule(&self, key: &str, when: impl Into<When>) -> Result<JobChange, QueueError> {
        self.reschedule_async(key, when).wait(self.request_timeout())
    }

    /// The same as [`reschedule`](Self::reschedule), without blocking.
    pub fn reschedule_async(&self, key: &str, when: impl Into<When>) -> QueueFuture<JobChange> {
        match Names::JOB.check(key) {
            Ok(()) => self.engine.reschedule(key, when.into()),
            Err(invalid) => QueueFuture::ready(Err(QueueError::InvalidName(invalid))),
        }
    }

    /// Cancels the job with this key, on whichever machine it is: a waiting one is removed, and a running
    /// one has its token cancelled and is not tried again.
    ///
    /// # Errors
    ///
    /// [`InvalidName`](QueueError::InvalidName), if no job can have this key; else [`QueueError`], if the engine
    /// cannot be asked.
    pub fn cancel(&self, key: &str) -> Result<JobChange, QueueError> {
        self.cancel_async(key).wait(self.request_timeout())
    }

    /// The same as [`cancel`](Self::cancel), without blocking.
    pub fn cancel_async(&self, key: &str) -> QueueFuture<JobChange> {
        match Names::JOB.check(key) {
            Ok(()) => self.engine.cancel(key),
            Err(invalid) => QueueFuture::ready(Err(QueueError::InvalidName(invalid))),
        }
    }

    /// Returns how a job stands, and what its handler has returned, if that is kept.
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

    /// Shuts the queue down. It takes no more jobs and starts none. It waits for at most the patience of `grace`
    /// for those that run; then it cancels the tokens of the others, and waits for at most its second span
    /// ([`then`](Grace::then)) for these to end. A handler that then returns an error has its job released, and this attempt is not counted.
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
    /// use punctual::{Grace, ScheduledThreadPoolExecutor};
    /// use punctual_jobs::{InMemory, Jobs};
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let queue = Jobs::new().open(InMemory::on(&executor))?;
    /// let grace = Grace::patience(Duration::from_secs(5)).then(Duration::from_secs(1));
    /// let report = queue.shutdown_within(grace)?;
    /// println!("{report}");
    /// # assert_eq!(report.to_string(), "0 ran, 0 released");
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`WouldDeadlock`], in a handler of this queue or in [`on_discarded`](crate::Jobs::on_discarded), which would wait for itself. The queue goes on then:
    /// the jobs that an in-memory queue releases are in the report alone.
    pub fn shutdown_within(&self, grace: Grace) -> Result<ShutdownReport, WouldDeadlock> {
        if handling::is_in_handler_of(&self.engine) {
            return Err(WouldDeadlock::new());
        }
        Ok(self.engine.shutdown(grace))
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
