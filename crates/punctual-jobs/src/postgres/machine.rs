//! This machine, as the loops of its queue on PostgreSQL share it: its settings, connections and claims, and how they tell the program something.
//!
//! It lives as long as its thread. The thread ends when the queue is closed and nothing of it runs;
//! everything that was asked for and has no answer then is answered with
//! [`ShutDown`](QueueError::ShutDown), because its promise is dropped with the runtime. [`opening`](super::opening) composes it.

use std::{
    future::Future,
    sync::{Arc, Weak},
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
use punctual::{CancellationToken, Handle, ScheduledThreadPoolExecutor};
use tokio::{runtime, sync::Notify, task::JoinHandle};

use super::{
    claims::Claims,
    coming::Coming,
    connection::{Address, AskError, Connection},
    dead::Watch,
    refused::Refused,
    schedules::Definition,
    settings::{QueueEvent, Settings},
    statements::{GREETING, GREETING_OF_VERBS, GREETING_OF_WORK, STORE},
    told::Telling,
    unheard::Unheard,
};
use crate::{
    QueueError, QueueFuture, When,
    job::until,
    job::{jobs::Definitions, with_sources},
};

pub(super) struct Machine {
    pub(super) me: Weak<Machine>,
    pub(super) executor: Handle,
    pub(super) definitions: Arc<Definitions>,
    pub(super) address: Address,
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
    /// The rows that the statements leave out.
    pub(super) refused: Mutex<Refused>,
    /// Wakes the worker to look for jobs.
    pub(super) wake: Notify,
    /// When a job is due that a notification has told of.
    pub(super) coming: Coming,
    /// Cancelled when the queue is closed.
    pub(super) stop: CancellationToken,
    /// Cancelled when the thread is about to end.
    pub(super) ended: CancellationToken,
    /// Notes the ticks of schedules, if there are any.
    pub(super) planner: Mutex<Option<ScheduledThreadPoolExecutor>>,
    /// The tasks that take the ticks of each.
    pub(super) schedules: Mutex<Vec<JoinHandle<()>>>,
    /// The schedules that the program has declared as rows.
    pub(super) declared: Vec<Definition>,
    /// Has the ticker look at the rows of schedules.
    pub(super) schedules_changed: Notify,
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

impl Machine {
    /// Makes a machine that does nothing yet, whose tasks are to be those of this runtime.
    pub(super) fn new(
        executor: Handle,
        (address, settings): (Address, Settings),
        definitions: &Arc<Definitions>,
        declared: Vec<Definition>,
        runtime: runtime::Handle,
    ) -> Arc<Self> {
        let silence = settings.lease / 2;
        let mut urgent = address.clone();
        let commit_timeout = &mut urgent.schema.commit_timeout;
        *commit_timeout = (*commit_timeout).min(settings.lease / 8);
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            executor,
            definitions: Arc::clone(definitions),
            verbs: Connection::new(&address, settings.request_timeout, GREETING_OF_VERBS)
                .preparing(STORE),
            looks: Connection::new(&address, settings.request_timeout, GREETING),
            work: Connection::new(&urgent, silence, GREETING_OF_WORK),
            pulse: Connection::new(&urgent, silence, GREETING),
            ticking: Connection::new(&address, silence, GREETING),
            worker: new_name(&settings.machine),
            address,
            settings,
            runtime,
            claims: Claims::default(),
            watch: Mutex::default(),
            telling: Telling::default(),
            unheard: Unheard::default(),
            refused: Mutex::default(),
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
    pub(super) fn ask_me<T, F>(&self, question: impl FnOnce(Arc<Self>) -> F) -> QueueFuture<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, AskError>> + Send + 'static,
    {
        let Some(me) = self.me.upgrade() else {
            return QueueFuture::ready(Err(QueueError::ShutDown));
        };
        let answer = question(me);
        self.answer(async move { Ok(answer.await?) })
    }

    /// Tells the user of an event. One that an executor without room refuses comes again, or is told by what follows.
    pub(super) fn report(&self, event: QueueEvent) {
        let _ = self.tell(event);
    }

    /// Tells the user of a statement without an answer, or one that the server has refused.
    pub(super) fn report_failure(&self, error: &AskError) {
        let is_refused = error.is_refusal();
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
}

/// The time before a job is due from which on a timer for it is kept.
const LONGEST_TIMER: Duration = Duration::from_secs(300);
