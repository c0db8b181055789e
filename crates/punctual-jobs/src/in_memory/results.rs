//! Results on the board, and who waits for one.
//!
//! A result is put there in the step that takes its job off. Whatever takes a job off that is waited for notes it, and the promises
//! are kept after the lock was released, because a waker is user code: where the tasks of the next jobs are submitted.

use std::{
    collections::{BTreeSet, HashMap},
    time::Instant,
};

use crate::{
    JobState, JobValue,
    job::payload::Payload,
    queue::{queue_future::Promise, results::Returned},
};

#[derive(Default)]
pub(super) struct Results {
    /// The results, each with the moment until which it is kept.
    kept: HashMap<i64, (Payload, Option<Instant>)>,
    ends: BTreeSet<(Instant, i64)>,
    pub(super) waiting: HashMap<i64, Vec<Promise<JobState>>>,
    /// The jobs that are waited for and have come to an end.
    pub(super) ended: Vec<i64>,
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

    /// Returns the result of a job that is kept now.
    pub(super) fn get(&self, id: i64, now: Instant) -> Option<JobValue> {
        let (value, until) = self.kept.get(&id)?;
        let is_kept = until.is_none_or(|until| until > now);
        is_kept.then(|| JobValue(value.clone()))
    }

    pub(super) fn wait(&mut self, id: i64, promise: Promise<JobState>) {
        let waiting = self.waiting.entry(id).or_default();
        waiting.retain(Promise::is_awaited);
        waiting.push(promise);
    }

    /// Returns the promises to those that wait for a job that has come to an end, to be dropped without the lock.
    pub(super) fn take_ended(&mut self) -> Vec<Promise<JobState>> {
        let ended = std::mem::take(&mut self.ended);
        ended.iter().filter_map(|id| self.waiting.remove(id)).flatten().collect()
    }
}
