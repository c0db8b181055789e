//! What a shutdown keeps of a task whose kind does not say it.
//!
//! Most tasks are kept by their kind: one policy of the pool is for those that run once, and one for series. A call with retries
//! has the plan of a series and returns one value, so it counts as a task that runs once. And a task, or its group, may have its
//! [own policy](ShutdownPolicy). These tasks keep it with their extensions.
//!
//! The extensions ask it last when a worker queues such a task again, since other features choose the reason that the closed
//! queue admits or not. A thread that shuts the pool down asks each task under its lock, once the pool has had such a task.

use crate::{entry::Requeue, task::Task};

/// The consequence of a graceful [shutdown](crate::Handle::shutdown) for one task, or for those of a group, whatever
/// the executor's policies are; see [`TaskBuilder::on_shutdown`](crate::TaskBuilder::on_shutdown).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ShutdownPolicy {
    /// The task goes on as if nothing had happened, and the executor ends after it.
    Keep,
    /// The task is cancelled unless it runs, even if it is due already. If it runs it does not run again.
    Cancel,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtShutdown {
    /// It is kept if it is due, and otherwise by the policy for tasks that run once.
    OneShot,
    /// It is kept by the policy for series.
    Series,
    /// It has a policy of its own.
    Chosen(ShutdownPolicy),
}

impl AtShutdown {
    /// Returns the reason for which a task is queued again.
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

    /// Returns the same for a task that has none of its own.
    pub(crate) fn kind_at_shutdown(&self) -> AtShutdown {
        if self.is_periodic() { AtShutdown::Series } else { AtShutdown::OneShot }
    }
}
