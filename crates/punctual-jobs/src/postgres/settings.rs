//! The settings of the queue on PostgreSQL, and how it is opened.

use std::{fmt, sync::Arc, time::Duration};

use punctual::Handle;
use tokio_postgres::Config;

use super::{connection::Address, encryption};
use crate::{
    OpenError,
    queue::machine,
    server::{
        dial::{Dial, Seam, Through},
        schema::Schema,
    },
};

type OnEvent = Arc<dyn Fn(&QueueEvent) + Send + Sync>;

/// Opens a queue on PostgreSQL: `jobs.open(Postgres::on(&executor, url))`.
///
/// Each process that opens such a queue on the same database is one of the machines: it may enqueue jobs, and it
/// runs those whose kinds it handles. The queue has one thread of its own, which talks to the server, another one if
/// there are [schedules](crate::Jobs::every), which notes their ticks, and runs handlers on the executor.
///
/// ```no_run
/// use std::time::Duration;
/// use punctual::ScheduledThreadPoolExecutor;
/// use punctual_jobs::{Jobs, Postgres};
///
/// let executor = ScheduledThreadPoolExecutor::new(8);
/// let url = "postgres://app@localhost/app";
/// let queue = Jobs::new().open(Postgres::on(&executor, url).lease(Duration::from_secs(20)))?;
/// # Ok::<(), punctual_jobs::OpenError>(())
/// ```
///
/// # The connection
///
/// It has to lead to the server itself or through a pooler in session mode; opening it through one in
/// transaction mode is [refused](OpenError::TransactionPooling).
///
/// With the feature `tls` it is encrypted if the server can do so, and always if the address says
/// `sslmode=require`. The server's certificate is checked against the public roots, and those of the file of
/// PEM that the environment variable `PGSSLROOTCERT` names. Without the feature it is not encrypted: use a
/// socket, a private network, or a tunnel.
///
/// # The tables
///
/// They are in the schema `punctual`, unless [set](Self::schema) otherwise: `job`, `job_run`, `job_worker`, `job_tick`, `job_schedule`, `job_bucket`, `job_pause`, `job_result` and
/// `job_version`, and the sequence `job_claim`. Opening makes them, unless they are there. A program does not
/// open on tables that a newer version has made, or one before the first release.
///
/// If the program's role must not make tables, call [`migrate`](Self::migrate) as a role that may, before the first
/// start of each version. The program's role needs no more than this:
///
/// ```sql
/// grant usage on schema punctual to app;
/// grant select on punctual.job_version to app;
/// grant select, insert, update, delete on punctual.job, punctual.job_run, punctual.job_worker, punctual.job_tick, punctual.job_schedule, punctual.job_bucket, punctual.job_pause, punctual.job_result to app;
/// grant usage on sequence punctual.job_claim to app;
/// ```
///
/// A program in another language, or a person, enqueues a job by a row:
/// `insert into punctual.job (name, payload) values ('remind', '{"user": 42}')`. It is found by the next poll.
/// Columns that such a row may set are `ordering_key`, `limit_key`, `key`, `run_at`, `priority`, `traceparent` and `max_attempts`.
#[must_use = "nothing is opened until it is given to `Jobs::open`"]
pub struct Postgres {
    executor: Handle,
    url: String,
    schema: Option<String>,
    heartbeat: Option<Duration>,
    slots: Option<usize>,
    settings: Settings,
}

pub(super) struct Settings {
    pub(super) lease: Duration,
    pub(super) heartbeat: Duration,
    pub(super) poll: Duration,
    pub(super) slots: usize,
    pub(super) request_timeout: Duration,
    pub(super) tick_deadline: Duration,
    pub(super) machine: String,
    /// For how long runs are kept, if at all.
    pub(super) history: Option<Duration>,
    pub(super) on_event: Option<OnEvent>,
    /// What a simulation has put in.
    pub(super) seam: Option<Seam>,
}

/// Something that the queue has dealt with, and that a program may want to log; given to
/// [`Postgres::on_event`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum QueueEvent {
    /// The server could not be asked for jobs, or which claims still stand, or told how runs have ended. It is asked
    /// again. If the heartbeat has no answer for the length of the lease, the tokens of all running jobs are cancelled.
    ServerAway {
        /// The error, in words.
        error: String,
    },
    /// The server has refused a statement of the queue because of a row, a right or a table: a constraint or a trigger that
    /// the program or a person has added, for instance. It is asked again, and will be refused until that is mended. If the server refuses
    /// it for one row, whatever the code of the error, the others go on, and the row is tried again: the end of a run at each
    /// heartbeat, with an event each time, and anything else after a pause that grows to a minute, with one event. The end that is
    /// refused leaves its error in the row of the job, which a list shows as the last error of a job that runs.
    ServerRefused {
        /// The error, in words.
        error: String,
    },
    /// The claim of a running job is lost: another machine may be running it. Its token was cancelled.
    ClaimLost {
        /// The id of the job.
        id: crate::JobId,
    },
    /// The executor has refused runs of jobs that were claimed: it has no room, or was shut down. They were no
    /// attempts, the jobs are free for other machines, and the queue claims none for a while. Since the executor
    /// may have no room for this either, it is told when there is some.
    RunsRefused {
        /// How many.
        runs: u64,
        /// Why the last of them was.
        error: String,
    },
    /// Ticks of a schedule were kept for their [deadline](Postgres::tick_deadline) in vain, or were more than are kept, or
    /// the queue was closed while it kept them. Unless another machine has taken them, no job is enqueued for them.
    TicksLost {
        /// The name of the schedule.
        schedule: String,
        /// How many.
        ticks: u64,
        /// The last error, in words.
        error: String,
    },
    /// Ticks of a schedule have enqueued no job of their own, because one that waited begins after them. While it
    /// waits they are only counted, so this comes with the next job that this machine enqueues for the schedule.
    TicksMerged {
        /// The name of the schedule.
        schedule: String,
        /// How many.
        ticks: u64,
    },
    /// Ticks of a schedule that is a row came when no machine was there to take them, or none could reach the database, and have
    /// no job of their own: the schedule makes up for none, or for the last one, or they were longer ago than its
    /// [window](crate::CatchUp). The machine that has found them tells it.
    TicksMissed {
        /// The name of the schedule.
        schedule: String,
        /// How many; of a cron expression a thousand at most.
        ticks: u64,
    },
    /// The row of a schedule that this program [declares](crate::Jobs::schedule) was put or removed since, and stays as it is.
    ScheduleKept {
        /// The name of the schedule.
        schedule: String,
    },
    /// This program cannot tick a schedule that is a row: its zone is unknown here, or a newer version has written it. Another
    /// machine may.
    ScheduleUnreadable {
        /// The name of the schedule.
        schedule: String,
        /// The error of the part that this program does not understand.
        error: String,
    },
    /// The last tick of a schedule was taken for a moment that has not come: the server's clock was set back since. It is
    /// not believed, and the schedule goes on by the clock as it is.
    TickInFuture {
        /// The name of the schedule.
        schedule: String,
        /// How far in the future that moment is.
        ahead: Duration,
    },
}

/// One line for a log.
impl fmt::Display for QueueEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ServerAway { error } => {
                write!(
                    f,
                    "the server could not be asked about the jobs, and is asked again: {error}"
                )
            }
            Self::ServerRefused { error } => {
                write!(f, "the server has refused a statement, which is asked again: {error}")
            }
            Self::ClaimLost { id } => write!(f, "the claim of the running job {id} is lost"),
            Self::RunsRefused { runs, error } => {
                write!(
                    f,
                    "runs that the executor has refused: {runs}, the last one because {error}"
                )
            }
            Self::TicksLost { schedule, ticks, error } => {
                write!(f, "ticks of the schedule {schedule:?} that are lost: {ticks}; {error}")
            }
            Self::TicksMerged { schedule, ticks } => {
                write!(f, "ticks of the schedule {schedule:?} that found a job waiting: {ticks}")
            }
            Self::TicksMissed { schedule, ticks } => {
                write!(f, "ticks of the schedule {schedule:?} that were missed: {ticks}")
            }
            Self::ScheduleKept { schedule } => write!(
                f,
                "the schedule {schedule:?} stays as its row says, which is not what this program declares"
            ),
            Self::ScheduleUnreadable { schedule, error } => {
                write!(f, "the schedule {schedule:?} cannot be ticked here: {error}")
            }
            Self::TickInFuture { schedule, ahead } => write!(
                f,
                "the last tick of the schedule {schedule:?} is {ahead:?} in the future: the server's clock was set back"
            ),
        }
    }
}

impl Postgres {
    /// Runs handlers on this executor, and keeps jobs in the database at this address: a URL, or a list of
    /// keys and values, as [`tokio_postgres::Config`] reads them. A span longer than a year that
    /// is set below counts as a year.
    pub fn on(executor: &Handle, url: impl Into<String>) -> Self {
        let settings = Settings {
            lease: Duration::from_secs(20),
            heartbeat: Duration::ZERO,
            poll: Duration::from_secs(1),
            slots: 0,
            request_timeout: Duration::from_secs(10),
            tick_deadline: Duration::from_secs(3600),
            machine: machine::name_of_this(),
            history: None,
            on_event: None,
            seam: None,
        };
        let (executor, url) = (executor.clone(), url.into());
        Self { executor, url, schema: None, heartbeat: None, slots: None, settings }
    }

    /// Sets after which silence a process counts as dead, and its jobs run elsewhere; without this call it is
    /// 20 seconds, and at least 100 ms. It is not a limit on how long a job may run. The machine that finds it counts the silence by its own
    /// monotonic clock, from when it began to look: no step of a wall clock ends a lease or prolongs it, and a machine that is started
    /// alone after a crash takes the jobs over when it has looked for the length of the lease.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.settings.lease = lease.min(LONGEST);
        self
    }

    /// Sets how often the queue says that it is alive, and asks which of its claims still stand; without this
    /// call it is a quarter of the lease. A cancel from another machine is seen after at most this time.
    pub fn heartbeat(mut self, heartbeat: Duration) -> Self {
        self.heartbeat = Some(heartbeat);
        self
    }

    /// Sets how often the queue looks for jobs that have become due, whatever it has heard of; without this call each second. A job that
    /// is enqueued does not wait for that, on whichever machine, nor does one whose ordering key or limit becomes free. A job of plain
    /// SQL does unless its moment is after the next look.
    pub fn poll(mut self, poll: Duration) -> Self {
        self.settings.poll = poll.min(LONGEST);
        self
    }

    /// Sets how many jobs this process runs at a time; without this call as many as the executor has
    /// workers. A larger number than ten thousand counts as ten thousand. With more slots than workers, jobs that this process has claimed wait for its
    /// workers while another machine may be idle.
    pub fn slots(mut self, slots: usize) -> Self {
        self.slots = Some(slots);
        self
    }

    /// Sets the schema that the tables are in; without this call it is `punctual`. Queues on different schemas of one
    /// database have nothing to do with each other. The name has at most 63 small letters, digits and underscores.
    pub fn schema(mut self, name: impl Into<String>) -> Self {
        self.schema = Some(name.into());
        self
    }

    /// Sets what this machine calls itself in the [list of jobs](crate::JobQueue::list) and in the table of workers;
    /// without this call it is the name of the host and the number of the process, `web-1:4711`. White space becomes `_`, and the
    /// name is cut off after 128 characters.
    pub fn machine(mut self, name: impl Into<String>) -> Self {
        self.settings.machine = machine::without_space(&name.into());
        self
    }

    /// Has this machine write its runs into the [history](crate::JobQueue::history), and sets for how long, a hundred years at most, runs are kept after
    /// they have ended, by the server's clock; without this call it writes none. A run costs one row in a table with three
    /// indexes, and a fourth for runs of schedules, written by the statement that writes down its end. Set it on all machines: the runs that a machine finds
    /// [lost](crate::JobOutcome::Lost) it writes as well, whichever machine they were on, and the shortest time decides when a run goes.
    pub fn history(mut self, keep: Duration) -> Self {
        self.settings.history = Some(keep.min(100 * LONGEST));
        self
    }

    /// Sets for how long the verbs of the queue block at most; without this call it is ten seconds.
    pub fn request_timeout(mut self, request_timeout: Duration) -> Self {
        self.settings.request_timeout = request_timeout.min(LONGEST);
        self
    }

    /// Sets for how long a tick of a [schedule](crate::Jobs::every) is kept while the server cannot be asked, or says
    /// that it has not come; without this call it is an hour. (Kubernetes: `startingDeadlineSeconds`.)
    pub fn tick_deadline(mut self, deadline: Duration) -> Self {
        self.settings.tick_deadline = deadline.min(LONGEST);
        self
    }

    /// Sets the callback for events that the queue has dealt with. It is called on a thread of the executor. Without this call
    /// a server that is [away](QueueEvent::ServerAway) or [refuses](QueueEvent::ServerRefused) is a line on standard error, once a minute.
    pub fn on_event(mut self, closure: impl Fn(&QueueEvent) + Send + Sync + 'static) -> Self {
        self.settings.on_event = Some(Arc::new(closure));
        self
    }

    /// Takes the place of the sockets and the threads, for a simulation. Then opening makes no tables and does not wait for the
    /// database.
    #[doc(hidden)]
    pub fn through(mut self, seam: Seam) -> Self {
        self.settings.seam = Some(seam);
        self
    }

    /// Returns the executor, the address and the settings, if a queue can be opened with them.
    pub(super) fn checked(self) -> Result<(Handle, Address, Settings), OpenError> {
        let Self { executor, url, schema, heartbeat, slots, mut settings } = self;
        let config: Config = url.parse().map_err(|error| OpenError::Address(Box::new(error)))?;
        let (lease, heartbeat) = (settings.lease, heartbeat.unwrap_or(settings.lease / 4));
        if heartbeat.is_zero() || heartbeat > lease / 2 || lease < SHORTEST_LEASE {
            return Err(OpenError::Setting(
                "the lease has to be at least 100 ms, and at least twice the heartbeat",
            ));
        }
        if settings.poll.is_zero() || slots == Some(0) {
            return Err(OpenError::Setting("the poll and the slots must not be zero"));
        }
        settings.heartbeat = heartbeat;
        settings.slots = slots.unwrap_or_else(|| executor.core_pool_size()).clamp(1, MOST_SLOTS);
        let schema = schema.map_or_else(|| Some(Schema::default()), Schema::new);
        let schema = schema.ok_or(OpenError::Setting(BAD_SCHEMA))?;
        let connector = encryption::connector().map_err(OpenError::Server)?;
        #[allow(clippy::clone_on_copy, reason = "it is only where nothing is encrypted")]
        let dial = || -> Arc<dyn Dial> { Arc::new(Through(connector.clone())) };
        let dial = settings.seam.as_ref().map_or_else(dial, |seam| Arc::clone(&seam.dial));
        Ok((executor, Address::new(config, dial, connector, schema), settings))
    }
}

const BAD_SCHEMA: &str = "the name of a schema has at most 63 small letters, digits and underscores, does not begin with a \
     digit, and not with pg_, which is the server's";

/// A shorter one would take every pause of a process for its end.
const SHORTEST_LEASE: Duration = Duration::from_millis(100);

/// A clock cannot add a longer span to each of its moments.
const LONGEST: Duration = Duration::from_secs(365 * 86_400);

/// More rows than one statement is to claim.
const MOST_SLOTS: usize = 10_000;

impl fmt::Debug for Postgres {
    /// Leaves out the address, which may have a password in it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres")
            .field("lease", &self.settings.lease)
            .field("poll", &self.settings.poll)
            .field("slots", &self.slots)
            .finish_non_exhaustive()
    }
}
