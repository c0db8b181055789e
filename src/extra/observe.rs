//! Observes what an executor does: histograms of how late runs start and how long they take, metrics, runs that
//! take long, and due tasks that cannot start.
//!
//! The histograms and the watch are observers like a user's, and the verbs find them again by their types
//! ([`Handle::observer`](crate::Handle::observer)).

#[cfg(feature = "histograms")]
mod histogram;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(feature = "histograms")]
mod recording;
mod slow_runs;
mod starvation;
mod watcher;

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
