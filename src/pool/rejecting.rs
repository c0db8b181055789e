//! Rejecting: a task that is not admitted goes to the [handler](crate::rejection), until that has a final answer.
//!
//! The pool is what has refused the task ([`Refuser`]): the verbs of the task ask it to make room, and to wait for room.

use std::time::Duration;

use super::{
    NotQueued, Pool, Staffing,
    admission::{Arrival, Permit},
    deadlock::Role,
};
use crate::{
    CancelReason, RejectionReason,
    drained::{DrainedTask, RejectedExecutionError},
    entry::Ticket,
    queue::QueueEntry,
    rejection::{
        CapacityPermit, Decision, Refuser, RejectedExecutionHandler, RejectedTask, Rejection, Room,
    },
    shared::Replaceable,
    statistics::Totals,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        thread,
    },
    task::Task,
    time::Timestamp,
    trace,
    unwind::{Callback, Contained},
};

/// A task that the capacity or the queue has refused, or for which there is no worker.
pub(super) struct NotAdmitted {
    pub(super) reason: RejectionReason,
    pub(super) sequence: u64,
    pub(super) task: Arc<Task>,
}

/// The handler of a pool, and how often it was needed.
pub(crate) struct Rejections {
    pub(crate) handler: Replaceable<dyn RejectedExecutionHandler>,
    /// The number of submissions that were not admitted.
    rejected: AtomicU64,
    /// The number of these that were run on the thread that submitted them, and of those that panicked
    /// there.
    caller_runs: AtomicU64,
    caller_panics: AtomicU64,
}

/// Counts a rejection when it is dropped, even if the handler panics.
struct CountOnDrop<'a>(&'a AtomicU64);

impl Drop for CountOnDrop<'_> {
    fn drop(&mut self) {
        // Relaxed: orders no other access; so for all counts here.
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Rejections {
    pub(super) fn new(handler: Callback<dyn RejectedExecutionHandler>) -> Self {
        let (rejected, caller_runs, caller_panics) = Default::default();
        Self { handler: Replaceable::new(handler), rejected, caller_runs, caller_panics }
    }

    /// Counts a submission that was not admitted, and of which the handler is not asked.
    #[cold]
    pub(crate) fn count(&self) {
        drop(CountOnDrop(&self.rejected));
    }

    /// Returns the three counts, in the order of the fields.
    pub(crate) fn counts(&self) -> [u64; 3] {
        let counts = [&self.rejected, &self.caller_runs, &self.caller_panics];
        counts.map(|count| count.load(Ordering::Relaxed))
    }
}

impl Pool {
    /// Asks the handler until it has a final answer, or fails the submission if it is not to be asked.
    #[cold]
    pub(super) fn reject(
        self: &Arc<Self>,
        mut not_admitted: NotAdmitted,
        arrival: Arrival,
    ) -> Result<Ticket, NotQueued> {
        let counting = CountOnDrop(&self.rejections.rejected);
        let refuser: Arc<dyn Refuser> = Arc::clone(self) as _;
        loop {
            let NotAdmitted { reason, sequence, task: own } = not_admitted;
            if trace::is_listening() {
                trace::rejected(sequence, own.name().as_deref(), &reason);
            }
            let task = self.refused_task(Arc::clone(&own), sequence, arrival.timing.due());
            let is_final =
                matches!(reason, RejectionReason::Spawn(_) | RejectionReason::GroupShutdown);
            if is_final || !arrival.asks_handler {
                return Err(NotQueued::Refused(RejectedExecutionError::new(reason, task)));
            }
            // Contained also where it panics: if the handler has been replaced meanwhile, this
            // thread may be the last to hold it.
            let handler = Contained::new(self.rejections.handler.get());
            let rejected = RejectedTask::new(&refuser, task, &reason);
            let Rejection(decision) = handler.rejected_execution(rejected);
            drop(handler);
            let is_own =
                |task: &DrainedTask| task.task.as_ref().is_some_and(|it| Arc::ptr_eq(it, &own));
            not_admitted = match decision {
                Decision::Abort(task) if is_own(&task) => {
                    return Err(NotQueued::Refused(RejectedExecutionError::new(reason, task)));
                }
                Decision::Retry(mut task, permit) if is_own(&task) => {
                    drop(task.task.take());
                    match self.retry(own, permit, sequence, arrival) {
                        Err(not_admitted) => not_admitted,
                        Ok(ticket) => {
                            // It has been admitted, so it does not count as rejected.
                            std::mem::forget(counting);
                            return Ok(ticket);
                        }
                    }
                }
                Decision::Handled | Decision::Abort(_) | Decision::Retry(..) => {
                    return Err(NotQueued::Handled(sequence));
                }
            };
        }
    }

    /// Offers a task once more, which may have a permit, unless its group was shut down meanwhile.
    fn retry(
        self: &Arc<Self>,
        task: Arc<Task>,
        permit: Option<CapacityPermit>,
        sequence: u64,
        arrival: Arrival,
    ) -> Result<Ticket, NotAdmitted> {
        if task.own_group().is_some_and(|group| group.roll().refuses_more()) {
            let reason = RejectionReason::GroupShutdown;
            return Err(NotAdmitted { reason, sequence, task });
        }
        let permit = match permit.map(CapacityPermit::hand_over) {
            Some(()) => Permit::Acquired,
            None => Permit::ToAcquire,
        };
        self.offer(task, Arrival { staffing: Staffing::Complete, ..arrival }, permit)
    }

    pub(super) fn refused_task(
        &self,
        element: Arc<Task>,
        sequence: u64,
        deadline: Timestamp,
    ) -> DrainedTask {
        let entry = QueueEntry { deadline, sequence, element };
        DrainedTask::new(entry, &self.detached_context(), CancelReason::Rejected)
    }
}

impl Refuser for Pool {
    fn count_caller_run(&self, done: &Totals) {
        let Rejections { caller_runs, caller_panics, .. } = &self.rejections;
        caller_runs.fetch_add(done.runs, Ordering::Relaxed);
        caller_panics.fetch_add(done.failed_runs, Ordering::Relaxed);
    }

    fn discard_oldest(&self) {
        let Some(QueueEntry { sequence, element, .. }) = self.queue.remove_first() else {
            // Another submitter has the room and has yet to queue its task, so this one would only ask again.
            return thread::yield_now();
        };
        self.entry_removed();
        let why = "it was discarded for another task";
        self.displace(element, sequence, CancelReason::Rejected, why);
    }

    fn wait_for_room(&self, timeout: Duration, gives_up: &dyn Fn() -> bool) -> Room {
        if self.capacity.bound.is_none() || self.has_caller_as(Role::Worker) {
            return Room::TimeIsUp;
        }
        let (clock, queue) = (self.clock(), &self.queue);
        let deadline = clock.read().after(timeout);
        self.capacity.acquire_before(clock, deadline, || queue.is_closed(), gives_up)
    }

    fn release_permit(&self) {
        self.capacity.release();
    }
}
