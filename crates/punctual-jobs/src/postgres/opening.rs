//! How a queue on PostgreSQL is opened, which loops it runs, what callers may ask, and how it ends.
//!
//! The loops know the [`machine`](super::machine), which is what they share, and nothing of each other beyond that. This file knows the loops.

use std::{
    any::Any,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use punctual::{Grace, Handle};
use tokio::{runtime, task::JoinSet};

use super::{
    coming::wake_on,
    connection::{Address, AskError},
    heartbeat::beat_on,
    listening::listen_on,
    machine::Machine,
    past::prune_on,
    postgres_queue::PostgresQueue,
    schedules::{self, Definition},
    settings::{Postgres, Settings},
    statements::GREETING,
    tables::TABLES,
    ticks::new_planner,
    worker::work,
};
use crate::{
    HistoryFilter, JobChange, JobFilter, JobHandle, JobId, JobQueue, JobState, JobStatus,
    KindCounts, OpenError, OpenQueue, PastRun, QueueError, QueueFuture, ShutdownReport, When,
    job::jobs::{Opening, Periodic, sealed::Sealed},
    queue::{
        batch::Batch,
        engine::{Engine, NewJob},
    },
    server::{dial::Seam, pooler},
};

impl Sealed for Postgres {}

impl OpenQueue for Postgres {
    type Queue = PostgresQueue;

    fn open_queue(self, opening: Opening) -> Result<PostgresQueue, OpenError> {
        open(self.checked()?, opening)
    }
}

impl Postgres {
    /// Makes the tables, unless they are there, and opens nothing. Blocks; has a thread and connections
    /// for the length of the call.
    ///
    /// # Errors
    ///
    /// [`OpenError`], if the server cannot be reached, or the role must not do that, or the tables are of a version that this program does not know.
    pub fn migrate(self) -> Result<(), OpenError> {
        let (_, address, _) = self.checked()?;
        new_runtime()?.block_on(make_tables(&address))
    }
}

async fn make_tables(address: &Address) -> Result<(), OpenError> {
    let server = |error: AskError| OpenError::Server(error.into_source());
    let (client, driver) = address.server.connect().await.map_err(server)?;
    // It ends with the client.
    tokio::spawn(driver);
    let made = async {
        client.batch_execute(GREETING).await?;
        TABLES.make(&client, &address.schema).await
    };
    match made.await.map_err(|error| server(AskError::Server(error)))? {
        Some(found) if found < TABLES.first => Err(OpenError::OlderTables { found }),
        Some(found) => Err(OpenError::NewerTables { found, known: TABLES.newest() }),
        None => Ok(()),
    }
}

/// Opens a queue.
fn open(
    (executor, address, settings): (Handle, Address, Settings),
    opening: Opening,
) -> Result<PostgresQueue, OpenError> {
    let definitions = opening.definitions;
    let declared = opening.declared.into_iter().map(|schedule| {
        let definition = Definition::new(schedule, &definitions).map(Definition::declared);
        definition.map_err(|error| OpenError::Refused(Box::new(error)))
    });
    let declared = declared.collect::<Result<_, _>>()?;
    let seam = settings.seam.clone();
    let machine_on =
        |runtime| Machine::new(executor, (address, settings), &definitions, declared, runtime);
    let (machine, planner) = match seam {
        Some(Seam { runtime, planner, .. }) => {
            let machine = machine_on(runtime.clone());
            runtime.spawn(begin_in_a_simulation(Arc::clone(&machine)));
            (machine, Some(planner))
        }
        None => {
            let runtime = new_runtime()?;
            let machine = machine_on(runtime.handle().clone());
            begin_on_a_thread(Arc::clone(&machine), runtime)?;
            (machine, None)
        }
    };
    // From here on its drop closes it.
    let queue = JobQueue::owning(Arc::clone(&machine) as _, definitions);
    machine.begin_schedules(opening.periodic, planner)?;
    Ok(PostgresQueue { queue, machine })
}

fn begin_on_a_thread(machine: Arc<Machine>, runtime: runtime::Runtime) -> Result<(), OpenError> {
    let (tell, told) = mpsc::channel();
    let body = move || {
        runtime.block_on(async {
            match machine.begin().await {
                Ok(()) => {
                    let _ = tell.send(Ok(()));
                    machine.run().await;
                }
                Err(error) => drop(tell.send(Err(error))),
            }
        });
        machine.ended.cancel();
        // The requests that are not done: their promises are dropped, and so kept.
        drop(runtime);
    };
    thread::Builder::new()
        .name("punctual-jobs".to_owned())
        .spawn(body)
        .map_err(OpenError::Thread)?;
    told.recv().unwrap_or_else(|_| Err(OpenError::Server("the queue's thread has ended".into())))
}

/// A real queue would not open without the server, and its process would be started again.
async fn begin_in_a_simulation(machine: Arc<Machine>) {
    while machine.begin_to_ask().await.is_err() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    machine.run().await;
}

fn new_runtime() -> Result<runtime::Runtime, OpenError> {
    let mut builder = runtime::Builder::new_current_thread();
    builder.enable_io().enable_time().build().map_err(OpenError::Thread)
}

impl Engine for Machine {
    fn enqueue(&self, new_job: NewJob) -> QueueFuture<JobHandle> {
        if self.claims.is_closing() {
            return QueueFuture::ready(Err(QueueError::ShutDown));
        }
        self.ask_me(|me| async move { me.enqueue(new_job).await })
    }

    fn enqueue_all(&self, batch: Batch) -> QueueFuture<Vec<JobHandle>> {
        if self.claims.is_closing() {
            return QueueFuture::ready(Err(QueueError::ShutDown));
        }
        self.ask_me(|me| async move { me.enqueue_batch(batch).await })
    }

    fn reschedule(&self, key: &str, when: When) -> QueueFuture<JobChange> {
        let key = key.to_owned();
        self.ask_me(|me| async move { me.move_job(&key, when).await })
    }

    fn cancel(&self, key: &str) -> QueueFuture<JobChange> {
        let key = key.to_owned();
        self.ask_me(|me| async move { me.cancel_job(&key).await })
    }

    fn state(&self, id: JobId) -> QueueFuture<JobState> {
        self.ask_me(move |me| async move { me.state_of(id).await })
    }

    fn list(&self, filter: JobFilter) -> QueueFuture<Vec<JobStatus>> {
        self.ask_me(move |me| async move { me.jobs_of(filter).await })
    }

    fn counts(&self) -> QueueFuture<Vec<KindCounts>> {
        self.ask_me(|me| async move { me.counts_by_kind().await })
    }

    fn history(&self, filter: HistoryFilter) -> QueueFuture<Vec<PastRun>> {
        self.ask_me(move |me| async move { me.past_runs(filter).await })
    }

    fn retry(&self, id: JobId) -> QueueFuture<JobChange> {
        self.ask_me(move |me| async move { me.retry_job(id).await })
    }

    fn discard(&self, id: JobId) -> QueueFuture<JobChange> {
        self.ask_me(move |me| async move { me.discard_job(id).await })
    }

    fn remove(&self, id: JobId) -> QueueFuture<JobChange> {
        self.ask_me(move |me| async move { me.remove_job(id).await })
    }

    fn pause_kind(&self, kind: &str, until: Option<When>) -> QueueFuture<()> {
        let kind = kind.to_owned();
        self.ask_me(move |me| async move { me.pause(&kind, until).await })
    }

    fn resume_kind(&self, kind: &str) -> QueueFuture<bool> {
        let kind = kind.to_owned();
        self.ask_me(|me| async move { me.resume(&kind).await })
    }

    fn await_result(&self, id: JobId) -> QueueFuture<JobState> {
        self.await_result_of(id)
    }

    fn shutdown(&self, grace: Grace) -> ShutdownReport {
        let Some(idle) = self.claims.begin_closing() else { return ShutdownReport::default() };
        self.end_planner();
        self.stop.cancel();
        if idle.sleep(grace.patience).is_ok() {
            self.claims.ask_to_stop();
            if idle.sleep(grace.then).is_ok() {
                self.claims.release_all();
            }
        }
        // Cancelled also if the server has not answered: then the jobs are found when the lease is over.
        let _ = self.ended.sleep(self.settings.request_timeout);
        self.claims.report()
    }

    fn close(&self) {
        if self.claims.begin_closing().is_some() {
            self.end_planner();
            self.stop.cancel();
            self.claims.ask_to_stop();
            self.claims.release_all();
        }
    }

    fn request_timeout(&self) -> Duration {
        self.settings.request_timeout
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

impl Machine {
    /// Does what has to be done before the queue is open.
    async fn begin(&self) -> Result<(), OpenError> {
        let request_timeout = self.settings.request_timeout;
        let begin = async {
            let address = &self.address;
            #[allow(clippy::clone_on_copy, reason = "it is only where nothing is encrypted")]
            let connector = address.connector.clone();
            let shared = pooler::shares_backends(&address.server.config, connector).await;
            if shared.map_err(|error| OpenError::Server(error.into()))? {
                let what = "two connections that are open at the same time have one backend";
                return Err(OpenError::TransactionPooling(what.into()));
            }
            make_tables(address).await?;
            self.begin_to_ask().await.map_err(|error| OpenError::Server(error.into_source()))
        };
        let no_answer =
            |_| OpenError::Server(format!("no answer within {request_timeout:?}").into());
        tokio::time::timeout(request_timeout, begin).await.map_err(no_answer)?
    }

    /// Makes the connections, so that a server or a role that allows too few of them is an error now, and not a queue without
    /// runs later.
    async fn begin_to_ask(&self) -> Result<(), AskError> {
        self.declare().await?;
        self.verbs.ask("select", &[]).await?;
        if self.definitions.handled_names().is_empty() {
            return Ok(());
        }
        let _place_of_the_listener = self.address.server.connect().await?;
        for connection in [&self.work, &self.pulse, &self.ticking] {
            connection.ask("select", &[]).await?;
        }
        self.beat().await
    }

    fn begin_schedules(
        &self,
        periodic: Vec<Periodic>,
        planner: Option<Handle>,
    ) -> Result<(), OpenError> {
        if periodic.is_empty() {
            return Ok(());
        }
        let planner = match planner {
            Some(planner) => planner,
            None => {
                let planner = new_planner(self.executor.clock())?;
                let handle = planner.handle();
                *self.planner.lock() = Some(planner);
                handle
            }
        };
        periodic.into_iter().try_for_each(|periodic| self.begin_periodic(&planner, periodic))
    }

    pub(super) async fn run(self: &Arc<Self>) {
        if !(self.declared.is_empty() && self.definitions.handled_names().is_empty()) {
            let ticks = tokio::spawn(schedules::tick_on(Arc::clone(self)));
            self.schedules.lock().push(ticks);
        }
        self.work_and_beat().await;
        let schedules = std::mem::take(&mut *self.schedules.lock());
        for schedule in schedules {
            // It does not panic, and would end with the runtime.
            let _ = schedule.await;
        }
        self.leave().await;
    }

    /// Works until the queue is closed. A queue that handles nothing has no worker: it could claim nothing, and if it
    /// looked for dead ones it would learn of jobs that were discarded, and might have no callback to tell.
    async fn work_and_beat(self: &Arc<Self>) {
        if self.definitions.handled_names().is_empty() {
            return self.stop.cancelled().await;
        }
        let mut loops = JoinSet::new();
        loops.spawn(beat_on(Arc::clone(self)));
        loops.spawn(listen_on(Arc::clone(self)));
        loops.spawn(wake_on(Arc::clone(self)));
        loops.spawn(prune_on(Arc::clone(self)));
        work(self).await;
        loops.abort_all();
        self.finish_telling().await;
    }

    fn end_planner(&self) {
        let planner = self.planner.lock().take();
        // Drops triggers, which are the user's.
        drop(planner);
    }
}
