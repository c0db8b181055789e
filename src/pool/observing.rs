//! Observation of a pool at work, as far as the builder was asked for it.
//!
//! | what | where it is watched | when |
//! |---|---|---|
//! | histograms (`histograms`) | on the worker | each time it looks for a task |
//! | starvation ([`starvation`]) | on the timer thread | at most once in the set time, while all workers are busy |
//! | slow runs ([`task_builder`](crate::task_builder)) | on the timer thread, by an entry for each run | when the run has taken that long |
//!
//! One flag says whether the pool has a bound or watches its workers, so a plain pool tests a single flag at
//! each take. Another says whether a submission has something added to it, such as a decorator. Neither ever
//! changes.

#[cfg(feature = "histograms")]
mod histograms;
mod starvation;

use std::time::Duration;

#[cfg(feature = "histograms")]
pub use self::histograms::Histograms;
#[cfg(feature = "histograms")]
pub(super) use self::histograms::{PoolHistograms, WorkerHistograms};
use self::starvation::StarvationWatch;
pub use self::starvation::{RunningTask, Starvation};
use crate::trace;
#[cfg(feature = "histograms")]
use crate::{feature::GroupState, histogram::Recorders, sync::Arc};

/// The observations that a pool was asked for; the builder fills it in.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ObservingConfig {
    /// How many names have histograms of their own; `None` if there are no histograms at all.
    #[cfg(feature = "histograms")]
    pub(crate) histogram_names: Option<usize>,
    pub(crate) starvation_after: Option<Duration>,
    /// How long a run may take where its task sets no limit of its own.
    pub(crate) warn_after: Option<Duration>,
    pub(crate) submitter_span: bool,
}

/// See the [module](self).
pub(crate) struct Observing {
    pub(crate) config: ObservingConfig,
    #[cfg(feature = "histograms")]
    pub(super) histograms: Option<Arc<PoolHistograms>>,
    pub(super) starvation: Option<StarvationWatch>,
}

impl Observing {
    /// A pool without threads has no other thread to look at it while its worker is busy.
    pub(super) fn new(mut config: ObservingConfig, is_driven: bool) -> Self {
        config.starvation_after = config.starvation_after.filter(|_| !is_driven);
        Self {
            #[cfg(feature = "histograms")]
            histograms: config.histogram_names.map(|names| Arc::new(PoolHistograms::new(names))),
            starvation: config.starvation_after.map(StarvationWatch::new),
            config,
        }
    }

    /// Returns `true` if workers are watched.
    pub(super) fn observes_takes(&self) -> bool {
        #[cfg(feature = "histograms")]
        let has_histograms = self.histograms.is_some();
        #[cfg(not(feature = "histograms"))]
        let has_histograms = false;
        self.starvation.is_some() || has_histograms
    }

    /// Returns `true` if submissions have something added to them.
    pub(super) fn extends_submissions(&self) -> bool {
        self.config.warn_after.is_some() || self.config.submitter_span
    }

    /// Returns the span of the calling thread, for a task that it submits, if tasks are to keep it.
    pub(crate) fn submitter_span(&self) -> Option<trace::SubmitterSpan> {
        if self.config.submitter_span { trace::SubmitterSpan::current() } else { None }
    }

    /// Returns where the runs of a task are recorded, if that is not the worker's own recorder.
    #[cfg(feature = "histograms")]
    pub(crate) fn recorders_of(
        &self,
        name: Option<&Arc<str>>,
        group: Option<&GroupState>,
    ) -> Option<Arc<Recorders>> {
        let histograms = self.histograms.as_ref()?;
        let named = name.and_then(|name| histograms.of_name(name));
        let Some(of_group) = group.and_then(|group| group.recorder.clone()) else { return named };
        let of_name = named.and_then(|recorders| recorders.of_name.clone());
        Some(Arc::new(Recorders { of_name, of_group: Some(of_group) }))
    }

    /// Returns the histograms; `None` if none are kept.
    #[cfg(feature = "histograms")]
    pub(crate) fn histograms(&self) -> Option<Histograms> {
        self.histograms.as_ref().map(|histograms| histograms.snapshot())
    }
}
