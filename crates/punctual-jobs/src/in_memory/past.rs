//! The history in memory: the last runs, for as long as they are kept, and ten thousand at most.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use crate::{HistoryFilter, PastRun, queue::history::PAGE};

const KEPT_AT_MOST: usize = 10_000;

/// The runs that have ended, the last one at the end.
pub(super) struct Past {
    keep: Option<Duration>,
    last_id: i64,
    runs: VecDeque<(Instant, PastRun)>,
}

impl Past {
    pub(super) fn kept_for(keep: Option<Duration>) -> Self {
        Self { keep, last_id: 0, runs: VecDeque::new() }
    }

    pub(super) fn keeps(&self) -> bool {
        self.keep.is_some()
    }

    /// Notes a run that has ended now, and gives it its id.
    pub(super) fn note(&mut self, mut run: PastRun, now: Instant) {
        self.last_id += 1;
        run.id = self.last_id;
        self.runs.push_back((now, run));
        if self.runs.len() > KEPT_AT_MOST {
            self.runs.pop_front();
        }
        self.forget_old(now);
    }

    pub(super) fn of(&mut self, filter: &HistoryFilter, now: Instant) -> Vec<PastRun> {
        self.forget_old(now);
        let found = self.runs.iter().rev().map(|(_, run)| run).filter(|run| {
            filter.job.is_none_or(|job| job == run.job)
                && filter.kind.as_ref().is_none_or(|kind| *kind == run.kind)
                && filter.schedule.is_none()
                && filter.before.is_none_or(|before| run.id < before)
        });
        found.take(filter.limit.unwrap_or(PAGE)).cloned().collect()
    }

    fn forget_old(&mut self, now: Instant) {
        let Some(keep) = self.keep else { return };
        let is_old = |(ended, _): &(Instant, PastRun)| now.saturating_duration_since(*ended) > keep;
        while self.runs.front().is_some_and(is_old) {
            self.runs.pop_front();
        }
    }
}
