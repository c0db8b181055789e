//! A task: one allocation that holds a closure, then its result, and the wakers of its waiters.
//!
//! # Parts
//!
//! * A [`Node`] is what the queue, the worker and the future share. **One lock** protects its state ([`state`])
//!   together with the closure and the result, so the three can never disagree.
//! * Only the [`payload`] knows the closure's type, and it moves closure and result in and out of the node. All
//!   decisions are compiled once: they see a [`Task`], which is a node without its types, and, under its lock, its
//!   [`Parts`].
//! * A periodic task has a [`Plan`]: its schedule and its counts.
//! * What only some tasks have (a name, waiters, a token) is allocated when it is first needed ([`cell`]), and each
//!   feature that decides about runs is one of the [`extensions`]. So a plain task with an eight-byte closure takes
//!   forty bytes.
//!
//! # From the worker to the closure
//!
//! ```text
//!   worker ──▶ Task::run ──▶ Payload::call ──▶ Call::start ──▶ Call::carry_out ──▶ Call::publish ──▶ Verdict
//!                                               (lock)           │                  (lock)
//!                                                                ▼
//!                               Hooks::invoke ──▶ before, closure, after
//! ```
//!
//! A [`Run`], passed by reference, says which run of which task it is.
//!
//! # Who may call what
//!
//! | who | does |
//! |---|---|
//! | the submitter | makes the node and queues it |
//! | the worker that took it from the queue | `run`, then `requeue` if the verdict is `Again` |
//! | any holder of a handle, and the pool | `cancel`, at any time |
//! | the future | `poll_done`, `take_result`, `abandon` |
//!
//! The lock is held only while the state changes. The worker takes the closure out to run it. A closure that will not
//! run, a result that no call will take, and wakers are taken out as well, and are dropped or woken through
//! [`unwind`](crate::unwind) after the lock is released. One step publishes the result and takes the list of waiters
//! ([`awaited`]), so a waker that panics changes nothing. Waiters are woken **before** user values are dropped
//! ([`end`]).
//!
//! # A result that no call will take
//!
//! The result is dropped with the node, once the worker and the future have released it. Other handles would keep the
//! node, so a future that has made others abandons its result when it is dropped. So does a future of a `Result`, whose
//! `Err` is then [reported](untaken).
//!
//! # The slot
//!
//! A queue slot locates a task's entry, for cancelling in O(log n). The future keeps the first one. A task that
//! is queued again or moved may get another, which its [`Plan`] or its extras record in the same step, under the
//! task's lock. A worker may have taken the entry meanwhile. The slot is then out of date, which is harmless: the queue
//! compares sequence numbers, and never reuses one.

mod alarm;
mod around;
mod awaited;
mod call;
mod cell;
mod context;
mod end;
mod extensions;
mod failure;
mod hooks;
mod observer;
mod outcome;
mod payload;
mod plan;
mod questions;
mod report;
mod run;
mod state;
mod untaken;
mod verdict;
mod worker_context;

pub(crate) use self::{
    alarm::Alarm,
    around::Around,
    call::Call,
    cell::{Extras, Parts},
    end::{Leftovers, is_releasing},
    extensions::{Core, Deferred, Extensions, Question, Queuing, Replan},
    hooks::Drops,
    observer::{Closures, Hooks, RunFacts},
    payload::{Node, Task},
    plan::{Plan, RunOutcome},
    run::Run,
    untaken::is_result,
    verdict::{Cancellation, Enqueue, Requeued, Verdict},
    worker_context::WorkerContext,
};
pub use self::{
    around::{Done, Submission, TaskRun},
    context::{TaskContext, with_context, with_context_once},
    failure::{FailedRun, FailurePolicy},
    observer::{EndedRun, Observer, Points},
    outcome::{Outcome, TaskOutput},
    report::{FailureReport, FailureSource},
    run::current_task,
    state::TaskState,
};
use crate::{
    CancellationToken, RejectionReason,
    entry::{Requeue, Ticket, Timing},
    sync::Arc,
    time::Timestamp,
    unwind::discard,
};

impl Task {
    /// Reads or changes the task, under its lock.
    pub(crate) fn with<R>(&self, look: impl FnOnce(&mut Parts<'_>) -> R) -> R {
        let mut cell = self.cell().lock();
        let mut parts = cell.open();
        let seen = look(&mut parts);
        let decided = parts.decided();
        cell.close(decided);
        seen
    }

    pub(crate) fn set_plan(&self, plan: Plan) {
        self.with(|parts| {
            if let Some(place) = &mut parts.plan {
                **place = Some(plan);
            }
        });
    }

    /// Returns why the plan is refused, by when a worker is to take the task, and whether it has a trigger.
    pub(crate) fn look_at_plan(&self) -> (Option<RejectionReason>, Option<Timestamp>, bool) {
        self.with(|parts| {
            let look = parts.look();
            let plan = parts.plan().map(|plan| (plan.refusal(), look, plan.has_trigger()));
            plan.unwrap_or_default()
        })
    }

    pub(crate) fn extend(&self, add: impl FnOnce(&mut Extras)) {
        self.with(|parts| add(parts.extras()));
    }

    /// Returns the token of the task, and makes it if there is none yet.
    pub(crate) fn token(&self, parent: &CancellationToken) -> CancellationToken {
        let made = parent.child();
        self.with(|parts| {
            made.set_limit(parts.token_limit());
            parts.extras().token.get_or_insert(made).clone()
        })
    }

    /// Cancels the token of a task that was cancelled while its body ran, if the body still runs.
    pub(crate) fn signal(&self, parent: &CancellationToken) {
        if self.with(|parts| parts.stage.runs_on()) {
            self.token(parent).cancel();
        }
    }

    /// Returns `true` if the task can end without a worker: a timer thread watches its limit, or code outside the pool
    /// may run it.
    pub(crate) fn may_end_without_worker(&self, has_timer_thread: bool) -> bool {
        self.with(|parts| {
            let expires = parts.expiry().is_some_and(|moment| moment < Timestamp::NEVER);
            has_timer_thread && expires || parts.is_given_away()
        })
    }

    /// Returns `true` if the task has not ended, and needs a worker for that.
    pub(crate) fn needs_worker(&self, has_timer_thread: bool) -> bool {
        !self.state().is_done() && !self.may_end_without_worker(has_timer_thread)
    }

    pub(crate) fn give_away(&self) {
        self.with(|parts| parts.extras().is_given_away = true);
    }

    pub(crate) fn state(&self) -> TaskState {
        self.with(|parts| match parts.stage.state() {
            TaskState::Scheduled if parts.extensions().is_some_and(|it| it.is_paused()) => {
                TaskState::Paused
            }
            state => state,
        })
    }

    pub(crate) fn name(&self) -> Option<Arc<str>> {
        self.with(|parts| parts.name())
    }

    /// Queues a task again between two runs, or after its run was put off. `enqueue` is called under the task's lock;
    /// it returns the slot of the queue, or `None` if the queue no longer accepts the task.
    ///
    /// The worker that has taken an entry owns the task until this call, which applies the changes that other threads
    /// have noted meanwhile.
    pub(crate) fn requeue(&self, next: Timestamp, enqueue: &mut Enqueue<'_>) -> Requeued {
        let mut queuing = None;
        let requeued = self.with(|parts| {
            let why = if parts.is_periodic() { Requeue::NextRun } else { Requeue::PutOff };
            if parts.is_plain() {
                return parts.enqueue(next.into(), why, enqueue);
            }
            parts.requeue_extended(queuing.insert(Queuing::new(next, why)), enqueue)
        });
        if let Some(Queuing { deferred, replaced, .. }) = queuing {
            deferred.run();
            discard(replaced);
        }
        requeued
    }

    /// Returns the slot of the queue, if it has changed since the task was submitted.
    pub(crate) fn slot(&self) -> Option<u32> {
        self.with(|parts| parts.slot())
    }

    /// Looks for the entry of the task by its first ticket, and again if it has been moved meanwhile.
    pub(crate) fn find_entry<T>(
        &self,
        submitted: Ticket,
        look: impl Fn(Ticket) -> Option<T>,
    ) -> Option<T> {
        let mut slot = self.slot();
        loop {
            let found = look(submitted.moved_to(slot));
            let now_in = self.slot();
            if found.is_some() || now_in == slot {
                return found;
            }
            slot = now_in;
        }
    }

    /// Returns how many runs there have been; `None` while one is under way.
    pub(crate) fn runs(&self) -> Option<u64> {
        self.with(|parts| {
            let runs = parts.plan().map_or(0, |plan| plan.runs);
            parts.stage.is_scheduled().then_some(runs)
        })
    }

    pub(crate) fn last_failure(&self) -> Option<FailedRun> {
        self.with(|parts| parts.extras_if_any().and_then(|extras| extras.last_failure.clone()))
    }
}

impl Parts<'_> {
    /// Queues the task again, in the way its extensions choose.
    #[inline(never)]
    fn requeue_extended(&mut self, queuing: &mut Queuing, enqueue: &mut Enqueue<'_>) -> Requeued {
        let (extensions, mut core) = self.split();
        extensions.on_requeue(&mut core, queuing);
        if queuing.ends.is_some() {
            return Err(queuing.ends);
        }
        let timing = queuing.elsewhere.unwrap_or_else(|| queuing.due.into());
        let timing = self.with_look(timing);
        self.enqueue(timing, queuing.why, enqueue)
    }

    /// Returns this timing, or an earlier one if a worker has to look at the task before it is due.
    pub(crate) fn with_look(&mut self, timing: Timing) -> Timing {
        timing.no_later_than(self.look())
    }
}

#[cfg(test)]
#[cfg(loom)]
#[path = "task/tests/exhaustive.rs"]
mod exhaustive;
#[cfg(all(test, loom))]
pub(crate) use self::exhaustive::series;
