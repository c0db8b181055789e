//! What can be set of the desk on PostgreSQL, and how it is opened.

use std::{fmt, sync::Arc, time::Duration};

use punctual::Handle;
use tokio_postgres::Config;

use super::{connection::Connection, engine::Encryption, office};
use crate::{
    Desk, OpenDesk, OpenError,
    jobs::{Opening, sealed::Sealed},
};

type OnTrouble = Arc<dyn Fn(&Trouble) + Send + Sync>;

/// Opens a desk on PostgreSQL: `jobs.open(Postgres::on(&executor, url))`.
///
/// Each process that opens such a desk on the same database is one of the machines: it may send jobs, and it
/// runs those whose kinds it handles. The desk has one thread of its own, which talks to the server, and runs
/// handlers on the executor.
///
/// ```no_run
/// use std::time::Duration;
/// use punctual::ScheduledThreadPoolExecutor;
/// use punctual_jobs::{Jobs, Postgres};
///
/// let executor = ScheduledThreadPoolExecutor::new(8);
/// let url = "postgres://app@localhost/app";
/// let desk = Jobs::new().open(Postgres::on(&executor, url).lease(Duration::from_secs(20)))?;
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
/// They are in the schemas `graphile_worker`, which belongs to the engine, and `punctual`. Opening makes them
/// and brings them up to date. If the program's user must not do that, call [`migrate`](Self::migrate) as a
/// user who may, before the first start of each version.
#[must_use = "nothing is opened until it is given to `Jobs::open`"]
pub struct Postgres {
    executor: Handle,
    url: String,
    lease: Duration,
    heartbeat: Option<Duration>,
    poll: Duration,
    slots: Option<usize>,
    connections: Option<usize>,
    limit: Duration,
    on_trouble: Option<OnTrouble>,
}

/// The settings, checked.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) config: Config,
    pub(super) encryption: Encryption,
    pub(super) lease: Duration,
    pub(super) heartbeat: Duration,
    pub(super) poll: Duration,
    pub(super) slots: usize,
    pub(super) connections: usize,
    pub(super) limit: Duration,
    pub(super) on_trouble: Option<OnTrouble>,
}

impl Settings {
    /// Returns a connection of the desk's own, which is made when it is needed.
    pub(super) fn connection(&self) -> Connection {
        Connection::new(self.config.clone(), self.encryption.clone())
    }
}

/// Something that the desk has dealt with, and that somebody may want to know of; given to
/// [`Postgres::on_trouble`].
#[derive(Debug)]
#[non_exhaustive]
pub enum Trouble {
    /// The engine has stopped with an error, and is started again.
    EngineStopped {
        /// What it has said.
        error: String,
    },
    /// Jobs were due, slots were free, and none was claimed. The engine is started again.
    EngineStuck,
    /// The server could not be asked which claims still stand. If that goes on for the length of the lease,
    /// the tokens of all running jobs are raised.
    ServerAway {
        /// What has failed.
        error: String,
    },
    /// The claim of a running job is lost: another machine may be running it. Its token was raised.
    ClaimLost {
        /// Which job it is.
        id: crate::JobId,
    },
    /// A tick could not be claimed for a minute. Unless another machine could, no job was sent for it.
    TickNotSent {
        /// The name of the periodic job.
        name: &'static str,
        /// What has failed last.
        error: String,
    },
}

/// One line for a log.
impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EngineStopped { error } => {
                write!(f, "the engine has stopped and is started again: {error}")
            }
            Self::EngineStuck => {
                f.write_str("the engine claims no job although some are due, and is started again")
            }
            Self::ServerAway { error } => {
                write!(f, "the server could not be asked which claims still stand: {error}")
            }
            Self::ClaimLost { id } => write!(f, "the claim of the running job {id} is lost"),
            Self::TickNotSent { name, error } => {
                write!(f, "a tick of the periodic job {name:?} was not sent: {error}")
            }
        }
    }
}

impl Postgres {
    /// Runs handlers on this executor, and keeps jobs in the database at this address: a URL, or a list of
    /// keys and values, as [`tokio_postgres::Config`] reads them.
    pub fn on(executor: &Handle, url: impl Into<String>) -> Self {
        Self {
            executor: executor.clone(),
            url: url.into(),
            lease: Duration::from_secs(20),
            heartbeat: None,
            poll: Duration::from_secs(1),
            slots: None,
            connections: None,
            limit: Duration::from_secs(10),
            on_trouble: None,
        }
    }

    /// Sets after which silence a process counts as dead, and its jobs run elsewhere; without this call it is
    /// 20 seconds, and at least 100 ms. It is not a limit on how long a job may run.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets how often the desk says that it is alive, and asks which of its claims still stand; without this
    /// call it is a quarter of the lease. A cancel from another machine is seen after at most this time.
    pub fn heartbeat(mut self, heartbeat: Duration) -> Self {
        self.heartbeat = Some(heartbeat);
        self
    }

    /// Sets how often the engine looks for jobs that have become due; without this call each second. A job
    /// that is due when it is sent does not wait for that, nor does a job of less than five minutes on the
    /// machine that has sent it.
    pub fn poll(mut self, poll: Duration) -> Self {
        self.poll = poll;
        self
    }

    /// Sets how many jobs this process runs at a time; without this call as many as the executor has
    /// workers.
    pub fn slots(mut self, slots: usize) -> Self {
        self.slots = Some(slots);
        self
    }

    /// Sets how many connections the engine has for claiming and completing jobs; without this call as many
    /// as there are slots, and at most eight. Beside these there are two: one on which the engine listens, and
    /// one for the verbs of the desk.
    pub fn connections(mut self, connections: usize) -> Self {
        self.connections = Some(connections);
        self
    }

    /// Sets for how long the verbs of the desk block at most; without this call it is ten seconds.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Sets what is told of troubles that the desk has dealt with. It is called on a thread of the executor.
    pub fn on_trouble(mut self, closure: impl Fn(&Trouble) + Send + Sync + 'static) -> Self {
        self.on_trouble = Some(Arc::new(closure));
        self
    }

    /// Makes the tables, or brings them up to date, and opens nothing. Blocks; has a thread and connections
    /// for the length of the call.
    ///
    /// # Errors
    ///
    /// [`OpenError`], if the server cannot be reached, or the user must not do that.
    pub fn migrate(self) -> Result<(), OpenError> {
        let (_, settings) = self.checked()?;
        office::migrate(settings)
    }

    fn checked(self) -> Result<(Handle, Settings), OpenError> {
        let config: Config =
            self.url.parse().map_err(|error| OpenError::Address(Box::new(error)))?;
        let heartbeat = self.heartbeat.unwrap_or(self.lease / 4);
        if heartbeat.is_zero() || heartbeat > self.lease / 2 || self.lease < SHORTEST_LEASE {
            return Err(OpenError::Setting(
                "the lease has to be at least 100 ms, and at least twice the heartbeat",
            ));
        }
        if self.poll.is_zero() || self.slots == Some(0) || self.connections == Some(0) {
            return Err(OpenError::Setting(
                "the poll, the slots and the connections must not be zero",
            ));
        }
        let slots = self.slots.unwrap_or_else(|| self.executor.core_pool_size()).max(1);
        let settings = Settings {
            config,
            encryption: Encryption::new().map_err(OpenError::Server)?,
            lease: self.lease,
            heartbeat,
            poll: self.poll,
            slots,
            connections: self.connections.unwrap_or(slots.min(8)).max(2),
            limit: self.limit,
            on_trouble: self.on_trouble,
        };
        Ok((self.executor, settings))
    }
}

/// A shorter one would take every pause of a process for its end.
const SHORTEST_LEASE: Duration = Duration::from_millis(100);

impl Sealed for Postgres {}

impl OpenDesk for Postgres {
    fn open_desk(self, opening: Opening) -> Result<Desk, OpenError> {
        let (executor, settings) = self.checked()?;
        office::open(executor, settings, opening)
    }
}

impl fmt::Debug for Postgres {
    /// Leaves out the address, which may have a password in it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres")
            .field("lease", &self.lease)
            .field("poll", &self.poll)
            .field("slots", &self.slots)
            .finish_non_exhaustive()
    }
}
