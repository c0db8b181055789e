//! Whether a shutdown keeps a task whose kind does not decide it.
//!
//! For most tasks, their kind decides: the pool has one policy for one-shot tasks and one for series. A call with
//! retries has the plan of a series but returns one value, so it counts as a one-shot task. And a task or its group may
//! have its [own policy](ShutdownPolicy). Such tasks keep it with their extensions.
//!
//! When a worker queues such a task again, the extensions ask it last, since other features choose the reason that the
//! closed queue admits or not. Once the pool has had such a task, a thread that shuts it down asks each task under that
//! task's lock.

use crate::{CancelReason, entry::Requeue, task::Task};

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

    /// Returns the same, ignoring the task's own policy.
    pub(crate) fn kind_at_shutdown(&self) -> AtShutdown {
        if self.is_periodic() { AtShutdown::Series } else { AtShutdown::OneShot }
    }
}
