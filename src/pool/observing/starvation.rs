//! Starvation: nothing that is due can start, because all workers are occupied.
//!
//! A pool starves from the moment at which a task is due, or was last taken if that is later, until a worker
//! takes one. After the set time the timer thread says so, once, and then each time the wait has doubled.
//!
//! # One look at a time
//!
//! A *look* is an entry in the queue of the timer thread. It asks whether a worker is idle, which task that
//! is due is the first, and when a worker has last taken one. Nothing has to tell it that a task is due or
//! has been taken meanwhile: of the two, the later moment says since when the pool starves, and so when the
//! next look is, exactly. If nothing is due now, nothing can have starved before a set time from now. So
//! there is one look in a set time, however much goes on between two.
//!
//! A look that finds an idle worker is the last one: what is due next will be taken by that worker. A worker
//! that takes a task has a look armed if none is. A worker that takes a task at the very moment of a look may
//! come before or after it: the report says what the look has seen.
//!
//! # Why no starvation is missed
//!
//! > If all workers are busy, a look is armed, for a moment at most one set time after the last task
//! > was taken or, if that is later, after the last look.
//!
//! The two sides, as in [`queue::waiters`](crate::queue), all sequentially consistent:
//!
//! | the worker | the look |
//! |---|---|
//! | 1. is no longer idle, as the queue knows | 1. lowers `armed` |
//! | 2. reads `armed`; if it is down, raises it and arms a look | 2. counts the idle workers; if there is none, raises `armed` and arms the next look |
//!
//! If each sees the other, the one that raises `armed` arms the look. The other threads by which the number
//! of idle workers shrinks do the same as a worker that takes a task: one that starts a worker, and one that
//! has removed one that retires.

use std::{fmt, time::Duration};

use crate::{
    TaskId,
    pool::{Callbacks, Pool, timeouts::expiry},
    queue::{SnapshotEntry, Source},
    shutdown_report::TaskSummary,
    statistics::WorkerStats,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::FailureSource,
    time::Timestamp,
    trace,
    unwind::discard,
};

/// See the [module](self).
pub(in crate::pool) struct StarvationWatch {
    after: Duration,
    /// A look is armed, or is about to be.
    armed: AtomicBool,
}

/// The findings of the looks at one starvation.
#[derive(Clone, Copy, Default)]
struct Episode {
    /// Since when the pool has starved.
    since: Option<Timestamp>,
    /// For how many set times it has to starve to be reported again.
    again_at: u32,
}

impl StarvationWatch {
    pub(super) fn new(after: Duration) -> Self {
        Self { after, armed: AtomicBool::new(false) }
    }

    /// Notes that a worker has taken a task.
    pub(in crate::pool) fn taken(&self, pool: &Pool, stats: &WorkerStats, now: Timestamp) {
        stats.set_busy_since(now);
        self.ensure_armed(pool, now);
    }

    /// Arms a look unless one is armed: a worker has taken a task, is being started, or has been removed.
    pub(in crate::pool) fn ensure_armed(&self, pool: &Pool, now: Timestamp) {
        // Ordering: see the head of the module.
        if !self.armed.load(Ordering::SeqCst) {
            self.arm(pool, now, now.after(self.after), Episode::default());
        }
    }

    /// Arms a look, unless one is armed.
    fn arm(&self, pool: &Pool, now: Timestamp, moment: Timestamp, episode: Episode) {
        if self.armed.swap(true, Ordering::SeqCst) {
            return;
        }
        let look = expiry(move |pool: &Pool| {
            if let Some(watch) = &pool.observing.starvation {
                watch.look(pool, episode);
            }
        });
        if !pool.timeouts.call_at(now, moment, look) {
            self.armed.store(false, Ordering::SeqCst);
        }
    }

    /// One look, on the timer thread; see the head of the module.
    fn look(&self, pool: &Pool, before: Episode) {
        self.armed.store(false, Ordering::SeqCst);
        if pool.queue.waiting() > 0 || pool.workers.live() == 0 || pool.queue.is_finished() {
            return;
        }
        let now = pool.clock().read();
        let first = pool.queue.first_due(now).map(|SnapshotEntry { deadline, ticket, element }| {
            let name = element.name();
            discard(element);
            (deadline, TaskSummary::new(ticket.sequence, name))
        });
        let workers = pool.workers.worker_stats();
        let last_taken = workers.iter().map(|stats| stats.busy_since()).max();
        let since =
            first.as_ref().map(|(due, ..)| last_taken.map_or(*due, |taken| taken.max(*due)));
        let mut episode = before;
        if episode.since != since {
            episode = Episode { since, again_at: 1 };
        }
        let waited = since.map_or(Duration::ZERO, |since| now.since(since));
        let is_over = first.is_some() && waited >= self.after.saturating_mul(episode.again_at);
        if let (Some((_, next)), true) = (first, is_over) {
            episode.again_at = episode.again_at.saturating_mul(2);
            let running = running(&workers, now);
            Starvation { waited, next, running }.tell(&pool.callbacks);
        }
        let rest = if waited < self.after { self.after - waited } else { self.after };
        self.arm(pool, now, now.after(rest), episode);
    }
}

/// Returns the runs that occupy the workers.
fn running(workers: &[Arc<WorkerStats>], now: Timestamp) -> Vec<RunningTask> {
    let running = workers.iter().filter_map(|stats| {
        let (id, name) = stats.current()?;
        let running_for = now.since(stats.busy_since());
        Some(RunningTask { task: TaskSummary::new(id, name), running_for })
    });
    running.collect()
}

/// A pool in which nothing that is due could start for a set time: the argument of
/// [`Builder::on_starvation`](crate::Builder::on_starvation). Its `Display` is a line for a log.
#[derive(Clone, Debug)]
pub struct Starvation {
    waited: Duration,
    next: TaskSummary,
    running: Vec<RunningTask>,
}

impl Starvation {
    fn tell(&self, callbacks: &Callbacks) {
        let Self { waited, next, running } = self;
        trace::starvation(*waited, next.id().0, next.name(), &Occupants(running));
        if let Some(callback) = &callbacks.starvation {
            callbacks.hooks.call_aside(FailureSource::Starvation, || callback(self));
        }
    }

    /// Returns how long the task that would be next has been due without any task having started.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// Returns the task that would be next.
    pub fn next_task(&self) -> &TaskSummary {
        &self.next
    }

    /// Returns the tasks that occupy the workers.
    pub fn running(&self) -> &[RunningTask] {
        &self.running
    }
}

/// A task that occupies a worker; from [`Starvation::running`].
#[derive(Clone, Debug)]
pub struct RunningTask {
    task: TaskSummary,
    running_for: Duration,
}

impl RunningTask {
    /// Returns the number of the task.
    pub fn id(&self) -> TaskId {
        self.task.id()
    }

    /// Returns the name of the task, if it was given one.
    pub fn name(&self) -> Option<&str> {
        self.task.name()
    }

    /// Returns how long the task has occupied its worker.
    pub fn running_for(&self) -> Duration {
        self.running_for
    }
}

/// The task, and for how long it has occupied its worker.
impl fmt::Display for RunningTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for {:?}", self.task, self.running_for)
    }
}

/// The tasks that occupy the workers, as a text.
struct Occupants<'a>(&'a [RunningTask]);

impl fmt::Display for Occupants<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, one) in self.0.iter().enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            write!(f, "{comma}{one}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Starvation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { waited, next, running } = self;
        write!(f, "nothing that is due has started for {waited:?}: task {next} waits")?;
        write!(f, ", and the workers run {}", Occupants(running))
    }
}
