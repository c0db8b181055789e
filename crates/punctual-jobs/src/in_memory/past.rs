//! The history in memory: the last runs, for as long as they are kept, and ten thousand at most.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use super::{
    Board,
    board::{Entry, Stage, State},
};
use crate::{HistoryFilter, JobId, JobOutcome, PastRun, QueueError, queue::machine};

/// How many runs are kept at most.
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

    fn forget_old(&mut self, now: Instant) {
        let Some(keep) = self.keep else { return };
        let is_old = |(ended, _): &(Instant, PastRun)| now.saturating_duration_since(*ended) > keep;
        while self.runs.front().is_some_and(is_old) {
            self.runs.pop_front();
        }
    }
}

impl Board {
    /// Notes the end of a run, if there is a history. The entry is as it was during the run.
    pub(super) fn note_run(
        &self,
        state: &mut State,
        id: i64,
        outcome: JobOutcome,
        error: Option<String>,
    ) {
        if state.past.keep.is_none() {
            return;
        }
        let Some(entry) = state.jobs.get(&id) else { return };
        let Entry { stage: Stage::Running { since, .. }, .. } = entry else { return };
        let clock = self.executor.clock();
        let (now, ended) = (clock.now(), clock.wall_time());
        let run = PastRun {
            id: state.past.last_id + 1,
            job: JobId(id),
            kind: entry.definition.name.to_owned(),
            key: entry.key.clone(),
            schedule: None,
            tick: None,
            attempt: entry.begun,
            machine: machine::name_of_this(),
            began: self.wall_of(*since).unwrap_or(ended),
            ended,
            outcome,
            error,
        };
        state.past.last_id = run.id;
        state.past.runs.push_back((now, run));
        if state.past.runs.len() > KEPT_AT_MOST {
            state.past.runs.pop_front();
        }
        state.past.forget_old(now);
    }

    pub(super) fn past_runs(&self, filter: &HistoryFilter) -> Result<Vec<PastRun>, QueueError> {
        let mut state = self.state.lock();
        state.refuse_if_over()?;
        state.past.forget_old(self.executor.clock().now());
        let found = state.past.runs.iter().rev().map(|(_, run)| run).filter(|run| {
            filter.job.is_none_or(|job| job == run.job)
                && filter.kind.as_ref().is_none_or(|kind| *kind == run.kind)
                && filter.schedule.is_none()
                && filter.before.is_none_or(|before| run.id < before)
        });
        Ok(found.take(filter.limit).cloned().collect())
    }
}
