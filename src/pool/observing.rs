//! Observation of a pool at work, as far as the builder was asked for it.
//!
//! | what | where it is watched | when |
//! |---|---|---|
//! | starvation ([`starvation`]) | on the timer thread | at most once in the set time, while all workers are busy |
//! | slow runs ([`task_builder`](crate::task_builder)) | on the timer thread, by an entry for each run | when the run has taken that long |
//!
//! One flag says whether the pool has a bound or watches its workers, so a plain pool tests a single flag at
//! each take. Another says whether a submission has something added to it, such as a decorator. Neither ever
//! changes.

mod starvation;

use std::time::Duration;

use self::starvation::StarvationWatch;
pub use self::starvation::{RunningTask, Starvation};
use crate::trace;

/// The observations that a pool was asked for; the builder fills it in.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ObservingConfig {
    pub(crate) starvation_after: Option<Duration>,
    /// How long a run may take where its task sets no limit of its own.
    pub(crate) warn_after: Option<Duration>,
    pub(crate) submitter_span: bool,
}

/// See the [module](self).
pub(crate) struct Observing {
    pub(crate) config: ObservingConfig,
    pub(super) starvation: Option<StarvationWatch>,
}

impl Observing {
    /// A pool without threads has no other thread to look at it while its worker is busy.
    pub(super) fn new(mut config: ObservingConfig, is_driven: bool) -> Self {
        config.starvation_after = config.starvation_after.filter(|_| !is_driven);
        Self { starvation: config.starvation_after.map(StarvationWatch::new), config }
    }

    /// Returns `true` if workers are watched.
    pub(super) fn observes_takes(&self) -> bool {
        self.starvation.is_some()
    }

    /// Returns `true` if submissions have something added to them.
    pub(super) fn extends_submissions(&self) -> bool {
        self.config.warn_after.is_some() || self.config.submitter_span
    }

    /// Returns the span of the calling thread, for a task that it submits, if tasks are to keep it.
    pub(crate) fn submitter_span(&self) -> Option<trace::SubmitterSpan> {
        if self.config.submitter_span { trace::SubmitterSpan::current() } else { None }
    }
}
