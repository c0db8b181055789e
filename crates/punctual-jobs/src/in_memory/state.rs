//! The state of a queue in memory, which the lock of the board protects.
//!
//! # Invariants
//!
//! * A key leads to the entry that has it, and that entry waits or runs. A job loses its key when it ends,
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
use crate::{JobId, JobState, JobSummary, QueueError, ReleasedJob, ShutdownReport};

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
    /// The last jobs that were discarded, as they were then.
    pub(super) discarded: VecDeque<(i64, Entry)>,
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
            entry.key = None;
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
            Stage::InLine | Stage::Paused | Stage::Running { .. } => None,
        };
        (task, self.leave_lines(id))
    }

    /// Takes a job out of all lines. Returns the jobs that are next.
    pub(super) fn leave_lines(&mut self, id: i64) -> Vec<Next> {
        self.leave_line(id).into_iter().chain(self.leave_slot(id)).collect()
    }

    pub(super) fn remove(&mut self, id: i64) -> Option<Entry> {
        self.forget_ready(id);
        let entry = self.jobs.remove(&id)?;
        self.results.note_end(id);
        if let Some(key) = entry.key.as_ref().filter(|key| self.keys.get(*key) == Some(&id)) {
            self.keys.remove(key);
        }
        Some(entry)
    }

    pub(super) fn refuse_if_over(&self) -> Result<(), QueueError> {
        let is_over = self.closing.as_ref().is_some_and(|closing| closing.is_over);
        if is_over { Err(QueueError::ShutDown) } else { Ok(()) }
    }

    /// Remembers a job that is off the board. Returns the one that is forgotten for it.
    pub(super) fn remember_discarded(&mut self, id: i64, mut entry: Entry) -> Option<Entry> {
        entry.stage = Stage::InLine;
        let is_full = self.discarded.len() == REMEMBERED;
        let forgotten = if is_full { self.discarded.pop_front() } else { None };
        self.discarded.push_back((id, entry));
        forgotten.map(|(_, entry)| entry)
    }

    pub(super) fn state_of(&self, id: i64) -> Result<JobState, QueueError> {
        self.refuse_if_over()?;
        if let Some(value) = self.results.get(id, self.clock.now()) {
            return Ok(JobState::Returned(value));
        }
        let discarded = || self.discarded.iter().find(|(other, _)| *other == id);
        Ok(match self.jobs.get(&id) {
            Some(entry) if entry.runs() => JobState::Running,
            Some(entry) => {
                JobState::Waiting { attempts: entry.begun, last_error: entry.last_error.clone() }
            }
            None => match discarded() {
                Some((_, entry)) => {
                    JobState::Discarded { last_error: entry.last_error.clone().unwrap_or_default() }
                }
                None => JobState::Gone,
            },
        })
    }
}

/// See [`stopping`](super::stopping).
pub(super) struct Closing {
    /// Raised when nothing runs any more.
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
                payload: entry.payload.to_text(),
                key: entry.key,
                attempts: entry.begun,
            });
        }
    }
}
