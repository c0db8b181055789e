//! A task: one allocation that holds a closure, then its result, and the wakers of its waiters.
//!
//! # Parts
//!
//! * A [`Node`] is what the queue, the worker and the future share. Everything that changes in it is under **one
//!   lock**, which protects the task's state ([`state`]) together with the closure and the result, so that none of
//!   the three can disagree with another.
//! * The [`payload`] is the only part that has the type of the closure. It moves closure and result in and out of the
//!   node. All decisions are compiled once: they see a [`Task`], which is a node without its types, and under its lock
//!   the [`Parts`] of it. The future knows the type of the result, and nothing else.
//! * A periodic task has a [`Plan`]: its schedule and what it has counted.
//! * What only some tasks have (a name, waiters, a token) is allocated when it is first needed ([`cell`]), and each
//!   feature that decides about its runs is one of its [`extensions`]. So a plain task is one allocation: with a closure
//!   of eight bytes, forty bytes.
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
//! A [`Run`] goes along, by reference: which run of which task it is. It knows none of the others.
//!
//! # Who may call what
//!
//! The submitter creates the node and queues it. From then on:
//!
//! | who | does |
//! |---|---|
//! | the worker that took it from the queue | `run`, then `requeue` if the verdict is `Again` |
//! | any holder of a handle, and the pool | `cancel`, at any moment |
//! | the future | `poll_done`, `take_result`, `abandon` |
//!
//! The lock is held only while the state moves. The closure is taken *out* to be run; what is left
//! over (a closure that will not run, a result that no call will take, wakers) is taken out to be dropped
//! or woken after the lock is released, through [`unwind`](crate::unwind).
//!
//! A result is published in the step that takes the list of waiters ([`awaited`]). A waker that panics
//! changes nothing: the result is there already, and the other waiters are still woken. Waiters are
//! woken **before** leftover user values are dropped ([`end`]).
//!
//! # A result that no call will take
//!
//! A future that is dropped releases the node, and the result is dropped with the node when the
//! worker releases it too. Handles beside the future would keep the node, and so the result; a
//! future that has made some therefore abandons the result explicitly. So does a future of a `Result`, whose `Err` is
//! [reported](untaken) when it is dropped.
//!
//! # The slot
//!
//! The slot of the queue finds a task's entry, for cancelling in O(log n). The future keeps the slot
//! that the task had when it was submitted. A task that is queued again or moved may have a new one, which its
//! [`Plan`] or its extras keep; it is set in the step that queues or moves the task, under the task's lock. `cancel`
//! ends the task under that lock and returns the slot. If a worker has taken the entry meanwhile, the
//! slot is out of date, which is harmless: the queue compares the task's sequence number, and no
//! number is used twice.

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
    hooks::{Drops, Hooks},
    observer::{Closures, RunFacts},
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
    outcome::{Outcome, TaskOutput, UnitOutcome},
    report::{FailureReport, FailureSource},
    run::current_task,
    state::TaskState,
};
use crate::{
    CancellationToken, RejectionReason,
    entry::{Requeue, Ticket, Timing},
    sync::Arc,
    time::Timestamp,
    trace::SubmitterSpan,
    unwind::discard,
};

impl Task {
    /// Looks at the task, or changes it, under its lock.
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

    /// Returns what the submission has to know of the plan, if there is one: why it is refused, when a worker is to take the
    /// task at the latest, and whether it has a trigger.
    pub(crate) fn look_at_plan(&self) -> (Option<RejectionReason>, Option<Timestamp>, bool) {
        self.with(|parts| {
            let look = parts.look();
            let plan = parts.plan().map(|plan| (plan.refusal(), look, plan.has_trigger()));
            plan.unwrap_or_default()
        })
    }

    /// Gives a task that is not queued yet the parts that only some tasks have.
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

    /// Raises the token of a task that was cancelled while its body ran, if the body still runs.
    pub(crate) fn signal(&self, parent: &CancellationToken) {
        if self.with(|parts| parts.stage.runs_on()) {
            self.token(parent).cancel();
        }
    }

    /// Returns `true` if the task can end although no worker of its pool runs it: its time is up at some moment, and
    /// its pool has a timer thread, or code outside the pool may run it.
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
            TaskState::Scheduled if parts.is_paused() => TaskState::Paused,
            state => state,
        })
    }

    pub(crate) fn name(&self) -> Option<Arc<str>> {
        self.with(|parts| parts.name())
    }

    fn submitter(&self) -> Option<SubmitterSpan> {
        self.with(|parts| parts.extras_if_any()?.submitter.clone())
    }

    /// Queues a task again that rests between two runs, or was put off, for `next` unless something else has been
    /// asked of it meanwhile. `enqueue` is called under the task's lock; it returns the slot of the queue, or `None`
    /// if the queue accepts the task no more.
    ///
    /// The worker that has taken an entry owns the task until it has queued it again. What is asked of the task
    /// meanwhile is noted, and followed here.
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

    /// Returns the slot of the queue that the task was given when it was last queued again; `None`
    /// if it has not been since it was submitted.
    pub(crate) fn slot(&self) -> Option<u32> {
        self.with(|parts| parts.slot())
    }

    /// Looks for the entry of the task by the ticket with which it was submitted, and again if it has been moved meanwhile.
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
    /// Queues the task again, after its extensions have changed how.
    #[inline(never)]
    fn requeue_extended(&mut self, queuing: &mut Queuing, enqueue: &mut Enqueue<'_>) -> Requeued {
        let (extensions, mut core) = self.split();
        extensions.on_requeue(&mut core, queuing);
        if queuing.ends.is_some() {
            return Requeued::Refused(queuing.ends);
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
