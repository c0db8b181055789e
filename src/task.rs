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
mod job;
mod period;
mod state;

pub(crate) use self::{
    context::{Ground, Run},
    job::{Job, OneShot, Periodic},
};
pub use self::{
    context::{TaskContext, TaskId, current_task},
    period::MissedRuns,
    state::TaskState,
};
use std::task::Waker;

use self::{
    job::Ran,
    state::{Cancel, Stage},
};
use crate::{
    CancelReason, CancellationToken, TaskError,
    sync::{Arc, Mutex},
    time::Deadline,
    trace,
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

    fn state(&self) -> TaskState;
    fn name(&self) -> Option<Arc<str>>;
    fn is_periodic(&self) -> bool;

    /// Where the queue keeps the task, if it was queued again since it was submitted.
    fn slot(&self) -> Option<u32>;

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

    /// Nobody will claim the result: it is dropped as soon as it is there.
    fn abandon(&self);

    fn erase(self: Arc<Self>) -> Arc<dyn Runnable>;
}

/// What a worker is to do with the task it has run.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
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
}

impl<J: Job> Task<J> {
    pub(crate) fn new(job: J, name: Option<Arc<str>>) -> Self {
        let mut cell = Cell::Plain(Stage::Scheduled(job));
        if name.is_some() {
            cell.more().name = name;
        }
        Self(Mutex::new(cell))
    }

    /// Takes the job back out of a task that was not accepted.
    pub(crate) fn reclaim(&self) -> Option<J> {
        self.0.lock().stage().start()
    }

    /// Ends the task; what is left over is dropped here.
    fn finish(&self, ending: Result<J::Output, crate::Panic>) {
        let mut cell = self.0.lock();
        let unwanted = cell.stage().finish(ending);
        let is_abandoned = cell.more_if_any().is_some_and(|more| more.abandoned);
        let unclaimed = if is_abandoned { cell.stage().claim() } else { None };
        let waiters = cell.take_waiters();
        drop(cell);
        discard(unwanted);
        discard(unclaimed);
        wake_all(waiters);
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

    fn take_waiters(&mut self) -> Vec<Waker> {
        let Some(more) = self.more_if_any() else { return Vec::new() };
        let mut waiters = more.waiters.take();
        waiters.extend(more.awaiting.take());
        waiters
    }
}

impl<J: Job> Runnable for Task<J> {
    fn run(&self, run: &Run) -> Verdict {
        let Some(job) = self.0.lock().stage().start() else {
            return Verdict::Ended;
        };
        run.begin(&job);
        let ran = run.call(|| {
            let ran = job.run(run);
            if let Ran::Ended(Err(panic)) = &ran {
                trace::panicked(panic.message());
            }
            ran
        });
        match ran {
            Ran::Ended(ending) => {
                self.finish(ending);
                Verdict::Ended
            }
            Ran::Again(job, next) => {
                let cancelled = self.0.lock().stage().rest(job);
                if cancelled.is_none() {
                    return Verdict::Again(next);
                }
                discard(cancelled);
                Verdict::Ended
            }
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

    fn cancel(&self, reason: CancelReason) -> Cancellation {
        let mut cell = self.0.lock();
        let (job, found) = match cell.stage().cancel(reason) {
            Cancel::TooLate => return Cancellation::TooLate,
            Cancel::Waiting(job) => {
                let slot = job.slot();
                (Some(job), Cancellation::Waiting(slot))
            }
            Cancel::Running => (None, Cancellation::Running),
        };
        let waiters = cell.take_waiters();
        drop(cell);
        discard(job);
        wake_all(waiters);
        found
    }

    fn token(&self, parent: &CancellationToken) -> CancellationToken {
        let made = parent.child();
        let mut cell = self.0.lock();
        cell.more().token.get_or_insert(made).clone()
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
        self.0.lock().stage().slot()
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
