//! Features that observe an executor: histograms of how late runs start and how long they take, metrics, and reports of
//! slow runs and of starvation. The histograms' recorder and the starvation watch are observers like those that users
//! supply; the executor's methods find them by type ([`Handle::observer`](crate::Handle::observer)).

#![allow(clippy::disallowed_types, reason = "this is a user of the crate, and locks as users do")]

#[cfg(feature = "histograms")]
mod histogram;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(feature = "histograms")]
mod recording;
mod slow_runs;
mod starvation;
mod watcher;

use std::sync::{Mutex, MutexGuard, PoisonError};

#[cfg(feature = "metrics")]
pub(crate) use self::metrics::{publish_executor, publish_group};
#[cfg(feature = "histograms")]
pub(crate) use self::recording::RunRecorder;
#[cfg(feature = "histograms")]
pub use self::{
    histogram::{Histogram, RunHistograms},
    recording::Histograms,
};
pub use self::{slow_runs::SlowRun, starvation::Starvation};
pub(crate) use self::{slow_runs::watch_runs, starvation::StarvationWatch, watcher::Watcher};

/// Locks, ignoring poison: no thread panics while it holds one of these locks.
fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
