//! The vocabulary: what a job is, which job it is, when it runs, and how it stands.
//!
//! A job is a name and a payload, and nothing else: a closure cannot be sent to another machine, and
//! what cannot be sent there must not work in one process either, or a program would find that out on
//! the day on which it gets a second machine. So the payload goes through JSON in every engine, and the
//! closure is given where the job runs ([`Jobs::on`](crate::Jobs::on)).

pub(crate) mod aligned;
pub(crate) mod backoff;
#[cfg(feature = "gate")]
pub(crate) mod catch_up;
pub(crate) mod job_error;
pub(crate) mod job_limit;
pub(crate) mod jobs;
pub(crate) mod names;
pub(crate) mod payload;
pub(crate) mod priority;
pub(crate) mod schedule;

use std::{
    error::Error,
    fmt,
    time::{Duration, Instant, SystemTime},
};

use punctual::Backoff;
use serde::{Serialize, de::DeserializeOwned};

use crate::JobValue;

/// A kind of job: its name, and the payload that a job of this kind has.
///
/// The name is what is stored, and what another program, or another version of this one, knows the kind
/// by. So it must not change while jobs of the kind are waiting. The payload is stored as JSON. What cannot be read again is
/// refused when it is sent; an `Option` of a number that is not finite arrives as `None`.
///
/// ```
/// use punctual_jobs::Job;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Remind {
///     user: u64,
///     text: String,
/// }
///
/// impl Job for Remind {
///     const NAME: &'static str = "remind";
/// }
/// ```
pub trait Job: Serialize + DeserializeOwned + Send + 'static {
    /// The name of the kind, of 1 to 128 bytes, without a NUL.
    const NAME: &'static str;

    /// How many attempts a job of this kind has, at least one. It is stored with the job, so it holds wherever the job was sent
    /// from and wherever it runs, unless the sender says otherwise: for all jobs of the kind by
    /// [`Jobs::max_attempts`](crate::Jobs::max_attempts), for one by [`JobBuilder::max_attempts`](crate::JobBuilder::max_attempts).
    const MAX_ATTEMPTS: u32 = 25;

    /// How long an attempt may take where it runs, unless [`Jobs::timeout`](crate::Jobs::timeout) says otherwise there.
    /// When it has, the token of the run is cancelled, and the attempt fails.
    const TIMEOUT: Option<Duration> = None;

    /// How long a job of this kind waits after an attempt that has failed where it ran, unless
    /// [`Jobs::backoff`](crate::Jobs::backoff) says otherwise there. `None` is `exp(min(attempts, 10))` seconds, and so is what
    /// follows an attempt whose process was killed.
    ///
    /// A backoff with [`max_attempts`](Backoff::max_attempts) has a job discarded after so many, if it is not discarded before by
    /// [`MAX_ATTEMPTS`](Self::MAX_ATTEMPTS). Its [`max_elapsed`](Backoff::max_elapsed) is not looked at.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::Backoff;
    /// use punctual_jobs::Job;
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Charge { invoice: u64 }
    ///
    /// impl Job for Charge {
    ///     const NAME: &'static str = "charge";
    ///     const MAX_ATTEMPTS: u32 = 5;
    ///     const TIMEOUT: Option<Duration> = Some(Duration::from_secs(30));
    ///     const BACKOFF: Option<Backoff> =
    ///         Some(Backoff::exponential(Duration::from_secs(10)..=Duration::from_secs(3600)));
    /// }
    /// ```
    const BACKOFF: Option<Backoff> = None;
}

/// The id of a job: the same in every attempt, and never given again by the same queue or database. On PostgreSQL the number is
/// the id of the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub i64);

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// When a job is to run: after a delay, at an instant, or when the wall clock shows a time.
///
/// A moment that has passed means now, and a delay that no clock can show means never. In memory, all
/// three are on the executor's [clock](punctual::Handle::clock). On PostgreSQL the database's clock
/// decides: a delay counts from when the server stores the job, and an instant is a delay from now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum When {
    /// After this delay.
    After(Duration),
    /// At this instant of the executor's clock.
    At(Instant),
    /// When the wall clock shows this time.
    Wall(SystemTime),
}

impl From<Duration> for When {
    fn from(delay: Duration) -> Self {
        Self::After(delay)
    }
}

impl From<Instant> for When {
    fn from(instant: Instant) -> Self {
        Self::At(instant)
    }
}

impl From<SystemTime> for When {
    fn from(time: SystemTime) -> Self {
        Self::Wall(time)
    }
}

/// How a job stands; from [`JobQueue::state`](crate::JobQueue::state) and [`JobQueue::await_result`](crate::JobQueue::await_result). By the time a caller looks at it, it may
/// have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobState {
    /// It waits for its moment, for its turn, or for its next attempt.
    Waiting {
        /// How many attempts have failed.
        attempts: u32,
        /// The error of the last of them.
        last_error: Option<String>,
    },
    /// An attempt is running, or was when its worker was last heard of.
    Running,
    /// All attempts have failed, or its handler has [discarded](crate::JobError::discard) it. An in-memory queue remembers the last thousand of these.
    Discarded {
        /// The error of the last attempt.
        last_error: String,
    },
    /// It has succeeded, and this is what its [handler has returned](crate::Jobs::on_returning), while that is kept.
    Returned(JobValue),
    /// There is no such job any more: it has succeeded, or was cancelled, or never existed.
    Gone,
}

/// Returns the message of an error and of its sources, unless one repeats what was said.
pub(crate) fn with_sources(error: &dyn Error) -> String {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let text = error.to_string();
        if !message.contains(&text) {
            message = format!("{message}: {text}");
        }
        source = error.source();
    }
    message
}

/// A job all of whose attempts have failed, or that its handler has [discarded](crate::JobError::discard); given to [`Jobs::on_discarded`](crate::Jobs::on_discarded).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DiscardedJob {
    /// The id of the job.
    pub id: JobId,
    /// The name of its kind.
    pub name: String,
    /// The JSON of its payload, as it was sent: `serde_json::from_str` makes the job of it again.
    pub payload: String,
    /// How many attempts there were.
    pub attempts: u32,
    /// The error of the last one.
    pub last_error: String,
}

/// One line for a log, without the payload: `job 17 "mail" was discarded after 3 attempts: no route`.
impl fmt::Display for DiscardedJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, name, attempts, last_error, .. } = self;
        let plural = if *attempts == 1 { "" } else { "s" };
        write!(f, "job {id} {name:?} was discarded after {attempts} attempt{plural}: {last_error}")
    }
}

/// Returns how long it is until `time` by a clock that shows `now`.
pub(crate) fn until(time: SystemTime, now: SystemTime) -> Duration {
    time.duration_since(now).unwrap_or(Duration::ZERO)
}

/// The database stores the number in two bytes.
pub(crate) fn clamped(max_attempts: u32) -> u32 {
    max_attempts.clamp(1, i16::MAX as u32)
}

pub(crate) fn attempts_of<J: Job>() -> u32 {
    clamped(J::MAX_ATTEMPTS)
}
