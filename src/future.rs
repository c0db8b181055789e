//! The future: the caller's half of a task.
//!
//! It waits for the result, by blocking or by being awaited, with the same code ([`wait`](crate::wait)); it shows
//! the state of the task; it controls a task that is alive; and it cancels. It holds the task, and it holds the pool
//! only to move the task in the queue: a future that outlives its executor still works, because nothing is left to be
//! moved.
//!
//! There are three types. [`ScheduledFuture<T>`] can take the result, and there is one for each task.
//! [`TaskHandle`] cannot take it, so it needs no `T` and can be cloned; the future has one, which does everything
//! else. [`CancelOnDrop`] is a future that cancels its task when it is dropped.

mod task_handle;

use std::{
    fmt,
    future::Future,
    marker::PhantomData,
    ops::Deref,
    pin::Pin,
    task::{Context, Poll},
    time::{Duration, Instant},
};

pub use self::task_handle::TaskHandle;
use crate::{
    FailedRun, Limit, TaskError, TaskId, TaskState, WouldDeadlock,
    pool::Pool,
    sync::Arc,
    task::{Task, is_result},
    time::Timestamp,
    trigger::Trigger,
};

/// The future result of a task. Java's `ScheduledFuture`.
///
/// * Wait: [`join`](Self::join), [`join_within`](Self::join_within), `.await`.
/// * Look: [`try_join`](Self::try_join), [`is_done`](Self::is_done), [`state`](Self::state),
///   [`delay`](Self::delay).
/// * Control: [`reschedule`](Self::reschedule), [`run_within`](Self::run_within),
///   [`run_now`](Self::run_now), [`set_trigger`](Self::set_trigger), [`pause`](Self::pause),
///   [`resume`](Self::resume).
/// * Cancel: [`cancel`](Self::cancel), [`cancel_and_signal`](Self::cancel_and_signal),
///   [`cancel_and_wait`](Self::cancel_and_wait).
///
/// **Dropping it detaches the task**: the task still runs, as in Java, std and tokio, and its result
/// is dropped as soon as it is there. [`cancel_on_drop`](Self::cancel_on_drop) makes a guard that
/// cancels.
///
/// The result is moved out, so it can be taken once: every further call returns
/// [`TaskError::ResultTaken`]. Return an `Arc` from the task if several callers need the result.
///
/// It is a [`Future`] that needs no runtime and can be awaited on any.
///
/// # A result that is an `Err`
///
/// The `Err` of a closure that runs once is its result, and the task has completed: whoever has the future decides what it
/// means. An `Err` that nobody can take any more, because the future was dropped, before or after the end of the task, or
/// because the task was cancelled while it ran, is reported as a panic is: to the
/// [failure handler](crate::Builder::failure_handler), and as an error event. If nothing hears of it, one line on
/// standard error says so, unless the task was cancelled. The report has the text of the error if the closure returns
/// `Result<(), E>` with an [`io::Error`](std::io::Error), a `Box<dyn Error + Send + Sync>`, a `String` or a `&str`, and the
/// name of the type otherwise.
///
/// No future can return the `Err` of a run that [repeats](crate::Handle::repeat) or is [retried](crate::Handle::retry):
/// that run has failed, and is reported at once.
///
/// # Example
///
/// ```
/// use std::time::Duration;
/// use punctual::ScheduledThreadPoolExecutor;
///
/// let executor = ScheduledThreadPoolExecutor::new(1);
/// let soon = executor.schedule(Duration::from_millis(1), || 7)?;
/// assert_eq!(soon.join()?, 7);
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[doc(alias = "Future")]
#[doc(alias = "FutureTask")]
#[doc(alias("JoinHandle", "Promise"))]
pub struct ScheduledFuture<T> {
    handle: TaskHandle,
    result: PhantomData<fn() -> T>,
}

impl<T: 'static> ScheduledFuture<T> {
    /// Blocks until the task has ended, and takes its result. Java: `get`.
    ///
    /// On a manual clock [another thread has to move it](crate::ManualClock#when-it-blocks). The captures of
    /// a task that has run have been dropped when this returns. Those of a task that was cancelled are
    /// dropped by the thread that cancelled it, which may still be doing so.
    ///
    /// ```
    /// use punctual::{ScheduledThreadPoolExecutor, TaskError};
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let answer = executor.submit(|| 6 * 7)?;
    /// assert_eq!(answer.join()?, 42);
    /// assert!(matches!(answer.join(), Err(TaskError::ResultTaken)));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// * [`TaskError::Failed`] or [`TaskError::Cancelled`], as the task ended.
    /// * [`TaskError::ResultTaken`] if the result has been taken before.
    /// * [`TaskError::WouldDeadlock`], at once, if this is called by the task itself, or by the last
    ///   worker that is not already waiting in a `join` for a task that has not ended, when no other
    ///   worker can be started. A wait that can end without any of the workers is not refused: for a
    ///   task with a [time limit](crate::TaskBuilder::timeout), or for one that was
    ///   [kept](crate::RejectedTask::keep) and may be run elsewhere. A refused wait takes nothing: the
    ///   future is as it was.
    #[doc(alias = "get")]
    #[doc(alias("wait", "block_on"))]
    #[inline]
    pub fn join(&self) -> Result<T, TaskError> {
        self.try_join().unwrap_or_else(|| self.wait_and_join())
    }

    #[inline(never)]
    fn wait_and_join(&self) -> Result<T, TaskError> {
        self.handle.wait().map_err(|_| TaskError::WouldDeadlock)?;
        self.try_join().unwrap_or(Err(TaskError::ResultTaken))
    }

    /// Blocks until the task has ended, or until `limit` is reached, and takes the result. Returns
    /// `None` if the task has not ended by then; it goes on. Java: `get(timeout, unit)`, and `get` in a
    /// thread that may be interrupted. [`Limit`] has an example.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let later = executor.schedule(Duration::from_secs(60), || "done")?;
    /// assert!(later.join_within(Duration::from_millis(1)).is_none());
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Inside the `Some`: as [`join`](Self::join), but never [`TaskError::WouldDeadlock`], because the
    /// wait can end without the task.
    #[doc(alias("recv_timeout", "wait_timeout"))]
    pub fn join_within(&self, limit: impl Into<Limit>) -> Option<Result<T, TaskError>> {
        let limit = limit.into();
        let deadline = limit.deadline(self.handle.clock());
        if self.ends_within(&limit, deadline) { self.try_join() } else { None }
    }

    /// Takes the result if the task has ended; returns `None` if not. Does not block. Java:
    /// `resultNow`, `exceptionNow`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let tea = executor.schedule(Duration::from_secs(60), || "tea")?;
    /// assert!(tea.try_join().is_none());
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Inside the `Some`: as [`join`](Self::join), but never [`TaskError::WouldDeadlock`].
    #[doc(alias = "resultNow")]
    #[doc(alias = "exceptionNow")]
    #[doc(alias("try_recv", "now_or_never"))]
    pub fn try_join(&self) -> Option<Result<T, TaskError>> {
        self.handle.task().take_result()
    }
}

impl<T> ScheduledFuture<T> {
    /// `T` is the type of the task's result.
    #[inline]
    pub(crate) fn new(handle: TaskHandle) -> Self {
        if is_result::<T>() {
            handle.give_up_at_drop();
        }
        Self { handle, result: PhantomData }
    }

    /// Blocks until the task has ended, and does not take the result. Several threads may wait for one
    /// future at once. On a manual clock
    /// [another thread has to move it](crate::ManualClock#when-it-blocks).
    ///
    /// # Errors
    ///
    /// [`TaskError::WouldDeadlock`], as [`join`](Self::join).
    pub fn wait(&self) -> Result<(), TaskError> {
        self.handle.wait().map_err(|_| TaskError::WouldDeadlock)
    }

    /// Returns `true` if the task has ended: completed, panicked or cancelled. Java: `isDone`.
    #[doc(alias = "isDone")]
    #[doc(alias = "is_finished")]
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.state().is_done()
    }

    /// Returns `true` if the task was cancelled. Java: `isCancelled`.
    #[doc(alias = "isCancelled")]
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.state() == TaskState::Cancelled
    }

    /// Returns the state of the task. Java: `state`.
    #[must_use]
    pub fn state(&self) -> TaskState {
        self.handle.state()
    }

    /// Returns how long it is until the next run: zero if it is due, and `None` if no run is to come as things are: the task
    /// is [paused](Self::pause), or planned for no moment; it is running; or it has ended. [`state`](Self::state) says which.
    /// Locks a part of the queue. Java: `getDelay`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let tea = executor.schedule(Duration::from_secs(60), || "tea")?;
    /// clock.run_for(Duration::from_secs(20));
    /// assert_eq!(tea.delay(), Some(Duration::from_secs(40)));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias = "getDelay")]
    #[must_use]
    pub fn delay(&self) -> Option<Duration> {
        self.handle.delay()
    }

    /// Returns the id of the task.
    #[must_use]
    pub fn id(&self) -> TaskId {
        self.handle.id()
    }

    /// Returns the name of the task, if it was given one.
    #[must_use]
    pub fn name(&self) -> Option<Arc<str>> {
        self.handle.name()
    }

    /// Ends the task as cancelled. Returns `true` if this call did, and `false` if the task had ended
    /// before. Java: `cancel(false)`.
    ///
    /// A waiting task is gone when this returns: it is out of the queue, in O(log n), and its closure
    /// and captures are dropped. A running task goes on to the end of its body, but its future is
    /// cancelled now, and a periodic task does not run again. Does not wait for the body.
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
    #[doc(alias(
        "abort",
        "clearTimeout",
        "clear_timeout",
        "clearInterval",
        "clear_interval",
        "stop"
    ))]
    pub fn cancel(&self) -> bool {
        self.handle.cancel()
    }

    /// Ends the task as [`cancel`](Self::cancel) does, and raises the
    /// [token](crate::TaskContext::token) of a running task, to ask its body to stop. Java:
    /// `cancel(true)`.
    ///
    /// If the task was cancelled before and its body still runs, the token is raised as well, and the
    /// call returns `false`, because it did not end the task.
    ///
    /// [`CancellationToken`](crate::CancellationToken) has an example.
    #[doc(alias("abort", "interrupt", "stop"))]
    pub fn cancel_and_signal(&self) -> bool {
        self.handle.cancel_and_signal()
    }

    /// Returns a handle that can control and cancel the task but cannot take its result.
    #[doc(alias = "abort_handle")]
    #[must_use]
    pub fn task_handle(&self) -> TaskHandle {
        self.handle.share()
    }

    /// Returns the last run of a periodic task that failed, also after the task has ended. `None` if no
    /// run has failed, and for a one-shot task, whose panic is its result.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, FailurePolicy, ScheduledThreadPoolExecutor};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let second = Duration::from_secs(1);
    /// let poll = executor.task().on_failure(FailurePolicy::resume());
    /// let poll = poll.schedule_at_fixed_rate(second, second, || -> () { panic!("no connection") })?;
    /// clock.run_for(2 * second);
    /// let failed = poll.last_failure().expect("both runs have failed");
    /// assert_eq!((failed.run_number(), failed.message()), (2, "no connection"));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[must_use]
    pub fn last_failure(&self) -> Option<FailedRun> {
        self.handle.last_failure()
    }

    /// Turns the future into a guard that cancels the task when it is dropped.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let guard = executor.schedule(Duration::from_secs(60), || "too late")?.cancel_on_drop();
    /// assert_eq!(executor.pending_count(), 1);
    /// drop(guard);
    /// assert_eq!(executor.pending_count(), 0);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias = "abort_on_drop")]
    pub fn cancel_on_drop(self) -> CancelOnDrop<T> {
        CancelOnDrop { future: Some(self), signals: false }
    }

    /// Turns the future into a guard that [cancels and signals](Self::cancel_and_signal) the task when
    /// it is dropped: a running body is asked to stop.
    pub fn cancel_and_signal_on_drop(self) -> CancelOnDrop<T> {
        CancelOnDrop { future: Some(self), signals: true }
    }

    pub(crate) fn shared_task(&self) -> Arc<Task> {
        self.handle.shared_task()
    }

    pub(crate) fn pool(&self) -> &Arc<Pool> {
        self.handle.pool()
    }

    pub(crate) fn remove_from(&self, pool: &Arc<Pool>) -> bool {
        self.handle.remove_from(pool)
    }

    pub(crate) fn ends_within(&self, limit: &Limit, deadline: Timestamp) -> bool {
        self.handle.ends_within(limit, deadline)
    }
}

/// Control of a task that is alive. Each of these returns `true` if it had an effect, and `false` if it
/// came too late: the task has ended, or is a one-shot task that a worker has taken, or whose
/// [time](crate::TaskBuilder::timeout) is up, or the executor has stopped.
///
/// None of them interrupts a run. What is asked for while the task runs applies to the run after it,
/// and of two such wishes the later one holds. None of them blocks, and all take O(log n).
///
/// Once an executor has been [shut down](crate::Handle::shutdown) a task can be brought forward, but
/// not put off.
#[allow(clippy::must_use_candidate, reason = "they are done for what they do")]
impl<T> ScheduledFuture<T> {
    /// Runs the task next after `delay`, whenever it was to run: a timeout that starts anew, a
    /// watchdog that is fed. The runs of a periodic task after that go on from there: a fixed rate
    /// has its grid moved, and a [trigger](crate::Trigger) is asked after the run as always. A time
    /// limit of a one-shot task moves along.
    ///
    /// A task that is [paused](Self::pause) stays paused.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let second = Duration::from_secs(1);
    /// let alarm = executor.schedule(5 * second, || "no sign of life")?;
    /// clock.run_for(4 * second);
    /// assert!(alarm.reschedule(5 * second));
    /// assert_eq!(alarm.delay(), Some(5 * second));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias("reset", "postpone", "heartbeat", "dead_man_switch"))]
    pub fn reschedule(&self, delay: Duration) -> bool {
        self.handle.reschedule(delay)
    }

    /// Like [`reschedule`](Self::reschedule), at an instant of the executor's
    /// [clock](crate::Handle::clock). One that has passed means now, and `None` never.
    pub fn reschedule_at(&self, instant: impl Into<Option<Instant>>) -> bool {
        self.handle.reschedule_at(instant)
    }

    /// Runs the task after `delay` at the latest: brings its next run forward, or leaves it as it is. It
    /// never puts a run off.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let second = Duration::from_secs(1);
    /// let report = executor.schedule(60 * second, || ())?;
    /// assert!(report.run_within(5 * second));
    /// assert!(report.run_within(10 * second), "it is earlier anyway");
    /// assert_eq!(report.delay(), Some(5 * second));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias = "bring_forward")]
    pub fn run_within(&self, delay: Duration) -> bool {
        self.handle.run_within(delay)
    }

    /// Runs the task now. For a periodic task that is one run more, and its schedule is as it was: the
    /// run that is planned takes place at its moment. If that run is due already, it is the one that was
    /// asked for. A periodic task runs also if it is [paused](Self::pause), and stays paused. A
    /// one-shot task runs now, and not again.
    ///
    /// A task of an [on-demand](crate::trigger::on_demand) trigger has no schedule: a run that is
    /// asked for is its next.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let minute = Duration::from_secs(60);
    /// let backup = executor.schedule_at_fixed_rate(minute, minute, || { /* back up */ })?;
    /// assert!(backup.run_now());
    /// clock.run_until_idle();
    /// assert_eq!((executor.statistics().runs, backup.delay()), (1, Some(minute)));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias("trigger", "notify", "fire"))]
    pub fn run_now(&self) -> bool {
        self.handle.run_now()
    }

    /// Gives a periodic task another schedule. The trigger is asked for its first run at once, on this
    /// thread, and that is when the task runs next. The old one is dropped. The task keeps its
    /// [policy](crate::MissedRuns) for missed runs. If the trigger [retries](crate::Trigger::retry), failures no longer
    /// end the task, unless its [policy](crate::TaskBuilder::on_failure) says so.
    ///
    /// Returns `false`, and changes nothing, also if the task is a one-shot task, or if the trigger has
    /// no run or a period of zero, or cannot be [shared](crate::Trigger::share) behind the gate of the task.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ScheduledThreadPoolExecutor, trigger::every};
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let poll = executor.repeat(every(Duration::from_secs(60)), || { /* look */ })?;
    /// assert!(poll.set_trigger(every(Duration::from_secs(1))), "there is news: look more often");
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the trigger panics. The task is then as it was.
    pub fn set_trigger(&self, trigger: impl Trigger) -> bool {
        self.handle.set_trigger(trigger)
    }

    /// Keeps the task from running until it is [resumed](Self::resume). Its schedule goes on: what falls
    /// due meanwhile is late, and when the task is resumed its [policy](crate::MissedRuns) says what
    /// becomes of the runs that were missed, exactly as if all workers had been busy for that time. A
    /// moment that has not come by then stands. A run that is under way is not interrupted.
    ///
    /// A time limit goes on counting. A task that is paused is
    /// [`Paused`](crate::TaskState::Paused) and stays pending: an executor that is shut down waits for
    /// it as for every delayed task, until it has been resumed and has run, or has been cancelled.
    ///
    /// Returns `false` also if the task is paused already.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor, trigger::every};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let second = Duration::from_secs(1);
    /// let tick = executor.repeat(every(second).first_in(second), || ())?;
    /// assert!(tick.pause());
    /// clock.run_for(10 * second);
    /// assert!(tick.resume());
    /// clock.run_until_idle();
    /// assert_eq!(executor.statistics().runs, 1, "one run for the ten that were missed");
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias = "suspend")]
    pub fn pause(&self) -> bool {
        self.handle.pause()
    }

    /// Ends a [pause](Self::pause). Returns `false` also if the task is not paused.
    pub fn resume(&self) -> bool {
        self.handle.resume()
    }

    /// Ends the task as [`cancel_and_signal`](Self::cancel_and_signal) does, and blocks until its closure
    /// does not run any more: when this returns `Ok`, the closure is not running and never will, and
    /// what a run had borrowed is free. The captures of a periodic closure have been dropped, unless
    /// another thread that has cancelled the task is about to do so. Returns `true` if this call ended
    /// the task, and `false` if it had ended before; it waits in both cases.
    ///
    /// A body that does not look at its [token](crate::TaskContext::token) is waited for to its end. On
    /// a manual clock [another thread has to move it](crate::ManualClock#when-it-blocks) if the body waits
    /// for time.
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
    /// [`WouldDeadlock`], at once, if this is called by the task itself, or by the last worker that does
    /// not wait, as with [`join`](Self::join). The task has been cancelled all the same.
    #[doc(alias("abort", "stop"))]
    pub fn cancel_and_wait(&self) -> Result<bool, WouldDeadlock> {
        self.handle.cancel_and_wait()
    }
}

impl<T: 'static> Future for ScheduledFuture<T> {
    type Output = Result<T, TaskError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if !self.handle.poll_awaited(context.waker()) {
            return Poll::Pending;
        }
        self.try_join().map_or(Poll::Pending, Poll::Ready)
    }
}

impl<T> fmt::Debug for ScheduledFuture<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.handle.describe(f, "ScheduledFuture")
    }
}

/// A future that cancels its task when it is dropped; from [`ScheduledFuture::cancel_on_drop`] or
/// [`ScheduledFuture::cancel_and_signal_on_drop`]. It dereferences to the future, and can be awaited
/// in its place.
///
/// A drop cancels the task at once, and so drops what its closure owns. If that is the guard of another task, whose
/// closure owns a third, the drops are inside one another, like those of a linked list. Five hundred guards in a row fit on
/// a stack of 2 MiB, and a thousand may overflow it. A chain of results each of which owns the future of the
/// task before is the same, up to a thousand.
#[doc(alias("AbortOnDropHandle", "DropGuard"))]
#[must_use = "the task is cancelled at once if the guard is not kept"]
pub struct CancelOnDrop<T> {
    /// `None` once detached.
    future: Option<ScheduledFuture<T>>,
    /// True if a running body is asked to stop as well.
    signals: bool,
}

impl<T> CancelOnDrop<T> {
    /// Returns the future, which no longer cancels when it is dropped.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let guard = executor.schedule(Duration::from_secs(60), || ())?.cancel_on_drop();
    /// let future = guard.detach();
    /// drop(future);
    /// assert_eq!(executor.pending_count(), 1);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn detach(mut self) -> ScheduledFuture<T> {
        match self.future.take() {
            Some(future) => future,
            None => unreachable!("only this call takes the future, and it takes the guard too"),
        }
    }
}

impl<T> Deref for CancelOnDrop<T> {
    type Target = ScheduledFuture<T>;

    fn deref(&self) -> &ScheduledFuture<T> {
        match &self.future {
            Some(future) => future,
            None => unreachable!("the future is there until the guard is taken"),
        }
    }
}

impl<T: 'static> Future for CancelOnDrop<T> {
    type Output = Result<T, TaskError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.future {
            Some(future) => Pin::new(future).poll(context),
            None => unreachable!("the future is there until the guard is taken"),
        }
    }
}

impl<T> Drop for CancelOnDrop<T> {
    fn drop(&mut self) {
        match &self.future {
            Some(future) if self.signals => _ = future.cancel_and_signal(),
            Some(future) => _ = future.cancel(),
            None => {}
        }
    }
}

impl<T> fmt::Debug for CancelOnDrop<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CancelOnDrop").field(&self.future).finish()
    }
}
