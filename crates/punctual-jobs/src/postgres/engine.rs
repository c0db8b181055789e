//! The engine: a queue on PostgreSQL, how it is opened, what it asks, and how it ends.
//!
//! The engine lives as long as its thread. The thread ends when the queue is closed and nothing of it runs;
//! everything that was asked for and has no answer then is answered with
//! [`ShutDown`](QueueError::ShutDown), because its promise is dropped with the runtime.

use std::{
    any::Any,
    future::Future,
    sync::{Arc, Weak, mpsc},
    thread,
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
use punctual::{CancellationToken, Handle, ScheduledThreadPoolExecutor};
use tokio::{runtime, sync::Notify, task::JoinHandle};

use super::{
    claims::Claims,
    coming::{Coming, wake_on},
    connection::{AskError, Connection},
    dead::Watch,
    heartbeat::beat_on,
    listening::listen_on,
    past::prune_on,
    postgres_queue::PostgresQueue,
    schedules::{self, Declared},
    schema::Schema,
    settings::{QueueEvent, Settings},
    tables,
    telling::Telling,
    ticks::new_planner,
    unheard::Unheard,
    worker::work,
};
use crate::{
    Cancellation, HistoryFilter, JobDiscard, JobFilter, JobHandle, JobId, JobQueue, JobRemoval,
    JobResult, JobRetry, JobState, JobStatus, KindCounts, OpenError, PastRun, QueueError,
    QueueFuture, Rescheduling, ShutdownReport, When,
    job::until,
    job::{
        jobs::{Definitions, Opening, Periodic},
        with_sources,
    },
    queue::{
        batch::Batch,
        engine::{Engine, NewJob},
    },
    server::{dial::Seam, pooler},
};

pub(super) struct PostgresEngine {
    pub(super) me: Weak<PostgresEngine>,
    pub(super) executor: Handle,
    pub(super) definitions: Arc<Definitions>,
    pub(super) settings: Settings,
    /// For the requests of callers.
    pub(super) verbs: Connection,
    /// For lists, counts and the history, which may read much, and for many jobs at once; made for the first of them.
    pub(super) looks: Connection,
    /// For claiming jobs, and for writing down how runs have ended.
    pub(super) work: Connection,
    /// For the heartbeat and for fencing tokens.
    pub(super) pulse: Connection,
    /// For the ticks, and the rows of schedules.
    pub(super) ticking: Connection,
    /// The name of this queue in the tables.
    pub(super) worker: String,
    pub(super) runtime: runtime::Handle,
    pub(super) claims: Claims,
    /// Which other workers live.
    pub(super) watch: Mutex<Watch>,
    pub(super) telling: Telling,
    unheard: Unheard,
    /// Wakes the worker to look for jobs.
    pub(super) wake: Notify,
    /// When a job is due that a notification has told of.
    pub(super) coming: Coming,
    /// Raised when the queue is closed.
    pub(super) stop: CancellationToken,
    /// Raised when the thread is about to end.
    pub(super) ended: CancellationToken,
    /// Notes the ticks of schedules, if there are any.
    planner: Mutex<Option<ScheduledThreadPoolExecutor>>,
    /// The tasks that take the ticks of each.
    pub(super) schedules: Mutex<Vec<JoinHandle<()>>>,
    /// The schedules that the program has declared as rows.
    pub(super) declared: Vec<Declared>,
    /// Has the ticker look at the rows of schedules.
    pub(super) schedules_changed: Notify,
}

/// Opens a queue.
pub(super) fn open(
    executor: Handle,
    settings: Settings,
    opening: Opening,
) -> Result<PostgresQueue, OpenError> {
    let definitions = opening.definitions;
    let declared =
        Declared::of(opening.declared, |kind, default| definitions.max_attempts(kind, default))?;
    let seam = settings.seam.clone();
    let engine_on =
        |runtime| PostgresEngine::new(executor, settings, &definitions, declared, runtime);
    let (engine, planner) = match seam {
        Some(Seam { runtime, planner, .. }) => {
            let engine = engine_on(runtime.clone());
            runtime.spawn(begin_in_a_simulation(Arc::clone(&engine)));
            (engine, Some(planner))
        }
        None => {
            let runtime = new_runtime()?;
            let engine = engine_on(runtime.handle().clone());
            begin_on_a_thread(Arc::clone(&engine), runtime)?;
            (engine, None)
        }
    };
    // From here on its drop closes it.
    let queue = JobQueue::owning(Arc::clone(&engine) as _, definitions);
    engine.begin_schedules(opening.periodic, planner)?;
    Ok(PostgresQueue { queue, engine })
}

fn begin_on_a_thread(
    engine: Arc<PostgresEngine>,
    runtime: runtime::Runtime,
) -> Result<(), OpenError> {
    let (tell, told) = mpsc::channel();
    let body = move || {
        runtime.block_on(async {
            match engine.begin().await {
                Ok(()) => {
                    let _ = tell.send(Ok(()));
                    engine.run().await;
                }
                Err(error) => drop(tell.send(Err(error))),
            }
        });
        engine.ended.cancel();
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
async fn begin_in_a_simulation(engine: Arc<PostgresEngine>) {
    while engine.begin_to_ask().await.is_err() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    engine.run().await;
}

/// Runs a future on a runtime of its own.
pub(super) fn block_on<F: Future>(future: F) -> Result<F::Output, OpenError> {
    Ok(new_runtime()?.block_on(future))
}

fn new_runtime() -> Result<runtime::Runtime, OpenError> {
    let mut builder = runtime::Builder::new_current_thread();
    builder.enable_io().enable_time().build().map_err(OpenError::Thread)
}

/// Returns a name that no other queue has: of all machines' processes with this number, one began now, and of those
/// of one process one has this count. Before the space is what the machine calls itself.
fn new_name(machine: &str) -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    // A hash map's keys come from the system's random numbers.
    let random = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), count);
    format!("{machine} {}-{}-{count}-{random:016x}", std::process::id(), since.as_nanos())
}

impl PostgresEngine {
    /// Makes an engine that does nothing yet, whose tasks are to be those of this runtime.
    pub(super) fn new(
        executor: Handle,
        settings: Settings,
        definitions: &Arc<Definitions>,
        declared: Vec<Declared>,
        runtime: runtime::Handle,
    ) -> Arc<Self> {
        let silence = settings.lease / 2;
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            executor,
            definitions: Arc::clone(definitions),
            verbs: Connection::for_verbs(&settings.address, settings.request_timeout),
            looks: settings.connection(settings.request_timeout),
            work: Connection::for_work(&settings.address, silence),
            pulse: settings.connection(silence),
            ticking: settings.connection(silence),
            worker: new_name(&settings.machine),
            settings,
            runtime,
            claims: Claims::default(),
            watch: Mutex::default(),
            telling: Telling::default(),
            unheard: Unheard::default(),
            wake: Notify::new(),
            coming: Coming::default(),
            stop: CancellationToken::new(),
            ended: CancellationToken::new(),
            planner: Mutex::default(),
            schedules: Mutex::default(),
            declared,
            schedules_changed: Notify::new(),
        })
    }

    /// Does what has to be done before the queue is open.
    async fn begin(&self) -> Result<(), OpenError> {
        let request_timeout = self.settings.request_timeout;
        let begin = async {
            let address = &self.settings.address;
            let shared = pooler::shares_backends(address.config(), address.connector()).await;
            if shared.map_err(|error| OpenError::Server(error.into()))? {
                let what = "two connections that are open at the same time have one backend";
                return Err(OpenError::TransactionPooling(what.into()));
            }
            tables::make(address).await?;
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
        if self.handled_names().is_empty() {
            return Ok(());
        }
        let _place_of_the_listener = self.settings.address.connect().await?;
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
        if !(self.declared.is_empty() && self.handled_names().is_empty()) {
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
        if self.handled_names().is_empty() {
            return self.stop.cancelled().await;
        }
        let beats = tokio::spawn(beat_on(Arc::clone(self)));
        let listens = tokio::spawn(listen_on(Arc::clone(self)));
        let wakes = tokio::spawn(wake_on(Arc::clone(self)));
        let prunes = tokio::spawn(prune_on(Arc::clone(self)));
        work(self).await;
        beats.abort();
        listens.abort();
        wakes.abort();
        prunes.abort();
        self.finish_telling().await;
    }

    pub(super) fn handled_names(&self) -> Vec<&'static str> {
        self.definitions.handled_names()
    }

    /// Runs a future on the queue's thread, and returns its answer.
    pub(super) fn answer<T, F>(&self, question: F) -> QueueFuture<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, QueueError>> + Send + 'static,
    {
        let (promise, reply) = QueueFuture::promised();
        self.runtime.spawn(async move { promise.keep(question.await) });
        reply
    }

    /// The same, if the queue is there to ask.
    fn ask_me<T, F>(&self, question: impl FnOnce(Arc<Self>) -> F) -> QueueFuture<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, AskError>> + Send + 'static,
    {
        let Some(me) = self.me.upgrade() else {
            return QueueFuture::ready(Err(QueueError::ShutDown));
        };
        let answer = question(me);
        self.answer(
            async move { answer.await.map_err(|error| QueueError::Server(error.into_source())) },
        )
    }

    /// Tells the user of an event. One that an executor without room refuses comes again, or is told by what follows.
    pub(super) fn report(&self, event: QueueEvent) {
        let _ = self.tell(event);
    }

    /// Tells the user of a statement without an answer, or one that the server has refused.
    pub(super) fn report_failure(&self, error: &AskError) {
        let is_refused = error.is_of_the_rows();
        let error = with_sources(error);
        self.report(if is_refused {
            QueueEvent::ServerRefused { error }
        } else {
            QueueEvent::ServerAway { error }
        });
    }

    /// Tells the program of an event, on a thread of the executor, if it listens. Returns `false` if the executor takes no task.
    pub(super) fn tell(&self, event: QueueEvent) -> bool {
        let Some(closure) = self.settings.on_event.clone() else {
            self.unheard.note(&event);
            return true;
        };
        self.executor.task().abort_if_rejected().execute(move || closure(&event)).is_ok()
    }

    /// Returns how long it is until a moment.
    pub(super) fn delay_of(&self, when: When) -> Duration {
        match when {
            When::After(delay) => delay,
            When::At(instant) => instant.saturating_duration_since(self.executor.clock().now()),
            When::Wall(time) => until(time, self.executor.clock().wall_time()),
        }
    }

    /// Wakes the worker when a job of this machine is due: the poll might find it much later.
    pub(super) fn wake_when_due(&self, when: When) {
        let delay = self.delay_of(when);
        if let Some(me) = self.me.upgrade().filter(|_| delay < LONGEST_TIMER) {
            self.runtime.spawn(async move {
                tokio::time::sleep(delay).await;
                me.wake.notify_one();
            });
        }
    }

    fn end_planner(&self) {
        let planner = self.planner.lock().take();
        // Drops triggers, which are the user's.
        drop(planner);
    }
}

/// The time before a job is due from which on a timer for it is kept.
const LONGEST_TIMER: Duration = Duration::from_secs(300);

impl Engine for PostgresEngine {
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

    fn reschedule(&self, key: &str, when: When) -> QueueFuture<Rescheduling> {
        let key = key.to_owned();
        self.ask_me(|me| async move { me.move_job(&key, when).await })
    }

    fn cancel(&self, key: &str) -> QueueFuture<Cancellation> {
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

    fn retry(&self, id: JobId) -> QueueFuture<JobRetry> {
        self.ask_me(move |me| async move { me.retry_job(id).await })
    }

    fn discard(&self, id: JobId) -> QueueFuture<JobDiscard> {
        self.ask_me(move |me| async move { me.discard_job(id).await })
    }

    fn remove(&self, id: JobId) -> QueueFuture<JobRemoval> {
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

    fn result(&self, id: JobId) -> QueueFuture<JobResult> {
        self.ask_me(move |me| async move { me.result_of(id).await })
    }

    fn await_result(&self, id: JobId) -> QueueFuture<JobResult> {
        self.await_result_of(id)
    }

    fn shutdown(&self, patience: Duration, grace: Duration) -> ShutdownReport {
        let Some(idle) = self.claims.begin_closing() else { return ShutdownReport::default() };
        self.end_planner();
        self.stop.cancel();
        if idle.sleep(patience).is_ok() {
            self.claims.ask_to_stop();
            if idle.sleep(grace).is_ok() {
                self.claims.release_all();
            }
        }
        // Raised also if the server has not answered: then the jobs are found when the lease is over.
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

    fn tables(&self) -> Option<(punctual::Clock, Schema)> {
        Some((self.executor.clock().clone(), self.settings.address.schema.clone()))
    }
}
