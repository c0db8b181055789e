//! The in-memory queue: jobs in this process, on punctual's own tasks.
//!
//! It has no thread and stores nothing: a restart loses what waits. It behaves as the queue on PostgreSQL
//! does, so that a program can begin with it, and so that the tests of a program need no server. On a
//! [`ManualClock`](punctual::ManualClock) everything it does happens at exact moments and in no real time.
//!
//! # How it works
//!
//! Each job is an entry on the [board]. Each attempt is a task of the executor, which is due when
//! the job is, and which carries the number of the job and a *generation*. Moving or replacing a job gives
//! its entry another generation and another task, and removing it takes the entry away. So a task that is
//! too late finds an entry with another generation, or none, and does nothing: whether the old task was
//! caught in the queue does not matter for correctness. It is cancelled all the same, so that its memory is
//! free at once.
//!
//! The task is made with a trigger that answers once. That is how a task of punctual is given a moment of
//! either clock, and a time limit that counts from the start of its run.
//!
//! # Locks
//!
//! One lock protects the board. Under it entries change, and nothing else happens: handlers and callbacks
//! are called, tasks are submitted and cancelled, and tokens are cancelled after it was released. A submission
//! may run the task on the submitter's thread, if the executor has that policy, and so may need the lock
//! itself. That is why an entry is on the board before its task exists: the task's handle is put into the
//! entry afterwards, and if the entry has another generation by then the task is cancelled.

mod attempt;
mod board;
mod entry;
mod looking;
mod ordering;
mod past;
mod pauses;
mod ready;
mod results;
mod slots;
mod state;
mod stopping;
mod timers;
mod tokens;
mod waiting;

use std::{
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use parking_lot::Mutex;
use punctual::{Grace, Handle};

use self::{board::Board, state::State};
use crate::{
    HistoryFilter, JobChange, JobFilter, JobHandle, JobId, JobQueue, JobState, JobStatus,
    KindCounts, OpenError, OpenQueue, PastRun, QueueFuture, ShutdownReport, When,
    job::jobs::{Opening, Periodic, sealed::Sealed},
    queue::{
        batch::Batch,
        engine::{Engine, NewJob},
    },
};

/// Opens a queue in this process: `jobs.open(InMemory::on(&executor))`. See [`Jobs`](crate::Jobs).
///
/// If the executor has a bound and refuses the task of a later attempt, or drops a waiting one to make room for another,
/// the job is [discarded](crate::Jobs::on_discarded). On PostgreSQL such a job waits, and the attempt does not count.
#[derive(Clone, Debug)]
#[must_use = "nothing is opened until it is given to `Jobs::open`"]
pub struct InMemory {
    executor: Handle,
    history: Option<Duration>,
}

impl InMemory {
    /// Runs the handlers on this executor, and takes the time from its clock.
    pub fn on(executor: &Handle) -> Self {
        Self { executor: executor.clone(), history: None }
    }

    /// Has the queue keep a [history](crate::JobQueue::history), and sets for how long runs are kept after they have ended, by
    /// the executor's clock; without this call it keeps none. It has ten thousand runs at most.
    pub fn history(mut self, keep: Duration) -> Self {
        self.history = Some(keep);
        self
    }
}

impl Sealed for InMemory {}

impl OpenQueue for InMemory {
    type Queue = JobQueue;

    fn open_queue(self, opening: Opening) -> Result<JobQueue, OpenError> {
        #[cfg(feature = "postgres")]
        if !opening.declared.is_empty() {
            let what = "an in-memory queue has no schedules as rows: use Jobs::every in place of Jobs::schedule";
            return Err(OpenError::Setting(what));
        }
        let definitions = opening.definitions;
        let has_windows = definitions.kinds.values().any(|kind| kind.limits.has_window());
        let clock = self.executor.clock().clone();
        let board = Arc::new_cyclic(|me| Board {
            me: me.clone(),
            has_windows,
            executor: self.executor,
            definitions: Arc::clone(&definitions),
            state: Mutex::new(State::new(self.history, clock)),
            fences: AtomicU64::new(0),
            periodic: Mutex::new(Vec::new()),
        });
        for periodic in opening.periodic {
            if let Err(error) = board.begin_periodic(periodic) {
                board.close();
                return Err(error);
            }
        }
        Ok(JobQueue::owning(board, definitions))
    }
}

impl Board {
    fn begin_periodic(&self, periodic: Periodic) -> Result<(), OpenError> {
        let Periodic { job, trigger, .. } = periodic;
        let name = job.name;
        if self.definitions.handled(name).is_none() {
            let what = "add a handler with Jobs::on";
            let error =
                format!("nothing in this process handles the periodic job {name:?}: {what}");
            return Err(OpenError::Definition(error));
        }
        let mut enqueued = Vec::new();
        // Weak: the board has the handle of this task, and would keep itself alive.
        let me = self.me.clone();
        let body = move || {
            if let Some(board) = me.upgrade() {
                // All causes of a refusal were checked when the queue was opened, or else it is shut down.
                let _ = board.tick(&job, &mut enqueued);
            }
        };
        let task = self.executor.task().name(name).repeat(trigger, body);
        let task = task.map_err(|error| OpenError::Refused(error.to_string().into()))?;
        self.periodic.lock().push(task.task_handle());
        Ok(())
    }
}

impl Engine for Board {
    fn enqueue(&self, new_job: NewJob) -> QueueFuture<JobHandle> {
        QueueFuture::ready(self.accept(new_job))
    }

    fn enqueue_all(&self, mut batch: Batch) -> QueueFuture<Vec<JobHandle>> {
        let stored = self.accept_all(std::mem::take(&mut batch.jobs));
        QueueFuture::ready(stored.map(|stored| batch.handles(&stored)))
    }

    fn reschedule(&self, key: &str, when: When) -> QueueFuture<JobChange> {
        QueueFuture::ready(self.move_to(key, when))
    }

    fn cancel(&self, key: &str) -> QueueFuture<JobChange> {
        QueueFuture::ready(self.cancel_by_key(key))
    }

    fn state(&self, id: JobId) -> QueueFuture<JobState> {
        QueueFuture::ready(self.state.lock().state_of(id.0))
    }

    fn list(&self, filter: JobFilter) -> QueueFuture<Vec<JobStatus>> {
        QueueFuture::ready(self.jobs_of(&filter))
    }

    fn counts(&self) -> QueueFuture<Vec<KindCounts>> {
        QueueFuture::ready(self.counts_by_kind())
    }

    fn history(&self, filter: HistoryFilter) -> QueueFuture<Vec<PastRun>> {
        QueueFuture::ready(self.past_runs(&filter))
    }

    fn retry(&self, id: JobId) -> QueueFuture<JobChange> {
        QueueFuture::ready(self.retry_job(id))
    }

    fn discard(&self, id: JobId) -> QueueFuture<JobChange> {
        QueueFuture::ready(self.discard_job(id))
    }

    fn remove(&self, id: JobId) -> QueueFuture<JobChange> {
        QueueFuture::ready(self.remove_job(id))
    }

    fn pause_kind(&self, kind: &str, until: Option<When>) -> QueueFuture<()> {
        QueueFuture::ready(self.pause(kind, until))
    }

    fn resume_kind(&self, kind: &str) -> QueueFuture<bool> {
        QueueFuture::ready(self.resume(kind))
    }

    fn await_result(&self, id: JobId) -> QueueFuture<JobState> {
        self.await_result_of(id)
    }

    fn shutdown(&self, grace: Grace) -> ShutdownReport {
        self.shut_down(grace)
    }

    fn close(&self) {
        drop(self.begin_closing());
    }

    #[cfg(feature = "postgres")]
    fn into_any(self: Arc<Self>) -> Arc<dyn std::any::Any + Send + Sync> {
        self
    }

    fn request_timeout(&self) -> Duration {
        // No verb of this engine waits for anything.
        Duration::MAX
    }
}
