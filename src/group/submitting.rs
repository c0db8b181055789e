//! The verbs that submit a task to a group: each is the one of [`Group::task`].

use std::{
    error::Error,
    time::{Duration, Instant},
};

use super::Group;
use crate::{
    Backoff, Outcome, RejectedExecutionError, ScheduledFuture, TaskBuilder, TaskOutput, Trigger,
    UnitOutcome,
};

impl Group {
    /// Returns a builder that describes a task of this group before it is submitted.
    ///
    /// Every submission can fail as that to the executor does, and with
    /// [`GroupShutdown`](crate::RejectionReason::GroupShutdown) if the group was shut down. The error owns the
    /// task.
    pub fn task(&self) -> TaskBuilder<'_> {
        self.handle.task().group(self)
    }

    /// Submits a task to the group: see [`Handle::execute`](crate::Handle::execute).
    ///
    /// # Errors
    ///
    /// As [`task`](Self::task) says.
    pub fn execute<F>(&self, closure: F) -> Result<(), RejectedExecutionError>
    where
        F: FnOnce() + Send + 'static,
    {
        self.task().execute(closure)
    }

    /// Submits a task to the group: see [`Handle::submit`](crate::Handle::submit).
    ///
    /// # Errors
    ///
    /// As [`task`](Self::task) says.
    pub fn submit<F, T>(&self, closure: F) -> Result<ScheduledFuture<T>, RejectedExecutionError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: TaskOutput + Send + 'static,
    {
        self.task().submit(closure)
    }

    /// Submits a task to the group: see [`Handle::schedule`](crate::Handle::schedule).
    ///
    /// # Errors
    ///
    /// As [`task`](Self::task) says.
    pub fn schedule<F, T>(
        &self,
        delay: Duration,
        closure: F,
    ) -> Result<ScheduledFuture<T>, RejectedExecutionError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: TaskOutput + Send + 'static,
    {
        self.task().schedule(delay, closure)
    }

    /// Submits a task to the group: see [`Handle::schedule_at`](crate::Handle::schedule_at).
    ///
    /// # Errors
    ///
    /// As [`task`](Self::task) says.
    pub fn schedule_at<F, T>(
        &self,
        instant: impl Into<Option<Instant>>,
        closure: F,
    ) -> Result<ScheduledFuture<T>, RejectedExecutionError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: TaskOutput + Send + 'static,
    {
        self.task().schedule_at(instant, closure)
    }

    /// Submits a task to the group: see
    /// [`Handle::schedule_at_fixed_rate`](crate::Handle::schedule_at_fixed_rate).
    ///
    /// # Errors
    ///
    /// As [`task`](Self::task) says.
    pub fn schedule_at_fixed_rate<F, O>(
        &self,
        initial_delay: Duration,
        period: Duration,
        closure: F,
    ) -> Result<ScheduledFuture<()>, RejectedExecutionError>
    where
        F: FnMut() -> O + Send + 'static,
        O: UnitOutcome,
    {
        self.task().schedule_at_fixed_rate(initial_delay, period, closure)
    }

    /// Submits a task to the group: see
    /// [`Handle::schedule_with_fixed_delay`](crate::Handle::schedule_with_fixed_delay).
    ///
    /// # Errors
    ///
    /// As [`task`](Self::task) says.
    pub fn schedule_with_fixed_delay<F, O>(
        &self,
        initial_delay: Duration,
        delay: Duration,
        closure: F,
    ) -> Result<ScheduledFuture<()>, RejectedExecutionError>
    where
        F: FnMut() -> O + Send + 'static,
        O: UnitOutcome,
    {
        self.task().schedule_with_fixed_delay(initial_delay, delay, closure)
    }

    /// Submits a task to the group: see [`Handle::repeat`](crate::Handle::repeat).
    ///
    /// # Errors
    ///
    /// As [`task`](Self::task) says.
    ///
    /// # Panics
    ///
    /// If the trigger panics when it is asked for the first run.
    pub fn repeat<G, F, O>(
        &self,
        trigger: G,
        body: F,
    ) -> Result<ScheduledFuture<O::Value>, RejectedExecutionError>
    where
        G: Trigger,
        F: FnMut() -> O + Send + 'static,
        O: Outcome,
    {
        self.task().repeat(trigger, body)
    }

    /// Submits a task to the group: see [`Handle::retry`](crate::Handle::retry). It is a member from its first attempt to
    /// its last, and takes a permit for each attempt, not for the time in between.
    ///
    /// # Errors
    ///
    /// As [`task`](Self::task) says.
    pub fn retry<F, T, E>(
        &self,
        backoff: Backoff,
        body: F,
    ) -> Result<ScheduledFuture<T>, RejectedExecutionError>
    where
        F: FnMut() -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        self.task().retry(backoff, body)
    }
}
