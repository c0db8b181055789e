//! One attempt of a job, as the handler sees it, and how the handler is called.
//!
//! Both queues call handlers here, on a thread of the punctual pool and with no lock held. A panic is
//! caught, also in the user's function for the delay, because it is the failure of one attempt, which may be tried again, and not of a task of the
//! pool. A handler that returns when its time is up has failed, also if it says `Ok`: the time limit has
//! precedence, as everywhere in punctual. The attempt ends when the handler has returned, never before:
//! an attempt that was abandoned while it runs could run beside the next one.

pub(crate) mod outcomes;
pub(crate) mod stop;

use std::{
    any::Any,
    fmt,
    panic::{self, AssertUnwindSafe},
    sync::OnceLock,
    time::{Duration, Instant, SystemTime},
};

use punctual::{CancellationToken, Clock, Handle, current_task};

use crate::{
    JobError, JobId, JobQueue, QueueError, StopReason,
    job::{job_error::Verdict, jobs::Definition, payload::Payload},
    queue::{handling::Handling, results::Returned},
    run::stop::StopSignal,
};

/// Draws the fencing token of a run; see [`JobRun::fencing_token`].
pub(crate) type DrawFencingToken = Box<dyn Fn() -> Result<u64, QueueError> + Send + Sync>;

/// One attempt of a job, as its handler sees it.
pub struct JobRun {
    /// The id of the job. It is the same in every attempt, so it can tell a receiver that it has seen this job before.
    pub id: JobId,
    /// The name of the job's kind.
    pub name: &'static str,
    /// Which attempt this is, 1 for the first.
    pub attempt: u32,
    /// How many attempts the job has.
    pub max_attempts: u32,
    /// The key under which the job was enqueued, if there was one.
    pub key: Option<String>,
    /// The tick for which a schedule has enqueued the job, on PostgreSQL: the moment of the calendar, without jitter. If the
    /// job stands for several that were missed it is the last of them (`CatchUp::Last`); if later ticks have found
    /// the job waiting it is the first (`Overlap::QueueOne`). `None` for all other jobs, and in memory.
    pub tick: Option<SystemTime>,
    /// The [trace context](crate::JobBuilder::traceparent) of the sender, if the job was sent with one. It is the same in every
    /// attempt.
    pub traceparent: Option<String>,
    pub(crate) stop: StopSignal,
    pub(crate) queue: JobQueue,
    pub(crate) draw_fencing_token: DrawFencingToken,
    pub(crate) fence: OnceLock<u64>,
}

impl JobRun {
    /// Returns the token of this run. It is cancelled when the job is cancelled, when its time is up, when
    /// the queue shuts down and its patience is over, and when the claim is lost to another machine.
    /// [`stop_reason`](Self::stop_reason) says which.
    #[must_use]
    pub fn token(&self) -> &CancellationToken {
        self.stop.token()
    }

    /// Returns why the [token](Self::token) was cancelled, the first reason if there are several. `None` while it is not
    /// cancelled, and if nothing but the program itself has cancelled it. Does not block.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
    /// use punctual_jobs::{InMemory, Job, Jobs, StopReason};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Export {}
    /// impl Job for Export { const NAME: &'static str = "export"; }
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let (tell, told) = std::sync::mpsc::channel();
    /// let jobs = Jobs::new()
    ///     .on(move |run, _: Export| {
    ///         run.token().wait();
    ///         match run.stop_reason() {
    ///             Some(StopReason::Cancelled) => println!("the half of the file is deleted"),
    ///             Some(StopReason::ClaimLost) => println!("another machine writes it"),
    ///             reason => tell.send(reason)?,
    ///         }
    ///         Err(punctual_jobs::JobError::new("stopped"))
    ///     })
    ///     .timeout::<Export>(Duration::from_secs(60));
    /// let queue = jobs.open(InMemory::on(&executor))?;
    /// queue.now(Export {}).max_attempts(1).enqueue()?;
    /// clock.run_for(Duration::from_secs(61));
    /// assert_eq!(told.recv()?, Some(StopReason::TimedOut));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[must_use]
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.stop.reason()
    }

    /// Returns the fencing token of this run, a number that is greater than those of all runs that were claimed
    /// before. A storage that remembers the greatest number it has seen, and refuses smaller ones, cannot
    /// be written to by a run that was believed dead and is not.
    ///
    /// The number is drawn when the job is claimed, while its row is locked. On PostgreSQL the first call asks the
    /// server whether the claim still stands; it waits for no lock, so a transaction of the program's own may be
    /// open meanwhile, and blocks for at most the queue's [request time-out](crate::JobQueue::request_timeout).
    ///
    /// # Errors
    ///
    /// [`Lost`](QueueError::Lost) if the claim does not stand any more, and what asking the server can
    /// fail with.
    pub fn fencing_token(&self) -> Result<u64, QueueError> {
        if let Some(fence) = self.fence.get() {
            return Ok(*fence);
        }
        let drawn = (self.draw_fencing_token)()?;
        Ok(*self.fence.get_or_init(|| drawn))
    }

    /// Returns the queue, to enqueue jobs that follow from this one.
    #[must_use]
    pub fn queue(&self) -> &JobQueue {
        &self.queue
    }
}

impl fmt::Debug for JobRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobRun")
            .field("id", &self.id)
            .field("name", &self.name)
            .field("attempt", &self.attempt)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

/// Returns the signal of the task that the calling thread runs, and when the run of it began. The time limit
/// counts from that very moment.
pub(crate) fn begin(executor: &Handle, timeout: Option<Duration>) -> (StopSignal, Instant) {
    let clock = executor.clock();
    let (token, began) = match current_task() {
        Some(task) => {
            let began = task.planned().and_then(|planned| planned.checked_add(task.lateness()));
            (task.token(), began.unwrap_or_else(|| clock.now()))
        }
        // A task that its owner runs by hand, after the executor has drained it.
        None => (CancellationToken::with_clock(clock.clone()), clock.now()),
    };
    let deadline = timeout.and_then(|limit| began.checked_add(limit));
    (StopSignal::new(token, deadline, executor), began)
}

/// How an attempt has ended.
#[derive(Clone)]
pub(crate) enum Outcome {
    /// With what is to be stored, if its handler returns a value.
    Succeeded(Option<Returned>),
    /// With the error, and how long the job waits if attempts are left.
    Failed(String, Duration),
    /// With the error: there is no further attempt.
    Discarded(String),
    /// The attempt does not count, and the job waits for this delay.
    Snoozed(Duration),
}

impl Outcome {
    /// Returns the outcome of an attempt that has failed.
    pub(crate) fn failed(definition: &Definition, attempt: u32, error: &str) -> Self {
        match definition.delay_after(attempt) {
            Some(delay) => Self::Failed(without_nul(error), delay),
            None => Self::Discarded(without_nul(error)),
        }
    }
}

/// Calls the handler, and says how the attempt has ended.
pub(crate) fn call(
    definition: &Definition,
    run: &JobRun,
    payload: &Payload,
    clock: &Clock,
    began: Instant,
) -> Outcome {
    let _handling = Handling::begin(&run.queue.engine);
    let failed = |error: &str| Outcome::failed(definition, run.attempt, error);
    let Some(handler) = &definition.handler else {
        return failed(&format!("nothing in this process handles the job {:?}", run.name));
    };
    let said = catch(|| handler(run, payload)).unwrap_or_else(|panic| {
        Err(JobError::new(format_args!("the handler has panicked: {panic}")))
    });
    let took = clock.now().saturating_duration_since(began);
    let exceeded = definition.timeout.filter(|limit| took >= *limit);
    match (said.map_err(|JobError(verdict)| verdict), exceeded) {
        (Err(Verdict::Discard(error)), _) => Outcome::Discarded(without_nul(&error)),
        (_, Some(limit)) => {
            failed(&format!("the attempt took {took:?}, and its time limit is {limit:?}"))
        }
        (Ok(returned), None) => Outcome::Succeeded(returned),
        (Err(Verdict::Snooze(delay)), None) => Outcome::Snoozed(delay),
        (Err(Verdict::TryAgain(error)), None) => failed(&error),
    }
}

/// Calls user code. Returns what was said in a panic, if there was one.
fn catch<T>(user_code: impl FnOnce() -> T) -> Result<T, String> {
    #[allow(clippy::disallowed_methods, reason = "a panic is the failure of one attempt")]
    panic::catch_unwind(AssertUnwindSafe(user_code)).map_err(message_of)
}

/// A text of a database has no NUL, and both queues store the same text.
fn without_nul(error: &str) -> String {
    error.replace('\0', "\u{FFFD}")
}

/// Returns the message of a panic. The payload is user code, whose drop may panic itself.
fn message_of(payload: Box<dyn Any + Send>) -> String {
    let message = match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(message), _) => (*message).to_owned(),
        (_, Some(message)) => message.clone(),
        _ => "a value that is no text".to_owned(),
    };
    #[allow(
        clippy::disallowed_methods,
        reason = "the drop of what a handler has thrown is its own"
    )]
    let dropped = panic::catch_unwind(AssertUnwindSafe(|| drop(payload)));
    if let Err(another) = dropped {
        std::mem::forget(another);
    }
    message
}
