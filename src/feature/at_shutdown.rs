//! Whether a shutdown keeps a task whose kind does not decide it.
//!
//! For most tasks, their kind decides: the pool has one policy for one-shot tasks and one for series. A call with
//! retries has the plan of a series but returns one value, so it counts as a one-shot task. And a task or its group may
//! have its [own policy](ShutdownPolicy). Such tasks keep it with their extensions.
//!
//! When a worker queues such a task again, the extensions ask it last, since other features choose the reason that the
//! closed queue admits or not. Once the pool has had such a task, a thread that shuts it down asks each task under that
//! task's lock.

use crate::{entry::Requeue, task::Task};

/// What a graceful [shutdown](crate::Handle::shutdown) does to one task, or to those of a group, whatever the
/// executor's policies are; see [`TaskBuilder::on_shutdown`](crate::TaskBuilder::on_shutdown).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ShutdownPolicy {
    /// The task goes on as if nothing had happened, and the executor ends after it.
    Keep,
    /// The task is cancelled unless it is running, even if it is already due. A running task does not run again.
    Cancel,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtShutdown {
    /// It is kept if it is due, and otherwise by the policy for one-shot tasks.
    OneShot,
    /// It is kept by the policy for series.
    Series,
    /// It has a policy of its own.
    Chosen(ShutdownPolicy),
}

impl AtShutdown {
    /// Returns the reason with which such a task is queued again.
    pub(crate) fn reason(self, why: Requeue) -> Requeue {
        use Requeue::{Kept, NextRun, PutOff, SeriesTurn, Turn, Unkept};
        match (self, why) {
            (Self::Chosen(ShutdownPolicy::Cancel), _) => Unkept,
            (Self::Chosen(ShutdownPolicy::Keep), NextRun | PutOff) => Kept,
            (Self::OneShot, NextRun) => PutOff,
            (Self::Chosen(ShutdownPolicy::Keep) | Self::OneShot, SeriesTurn) => Turn,
            (_, why) => why,
        }
    }
}

impl Task {
    /// Returns what decides whether a shutdown keeps the task. Takes the task's lock.
    pub(crate) fn at_shutdown(&self) -> AtShutdown {
        let own = self.with(|parts| parts.extensions()?.at_shutdown);
        own.unwrap_or_else(|| self.kind_at_shutdown())
    }

    /// Returns the same for a task without a policy of its own.
    pub(crate) fn kind_at_shutdown(&self) -> AtShutdown {
        if self.is_periodic() { AtShutdown::Series } else { AtShutdown::OneShot }
    }
}
