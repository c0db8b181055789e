//! What a queue asks of the engine that keeps its jobs: the seam between the two engines and all else.

#[cfg(feature = "postgres")]
use std::sync::Arc;
use std::time::Duration;

use punctual::Grace;

use crate::{
    HistoryFilter, JobChange, JobFilter, JobId, JobState, JobStatus, KindCounts, PastRun, Priority,
    QueueFuture, ShutdownReport, When, job::payload::Payload, queue::batch::Batch,
};

/// The engine that keeps the jobs.
pub(crate) trait Engine: Send + Sync + 'static {
    fn enqueue(&self, new_job: NewJob) -> QueueFuture<JobHandle>;
    fn enqueue_all(&self, batch: Batch) -> QueueFuture<Vec<JobHandle>>;
    fn reschedule(&self, key: &str, when: When) -> QueueFuture<JobChange>;
    fn cancel(&self, key: &str) -> QueueFuture<JobChange>;
    fn state(&self, id: JobId) -> QueueFuture<JobState>;
    fn list(&self, filter: JobFilter) -> QueueFuture<Vec<JobStatus>>;
    fn counts(&self) -> QueueFuture<Vec<KindCounts>>;
    fn history(&self, filter: HistoryFilter) -> QueueFuture<Vec<PastRun>>;
    fn retry(&self, id: JobId) -> QueueFuture<JobChange>;
    fn discard(&self, id: JobId) -> QueueFuture<JobChange>;
    fn remove(&self, id: JobId) -> QueueFuture<JobChange>;
    fn pause_kind(&self, kind: &str, until: Option<When>) -> QueueFuture<()>;
    fn resume_kind(&self, kind: &str) -> QueueFuture<bool>;
    fn await_result(&self, id: JobId) -> QueueFuture<JobState>;
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

/// A job that was enqueued.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobHandle {
    /// The id of the job, by which the [value](crate::JobQueue::await_result) that its handler returns is awaited.
    pub id: JobId,
    /// The name of the kind that was enqueued.
    pub name: &'static str,
    /// Nothing was stored, because a job with the [unique](crate::JobBuilder::unique) key was there. The id is that job's.
    pub was_skipped: bool,
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
