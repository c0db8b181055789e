//! What an executor does, observed: histograms of how late runs start and how long they take.
//!
//! Each is an [`Observer`](crate::Observer), and a program finds it again by its type
//! ([`Handle::observer`](crate::Handle::observer)).

#[cfg(feature = "histograms")]
mod histogram;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(feature = "histograms")]
mod recording;

#[cfg(feature = "metrics")]
pub(crate) use self::metrics::{publish_executor, publish_group};
#[cfg(feature = "histograms")]
pub(crate) use self::recording::RunRecorder;
#[cfg(feature = "histograms")]
pub use self::{
    histogram::{Histogram, RunHistograms},
    recording::Histograms,
};
