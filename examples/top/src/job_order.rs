//! The orders for the selected job.

use std::{future::Future, pin::Pin};

use punctual_jobs::{JobId, JobQueue};

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
        macro_rules! said {
            ($answer:expr) => {{
                let answer = $answer;
                Box::pin(async move {
                    match answer.await {
                        Ok(outcome) => format!("job {job}: {outcome}"),
                        Err(error) => format!("job {job}: {error}"),
                    }
                })
            }};
        }
        match self {
            Self::Retry => said!(queue.retry_async(job)),
            Self::Discard => said!(queue.discard_async(job)),
            Self::Remove => said!(queue.remove_async(job)),
        }
    }
}
