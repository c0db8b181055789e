//! What a queue asks of the engine that keeps its jobs: the seam between the two engines and all else.

#[cfg(feature = "postgres")]
use std::sync::Arc;
use std::time::Duration;

use punctual::Grace;

use crate::{
    Cancellation, HistoryFilter, JobDiscard, JobFilter, JobId, JobRemoval, JobResult, JobRetry,
    JobState, JobStatus, KindCounts, PastRun, Priority, QueueFuture, Rescheduling, ShutdownReport,
    When, job::payload::Payload, queue::batch::Batch,
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
    fn shutdown(&self, grace: Grace) -> ShutdownReport;
    /// The last owner is gone.
    fn close(&self);
    fn request_timeout(&self) -> Duration;
    /// The engine as what it is, for those who know it.
    #[cfg(feature = "postgres")]
    fn into_any(self: Arc<Self>) -> Arc<dyn std::any::Any + Send + Sync>;
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

/// A job that was enqueued. It has an id, by which the [result](crate::JobQueue::await_result) of a handler that returns a value is awaited.
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

    /// Returns `true` if nothing was stored, because a job with the [unique](crate::JobBuilder::unique) key was there. The
    /// [id](Self::id) is that job's.
    #[must_use]
    pub fn was_skipped(&self) -> bool {
        self.is_skipped
    }
}

impl NewJob {
    /// A job that is due at once, of which nothing else is said.
    pub(crate) fn new(name: &'static str, payload: Payload, max_attempts: u32) -> Self {
        Self {
            name,
            payload,
            when: When::After(Duration::ZERO),
            key: None,
            keeps_moment: false,
            is_unique: false,
            ordering_key: None,
            max_attempts,
            priority: Priority::Normal,
            limit_key: None,
            traceparent: None,
        }
    }

    /// Returns the job that a tick enqueues. Its own ordering key keeps the runs from overlapping.
    pub(crate) fn of_tick(
        schedule: &str,
        name: &'static str,
        payload: Payload,
        max_attempts: u32,
    ) -> Self {
        let ordering_key = Some(format!("every {schedule}"));
        Self { ordering_key, ..Self::new(name, payload, max_attempts) }
    }

    /// Replaces a job that is not stored yet: if the moment of that one is to stay, this one has it.
    pub(crate) fn take_place_of(&mut self, former: &Self) {
        if self.keeps_moment {
            (self.when, self.keeps_moment) = (former.when, former.keeps_moment);
        }
    }
}
