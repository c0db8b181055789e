//! What all runs on one worker have in common, and what the present one of them has that most have not.
//!
//! A worker has one run at a time. What only some runs have is kept here and not in the
//! [`Run`](super::Run), so that the others have nothing to set up; it is only ever touched on the
//! worker's thread.

#[cfg(feature = "histograms")]
use std::cell::Cell;
use std::cell::RefCell;

use super::gated::Held;
use crate::{CancellationToken, statistics::WorkerStats, sync::Arc, time::Clock};
#[cfg(feature = "histograms")]
use crate::{histogram::Recorders, time::Timestamp};

/// What all runs on one worker have in common.
pub(crate) struct WorkerContext {
    pub(super) clock: Clock,
    /// The parent of the tasks' tokens.
    pub(super) stop: CancellationToken,
    pub(crate) stats: Arc<WorkerStats>,
    /// True if runs observe the time limits of their tasks, and ask their gates. A run by hand does not:
    /// the timer thread that would raise the token may be gone.
    pub(super) keeps_limits: bool,
    /// What the present run holds of its gate. It is here, and not in the run, so that a run without a gate
    /// has nothing to set up.
    pub(super) held: RefCell<Option<Held>>,
    /// Where the present run is recorded, if that is not the worker's own recorder; here for the same
    /// reason.
    #[cfg(feature = "histograms")]
    pub(super) recorders: Cell<Option<Arc<Recorders>>>,
    /// For when the present run was planned and when it started, if its gate was asked.
    #[cfg(feature = "histograms")]
    pub(super) passed: Cell<Option<(Timestamp, Timestamp)>>,
}

impl WorkerContext {
    pub(crate) fn new(
        clock: Clock,
        stop: CancellationToken,
        stats: Arc<WorkerStats>,
        keeps_limits: bool,
    ) -> Self {
        Self {
            clock,
            stop,
            stats,
            keeps_limits,
            held: RefCell::default(),
            #[cfg(feature = "histograms")]
            recorders: Cell::default(),
            #[cfg(feature = "histograms")]
            passed: Cell::default(),
        }
    }

    /// Returns where the last run is to be recorded, if that is not the worker's own recorder, and for when
    /// it was planned and when it started, if that was not when it was taken.
    #[cfg(feature = "histograms")]
    pub(crate) fn take_recorded(&self) -> (Option<Arc<Recorders>>, Option<(Timestamp, Timestamp)>) {
        (self.recorders.take(), self.passed.take())
    }
}
