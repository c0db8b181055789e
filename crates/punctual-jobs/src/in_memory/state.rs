//! The state of a queue in memory, which the lock of the board protects.
//!
//! # Invariants
//!
//! * A key leads to the entry that has it, and that entry waits or runs. A key leads to a job no more when that ends,
//!   when it is cancelled while it runs, and when another one is enqueued under the key while it runs.
//! * An entry's generation belongs to one task. Whatever makes that task the wrong one raises it.
//! * Only its own attempt changes an entry that runs, except for how it is to end.
//! * `running` is the number of entries that run.
//! * What [`Ready`] has are entries that wait, with their present generation.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use punctual::{CancellationToken, TaskHandle};

use super::{
    entry::{Entry, Next, Stage},
    ordering::Turn,
    past::Past,
    pauses::Pauses,
    ready::Ready,
    results::Results,
    slots::Slots,
};
use crate::{JobId, JobStage, JobState, JobSummary, QueueError, ReleasedJob, ShutdownReport};

const REMEMBERED: usize = 1000;

/// See the [module](self).
pub(super) struct State {
    pub(super) last_id: i64,
    pub(super) jobs: HashMap<i64, Entry>,
    pub(super) keys: HashMap<String, i64>,
    pub(super) turns: HashMap<String, Turn>,
    pub(super) ready: Ready,
    pub(super) slots: HashMap<&'static str, Slots>,
    pub(super) clock: punctual::Clock,
    pub(super) running: usize,
    pub(super) closing: Option<Closing>,
    /// The last jobs that were discarded.
    pub(super) discarded: VecDeque<i64>,
    pub(super) past: Past,
    pub(super) pauses: Pauses,
    pub(super) results: Results,
}

/// What a caller does, without the lock, for a job that has left its place: cancel its task, and submit the jobs that are next.
pub(super) type Left = (Option<TaskHandle>, Vec<Next>);

impl State {
    pub(super) fn new(history: Option<Duration>, clock: punctual::Clock) -> Self {
        Self {
            clock,
            last_id: 0,
            jobs: HashMap::new(),
            keys: HashMap::new(),
            turns: HashMap::new(),
            running: 0,
            closing: None,
            discarded: VecDeque::new(),
            slots: HashMap::new(),
            ready: Ready::default(),
            past: Past::kept_for(history),
            pauses: Pauses::default(),
            results: Results::default(),
        }
    }

    /// Takes out the waiting job with this key, to be replaced; one that runs loses the key.
    pub(super) fn replaced_by(&mut self, key: &str) -> Option<(i64, Entry, Left)> {
        let id = *self.keys.get(key)?;
        let entry = self.jobs.get_mut(&id)?;
        if let Stage::Running { is_retired, .. } = &mut entry.stage {
            *is_retired = true;
            entry.job.key = None;
            return None;
        }
        let left = self.withdraw(id);
        Some((id, self.jobs.remove(&id)?, left))
    }

    /// Takes a job that does not run out of its line, so that it can wait elsewhere.
    pub(super) fn withdraw(&mut self, id: i64) -> Left {
        self.forget_ready(id);
        let Some(entry) = self.jobs.get_mut(&id) else { return (None, Vec::new()) };
        entry.generation += 1;
        let stage = std::mem::replace(&mut entry.stage, Stage::Waiting(None));
        let task = match stage {
            Stage::Waiting(task) => task,
            Stage::InLine | Stage::Running { .. } | Stage::Discarded => None,
        };
        (task, self.leave_lines(id))
    }

    /// Takes a job out of all lines. Returns the jobs that are next.
    pub(super) fn leave_lines(&mut self, id: i64) -> Vec<Next> {
        self.leave_line(id).into_iter().chain(self.leave_slot(id)).collect()
    }

    pub(super) fn remove(&mut self, id: i64) -> Option<Entry> {
        self.end(id);
        self.jobs.remove(&id)
    }

    /// A job has come to its end: it is not called any more, has no key, and those that wait for it are to be answered.
    fn end(&mut self, id: i64) {
        self.forget_ready(id);
        self.results.note_end(id);
        let key = self.jobs.get(&id).and_then(|entry| entry.job.key.as_ref());
        if let Some(key) = key.filter(|key| self.keys.get(*key) == Some(&id)) {
            self.keys.remove(key);
        }
    }

    pub(super) fn refuse_if_over(&self) -> Result<(), QueueError> {
        let is_over = self.closing.as_ref().is_some_and(|closing| closing.is_over);
        if is_over { Err(QueueError::ShutDown) } else { Ok(()) }
    }

    /// Keeps a job that is discarded, until a thousand others are. Payloads and errors are texts: no user code is dropped with one.
    pub(super) fn set_aside(&mut self, id: i64) {
        self.end(id);
        let Some(entry) = self.jobs.get_mut(&id) else { return };
        entry.stage = Stage::Discarded;
        self.discarded.push_back(id);
        if self.discarded.len() > REMEMBERED {
            self.discarded.pop_front().and_then(|first| self.jobs.remove(&first));
        }
    }

    /// A discarded job waits again, or goes.
    pub(super) fn remember_no_more(&mut self, id: i64) {
        self.discarded.retain(|other| *other != id);
    }

    pub(super) fn state_of(&self, id: i64) -> Result<JobState, QueueError> {
        self.refuse_if_over()?;
        if let Some(value) = self.results.get(id, self.clock.now()) {
            return Ok(JobState::Returned(value));
        }
        let Some(entry) = self.jobs.get(&id) else { return Ok(JobState::Gone) };
        let last_error = entry.last_error.clone();
        Ok(match entry.job_stage() {
            JobStage::Waiting => JobState::Waiting { attempts: entry.begun, last_error },
            JobStage::Running => JobState::Running,
            JobStage::Discarded => {
                JobState::Discarded { last_error: last_error.unwrap_or_default() }
            }
        })
    }
}

/// See [`stopping`](super::stopping).
pub(super) struct Closing {
    /// Cancelled when nothing runs any more.
    pub(super) idle: CancellationToken,
    /// True when the running jobs were asked to stop.
    pub(super) has_asked: bool,
    /// True when the shutdown has returned: from then on nothing is answered.
    pub(super) is_over: bool,
    pub(super) report: ShutdownReport,
}

impl Closing {
    pub(super) fn note_ran(&mut self, id: i64, name: &'static str) {
        self.report.ran.push(JobSummary { id: JobId(id), name });
    }

    pub(super) fn release(&mut self, id: i64, entry: Option<Entry>) {
        if let Some(entry) = entry {
            self.report.released.push(ReleasedJob {
                id: JobId(id),
                name: entry.definition.name,
                payload: entry.job.payload.to_text(),
                key: entry.job.key,
                attempts: entry.begun,
            });
        }
    }
}
