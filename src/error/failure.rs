//! A failure: what made a run or a hook fail, or a periodic task end.
//!
//! Four things can. Only one of them is a panic, so only that has a payload, which is the user's: it is
//! looked at and dropped through [`unwind`](crate::unwind).

use std::{any::Any, error::Error, fmt, panic, time::Duration};

use crate::{
    PanicLocation,
    sync::Mutex,
    unwind::{PanicPayload, message_of},
};

/// Why a run failed, or a hook, or why a periodic task has ended. [`kind`](Self::kind) says which of four
/// causes it was. Java: the cause of an `ExecutionException`.
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

/// What caused a [`Failure`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum FailureKind {
    /// Code panicked: a body, a hook, a trigger, a gate, or the drop of a value.
    Panic,
    /// A run that [repeats](crate::Handle::repeat) returned an `Err`.
    Error,
    /// No code failed: a run of a periodic task exceeded its [time limit](crate::TaskBuilder::timeout).
    TimeLimit,
    /// No code failed: a periodic task lost its place in the queue.
    Displaced,
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Panic => "panic",
            Self::Error => "error",
            Self::TimeLimit => "time limit",
            Self::Displaced => "displaced",
        })
    }
}

enum Cause {
    Panic(Panicked),
    Error { message: Box<str>, error: BoxedError },
    NoCode { kind: FailureKind, message: Box<str> },
}

struct Panicked {
    message: Box<str>,
    location: Option<PanicLocation>,
    /// In a lock because the failure is `Sync`, which a payload need not be.
    payload: Mutex<PanicPayload>,
}

/// An error that a run has returned, as any error that can be sent.
pub(crate) type BoxedError = Box<dyn Error + Send + Sync>;

impl Failure {
    pub(crate) fn of_panic((payload, location): (PanicPayload, Option<PanicLocation>)) -> Self {
        let message = message_of(&*payload).into();
        let payload = Mutex::new(payload);
        Self(Box::new(Cause::Panic(Panicked { message, location, payload })))
    }

    /// Asks the error for its message, which is user code: the caller holds no lock.
    pub(crate) fn of_error(error: BoxedError) -> Self {
        Self(Box::new(Cause::Error { message: error.to_string().into(), error }))
    }

    /// Returns the failure of a run that exceeded this limit.
    pub(crate) fn of_time_limit(limit: Duration) -> Self {
        let message = format!("the run exceeded its time limit of {limit:?}").into();
        Self(Box::new(Cause::NoCode { kind: FailureKind::TimeLimit, message }))
    }

    /// Returns the failure of a task that lost its place in the queue.
    pub(crate) fn of_displacement(why: &str) -> Self {
        Self(Box::new(Cause::NoCode { kind: FailureKind::Displaced, message: why.into() }))
    }

    /// Returns what caused the failure.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        match *self.0 {
            Cause::Panic(_) => FailureKind::Panic,
            Cause::Error { .. } => FailureKind::Error,
            Cause::NoCode { kind, .. } => kind,
        }
    }

    /// Returns `true` if code panicked.
    #[must_use]
    pub fn is_panic(&self) -> bool {
        self.kind() == FailureKind::Panic
    }

    /// Returns the message of the panic, or a stock phrase if its payload is not text; the message of the
    /// error; or what happened, if no code failed.
    #[must_use]
    pub fn message(&self) -> &str {
        match &*self.0 {
            Cause::Panic(Panicked { message, .. })
            | Cause::Error { message, .. }
            | Cause::NoCode { message, .. } => message,
        }
    }

    /// Returns where the panic began; `None` if it is not known, or if nothing panicked.
    /// Locations are recorded by a panic hook, which the first executor with a
    /// [failure handler](crate::Builder::failure_handler) installs; before that they are unknown.
    #[must_use]
    pub fn location(&self) -> Option<&PanicLocation> {
        match &*self.0 {
            Cause::Panic(panicked) => panicked.location.as_ref(),
            Cause::Error { .. } | Cause::NoCode { .. } => None,
        }
    }

    /// Returns the error that the run returned; `None` if it returned none.
    ///
    /// ```
    /// use std::{io, time::Duration};
    /// use punctual::{ScheduledThreadPoolExecutor, trigger::every};
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let broken = executor.repeat(every(Duration::from_secs(1)), || -> io::Result<()> {
    ///     Err(io::ErrorKind::NotFound.into())
    /// })?;
    /// let failure = broken.join().expect_err("it fails").into_failure().expect("by an error");
    /// let error = failure.error().and_then(|error| error.downcast_ref::<io::Error>());
    /// assert_eq!(error.map(io::Error::kind), Some(io::ErrorKind::NotFound));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[must_use]
    pub fn error(&self) -> Option<&(dyn Error + Send + Sync + 'static)> {
        match &*self.0 {
            Cause::Error { error, .. } => Some(&**error),
            Cause::Panic(_) | Cause::NoCode { .. } => None,
        }
    }

    /// Returns the error that the run returned, if it is an `E`.
    pub(super) fn downcast<E: Error + 'static>(self) -> Result<E, Self> {
        let cause = match *self.0 {
            Cause::Error { message, error } => match error.downcast() {
                Ok(error) => return Ok(*error),
                Err(error) => Cause::Error { message, error },
            },
            cause @ (Cause::Panic(_) | Cause::NoCode { .. }) => cause,
        };
        Err(Self(Box::new(cause)))
    }

    /// Returns `true` if code panicked with a `T` as the payload. [`error`](Self::error) tells what an
    /// error is.
    #[must_use]
    pub fn is<T: Any>(&self) -> bool {
        match &*self.0 {
            Cause::Panic(panicked) => panicked.payload.lock().is::<T>(),
            Cause::Error { .. } | Cause::NoCode { .. } => false,
        }
    }

    /// Returns the payload, as [`std::panic::catch_unwind`] returns it. That of an error is the
    /// `Box<dyn Error + Send + Sync>`, and if no code failed it is the message, a `String`.
    #[doc(alias = "into_panic")]
    #[must_use]
    pub fn into_payload(self) -> Box<dyn Any + Send + 'static> {
        match *self.0 {
            Cause::Panic(panicked) => panicked.payload.into_inner(),
            Cause::Error { error, .. } => Box::new(error),
            Cause::NoCode { message, .. } => Box::new(String::from(message)),
        }
    }

    /// Resumes the panic in this thread. A failure of another kind becomes a panic with the
    /// [payload](Self::into_payload) that stands for it.
    #[doc(alias = "resume_unwind")]
    pub fn resume(self) -> ! {
        panic::resume_unwind(self.into_payload())
    }
}

/// What failed *did*, for a sentence that begins with it: `the task panicked: …`.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind() {
            FailureKind::Panic => "panicked: ",
            FailureKind::Error | FailureKind::TimeLimit => "failed: ",
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
