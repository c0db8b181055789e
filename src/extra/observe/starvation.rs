//! Detects starvation: no due task can start, because all workers are occupied.
//!
//! Starvation begins when a task falls due or, if that is later, when a worker last took a task. It ends when a worker
//! takes a task. The watch reports starvation that lasts for the set time, and again each time its duration doubles.
//!
//! A *check* (`Lookout::look`) is a task of the executor's [watcher](Watcher). It determines whether a worker is idle,
//! which due task is first, and when a worker last took a task. So the check knows how long the executor has been
//! starving, and when the next check has to run. The number of checks depends on the set time, not on the number of
//! tasks. A check that finds an idle worker arms no other. The next worker to start, take a task or end arms one.
//!
//! # Why no starvation is missed
//!
//! > While all workers are busy, a check is armed. Its delay is at most the set time, counted from the last check or
//! > from when a worker last started, took a task or ended, whichever is later.
//!
//! The worker and the check each take two steps, with sequentially consistent accesses:
//!
//! | the worker | the check |
//! |---|---|
//! | 1. is no longer counted as idle by the queue | 1. clears `armed` |
//! | 2. reads `armed`; if it is clear, sets it and arms a check | 2. counts the idle workers; if there are none, sets `armed` and arms the next check |
//!
//! At least one of the two sees the other's first step; if both do, the first to set `armed` arms the check. A worker
//! that starts or ends takes step 2, too. If the watcher cannot start a thread, no check is armed until a worker takes
//! step 2 again.

use std::{
    fmt,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use super::{Watcher, locked, watcher::Look};
use crate::{ExecutorState, Handle, Observer, Points, RunningTask, TaskId, TaskSummary};

pub(crate) type Tell = dyn Fn(&Handle, &Starvation) + Send + Sync;

pub(crate) struct StarvationWatch(Arc<Lookout>);

struct Lookout {
    after: Duration,
    tell: Arc<Tell>,
    watcher: Watcher,
    armed: AtomicBool,
    /// When a worker last took a task, in nanoseconds since the executor was built.
    last_taken: AtomicU64,
    built: OnceLock<Instant>,
    /// The watched executor, until it has terminated.
    executor: Mutex<Option<Handle>>,
}

/// One period of starvation, as far as the checks have seen it.
#[derive(Clone, Copy, Default)]
struct Episode {
    /// The task that would run next, and when a worker last took a task. The episode lasts while neither changes.
    of: Option<(TaskId, u64)>,
    /// The next report comes once the episode has lasted this many times `after`.
    again_at: u32,
}

impl StarvationWatch {
    pub(crate) fn new(after: Duration, watcher: Watcher, tell: Arc<Tell>) -> Self {
        let (armed, last_taken, built, executor) = Default::default();
        Self(Arc::new(Lookout { after, tell, watcher, armed, last_taken, built, executor }))
    }

    pub(crate) fn begin(&self, executor: &Handle) {
        _ = self.0.built.set(executor.clock().now());
        *locked(&self.0.executor) = Some(executor.clone());
    }
}

impl Observer for StarvationWatch {
    fn points(&self) -> Points {
        Points::WORKER | Points::TAKEN | Points::TERMINATED
    }

    fn worker_started(&self) {
        self.0.ensure_armed();
    }

    fn worker_ended(&self) {
        self.0.ensure_armed();
    }

    fn task_taken(&self, _: TaskId, taken: Instant, _: Duration) {
        let built = self.0.built.get().copied().unwrap_or(taken);
        let nanos = taken.saturating_duration_since(built).as_nanos() as u64;
        // Relaxed: orders no other access.
        self.0.last_taken.fetch_max(nanos, Ordering::Relaxed);
        self.0.ensure_armed();
    }

    fn terminated(&self) {
        let executor = locked(&self.0.executor).take();
        drop(executor);
    }
}

impl Lookout {
    /// Arms a check unless one is armed. Called when a worker has taken a task, has started, or has ended.
    #[inline]
    fn ensure_armed(self: &Arc<Self>) {
        // Ordering: see the head of the module.
        if !self.armed.load(Ordering::SeqCst) {
            self.arm(self.after, Episode::default());
        }
    }

    #[cold]
    fn arm(self: &Arc<Self>, delay: Duration, episode: Episode) {
        let Some(looks) = self.watcher.executor() else { return };
        if self.armed.swap(true, Ordering::SeqCst) {
            return;
        }
        let watch = Arc::clone(self);
        let look: Look = Box::new(move || watch.look(episode));
        if looks.schedule(delay, look).is_err() {
            self.armed.store(false, Ordering::SeqCst);
        }
    }

    fn look(self: &Arc<Self>, before: Episode) {
        self.armed.store(false, Ordering::SeqCst);
        let Some(executor) = locked(&self.executor).clone() else { return };
        let seen = executor.statistics();
        let is_at_its_end = seen.state != ExecutorState::Running && seen.pending == 0;
        if executor.idle_count() > 0 || seen.pool_size == 0 || is_at_its_end {
            return;
        }
        let (now, first) = (executor.clock().now(), executor.first_due());
        let last_taken = self.last_taken.load(Ordering::Relaxed);
        let taken = Duration::from_nanos(last_taken);
        let taken = self.built.get().and_then(|built| built.checked_add(taken));
        let due = first.as_ref().and_then(|(_, overdue)| now.checked_sub(*overdue));
        let since = due.max(taken).filter(|_| first.is_some());
        let of = first.as_ref().map(|(next, _)| (next.id(), last_taken));
        let mut episode = if before.of == of { before } else { Episode { of, again_at: 1 } };
        let waited = since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        let is_over = waited >= self.after.saturating_mul(episode.again_at);
        if let Some((next, _)) = first.filter(|_| is_over) {
            episode.again_at = episode.again_at.saturating_mul(2);
            let running = executor.running_tasks();
            (self.tell)(&executor, &Starvation { waited, next, running });
        }
        let rest = self.after.saturating_sub(waited);
        self.arm(if rest.is_zero() { self.after } else { rest }, episode);
    }
}

/// An executor in which no due task could start for a set time: the argument of
/// [`Builder::on_starvation`](crate::Builder::on_starvation). Its `Display` is a line for a log. Nothing is reported
/// while the watching thread cannot be started.
#[derive(Clone, Debug)]
pub struct Starvation {
    waited: Duration,
    next: TaskSummary,
    running: Vec<RunningTask>,
}

impl Starvation {
    /// Returns how long the next task has been due without any task starting.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// Returns the task that would run next.
    pub fn next_task(&self) -> &TaskSummary {
        &self.next
    }

    /// Returns the tasks that occupy the workers.
    pub fn running(&self) -> &[RunningTask] {
        &self.running
    }

    pub(crate) fn occupants(&self) -> String {
        let running: Vec<_> = self.running.iter().map(RunningTask::to_string).collect();
        running.join(", ")
    }
}

impl fmt::Display for Starvation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { waited, next, .. } = self;
        write!(f, "nothing that is due has started for {waited:?}: task {next} waits")?;
        write!(f, ", and the workers run {}", self.occupants())
    }
}
