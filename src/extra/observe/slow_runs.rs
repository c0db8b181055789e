//! Names each run that takes as long as its set time or longer, once, while it goes on.
//!
//! It is code around each run, as a decorator adds it. When a run begins it has the [watcher](Watcher) call at the moment at
//! which its time is over, and when the run ends it takes that back and compares the clock. So the watcher names the run,
//! or, if its thread is late or there is none, the worker does; the first of the two raises `is_told`.

#![allow(clippy::disallowed_types, reason = "this is a user of the crate, and locks as users do")]

use std::{
    fmt,
    panic::Location,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use super::Watcher;
use crate::{
    Clock, Done, Handle, ScheduledFuture, Submission, TaskContext, TaskId, TaskRun, current_task,
};

/// Returns the code around the runs of a task that has each run which takes `limit` or longer told. The `watcher` is that
/// of the task's executor, if it has one.
pub(crate) fn watch_runs<F: Fn(&SlowRun) + Send + Sync + 'static>(
    task: &Submission<'_>,
    limit: Duration,
    clock: &Clock,
    watcher: Option<&Watcher>,
    tell: F,
) -> impl FnMut(TaskRun<'_>) -> Done<'_> + Send + 'static + use<F> {
    let (tell, scheduled_at) = (Box::new(tell), task.scheduled_at());
    let (clock, watcher) = (clock.clone(), watcher.and_then(Watcher::executor));
    let watched = Arc::new(WatchedTask { limit, scheduled_at, clock, watcher, tell });
    move |run| {
        let _watch = current_task().map(|context| Watch::begin(&watched, &context));
        run.run()
    }
}

/// The facts that are the same for all runs of a task.
struct WatchedTask {
    limit: Duration,
    scheduled_at: &'static Location<'static>,
    clock: Clock,
    watcher: Option<Handle>,
    tell: Box<dyn Fn(&SlowRun) + Send + Sync>,
}

/// One run that is watched, as the worker and the watcher share it.
struct WatchedRun {
    task: Arc<WatchedTask>,
    started: Instant,
    about: SlowRun,
    is_told: AtomicBool,
}

impl WatchedRun {
    /// Tells the run if its time is over, unless it has been told.
    fn look(&self) {
        let running_for = self.task.clock.now().saturating_duration_since(self.started);
        // Relaxed: orders no other access.
        if running_for >= self.about.limit && !self.is_told.swap(true, Ordering::Relaxed) {
            (self.task.tell)(&SlowRun { running_for, ..self.about.clone() });
        }
    }
}

/// A run whose time is measured until this is dropped.
struct Watch {
    run: Arc<WatchedRun>,
    /// The call of the watcher.
    call: Option<ScheduledFuture<()>>,
}

impl Watch {
    fn begin(task: &Arc<WatchedTask>, context: &TaskContext) -> Self {
        let &WatchedTask { limit, scheduled_at, .. } = &**task;
        let (id, name, run_number) = (context.id(), context.name(), context.run_number());
        let running_for = Duration::ZERO;
        let about = SlowRun { id, name, run_number, running_for, limit, scheduled_at };
        let started = context.started().unwrap_or_else(|| task.clock.now());
        let (task, is_told) = (Arc::clone(task), AtomicBool::new(false));
        let run = Arc::new(WatchedRun { task, started, about, is_told });
        let (watched, moment) = (Arc::clone(&run), started.checked_add(limit));
        let watcher = run.task.watcher.as_ref().zip(moment);
        let call = watcher.map(|(it, moment)| it.schedule_at(moment, move || watched.look()));
        Self { run, call: call.and_then(Result::ok) }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(call) = self.call.take() {
            call.cancel();
        }
        self.run.look();
    }
}

/// A run that takes longer than its set time: the argument of
/// [`Builder::on_slow_run`](crate::Builder::on_slow_run). Its `Display` is a line for a log.
#[derive(Clone, Debug)]
pub struct SlowRun {
    id: TaskId,
    name: Option<Arc<str>>,
    run_number: u64,
    running_for: Duration,
    limit: Duration,
    scheduled_at: &'static Location<'static>,
}

impl SlowRun {
    /// Returns the id of the task.
    pub fn id(&self) -> TaskId {
        self.id
    }

    /// Returns the name of the task, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns which run of the task it is, 1 for the first.
    pub fn run_number(&self) -> u64 {
        self.run_number
    }

    /// Returns how long the run had taken when this was reported.
    pub fn running_for(&self) -> Duration {
        self.running_for
    }

    /// Returns how long it was to take at most.
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// Returns where the task was scheduled: the call of [`schedule`](crate::Handle::schedule), for
    /// instance.
    pub fn scheduled_at(&self) -> &'static Location<'static> {
        self.scheduled_at
    }
}

impl fmt::Display for SlowRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "run {} of task {}", self.run_number, self.id)?;
        if let Some(name) = &self.name {
            write!(f, " {name:?}")?;
        }
        let Self { running_for, limit, scheduled_at, .. } = self;
        write!(f, " has taken {running_for:?}, longer than {limit:?}; scheduled at {scheduled_at}")
    }
}
