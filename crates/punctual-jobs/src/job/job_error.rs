//! The error that a handler returns when it has not succeeded.
//!
//! Most errors mean that the job is tried again. Two things a handler knows better than the queue: that another
//! attempt is in vain, and that this was none. Both are said with the error, because a handler that says them has
//! nothing else to return, and `?` ends it with either. What an error says is a text for people: nothing looks
//! for words in it.

use std::{error::Error, fmt, time::Duration};

use crate::job::with_sources;

/// The error of an attempt, and the verdict on its job. Every error turns into one, so `?` works in a
/// handler, and the job is tried again. [`discard`](Self::discard) and [`snooze`](Self::snooze) say otherwise.
///
/// ```
/// use punctual_jobs::JobError;
///
/// fn parse(text: &str) -> Result<u32, JobError> {
///     let number: u32 = text.parse()?;
///     if number == 0 {
///         return Err(JobError::new("zero is not allowed"));
///     }
///     Ok(number)
/// }
/// assert_eq!(parse("x").unwrap_err().to_string(), "invalid digit found in string");
/// ```
#[derive(Debug)]
pub struct JobError(pub(crate) Verdict);

/// The verdict on the job.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// It is tried again, or its attempts are used up.
    TryAgain(String),
    Discard(String),
    Snooze(Duration),
}

impl JobError {
    /// Makes an error of a message. The attempt has failed.
    pub fn new(message: impl fmt::Display) -> Self {
        Self(Verdict::TryAgain(message.to_string()))
    }

    /// Fails the job for good: it is discarded now, with this error, however many attempts are left. For a
    /// job that no later attempt can do: its user is gone, its payload makes no sense. Takes an error or a text.
    ///
    /// [`Jobs::on_discarded`](crate::Jobs::on_discarded) is told. A job that was cancelled meanwhile, or replaced
    /// by its key, is gone instead. This holds during a shutdown, and after the time limit as well.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
    /// use punctual_jobs::{InMemory, Job, JobError, JobState, Jobs};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Mail { to: String }
    /// impl Job for Mail { const NAME: &'static str = "mail"; }
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let jobs = Jobs::new()
    ///     .on(|_run, mail: Mail| {
    ///         let at = mail.to.find('@').ok_or_else(|| JobError::discard("no such address"))?;
    ///         println!("to the host {}", &mail.to[at + 1..]);
    ///         Ok(())
    ///     })
    ///     .on_discarded(|job| eprintln!("{job}"));
    /// let queue = jobs.open(InMemory::on(&executor))?;
    /// let job = queue.now(Mail { to: "nobody".into() }).enqueue()?;
    /// clock.run_until_idle();
    /// assert_eq!(queue.state(job.id)?, JobState::Discarded { last_error: "no such address".into() });
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn discard(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let error = error.into();
        Self(Verdict::Discard(with_sources(&*error)))
    }

    /// Has the job run again after a delay. The attempt is not counted, and its number is given again; the
    /// job keeps its key, and its last error is as it was. For a job that is not ready yet: a file has not come,
    /// a limit is reached. It can be put off without end: look at the payload if that is to have one.
    ///
    /// Others of its [ordering key](crate::JobBuilder::ordering_key) go first meanwhile. A job that was
    /// cancelled, or replaced by its key, is gone instead, and one that has exceeded its time limit has failed. During
    /// a shutdown the job waits in the tables, and an in-memory queue [releases](crate::ShutdownReport::released) it.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use punctual_jobs::JobError;
    /// fn fetch(report: &std::path::Path) -> Result<String, JobError> {
    ///     if !report.exists() {
    ///         return Err(JobError::snooze(Duration::from_secs(60)));
    ///     }
    ///     Ok(std::fs::read_to_string(report)?)
    /// }
    /// # assert_eq!(fetch("/none".as_ref()).unwrap_err().to_string(), "snoozed for 60s");
    /// ```
    #[must_use]
    pub fn snooze(delay: Duration) -> Self {
        Self(Verdict::Snooze(delay))
    }
}

/// Any error, boxed or not, and any text becomes a `JobError`. Its message is the message of the error, followed by those
/// of its sources. `JobError` is no [`Error`] itself, or this could not be written.
///
/// ```
/// use punctual_jobs::JobError;
///
/// fn port(text: &str) -> Result<u16, JobError> {
///     let port = text.parse()?;
///     if port < 1024 { Err("it is reserved")? }
///     Ok(port)
/// }
/// assert_eq!(port("80").unwrap_err().to_string(), "it is reserved");
/// assert_eq!(port("x").unwrap_err().to_string(), "invalid digit found in string");
/// ```
impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for JobError {
    fn from(error: E) -> Self {
        Self(Verdict::TryAgain(with_sources(&*error.into())))
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Verdict::TryAgain(error) | Verdict::Discard(error) => f.write_str(error),
            Verdict::Snooze(delay) => write!(f, "snoozed for {delay:?}"),
        }
    }
}
