//! A task: one allocation that holds a closure, then its result, and the wakers of its waiters.
//!
//! # What it consists of
//!
//! * A [`Job`] is what is to be run: [`OneShot`] is consumed by its only run, [`Periodic`] lends its
//!   closure to each run and plans the next.
//! * `Task<J>` is the node that the queue, the worker and the future share. Everything that changes
//!   in it is under **one lock**, which protects the task's state ([`state`]) together with the
//!   closure and the result, so that none of the three can disagree with another.
//! * What only some tasks have (a name, waiters, a token, a time limit, a gate) is allocated when it is first
//!   needed ([`cell`]). So a plain task is one allocation: with a closure of eight bytes, forty.
//!
//! The types of closure and result are erased by two traits: a worker sees a [`Runnable`], a future
//! sees a [`Claim<T>`].
//!
//! # From the worker to the closure
//!
//! ```text
//!   worker ──▶ Task::run ──▶ Job::run ──▶ Invocation::call ──▶ before, wrapper, closure, after
//!                 │             │
//!                 │ takes the   │ plans the
//!                 ▼ job         ▼ next run
//!              Stage::start  RunOutcome ──▶ Task::finish or Task::rest ──▶ Verdict
//! ```
//!
//! A [`Run`] goes along, by reference: which run of which task it is. It knows none of the others. A task with
//! a gate takes a way of its own from `Task::run` to `Job::run`, on which the gate is asked ([`gated`]).
//!
//! # Who may touch what
//!
//! The submitter creates the node and queues it. From then on:
//!
//! | who | does |
//! |---|---|
//! | the worker that took it from the queue | `run`, then `rearm` if the verdict is `Again` |
//! | any holder of a handle, and the pool | `cancel`, at any moment |
//! | the future | `poll_done`, `claim`, `abandon` |
//!
//! The lock is held only while the state moves. The closure is taken *out* to be run; what is left
//! over (a closure that will not run, a result that nobody wants, wakers) is taken out to be dropped
//! or woken after the lock is released, through [`unwind`](crate::unwind).
//!
//! A result is published under the lock, in the same step in which the list of waiters is taken; a
//! waiter looks for the result and registers in one step, too. So no waiter is missed. A waker that
//! panics changes nothing: the result is published already, and the other waiters are still woken.
//!
//! Waiters are woken **before** leftover user values are dropped: a captured executor joins its
//! workers on drop, and one of them may be waiting for this very task.
//!
//! # A result that nobody wants
//!
//! A future that is dropped releases the node, and the result is dropped with the node when the
//! worker releases it too. Handles beside the future would keep the node, and so the result; a
//! future that has made some therefore [abandons](Claim::abandon) the result explicitly.
//!
//! # The slot
//!
//! The slot of the queue finds a task's entry, for cancelling in O(log n). The future keeps the slot
//! that the task had when it was submitted. A periodic task that is queued again has a new one, which
//! its [`Job`] keeps; it is set in the step that queues the task, under the task's lock. `cancel`
//! ends the task under that lock and returns the slot. If a worker has taken the entry meanwhile, the
//! slot is out of date, which is harmless: the queue compares the task's sequence number, and no
//! number is used twice.

mod alarm;
mod between_runs;
mod calls;
mod cell;
mod claim;
mod context;
mod control;
mod decorate;
mod failure;
mod gated;
mod group;
mod grouped;
mod hooks;
mod job;
mod missed_runs;
mod outcome;
mod period;
mod report;
mod returned;
mod run;
mod runnable;
mod state;
mod triggered;
mod with_context;
mod worker_context;

pub(crate) use self::{
    alarm::Alarm,
    calls::Pace,
    cell::{Attachment, Observation},
    claim::{Awaited, Claim},
    control::{Change, ChooseDeadline, MoveEntry, Moved},
    decorate::Wrapper,
    group::{Counted, Dispatcher, GroupLimits, GroupState, Joining, Keeps, Listed},
    grouped::{Comeback, InGroup},
    hooks::{Drops, Hooks},
    job::{Job, OneShot, Periodic},
    period::{Period, Shared},
    run::{CurrentRun, Run},
    runnable::{Cancellation, Changed, Enqueue, Runnable, Verdict},
    worker_context::{OverLimit, WorkerContext},
};
pub use self::{
    context::TaskContext,
    decorate::{Done, Submission, TaskRun},
    failure::{FailedRun, FailurePolicy},
    missed_runs::MissedRuns,
    outcome::Outcome,
    report::{FailureReport, FailureSource},
    returned::{TaskOutput, UnitOutcome},
    run::current_task,
    state::TaskState,
    with_context::{with_context, with_context_once},
};
use std::{task::Waker, time::Duration};

use self::{
    cell::TaskCell,
    hooks::Invocation,
    job::RunOutcome,
    state::{CancelOutcome, Ending, Stage},
    triggered::WallView,
};
use crate::{
    CancelReason, CancellationToken, Failure,
    statistics::Ended,
    sync::{Arc, Mutex, MutexGuard, rank},
    time::{Clock, Timestamp},
    trace::SubmitterSpan,
    unwind::{discard, discard_with, wake_all},
};

/// The node that queue, worker and future share; see the [module](self).
pub(crate) struct Task<J: Job>(Mutex<TaskCell<J>, { rank::OUTERMOST }>);

impl<J: Job> Task<J> {
    /// A task of which nothing is said but what it runs.
    #[inline(always)]
    pub(crate) fn plain(job: J) -> Self {
        Self(Mutex::new(TaskCell::new(job)))
    }

    pub(crate) fn new(job: J, name: Option<Arc<str>>, wrapper: Option<Wrapper>) -> Self {
        let has_trigger = job.has_trigger();
        let mut cell = TaskCell::new(job);
        if name.is_some() || wrapper.is_some() || has_trigger {
            let extras = cell.extras();
            (extras.name, extras.wrapper) = (name, wrapper);
        }
        Self(Mutex::new(cell))
    }

    /// Adds what is watched of the task to one that is not queued yet.
    pub(crate) fn observed(self, observation: Observation) -> Self {
        if observation.is_any() {
            self.0.lock().extras().observation = observation;
        }
        self
    }

    /// Adds a time limit, `budget` after `deadline`, to a task that is not queued yet.
    pub(crate) fn limited(self, deadline: Timestamp, budget: Duration) -> Self {
        self.0.lock().set_limit(deadline, budget);
        self
    }

    /// Ends the task after its last run, or as timed out if its time `is_over`, and drops what it
    /// leaves. A run is counted only if it `is_run`.
    #[inline(always)]
    fn finish(
        &self,
        ending: Ending<J::Output>,
        is_over: bool,
        is_run: bool,
        (run, hooks): (&Run, &Hooks),
    ) -> Verdict {
        let has_failed = ending.is_err();
        let failure = ending.as_ref().err().filter(|_| J::IS_PERIODIC).map(|f| run.failure(f));
        let mut cell = self.0.lock();
        let timed_out = is_over && matches!(cell.time_out(), CancelOutcome::Running);
        let unwanted = cell.stage().finish(ending);
        let ended = match unwanted {
            Some(_) => Ended::Cancelled,
            None if has_failed => Ended::Failed,
            None => Ended::Completed,
        };
        run.count_end(is_run, has_failed, ended);
        if failure.is_some() {
            cell.extras().last_failure = failure;
        }
        self.release(cell, timed_out, hooks.drops(run.id()));
        if unwanted.is_some() {
            self.discard(unwanted, hooks.drops(run.id()));
        }
        if timed_out { Verdict::TimedOut } else { Verdict::Ended }
    }

    /// Completes a call that has ended the task other than by a run: releases the lock, wakes the
    /// waiters, and drops what is left over. Returns where the task was found.
    fn complete_cancel(
        &self,
        mut cell: MutexGuard<'_, TaskCell<J>>,
        found: CancelOutcome<J>,
        timed_out: bool,
        drops: Drops<'_>,
    ) -> Cancellation {
        let (job, found) = match found {
            CancelOutcome::TooLate => return Cancellation::TooLate,
            CancelOutcome::Waiting(job) => {
                let slot = job.slot().or_else(|| cell.slot());
                (Some(job), Cancellation::Waiting(slot))
            }
            CancelOutcome::Running => (None, Cancellation::Running),
        };
        self.release(cell, timed_out, drops);
        self.discard(job, drops);
        found
    }

    /// Releases the lock of a task that has ended, wakes its waiters, and drops what it leaves. A
    /// plain task has neither waiters nor leftovers.
    #[inline]
    fn release(&self, cell: MutexGuard<'_, TaskCell<J>>, timed_out: bool, drops: Drops<'_>) {
        if !cell.is_plain() {
            self.release_extended(cell, timed_out, drops);
        }
    }

    #[inline(never)]
    fn release_extended(
        &self,
        mut cell: MutexGuard<'_, TaskCell<J>>,
        timed_out: bool,
        drops: Drops<'_>,
    ) {
        let effects = cell.end_in_group();
        let unclaimed = cell.unclaimed();
        let leftovers = cell.take_leftovers();
        drop(cell);
        effects.carry_out();
        match &leftovers.token {
            Some(token) if timed_out => token.cancel(),
            Some(token) => token.set_limit(None),
            None => {}
        }
        wake_all(leftovers.waiters);
        self.discard(leftovers.wrapper, drops);
        self.discard(leftovers.attachment, drops);
        drops.discard(leftovers.gate);
        discard(leftovers.submitter);
        self.discard(unclaimed, drops);
    }

    /// Drops a user value. A panic in its drop is reported, and goes no further.
    #[inline]
    fn discard<V>(&self, value: V, drops: Drops<'_>) {
        discard_with(value, |panic| drops.report(self.name(), Failure::of_panic(panic)));
    }
}

impl<J: Job> Runnable for Task<J> {
    fn run(&self, run: &Run, hooks: &Hooks) -> Verdict {
        let mut cell = self.0.lock();
        let (mut name, mut wrapper, mut limit) = (None, None::<Wrapper>, None);
        let (mut is_extra, mut is_asked) = (false, false);
        if !cell.is_plain() {
            if cell.is_called_off() {
                return Verdict::Cancelled(CancelReason::Requested);
            }
            cell.extras().ignores_limit = !run.keeps_limits();
            limit = cell.limit();
            if limit.is_some_and(|limit| limit <= run.started()) {
                return self.time_out_unrun(cell, run, hooks);
            }
            is_extra = cell.control().is_some_and(|control| control.is_extra(run.planned()));
            let job = cell.stage().job().filter(|_| !is_extra);
            let wall = job.and_then(|job| job.tick_on_wall()?.checked_add(job.offset()));
            run.plan_on_wall(wall);
            if !is_extra && run.keeps_limits() {
                match cell.stage().job().and_then(|job| job.start_on_wall(run.clock())) {
                    None | Some(WallView::Due(_)) => {}
                    Some(WallView::Waits(estimate)) => return Verdict::AgainOnWall(estimate),
                    Some(WallView::AsksAgain(_)) => return self.ask_again(cell, run, hooks),
                }
            }
            if run.keeps_limits() {
                match cell.ask_group(is_extra, run) {
                    Ok(is_in_group) => is_asked = is_in_group,
                    Err(verdict) => return verdict,
                }
            }
            if let Some(control) = cell.control().filter(|_| is_extra) {
                control.start_extra();
            }
            if run.keeps_limits() && cell.extras().gate.is_some() {
                match self.pass_gate(cell, is_extra, limit, (run, hooks)) {
                    Ok(alive) => cell = alive,
                    Err(verdict) => return verdict,
                }
                is_asked = true;
            }
            let extras = cell.extras();
            (name, wrapper) = (extras.name.clone(), extras.wrapper.take());
            #[cfg(feature = "histograms")]
            run.record_in(extras.observation.recorders.as_ref());
        }
        let Some(job) = cell.stage().start() else {
            run.stats().count_cancelled();
            drop(cell);
            discard(wrapper);
            return Verdict::TooLate;
        };
        drop(cell);
        run.begin(&job, name);
        let mut job = job;
        if job.has_deadline() {
            job = match self.in_time(job, &mut wrapper, is_extra, (run, hooks)) {
                Ok(job) => job,
                // The wrapper has been dropped.
                Err(verdict) => return verdict,
            };
        }
        let ran = job.run(Invocation { run, hooks, wrapper: wrapper.as_mut(), is_extra });
        if is_asked {
            self.leave_gate(&ran, is_extra, run, hooks);
        }
        run.stats().leave();
        match ran {
            RunOutcome::Ended(ending) => {
                if wrapper.is_some() {
                    self.discard(wrapper, hooks.drops(run.id()));
                }
                let is_over = limit.is_some_and(|limit| limit <= run.clock().read());
                self.finish(ending, is_over, true, (run, hooks))
            }
            RunOutcome::Exhausted => self.exhaust(wrapper, true, run, hooks),
            RunOutcome::Again(job, next) => self.rest(job, next, wrapper, None, run, hooks),
            RunOutcome::Failed(job, next, panic) => {
                self.rest(job, next, wrapper, Some(panic), run, hooks)
            }
        }
    }

    fn rearm(&self, next: Timestamp, enqueue: &mut Enqueue<'_>) -> bool {
        let mut cell = self.0.lock();
        if cell.is_plain() {
            cell.rearm(next.into(), Comeback::of::<J>(), enqueue)
        } else {
            self.rearm_extended(cell, next, enqueue)
        }
    }

    fn control(&self, change: Change, clock: &Clock, move_entry: &mut MoveEntry<'_>) -> Changed {
        let mut cell = self.0.lock();
        let is_over = |limit| limit <= clock.read();
        let (carried, limit, effects) = cell.change(change, is_over, move_entry);
        drop(cell);
        effects.carry_out();
        discard(carried.unused);
        Changed { had_effect: carried.had_effect, limit }
    }

    fn follow_wall(&self, clock: &Clock, move_entry: &mut MoveEntry<'_>) {
        let effects = self.0.lock().follow_wall(clock, move_entry);
        effects.carry_out();
    }

    fn cancel(&self, reason: CancelReason, drops: Drops<'_>) -> Cancellation {
        let mut cell = self.0.lock();
        let mut found = cell.stage().cancel(reason);
        if let CancelOutcome::Waiting(job) = &mut found {
            job.will_not_run();
        }
        self.complete_cancel(cell, found, false, drops)
    }

    fn time_out(
        &self,
        limit: Timestamp,
        failure: Option<FailedRun>,
        drops: Drops<'_>,
    ) -> Cancellation {
        let mut cell = self.0.lock();
        if cell.has_another_limit(limit) {
            return Cancellation::TooLate;
        }
        let found = cell.time_out();
        if failure.is_some() && !matches!(found, CancelOutcome::TooLate) {
            cell.extras().last_failure = failure;
        }
        self.complete_cancel(cell, found, true, drops)
    }

    fn token(&self, parent: &CancellationToken) -> CancellationToken {
        let made = parent.child();
        let mut cell = self.0.lock();
        let limit = cell.limit();
        let extras = cell.extras();
        made.set_limit(limit.or(extras.run_limit));
        extras.token.get_or_insert(made).clone()
    }

    fn signal(&self, parent: &CancellationToken) {
        let runs_on = self.0.lock().stage().runs_on();
        if runs_on {
            self.token(parent).cancel();
        }
    }

    fn begin_limited_run(&self, limit: Timestamp) {
        let mut cell = self.0.lock();
        let extras = cell.extras();
        extras.run_limit = Some(limit);
        let token = extras.token.take();
        drop(cell);
        discard(token);
    }

    fn end_limited_run(&self, is_over: bool) {
        let mut cell = self.0.lock();
        let is_kept = !is_over && cell.is_called_off();
        let extras = cell.extras();
        extras.run_limit = None;
        let token = if is_kept { None } else { extras.token.take() };
        drop(cell);
        match token {
            Some(token) if is_over => token.cancel(),
            Some(token) => token.set_limit(None),
            None => {}
        }
    }

    fn may_end_without_worker(&self, has_timer_thread: bool) -> bool {
        let mut cell = self.0.lock();
        let has_limit = cell.limit().is_some_and(|limit| limit < Timestamp::NEVER);
        has_timer_thread && has_limit
            || cell.extras_if_any().is_some_and(|extras| extras.is_given_away)
    }

    fn give_away(&self) {
        self.0.lock().extras().is_given_away = true;
    }

    fn awaited(self: Arc<Self>) -> Arc<dyn Awaited> {
        self
    }

    fn attach(&self, attachment: Attachment, limit: Timestamp) {
        let mut cell = self.0.lock();
        let is_useless = cell.stage().is_done() || cell.has_another_limit(limit);
        let unused = if is_useless {
            Some(attachment)
        } else {
            cell.extras().attachment.replace(attachment)
        };
        drop(cell);
        discard(unused);
    }

    fn state(&self) -> TaskState {
        self.0.lock().state()
    }

    fn name(&self) -> Option<Arc<str>> {
        self.0.lock().extras_if_any().and_then(|extras| extras.name.clone())
    }

    fn submitter(&self) -> Option<SubmitterSpan> {
        self.0.lock().extras_if_any()?.observation.submitter.clone()
    }

    fn is_periodic(&self) -> bool {
        J::IS_PERIODIC
    }

    fn has_gate(&self) -> bool {
        self.0.lock().extras_if_any().is_some_and(|extras| extras.gate.is_some())
    }

    fn is_called(&self) -> bool {
        self.0.lock().control().is_some_and(|control| control.is_called())
    }

    fn slot(&self) -> Option<u32> {
        self.0.lock().slot()
    }

    fn runs(&self) -> Option<u64> {
        self.0.lock().stage().job().map(|job| job.runs())
    }

    fn last_failure(&self) -> Option<FailedRun> {
        self.0.lock().extras_if_any().and_then(|extras| extras.last_failure.clone())
    }

    fn poll_done(&self, waker: &Waker) -> bool {
        self.poll_until(Stage::is_done, waker, |extras, waker| extras.waiters.register(waker))
    }

    fn has_left(&self) -> bool {
        self.0.lock().stage().has_left()
    }

    fn poll_left(&self, waker: &Waker) -> bool {
        self.poll_until(Stage::has_left, waker, |extras, waker| extras.waiters.register(waker))
    }

    fn deregister(&self, waker: &Waker) {
        self.drop_from_extras(|extras| extras.waiters.deregister(waker));
    }
}

#[cfg(test)]
#[cfg(loom)]
#[path = "task/tests/exhaustive.rs"]
mod exhaustive;
