//! The errors of an executor and of its tasks. The error that owns a task,
//! [`RejectedExecutionError`](crate::RejectedExecutionError), is defined next to [`DrainedTask`](crate::DrainedTask).
//! The `Display` of an error says what happened, and what the caller can do about it, if anything.
//!
//! A [`Failure`] says why a run or a hook failed, or why a periodic task ended. Of its four kinds, only a panic has a
//! payload. A payload is a user's value, so the crate reads and drops it through [`unwind`](crate::unwind).

use std::{any::Any, error::Error, fmt, io, time::Duration};

use crate::{
    PanicLocation,
    sync::Mutex,
    unwind::{Panic, PanicPayload, message_of},
};

/// The error of a task that has no result for the caller. Java: `ExecutionException`, `CancellationException`.
///
/// ```
/// use std::time::Duration;
/// use punctual::{CancelReason, ScheduledThreadPoolExecutor, TaskError};
///
/// let executor = ScheduledThreadPoolExecutor::new(1);
/// let late = executor.schedule(Duration::MAX, || ())?;
/// late.cancel();
/// assert!(matches!(late.join(), Err(TaskError::Cancelled(CancelReason::Requested))));
///
/// let broken = executor.submit(|| "seven".parse::<u32>().expect("a number"))?;
/// match broken.join() {
///     Err(TaskError::Failed(failure)) => assert!(failure.message().starts_with("a number: ")),
///     other => unreachable!("{other:?}"),
/// }
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[doc(alias = "JoinError")]
#[derive(Debug)]
#[non_exhaustive]
pub enum TaskError {
    /// The task failed: a one-shot task or a [trigger](crate::Trigger) panicked, or the [policy](crate::FailurePolicy)
    /// of a repeated task ended it after a panic, an `Err`, or a run that exceeded its time limit.
    Failed(Failure),
    /// The [trigger](crate::Trigger) of a repeated task has no next run, and no run has returned a value.
    Exhausted,
    /// The task was cancelled before it had a result.
    Cancelled(CancelReason),
    /// An earlier call on the same future has taken the result.
    ResultTaken,
    /// The call would have waited forever: a task was waiting for itself, or no worker was left to run the task that
    /// the call was waiting for. [`WouldDeadlock`](struct@WouldDeadlock) says what is and is not detected.
    WouldDeadlock,
}

impl TaskError {
    /// Returns `true` if the task failed, by a panic, by an error or by a run that exceeded its time limit.
    pub fn is_failure(&self) -> bool {
        matches!(self, Self::Failed(_))
    }

    /// Returns `true` if the task panicked.
    pub fn is_panic(&self) -> bool {
        matches!(self, Self::Failed(failure) if failure.is_panic())
    }

    /// Returns `true` if the task was cancelled.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Cancelled(_))
    }

    /// Returns `true` if the task's [timeout](crate::TaskBuilder::timeout) has ended it: it was cancelled when the
    /// timeout expired, or it failed because its last run exceeded the timeout.
    pub fn is_timeout(&self) -> bool {
        match self {
            Self::Failed(failure) => failure.kind() == FailureKind::TimeLimit,
            Self::Cancelled(reason) => *reason == CancelReason::TimedOut,
            _ => false,
        }
    }

    /// Returns why the task failed, if it did.
    #[must_use]
    pub fn into_failure(self) -> Option<Failure> {
        if let Self::Failed(failure) = self { Some(failure) } else { None }
    }

    /// Returns the error that the task failed with, if it is an `E`: the very value that its last run returned.
    /// [`retry`](crate::Handle::retry) has an example.
    ///
    /// # Errors
    ///
    /// This error, unchanged, if the task did not fail, if it panicked, or if it failed with an error of another type.
    /// (A `String` or a `&str` is not an error type itself: [`Failure::message`] has the text.)
    pub fn downcast<E: Error + 'static>(self) -> Result<E, Self> {
        match self {
            Self::Failed(failure) => failure.downcast().map_err(Self::Failed),
            other => Err(other),
        }
    }
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(failure) => write!(f, "the task {failure}"),
            Self::Exhausted => f.write_str(
                "the task has no result: its trigger ended before a run returned `Break`; \
                 let it run more often, or return `()` if there is no result",
            ),
            Self::Cancelled(reason) => write!(f, "the task was cancelled: {reason}"),
            Self::ResultTaken => f.write_str(
                "the result of the task has already been taken; \
                 return an `Arc` from the task if several callers need it",
            ),
            Self::WouldDeadlock => f.write_str(
                "waiting for the task would deadlock: no worker is left to run it; \
                 use more workers or a timeout, or do not wait inside a task",
            ),
        }
    }
}

impl Error for TaskError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        let Self::Failed(failure) = self else { return None };
        failure.error().map(|error| error as &(dyn Error + 'static))
    }
}

/// Why a run or a hook failed, or a periodic task ended: one of four [kinds](Self::kind). Java: the cause of an
/// `ExecutionException`.
///
/// ```
/// use punctual::{FailureKind, ScheduledThreadPoolExecutor};
///
/// let executor = ScheduledThreadPoolExecutor::new(1);
/// let failed = executor.submit(|| assert_eq!(1 + 1, 3, "arithmetic"))?;
/// let failure = failed.join().expect_err("it panics").into_failure().expect("it has failed");
/// assert_eq!(failure.kind(), FailureKind::Panic);
/// assert!(failure.is_panic() && failure.message().contains("arithmetic"));
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
pub struct Failure(Box<Cause>);

/// The cause of a [`Failure`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum FailureKind {
    /// User code panicked: the body of a task, a hook, a trigger, a gate, or the drop of a value.
    Panic,
    /// A run of a [repeated](crate::Handle::repeat) task returned an `Err`, or a plain task returned one that [no
    /// caller can take](crate::ScheduledFuture#a-result-that-is-an-err).
    Error,
    /// No code failed: a run of a periodic task exceeded its [time limit](crate::TaskBuilder::timeout).
    TimeLimit,
    /// No code failed: the executor took a periodic task out of its queue and ended it.
    Displaced,
}

struct Cause {
    kind: FailureKind,
    message: Box<str>,
    origin: Origin,
}

enum Origin {
    Panic(Panicked),
    Error(BoxedError),
    /// No code failed, or the `Err` that a task returned has been dropped.
    Nothing,
}

struct Panicked {
    location: Option<PanicLocation>,
    /// The payload, behind a lock because a failure is `Sync` and a payload need not be.
    payload: Mutex<PanicPayload>,
}

pub(crate) type BoxedError = Box<dyn Error + Send + Sync>;

impl Failure {
    fn new(kind: FailureKind, message: impl Into<Box<str>>, origin: Origin) -> Self {
        Self(Box::new(Cause { kind, message: message.into(), origin }))
    }

    #[inline(never)]
    pub(crate) fn of_panic((payload, location): Panic) -> Self {
        let message = Box::from(message_of(&*payload));
        let payload = Mutex::new(payload);
        Self::new(FailureKind::Panic, message, Origin::Panic(Panicked { location, payload }))
    }

    /// Makes a failure from a user's error. Calls user code for the message, so the caller must hold no lock.
    pub(crate) fn of_error(error: BoxedError) -> Self {
        Self::new(FailureKind::Error, error.to_string(), Origin::Error(error))
    }

    /// Makes a failure with neither a payload nor an error: no code failed, or the task's `Err` has been dropped.
    pub(crate) fn of_nothing(kind: FailureKind, message: impl Into<Box<str>>) -> Self {
        Self::new(kind, message, Origin::Nothing)
    }

    pub(crate) fn of_time_limit(limit: Duration) -> Self {
        Self::of_nothing(FailureKind::TimeLimit, format!("exceeded its time limit of {limit:?}"))
    }

    /// Returns the cause of the failure.
    pub fn kind(&self) -> FailureKind {
        self.0.kind
    }

    /// Returns `true` if code panicked.
    pub fn is_panic(&self) -> bool {
        self.kind() == FailureKind::Panic
    }

    /// Returns the message of the panic, or a stock phrase if its payload is not text; the message of the error; or
    /// what happened, if no code failed.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns where the panic began; `None` if nothing panicked, or no panic hook has noted it. The first executor
    /// with a [failure handler](crate::Builder::failure_handler) installs that hook.
    pub fn location(&self) -> Option<&PanicLocation> {
        if let Origin::Panic(panicked) = &self.0.origin { panicked.location.as_ref() } else { None }
    }

    /// Returns the error that the run returned; `None` if it returned none, or if that was the result of a plain task,
    /// and has been dropped.
    #[must_use]
    pub fn error(&self) -> Option<&(dyn Error + Send + Sync + 'static)> {
        if let Origin::Error(error) = &self.0.origin { Some(&**error) } else { None }
    }

    fn downcast<E: Error + 'static>(self) -> Result<E, Self> {
        let Cause { kind, message, origin } = *self.0;
        let origin = match origin {
            Origin::Error(error) => match error.downcast() {
                Ok(error) => return Ok(*error),
                Err(error) => Origin::Error(error),
            },
            origin => origin,
        };
        Err(Self::new(kind, message, origin))
    }

    /// Returns `true` if code panicked with a `T` as the payload.
    pub fn is<T: Any>(&self) -> bool {
        matches!(&self.0.origin, Origin::Panic(panicked) if panicked.payload.lock().is::<T>())
    }

    /// Returns the payload, as [`std::panic::catch_unwind`] returns it: for an error a `Box<dyn Error + Send + Sync>`,
    /// and if no code failed, the message as a `String`.
    #[doc(alias("into_panic", "resume_unwind"))]
    #[must_use]
    pub fn into_payload(self) -> Box<dyn Any + Send + 'static> {
        let Cause { message, origin, .. } = *self.0;
        match origin {
            Origin::Panic(panicked) => panicked.payload.into_inner(),
            Origin::Error(error) => Box::new(error),
            Origin::Nothing => Box::new(String::from(message)),
        }
    }
}

/// The rest of a sentence that begins with what failed: `the task panicked: …`.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind() {
            FailureKind::Panic => "panicked: ",
            FailureKind::Error => "failed: ",
            FailureKind::TimeLimit => "",
            FailureKind::Displaced => "was ended: ",
        })?;
        f.write_str(self.message())
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple(&format!("{:?}", self.kind())).field(&self.message()).finish()
    }
}

/// Why a task was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum CancelReason {
    /// User code cancelled the task, its token or all tasks of its group, or dropped a future that
    /// [cancels](crate::ScheduledFuture::cancel_on_drop) the task.
    Requested,
    /// The executor was shut down. Its policies did not keep the task, or it had no worker left for the task and could
    /// not start one.
    Shutdown,
    /// The executor was stopped by [`shutdown_now`](crate::Handle::shutdown_now). If that call returned the
    /// [task](crate::DrainedTask), the task was then dropped, or did not end when it was run. Otherwise a worker had
    /// taken the task, and had not begun to run it, or was to run it again.
    ShutdownNow,
    /// The executor was dropped. The task was not yet due, its group was paused, or no worker was left for it and none
    /// could be started.
    ExecutorDropped,
    /// The task was taken out of the queue by [`remove`](crate::Handle::remove).
    Removed,
    /// The task was rejected and then dropped, for instance by the executor's
    /// [handler](crate::RejectedExecutionHandler); or the handler discarded it to make room for another task.
    Rejected,
    /// The [timeout](crate::TaskBuilder::timeout) of the task expired.
    TimedOut,
    /// The [gate](crate::TaskBuilder::gate) of a one-shot task skipped its run.
    SkippedByGate,
    /// The [group](crate::Group) of the task was shut down.
    GroupShutdown,
}

impl CancelReason {
    /// The reasons and their texts, indexed by the reason's discriminant.
    pub(crate) const ALL: [(Self, &str); 9] = [
        (Self::Requested, "cancellation was requested"),
        (Self::Shutdown, "the executor was shut down"),
        (Self::ShutdownNow, "the executor was stopped by `shutdown_now`"),
        (Self::ExecutorDropped, "the executor was dropped"),
        (Self::Removed, "it was removed from the queue"),
        (Self::Rejected, "it was rejected"),
        (Self::TimedOut, "its timeout expired"),
        (Self::SkippedByGate, "its gate skipped the run"),
        (Self::GroupShutdown, "its group was shut down"),
    ];
}

impl fmt::Display for CancelReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ALL[*self as usize].1)
    }
}

/// Why a submission was refused; from [`RejectedExecutionError::reason`](crate::RejectedExecutionError::reason).
#[derive(Debug)]
#[non_exhaustive]
pub enum RejectionReason {
    /// The executor was shut down or dropped, and accepts no more tasks.
    Shutdown,
    /// The period, or the delay between runs, is zero: the task would run forever without a pause.
    ZeroPeriod,
    /// The [back-off](crate::FailurePolicy::back_off) of the task is never longer than its period, so it would have no
    /// effect.
    BackOffWithinPeriod,
    /// The trigger of the task has no first run.
    NeverRuns,
    /// The worker that the task needs, or the timer thread that its timeout needs, could not be started, for this
    /// reason.
    Spawn(io::Error),
    /// As many tasks are waiting as the executor's [bound](crate::Builder::max_pending) admits.
    Saturated,
    /// A billion tasks are pending, and the queue has no room for one more.
    Full,
    /// The [group](crate::Group) of the task was shut down, and accepts no more tasks.
    GroupShutdown,
    /// The task's [group](crate::Group) belongs to another executor.
    ForeignGroup,
    /// The task has a [gate](crate::gate), but its trigger would not plan the same moments on every replica. For
    /// example, the trigger has [jitter](crate::Trigger::jitter) without a seed, and the task has no name.
    UnsharedTrigger,
}

impl fmt::Display for RejectionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the task was rejected: ")?;
        let rest = match self {
            Self::Shutdown => "the executor was shut down",
            Self::ZeroPeriod => "its period or delay is zero; the shortest is one nanosecond",
            Self::BackOffWithinPeriod => {
                "its back-off is never longer than its period, and so has no effect; \
                 make it longer, or give the trigger a `retry`, which tries again sooner"
            }
            Self::NeverRuns => "its trigger has no first run; check the moments that it was given",
            Self::Spawn(error) => {
                write!(f, "no thread could be started for it: {error}")?;
                "; try again when the system can start one"
            }
            Self::Saturated => {
                "as many tasks are waiting as `max_pending` admits; \
                 try again later, or use a handler that blocks or runs the task in the caller"
            }
            Self::Full => "the queue has no room for one more task; try again when some have run",
            Self::GroupShutdown => "its group was shut down; make a new group",
            Self::ForeignGroup => {
                "its group is one of another executor; submit it there, or make a group of this one"
            }
            Self::UnsharedTrigger => {
                "behind a gate its jitter has to be the same on every replica; \
                 give the task a name, or the jitter a name or a seed"
            }
        };
        f.write_str(rest)
    }
}

/// An executor could not be built, or a setting could not be changed. Java: `IllegalArgumentException`.
///
/// ```
/// use punctual::{ConfigError, ScheduledThreadPoolExecutor};
///
/// let none = ScheduledThreadPoolExecutor::builder().max_pending(0);
/// assert!(matches!(none.build(), Err(ConfigError::ZeroMaxPending)));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum ConfigError {
    /// Threads cannot have this name, because it contains a NUL character.
    InvalidThreadName(String),
    /// Core threads may time out, but the keep-alive is zero.
    ZeroKeepAlive,
    /// The bound on waiting tasks is zero. Nothing would ever run, since each task waits briefly for its worker.
    ZeroMaxPending,
    /// A [group](crate::Group)'s limit is zero. No member would ever run; if you want that, pause the group.
    ZeroLimit,
    /// The time after which [starvation](crate::Builder::on_starvation) is reported is zero.
    ZeroStarvationTime,
    /// A [prestarted](crate::Builder::prestart_core_threads) core thread could not be started, for this reason.
    Spawn(io::Error),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rest = match self {
            Self::InvalidThreadName(name) => {
                write!(f, "{name:?} ")?;
                "cannot name a thread because it contains a NUL character; remove it"
            }
            Self::ZeroKeepAlive => {
                "core threads cannot time out with a keep-alive of zero; set a longer one first"
            }
            Self::ZeroMaxPending => {
                "an executor with `max_pending` zero would never run a task; let at least one wait, \
                 or leave `max_pending` out for no bound"
            }
            Self::ZeroLimit => {
                "a group with a limit of zero would never run a task; let at least one run, \
                 and pause the group to keep its tasks from running"
            }
            Self::ZeroStarvationTime => {
                "starvation cannot be reported after no time at all, since every task waits for a moment; \
                 set a longer one, of seconds for instance"
            }
            Self::Spawn(error) => {
                write!(f, "a core thread could not be started: {error}")?;
                "; ask for fewer, or leave out `prestart_core_threads`"
            }
        };
        f.write_str(rest)
    }
}

impl Error for ConfigError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        if let Self::Spawn(error) = self { Some(error) } else { None }
    }
}

/// The error of a wait that could never end (deadlock detection). Two kinds of such waits are detected:
///
/// * **A task waits for itself**: for its own end, or for the end of its own executor or [group](crate::Group). A
///   thread that is shutting down an executor, or starting a worker of it, counts as one of its tasks.
/// * **No worker can run it**: a worker waits without a limit for a task of its own executor, all others
///   already wait likewise, and no more can be started. The thread of a [`DrivenExecutor`](crate::DrivenExecutor) is
///   its only worker.
///
/// No other wait is refused, so these may last forever: two tasks that wait for each other while another worker is
/// free; a member of a group that waits for another one that needs its permit; a task that waits for a channel or a
/// lock and has not [announced it](crate::Handle::enter_wait). A wait with a [`Limit`](crate::Limit) ends in each of
/// these cases, and is never refused.
///
/// ```
/// use std::time::Duration;
/// use punctual::ScheduledThreadPoolExecutor;
///
/// let executor = ScheduledThreadPoolExecutor::new(1);
/// let handle = executor.handle();
/// let waits = executor.submit(move || handle.await_termination(Duration::MAX))?;
/// assert!(waits.join()?.is_err());
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WouldDeadlock(pub(crate) ());

impl WouldDeadlock {
    /// Makes the error, for a crate that refuses such a wait itself, as `punctual-jobs` does.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "there is no error by default")]
    pub const fn new() -> Self {
        Self(())
    }
}

impl fmt::Display for WouldDeadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a task cannot wait for its own executor or group to end; wait on another thread",
        )
    }
}

impl Error for WouldDeadlock {}
