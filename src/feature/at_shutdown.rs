//! What decides whether a shutdown keeps a task.
//!
//! For most tasks, the task's kind decides: the pool has one policy for one-shot tasks and one for series. A call with
//! retries, and a single call at a wall-clock moment, have the plan of a series but return one value, so they count as
//! one-shot tasks. A task or its group may also have its [own policy](ShutdownPolicy). These exceptions are stored in
//! the task's extensions.
//!
//! When a worker queues such a task again, this feature comes last, since it replaces the reason for queuing that other
//! features have chosen. Once the pool has had such a task, a thread that shuts the pool down checks every task in the
//! queue for an exception, under that task's lock.

use crate::{CancelReason, entry::Requeue, task::Task};

/// What a graceful [shutdown](crate::Handle::shutdown) does to one task or to a group's tasks, whatever the
/// executor's policies are; see [`TaskBuilder::on_shutdown`](crate::TaskBuilder::on_shutdown).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ShutdownPolicy {
    /// The task goes on as if there were no shutdown, and the executor terminates only after the task has ended.
    Keep,
    /// The task is cancelled unless it is running, even if it is already due. A running task does not run again.
    Cancel,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtShutdown {
    /// The task is kept if it is due; otherwise the policy for one-shot tasks decides.
    OneShot,
    /// The policy for series decides.
    Series,
    /// The task or its group has a policy of its own.
    Chosen(ShutdownPolicy),
}

impl AtShutdown {
    /// Returns the reason for queuing the task again, in place of `why`. A closed queue admits only some reasons.
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

/// Which tasks a shutdown keeps, and why all other tasks end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Keeps {
    /// `true` if due one-shot tasks, and tasks whose own policy is `Keep`, are kept.
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

    /// Restricts `kept` to what `self` also keeps, and returns the result. What was once excluded stays excluded.
    pub(super) fn narrow(self, kept: &mut Option<Self>) -> Self {
        let before = kept.unwrap_or(self);
        *kept.insert(Self {
            any: before.any && self.any,
            delayed: before.delayed && self.delayed,
            periodic: before.periodic && self.periodic,
            reason: self.reason,
        })
    }

    /// Fails with the shutdown's reason if `kept` excludes the task. `None` excludes no task.
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

    /// Returns the task's kind, which decides unless the task is an exception. Takes no lock.
    pub(crate) fn kind_at_shutdown(&self) -> AtShutdown {
        if self.is_periodic() { AtShutdown::Series } else { AtShutdown::OneShot }
    }
}
