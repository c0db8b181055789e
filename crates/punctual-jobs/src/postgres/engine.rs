//! The engine: everything that knows `graphile_worker`, and nothing else does.
//!
//! The rest of the desk sees a [`Worker`] that claims jobs and gives each to [`Runs`], and a few names of SQL
//! functions. If the engine has to be replaced, this module and [`statements`](super::statements) are what is
//! written again.
//!
//! # What is set, and why
//!
//! * **Recovery of a dead worker's jobs is on.** Without it a job whose process was killed stays locked for
//!   ever. The engine's own rule does not count the attempt of a crashed worker, so a job that kills its
//!   process would be tried for ever: the hook [`JobRecovery`] makes it fail with the usual delay instead.
//! * **No signal handlers.** A library does not take the signals of a program.
//! * **The grace of the engine's own shutdown is endless**: the desk decides job by job when to hand back,
//!   and the engine only waits until every handler has returned.
//!
//! # Kicks
//!
//! A slot of the engine claims one job for each signal, and signals come from `notify`, which is sent when a
//! job is added, and from the poll. So a backlog that nobody adds to, or a sequence whose next job was free
//! when its last one ended, would advance by one job for each slot and poll. The database driver that the
//! engine is given is therefore wrapped, and its stream of notifications has another source beside the
//! server: the desk, which *kicks* when it sees a job that was late, or the end of a job of a sequence.

use std::{
    any::Any,
    fmt,
    future::Future,
    marker::PhantomData,
    path::Path,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, SystemTime},
};

use futures_core::Stream;
use graphile_worker::{
    BoxFuture, Database, DatabaseDriver, DbError, DbExecutor, DbParams, DbRow, DbTransaction,
    FailureReason, IntoTaskHandlerResult, JobComplete, JobDefinition, JobFail, JobInterrupted,
    JobPermanentlyFail, JobRecovery, JobRecoveryResult, Notification, NotificationStream,
    TaskHandler, WorkerContext, WorkerOptions, WorkerRecovered, WorkerRecoveryConfig, WorkerUtils,
    tokio_postgres::TokioPostgresDatabase,
};
use parking_lot::Mutex;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use tokio::sync::mpsc;

use super::settings::Settings;
use crate::{Job, error::Source};

/// What encrypts the connections, or does not: the same for those of the engine and those of the desk.
#[derive(Clone)]
pub(super) struct Encryption(graphile_worker_postgres_tls::Connector);

impl Encryption {
    pub(super) fn new() -> Result<Self, Source> {
        let more_roots = std::env::var_os("PGSSLROOTCERT");
        Ok(Self(graphile_worker_postgres_tls::connector(more_roots.as_deref().map(Path::new))?))
    }

    #[allow(clippy::clone_on_copy, reason = "it is only where nothing is encrypted")]
    pub(super) fn connector(&self) -> graphile_worker_postgres_tls::Connector {
        self.0.clone()
    }
}

/// A kind of job, as the engine knows it.
pub(crate) struct TaskOfEngine(JobDefinition);

/// Returns the kind of job as the engine knows it: by a type with a constant.
pub(crate) fn task_of_engine<J: Job>() -> TaskOfEngine {
    TaskOfEngine(JobDefinition::of::<Task<J>>())
}

/// A job that was claimed.
pub(super) struct Claimed {
    pub(super) id: i64,
    pub(super) name: String,
    pub(super) payload: Value,
    /// How many attempts have begun, this one included.
    pub(super) begun: u32,
    pub(super) attempts: u32,
    pub(super) key: Option<String>,
    /// The worker of the engine that has claimed it.
    pub(super) worker: String,
    pub(super) locked_at: SystemTime,
    pub(super) run_at: SystemTime,
}

/// An attempt that the engine has written down as failed.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) id: i64,
    pub(super) name: String,
    pub(super) payload: Value,
    pub(super) begun: u32,
    pub(super) is_last: bool,
    /// When the row was last changed by anything but claiming and failing.
    pub(super) updated_at: SystemTime,
    pub(super) error: String,
}

type Running<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// What runs the jobs that were claimed.
pub(super) trait Runs: Send + Sync + 'static {
    fn run(&self, job: Claimed) -> Running<Result<(), String>>;
    /// An attempt of this process was written down as failed.
    fn failed(&self, job: Failed) -> Running<()>;
    /// The last attempt of a process that has died was written down as failed.
    fn given_up(&self, job: Failed);
}

/// What the engine's contexts carry around. It has to print itself.
#[derive(Clone)]
struct Runner(Arc<dyn Runs>);

impl fmt::Debug for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Runner")
    }
}

/// The payload of a job, undecoded: what cannot be decoded has to fail with its name, in our words.
struct Task<J> {
    kind: PhantomData<fn() -> J>,
}

impl<J> Serialize for Task<J> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_unit()
    }
}

impl<'de, J> Deserialize<'de> for Task<J> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer)?;
        Ok(Self { kind: PhantomData })
    }
}

/// The engine stores the `Debug` of an error.
struct Plainly(String);

impl fmt::Debug for Plainly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<J: Job> TaskHandler for Task<J> {
    const IDENTIFIER: &'static str = J::NAME;

    async fn run(self, context: WorkerContext) -> impl IntoTaskHandlerResult {
        let Some(Runner(runner)) = context.get_ext::<Runner>().cloned() else {
            return Err(Plainly("the desk is gone".to_owned()));
        };
        let job = context.job();
        let locked_at = job.locked_at().map_or(SystemTime::UNIX_EPOCH, SystemTime::from);
        let claimed = Claimed {
            id: *job.id(),
            name: J::NAME.to_owned(),
            payload: opened(job.payload().clone()),
            begun: count(*job.attempts()),
            attempts: count(*job.max_attempts()),
            key: job.key().clone(),
            worker: context.worker_id().to_owned(),
            locked_at,
            run_at: SystemTime::from(*job.run_at()),
        };
        runner.run(claimed).await.map_err(Plainly)
    }
}

fn count(attempts: i16) -> u32 {
    u32::try_from(attempts).unwrap_or(0)
}

/// The engine joins two lists when a job with a list is replaced by another one. So a payload that is a list
/// is stored inside of an object.
const LIST: &str = "punctual:list";

pub(super) fn closed(payload: Value) -> Value {
    if payload.is_array() { serde_json::json!({ LIST: payload }) } else { payload }
}

pub(super) fn opened(payload: Value) -> Value {
    match payload {
        Value::Object(mut object) if object.len() == 1 && object.contains_key(LIST) => {
            object.remove(LIST).unwrap_or_default()
        }
        other => other,
    }
}

/// Returns an error as it was before the engine has stored its `Debug`: `TaskError("…")`.
pub(super) fn plain_error(stored: &str) -> String {
    let inner = stored.strip_prefix("TaskError(").and_then(|rest| rest.strip_suffix(')'));
    inner.and_then(|quoted| serde_json::from_str(quoted).ok()).unwrap_or_else(|| stored.to_owned())
}

/// Wakes the slots of the worker that was started last.
#[derive(Clone, Debug, Default)]
pub(super) struct Kick(Arc<Mutex<Option<mpsc::Sender<()>>>>);

impl Kick {
    pub(super) fn kick(&self) {
        if let Some(sender) = &*self.0.lock() {
            // One that is waiting already is as good as two.
            let _ = sender.try_send(());
        }
    }

    fn receiver(&self) -> mpsc::Receiver<()> {
        let (sender, receiver) = mpsc::channel(1);
        *self.0.lock() = Some(sender);
        receiver
    }
}

/// The engine's own driver, with kicks among the notifications.
#[derive(Debug)]
struct Kicked {
    inner: TokioPostgresDatabase,
    kick: Kick,
}

impl DbExecutor for Kicked {
    fn execute<'a>(
        &'a self,
        sql: &'a str,
        params: DbParams,
    ) -> BoxFuture<'a, Result<u64, DbError>> {
        DbExecutor::execute(&self.inner, sql, params)
    }

    fn fetch_all<'a>(
        &'a self,
        sql: &'a str,
        params: DbParams,
    ) -> BoxFuture<'a, Result<Vec<DbRow>, DbError>> {
        DbExecutor::fetch_all(&self.inner, sql, params)
    }
}

impl DatabaseDriver for Kicked {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn begin<'a>(&'a self) -> BoxFuture<'a, Result<DbTransaction, DbError>> {
        self.inner.begin()
    }

    fn listen<'a>(
        &'a self,
        channel: &'a str,
    ) -> BoxFuture<'a, Result<Option<NotificationStream>, DbError>> {
        Box::pin(async move {
            let server = self.inner.listen(channel).await?;
            let kicks = self.kick.receiver();
            Ok(Some(Box::pin(Merged { server, kicks }) as NotificationStream))
        })
    }
}

struct Merged {
    server: Option<NotificationStream>,
    kicks: mpsc::Receiver<()>,
}

impl Stream for Merged {
    type Item = Result<Notification, DbError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(server) = &mut self.server {
            match server.as_mut().poll_next(context) {
                // The poll goes on without the server's notifications.
                Poll::Ready(None) => self.server = None,
                Poll::Ready(item) => return Poll::Ready(item),
                Poll::Pending => {}
            }
        }
        match self.kicks.poll_recv(context) {
            Poll::Ready(Some(())) => {
                let (channel, payload) = ("jobs:insert".to_owned(), String::new());
                Poll::Ready(Some(Ok(Notification { channel, payload })))
            }
            // Another worker has taken the kicks over.
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }
}

/// The engine at work: it claims jobs until it is stopped, or fails.
pub(super) struct Worker(graphile_worker::Worker);

impl Worker {
    /// Prepares a worker. It asks the server for the ids of the kinds.
    pub(super) async fn new(
        settings: &Settings,
        tasks: Vec<TaskOfEngine>,
        runner: Arc<dyn Runs>,
        kick: &Kick,
    ) -> Result<Self, Source> {
        let database = Kicked { inner: database(settings)?, kick: kick.clone() };
        let options = WorkerOptions::default()
            .database(Database::new(database))
            .concurrency(settings.slots)
            .poll_interval(settings.poll)
            .listen_os_shutdown_signals(false)
            .shutdown_grace_period(FOR_EVER)
            .worker_recovery(recovery(settings))
            .add_extension(Runner(Arc::clone(&runner)))
            .define_jobs(tasks.into_iter().map(|task| task.0));
        let worker = with_hooks(options, runner, kick).init().await?;
        Ok(Self(worker))
    }

    /// Claims jobs and has them run, until [`stop`](Self::stop) or an error. It returns when all that it has
    /// claimed has ended.
    pub(super) async fn run(&self) -> Result<(), Source> {
        Ok(self.0.run().await?)
    }

    /// Claims no more jobs.
    pub(super) fn stop(&self) {
        self.0.request_shutdown();
    }
}

const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 86_400);

fn recovery(settings: &Settings) -> WorkerRecoveryConfig {
    WorkerRecoveryConfig::default()
        .heartbeat_interval(settings.heartbeat)
        .sweep_interval(settings.heartbeat)
        .sweep_threshold(settings.lease)
        .recovery_delay(Duration::ZERO)
}

fn with_hooks(options: WorkerOptions, runner: Arc<dyn Runs>, kick: &Kick) -> WorkerOptions {
    let (on_complete, on_fail) = (kick.clone(), kick.clone());
    let (fails, ends) = (Arc::clone(&runner), Arc::clone(&runner));
    // Jobs whose last attempt has died, until that is committed.
    let dead = Arc::new(Mutex::new(Vec::new()));
    let buried = Arc::clone(&dead);
    options
        .on(JobComplete, move |done| {
            if done.job.job_queue_id().is_some() {
                on_complete.kick();
            }
            std::future::ready(())
        })
        .on(JobFail, move |failed| {
            if failed.job.job_queue_id().is_some() {
                on_fail.kick();
            }
            fails.failed(failure(&failed.job, &failed.error, false))
        })
        .on(JobPermanentlyFail, move |failed| {
            ends.failed(failure(&failed.job, &failed.error, true))
        })
        .on(JobRecovery, |recovered| {
            std::future::ready(match recovered.reason {
                FailureReason::WorkerCrashed => JobRecoveryResult::FailWithBackoff,
                _ => JobRecoveryResult::Default,
            })
        })
        .on(JobInterrupted, move |dying| {
            let is_last = dying.job.attempts() >= dying.job.max_attempts();
            if is_last && dying.reason == FailureReason::WorkerCrashed {
                dead.lock().push(failure(&dying.job, DIED, true));
            }
            std::future::ready(())
        })
        .on(WorkerRecovered, move |_| {
            let buried = std::mem::take(&mut *buried.lock());
            buried.into_iter().for_each(|job| runner.given_up(job));
            std::future::ready(())
        })
}

/// The error of an attempt whose process has died.
const DIED: &str = "the process that ran the attempt has died, or was not heard of for too long";

fn failure(job: &graphile_worker::Job, error: &str, is_last: bool) -> Failed {
    Failed {
        id: *job.id(),
        name: job.task_identifier().clone(),
        payload: opened(job.payload().clone()),
        begun: count(*job.attempts()),
        is_last,
        updated_at: SystemTime::from(*job.updated_at()),
        error: plain_error(error),
    }
}

fn database(settings: &Settings) -> Result<TokioPostgresDatabase, Source> {
    Ok(TokioPostgresDatabase::from_config(settings.config.clone(), settings.connections)?)
}

/// Makes the tables of the engine, or brings them up to date.
pub(super) async fn migrate(settings: &Settings) -> Result<(), Source> {
    let database = Database::from(database(settings)?);
    Ok(WorkerUtils::new(database, "graphile_worker").migrate().await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_stored_in_an_object() {
        let list = serde_json::json!([1, 2]);
        assert!(closed(list.clone()).is_object());
        assert_eq!(opened(closed(list.clone())), list);
        let object = serde_json::json!({ "a": 1 });
        assert_eq!(opened(closed(object.clone())), object);
    }

    #[test]
    fn stored_errors_are_read_as_they_were() {
        assert_eq!(plain_error("TaskError(\"not \\\"yet\\\"\")"), "not \"yet\"");
        assert_eq!(plain_error("WorkerCrashed"), "WorkerCrashed");
    }
}
