//! A task: one allocation for a closure and, later, its result.
//!
//! # Parts
//!
//! * A [`Node`] is what the queue, the worker and the future share. **One lock** protects its state ([`state`])
//!   together with the closure and the result, so the three can never disagree.
//! * Only the [`payload`] knows the closure's type; it moves the closure and the result into and out of the node. The
//!   code that decides what happens to a task is compiled once: it sees a [`Task`], which is a type-erased node, and,
//!   under the lock, the node's [`Parts`].
//! * A periodic task has a [`Plan`]: its schedule, its failure policy and its counts.
//! * Only some tasks have [`Extras`] ([`cell`]), allocated when first needed: among them a name, waiters, a token, and
//!   the [`extensions`] (the features that decide whether and when the task runs). A plain task has no extras. A plain
//!   one-shot task takes forty bytes if its closure and its result take eight each.
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
//! A [`Run`], passed by reference, identifies the task and the run.
//!
//! # Who may call what
//!
//! | who | does |
//! |---|---|
//! | the submitter | makes the node and queues it |
//! | the worker that took the task from the queue | `run`, then `requeue` if the verdict is `Again` |
//! | any holder of a handle, and the pool | `cancel`, at any time |
//! | the future | `poll_done`, `take_result`, `abandon` |
//!
//! No user code runs under the lock. The worker takes the closure out to run it. A thread may also take out wakers, a
//! closure that will not run, or a result that no call will take. After releasing the lock, the thread calls or drops
//! them through [`unwind`](crate::unwind). One step publishes the result and takes out the list of waiters
//! ([`awaited`]), so a waker that panics can no longer affect the result. Waiters are woken **before** the values that
//! the task leaves behind are dropped ([`end`]).
//!
//! # A result that no call will take
//!
//! Such a result is dropped with the node, once both the worker and the future have released the node. A handle that
//! the future has made also keeps the node alive. So when a future that has made a handle is dropped, the future
//! abandons the result. A future of a `Result` always abandons the result, and an `Err` is then [reported](untaken).
//!
//! # The slot
//!
//! A queue slot locates a task's entry, so that cancelling takes O(log n). The future keeps the first slot. A task that
//! is queued again or moved may get another slot, which its [`Plan`] or its [`Extras`] record in the same step, under
//! the task's lock. If a worker has taken the entry by the time a thread uses the slot, the slot is out of date, which
//! is harmless: the queue compares sequence numbers, and never reuses one.

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
};

impl Task {
    /// Calls `look` with the task's parts, under the task's lock, and keeps what `look` changes in them.
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

    /// Returns the reason to refuse the plan, if any; the moment by which a worker has to check the clock, if any; and
    /// whether the plan has a trigger.
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

    /// Returns the token of the task. Makes one, a child of `parent`, if there is none yet.
    pub(crate) fn token(&self, parent: &CancellationToken) -> CancellationToken {
        let made = parent.child();
        self.with(|parts| {
            made.set_limit(parts.token_limit());
            parts.extras().token.get_or_insert(made).clone()
        })
    }

    /// Cancels the token of a task that was cancelled during a run, if the body is still running.
    pub(crate) fn signal(&self, parent: &CancellationToken) {
        if self.with(|parts| parts.stage.runs_on()) {
            self.token(parent).cancel();
        }
    }

    /// Returns `true` if a timer thread watches the task's time limit, or code outside the pool may run the task.
    pub(crate) fn may_end_without_worker(&self, has_timer_thread: bool) -> bool {
        self.with(|parts| {
            let expires = parts.expiry().is_some_and(|moment| moment < Timestamp::NEVER);
            has_timer_thread && expires || parts.is_given_away()
        })
    }

    /// Returns `true` if the task has not ended, and cannot end without a worker.
    pub(crate) fn needs_worker(&self, has_timer_thread: bool) -> bool {
        !self.state().is_done() && !self.may_end_without_worker(has_timer_thread)
    }

    pub(crate) fn give_away(&self) {
        self.with(|parts| parts.extras().is_given_away = true);
    }

    #[inline(never)]
    pub(crate) fn state(&self) -> TaskState {
        self.with(|parts| match parts.stage.state() {
            TaskState::Scheduled if parts.extensions().is_some_and(|it| it.is_paused()) => {
                TaskState::Paused
            }
            state => state,
        })
    }

    #[inline(never)]
    pub(crate) fn name(&self) -> Option<Arc<str>> {
        self.with(|parts| parts.name())
    }

    /// Queues the task again: for its next run, or for the same run if it was put off. Calls `queue` under the task's
    /// lock. The caller does the deferred work.
    ///
    /// While a worker has the task, other threads only note their changes to its plan. This call applies them.
    pub(crate) fn requeue(&self, next: Timestamp, queue: &mut Enqueue<'_>) -> (Requeued, Deferred) {
        self.with(|parts| {
            let why = if parts.is_periodic() { Requeue::NextRun } else { Requeue::PutOff };
            if parts.is_plain() {
                return (parts.enqueue(next.into(), why, queue), Deferred::default());
            }
            parts.requeue_extended(Queuing::new(next, why), queue)
        })
    }

    pub(crate) fn slot(&self) -> Option<u32> {
        self.with(|parts| parts.slot())
    }

    /// Calls `look` with the ticket of the task's entry. If `look` finds nothing and the slot has changed meanwhile,
    /// tries again.
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

    /// Returns how many runs a waiting task has had; `None` if it is running or has ended.
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
    /// Queues the task again as its extensions choose, unless an extension ends the task.
    #[inline(never)]
    fn requeue_extended(&mut self, mut to: Queuing, put: &mut Enqueue<'_>) -> (Requeued, Deferred) {
        let (extensions, mut core) = self.split();
        extensions.on_requeue(&mut core, &mut to);
        if to.ends.is_some() {
            return (Err(to.ends), to.deferred);
        }
        let timing = self.with_look(to.elsewhere.unwrap_or_else(|| to.due.into()));
        (self.enqueue(timing, to.why, put), to.deferred)
    }

    /// Returns `timing`, brought forward if a worker has to check the clock before the task is due.
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
