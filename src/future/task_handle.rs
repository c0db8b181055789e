//! A handle to a task, for everything except taking its result. Its code is compiled once, not once for each result
//! type. [`ScheduledFuture`](super::ScheduledFuture) dereferences to [`TaskHandle`]. The methods that control when the
//! task runs are in `feature::control`, which also describes their races.

use std::{fmt, task::Waker, time::Duration};

use crate::{
    CancelReason, FailedRun, Failure, Limit, TaskId, TaskState, WouldDeadlock,
    entry::Ticket,
    pool::{IfRunning, Pool, PoolRef},
    sync::{
        Arc,
        process::{AtomicU8, Ordering},
    },
    task::{Drops, Run, Task},
    time::{Clock, Timestamp},
    unwind::{Contained, discard_with},
    wait::{self, Place},
};

/// Controls and cancels a task; from [`ScheduledFuture::task_handle`](crate::ScheduledFuture::task_handle). It is cheap
/// to clone, and its drop does nothing.
#[doc(alias = "AbortHandle")]
pub struct TaskHandle {
    task: Contained<Arc<Task>>,
    pool_ref: PoolRef,
    id: u64,
    /// The queue slot that the task was given when it was submitted.
    slot: u32,
    /// Flags for what dropping the handle does besides releasing the task. An atomic has no niche, so a `Result`
    /// that contains a future stores its discriminant in a pointer's niche, and is moved in whole words.
    at_drop: AtomicU8,
}

/// The handle was cloned from another handle, for example by `task_handle()`.
const BESIDE: u8 = 1;
/// The drop removes the waker of an `await` from the task.
const AWAITED: u8 = 2;
/// The drop gives up the result: another handle would keep it in memory, or it may be an `Err` to report.
pub(super) const GIVES_UP: u8 = 4;
/// The drop cancels the task.
pub(super) const CANCELS: u8 = 8;
/// If the drop cancels the task, it also asks a running body to stop.
pub(super) const SIGNALS: u8 = 16;

/// Cancellation of a task. Each method says whether it ended the task: `false` means that the task had ended before.
#[allow(clippy::must_use_candidate, reason = "they are done for what they do")]
impl TaskHandle {
    /// Ends the task as cancelled. Returns `true` if this call did, and `false` if the task had ended before. Java:
    /// `cancel(false)`.
    ///
    /// When this returns, a waiting task is out of the queue, and its closure and captures are dropped. A running task
    /// goes on to the end of its body, for which this does not wait, but its future completes now, as cancelled, and a
    /// periodic task does not run again.
    ///
    /// ```
    /// use std::{sync::Arc, time::Duration};
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let value = Arc::new(7);
    /// let captured = Arc::clone(&value);
    /// let late = executor.schedule(Duration::from_secs(60), move || *captured)?;
    /// assert!(late.cancel());
    /// assert_eq!((executor.pending_count(), Arc::strong_count(&value)), (0, 1));
    /// assert!(!late.cancel(), "it had ended before");
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias("abort", "clearTimeout", "clearInterval", "stop"))]
    pub fn cancel(&self) -> bool {
        // The steps of `Pool::cancel`, compiled here a second time, because this call has to be fast.
        let (pool, task, ticket) = (self.pool(), self.task(), self.ticket());
        let found = pool.end_as_cancelled(task, ticket.sequence, CancelReason::Requested);
        pool.take_out(task, ticket, found, IfRunning::LetReturn)
    }

    /// Ends the task as [`cancel`](Self::cancel) does, and cancels the [token](crate::TaskContext::token) of a running
    /// task, to ask its body to stop. Java: `cancel(true)`.
    ///
    /// If the task was cancelled before and its body still runs, the token is cancelled all the same, and the call
    /// returns `false`.
    ///
    /// [`CancellationToken`](crate::CancellationToken) has an example.
    #[doc(alias("abort", "interrupt", "stop"))]
    pub fn cancel_and_signal(&self) -> bool {
        self.cancel_if_running(IfRunning::Signal)
    }

    fn cancel_if_running(&self, if_running: IfRunning) -> bool {
        self.pool().cancel(self.task(), self.ticket(), CancelReason::Requested, if_running)
    }

    /// Ends the task as [`cancel_and_signal`](Self::cancel_and_signal) does, and blocks until its closure no longer
    /// runs: when this returns `Ok`, whatever a run had borrowed is free. The captures of a periodic closure have been
    /// dropped, unless another thread that has cancelled the task is about to do so. Returns `true` if this call ended
    /// the task, and `false` if it had ended before; it waits in both cases.
    ///
    /// A body may ignore its [token](crate::TaskContext::token). On a manual clock [another thread has to move
    /// it](crate::ManualClock#when-it-blocks) if the body waits for time.
    ///
    /// ```
    /// use punctual::{ScheduledThreadPoolExecutor, with_context};
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let watch = executor.submit(with_context(|run| run.token().wait()))?;
    /// assert!(watch.cancel_and_wait()?, "nothing of it runs any more");
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`WouldDeadlock`], at once, if this is called by the task itself, or by the last worker that is not waiting, as
    /// with [`join`](crate::ScheduledFuture::join). The task has been cancelled all the same.
    #[doc(alias("abort", "stop"))]
    pub fn cancel_and_wait(&self) -> Result<bool, WouldDeadlock> {
        let has_ended = self.cancel_and_signal();
        if self.task.has_left() {
            return Ok(has_ended);
        }
        if self.is_current() {
            return Err(WouldDeadlock(()));
        }
        let _waiting = self.pool().enter_wait(|| {
            let task = self.shared_task();
            Arc::new(move |timers: bool| !task.has_left() && !task.may_end_without_worker(timers))
        })?;
        let mut place = Place::default();
        let poll = |waker: &Waker| self.task.poll_left(&mut place, waker).then_some(());
        wait::block_on(self.clock(), poll);
        Ok(has_ended)
    }

    /// Takes the task out of the queue of `pool`, and ends the task. Returns `false` if the task is not in that queue.
    pub(crate) fn remove_from(&self, pool: &Arc<Pool>) -> bool {
        Arc::ptr_eq(self.pool_ref.pool(), pool) && pool.remove_pending(self.task(), self.ticket())
    }
}

impl TaskHandle {
    /// Returns how long it is until the next run: zero if it is due, and `None` if none is planned: the task is
    /// [paused](Self::pause), never due, running, or has ended. [`state`](Self::state) says which. Locks a part of the
    /// queue. Java: `getDelay`.
    #[doc(alias = "getDelay")]
    pub fn delay(&self) -> Option<Duration> {
        let entry =
            self.task.find_entry(self.ticket(), |ticket| self.pool().queue.deadline(ticket))?;
        let due = self.task.due_by(entry);
        (due < Timestamp::NEVER).then(|| due.delay_at(self.clock().read()))
    }

    /// Returns the last failed run of a periodic task, even after the task has ended. `None` if no run has failed, and
    /// for a one-shot task, whose panic is its result.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, FailurePolicy, ScheduledThreadPoolExecutor, trigger::every};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let second = Duration::from_secs(1);
    /// let poll = executor.task().on_failure(FailurePolicy::resume());
    /// let poll = poll.repeat(every(second).first_in(second), || -> () { panic!("no connection") })?;
    /// clock.run_for(2 * second);
    /// let failed = poll.last_failure().expect("both runs have failed");
    /// assert_eq!((failed.run_number(), failed.message()), (2, "no connection"));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn last_failure(&self) -> Option<FailedRun> {
        self.task.last_failure()
    }

    /// Returns `true` if the task has ended: completed, panicked or cancelled. Java: `isDone`.
    #[doc(alias = "is_finished")]
    pub fn is_done(&self) -> bool {
        self.state().is_done()
    }

    /// Returns `true` if the task was cancelled. Java: `isCancelled`.
    pub fn is_cancelled(&self) -> bool {
        self.state() == TaskState::Cancelled
    }

    /// Returns the state of the task. Java: `state`.
    pub fn state(&self) -> TaskState {
        self.task.state()
    }

    /// Returns the id of the task.
    pub fn id(&self) -> TaskId {
        TaskId(self.id)
    }

    /// Returns the clock of the task's executor.
    pub fn clock(&self) -> &Clock {
        self.pool().clock()
    }

    /// Returns `true` if the calling thread is in a run of the task: a wait for the task would then wait for itself.
    pub fn is_current(&self) -> bool {
        Run::is_of(&self.task)
    }

    /// Blocks until the task has ended, or until `limit` is reached. Returns `true` if the task has ended, whatever the
    /// limit says. The result stays where it is.
    pub fn wait_within(&self, limit: impl Into<Limit>) -> bool {
        let (limit, mut place) = (limit.into(), Place::default());
        let deadline = limit.deadline(self.clock());
        let has_ended = match &limit.token {
            None => self.block_soon(&mut place, deadline),
            Some(token) => {
                let poll = |waker: &Waker| self.poll_done(&mut place, waker);
                token.block_unless_raised(self.clock(), deadline, poll).is_some()
            }
        };
        // A task that has ended keeps no list of its waiters.
        if !has_ended {
            self.task.forget(&mut place);
        }
        has_ended
    }

    /// Returns the name of the task, if it was given one.
    pub fn name(&self) -> Option<Arc<str>> {
        self.task.name()
    }

    pub(super) fn describe(&self, f: &mut fmt::Formatter<'_>, what: &str) -> fmt::Result {
        let mut shown = f.debug_struct(what);
        shown.field("id", &format_args!("{}", self.id()));
        if let Some(name) = self.name() {
            shown.field("name", &name);
        }
        shown.field("state", &self.state()).finish_non_exhaustive()
    }
}

// The operations that a future needs from its handle.
impl TaskHandle {
    pub(crate) fn new(task: Arc<Task>, pool_ref: PoolRef, ticket: Ticket) -> Self {
        let Ticket { slot, sequence: id } = ticket;
        Self { task: Contained::new(task), pool_ref, id, slot, at_drop: AtomicU8::new(0) }
    }

    #[inline]
    pub(super) fn set_at_drop(&mut self, things: u8, are_done: bool) {
        let bits = self.at_drop.get_mut();
        *bits = if are_done { *bits | things } else { *bits & !things };
    }

    #[inline]
    pub(crate) fn task(&self) -> &Task {
        &**self.task
    }

    pub(crate) fn shared_task(&self) -> Arc<Task> {
        Arc::clone(&self.task)
    }

    pub(crate) fn pool(&self) -> &Arc<Pool> {
        self.pool_ref.pool()
    }

    pub(crate) fn needs_worker_of(&self, pool: &Arc<Pool>) -> bool {
        Arc::ptr_eq(self.pool_ref.pool(), pool) && self.task.needs_worker(!pool.is_driven)
    }

    pub(crate) fn ticket(&self) -> Ticket {
        Ticket { slot: self.slot, sequence: self.id }
    }

    /// Returns where to report a panic from dropping the task's values.
    fn drops(&self) -> Drops<'_> {
        self.pool().callbacks.hooks.drops(self.id)
    }

    /// Blocks until the task has ended; spins for a while before sleeping. Fails if the wait could never end.
    pub(super) fn wait(&self) -> Result<(), WouldDeadlock> {
        if self.is_current() && self.needs_worker_of(self.pool()) {
            return Err(WouldDeadlock(()));
        }
        let _waiting = self.pool().enter_wait(|| {
            let task = self.shared_task();
            Arc::new(move |has_timer_thread: bool| task.needs_worker(has_timer_thread))
        })?;
        let mut place = Place::default();
        while !self.block_soon(&mut place, Timestamp::NEVER) {}
        Ok(())
    }

    fn block_soon(&self, place: &mut Place, deadline: Timestamp) -> bool {
        let is_done = || self.state().is_done();
        let poll = |waker: &Waker| self.poll_done(place, waker);
        wait::block_soon(self.clock(), deadline, is_done, poll).is_some()
    }

    fn poll_done(&self, place: &mut Place, waker: &Waker) -> Option<()> {
        self.task.poll_done(place, waker).then_some(())
    }

    // Kept apart, so that the drop of any other reference saves no registers for it.
    #[cold]
    #[inline(never)]
    fn withdraw(&self, at_drop: u8) {
        if at_drop & CANCELS != 0 {
            let signals = at_drop & SIGNALS != 0;
            self.cancel_if_running(if signals { IfRunning::Signal } else { IfRunning::LetReturn });
        }
        if at_drop & AWAITED != 0 {
            self.task.deregister_awaiting();
        }
        if at_drop & GIVES_UP != 0 {
            self.task.abandon(self.drops());
        }
    }

    pub(super) fn poll_awaited(&mut self, waker: &Waker) -> bool {
        let has_ended = self.task.poll_awaited(waker);
        self.set_at_drop(AWAITED, !has_ended);
        has_ended
    }
}

impl Clone for TaskHandle {
    fn clone(&self) -> Self {
        // Relaxed: the bit that a clone sets matters only to the drop, which comes after every use.
        let at_drop = self.at_drop.load(Ordering::Relaxed);
        if at_drop & BESIDE == 0 {
            self.at_drop.store(at_drop | GIVES_UP, Ordering::Relaxed);
        }
        let mut beside = Self::new(self.shared_task(), self.pool_ref.clone(), self.ticket());
        beside.set_at_drop(BESIDE, true);
        beside
    }
}

impl Drop for TaskHandle {
    fn drop(&mut self) {
        let at_drop = *self.at_drop.get_mut();
        if at_drop & !BESIDE != 0 {
            self.withdraw(at_drop);
        }
        let task = self.task.take();
        discard_with(task, |panic| self.drops().report(None, Failure::of_panic(panic)));
    }
}

impl fmt::Debug for TaskHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe(f, "TaskHandle")
    }
}
