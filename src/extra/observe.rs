//! What an executor does, observed: histograms of how late runs start and how long they take, metrics, and due tasks that
//! cannot start.
//!
//! Each is an [`Observer`](crate::Observer), and a program finds it again by its type
//! ([`Handle::observer`](crate::Handle::observer)).

#[cfg(feature = "histograms")]
mod histogram;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(feature = "histograms")]
mod recording;
mod starvation;

#[cfg(feature = "metrics")]
pub(crate) use self::metrics::{publish_executor, publish_group};
#[cfg(feature = "histograms")]
pub(crate) use self::recording::RunRecorder;
pub use self::starvation::Starvation;
pub(crate) use self::starvation::StarvationWatch;
#[cfg(feature = "histograms")]
pub use self::{
    histogram::{Histogram, RunHistograms},
    recording::Histograms,
};
