//! The argument of the callback for slow runs.

use std::{fmt, panic::Location, time::Duration};

use super::TaskContext;
use crate::{TaskId, sync::Arc, time::Timestamp};

/// A run that takes longer than its set time: the argument of
/// [`Builder::on_slow_run`](crate::Builder::on_slow_run). Its `Display` is a line for a log.
#[derive(Clone, Debug)]
pub struct SlowRun {
    id: TaskId,
    name: Option<Arc<str>>,
    run_number: u64,
    running_for: Duration,
    limit: Duration,
    scheduled_at: &'static Location<'static>,
}

impl SlowRun {
    /// Describes a run that has taken longer than `limit`; the clock shows `now`.
    pub(crate) fn of(
        run: &TaskContext,
        now: Timestamp,
        limit: Duration,
        scheduled_at: &'static Location<'static>,
    ) -> Self {
        let (name, running_for) = (run.name(), now.since(run.started));
        let (id, run_number) = (run.id, run.number);
        Self { id, name, run_number, running_for, limit, scheduled_at }
    }

    /// Returns the id of the task.
    pub fn id(&self) -> TaskId {
        self.id
    }

    /// Returns the name of the task, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns which run of the task it is, 1 for the first.
    pub fn run_number(&self) -> u64 {
        self.run_number
    }

    /// Returns how long the run had taken when this was reported.
    pub fn running_for(&self) -> Duration {
        self.running_for
    }

    /// Returns how long it was to take at most.
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// Returns where the task was scheduled: the call of [`schedule`](crate::Handle::schedule), for
    /// instance.
    pub fn scheduled_at(&self) -> &'static Location<'static> {
        self.scheduled_at
    }
}

impl fmt::Display for SlowRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "run {} of task {}", self.run_number, self.id)?;
        if let Some(name) = &self.name {
            write!(f, " {name:?}")?;
        }
        let Self { running_for, limit, scheduled_at, .. } = self;
        write!(f, " has taken {running_for:?}, longer than {limit:?}; scheduled at {scheduled_at}")
    }
}
