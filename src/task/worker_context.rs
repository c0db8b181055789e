//! The state that all runs on one worker share, and the parts of the present run that most runs do not have.
//!
//! A worker has one run at a time. What only some runs have is kept here and not in the
//! [`Run`](super::Run), so that the others have nothing to set up; it is only ever touched on the
//! worker's thread.

use std::{
    cell::{Cell, RefCell},
    time::{Duration, SystemTime},
};

use crate::{
    CancellationToken, feature::HeldLease, statistics::WorkerStats, sync::Arc, time::Clock,
};
#[cfg(feature = "histograms")]
use crate::{
    histogram::{Recorder, Recorders, Sample},
    task::RunFacts,
    time::Timestamp,
};

pub(crate) struct WorkerContext {
    pub(super) clock: Clock,
    pub(super) stop: CancellationToken,
    pub(crate) stats: Arc<WorkerStats>,
    /// True if runs observe the time limits of their tasks, and ask their gates. A run by hand does not:
    /// the timer thread that would raise the token may be gone.
    pub(super) keeps_limits: bool,
    /// The lease of a gate that the present run holds. It is here, and not in the run, so that a run without a gate
    /// has nothing to set up.
    pub(crate) held: RefCell<Option<HeldLease>>,
    /// The time limit of the present run, if it exceeded it.
    pub(crate) over_limit: Cell<Option<Duration>>,
    /// The moment of the wall clock for which a run was planned, with the id of its task: the last run that
    /// has one. A plain task does not set it, and so is told from it by its id.
    pub(crate) planned_wall: Cell<Option<(u64, SystemTime)>>,
    /// Where a run is recorded that is recorded apart. It is kept after the run, so that the next run of the
    /// same task, or of one with the same name, need not count a reference up and down.
    #[cfg(feature = "histograms")]
    recorders: RefCell<Option<Arc<Recorders>>>,
    #[cfg(feature = "histograms")]
    is_apart: Cell<bool>,
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
            over_limit: Cell::default(),
            planned_wall: Cell::default(),
            #[cfg(feature = "histograms")]
            recorders: RefCell::default(),
            #[cfg(feature = "histograms")]
            is_apart: Cell::new(false),
        }
    }

    #[cfg(feature = "histograms")]
    pub(super) fn record_in(&self, recorders: &Arc<Recorders>) {
        self.is_apart.set(true);
        let mut kept = self.recorders.borrow_mut();
        if kept.as_ref().is_none_or(|kept| !Arc::ptr_eq(kept, recorders)) {
            *kept = Some(Arc::clone(recorders));
        }
    }

    /// Records the last run, for which `own` is the worker's recorder. It ended at `ended`.
    #[cfg(feature = "histograms")]
    pub(crate) fn record(&self, own: &Recorder, run: RunFacts, ended: Timestamp) {
        let (lateness, run_time) =
            (run.started.nanos_since(run.planned), ended.nanos_since(run.started));
        let sample = Sample { lateness, run_time };
        match &*self.recorders.borrow() {
            Some(recorders) if self.is_apart.take() => recorders.record(own, sample),
            _ => own.record(sample),
        }
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }
}
