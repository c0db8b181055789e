//! The counts of the runs of a job.

use std::time::Duration;

use crate::{lateness::Lateness, outcome::Outcome};

/// One run, as reported.
pub(crate) struct Run {
    pub(crate) number: u64,
    pub(crate) missed: u64,
    pub(crate) lateness: Duration,
    pub(crate) took: Duration,
    /// Which attempt was the last.
    pub(crate) attempt: u32,
    pub(crate) outcome: Outcome,
}

#[derive(Default)]
pub(crate) struct Tally {
    runs: u64,
    failures: u64,
    missed: u64,
    pub(crate) retries: u64,
    pub(crate) timeouts: u64,
    lateness: Lateness,
}

impl Tally {
    pub(crate) fn add(&mut self, run: &Run) {
        self.runs += 1;
        self.failures += u64::from(run.outcome.is_failure());
        self.missed += run.missed;
        self.timeouts += u64::from(run.outcome.is_timeout());
        self.lateness.record(run.lateness);
    }

    pub(crate) fn cells(&self) -> [String; 8] {
        let shown = |lateness: Option<Duration>| {
            lateness.map_or_else(|| "-".to_owned(), |lateness| format!("{lateness:.1?}"))
        };
        [
            self.runs.to_string(),
            self.failures.to_string(),
            self.missed.to_string(),
            self.retries.to_string(),
            self.timeouts.to_string(),
            shown(self.lateness.at_quantile(0.5)),
            shown(self.lateness.at_quantile(0.99)),
            shown(self.lateness.at_quantile(1.0)),
        ]
    }
}
