//! A task: one allocation that holds a closure, then its result, and who waits for it.
//!
//! # What it is made of
//!
//! * A [`Job`] is what is to be run: [`OneShot`] gives its closure away with its only run,
//!   [`Periodic`] lends it to each run and says when the next is to be.
//! * `Task<J>` is the node that the queue, the worker and the future share. All that changes in
//!   it is under **one lock**, which is at once the task's state ([`state`]) and the slot of its
//!   closure and result, so that none of the three can disagree with another.
//! * What only some tasks have (a name, waiters, a token) is in [`Full`], and allocated when first
//!   needed; the state then moves there too. So a plain task is one allocation and no more: with
//!   a closure of eight bytes, forty.
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

mod context;
mod decorate;
mod desk;
mod failure;
mod hooks;
mod job;
mod period;
mod state;

pub(crate) use self::{
    context::{Ground, Run},
    decorate::Wrapper,
    desk::{Desk, Tally},
    hooks::Hooks,
    job::{Job, OneShot, Periodic},
};
pub use self::{
    context::{TaskContext, TaskId, current_task},
    decorate::{Done, Submission, TaskRun},
    failure::{FailedRun, PanicPolicy},
    hooks::{PanicReport, PanicSource},
    period::MissedRuns,
    state::TaskState,
};
use std::task::Waker;

use self::{
    desk::Ended,
    job::Ran,
    state::{Cancel, Stage},
};
use crate::{
    CancelReason, CancellationToken, Panic, TaskError,
    sync::{Arc, Mutex, MutexGuard},
    time::Deadline,
    unwind::{discard, wake_all},
    wait::WaitList,
};

/// A task, as workers and the pool see it.
pub(crate) trait Runnable: Send + Sync {
    /// Runs the task once, unless it has been cancelled. Panics are caught.
    fn run(&self, run: &Run) -> Verdict;

    /// Puts a task that rests between two runs back into the queue: `enqueue` does it, under the
    /// task's lock, and gives the slot, or nothing if the queue takes it no more. Whether the
    /// task is in the queue now; it is not if it has been cancelled meanwhile.
    fn rearm(&self, enqueue: &mut dyn FnMut() -> Option<u32>) -> bool;

    /// Ends the task as cancelled, unless it has ended: drops the closure if it is here, and
    /// wakes who waits.
    fn cancel(&self, reason: CancelReason) -> Cancellation;

    /// The token of the task, made now if there is none yet.
    fn token(&self, parent: &CancellationToken) -> CancellationToken;
    /// From now on the task has another token.
    fn forget_token(&self);

    /// Keeps something that is to be dropped when the task has ended, or at once if it has.
    fn attach(&self, companion: Companion);

    fn state(&self) -> TaskState;
    fn name(&self) -> Option<Arc<str>>;
    fn is_periodic(&self) -> bool;

    /// Where the queue keeps the task, if it was queued again since it was submitted.
    fn slot(&self) -> Option<u32>;
    /// How many runs there have been; not told while one is under way.
    fn runs(&self) -> Option<u64>;
    /// The last run of a periodic task that failed.
    fn last_failure(&self) -> Option<FailedRun>;

    /// Whether the task has ended; if not, keeps the waker until it has.
    fn poll_done(&self, waker: &Waker) -> bool;
    /// Forgets the waker of who no longer waits.
    fn forget(&self, waker: &Waker);
}

/// A task, as the holder of its future sees it.
pub(crate) trait Claim<T>: Runnable {
    /// The result, once; nothing as long as there is none.
    fn claim(&self) -> Option<Result<T, TaskError>>;

    /// As [`poll_done`](Runnable::poll_done), for the one who awaits the future: of its wakers
    /// only the last is kept.
    fn poll_awaited(&self, waker: &Waker) -> bool;
    /// Nobody awaits the future any more.
    fn forget_awaiting(&self);

    /// Ends the task with this value, unless it has ended.
    fn settle(&self, value: T) -> Cancellation;

    /// Nobody will claim the result: it is dropped as soon as it is there.
    fn abandon(&self);

    fn erase(self: Arc<Self>) -> Arc<dyn Runnable>;
}

/// What goes with a task to its end: dropping it is foreign code.
pub(crate) type Companion = Box<dyn Send>;

/// What a worker is to do with the task it has run.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing: it had ended before, and was not run.
    TooLate,
    /// Nothing.
    Ended,
    /// Run it again at this moment.
    Again(Deadline),
}

/// What a call to [`Runnable::cancel`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cancellation {
    /// The task had ended before.
    TooLate,
    /// The task waited, in the queue or on its way there; in this slot, if it was queued again.
    Waiting(Option<u32>),
    /// The task runs; its worker will see.
    Running,
}

/// The node shared by queue, worker and future.
pub(crate) struct Task<J: Job>(Mutex<Cell<J>>);

/// The state of a task, alone or with more.
enum Cell<J: Job> {
    Plain(Stage<J, J::Output>),
    Full(Box<Full<J>>),
}

/// The state of a task that has what most do not have.
struct Full<J: Job> {
    stage: Stage<J, J::Output>,
    more: More,
}

#[derive(Default)]
struct More {
    name: Option<Arc<str>>,
    token: Option<CancellationToken>,
    waiters: WaitList,
    /// Who awaits the future.
    awaiting: Option<Waker>,
    /// Nobody will claim the result.
    abandoned: bool,
    /// What is called around each run; on the worker's stack while one is under way.
    wrapper: Option<Wrapper>,
    companion: Option<Companion>,
    last_failure: Option<FailedRun>,
}

/// What is left over when a task has ended, apart from its job. All of it is foreign.
struct Left {
    waiters: Vec<Waker>,
    wrapper: Option<Wrapper>,
    companion: Option<Companion>,
}

impl Left {
    fn release(self) {
        wake_all(self.waiters);
        discard(self.wrapper);
        discard(self.companion);
    }
}

impl<J: Job> Task<J> {
    pub(crate) fn new(job: J, name: Option<Arc<str>>, wrapper: Option<Wrapper>) -> Self {
        let mut cell = Cell::Plain(Stage::Scheduled(job));
        if name.is_some() || wrapper.is_some() {
            let more = cell.more();
            (more.name, more.wrapper) = (name, wrapper);
        }
        Self(Mutex::new(cell))
    }

    /// Takes the job back out of a task that was not accepted; nothing if the task has ended.
    pub(crate) fn reclaim(&self) -> Option<J> {
        match self.0.lock().stage().cancel(CancelReason::Rejected) {
            Cancel::Waiting(job) => Some(job),
            Cancel::Running | Cancel::TooLate => None,
        }
    }

    /// A run has ended the task; what is left over is dropped here.
    fn finish(&self, ending: Result<J::Output, Panic>, run: &Run) {
        let panicked = ending.is_err();
        let failure = ending.as_ref().err().filter(|_| J::IS_PERIODIC).map(|p| run.failure(p));
        let mut cell = self.0.lock();
        let unwanted = cell.stage().finish(ending);
        run.desk().count(Some(match unwanted {
            Some(_) => Ended::Cancelled,
            None if panicked => Ended::Panicked,
            None => Ended::Completed,
        }));
        if failure.is_some() {
            cell.more().last_failure = failure;
        }
        let unclaimed = cell.unclaimed();
        let left = cell.end();
        drop(cell);
        if let Some(left) = left {
            left.release();
        }
        discard(unwanted);
        discard(unclaimed);
    }

    /// A run is over and there is to be another. Whether there really is: the task may have been
    /// cancelled meanwhile.
    fn rest(&self, job: J, wrapper: Option<Wrapper>, failed: Option<&Panic>, run: &Run) -> bool {
        let failure = failed.map(|panic| run.failure(panic));
        let mut cell = self.0.lock();
        let cancelled = cell.stage().rest(job);
        let goes_on = cancelled.is_none();
        run.desk().count(if goes_on { None } else { Some(Ended::Cancelled) });
        if failure.is_some() {
            cell.more().last_failure = failure;
        }
        let unused =
            if goes_on { wrapper.and_then(|w| cell.more().wrapper.replace(w)) } else { wrapper };
        drop(cell);
        discard(cancelled);
        discard(unused);
        goes_on
    }

    /// The task will not run, or not again: what is left over is dropped here. Says what was found.
    fn cancelled(mut cell: MutexGuard<'_, Cell<J>>, found: Cancel<J>) -> Cancellation {
        let (job, found) = match found {
            Cancel::TooLate => return Cancellation::TooLate,
            Cancel::Waiting(job) => {
                let slot = job.slot();
                (Some(job), Cancellation::Waiting(slot))
            }
            Cancel::Running => (None, Cancellation::Running),
        };
        let left = cell.end();
        drop(cell);
        if let Some(left) = left {
            left.release();
        }
        discard(job);
        found
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

impl<J: Job> Cell<J> {
    fn stage(&mut self) -> &mut Stage<J, J::Output> {
        match self {
            Self::Plain(stage) => stage,
            Self::Full(full) => &mut full.stage,
        }
    }

    /// What most tasks do not have; made now if this one has not.
    fn more(&mut self) -> &mut More {
        if let Self::Plain(stage) = self {
            let stage = std::mem::replace(stage, Stage::Running);
            *self = Self::Full(Box::new(Full { stage, more: More::default() }));
        }
        match self {
            Self::Full(full) => &mut full.more,
            Self::Plain(_) => unreachable!("it has just been made full"),
        }
    }

    fn more_if_any(&mut self) -> Option<&mut More> {
        match self {
            Self::Plain(_) => None,
            Self::Full(full) => Some(&mut full.more),
        }
    }

    /// The result that has just come, if nobody will claim it.
    fn unclaimed(&mut self) -> Option<Result<J::Output, TaskError>> {
        let is_abandoned = self.more_if_any().is_some_and(|more| more.abandoned);
        if is_abandoned { self.stage().claim() } else { None }
    }

    /// The task has ended: what is left over, to be released without the lock.
    fn end(&mut self) -> Option<Left> {
        let more = self.more_if_any()?;
        let mut waiters = more.waiters.take();
        waiters.extend(more.awaiting.take());
        Some(Left { waiters, wrapper: more.wrapper.take(), companion: more.companion.take() })
    }
}

impl<J: Job> Runnable for Task<J> {
    fn run(&self, run: &Run) -> Verdict {
        let mut cell = self.0.lock();
        let Some(job) = cell.stage().start() else {
            run.desk().count_cancelled();
            return Verdict::TooLate;
        };
        let more = cell.more_if_any().map(|more| (more.name.clone(), more.wrapper.take()));
        let (name, mut wrapper) = more.unwrap_or_default();
        drop(cell);
        run.begin(&job, name);
        let ran = job.run(run, wrapper.as_mut());
        run.desk().leave();
        let (goes_on, next) = match ran {
            Ran::Ended(ending) => {
                discard(wrapper);
                self.finish(ending, run);
                return Verdict::Ended;
            }
            Ran::Again(job, next) => (self.rest(job, wrapper, None, run), next),
            Ran::Failed(job, next, panic) => {
                let goes_on = self.rest(job, wrapper, Some(&panic), run);
                discard(panic);
                (goes_on, next)
            }
        };
        if goes_on { Verdict::Again(next) } else { Verdict::Ended }
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

    fn cancel(&self, reason: CancelReason) -> Cancellation {
        let mut cell = self.0.lock();
        let cancelled = cell.stage().cancel(reason);
        Self::cancelled(cell, cancelled)
    }

    fn token(&self, parent: &CancellationToken) -> CancellationToken {
        let made = parent.child();
        let mut cell = self.0.lock();
        cell.more().token.get_or_insert(made).clone()
    }

    fn forget_token(&self) {
        let mut cell = self.0.lock();
        let token = cell.more_if_any().and_then(|more| more.token.take());
        drop(cell);
        discard(token);
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

    fn settle(&self, value: J::Output) -> Cancellation {
        let mut cell = self.0.lock();
        match cell.stage().settle(value) {
            Ok(settled) => {
                let unclaimed = cell.unclaimed();
                let found = Self::cancelled(cell, settled);
                discard(unclaimed);
                found
            }
            Err(value) => {
                drop(cell);
                discard(value);
                Cancellation::TooLate
            }
        }
    }

    fn abandon(&self) {
        let mut cell = self.0.lock();
        let unclaimed = cell.stage().claim();
        if unclaimed.is_none() {
            cell.more().abandoned = true;
        }
        drop(cell);
        discard(unclaimed);
    }

    fn erase(self: Arc<Self>) -> Arc<dyn Runnable> {
        self
    }
}

#[cfg(test)]
#[cfg(loom)]
#[path = "task/tests/exhaustive.rs"]
mod exhaustive;
