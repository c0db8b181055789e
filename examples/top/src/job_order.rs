//! The orders for the selected job.

use std::{future::Future, pin::Pin};

use punctual_jobs::{JobChange, JobId, JobQueue};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobOrder {
    Retry,
    Discard,
    Remove,
}

impl JobOrder {
    /// Gives the order. What comes of it is the value of the future, which need not be polled for it to be done.
    pub(crate) fn give(
        self,
        queue: &JobQueue,
        job: JobId,
    ) -> Pin<Box<dyn Future<Output = String> + Send>> {
        let (answer, done, running) = match self {
            Self::Retry => (queue.retry_async(job), "due", "running already"),
            Self::Discard => (queue.discard_async(job), "discarded", "running"),
            Self::Remove => (queue.remove_async(job), "removed", "running, and not removed"),
        };
        Box::pin(async move {
            let outcome = match answer.await {
                Ok(JobChange::Done) => done,
                Ok(JobChange::Signalled) => "asked to stop",
                Ok(JobChange::Running) => running,
                Ok(JobChange::KeyTaken) => "left as it is: another job has its key",
                Ok(_) => "unknown",
                Err(error) => return format!("job {job}: {error}"),
            };
            format!("job {job}: {outcome}")
        })
    }
}
