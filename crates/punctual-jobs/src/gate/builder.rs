//! Opening a gate: its settings, and how its thread begins.

use std::{
    fmt,
    hash::{BuildHasher, RandomState},
    io,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use tokio::{runtime, sync::mpsc::unbounded_channel, time::Instant};
use tokio_postgres::{
    Config, NoTls, Socket,
    tls::{MakeTlsConnect, TlsConnect},
};

use super::{
    Gate, Inner, boot_clock,
    connection::Connection,
    error::{GateError, GateErrorKind},
    event::{GateEvent, Listener, Reporter},
    keeper::{HeldList, Keeper, Request, Settings},
    rules::OnHolderDeath,
};
use crate::{
    queue::machine,
    server::{
        connection::Address,
        dial::{Dial, Seam, Through},
        schema::Schema,
    },
};

/// How long [`GateBuilder::open`] waits for the database.
const OPEN_LIMIT: Duration = Duration::from_secs(10);
const USUAL_TIMEOUT: Duration = Duration::from_secs(1);
const SHORTEST_LEASE: Duration = Duration::from_millis(200);
const LONGEST_LEASE: Duration = Duration::from_secs(86_400);

/// Describes a gate before it is opened. It is made by [`Gate::postgres`].
#[must_use = "nothing is opened until `open` is called"]
pub struct GateBuilder {
    url: String,
    schema: String,
    lease: Duration,
    request_timeout: Option<Duration>,
    on_holder_death: OnHolderDeath,
    listener: Option<Listener>,
    dial: Arc<dyn Dial>,
    seam: Option<Seam>,
}

impl GateBuilder {
    pub(super) fn new(url: String) -> Self {
        Self {
            url,
            schema: "punctual".to_owned(),
            lease: Duration::from_secs(20),
            request_timeout: None,
            on_holder_death: OnHolderDeath::default(),
            listener: None,
            dial: Arc::new(Through(NoTls)),
            seam: None,
        }
    }

    /// Sets how long a run may go on without a word from its replica before another takes over; the
    /// default is 20 seconds. It says nothing about how long a run may take: a lease is renewed for as long as
    /// the run goes on. It is how long a tick is held up if its replica dies, and how long an outage of the
    /// database a run survives. At least 200 ms, at most a day. All replicas should have the same.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets for how long at most a question waits for the database, from its tick on; the default is one second, or the
    /// lease if that is shorter. No longer than the lease. No worker waits with it. While there is no connection, since the
    /// last attempt has failed or the server has fallen silent, a question fails at once.
    pub fn request_timeout(mut self, request_timeout: Duration) -> Self {
        self.request_timeout = Some(request_timeout);
        self
    }

    /// Sets the policy for a tick whose replica dies in its run; the default is [`OnHolderDeath::Rerun`].
    pub fn on_holder_death(mut self, on_holder_death: OnHolderDeath) -> Self {
        self.on_holder_death = on_holder_death;
        self
    }

    /// Sets the schema that the table is in; the default is `punctual`. Gates with different schemas know
    /// nothing of each other.
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = schema.into();
        self
    }

    /// Sets a function that is told of each [event](GateEvent). It is called on the gate's own thread
    /// or on a worker, with no lock held, and should be quick: that thread renews the leases. A panic of it is
    /// ignored.
    pub fn on_event(mut self, listener: impl Fn(&GateEvent) + Send + Sync + 'static) -> Self {
        self.listener = Some(Arc::new(listener));
        self
    }

    /// Sets how connections are encrypted; without this call they are not. Any connector of
    /// `tokio-postgres` will do, as those of `tokio-postgres-rustls` and `postgres-native-tls`.
    pub fn tls<T>(mut self, tls: T) -> Self
    where
        T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        T::Stream: Send + 'static,
        T::TlsConnect: Send,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        self.dial = Arc::new(Through(tls));
        self
    }

    /// Takes the place of the socket, the thread and the clock, for a simulation. Then [`open`](Self::open) makes no tables and does not
    /// wait for the database.
    #[doc(hidden)]
    pub fn through(mut self, seam: Seam) -> Self {
        self.dial = Arc::clone(&seam.dial);
        self.seam = Some(seam);
        self
    }

    /// Starts the gate's thread, connects, and makes the tables if they are not there: see
    /// [`Gate::migrate`] for the rights that it needs. Blocks until that is done, for ten seconds at most.
    ///
    /// # Errors
    ///
    /// [`GateError`], if a setting is not one, if the thread cannot be started, or if the database cannot
    /// be reached in that time or refuses to make the tables, or if a newer version of this crate has made them.
    /// Nothing is left running.
    pub fn open(self) -> Result<Gate, GateError> {
        if let Some(seam) = self.seam.clone() {
            let (inner, keep) = self.prepare()?;
            drop(seam.runtime.spawn(keep));
            return Ok(Gate(Arc::new(inner)));
        }
        let gate = self.start()?;
        gate.migrate()?;
        Ok(gate)
    }

    fn start(self) -> Result<Gate, GateError> {
        let runtime = runtime::Builder::new_current_thread().enable_io().enable_time().build();
        let runtime = runtime.map_err(GateError::thread)?;
        let (mut inner, keep) = self.prepare()?;
        let thread = thread::Builder::new().name("punctual-gate".to_owned());
        let thread = thread.spawn(move || runtime.block_on(keep)).map_err(GateError::thread)?;
        inner.thread = Some(thread);
        Ok(Gate(Arc::new(inner)))
    }

    /// Checks the settings; returns a gate without a thread, and what that thread is to do.
    fn prepare(self) -> Result<(Inner, impl Future<Output = ()> + Send + use<>), GateError> {
        let Self { url, schema, lease, request_timeout, on_holder_death, listener, dial, seam } =
            self;
        let bad_schema = || GateError::bad(GateErrorKind::BadSchema, &schema);
        let schema = Schema::new(schema.clone()).ok_or_else(bad_schema)?;
        let request_timeout = request_timeout.unwrap_or(USUAL_TIMEOUT.min(lease));
        check_lease(lease, request_timeout)?;
        let mut config: Config = url.parse().map_err(GateError::url)?;
        if config.get_application_name().is_none() {
            config.application_name("punctual gate");
        }
        let clock = seam.map_or(boot_clock::now as _, |seam| seam.clock);
        let holder = holder();
        let settings = Settings { lease, request_timeout, holder, clock };
        let (requests, receiver) = unbounded_channel();
        let held = Arc::new(HeldList::default());
        let reporter = Arc::new(Reporter::new(listener));
        let keep = {
            let (requests, reporter, held) =
                (requests.clone(), Arc::clone(&reporter), Arc::clone(&held));
            let schema = schema.clone();
            async move {
                let connection = Connection::begin(Address { config, dial }, schema);
                let keeper = Keeper::new(settings, connection, reporter, requests, held);
                keeper.run(receiver).await;
            }
        };
        let inner = Inner {
            requests,
            thread: None,
            held,
            reporter,
            schema,
            lease,
            request_timeout,
            on_holder_death,
            clock,
        };
        Ok((inner, keep))
    }
}

impl fmt::Debug for GateBuilder {
    /// Without the address, which may have a password in it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GateBuilder")
            .field("schema", &self.schema)
            .field("lease", &self.lease)
            .field("request_timeout", &self.request_timeout)
            .field("on_holder_death", &self.on_holder_death)
            .finish_non_exhaustive()
    }
}

impl Gate {
    /// Makes the tables and the functions if they are not there; [`GateBuilder::open`] has done so. Blocks for
    /// ten seconds at most.
    ///
    /// The role of the connection needs the right to create a schema only if something is missing. Otherwise
    /// these are enough, for the schema `punctual`:
    ///
    /// ```sql
    /// grant usage on schema punctual to app;
    /// grant select, insert, update on punctual.gate to app;
    /// grant usage on sequence punctual.gate_fence to app;
    /// grant select on punctual.gate_version to app;
    /// ```
    ///
    /// # Errors
    ///
    /// [`GateError`] if the database cannot be reached in that time, or refuses, or if the tables are those of a
    /// [newer version](GateErrorKind::NewerTables) of this crate, which are left as they are.
    pub fn migrate(&self) -> Result<(), GateError> {
        let gone = || GateError::thread(io::Error::other("it has ended"));
        let (reply, answer) = mpsc::sync_channel(1);
        let deadline = Instant::now() + OPEN_LIMIT;
        self.0.requests.send(Request::Migrate(deadline, reply)).map_err(|_| gone())?;
        answer.recv().map_err(|_| gone())?
    }
}

fn check_lease(lease: Duration, request_timeout: Duration) -> Result<(), GateError> {
    if !(SHORTEST_LEASE..=LONGEST_LEASE).contains(&lease) {
        let detail =
            format!("a lease of {lease:?} cannot be kept: it is to be from 200 ms to a day");
        return Err(GateError::bad(GateErrorKind::BadLease, detail));
    }
    if request_timeout.is_zero() || request_timeout > lease {
        let detail = format!(
            "a request time-out of {request_timeout:?} is none: it is to be from above zero to the lease, {lease:?}"
        );
        return Err(GateError::bad(GateErrorKind::BadLease, detail));
    }
    Ok(())
}

/// Returns what the row says of its holder: for people the machine and the process, and for the gate a
/// number that no other gate has.
fn holder() -> String {
    let number = RandomState::new().hash_one(std::process::id());
    format!("{} {number:016x}", machine::name_of_this())
}
