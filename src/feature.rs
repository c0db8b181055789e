//! The features that only some tasks have, and that can refuse, delay or end runs: one module each.
//!
//! A module holds everything about its feature: the methods of the builder and of the handles, the code that the core
//! calls for a task, and the state that the pool keeps. The rest of the crate reaches the features through two lists.
//! The first, [`Extensions`], lists the points of a task's life. The second, this file, lists what a builder requests
//! ([`Requested`]), and what the pool keeps and reports ([`PoolExtensions`]). To remove a feature, remove its module,
//! its lines in the lists, and a few lines elsewhere.
//!
//! A feature may use the task but, as a rule, no other feature; one exception is [`control`], which checks whether the
//! task has a gate. The core calls most functions of a feature under the task's lock, where no user code may run, so
//! this interface is not public. Users implement a [`gate`] instead. `feature/tests/rate.rs` is a test-only rate limit.

mod at_shutdown;
mod control;
pub mod gate;
mod group;
mod limit;
mod parked;
#[cfg(all(test, not(any(shuttle, loom))))]
#[path = "feature/tests/rate.rs"]
mod rate;

use std::{io, time::Duration};

#[cfg(all(test, loom))]
pub(crate) use self::control::Change;
#[cfg(all(test, not(any(shuttle, loom))))]
pub(crate) use self::rate::RateLimit;
pub use self::{
    at_shutdown::ShutdownPolicy,
    group::{Group, GroupBuilder, GroupStatistics, GroupTermination},
};
pub(crate) use self::{
    at_shutdown::{AtShutdown, Keeps},
    control::Control,
    gate::{GateQuestion, Gated, HeldLease},
    group::Membership,
    limit::{TimeLimit, expire},
};
use self::{
    gate::RunGate,
    group::{GroupState, Groups, Joining, Roll},
    limit::Timeouts,
};
use crate::{
    RejectionReason,
    entry::Ticket,
    pool::{IfRunning, Pool, PoolRef},
    queue::DelayedWorkQueue,
    sync::Arc,
    task::{Around, Deferred, Extensions, Task},
    time::{Clock, Timestamp},
};

/// What a task's builder requests of each feature.
#[derive(Clone, Default)]
pub(crate) struct Requested {
    limit: Option<Duration>,
    /// `true` if the task runs once, at a wall-clock moment. Such a task is submitted as a series.
    pub(crate) runs_once: bool,
    group: Option<Arc<GroupState>>,
    gate: Option<Arc<dyn RunGate>>,
    /// `None` leaves the choice to the policy of the task's group or, without such a policy, to the task's kind.
    pub(crate) at_shutdown: Option<AtShutdown>,
}

impl Requested {
    /// Returns `true` if the task has a gate, and so needs a trigger that is [shareable](crate::Trigger::share).
    pub(crate) fn shares_trigger(&self) -> bool {
        self.gate.is_some()
    }

    /// If the task has a group, begins a submission to the group. Fails with the reason if the group refuses the task.
    pub(crate) fn join(&self, pool: &Arc<Pool>) -> Result<Option<Joining>, RejectionReason> {
        self.group.as_ref().map(|group| group.join(pool)).transpose()
    }

    /// Ensures that a timer thread is running, if the task has a time limit and the pool is neither closed nor driven.
    pub(crate) fn ensure_threads(&self, pool: &Arc<Pool>) -> io::Result<()> {
        if self.limit.is_some() { pool.ensure_timer_thread() } else { Ok(()) }
    }

    /// Makes the code that limits each run of a series; `None` if no time limit is set or the pool has no timer.
    pub(crate) fn around(&self, pool_ref: &PoolRef) -> Option<Around> {
        self.limit.and_then(|budget| Around::limiting(pool_ref, budget))
    }

    /// Returns `true` if [`submitted`] has to tell a feature the task's ticket.
    pub(crate) fn needs_ticket(&self) -> bool {
        self.group.is_some() || self.limit.is_some()
    }

    pub(crate) fn extensions(
        self,
        task: &Task,
        pool: &Arc<Pool>,
        has_trigger: bool,
        deadline: Timestamp,
    ) -> Extensions {
        let Self { limit, runs_once, group, gate, at_shutdown: asked } = self;
        // The task's own policy comes first, then its group's, then the submitting method's; else its kind decides.
        let of_group = group.as_ref().and_then(|group| group.at_shutdown);
        let own = asked.filter(|own| matches!(own, AtShutdown::Chosen(_)));
        let at_shutdown = own.or(of_group.map(AtShutdown::Chosen)).or(asked);
        if at_shutdown.is_some() {
            pool.policies.note_exception();
        }
        let budget = limit.filter(|_| !task.is_periodic());
        let kept = at_shutdown.unwrap_or_else(|| task.kind_at_shutdown());
        Extensions {
            limit: budget.map(|budget| Box::new(TimeLimit::new(deadline, budget))),
            control: has_trigger.then(|| Box::new(Control::of_trigger(runs_once))),
            group: group.map(|group| Box::new(Membership::new(group, kept))),
            gate: gate.map(|gate| Box::new(Gated::new(gate, Arc::downgrade(pool)))),
            at_shutdown,
            #[cfg(all(test, not(any(shuttle, loom))))]
            rate: None,
        }
    }
}

/// Tells a task's features that the submission is over. Cancels the task if the shutdown of its group does not keep the
/// task. `ticket` has a slot if the task was queued.
pub(crate) fn submitted(
    task: &Arc<Task>,
    pool_ref: &PoolRef,
    ticket: Ticket,
    due: Timestamp,
    is_delayed: bool,
) {
    if !ticket.has_slot() {
        task.leave_group();
    } else if let Err(reason) = task.enter_group(ticket, due, is_delayed) {
        pool_ref.pool().cancel(&**task, ticket, reason, IfRunning::LetReturn);
    }
    pool_ref.watch_limit(task, ticket);
}

/// What the features keep in the pool.
pub(crate) struct PoolExtensions {
    timeouts: Timeouts,
    groups: Groups,
}

impl PoolExtensions {
    pub(crate) fn new(stripes: usize, lead: Duration) -> Self {
        Self { timeouts: Timeouts::new(stripes, lead), groups: Groups::default() }
    }

    /// Returns the queue of time limits, for a driver to take from. No timer thread starts after this call.
    pub(crate) fn alarms(&self, clock: &Clock) -> Arc<DelayedWorkQueue<Arc<Task>>> {
        self.timeouts.do_without_thread(clock)
    }

    pub(crate) fn timed_out(&self) -> u64 {
        self.timeouts.exceeded.number()
    }

    /// Tells the groups how many workers the pool may now have.
    pub(crate) fn on_resize(&self, pool: &Pool) {
        // Of two threads that do this at the same time, the one that locks a group later reads the newer number.
        self.groups.tell(&mut |roll| roll.workers = pool.workers.wanted());
    }

    /// Tells the groups of a shutdown. The deferred work ends the tasks of paused groups, except those that are running
    /// or kept.
    pub(crate) fn on_shutdown(&self, pool: &Arc<Pool>, keeps: Keeps) -> Deferred {
        let mut deferred = Deferred::default();
        self.groups.tell(&mut |roll| {
            let (called_off, pool) = (roll.executor_closes(keeps), Arc::clone(pool));
            let ends = move || pool.end_called_off(called_off, keeps.reason, IfRunning::LetReturn);
            deferred.push(|| _ = ends());
        });
        deferred
    }

    /// Removes from the groups every task that is not running. Called when the pool has given its pending tasks back.
    pub(crate) fn on_drain(&self) {
        self.groups.tell(&mut Roll::dissolve);
    }

    pub(crate) fn on_termination(&self) {
        self.timeouts.close();
    }
}
