//! The tools that the models share.

use std::sync::Arc;

use punctual::{Builder, ManualClock, ScheduledThreadPoolExecutor};
use shuttle::sync::{
    Condvar, Mutex,
    atomic::{AtomicUsize, Ordering},
};

/// Tries as many schedules of each kind as `PUNCTUAL_SCHEDULES` says; or only `PUNCTUAL_SCHEDULE`, as a
/// failure has printed it.
pub(crate) fn check(model: impl Fn() + Send + Sync + Clone + 'static) {
    if let Ok(schedule) = std::env::var("PUNCTUAL_SCHEDULE") {
        return shuttle::replay(model, &schedule);
    }
    let schedules = std::env::var("PUNCTUAL_SCHEDULES").ok().and_then(|text| text.parse().ok());
    let schedules = schedules.unwrap_or(300);
    shuttle::check_pct(model.clone(), schedules, 3);
    shuttle::check_random(model, schedules);
}

pub(crate) fn executor(workers: usize) -> (ManualClock, ScheduledThreadPoolExecutor) {
    executor_with(|builder| builder.core_pool_size(workers))
}

/// An executor with the given settings, on a clock of its own.
pub(crate) fn executor_with(
    settings: impl FnOnce(Builder) -> Builder,
) -> (ManualClock, ScheduledThreadPoolExecutor) {
    let clock = ManualClock::new();
    let builder = ScheduledThreadPoolExecutor::builder().clock(clock.clone());
    (clock, settings(builder).build().expect("valid settings"))
}

/// Counts the captures that are alive, and the runs.
#[derive(Clone, Default)]
pub(crate) struct Count(Arc<AtomicUsize>);

impl Count {
    pub(crate) fn add(&self) -> usize {
        self.0.fetch_add(1, Ordering::SeqCst)
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    /// Returns a value that is counted when it is dropped.
    pub(crate) fn drop_of_one(&self) -> CountedDrop {
        CountedDrop(self.clone())
    }
}

/// Counts its drop.
pub(crate) struct CountedDrop(Count);

impl Drop for CountedDrop {
    fn drop(&mut self) {
        self.0.add();
    }
}

/// A door that is opened once.
#[derive(Clone, Default)]
pub(crate) struct Door(Arc<(Mutex<bool>, Condvar)>);

impl Door {
    pub(crate) fn open(&self) {
        *self.0.0.lock().expect("nobody panics") = true;
        self.0.1.notify_all();
    }

    pub(crate) fn pass(&self) {
        let mut open = self.0.0.lock().expect("nobody panics");
        while !*open {
            open = self.0.1.wait(open).expect("nobody panics");
        }
    }
}
