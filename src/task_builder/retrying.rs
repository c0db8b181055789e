//! One task that is tried until it works: a series with one moment, whose trigger has it tried again.

use std::{error::Error, ops::ControlFlow};

use super::TaskBuilder;
use crate::{
    Backoff, MissedRuns, RejectedExecutionError, ScheduledFuture,
    trigger::{Once, Trigger},
};

impl TaskBuilder<'_> {
    /// Submits the task: see [`Handle::retry`](crate::Handle::retry). A [time limit](Self::timeout) is one for each
    /// attempt, and an attempt that exceeds it has failed. A [policy](Self::on_failure) may end the task earlier than
    /// the back-off does.
    ///
    /// # Errors
    ///
    /// The same as [`Handle::execute`](crate::Handle::execute).
    #[track_caller]
    pub fn retry<F, T, E>(
        self,
        backoff: Backoff,
        mut body: F,
    ) -> Result<ScheduledFuture<T>, RejectedExecutionError>
    where
        F: FnMut() -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        let attempt = move || body().map(ControlFlow::<T>::Break);
        // An attempt that is late is made all the same: there is no later moment that would stand for it.
        self.missed_runs(MissedRuns::Coalesce).repeat(Once.retry(backoff), attempt)
    }
}
