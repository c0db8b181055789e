//! A task: one allocation that holds a closure, then its result, and who waits for it.
//!
//! # What it is made of
//!
//! * A [`Job`] is what is to be run: [`OneShot`] gives its closure away with its only run,
//!   [`Periodic`] lends it to each run and says when the next is to be.
//! * `Task<J>` is the node that the queue, the worker and the future share. All that changes in
//!   it is under **one lock**, which is at once the task's state ([`state`]) and the slot of its
//!   closure and result, so that none of the three can disagree with another.
//! * What only some tasks have (a name, waiters, a token) is in [`Cold`], allocated when first
//!   needed; a plain task is one allocation and no more.
//!
//! The types of closure and result disappear behind two traits: a worker sees [`Runnable`], a
//! future sees [`Claim<T>`].
//!
//! # Who may touch what
//!
//! The submitter creates the node, queues it, and notes the queue's slot in it. From then on:
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
//! # The slot
//!
//! `slot` tells the queue where the task's entry is, for cancelling in O(log n). It is written
//! by the submitter before anyone has a handle, and by the worker that re-arms the task, in the
//! same step that queues it again, under the lock. A canceller reads it after it has ended the
//! task under that lock, and nobody writes it from then on; so it reads the slot of the entry
//! that is in the queue. If a worker has taken that entry meanwhile the slot is out of date, and
//! does no harm: the queue compares the task's number, which is never used twice.

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
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
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

    /// Where the queue keeps the task.
    fn slot(&self) -> u32;

    /// Whether the task has ended; if not, keeps the waker until it has.
    fn poll_done(&self, waker: &Waker) -> bool;
    /// Forgets the waker of who no longer waits.
    fn forget(&self, waker: &Waker);
}

/// A task, as the holder of its future sees it.
pub(crate) trait Claim<T>: Runnable {
    /// The result, once; nothing as long as there is none.
    fn claim(&self) -> Option<Result<T, TaskError>>;

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
    /// The task waited, in the queue or on its way there.
    Waiting,
    /// The task runs; its worker will see.
    Running,
}

/// The slot of a task that has not been queued yet.
const UNKNOWN: u32 = u32::MAX;

/// The node shared by queue, worker and future.
pub(crate) struct Task<J: Job> {
    cell: Mutex<Cell<J>>,
    slot: AtomicU32,
    /// Nobody will claim the result. Outside the cell because it fits beside the slot there:
    /// sixteen bytes less for each task.
    abandoned: AtomicBool,
}

struct Cell<J: Job> {
    stage: Stage<J, J::Output>,
    cold: Option<Box<Cold>>,
}

/// What most tasks do not have.
#[derive(Default)]
struct Cold {
    name: Option<Arc<str>>,
    token: Option<CancellationToken>,
    waiters: WaitList,
}

impl<J: Job> Task<J> {
    pub(crate) fn new(job: J, name: Option<Arc<str>>) -> Self {
        let cold = name.map(|name| Box::new(Cold { name: Some(name), ..Cold::default() }));
        let cell = Mutex::new(Cell { stage: Stage::Scheduled(job), cold });
        Self { cell, slot: AtomicU32::new(UNKNOWN), abandoned: AtomicBool::new(false) }
    }

    /// Notes where the queue put the task when it was submitted. A periodic task may have run
    /// and been re-armed since; then its slot is known already, and a newer one than this.
    pub(crate) fn note_first_slot(&self, slot: u32) {
        // Ordering: see `slot`.
        if J::IS_PERIODIC {
            let _ = self.slot.compare_exchange(UNKNOWN, slot, Ordering::Relaxed, Ordering::Relaxed);
        } else {
            self.slot.store(slot, Ordering::Relaxed);
        }
    }

    /// Takes the job back out of a task that was not accepted.
    pub(crate) fn reclaim(&self) -> Option<J> {
        self.cell.lock().stage.start()
    }

    /// Ends the task; what is left over is dropped here.
    fn finish(&self, ending: Result<J::Output, crate::Panic>) {
        let mut cell = self.cell.lock();
        let unwanted = cell.stage.finish(ending);
        // Ordering: see `abandon`.
        let is_abandoned = self.abandoned.load(Ordering::Relaxed);
        let unclaimed = if is_abandoned { cell.stage.claim() } else { None };
        let waiters = cell.take_waiters();
        drop(cell);
        discard(unwanted);
        discard(unclaimed);
        wake_all(waiters);
    }
}

impl<J: Job> Cell<J> {
    fn cold(&mut self) -> &mut Cold {
        self.cold.get_or_insert_default()
    }

    fn take_waiters(&mut self) -> Vec<Waker> {
        self.cold.as_mut().map(|cold| cold.waiters.take()).unwrap_or_default()
    }
}

impl<J: Job> Runnable for Task<J> {
    fn run(&self, run: &Run) -> Verdict {
        let Some(job) = self.cell.lock().stage.start() else {
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
                let cancelled = self.cell.lock().stage.rest(job);
                if cancelled.is_none() {
                    return Verdict::Again(next);
                }
                discard(cancelled);
                Verdict::Ended
            }
        }
    }

    fn rearm(&self, enqueue: &mut dyn FnMut() -> Option<u32>) -> bool {
        let mut cell = self.cell.lock();
        if !cell.stage.is_resting() {
            return false;
        }
        let Some(slot) = enqueue() else { return false };
        // Ordering: see `slot`.
        self.slot.store(slot, Ordering::Relaxed);
        cell.stage.rearm();
        true
    }

    fn cancel(&self, reason: CancelReason) -> Cancellation {
        let mut cell = self.cell.lock();
        let (job, found) = match cell.stage.cancel(reason) {
            Cancel::TooLate => return Cancellation::TooLate,
            Cancel::Waiting(job) => (Some(job), Cancellation::Waiting),
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
        let mut cell = self.cell.lock();
        cell.cold().token.get_or_insert(made).clone()
    }

    fn state(&self) -> TaskState {
        self.cell.lock().stage.state()
    }

    fn name(&self) -> Option<Arc<str>> {
        self.cell.lock().cold.as_ref().and_then(|cold| cold.name.clone())
    }

    fn is_periodic(&self) -> bool {
        J::IS_PERIODIC
    }

    fn slot(&self) -> u32 {
        // Ordering: see the head of the module; a stale slot does no harm.
        self.slot.load(Ordering::Relaxed)
    }

    fn poll_done(&self, waker: &Waker) -> bool {
        if self.state().is_done() {
            return true;
        }
        let waker = waker.clone();
        let mut cell = self.cell.lock();
        let is_done = cell.stage.state().is_done();
        let unused = if is_done { Some(waker) } else { cell.cold().waiters.register(waker) };
        drop(cell);
        discard(unused);
        is_done
    }

    fn forget(&self, waker: &Waker) {
        let mut cell = self.cell.lock();
        let forgotten = cell.cold.as_mut().and_then(|cold| cold.waiters.deregister(waker));
        drop(cell);
        discard(forgotten);
    }
}

impl<J: Job> Claim<J::Output> for Task<J> {
    fn claim(&self) -> Option<Result<J::Output, TaskError>> {
        self.cell.lock().stage.claim()
    }

    fn abandon(&self) {
        // Ordering: that of the lock. Set before it is taken, so `finish` either sees it, or has
        // left a result that is claimed here.
        self.abandoned.store(true, Ordering::Relaxed);
        let mut cell = self.cell.lock();
        let unclaimed = cell.stage.claim();
        drop(cell);
        discard(unclaimed);
    }

    fn erase(self: Arc<Self>) -> Arc<dyn Runnable> {
        self
    }
}
