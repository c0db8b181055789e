//! Periodic tasks with random phases, and how late their runs are.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use super::{late::LateLog, peer::Peer, rng::Rng};

/// The tasks, which run until the pool is shut down.
pub(super) struct Periodic {
    log: LateLog,
    runs: &'static AtomicU64,
    /// The first runs come within one period after this.
    pub(super) base: Instant,
}

/// Which tasks: how many, how often, and for how long at most each run is written down.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    pub(super) tasks: u64,
    pub(super) us: u64,
    pub(super) ms: u64,
    /// Whether each run reports that it has succeeded.
    pub(super) reports: bool,
}

impl Periodic {
    pub(super) fn start<P: Peer>(peer: &P, plan: Plan) -> Self {
        let Plan { tasks, us, ms, reports } = plan;
        let runs_each = ms * 1000 / us + 50;
        let log = LateLog::new(tasks * runs_each);
        let runs: &AtomicU64 = Box::leak(Box::default());
        let period = Duration::from_micros(us);
        let mut rng = Rng::new(3);
        let base = Instant::now() + Duration::from_millis(50);
        for index in 0..tasks {
            let first = base + Duration::from_nanos(rng.below(us * 1000));
            let initial = first.saturating_duration_since(Instant::now());
            let log = log.part(index * runs_each, runs_each);
            let (mut run, mut due) = (0, first);
            let body = move || {
                log.note(run, due);
                run += 1;
                due += period;
                runs.fetch_add(1, Ordering::Relaxed);
            };
            if reports {
                peer.repeat_with_report(initial, period, body);
            } else {
                peer.schedule_at_fixed_rate(initial, period, body);
            }
        }
        Self { log, runs, base }
    }

    /// How often they have run so far.
    pub(super) fn runs(&self) -> f64 {
        self.runs.load(Ordering::Relaxed) as f64
    }

    /// How late each run was.
    pub(super) fn nanos(&self) -> Vec<i64> {
        self.log.nanos()
    }
}
