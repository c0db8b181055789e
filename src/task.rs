//! A task: one allocation that holds a closure, then its result, and who waits for it.
//!
//! # What it is made of
//!
//! * A [`Job`] is what is to be run: [`OneShot`] gives its closure away with its only run,
//!   [`Periodic`] lends it to each run and says when the next is to be.
//! * `Task<J>` is the node that the queue, the worker and the future share. All that changes in
//!   it is under **one lock**, which is at once the task's state ([`state`]) and the slot of its
//!   closure and result, so that none of the three can disagree with another.
//! * What only some tasks have (a name, waiters, a token, a time limit) is allocated when first
//!   needed ([`cell`]). So a plain task is one allocation and no more: with a closure of eight
//!   bytes, forty.
//!
//! The types of closure and result disappear behind two traits: a worker sees [`Runnable`], a
//! future sees [`Claim<T>`].
//!
//! # Who may touch what
//!
//! The submitter creates the node and queues it. From then on:
//!
//! | who | does |
//! |---|---|
//! | a worker that took it from the queue | `run`, then `rearm` if the verdict is `Again` |
//! | whoever holds a handle, and the pool | `cancel`, at any moment |
//! | the future | `poll_done`, `claim`, `abandon` |
//!
//! The lock is held for moves of the state alone. The closure is taken *out* to be run, and
//! whatever is left over (a closure that will not run, a result nobody wants, wakers) is taken
//! out to be dropped or woken after the lock is released, through [`unwind`](crate::unwind).
//!
//! A result is published under the lock and the list of waiters taken in the same step; a waiter
//! looks for the result and puts itself on the list in one step too. So none is missed. A waker
//! that panics changes nothing: the result is there already, and the others are still woken.
//!
//! Who waits is told **before** what is left over is dropped: a capture that owns an executor
//! waits in its drop for what runs there, and that may be what waits for this very task.
//!
//! # Whether anybody wants the result
//!
//! The future that is dropped lets go of the node, and the result goes with the node when the
//! worker lets go too. Only if there are handles beside the future would they keep it; so a
//! future that made some says that it [abandons](Claim::abandon) the result.
//!
//! # The slot
//!
//! The queue's slot finds a task's entry, for cancelling in O(log n). The future keeps the one it
//! was queued with; a periodic task that is queued again keeps the new one in its [`Job`], set in
//! the step that queues it, under the lock. `cancel` ends the task under that lock and gives the
//! slot. If a worker has taken the entry meanwhile the slot is out of date, and does no harm: the
//! queue compares the task's number, which is never used twice.

mod cell;
mod context;
mod decorate;
mod failure;
mod hooks;
mod job;
mod period;
mod runnable;
mod state;
mod stats;

pub(crate) use self::{
    cell::{Companion, Limit},
    context::{CurrentRun, Run, WorkerContext},
    decorate::Wrapper,
    hooks::{Drops, Hooks, Subject},
    job::{Job, OneShot, Periodic},
    runnable::{Cancellation, Claim, Runnable, Verdict},
    stats::{Totals, WorkerStats},
};
pub use self::{
    context::{TaskContext, current_task},
    decorate::{Done, Submission, TaskRun},
    failure::{FailedRun, PanicPolicy},
    hooks::{PanicReport, PanicSource},
    period::MissedRuns,
    state::TaskState,
};
use std::task::Waker;

use self::{
    cell::{Cell, More},
    job::Ran,
    state::Cancel,
    stats::Ended,
};
use crate::{
    CancelReason, CancellationToken, Panic, TaskError,
    sync::{Arc, Mutex, MutexGuard, rank},
    time::Timestamp,
    unwind::{discard, discard_with, wake_all},
};

/// The node shared by queue, worker and future.
pub(crate) struct Task<J: Job>(Mutex<Cell<J>, { rank::OUTERMOST }>);

impl<J: Job> Task<J> {
    pub(crate) fn new(job: J, name: Option<Arc<str>>, wrapper: Option<Wrapper>) -> Self {
        let mut cell = Cell::new(job);
        if name.is_some() || wrapper.is_some() {
            let more = cell.more();
            (more.name, more.wrapper) = (name, wrapper);
        }
        Self(Mutex::new(cell))
    }

    /// The same task, which has to have ended in time.
    pub(crate) fn limited(self, limit: Limit<J::Output>) -> Self {
        self.0.lock().set_limit(limit);
        self
    }

    /// Takes the job back out of a task that was not accepted, and the value for the case that its
    /// time had been up; nothing if the task has ended.
    pub(crate) fn reclaim(&self) -> Option<(J, Option<J::Output>)> {
        let mut cell = self.0.lock();
        match cell.stage().cancel(CancelReason::Rejected) {
            Cancel::Waiting(job) => Some((job, cell.take_limit_value())),
            Cancel::Running | Cancel::TooLate => None,
        }
    }

    /// A worker has taken a task whose time is up: it does not run.
    #[cold]
    fn time_out_unrun(&self, mut cell: MutexGuard<'_, Cell<J>>, run: &Run) -> Verdict {
        let found = cell.time_out();
        run.stats().count_cancelled();
        match self.ended(cell, found, true, run.drops()) {
            Cancellation::TooLate => Verdict::TooLate,
            found => Verdict::TimedOut(found),
        }
    }

    /// A run has ended the task, unless its time was up before; what is left over is dropped here.
    fn finish(&self, ending: Result<J::Output, Panic>, is_over: bool, run: &Run) -> Verdict {
        let panicked = ending.is_err();
        let failure = ending.as_ref().err().filter(|_| J::IS_PERIODIC).map(|p| run.failure(p));
        let mut cell = self.0.lock();
        let timed_out = is_over && matches!(cell.time_out(), Cancel::Running);
        let unwanted = cell.stage().finish(ending);
        let ended = match unwanted {
            Some(_) => Ended::Cancelled,
            None if panicked => Ended::Panicked,
            None => Ended::Completed,
        };
        run.count(panicked, Some(ended));
        if failure.is_some() {
            cell.more().last_failure = failure;
        }
        self.release(cell, timed_out, run.drops());
        if unwanted.is_some() {
            self.discard(unwanted, run.drops());
        }
        if timed_out { Verdict::TimedOut(Cancellation::Running) } else { Verdict::Ended }
    }

    /// A run is over and there is to be another at `next`, unless the task has been cancelled
    /// meanwhile, or has called itself off.
    fn rest(
        &self,
        job: J,
        next: Timestamp,
        wrapper: Option<Wrapper>,
        failed: Option<Panic>,
        run: &Run,
    ) -> Verdict {
        let failure = failed.as_ref().map(|panic| run.failure(panic));
        let mut cell = self.0.lock();
        let cancelled = cell.stage().rest(job);
        let goes_on = cancelled.is_none();
        run.count(failed.is_some(), if goes_on { None } else { Some(Ended::Cancelled) });
        if failure.is_some() {
            cell.more().last_failure = failure;
        }
        // While the run was under way, the task had no wrapper.
        let unused = match wrapper {
            Some(wrapper) if goes_on => cell.more().wrapper.replace(wrapper),
            wrapper => wrapper,
        };
        let is_called_off = cell.is_called_off();
        drop(cell);
        if !goes_on {
            self.discard((cancelled, unused), run.drops());
        }
        if failed.is_some() {
            discard(failed);
        }
        match goes_on {
            false => Verdict::Ended,
            true if is_called_off => Verdict::CalledOff,
            true => Verdict::Again(next),
        }
    }

    /// The task will not run, or not again: what is left over is dropped here. Says what was found.
    fn ended(
        &self,
        cell: MutexGuard<'_, Cell<J>>,
        found: Cancel<J>,
        timed_out: bool,
        drops: Drops<'_>,
    ) -> Cancellation {
        let (job, found) = match found {
            Cancel::TooLate => return Cancellation::TooLate,
            Cancel::Waiting(job) => {
                let slot = job.slot();
                (Some(job), Cancellation::Waiting(slot))
            }
            Cancel::Running => (None, Cancellation::Running),
        };
        self.release(cell, timed_out, drops);
        self.discard(job, drops);
        found
    }

    /// Releases the lock of a task that has ended, wakes its waiters, and drops what it leaves. A
    /// plain task has neither.
    #[inline]
    fn release(&self, cell: MutexGuard<'_, Cell<J>>, timed_out: bool, drops: Drops<'_>) {
        if !cell.is_plain() {
            self.release_full(cell, timed_out, drops);
        }
    }

    #[inline(never)]
    fn release_full(&self, mut cell: MutexGuard<'_, Cell<J>>, timed_out: bool, drops: Drops<'_>) {
        let unclaimed = cell.unclaimed();
        let left = cell.end();
        drop(cell);
        match &left.token {
            Some(token) if timed_out => token.cancel(),
            Some(token) => token.set_limit(None),
            None => {}
        }
        wake_all(left.waiters);
        self.discard(left.wrapper, drops);
        self.discard(left.companion, drops);
        self.discard((left.value, unclaimed), drops);
    }

    /// Drops a value of the user's; a panic in its drop is reported, and goes no further.
    #[inline]
    fn discard<V>(&self, value: V, drops: Drops<'_>) {
        discard_with(value, |panic| drops.report(self.name(), Panic::new(panic)));
    }

    /// Whether the task has ended; if not, `keep` keeps the waker, and gives back what is left.
    fn poll_with(&self, waker: &Waker, keep: fn(&mut More, Waker) -> Option<Waker>) -> bool {
        if self.state().is_done() {
            return true;
        }
        let waker = waker.clone();
        let mut cell = self.0.lock();
        let is_done = cell.stage().state().is_done();
        let unused = if is_done { Some(waker) } else { keep(cell.more(), waker) };
        drop(cell);
        discard(unused);
        is_done
    }

    /// Takes something out that is foreign, and drops it when the lock is released.
    fn drop_from_more(&self, take: impl FnOnce(&mut More) -> Option<Waker>) {
        let mut cell = self.0.lock();
        let taken = cell.more_if_any().and_then(take);
        drop(cell);
        discard(taken);
    }
}

impl<J: Job> Runnable for Task<J> {
    fn run(&self, run: &Run) -> Verdict {
        let mut cell = self.0.lock();
        let (mut name, mut wrapper, mut limit) = (None, None::<Wrapper>, None);
        if !cell.is_plain() {
            if cell.is_called_off() {
                return Verdict::CalledOff;
            }
            cell.more().ignores_limit = !run.keeps_limits();
            limit = cell.limit();
            if limit.is_some_and(|limit| limit <= run.started()) {
                return self.time_out_unrun(cell, run);
            }
            let more = cell.more();
            (name, wrapper) = (more.name.clone(), more.wrapper.take());
        }
        let Some(job) = cell.stage().start() else {
            run.stats().count_cancelled();
            drop(cell);
            discard(wrapper);
            return Verdict::TooLate;
        };
        drop(cell);
        run.begin(&job, name);
        let ran = job.run(run, wrapper.as_mut());
        run.stats().leave();
        match ran {
            Ran::Ended(ending) => {
                if wrapper.is_some() {
                    self.discard(wrapper, run.drops());
                }
                let is_over = limit.is_some_and(|limit| limit <= run.clock().read());
                self.finish(ending, is_over, run)
            }
            Ran::Again(job, next) => self.rest(job, next, wrapper, None, run),
            Ran::Failed(job, next, panic) => self.rest(job, next, wrapper, Some(panic), run),
        }
    }

    fn rearm(&self, enqueue: &mut dyn FnMut() -> Option<u32>) -> bool {
        let mut cell = self.0.lock();
        if !cell.stage().is_resting() {
            return false;
        }
        let Some(slot) = enqueue() else { return false };
        cell.stage().rearm(slot);
        true
    }

    fn cancel(&self, reason: CancelReason, drops: Drops<'_>) -> Cancellation {
        let mut cell = self.0.lock();
        let found = cell.stage().cancel(reason);
        self.ended(cell, found, false, drops)
    }

    fn time_out(&self, failure: Option<FailedRun>, drops: Drops<'_>) -> Cancellation {
        let mut cell = self.0.lock();
        let found = cell.time_out();
        if failure.is_some() && !matches!(found, Cancel::TooLate) {
            cell.more().last_failure = failure;
        }
        self.ended(cell, found, true, drops)
    }

    fn token(&self, parent: &CancellationToken) -> CancellationToken {
        let made = parent.child();
        let mut cell = self.0.lock();
        let limit = cell.limit();
        let more = cell.more();
        made.set_limit(limit.or(more.run_limit));
        more.token.get_or_insert(made).clone()
    }

    fn signal(&self, parent: &CancellationToken) {
        let runs_on = self.0.lock().stage().runs_on();
        if runs_on {
            self.token(parent).cancel();
        }
    }

    fn begin_limited_run(&self, limit: Timestamp) {
        let mut cell = self.0.lock();
        let more = cell.more();
        more.run_limit = Some(limit);
        let token = more.token.take();
        drop(cell);
        discard(token);
    }

    fn end_limited_run(&self, is_over: bool) {
        let mut cell = self.0.lock();
        let is_kept = !is_over && cell.is_called_off();
        let more = cell.more();
        more.run_limit = None;
        let token = if is_kept { None } else { more.token.take() };
        drop(cell);
        match token {
            Some(token) if is_over => token.cancel(),
            Some(token) => token.set_limit(None),
            None => {}
        }
    }

    fn may_end_without_worker(&self) -> bool {
        let mut cell = self.0.lock();
        let has_limit = cell.limit().is_some_and(|limit| limit < Timestamp::NEVER);
        has_limit || cell.more_if_any().is_some_and(|more| more.is_given_away)
    }

    fn give_away(&self) {
        self.0.lock().more().is_given_away = true;
    }

    fn attach(&self, companion: Companion) {
        let mut cell = self.0.lock();
        let is_done = cell.stage().state().is_done();
        let unused =
            if is_done { Some(companion) } else { cell.more().companion.replace(companion) };
        drop(cell);
        discard(unused);
    }

    fn state(&self) -> TaskState {
        self.0.lock().stage().state()
    }

    fn name(&self) -> Option<Arc<str>> {
        self.0.lock().more_if_any().and_then(|more| more.name.clone())
    }

    fn is_periodic(&self) -> bool {
        J::IS_PERIODIC
    }

    fn slot(&self) -> Option<u32> {
        self.0.lock().stage().job().and_then(Job::slot)
    }

    fn runs(&self) -> Option<u64> {
        self.0.lock().stage().job().map(Job::runs)
    }

    fn last_failure(&self) -> Option<FailedRun> {
        self.0.lock().more_if_any().and_then(|more| more.last_failure.clone())
    }

    fn poll_done(&self, waker: &Waker) -> bool {
        self.poll_with(waker, |more, waker| more.waiters.register(waker))
    }

    fn forget(&self, waker: &Waker) {
        self.drop_from_more(|more| more.waiters.deregister(waker));
    }
}

impl<J: Job> Claim<J::Output> for Task<J> {
    fn claim(&self) -> Option<Result<J::Output, TaskError>> {
        self.0.lock().stage().claim()
    }

    fn poll_awaited(&self, waker: &Waker) -> bool {
        self.poll_with(waker, |more, waker| more.awaiting.replace(waker))
    }

    fn forget_awaiting(&self) {
        self.drop_from_more(|more| more.awaiting.take());
    }

    fn abandon(&self, drops: Drops<'_>) {
        let mut cell = self.0.lock();
        let unclaimed = cell.stage().claim();
        if unclaimed.is_none() {
            cell.more().abandoned = true;
        }
        drop(cell);
        self.discard(unclaimed, drops);
    }

    fn erase(self: Arc<Self>) -> Arc<dyn Runnable> {
        self
    }
}

#[cfg(test)]
#[cfg(loom)]
#[path = "task/tests/exhaustive.rs"]
mod exhaustive;
