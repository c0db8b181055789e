//! Reports each run that takes as long as its limit or longer: once, and if possible while the run goes on.
//!
//! The watch is code around each run. When a run begins, the watch schedules a call on the [watcher](Watcher) for the
//! moment at which the time is up; when the run ends, the watch cancels that call and checks the clock. So the watcher
//! reports the run or, if its thread is late or cannot be started, the worker does. The first to report sets `is_told`,
//! so the other does not report.

use std::{
    fmt,
    panic::Location,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use super::{Watcher, watcher::Look};
use crate::{Clock, Done, ScheduledFuture, Submission, TaskId, TaskRun, current_task};

/// Returns the code to put around a task's runs: it reports each run of `limit` or longer. Without a `watcher`, it does
/// so only when the run ends.
pub(crate) fn watch_runs<F: Fn(&SlowRun) + Send + Sync + 'static>(
    task: &Submission<'_>,
    limit: Duration,
    clock: &Clock,
    watcher: Option<&Watcher>,
    tell: F,
) -> impl FnMut(TaskRun<'_>) -> Done<'_> + Send + 'static + use<F> {
    let (scheduled_at, watcher) = (task.scheduled_at(), watcher.and_then(Watcher::executor));
    let (clock, tell): (_, Arc<TellSlow>) = (clock.clone(), Arc::new(tell));
    move |run| {
        let _watch = current_task().map(|context| {
            let (id, name, run_number) = (context.id(), context.name(), context.run_number());
            let running_for = Duration::ZERO;
            let about = SlowRun { id, name, run_number, running_for, limit, scheduled_at };
            let (clock, tell, is_told) = (clock.clone(), Arc::clone(&tell), AtomicBool::new(false));
            let started = context.started().unwrap_or_else(|| clock.now());
            let moment = started.checked_add(limit);
            let run = Arc::new(WatchedRun { clock, tell, started, about, is_told });
            let call = watcher.as_ref().zip(moment).and_then(|(watcher, moment)| {
                let watched = Arc::clone(&run);
                let look: Look = Box::new(move || watched.look());
                watcher.schedule_at(moment, look).ok()
            });
            Watch { run, call }
        });
        run.run()
    }
}

type TellSlow = dyn Fn(&SlowRun) + Send + Sync;

/// One watched run, shared by the worker and the watcher.
struct WatchedRun {
    clock: Clock,
    tell: Arc<TellSlow>,
    started: Instant,
    about: SlowRun,
    is_told: AtomicBool,
}

impl WatchedRun {
    fn look(&self) {
        let running_for = self.clock.now().saturating_duration_since(self.started);
        // Relaxed: orders no other access.
        if running_for >= self.about.limit && !self.is_told.swap(true, Ordering::Relaxed) {
            (self.tell)(&SlowRun { running_for, ..self.about.clone() });
        }
    }
}

struct Watch {
    run: Arc<WatchedRun>,
    call: Option<ScheduledFuture<()>>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(call) = self.call.take() {
            call.cancel();
        }
        self.run.look();
    }
}

/// A run that takes longer than its set time: the argument of [`Builder::on_slow_run`](crate::Builder::on_slow_run).
/// Its `Display` is a line for a log. It is reported while the run goes on, or after the body has returned if the
/// watching thread was late or could not be started.
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

    /// Returns how long the run may take before it is reported.
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// Returns where the task was scheduled: the call of [`schedule`](crate::Handle::schedule), for instance.
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
