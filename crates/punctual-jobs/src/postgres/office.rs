//! The engine of a desk on PostgreSQL: how it is opened, what its verbs ask, and how it ends.
//!
//! The office lives as long as its thread. The thread ends when the desk is closed and the engine has nothing
//! that runs; everything that was asked for and has no answer then is answered with
//! [`ShutDown`](DeskError::ShutDown), because its promise is dropped with the runtime.

use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Weak, mpsc},
    thread,
    time::Duration,
};

use parking_lot::Mutex;
use punctual::{CancellationToken, Handle, TaskHandle};
use tokio::{runtime, sync::Notify};
use tokio_postgres::types::Type;

use super::{
    claims::Claims,
    connection::Connection,
    engine::{self, Kick, Worker, closed},
    settings::{Settings, Trouble},
    statements::{self, moment},
    supervisor,
};
use crate::{
    Cancellation, Desk, DeskError, JobId, JobState, OpenError, Reply, Rescheduling, ShutdownReport,
    When,
    desk::{Engine, Order, until},
    error::Source,
    jobs::{Definitions, Opening},
    pooler,
};

pub(super) struct Office {
    pub(super) me: Weak<Office>,
    pub(super) executor: Handle,
    pub(super) definitions: Arc<Definitions>,
    pub(super) settings: Settings,
    pub(super) connection: Connection,
    pub(super) runtime: runtime::Handle,
    pub(super) claims: Claims,
    pub(super) kick: Kick,
    /// The delays that the user's function has asked for, by job, until the engine has failed the attempt.
    pub(super) delays: Mutex<HashMap<i64, Duration>>,
    /// Asks the supervisor for another worker.
    pub(super) restart: Notify,
    /// Raised when the desk is closed.
    pub(super) stop: CancellationToken,
    /// Raised when the thread is about to end.
    ended: CancellationToken,
    pub(super) periodic: Mutex<Vec<TaskHandle>>,
}

/// Opens a desk.
pub(super) fn open(
    executor: Handle,
    settings: Settings,
    opening: Opening,
) -> Result<Desk, OpenError> {
    let runtime = new_runtime()?;
    let definitions = opening.definitions;
    let office = Arc::new_cyclic(|me| Office {
        me: me.clone(),
        executor,
        definitions: Arc::clone(&definitions),
        connection: settings.connection(),
        settings,
        runtime: runtime.handle().clone(),
        claims: Claims::default(),
        kick: Kick::default(),
        delays: Mutex::default(),
        restart: Notify::new(),
        stop: CancellationToken::new(),
        ended: CancellationToken::new(),
        periodic: Mutex::default(),
    });
    let (tell, told) = mpsc::channel();
    let on_thread = Arc::clone(&office);
    let body = move || {
        runtime.block_on(async {
            match on_thread.begin().await {
                Ok(worker) => {
                    let _ = tell.send(Ok(()));
                    match worker {
                        Some(worker) => supervisor::supervise(&on_thread, worker).await,
                        None => on_thread.stop.cancelled().await,
                    }
                }
                Err(error) => drop(tell.send(Err(error))),
            }
        });
        on_thread.ended.cancel();
        // What was asked for and is not done: the promises are dropped, and so kept.
        drop(runtime);
    };
    thread::Builder::new()
        .name("punctual-jobs".to_owned())
        .spawn(body)
        .map_err(OpenError::Thread)?;
    told.recv().unwrap_or_else(|_| Err(OpenError::Server("the desk's thread has ended".into())))?;
    let mut rows = HashMap::new();
    for periodic in opening.periodic {
        if let Err(error) = office.begin_periodic(periodic, &mut rows) {
            office.close();
            return Err(error);
        }
    }
    Ok(Desk::owning(office, definitions))
}

/// Makes the tables, and opens nothing.
pub(super) fn migrate(settings: Settings) -> Result<(), OpenError> {
    new_runtime()?.block_on(async {
        let connection = settings.connection();
        make_tables(&settings, &connection).await
    })
}

fn new_runtime() -> Result<runtime::Runtime, OpenError> {
    let mut builder = runtime::Builder::new_current_thread();
    builder.enable_io().enable_time().build().map_err(OpenError::Thread)
}

async fn make_tables(settings: &Settings, connection: &Connection) -> Result<(), OpenError> {
    engine::migrate(settings).await.map_err(OpenError::Server)?;
    connection.run(statements::MIGRATION).await.map_err(|error| OpenError::Server(error.into()))
}

impl Office {
    /// Does what has to be done before the desk is open. A desk that handles nothing has no worker: it could
    /// claim nothing, and if it looked for dead ones it would be told of jobs that were given up, and might
    /// have nobody to tell.
    async fn begin(self: &Arc<Self>) -> Result<Option<Worker>, OpenError> {
        let server = |error: tokio_postgres::Error| OpenError::Server(error.into());
        let limit = self.settings.limit;
        let begin = async {
            let (config, connector) = (&self.settings.config, self.settings.encryption.connector());
            if pooler::shares_backends(config, connector).await.map_err(server)? {
                let what = "two connections that are open at the same time have one backend";
                return Err(OpenError::TransactionPooling(what.into()));
            }
            make_tables(&self.settings, &self.connection).await?;
            if self.definitions.kinds.values().all(|kind| kind.handler.is_none()) {
                return Ok(None);
            }
            self.new_worker().await.map(Some).map_err(OpenError::Server)
        };
        let no_answer = |_| OpenError::Server(format!("no answer within {limit:?}").into());
        tokio::time::timeout(limit, begin).await.map_err(no_answer)?
    }

    pub(super) async fn new_worker(self: &Arc<Self>) -> Result<Worker, Source> {
        let kinds = self.definitions.kinds.values().filter(|kind| kind.handler.is_some());
        let tasks = kinds.map(|kind| (kind.task)()).collect();
        Worker::new(&self.settings, tasks, Arc::clone(self) as _, &self.kick).await
    }

    /// Has a future run on the desk's thread, and returns its answer.
    pub(super) fn ask<T, F>(&self, question: F) -> Reply<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, DeskError>> + Send + 'static,
    {
        let (promise, reply) = Reply::promised();
        self.runtime.spawn(async move { promise.keep(question.await) });
        reply
    }

    /// The same, if the desk is there to ask.
    fn ask_me<T, F>(&self, question: impl FnOnce(Arc<Self>) -> F) -> Reply<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, tokio_postgres::Error>> + Send + 'static,
    {
        let Some(me) = self.me.upgrade() else { return Reply::ready(Err(DeskError::ShutDown)) };
        let answer = question(me);
        self.ask(async move { answer.await.map_err(|error| DeskError::Server(error.into())) })
    }

    /// Tells the user of a trouble, on a thread of the executor.
    pub(super) fn report(&self, trouble: Trouble) {
        if let Some(closure) = self.settings.on_trouble.clone() {
            // If the executor takes no task any more, there is nobody to tell.
            let _ = self.executor.execute(move || closure(&trouble));
        }
    }

    /// Kicks the engine when a job of this machine is due: the poll might find it much later.
    pub(super) fn kick_when_due(&self, when: When) {
        let delay = match when {
            When::After(delay) => delay,
            When::At(instant) => instant.saturating_duration_since(self.executor.clock().now()),
            When::Wall(time) => until(time, self.executor.clock().wall_time()),
        };
        if !delay.is_zero() && delay < LONGEST_KICK {
            let kick = self.kick.clone();
            self.runtime.spawn(async move {
                tokio::time::sleep(delay).await;
                kick.kick();
            });
        }
    }

    async fn cancel_job(&self, key: &str) -> Result<Cancellation, tokio_postgres::Error> {
        let rows = self.connection.query(statements::CANCEL, &[(&key, Type::TEXT)]).await?;
        let Some(row) = rows.first() else { return Ok(Cancellation::Unknown) };
        if !row.get::<_, bool>(1) {
            return Ok(Cancellation::Removed);
        }
        self.claims.cancel(row.get(0));
        Ok(Cancellation::Signalled)
    }

    async fn move_job(&self, key: &str, when: When) -> Result<Rescheduling, tokio_postgres::Error> {
        let (time, delay) = moment(when, self.executor.clock());
        let params: super::connection::Params<'_> =
            &[(&key, Type::TEXT), (&time, Type::TIMESTAMPTZ), (&delay, Type::FLOAT8)];
        let rows = self.connection.query(statements::RESCHEDULE, params).await?;
        Ok(match rows.first() {
            None => Rescheduling::Unknown,
            Some(row) if row.get(0) => Rescheduling::Moved,
            Some(_) => Rescheduling::Running,
        })
    }

    async fn state_of(&self, id: JobId) -> Result<JobState, tokio_postgres::Error> {
        let rows = self.connection.query(statements::STATE, &[(&id.0, Type::INT8)]).await?;
        let Some(row) = rows.first() else { return Ok(JobState::Gone) };
        let (runs, begun, attempts) = (row.get(0), row.get::<_, i32>(1), row.get::<_, i32>(2));
        let last_error: Option<String> = row.get(3);
        let last_error = last_error.map(|stored| engine::plain_error(&stored));
        Ok(match (runs, row.get(4)) {
            (true, _) => JobState::Running,
            (false, true) => JobState::Gone,
            _ if begun >= attempts => {
                JobState::GivenUp { last_error: last_error.unwrap_or_default() }
            }
            _ => JobState::Waiting { attempts: u32::try_from(begun).unwrap_or(0), last_error },
        })
    }

    fn end_periodic(&self) {
        for task in std::mem::take(&mut *self.periodic.lock()) {
            task.cancel();
        }
    }
}

/// For how long before a job is due a timer for its kick is kept.
const LONGEST_KICK: Duration = Duration::from_secs(300);

/// Sends a job by this statement and these parameters, on whichever connection.
pub(super) struct SendParams {
    name: &'static str,
    payload: String,
    serial: Option<String>,
    time: Option<std::time::SystemTime>,
    delay: Option<f64>,
    attempts: i32,
    key: Option<String>,
    mode: &'static str,
}

impl SendParams {
    pub(super) fn new(order: Order, clock: &punctual::Clock) -> Self {
        let (time, delay) = moment(order.when, clock);
        Self {
            name: order.name,
            payload: closed(order.payload).to_string(),
            serial: order.serial,
            time,
            delay,
            attempts: i32::try_from(order.attempts).unwrap_or(i32::from(i16::MAX)),
            key: order.key,
            mode: if order.keeps_moment { "preserve_run_at" } else { "replace" },
        }
    }

    pub(super) fn typed(&self) -> [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 8] {
        [
            (&self.name, Type::TEXT),
            (&self.payload, Type::TEXT),
            (&self.serial, Type::TEXT),
            (&self.time, Type::TIMESTAMPTZ),
            (&self.delay, Type::FLOAT8),
            (&self.attempts, Type::INT4),
            (&self.key, Type::TEXT),
            (&self.mode, Type::TEXT),
        ]
    }
}

impl Engine for Office {
    fn send(&self, order: Order) -> Reply<JobId> {
        if self.claims.is_closing() {
            return Reply::ready(Err(DeskError::ShutDown));
        }
        let when = order.when;
        let params = SendParams::new(order, self.executor.clock());
        self.ask_me(|me| async move {
            let rows = me.connection.query(statements::SEND, &params.typed()).await?;
            me.kick_when_due(when);
            Ok(JobId(rows.first().map_or(0, |row| row.get(0))))
        })
    }

    fn reschedule(&self, key: &str, when: When) -> Reply<Rescheduling> {
        let key = key.to_owned();
        self.ask_me(|me| async move {
            let moved = me.move_job(&key, when).await?;
            me.kick_when_due(when);
            Ok(moved)
        })
    }

    fn cancel(&self, key: &str) -> Reply<Cancellation> {
        let key = key.to_owned();
        self.ask_me(|me| async move { me.cancel_job(&key).await })
    }

    fn state(&self, id: JobId) -> Reply<JobState> {
        self.ask_me(move |me| async move { me.state_of(id).await })
    }

    fn shutdown(&self, patience: Duration, grace: Duration) -> ShutdownReport {
        let Some(idle) = self.claims.begin_closing() else { return ShutdownReport::default() };
        self.end_periodic();
        self.stop.cancel();
        if idle.sleep(patience).is_ok() {
            self.claims.ask_to_stop();
            if idle.sleep(grace).is_ok() {
                self.claims.hand_back_all();
            }
        }
        // Raised also if the server has not answered: then the jobs are found when the lease is over.
        let _ = self.ended.sleep(self.settings.limit);
        self.claims.report()
    }

    fn close(&self) {
        if self.claims.begin_closing().is_some() {
            self.end_periodic();
            self.stop.cancel();
            self.claims.ask_to_stop();
            self.claims.hand_back_all();
        }
    }

    fn limit(&self) -> Duration {
        self.settings.limit
    }

    fn clock_of_tables(&self) -> Option<&punctual::Clock> {
        Some(self.executor.clock())
    }
}
