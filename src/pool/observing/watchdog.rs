//! The watchdog: a run that takes longer than its set time is named, once.
//!
//! It is a wrapper around the closure, as a time limit of a periodic task is, and uses the same queue
//! and the same thread ([`timeouts`](crate::pool)): an entry for each run, armed when the body begins and
//! disarmed when it ends. Unlike a time limit it ends nothing and raises no token.
//!
//! # Exactly once, and for each
//!
//! The timer thread names a run when its time has come, and if it is late, the worker does so when
//! the body returns and the time is up by then. Whichever comes first raises `is_told`. So a run that took its set
//! time or longer is always named, and no other is, however late the timer thread is, and on a manual
//! clock to the nanosecond.

use std::{fmt, panic::Location, time::Duration};

use crate::{
    TaskId,
    pool::{
        PoolRef,
        callbacks::OnSlowRun,
        timeouts::{TimeoutGuard, Timer},
    },
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Around, CurrentRun, FailureSource, Hooks, Run},
    time::{Clock, Timestamp},
    trace,
    unwind::{Callback, discard},
};

/// The facts that are the same for all runs of a task.
struct Watchdog {
    limit: Duration,
    scheduled_at: &'static Location<'static>,
    clock: Clock,
    hooks: Hooks,
    callback: Option<Callback<OnSlowRun>>,
}

/// One run that is watched, as the worker and the timer thread share it.
struct WatchedRun {
    watchdog: Arc<Watchdog>,
    run: CurrentRun,
    is_told: AtomicBool,
}

impl WatchedRun {
    fn tell(&self) {
        // Relaxed: orders no other access.
        if self.is_told.swap(true, Ordering::Relaxed) {
            return;
        }
        let Watchdog { limit, scheduled_at, clock, hooks, callback } = &*self.watchdog;
        let subject = self.run.subject();
        let slow = SlowRun {
            id: TaskId(self.run.id),
            name: subject.name,
            run_number: self.run.number,
            running_for: clock.read().since(self.run.started),
            limit: *limit,
            scheduled_at,
        };
        trace::slow_run(self.run.id, slow.name(), slow.run_number, slow.running_for, scheduled_at);
        if let Some(callback) = callback {
            hooks.call_aside(FailureSource::SlowRun, || callback(&slow));
        }
    }
}

/// A run whose time is measured until this is dropped.
struct Watch {
    watched: Arc<WatchedRun>,
    moment: Timestamp,
    guard: Option<TimeoutGuard>,
}

impl Watch {
    fn begin(watchdog: &Arc<Watchdog>, timer: &Timer, run: CurrentRun) -> Self {
        let moment = run.started.after(watchdog.limit);
        let is_told = AtomicBool::new(false);
        let watched = Arc::new(WatchedRun { watchdog: Arc::clone(watchdog), run, is_told });
        let seen = Arc::clone(&watched);
        let expiry = move |_: &_| {
            seen.tell();
            discard(seen);
        };
        let guard = timer.arm(moment, Box::new(expiry));
        Self { watched, moment, guard }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        drop(self.guard.take());
        if self.moment <= self.watched.watchdog.clock.read() {
            self.watched.tell();
        }
    }
}

impl PoolRef {
    /// Returns the code around each run that names one which takes `limit` or longer; `None` if none can, or if the
    /// pool is at its end.
    pub(crate) fn watch_runs(
        &self,
        limit: Duration,
        scheduled_at: &'static Location<'static>,
    ) -> Option<Around> {
        if limit == Duration::MAX {
            return None;
        }
        // If there is none, the worker names the run when it has ended.
        let started = self.pool().ensure_timer_thread();
        started.unwrap_or_else(|error| trace::spawn_failed(&error));
        let timer = Timer::of(self)?;
        let (clock, callbacks) = (self.pool().clock().clone(), self.pool().callbacks());
        let (hooks, callback) = (callbacks.hooks.clone(), callbacks.slow_run.clone());
        let watchdog = Arc::new(Watchdog { limit, scheduled_at, clock, hooks, callback });
        Some(Around::new(move |body| {
            let watch = Run::current().map(|run| Watch::begin(&watchdog, &timer, run));
            body();
            drop(watch);
        }))
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
    #[must_use]
    pub fn id(&self) -> TaskId {
        self.id
    }

    /// Returns the name of the task, if it has one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns which run of the task it is, 1 for the first.
    #[must_use]
    pub fn run_number(&self) -> u64 {
        self.run_number
    }

    /// Returns how long the run had taken when this was reported.
    #[must_use]
    pub fn running_for(&self) -> Duration {
        self.running_for
    }

    /// Returns how long it was to take at most.
    #[must_use]
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// Returns where the task was scheduled: the call of [`schedule`](crate::Handle::schedule), for
    /// instance.
    #[must_use]
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
