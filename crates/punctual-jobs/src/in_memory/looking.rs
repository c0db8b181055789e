//! A look at the board, and the changes that a person makes there: by the id of a job.
//!
//! A discarded job stays on the board without a task and a key that leads to it, until a thousand others are. A retry gives it
//! another generation, as if it was enqueued under its old id. A job that runs and is discarded is only marked: its own
//! attempt sets it aside.

use std::{collections::BTreeMap, time::SystemTime};

use punctual::trigger::Due;

use super::{
    board::{Board, Refusal},
    entry::{Entry, Stage},
    state::State,
};
use crate::{
    HistoryFilter, JobChange, JobFilter, JobId, JobStage, JobState, JobStatus, JobWait, KindCounts,
    PastRun, QueueError, QueueFuture, StopReason,
    queue::{change::BY_HAND, history::PAGE, machine, queue_future::Promise},
};

impl Board {
    pub(super) fn jobs_of(&self, filter: &JobFilter) -> Result<Vec<JobStatus>, QueueError> {
        let state = self.state.lock();
        state.refuse_if_over()?;
        let is = |asked: &Option<String>, has: Option<&String>| {
            asked.as_ref().is_none_or(|asked| Some(asked) == has)
        };
        let mut found: Vec<_> = (state.jobs.iter())
            .filter(|(id, entry)| {
                filter.after.is_none_or(|after| **id > after.0)
                    && filter.stage.is_none_or(|asked| asked == entry.job_stage())
                    && filter.kind.as_ref().is_none_or(|kind| kind == entry.definition.name)
                    && is(&filter.key, entry.job.key.as_ref())
                    && is(&filter.ordering_key, entry.job.ordering_key.as_ref())
                    && is(&filter.limit_key, entry.job.limit_key.as_ref())
                    && filter.schedule.is_none()
                    && (!filter.paused || state.is_paused(entry))
            })
            .collect();
        found.sort_unstable_by_key(|(id, _)| **id);
        found.truncate(filter.limit.unwrap_or(PAGE));
        let status = |(id, entry): (&i64, &Entry)| {
            let mut status = self.status(&state, *id, entry);
            status.payload = filter.payloads.then(|| entry.job.payload.to_text());
            status
        };
        Ok(found.into_iter().map(status).collect())
    }

    fn status(&self, state: &State, id: i64, entry: &Entry) -> JobStatus {
        let Entry { job, .. } = entry;
        JobStatus {
            id: JobId(id),
            kind: entry.definition.name.to_owned(),
            payload: None,
            waits_for: state.wait_of(id, entry),
            key: job.key.clone(),
            ordering_key: job.ordering_key.clone(),
            limit_key: job.limit_key.clone(),
            schedule: None,
            tick: None,
            stage: entry.job_stage(),
            paused: state.is_paused(entry),
            due: entry.moment.and_then(|moment| self.wall_of(moment)),
            attempts: entry.begun,
            max_attempts: job.max_attempts,
            priority: job.priority,
            machine: entry.runs().then(machine::name_of_this),
            since: entry.since().and_then(|since| self.wall_of(since)),
            last_error: entry.last_error.clone(),
        }
    }

    pub(super) fn counts_by_kind(&self) -> Result<Vec<KindCounts>, QueueError> {
        let now = self.executor.clock().now();
        let state = self.state.lock();
        state.refuse_if_over()?;
        let mut kinds: BTreeMap<&str, KindCounts> = BTreeMap::new();
        for (kind, pause) in &state.pauses.of_kinds {
            let kind = kinds.entry(kind).or_default();
            (kind.paused, kind.paused_until) = (true, pause.until);
        }
        for entry in state.jobs.values() {
            let kind = kinds.entry(entry.definition.name).or_default();
            match entry.job_stage() {
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
        let is_closing = state.closing.is_some();
        let State { jobs, keys, .. } = &mut *state;
        let Some(entry) = jobs.get_mut(&id) else { return Ok(JobChange::Unknown) };
        let moment = entry.moment.map_or(now, |moment| moment.min(now));
        match entry.job_stage() {
            JobStage::Running => return Ok(JobChange::Running),
            JobStage::Waiting => {
                return self.move_job(state, id, (Some(moment), Due::At(moment)));
            }
            JobStage::Discarded if is_closing => return Err(QueueError::ShutDown),
            JobStage::Discarded => {}
        }
        if let Some(key) = &entry.job.key {
            if keys.contains_key(key) {
                return Ok(JobChange::KeyTaken);
            }
            keys.insert(key.clone(), id);
        }
        entry.job.max_attempts = entry.job.max_attempts.max(entry.begun + 1);
        (entry.moment, entry.wall) = (Some(moment), None);
        let next = entry.wait_until(id, Due::At(moment));
        state.remember_no_more(id);
        drop(state);
        self.submit(next, Refusal::IsReturned)?;
        Ok(JobChange::Done)
    }

    pub(super) fn discard_job(&self, id: JobId) -> Result<JobChange, QueueError> {
        let id = id.0;
        let mut state = self.state.lock();
        state.refuse_if_over()?;
        let Some(entry) = state.jobs.get_mut(&id) else { return Ok(JobChange::Unknown) };
        entry.last_error.get_or_insert_with(|| BY_HAND.to_owned());
        entry.job.max_attempts = entry.begun;
        match &mut entry.stage {
            Stage::Discarded => Ok(JobChange::Done),
            Stage::Running { stop, gives_up, .. } => {
                *gives_up = true;
                let stop = stop.clone();
                drop(state);
                stop.cancel(StopReason::Cancelled);
                Ok(JobChange::Signalled)
            }
            Stage::Waiting(_) | Stage::InLine => {
                let left = state.withdraw(id);
                state.set_aside(id);
                drop(state);
                self.clear(left);
                Ok(JobChange::Done)
            }
        }
    }

    pub(super) fn remove_job(&self, id: JobId) -> Result<JobChange, QueueError> {
        let mut state = self.state.lock();
        state.refuse_if_over()?;
        match state.jobs.get(&id.0) {
            None => return Ok(JobChange::Unknown),
            Some(entry) if entry.runs() => return Ok(JobChange::Running),
            Some(_) => state.remember_no_more(id.0),
        }
        self.take_off(state, id.0);
        Ok(JobChange::Done)
    }
}

impl State {
    /// Whether a job waits for the end of a pause, or will if that lasts.
    fn is_paused(&self, entry: &Entry) -> bool {
        entry.job_stage() == JobStage::Waiting && self.pauses.has(entry.definition.name)
    }

    /// Returns what a job waits for that is due.
    fn wait_of(&self, id: i64, entry: &Entry) -> Option<JobWait> {
        if !matches!(entry.stage, Stage::InLine) {
            return None;
        }
        let slots = self.slots.get(entry.definition.name);
        let wait = slots.and_then(|slots| slots.wait_of(id, entry, self.clock.now()));
        wait.unwrap_or(Some(JobWait::OrderingKey))
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
