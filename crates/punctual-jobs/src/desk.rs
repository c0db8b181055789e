//! The desk: where jobs are sent, moved and cancelled, whichever engine keeps them.
//!
//! There is one type for both engines, so that the line that opens the desk is the only one that knows.
//! A desk is a handle; clones are one desk. Of the clones, those that a program holds own the desk: when
//! the last of them is dropped the desk is closed. The one that a handler reaches through its run owns
//! nothing, or a handler that runs would keep the desk open.
//!
//! Every verb asks the engine, which answers with a [`Reply`]. Those that block wait for it; their twins
//! return it.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use punctual::WouldDeadlock;

use crate::{
    Cancellation, DeskError, Job, JobId, JobState, Reply, Rescheduling, ShutdownReport, When,
    jobs::Definitions, payload::Payload, run,
};

/// What keeps the jobs.
pub(crate) trait Engine: Send + Sync + 'static {
    fn send(&self, order: Order) -> Reply<JobId>;
    fn reschedule(&self, key: &str, when: When) -> Reply<Rescheduling>;
    fn cancel(&self, key: &str) -> Reply<Cancellation>;
    fn state(&self, id: JobId) -> Reply<JobState>;
    fn shutdown(&self, patience: Duration, grace: Duration) -> ShutdownReport;
    /// The last owner is gone.
    fn close(&self);
    /// How long a verb may block.
    fn limit(&self) -> Duration;
    /// The clock and the schema for what is stored in tables of a database; `None` if there are none.
    #[cfg(feature = "postgres")]
    fn tables(&self) -> Option<(punctual::Clock, crate::postgres::Schema)> {
        None
    }
}

/// A job that is to be stored.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) name: &'static str,
    pub(crate) payload: Payload,
    pub(crate) when: When,
    pub(crate) key: Option<String>,
    pub(crate) keeps_moment: bool,
    pub(crate) serial: Option<String>,
    pub(crate) attempts: u32,
}

/// Where jobs are sent, moved and cancelled; from [`Jobs::open`](crate::Jobs::open).
///
/// Cheap to clone; all clones are one desk. Dropping the last one closes it, as
/// [`shutdown_within`](Self::shutdown_within) does without any patience, and without waiting. The executor
/// is not shut down, and has to outlive the desk: shut the desk down first.
///
/// The verbs that block do so on PostgreSQL, for at most the [limit](Self::limit). Each has a twin that
/// returns a [`Reply`], which any runtime can await.
#[derive(Clone)]
pub struct Desk {
    pub(crate) engine: Arc<dyn Engine>,
    definitions: Arc<Definitions>,
    _owner: Option<Arc<Owner>>,
}

struct Owner(Arc<dyn Engine>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Desk {
    pub(crate) fn owning(engine: Arc<dyn Engine>, definitions: Arc<Definitions>) -> Self {
        let owner = Some(Arc::new(Owner(Arc::clone(&engine))));
        Self { engine, definitions, _owner: owner }
    }

    pub(crate) fn borrowing(engine: Arc<dyn Engine>, definitions: Arc<Definitions>) -> Self {
        Self { engine, definitions, _owner: None }
    }

    /// Prepares a job that runs after a delay. Nothing is stored until [`send`](Sending::send).
    pub fn after<J: Job>(&self, delay: Duration, job: J) -> Sending<'_> {
        self.at(delay, job)
    }

    /// Prepares a job that runs at an [`Instant`](std::time::Instant) of the executor's clock, or when the
    /// wall clock shows a [`SystemTime`]. Nothing is stored until [`send`](Sending::send).
    pub fn at<J: Job>(&self, when: impl Into<When>, job: J) -> Sending<'_> {
        let order = Payload::of(&job).map(|payload| Order {
            name: J::NAME,
            payload,
            when: when.into(),
            key: None,
            keeps_moment: false,
            serial: None,
            attempts: self.definitions.attempts(J::NAME),
        });
        Sending { desk: self, name: J::NAME, order }
    }

    /// Prepares a job that runs as soon as it can. Nothing is stored until [`send`](Sending::send).
    pub fn now<J: Job>(&self, job: J) -> Sending<'_> {
        self.at(Duration::ZERO, job)
    }

    /// Moves the waiting job with this key to another moment. Its attempts are as they were.
    ///
    /// # Errors
    ///
    /// [`DeskError`], if the engine cannot be asked.
    pub fn reschedule(&self, key: &str, when: impl Into<When>) -> Result<Rescheduling, DeskError> {
        self.reschedule_async(key, when).wait(self.limit())
    }

    /// The same as [`reschedule`](Self::reschedule), without blocking.
    pub fn reschedule_async(&self, key: &str, when: impl Into<When>) -> Reply<Rescheduling> {
        self.engine.reschedule(key, when.into())
    }

    /// Cancels the job with this key, on whichever machine it is: a waiting one is removed, and a running
    /// one has its token raised and is not tried again.
    ///
    /// # Errors
    ///
    /// [`DeskError`], if the engine cannot be asked.
    pub fn cancel(&self, key: &str) -> Result<Cancellation, DeskError> {
        self.cancel_async(key).wait(self.limit())
    }

    /// The same as [`cancel`](Self::cancel), without blocking.
    pub fn cancel_async(&self, key: &str) -> Reply<Cancellation> {
        self.engine.cancel(key)
    }

    /// Returns how a job stands.
    ///
    /// # Errors
    ///
    /// [`DeskError`], if the engine cannot be asked.
    pub fn state(&self, id: JobId) -> Result<JobState, DeskError> {
        self.state_async(id).wait(self.limit())
    }

    /// The same as [`state`](Self::state), without blocking.
    pub fn state_async(&self, id: JobId) -> Reply<JobState> {
        self.engine.state(id)
    }

    /// Shuts the desk down. It takes no more jobs and starts none. It waits for at most `patience` for
    /// those that run; then it raises the tokens of the others, and waits for at most `grace` for these to
    /// end. A handler that then returns an error has its job handed back, and this attempt is not counted.
    /// A handler that still runs after that time goes on by itself, and on PostgreSQL its job is handed back
    /// as well, so it runs a second time.
    ///
    /// Blocks for no longer than both times together, and on PostgreSQL the [limit](Self::limit) for handing
    /// back; embedded, they count on the executor's clock. A second call returns an empty report at once.
    ///
    /// Does not shut down the executor, whose drop waits for a handler that still runs. To have the process end at
    /// its deadline, shut the executor down with one as well:
    /// [`shutdown_within`](punctual::Handle::shutdown_within).
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    /// use punctual_jobs::{Embedded, Jobs};
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let desk = Jobs::new().open(Embedded::on(&executor))?;
    /// let (patience, grace) = (Duration::from_secs(5), Duration::from_secs(1));
    /// let report = desk.shutdown_within(patience, grace)?;
    /// println!("{report}");
    /// # assert_eq!(report.to_string(), "0 ran, 0 handed back");
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`WouldDeadlock`], in a handler of this desk, which would wait for itself. The desk goes on then:
    /// the jobs that an embedded desk hands back are in the report alone.
    pub fn shutdown_within(
        &self,
        patience: Duration,
        grace: Duration,
    ) -> Result<ShutdownReport, WouldDeadlock> {
        if run::is_in_handler_of(&self.engine) {
            return Err(WouldDeadlock::new());
        }
        Ok(self.engine.shutdown(patience, grace))
    }

    /// Returns for how long a verb of this desk may block.
    #[must_use]
    pub fn limit(&self) -> Duration {
        self.engine.limit()
    }
}

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk")
            .field("names", &self.definitions.kinds.keys())
            .finish_non_exhaustive()
    }
}

/// A job that is about to be sent; from [`Desk::after`] and its siblings.
#[derive(Debug)]
#[must_use = "nothing is stored until it is sent"]
pub struct Sending<'a> {
    desk: &'a Desk,
    name: &'static str,
    order: Result<Order, serde_json::Error>,
}

/// How many bytes a key may have, and the name of a sequence.
const LONGEST_KEY: usize = 512;
const LONGEST_NAME: usize = 128;

impl Sending<'_> {
    /// Gives the job a key. A job with this key that waits is replaced: it keeps its id, and has the
    /// payload, the moment and the settings of this one, and all its attempts. A job with this key that
    /// runs goes on, loses its key, and is not tried again; this one is another job, which may run beside it
    /// unless both are [serial](Self::serial).
    pub fn key(mut self, key: impl Into<String>) -> Self {
        if let Ok(order) = &mut self.order {
            order.key = Some(key.into());
        }
        self
    }

    /// If a waiting job is replaced that has not been tried yet, its moment stays.
    pub fn keep_moment(mut self) -> Self {
        if let Ok(order) = &mut self.order {
            order.keeps_moment = true;
        }
        self
    }

    /// Puts the job into a sequence. Of the jobs in one sequence one runs at a time, on one machine, in the
    /// order of their moments. A job whose attempt has failed lets the others go first.
    pub fn serial(mut self, sequence: impl Into<String>) -> Self {
        if let Ok(order) = &mut self.order {
            order.serial = Some(sequence.into());
        }
        self
    }

    /// Sets how many attempts this job has, at least one.
    pub fn attempts(mut self, attempts: u32) -> Self {
        if let Ok(order) = &mut self.order {
            order.attempts = attempts.clamp(1, i16::MAX as u32);
        }
        self
    }

    /// Stores the job.
    ///
    /// # Errors
    ///
    /// [`DeskError`], if the payload is not JSON, the desk was shut down, or the engine cannot be asked.
    pub fn send(self) -> Result<Ticket, DeskError> {
        let (desk, name) = (self.desk, self.name);
        let order = self.checked()?;
        let id = desk.engine.send(order).wait(desk.limit())?;
        Ok(Ticket { id, name })
    }

    /// The same as [`send`](Self::send), without blocking. The reply is the job's id.
    pub fn send_async(self) -> Reply<JobId> {
        let desk = self.desk;
        match self.checked() {
            Ok(order) => desk.engine.send(order),
            Err(error) => Reply::ready(Err(error)),
        }
    }

    /// Returns what is to be stored, if it can be.
    pub(crate) fn checked(self) -> Result<Order, DeskError> {
        let name = self.name;
        let order = self.order.map_err(|source| DeskError::Payload { name, source })?;
        let is_longer = |text: &Option<String>, most| text.as_ref().is_some_and(|t| t.len() > most);
        if name.len() > LONGEST_NAME {
            return Err(DeskError::TooLong { what: "the name of a job", most: LONGEST_NAME });
        }
        if is_longer(&order.key, LONGEST_KEY) {
            return Err(DeskError::TooLong { what: "the key of a job", most: LONGEST_KEY });
        }
        if is_longer(&order.serial, LONGEST_NAME) {
            return Err(DeskError::TooLong { what: "the name of a sequence", most: LONGEST_NAME });
        }
        Ok(order)
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn tables(&self) -> Option<(punctual::Clock, crate::postgres::Schema)> {
        self.desk.engine.tables()
    }
}

/// A job that was sent. It has an id and no value: what a handler computes cannot come back from another
/// machine, and the embedded desk does not pretend that it could.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    pub(crate) id: JobId,
    pub(crate) name: &'static str,
}

impl Ticket {
    /// Returns the id of the job.
    #[must_use]
    pub fn id(&self) -> JobId {
        self.id
    }

    /// Returns the name of the job's kind.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }
}

/// Returns how long it is until `time` by a clock that shows `now`.
pub(crate) fn until(time: SystemTime, now: SystemTime) -> Duration {
    time.duration_since(now).unwrap_or(Duration::ZERO)
}
