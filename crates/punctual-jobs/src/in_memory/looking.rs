//! A look at the board, and the changes that a person makes there: by the id of a job.
//!
//! A discarded job is off the board, among those that are remembered, with all that it was. A retry puts it back with
//! another generation, as if it was enqueued under its old id. A job that runs and is discarded is only marked: its own
//! attempt takes it off the board.

use std::{
    collections::{BTreeMap, BinaryHeap},
    time::SystemTime,
};

use punctual::trigger::Due;

use super::{
    board::{Board, Refusal},
    entry::{Entry, Stage, due_at},
    state::State,
};
use crate::{
    HistoryFilter, JobChange, JobFilter, JobId, JobStage, JobState, JobStatus, JobWait, KindCounts,
    PastRun, QueueError, QueueFuture, StopReason,
    queue::{change::BY_HAND, machine, queue_future::Promise},
};

impl Board {
    pub(super) fn jobs_of(&self, filter: &JobFilter) -> Result<Vec<JobStatus>, QueueError> {
        let state = self.state.lock();
        state.refuse_if_over()?;
        let kept = state.jobs.iter().map(|(id, entry)| (*id, entry, stage_of(entry)));
        let lost = state.discarded.iter().map(|(id, entry)| (*id, entry, JobStage::Discarded));
        let all = kept.chain(lost).filter(|(id, entry, stage)| {
            let is = |asked: &Option<String>, has: Option<&String>| {
                asked.as_ref().is_none_or(|asked| Some(asked) == has)
            };
            *id > filter.after.0
                && filter.stage.is_none_or(|asked| asked == *stage)
                && filter.kind.as_ref().is_none_or(|kind| kind == entry.definition.name)
                && is(&filter.key, entry.key.as_ref())
                && is(&filter.ordering_key, entry.ordering_key.as_ref())
                && is(&filter.limit_key, entry.limit_key.as_ref())
                && filter.schedule.is_none()
                && (!filter.paused || state.is_paused(entry, *stage))
        });
        let mut first: BinaryHeap<i64> = BinaryHeap::new();
        for (id, ..) in all {
            first.push(id);
            if first.len() > filter.limit {
                first.pop();
            }
        }
        let listed = first.into_sorted_vec();
        let listed = listed.into_iter().filter_map(|id| Some((id, state.entry(id)?)));
        let status = |(id, (entry, stage)): (i64, (&Entry, JobStage))| JobStatus {
            paused: state.is_paused(entry, stage),
            payload: filter.payloads.then(|| entry.payload.to_text()),
            waits_for: state.wait_of(id, entry, stage),
            ..self.status(id, entry, stage)
        };
        Ok(listed.map(status).collect())
    }

    fn status(&self, id: i64, entry: &Entry, stage: JobStage) -> JobStatus {
        let since = entry.since().and_then(|since| self.wall_of(since));
        JobStatus {
            id: JobId(id),
            kind: entry.definition.name.to_owned(),
            payload: None,
            waits_for: None,
            key: entry.key.clone(),
            ordering_key: entry.ordering_key.clone(),
            limit_key: entry.limit_key.clone(),
            schedule: None,
            tick: None,
            stage,
            paused: false,
            due: entry.moment.and_then(|moment| self.wall_of(moment)),
            attempts: entry.begun,
            max_attempts: entry.max_attempts,
            priority: entry.priority,
            machine: (stage == JobStage::Running).then(machine::name_of_this),
            since,
            last_error: entry.last_error.clone(),
        }
    }

    pub(super) fn counts_by_kind(&self) -> Result<Vec<KindCounts>, QueueError> {
        let now = self.executor.clock().now();
        let state = self.state.lock();
        state.refuse_if_over()?;
        let mut kinds: BTreeMap<&str, KindCounts> = BTreeMap::new();
        for (kind, pause) in state.pauses.all() {
            kinds.entry(kind).or_default().paused = Some(pause);
        }
        let kept = state.jobs.values().map(|entry| (entry, stage_of(entry)));
        let lost = state.discarded.iter().map(|(_, entry)| (entry, JobStage::Discarded));
        for (entry, stage) in kept.chain(lost) {
            let kind = kinds.entry(entry.definition.name).or_default();
            match stage {
                JobStage::Running => kind.running += 1,
                JobStage::Discarded => kind.discarded += 1,
                JobStage::Waiting => {
                    kind.waiting += 1;
                    let due_for = entry.moment.and_then(|due| now.checked_duration_since(due));
                    kind.due += u64::from(due_for.is_some());
                    kind.latency = kind.latency.max(due_for.unwrap_or_default());
                }
            }
        }
        let named = |(kind, counts): (&str, _)| KindCounts { kind: kind.to_owned(), ..counts };
        let counts = kinds.into_iter().map(named).collect();
        drop(state);
        Ok(counts)
    }

    /// Returns what the wall clock shows at an instant, as far as it is known now.
    pub(super) fn wall_of(&self, instant: std::time::Instant) -> Option<SystemTime> {
        let clock = self.executor.clock();
        let (now, wall) = (clock.now(), clock.wall_time());
        match instant.checked_duration_since(now) {
            Some(ahead) => wall.checked_add(ahead),
            None => wall.checked_sub(now.saturating_duration_since(instant)),
        }
    }

    pub(super) fn retry_job(&self, id: JobId) -> Result<JobChange, QueueError> {
        let id = id.0;
        let now = self.executor.clock().now();
        let mut state = self.state.lock();
        state.refuse_if_over()?;
        match state.jobs.get(&id) {
            Some(entry) if entry.runs() => return Ok(JobChange::Running),
            Some(entry) => {
                let moment = entry.moment.filter(|moment| *moment <= now).unwrap_or(now);
                self.move_job(state, id, (Some(moment), Due::At(moment)))?;
                return Ok(JobChange::Done);
            }
            None => {}
        }
        let Some(place) = state.discarded.iter().position(|(other, _)| *other == id) else {
            return Ok(JobChange::Unknown);
        };
        if state.closing.is_some() {
            return Err(QueueError::ShutDown);
        }
        let key = &state.discarded[place].1.key;
        if key.as_ref().is_some_and(|key| state.keys.contains_key(key)) {
            return Ok(JobChange::KeyTaken);
        }
        let Some((_, mut entry)) = state.discarded.remove(place) else {
            return Ok(JobChange::Unknown);
        };
        entry.max_attempts = entry.max_attempts.max(entry.begun + 1);
        entry.moment = Some(entry.moment.map_or(now, |moment| moment.min(now)));
        let next = entry.wait_until(id, due_at(entry.moment, None));
        if let Some(key) = entry.key.clone() {
            state.keys.insert(key, id);
        }
        state.jobs.insert(id, entry);
        drop(state);
        self.submit(next, Refusal::IsReturned)?;
        Ok(JobChange::Done)
    }

    pub(super) fn discard_job(&self, id: JobId) -> Result<JobChange, QueueError> {
        let id = id.0;
        let mut state = self.state.lock();
        state.refuse_if_over()?;
        let Some(entry) = state.jobs.get_mut(&id) else {
            let is_remembered = state.discarded.iter().any(|(other, _)| *other == id);
            return Ok(if is_remembered { JobChange::Done } else { JobChange::Unknown });
        };
        entry.last_error.get_or_insert_with(|| BY_HAND.to_owned());
        entry.max_attempts = entry.begun;
        if let Stage::Running { stop, gives_up, .. } = &mut entry.stage {
            *gives_up = true;
            let stop = stop.clone();
            drop(state);
            stop.raise(StopReason::Cancelled);
            return Ok(JobChange::Signalled);
        }
        let left = state.withdraw(id);
        let forgotten = state.remove(id).and_then(|entry| state.remember_discarded(id, entry));
        drop(state);
        drop(forgotten);
        self.clear(left);
        Ok(JobChange::Done)
    }

    pub(super) fn remove_job(&self, id: JobId) -> Result<JobChange, QueueError> {
        let id = id.0;
        let mut state = self.state.lock();
        state.refuse_if_over()?;
        match state.jobs.get(&id) {
            Some(entry) if entry.runs() => return Ok(JobChange::Running),
            Some(_) => {}
            None => {
                let place = state.discarded.iter().position(|(other, _)| *other == id);
                let removed = place.and_then(|place| state.discarded.remove(place));
                let is_removed = removed.is_some();
                drop(state);
                return Ok(if is_removed { JobChange::Done } else { JobChange::Unknown });
            }
        }
        self.take_off(state, id);
        Ok(JobChange::Done)
    }
}

fn stage_of(entry: &Entry) -> JobStage {
    if entry.runs() { JobStage::Running } else { JobStage::Waiting }
}

impl State {
    /// Whether a job waits for the end of a pause, or will if that lasts.
    fn is_paused(&self, entry: &Entry, stage: JobStage) -> bool {
        stage == JobStage::Waiting && self.pauses.get(entry.definition.name).is_some()
    }

    /// Returns what a job waits for that is due.
    fn wait_of(&self, id: i64, entry: &Entry, stage: JobStage) -> Option<JobWait> {
        // One that was discarded is as it was when its last attempt ended.
        if stage != JobStage::Waiting || !matches!(entry.stage, Stage::InLine) {
            return None;
        }
        let slots = self.slots.get(entry.definition.name);
        Some(slots.and_then(|slots| slots.wait_of(id, entry)).unwrap_or(JobWait::OrderingKey))
    }

    fn entry(&self, id: i64) -> Option<(&Entry, JobStage)> {
        let kept = self.jobs.get(&id).map(|entry| (entry, stage_of(entry)));
        kept.or_else(|| {
            let mut discarded = self.discarded.iter();
            let (_, entry) = discarded.find(|(other, _)| *other == id)?;
            Some((entry, JobStage::Discarded))
        })
    }
}

impl Board {
    pub(super) fn await_result_of(&self, id: JobId) -> QueueFuture<JobState> {
        let (promise, reply) = QueueFuture::promised();
        let mut state = self.state.lock();
        match state.state_of(id.0) {
            Ok(JobState::Waiting { .. } | JobState::Running) => state.results.wait(id.0, promise),
            ended => {
                drop(state);
                promise.keep(ended);
            }
        }
        reply
    }

    pub(super) fn past_runs(&self, filter: &HistoryFilter) -> Result<Vec<PastRun>, QueueError> {
        let mut state = self.state.lock();
        state.refuse_if_over()?;
        Ok(state.past.of(filter, self.executor.clock().now()))
    }

    /// Answers those whose jobs have come to an end. The caller holds no lock.
    pub(super) fn answer_waiting(&self) {
        let mut state = self.state.lock();
        let mut answers = Vec::<(Promise<JobState>, Result<JobState, QueueError>)>::new();
        for id in std::mem::take(&mut state.results.ended) {
            let ended = state.state_of(id);
            // A person may have retried it.
            if !matches!(ended, Ok(JobState::Waiting { .. } | JobState::Running)) {
                let promises = state.results.waiting.remove(&id).unwrap_or_default();
                let same = || ended.as_ref().map(JobState::clone).map_err(|_| QueueError::ShutDown);
                answers.extend(promises.into_iter().map(|promise| (promise, same())));
            }
        }
        drop(state);
        answers.into_iter().for_each(|(promise, result)| promise.keep(result));
    }
}
