//! Results on the board, and who waits for one.
//!
//! A result is put there in the step that takes its job off. Whatever takes a job off that is waited for notes it, and the promises
//! are kept after the lock was released, because a waker is user code: where the tasks of the next jobs are submitted.

use std::{
    collections::{BTreeSet, HashMap},
    time::Instant,
};

use super::{Board, board::State};
use crate::{
    JobId, JobResult, JobState, JobValue, QueueError, QueueFuture,
    job::payload::Payload,
    queue::{queue_future::Promise, results::Returned},
};

#[derive(Default)]
pub(super) struct Results {
    /// The results, each with the moment until which it is kept.
    kept: HashMap<i64, (Payload, Option<Instant>)>,
    ends: BTreeSet<(Instant, i64)>,
    waiting: HashMap<i64, Vec<Promise<JobResult>>>,
    /// The jobs that are waited for and have come to an end.
    ended: Vec<i64>,
}

impl Results {
    pub(super) fn put(&mut self, id: i64, returned: Returned, now: Instant) {
        while let Some((_, old)) = self.ends.first().copied().filter(|(end, _)| *end <= now) {
            self.ends.pop_first();
            self.kept.remove(&old);
        }
        let until = now.checked_add(returned.keep);
        self.ends.extend(until.map(|until| (until, id)));
        self.kept.insert(id, (returned.value, until));
    }

    /// A job has come to an end.
    pub(super) fn note_end(&mut self, id: i64) {
        if self.waiting.contains_key(&id) {
            self.ended.push(id);
        }
    }

    /// Returns the promises to those that wait for a job that has come to an end, to be dropped without the lock.
    pub(super) fn take_ended(&mut self) -> Vec<Promise<JobResult>> {
        let ended = std::mem::take(&mut self.ended);
        ended.iter().filter_map(|id| self.waiting.remove(id)).flatten().collect()
    }
}

impl Board {
    pub(super) fn result_of(&self, id: JobId) -> Result<JobResult, QueueError> {
        self.state.lock().result_of(id.0)
    }

    pub(super) fn await_result_of(&self, id: JobId) -> QueueFuture<JobResult> {
        let (promise, reply) = QueueFuture::promised();
        let mut state = self.state.lock();
        match state.result_of(id.0) {
            Ok(JobResult::Pending) => {
                let waiting = state.results.waiting.entry(id.0).or_default();
                waiting.retain(Promise::is_awaited);
                waiting.push(promise);
            }
            result => {
                drop(state);
                promise.keep(result);
            }
        }
        reply
    }

    /// Answers those whose jobs have come to an end. The caller holds no lock.
    pub(super) fn answer_waiting(&self) {
        let mut state = self.state.lock();
        let mut answers = Vec::<(Promise<JobResult>, Result<JobResult, QueueError>)>::new();
        for id in std::mem::take(&mut state.results.ended) {
            let result = state.result_of(id).map_err(|_| QueueError::ShutDown);
            // A person may have retried it.
            if !matches!(result, Ok(JobResult::Pending)) {
                let promises = state.results.waiting.remove(&id).unwrap_or_default();
                let same =
                    || result.as_ref().map(JobResult::clone).map_err(|_| QueueError::ShutDown);
                answers.extend(promises.into_iter().map(|promise| (promise, same())));
            }
        }
        drop(state);
        answers.into_iter().for_each(|(promise, result)| promise.keep(result));
    }
}

impl State {
    fn result_of(&self, id: i64) -> Result<JobResult, QueueError> {
        let now = self.clock.now();
        let kept = self.results.kept.get(&id);
        let kept = kept.filter(|(_, until)| until.is_none_or(|until| until > now));
        Ok(match (kept, self.state_of(id)?) {
            (Some((value, _)), _) => JobResult::Ready(JobValue(value.clone())),
            (None, JobState::Discarded { last_error }) => JobResult::Discarded { last_error },
            (None, JobState::Gone) => JobResult::Gone,
            (None, _) => JobResult::Pending,
        })
    }
}
