//! A handle on a task: everything that can be done to a task but the taking of its result.
//!
//! It is compiled once, and not for each type of a result. A [`ScheduledFuture`](super::ScheduledFuture) calls the verbs here,
//! and documents them. What the changes of a task that is alive mean, and what they race with: `layers::control`.

use std::{
    fmt,
    task::Waker,
    time::{Duration, Instant},
};

use crate::{
    CancelReason, FailedRun, Failure, Limit, TaskContext, TaskId, TaskState, WouldDeadlock,
    entry::{NoEntry, Ticket},
    layers::Change,
    pool::{IfRunning, Pool, PoolRef},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Drops, Run, Task},
    time::{Clock, Timestamp},
    trigger::Trigger,
    unwind::{Contained, discard_with},
    wait::{self, Place},
};

/// Controls and cancels a task; from [`ScheduledFuture::task_handle`](crate::ScheduledFuture::task_handle). It is cheap to clone, does not
/// depend on the type of the result, and does nothing when it is dropped.
///
/// ```
/// use std::time::Duration;
/// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
///
/// let clock = ManualClock::new();
/// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
/// let logout = executor.schedule(Duration::from_secs(60), || "logged out")?;
/// let activity = logout.task_handle();
/// clock.run_for(Duration::from_secs(59));
/// assert!(activity.reschedule(Duration::from_secs(60)), "seen again: one minute more");
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[doc(alias = "AbortHandle")]
pub struct TaskHandle {
    task: Contained<Arc<Task>>,
    pool_ref: PoolRef,
    id: u64,
    /// The slot of the queue that the task was given when it was submitted.
    slot: u32,
    /// True if there is a waker for the `await` of the future that has this handle. An atomic has no unused values, so
    /// a `Result` with a future keeps its variant in a pointer, and is moved by whole words.
    is_awaited: AtomicBool,
    /// True if this handle is a future's whose drop gives the result up at once: there are others, which would keep it,
    /// or it may be an `Err`.
    gives_up: AtomicBool,
}

/// Each verb does what the method of [`ScheduledFuture`](crate::ScheduledFuture) with the same name does.
#[allow(clippy::must_use_candidate, reason = "they are done for what they do")]
impl TaskHandle {
    /// Cancels the task: see [`ScheduledFuture::cancel`](crate::ScheduledFuture::cancel).
    pub fn cancel(&self) -> bool {
        self.cancel_if_running(IfRunning::LetReturn)
    }

    /// Cancels the task, and asks a running body to stop: see
    /// [`ScheduledFuture::cancel_and_signal`](crate::ScheduledFuture::cancel_and_signal).
    pub fn cancel_and_signal(&self) -> bool {
        self.cancel_if_running(IfRunning::Signal)
    }

    #[inline(always)]
    fn cancel_if_running(&self, if_running: IfRunning) -> bool {
        self.pool().cancel(self.task(), self.ticket(), CancelReason::Requested, if_running)
    }

    /// Cancels the task, asks a running body to stop, and waits until it has: see
    /// [`ScheduledFuture::cancel_and_wait`](crate::ScheduledFuture::cancel_and_wait).
    ///
    /// # Errors
    ///
    /// The same as [`ScheduledFuture::cancel_and_wait`](crate::ScheduledFuture::cancel_and_wait).
    pub fn cancel_and_wait(&self) -> Result<bool, WouldDeadlock> {
        let has_ended = self.cancel_and_signal();
        if self.task.has_left() {
            return Ok(has_ended);
        }
        if Run::is_of(&self.task) {
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

    /// Runs the task next after `delay`: see [`ScheduledFuture::reschedule`](crate::ScheduledFuture::reschedule).
    pub fn reschedule(&self, delay: Duration) -> bool {
        self.change(Change::At(self.clock().read().after(delay)))
    }

    /// Runs the task next at `instant`: see [`ScheduledFuture::reschedule_at`](crate::ScheduledFuture::reschedule_at).
    pub fn reschedule_at(&self, instant: impl Into<Option<Instant>>) -> bool {
        let now = self.clock().read();
        let moment = |instant| self.clock().deadline_of(instant).max(now);
        self.change(Change::At(instant.into().map_or(Timestamp::NEVER, moment)))
    }

    /// Runs the task after `delay` at the latest: see [`ScheduledFuture::run_within`](crate::ScheduledFuture::run_within).
    pub fn run_within(&self, delay: Duration) -> bool {
        self.change(Change::Within(self.clock().read().after(delay)))
    }

    /// Runs the task now, beside its schedule: see [`ScheduledFuture::run_now`](crate::ScheduledFuture::run_now).
    pub fn run_now(&self) -> bool {
        self.change(Change::RunNow(self.clock().read()))
    }

    /// Gives a periodic task another schedule: see [`ScheduledFuture::set_trigger`](crate::ScheduledFuture::set_trigger).
    pub fn set_trigger(&self, trigger: impl Trigger) -> bool {
        let change = Change::schedule(trigger, self.task(), self.clock());
        change.is_some_and(|change| self.change(change))
    }

    /// Keeps the task from running until it is resumed: see [`ScheduledFuture::pause`](crate::ScheduledFuture::pause).
    pub fn pause(&self) -> bool {
        self.change(Change::Pause)
    }

    /// Ends a pause: see [`ScheduledFuture::resume`](crate::ScheduledFuture::resume).
    pub fn resume(&self) -> bool {
        self.change(Change::Resume)
    }

    fn change(&self, change: Change) -> bool {
        self.pool_ref.control(&self.task, self.ticket(), change)
    }

    /// Takes the task out of the queue of this pool, if it waits there. Returns `true` if it did.
    pub(super) fn remove_from(&self, pool: &Arc<Pool>) -> bool {
        self.pool_ref.belongs_to(pool) && pool.remove_pending(self.task(), self.ticket())
    }
}

impl TaskHandle {
    /// Returns how long it is until the next run: see [`ScheduledFuture::delay`](crate::ScheduledFuture::delay).
    #[must_use]
    pub fn delay(&self) -> Option<Duration> {
        let entry =
            self.task.find_entry(self.ticket(), |ticket| self.pool().queue.deadline(ticket))?;
        let due = self.task.due_by(entry);
        (due < Timestamp::NEVER).then(|| due.delay_at(self.clock().read()))
    }

    /// Returns the last run of a periodic task that failed: see [`ScheduledFuture::last_failure`](crate::ScheduledFuture::last_failure).
    #[must_use]
    pub fn last_failure(&self) -> Option<FailedRun> {
        self.task.last_failure()
    }

    /// Returns `true` if the task has ended.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.state().is_done()
    }

    /// Returns `true` if the task was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.state() == TaskState::Cancelled
    }

    /// Returns the state of the task.
    #[must_use]
    pub fn state(&self) -> TaskState {
        self.task.state()
    }

    /// Returns the id of the task.
    #[must_use]
    pub fn id(&self) -> TaskId {
        TaskId(self.id)
    }

    /// Returns the name of the task, if it was given one.
    #[must_use]
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

// The operations that a future needs of its handle.
impl TaskHandle {
    pub(crate) fn new(task: Arc<Task>, pool_ref: PoolRef, ticket: Ticket) -> Self {
        let Ticket { slot, sequence: id } = ticket;
        let (task, is_awaited) = (Contained::new(task), AtomicBool::new(false));
        Self { task, pool_ref, id, slot, is_awaited, gives_up: AtomicBool::new(false) }
    }

    /// Returns another handle. The result is given up when the future that has this one is dropped, however long the
    /// other one keeps the task.
    pub(super) fn share(&self) -> Self {
        self.give_up_at_drop();
        self.clone()
    }

    /// Has the result given up when the future that has this handle is dropped, and not with the node.
    pub(super) fn give_up_at_drop(&self) {
        // Relaxed: only the drop reads it, which comes after every use.
        self.gives_up.store(true, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn task(&self) -> &Task {
        &**self.task
    }

    pub(super) fn shared_task(&self) -> Arc<Task> {
        Arc::clone(&self.task)
    }

    pub(super) fn pool(&self) -> &Arc<Pool> {
        self.pool_ref.pool()
    }

    pub(super) fn clock(&self) -> &Clock {
        self.pool().clock()
    }

    fn ticket(&self) -> Ticket {
        Ticket { slot: self.slot, sequence: self.id }
    }

    /// Returns where a panic in the drop of the result is reported.
    fn drops(&self) -> Drops<'_> {
        self.pool().callbacks().hooks.drops(self.id)
    }

    /// Blocks until the task has ended; spins for a while before it sleeps.
    pub(super) fn wait(&self) -> Result<(), WouldDeadlock> {
        let _waiting = self.pool().enter_join(|| self.shared_task())?;
        let mut place = Place::default();
        while !self.block_soon(&mut place, Timestamp::NEVER) {}
        Ok(())
    }

    fn block_soon(&self, place: &mut Place, deadline: Timestamp) -> bool {
        let is_done = || self.state().is_done();
        let poll = |waker: &Waker| self.poll_done(place, waker);
        wait::block_soon(self.clock(), deadline, is_done, poll).is_some()
    }

    /// Blocks until the task has ended, or until `limit` is reached, whose deadline this is. Returns
    /// `true` if the task has ended, whatever the limit says. The result stays where it is.
    pub(super) fn ends_within(&self, limit: &Limit, deadline: Timestamp) -> bool {
        let mut place = Place::default();
        let has_ended = match limit.token() {
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

    /// The poll of [`wait`].
    fn poll_done(&self, place: &mut Place, waker: &Waker) -> Option<()> {
        self.task.poll_done(place, waker).then_some(())
    }

    /// Takes the waker of an `await` off the task, and gives up the result.
    // Apart, so that a drop of any other reference saves no registers for it.
    #[cold]
    #[inline(never)]
    fn withdraw(&self) {
        if self.is_awaited.load(Ordering::Relaxed) {
            self.task.deregister_awaiting();
        }
        if self.gives_up.load(Ordering::Relaxed) {
            self.task.abandon(self.drops());
        }
    }

    /// The poll of an `await`. Returns `true` once the task has ended.
    pub(super) fn poll_awaited(&mut self, waker: &Waker) -> bool {
        let has_ended = self.task.poll_awaited(waker);
        self.is_awaited.store(!has_ended, Ordering::Relaxed);
        has_ended
    }
}

/// Control of the task by itself, in its run.
impl TaskContext {
    /// Reschedules the periodic task: it runs next after `delay`, counted from now; see
    /// [`ScheduledFuture::reschedule`](crate::ScheduledFuture::reschedule). Returns `false` for a
    /// one-shot task, and if this is not called by the task, in its run.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor, current_task};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let second = Duration::from_secs(1);
    /// let poll = executor.schedule_at_fixed_rate(second, second, move || {
    ///     // Nothing is expected for a minute.
    ///     current_task().expect("inside a task").reschedule(60 * second);
    /// })?;
    /// clock.run_for(second);
    /// assert_eq!(poll.delay(), Some(60 * second));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[allow(clippy::must_use_candidate, reason = "it is done for what it does")]
    pub fn reschedule(&self, delay: Duration) -> bool {
        self.change(|clock| Some(Change::At(clock.read().after(delay))))
    }

    /// Gives the periodic task another schedule; see
    /// [`ScheduledFuture::set_trigger`](crate::ScheduledFuture::set_trigger). Returns `false` also if
    /// this is not called by the task, in its run.
    ///
    /// # Panics
    ///
    /// If the trigger panics.
    #[allow(clippy::must_use_candidate, reason = "it is done for what it does")]
    pub fn set_trigger(&self, trigger: impl Trigger) -> bool {
        let task = Arc::clone(&self.task);
        self.change(|clock| Change::schedule(trigger, &*task, clock))
    }

    /// Pauses the periodic task after this run; see
    /// [`ScheduledFuture::pause`](crate::ScheduledFuture::pause). Returns `false` also if this is not
    /// called by the task, in its run.
    #[allow(clippy::must_use_candidate, reason = "it is done for what it does")]
    pub fn pause(&self) -> bool {
        self.change(|_| Some(Change::Pause))
    }

    /// Changes the task whose run the calling thread is in. Only there it is known that the task has no
    /// entry in a queue, which this could not move.
    fn change(&self, change: impl FnOnce(&Clock) -> Option<Change>) -> bool {
        if !Run::is_of(&self.task) {
            return false;
        }
        let clock = self.stop.clock();
        let Some(change) = change(clock) else { return false };
        self.task.control(change, clock, &mut NoEntry).had_effect
    }
}

impl Clone for TaskHandle {
    fn clone(&self) -> Self {
        Self::new(self.shared_task(), self.pool_ref.clone(), self.ticket())
    }
}

impl Drop for TaskHandle {
    fn drop(&mut self) {
        // Relaxed: a drop comes after every use.
        let (is_awaited, gives_up) = (&self.is_awaited, &self.gives_up);
        if is_awaited.load(Ordering::Relaxed) || gives_up.load(Ordering::Relaxed) {
            self.withdraw();
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
