//! How each call can fail. Each type lists what can go wrong for its calls and nothing else, and
//! says what to do about it; all are `Send + Sync + 'static` and work with `?`.

use std::{any::Any, error::Error, fmt, io, panic};

use crate::{
    PanicLocation,
    sync::Mutex,
    unwind::{Payload, message_of},
};

/// Why there is no result of a task. Answers to Java's `ExecutionException` and
/// `CancellationException`.
#[derive(Debug)]
#[non_exhaustive]
pub enum TaskError {
    /// The task panicked; here is what it panicked with.
    Panicked(Panic),
    /// The task was cancelled before it could give a result.
    Cancelled(CancelReason),
    /// The result was there and has been taken already, by an earlier call on the same future.
    ResultTaken,
    /// The call would have waited for ever: the task can only run on workers that all wait for
    /// tasks, or is the very one that waits.
    WouldDeadlock,
}

impl TaskError {
    /// Whether the task panicked.
    #[must_use]
    pub fn is_panic(&self) -> bool {
        matches!(self, Self::Panicked(_))
    }

    /// Whether the task was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Cancelled(_))
    }

    /// Whether the task was cancelled because its [timeout](crate::TaskBuilder::timeout) was over.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Cancelled(CancelReason::TimedOut))
    }

    /// What the task panicked with, if it did.
    #[must_use]
    pub fn into_panic(self) -> Option<Panic> {
        match self {
            Self::Panicked(panic) => Some(panic),
            _ => None,
        }
    }
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panicked(panic) => write!(f, "the task panicked: {}", panic.message()),
            Self::Cancelled(reason) => write!(f, "the task was cancelled: {reason}"),
            Self::ResultTaken => f.write_str("the result of the task was taken before"),
            Self::WouldDeadlock => f.write_str(
                "waiting for the task would deadlock: every worker waits; \
                 use more workers, a timeout, or do not wait inside a task",
            ),
        }
    }
}

impl Error for TaskError {}

/// Who cancelled a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CancelReason {
    /// Somebody called `cancel`, or dropped a [`CancelOnDrop`](crate::CancelOnDrop).
    Requested,
    /// The executor was shut down, and its policies keep no such task.
    Shutdown,
    /// The executor was shut down now, and the [`DrainedTask`](crate::DrainedTask) was not run.
    ShutdownNow,
    /// The executor was dropped before the task was due.
    ExecutorDropped,
    /// It was taken out of the queue by [`remove`](crate::Handle::remove).
    Removed,
    /// It was refused, and the executor's
    /// [handler](crate::RejectedExecutionHandler) dropped it, or another one had to go for it; or
    /// it is periodic, and there was no place for its next run among two billion tasks.
    Rejected,
    /// Its [timeout](crate::TaskBuilder::timeout) was over.
    TimedOut,
}

impl fmt::Display for CancelReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Requested => "it was asked to",
            Self::Shutdown => "the executor was shut down",
            Self::ShutdownNow => "the executor was shut down now",
            Self::ExecutorDropped => "the executor was dropped",
            Self::Removed => "it was removed from the queue",
            Self::Rejected => "it was rejected",
            Self::TimedOut => "its timeout was over",
        })
    }
}

/// What a task panicked with.
///
/// ```
/// use punctual::ScheduledThreadPoolExecutor;
///
/// let executor = ScheduledThreadPoolExecutor::new(1);
/// let failed = executor.submit(|| assert_eq!(1 + 1, 3, "arithmetic"))?;
/// let panic = failed.join().expect_err("it panics").into_panic().expect("it was a panic");
/// assert!(panic.message().contains("arithmetic"));
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
pub struct Panic(Box<Panicked>);

struct Panicked {
    message: Box<str>,
    location: Option<PanicLocation>,
    /// In a lock only so that the error is `Sync`, which a payload need not be.
    payload: Mutex<Payload>,
}

impl Panic {
    pub(crate) fn new((payload, location): (Payload, Option<PanicLocation>)) -> Self {
        let message = message_of(&*payload).into();
        Self(Box::new(Panicked { message, location, payload: Mutex::new(payload) }))
    }

    /// A text that is reported like a panic although no code panicked.
    pub(crate) fn of_text(text: &str) -> Self {
        Self::new((Box::new(text.to_owned()), None))
    }

    /// The text of the panic; a stock phrase if the payload is not text.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Where it began. Known only once an executor with a
    /// [panic handler](crate::Builder::panic_handler) has been built, for it takes a panic hook.
    #[must_use]
    pub fn location(&self) -> Option<&PanicLocation> {
        self.0.location.as_ref()
    }

    /// Whether what was thrown is a `T`.
    #[must_use]
    pub fn is<T: Any>(&self) -> bool {
        self.0.payload.lock().is::<T>()
    }

    /// What was thrown, as [`std::panic::catch_unwind`] gives it.
    #[must_use]
    pub fn into_payload(self) -> Box<dyn Any + Send + 'static> {
        self.0.payload.into_inner()
    }

    /// Lets the panic go on in this thread.
    pub fn resume(self) -> ! {
        panic::resume_unwind(self.into_payload())
    }
}

impl fmt::Debug for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Panic").field(&self.message()).finish()
    }
}

/// Why a submission was refused; from [`RejectedExecutionError::reason`](crate::RejectedExecutionError::reason).
#[derive(Debug)]
#[non_exhaustive]
pub enum RejectionReason {
    /// The executor was shut down or dropped; it takes no more tasks.
    Shutdown,
    /// The period, or the delay between two runs, is zero: the task would run without end.
    ZeroPeriod,
    /// There is no worker, or no thread for the timeout that was asked for, and none could be
    /// started, for the reason given.
    Spawn(io::Error),
    /// As many tasks wait as the executor's [bound](crate::Builder::max_pending) admits.
    Saturated,
    /// Two billion tasks are pending; there is no place for one more.
    Full,
}

impl fmt::Display for RejectionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shutdown => f.write_str("rejected: the executor was shut down"),
            Self::ZeroPeriod => {
                f.write_str("rejected: the period is zero; the shortest is one nanosecond")
            }
            Self::Spawn(error) => write!(
                f,
                "rejected: no thread could be started for it: {error}; \
                 try again when the system has one to give"
            ),
            Self::Saturated => f.write_str(
                "rejected: as many tasks wait as the bound admits; \
                 try again later, or use a handler that waits or runs the task here",
            ),
            Self::Full => f.write_str("rejected: the queue has no place for one more task"),
        }
    }
}

/// Why an executor cannot be as it was asked to be.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConfigError {
    /// A thread cannot have this name: it contains a NUL character.
    InvalidThreadName(String),
    /// Workers that may end when idle must be idle for a while first.
    ZeroKeepAlive,
    /// An executor that lets nothing wait would never run anything: each task waits for a moment,
    /// until a worker has taken it.
    ZeroMaxPending,
    /// A thread that was to be there [from the beginning](crate::Builder::prestart_core_threads)
    /// could not be started, for the reason given.
    Spawn(io::Error),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidThreadName(name) => {
                write!(f, "{name:?} cannot name a thread: it contains a NUL character")
            }
            Self::ZeroKeepAlive => f.write_str(
                "core threads cannot time out with a keep-alive of zero; set a longer one first",
            ),
            Self::ZeroMaxPending => f.write_str(
                "with room for no task nothing would ever run; let at least one wait, \
                 or leave `max_pending` out for no bound",
            ),
            Self::Spawn(error) => write!(
                f,
                "a core thread could not be started: {error}; \
                 ask for fewer, or do not prestart them, so that tasks start those there can be"
            ),
        }
    }
}

impl Error for ConfigError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Spawn(error) => Some(error),
            _ => None,
        }
    }
}

/// A worker of the executor was about to wait for the executor's end, which waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WouldDeadlock(pub(crate) ());

impl fmt::Display for WouldDeadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a task cannot wait for its own executor to end; wait on another thread")
    }
}

impl Error for WouldDeadlock {}
