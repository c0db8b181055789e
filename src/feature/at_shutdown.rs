//! What a shutdown keeps of a task whose kind does not say it.
//!
//! Most tasks are kept by their kind: one policy of the pool is for those that run once, and one for series. A call with retries
//! has the plan of a series and returns one value, so it counts as a task that runs once. And a task, or its group, may have its
//! [own policy](ShutdownPolicy). These tasks keep it with their extensions.
//!
//! The extensions ask it last when a worker queues such a task again, since other features choose the reason that the closed
//! queue admits or not. A thread that shuts the pool down asks each task under its lock, once the pool has had such a task.

use crate::{CancelReason, entry::Requeue, task::Task};

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

/// Which tasks a shutdown keeps, and why the others end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Keeps {
    /// Those that are due, and those whose own policy says so.
    pub(crate) any: bool,
    pub(crate) delayed: bool,
    pub(crate) periodic: bool,
    pub(crate) reason: CancelReason,
}

impl Keeps {
    pub(crate) fn none(reason: CancelReason) -> Self {
        Self { any: false, delayed: false, periodic: false, reason }
    }

    pub(crate) fn keeps(self, at_shutdown: AtShutdown, is_delayed: bool) -> bool {
        match at_shutdown {
            AtShutdown::OneShot if is_delayed => self.delayed,
            AtShutdown::OneShot => self.any,
            AtShutdown::Series => self.periodic,
            AtShutdown::Chosen(policy) => self.any && policy == ShutdownPolicy::Keep,
        }
    }

    /// Restricts `kept` to no more than this, and returns it: a policy that is switched on again brings nothing back.
    pub(super) fn narrow(self, kept: &mut Option<Self>) -> Self {
        let before = kept.unwrap_or(self);
        *kept.insert(Self {
            any: before.any && self.any,
            delayed: before.delayed && self.delayed,
            periodic: before.periodic && self.periodic,
            reason: self.reason,
        })
    }

    /// Fails if a shutdown ends such a task.
    pub(super) fn admit(
        kept: Option<Self>,
        at: AtShutdown,
        is_delayed: bool,
    ) -> Result<(), CancelReason> {
        kept.filter(|it| !it.keeps(at, is_delayed)).map_or(Ok(()), |it| Err(it.reason))
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
