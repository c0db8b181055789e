//! Rejection: what becomes of a task that is not admitted.
//!
//! Who decides is the executor's [`RejectedExecutionHandler`]. It gets the task, which belongs to
//! nobody else at that moment, and has to say what is to be done with it: the verbs of
//! [`RejectedTask`] each consume the task and give the answer, so none can be forgotten, and
//! whatever happens to the task its future ends. Java's handlers can simply lose it.
//!
//! ```text
//!   offer ──refused──▶ handler ──▶ abort      the closure goes back to the submitter
//!     ▲                       ├──▶ discard    the future ends as cancelled
//!     │                       ├──▶ run        here and now, in the submitter's thread
//!     │                       ├──▶ keep       somebody runs it later
//!     └───────────────────────┴──▶ retry      perhaps after making room, or waiting for it
//! ```
//!
//! A handler is called in the thread that submits, with no lock held. If it panics the panic goes
//! to the submitter, and the task ends as cancelled.

use std::{fmt, time::Duration};

mod policies;

pub use self::policies::{
    AbortPolicy, BlockPolicy, CallerRunsPolicy, DiscardOldestPolicy, DiscardPolicy, StockPolicy,
};
use super::{DrainedTask, Pool, capacity::Capacity, shutdown::scope};
use crate::{
    CancelReason, RejectedExecutionError, TaskId,
    queue::{Entry, Refusal, Refused, Ticket},
    statistics::Totals,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Cancellation, Runnable},
    time::Timestamp,
    trace,
    unwind::{Contained, discard},
};

/// Decides what becomes of a task that an executor does not admitted, because it was shut down or
/// as many tasks wait as its [bound](crate::Builder::max_pending) allows. Set by
/// [`Builder::rejected_execution_handler`](crate::Builder::rejected_execution_handler). Java:
/// `RejectedExecutionHandler`.
///
/// Closures are handlers. This one runs in the submitter's thread what has a name, and refuses
/// the rest:
///
/// ```
/// use punctual::{RejectedTask, ScheduledThreadPoolExecutor};
///
/// let executor = ScheduledThreadPoolExecutor::builder()
///     .rejected_execution_handler(|task: RejectedTask<'_>| {
///         if task.name().is_some() { task.run() } else { task.abort() }
///     })
///     .build()?;
/// executor.shutdown();
/// let important = executor.task().name("farewell").submit(|| "good bye")?;
/// assert_eq!(important.join()?, "good bye");
/// assert!(executor.submit(|| "gossip").is_err());
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
///
/// It is not called for what can never be admitted (a period of zero), nor if there is no worker and
/// none could be started: these are errors in any case.
pub trait RejectedExecutionHandler: Send + Sync {
    /// Says what is to be done with the task, by one of its verbs. Called in the submitter's
    /// thread; may block it.
    ///
    /// # Panics
    ///
    /// If it does, the panic goes to the submitter, and the task ends as cancelled.
    #[doc(alias = "rejectedExecution")]
    fn rejected_execution(&self, task: RejectedTask<'_>) -> Rejection;

    /// Which of the stock policies this is; `None` for any other handler, as unless it is
    /// overridden. Only to be shown or compared: what it says changes nothing. One that is
    /// [shared](crate::Shared) says what is inside.
    ///
    /// ```
    /// use punctual::{
    ///     CallerRunsPolicy, RejectedExecutionHandler, RejectedTask, ScheduledThreadPoolExecutor,
    ///     StockPolicy,
    /// };
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// assert_eq!(executor.rejected_execution_handler().policy(), Some(StockPolicy::Abort));
    /// executor.set_rejected_execution_handler(CallerRunsPolicy);
    /// assert_eq!(executor.rejected_execution_handler().policy(), Some(StockPolicy::CallerRuns));
    /// executor.set_rejected_execution_handler(|task: RejectedTask<'_>| task.abort());
    /// assert_eq!(executor.rejected_execution_handler().policy(), None);
    /// ```
    fn policy(&self) -> Option<StockPolicy> {
        None
    }
}

impl<F> RejectedExecutionHandler for F
where
    F: Fn(RejectedTask<'_>) -> Rejection + Send + Sync,
{
    fn rejected_execution(&self, task: RejectedTask<'_>) -> Rejection {
        self(task)
    }
}

/// A task that was not admitted; what a [`RejectedExecutionHandler`] decides about.
#[must_use = "dropping a rejected task cancels it"]
pub struct RejectedTask<'a> {
    pool: &'a Arc<Pool>,
    task: DrainedTask,
    error: &'a RejectedExecutionError,
}

/// What is to be done with a rejected task; from the verbs of [`RejectedTask`]. The answer of a
/// handler that was asked about another task counts for neither: both are discarded.
#[must_use = "this is the handler's answer"]
pub struct Rejection(Answer);

enum Answer {
    Handled,
    Abort(DrainedTask),
    Retry(DrainedTask, Option<Place>),
}

/// A place that has been taken for a task that is not in the queue yet. Left when this is dropped:
/// a handler may panic when it has the answer already.
struct Place(Option<Arc<Pool>>);

impl Place {
    /// From now on the place is the task's.
    fn hand_over(mut self) {
        discard(self.0.take());
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(pool) = self.0.take() {
            pool.release_capacity();
            discard(pool);
        }
    }
}

impl RejectedTask<'_> {
    /// The number of the task.
    #[must_use]
    pub fn id(&self) -> TaskId {
        self.task.id()
    }

    /// The name of the task, if it was given one.
    #[must_use]
    pub fn name(&self) -> Option<Arc<str>> {
        self.task.name()
    }

    /// Whether it is a periodic task.
    #[must_use]
    pub fn is_periodic(&self) -> bool {
        self.task.is_periodic()
    }

    /// Whether it is due now.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.task.is_due()
    }

    /// Why it was not admitted.
    #[must_use]
    pub fn error(&self) -> &RejectedExecutionError {
        self.error
    }

    /// Whether the executor was shut down. Else there was no room.
    #[must_use]
    pub fn is_shutdown(&self) -> bool {
        matches!(self.error, RejectedExecutionError::Shutdown)
    }

    /// The submission fails with the [error](Self::error), and gives the closure back.
    pub fn abort(self) -> Rejection {
        Rejection(Answer::Abort(self.task))
    }

    /// The closure is dropped. The submission does not fail, but its future has ended as
    /// cancelled, with [`CancelReason::Rejected`].
    pub fn discard(self) -> Rejection {
        drop(self.task);
        Rejection(Answer::Handled)
    }

    /// Runs the task here, due or not, as [`DrainedTask::run`] does. Blocks until it has run. A
    /// one-shot task has no timeout then: there is nobody yet to see it end.
    pub fn run(self) -> Rejection {
        let pool = self.pool;
        pool.count_caller_run(&self.task.run_here());
        Rejection(Answer::Handled)
    }

    /// Hands the task over, to be run later, in whichever thread, or dropped.
    pub fn keep(self) -> (DrainedTask, Rejection) {
        self.task.give_away();
        (self.task, Rejection(Answer::Handled))
    }

    /// Tries to submit the task once more, and asks the handler again if that fails. If it cannot
    /// but fail, because the executor was shut down, this is [`abort`](Self::abort); the same holds
    /// for the two verbs below.
    pub fn retry(self) -> Rejection {
        self.retry_with(None)
    }

    /// Ends the waiting task that is due first, as cancelled with [`CancelReason::Rejected`], and
    /// tries again.
    pub fn discard_oldest(self) -> Rejection {
        if !self.is_shutdown() {
            self.pool.discard_oldest();
        }
        self.retry()
    }

    /// Blocks until there is room, and tries again; aborts if there is none after `timeout`, on
    /// the executor's clock (if it is a manual one
    /// [somebody has to move it](crate::ManualClock#when-it-blocks)), or if this is one of its own workers. A shutdown ends the wait, and
    /// the handler is asked again.
    pub fn wait_for_room(self, timeout: Duration) -> Rejection {
        let Some(capacity) = &self.pool.capacity else { return self.abort() };
        let clock = self.pool.clock();
        let would_block = self.is_shutdown() || scope::is_worker_of(self.pool);
        if would_block || !capacity.enter_before(clock, clock.read().after(timeout)) {
            return self.abort();
        }
        let place = Place(Some(Arc::clone(self.pool)));
        self.retry_with(Some(place))
    }

    fn retry_with(self, place: Option<Place>) -> Rejection {
        if self.is_shutdown() { self.abort() } else { Rejection(Answer::Retry(self.task, place)) }
    }
}

impl fmt::Debug for RejectedTask<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RejectedTask")
            .field("task", &self.task)
            .field("error", &self.error)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rejection").finish_non_exhaustive()
    }
}

/// A task that was refused by the queue or for want of room.
struct Unadmitted {
    error: RejectedExecutionError,
    sequence: u64,
    task: Arc<dyn Runnable>,
}

/// Counts a rejection when it is dropped, also if the handler panics.
struct Counting<'a>(&'a AtomicU64);

impl Drop for Counting<'_> {
    fn drop(&mut self) {
        // Ordering: a count, and nothing else hangs on it.
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Pool {
    /// Counts a submission that was not admitted because no thread could be started for it.
    #[cold]
    pub(crate) fn count_rejected(&self) {
        drop(Counting(&self.rejected));
    }

    /// Counts what has been run in the thread that submitted it.
    fn count_caller_run(&self, done: &Totals) {
        // Relaxed: counts, which order no other access.
        self.caller_runs.fetch_add(done.runs, Ordering::Relaxed);
        self.caller_panics.fetch_add(done.failed_runs, Ordering::Relaxed);
    }

    /// Queues a task that is ready to run, in a pool that has a worker; `is_staffed` says whether
    /// it need not [do without](Self::ensure_worker) one more. Gives the ticket, which finds nothing
    /// if the handler has dealt with the task. On an error, which comes with the task's number, the
    /// task is the caller's again.
    #[inline]
    pub(crate) fn submit(
        self: &Arc<Self>,
        stripe: usize,
        task: Arc<dyn Runnable>,
        now: Timestamp,
        deadline: Timestamp,
        is_staffed: bool,
    ) -> Result<Ticket, (u64, RejectedExecutionError)> {
        match self.offer(stripe, task, now, deadline, false, is_staffed) {
            Ok(ticket) => Ok(ticket),
            Err(unadmitted) => self.reject(stripe, unadmitted, now, deadline),
        }
    }

    /// Offers a task to the queue, if there is room, or a place has been taken for it.
    #[inline]
    fn offer(
        self: &Arc<Self>,
        stripe: usize,
        task: Arc<dyn Runnable>,
        now: Timestamp,
        deadline: Timestamp,
        has_room: bool,
        is_staffed: bool,
    ) -> Result<Ticket, Unadmitted> {
        if !has_room && !self.capacity.as_ref().is_none_or(Capacity::enter) {
            let sequence = self.queue.number(stripe, now);
            return Err(Unadmitted { error: RejectedExecutionError::Saturated, sequence, task });
        }
        match self.queue.offer(stripe, now, deadline, task) {
            Ok(ticket) if self.workers.started() >= self.workers.wanted() => Ok(ticket),
            Ok(ticket) => self.rescue(ticket, is_staffed),
            Err(Refused { why, sequence, element: task }) => {
                self.release_capacity();
                let error = match why {
                    Refusal::Closed => RejectedExecutionError::Shutdown,
                    Refusal::Full => RejectedExecutionError::Full,
                };
                Err(Unadmitted { error, sequence, task })
            }
        }
    }

    /// Workers may have gone, or begun other tasks, since the submission saw to it that there is
    /// one for this task; see the head of `crew`.
    #[cold]
    fn rescue(self: &Arc<Self>, ticket: Ticket, is_staffed: bool) -> Result<Ticket, Unadmitted> {
        let started = if self.workers.started() == 0 {
            self.start_worker(|| self.workers.wanted()).map(drop)
        } else if is_staffed {
            self.compensate()
        } else {
            // It has just been tried.
            Ok(())
        };
        let Err(error) = started.or_else(|error| self.tolerate_spawn_failure(error)) else {
            return Ok(ticket);
        };
        // Not there: it has been run, or removed by somebody else.
        let Some(task) = self.queue.remove(ticket) else { return Ok(ticket) };
        self.entry_removed();
        if self.lifecycle.hold() {
            // It may have been all that the end waited for.
            self.release();
        }
        let (error, sequence) = (RejectedExecutionError::Spawn(error), ticket.sequence);
        Err(Unadmitted { error, sequence, task })
    }

    /// Asks the handler, until it has an answer that is final.
    #[cold]
    fn reject(
        self: &Arc<Self>,
        stripe: usize,
        mut unadmitted: Unadmitted,
        now: Timestamp,
        deadline: Timestamp,
    ) -> Result<Ticket, (u64, RejectedExecutionError)> {
        let counting = Counting(&self.rejected);
        loop {
            let Unadmitted { error, sequence, task } = unadmitted;
            if trace::is_listening() {
                trace::rejected(sequence, task.name().as_deref(), &error);
            }
            if matches!(error, RejectedExecutionError::Spawn(_)) {
                discard(task);
                return Err((sequence, error));
            }
            let entry = Entry { deadline, sequence, element: Arc::clone(&task) };
            let own = task;
            let task = DrainedTask::new(entry, &self.detached_context(), CancelReason::Rejected);
            // Also if it panics: who has replaced it meanwhile may have left it to this thread.
            let handler = Contained::new(self.rejection.get());
            let rejected = RejectedTask { pool: self, task, error: &error };
            let Rejection(answer) = handler.rejected_execution(rejected);
            drop(handler);
            unadmitted = match answer {
                Answer::Abort(task) if task.is_of(&own) => {
                    discard(task.into_task());
                    return Err((sequence, error));
                }
                Answer::Retry(task, place) if task.is_of(&own) => {
                    drop(task.into_task());
                    let has_room = place.map(Place::hand_over).is_some();
                    match self.offer(stripe, own, now, deadline, has_room, true) {
                        Err(unadmitted) => unadmitted,
                        Ok(ticket) => {
                            std::mem::forget(counting);
                            return Ok(ticket);
                        }
                    }
                }
                Answer::Handled | Answer::Abort(_) | Answer::Retry(..) => {
                    return Ok(Ticket { slot: u32::MAX, sequence });
                }
            };
        }
    }

    /// Ends the waiting task that is due first, to make room.
    fn discard_oldest(&self) {
        if let Some(Entry { sequence, element, .. }) = self.queue.remove_first() {
            self.entry_removed();
            let found = self.end_as_cancelled(&*element, sequence, CancelReason::Rejected);
            if found != Cancellation::TooLate && element.is_periodic() {
                self.tell_displaced(&*element, sequence, "it was discarded for another task");
            }
            discard(element);
        }
    }
}

#[cfg(test)]
mod tests;
