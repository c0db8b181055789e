//! The watchdog, which names a run that takes longer than its set time.
//!
//! It is code [around](Around) the closure. When the body begins it arms an expiry for the run ([`Timer`]), and afterwards
//! it disarms that and compares the clock, as the time limit of a series does (`feature/limit/of_runs.rs`). The worker or
//! the timer thread, if that comes first, raises `is_told` and names the run.

use std::{panic::Location, time::Duration};

use super::TaskBuilder;
use crate::{
    SlowRun, TaskContext,
    pool::{OnSlowRun, PoolRef, TimeoutGuard, Timer, expiry},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Around, FailureSource, Hooks, Run},
    time::{Clock, Timestamp},
    trace,
    unwind::{Callback, discard},
};

impl TaskBuilder<'_> {
    /// Returns the code around each run that names one which takes `limit` or longer; `None` if none can, or if the
    /// pool is at its end.
    pub(super) fn watch_runs(
        pool_ref: &PoolRef,
        limit: Duration,
        scheduled_at: &'static Location<'static>,
    ) -> Option<Around> {
        if limit == Duration::MAX {
            return None;
        }
        // If there is none, the worker names the run when it has ended.
        let started = pool_ref.pool().ensure_timer_thread();
        started.unwrap_or_else(|error| trace::spawn_failed(&error));
        let timer = Timer::of(pool_ref)?;
        let (clock, callbacks) = (pool_ref.pool().clock().clone(), &pool_ref.pool().callbacks);
        let (hooks, callback) = (callbacks.hooks.clone(), callbacks.slow_run.clone());
        let watchdog = Arc::new(Watchdog { limit, scheduled_at, clock, hooks, callback });
        Some(Around::new(move |body| {
            let watch = Run::watched().map(|run| Watch::begin(&watchdog, &timer, run));
            body();
            drop(watch);
        }))
    }
}

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
    run: TaskContext,
    is_told: AtomicBool,
}

impl WatchedRun {
    fn tell(&self) {
        // Relaxed: orders no other access.
        if self.is_told.swap(true, Ordering::Relaxed) {
            return;
        }
        let Watchdog { limit, scheduled_at, clock, hooks, callback } = &*self.watchdog;
        let slow = SlowRun::of(&self.run, clock.read(), *limit, scheduled_at);
        let (number, running_for) = (slow.run_number(), slow.running_for());
        trace::slow_run(self.run.id.0, slow.name(), number, running_for, scheduled_at);
        if let Some(callback) = callback {
            hooks.call_aside(FailureSource::SlowRun, &mut || callback(&slow));
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
    fn begin(watchdog: &Arc<Watchdog>, timer: &Timer, run: TaskContext) -> Self {
        let moment = run.started.after(watchdog.limit);
        let is_told = AtomicBool::new(false);
        let watched = Arc::new(WatchedRun { watchdog: Arc::clone(watchdog), run, is_told });
        let seen = Arc::clone(&watched);
        let act = move |_: &_| {
            seen.tell();
            discard(seen);
        };
        let guard = timer.arm(moment, expiry(act));
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
