//! The board: which jobs there are, and the verbs that change them.
//!
//! # Invariants, under the lock
//!
//! * A key leads to the entry that has it, and that entry waits or runs. A job loses its key when it ends,
//!   when it is cancelled while it runs, and when another one is enqueued under the key while it runs.
//! * An entry's generation belongs to one task. Whatever makes that task the wrong one raises it.
//! * Only its own attempt changes an entry that runs, except for how it is to end.
//! * `running` is the number of entries that run.
//! * What [`Ready`] has are entries that wait, with their present generation.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use parking_lot::MutexGuard;
use punctual::{TaskHandle, trigger::Due};

use super::{
    Board,
    attempt::{Attempt, Refusal},
    ordering::Turns,
    past::Past,
    pauses::Pauses,
    ready::Ready,
    refused,
    results::Results,
    slots::Slots,
    stopping::Closing,
};
use crate::{
    Cancellation, JobHandle, JobId, JobState, Priority, QueueError, Rescheduling, StopReason, When,
    job::until,
    job::{jobs::Definition, payload::Payload},
    queue::engine::NewJob,
    run::stop::StopSignal,
};

/// How many jobs that were discarded are remembered.
const REMEMBERED: usize = 1000;

pub(super) struct State {
    pub(super) last_id: i64,
    pub(super) jobs: HashMap<i64, Entry>,
    pub(super) keys: HashMap<String, i64>,
    pub(super) turns: HashMap<String, Turns>,
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

pub(super) struct Entry {
    pub(super) definition: Arc<Definition>,
    pub(super) payload: Payload,
    pub(super) key: Option<String>,
    pub(super) ordering_key: Option<String>,
    /// The moment by which the jobs with one ordering key are ordered, and those of one priority.
    pub(super) moment: Option<Instant>,
    /// The moment, if the wall clock decides.
    pub(super) wall: Option<SystemTime>,
    pub(super) priority: Priority,
    pub(super) limit_key: Option<String>,
    pub(super) traceparent: Option<String>,
    /// How many attempts have begun.
    pub(super) begun: u32,
    pub(super) max_attempts: u32,
    pub(super) last_error: Option<String>,
    pub(super) generation: u64,
    pub(super) stage: Stage,
}

pub(super) enum Stage {
    /// Its task will begin an attempt.
    Waiting(Option<TaskHandle>),
    /// It is due, and waits for its turn: another job with its ordering key runs or is about to, or as many of its kind as
    /// may.
    InLine,
    /// It is due, has its turn, and waits for the end of its kind's [pause](super::pauses).
    Paused,
    /// An attempt is running.
    Running {
        stop: StopSignal,
        /// The job is gone when this attempt ends, however it ends: it was cancelled, or its key was enqueued again.
        is_retired: bool,
        /// There is no further attempt: it was discarded while it runs.
        gives_up: bool,
        since: Instant,
    },
}

/// A task that has to be submitted: the next attempt of a job.
#[must_use = "the job does not run unless its task is submitted"]
pub(super) struct Next {
    pub(super) id: i64,
    pub(super) generation: u64,
    pub(super) due: Due,
}

impl Board {
    /// Stores a job, or replaces the waiting one with its key. A unique one is skipped if there is one with its key.
    pub(super) fn accept(&self, new_job: NewJob) -> Result<JobHandle, QueueError> {
        let definition = self.definition_for(&new_job)?;
        let mut state = self.state.lock();
        if state.closing.is_some() {
            return Err(QueueError::ShutDown);
        }
        let (handle, stored) = self.store(&mut state, definition, new_job);
        drop(state);
        stored.map_or(Ok(()), |stored| self.begin(stored))?;
        Ok(handle)
    }

    /// Returns the kind of a job that is to be stored.
    pub(super) fn definition_for(&self, new_job: &NewJob) -> Result<Arc<Definition>, QueueError> {
        let name = new_job.name;
        self.definitions.handled(name).map(Arc::clone).ok_or(QueueError::NoHandler { name })
    }

    /// Puts a job on the board, unless it is skipped. What is left to be done needs no lock ([`begin`](Self::begin)).
    pub(super) fn store(
        &self,
        state: &mut State,
        definition: Arc<Definition>,
        new_job: NewJob,
    ) -> (JobHandle, Option<Stored>) {
        let name = new_job.name;
        let (moment, due) = self.moment_of(new_job.when);
        let present = new_job.key.as_ref().and_then(|key| state.keys.get(key));
        if let Some(&id) = present.filter(|_| new_job.is_unique) {
            return (JobHandle { id: JobId(id), name, is_skipped: true }, None);
        }
        let replaced = new_job.key.as_ref().and_then(|key| state.replaced_by(key));
        let kept = replaced.as_ref().filter(|old| new_job.keeps_moment && old.begun == 0);
        let (moment, due) = match kept {
            Some(old) => (old.moment, due_at(old.moment, old.wall)),
            None => (moment, due),
        };
        let (id, generation) = match &replaced {
            Some(old) => (old.id, old.generation + 1),
            None => {
                state.last_id += 1;
                (state.last_id, 0)
            }
        };
        let entry = Entry {
            definition,
            payload: new_job.payload,
            key: new_job.key,
            ordering_key: new_job.ordering_key,
            moment,
            wall: wall_of(&due),
            priority: new_job.priority,
            limit_key: new_job.limit_key,
            traceparent: new_job.traceparent,
            begun: 0,
            max_attempts: new_job.max_attempts,
            last_error: None,
            generation,
            stage: Stage::Waiting(None),
        };
        if let Some(key) = entry.key.clone() {
            state.keys.insert(key, id);
        }
        state.jobs.insert(id, entry);
        let (task, turns) = replaced.map_or((None, Vec::new()), |old| (old.task, old.turns));
        let next = Next { id, generation, due };
        let handle = JobHandle { id: JobId(id), name, is_skipped: false };
        (handle, Some(Stored { task, turns, next }))
    }

    /// Makes the task of a job that was stored. The caller holds no lock.
    pub(super) fn begin(&self, stored: Stored) -> Result<(), QueueError> {
        self.cancel_task(stored.task);
        self.submit_or_discard(stored.turns);
        self.submit(stored.next, Refusal::IsReturned)
    }

    pub(super) fn move_to(&self, key: &str, when: When) -> Result<Rescheduling, QueueError> {
        let (moment, due) = self.moment_of(when);
        let state = self.state.lock();
        state.refuse_if_over()?;
        let Some(&id) = state.keys.get(key) else { return Ok(Rescheduling::Unknown) };
        self.move_job(state, id, (moment, due))
    }

    /// Takes a tick of a schedule: enqueues its job, unless one of those that it has enqueued waits. That one is made
    /// due, if it is not.
    pub(super) fn tick(
        &self,
        new_job: &NewJob,
        enqueued: &mut Vec<JobId>,
    ) -> Result<(), QueueError> {
        let (now, due) = self.moment_of(new_job.when);
        let state = self.state.lock();
        enqueued.retain(|id| state.jobs.contains_key(&id.0));
        let waiting = enqueued.iter().find_map(|id| {
            let entry = state.jobs.get(&id.0)?;
            (!matches!(entry.stage, Stage::Running { .. })).then_some((id.0, entry.moment))
        });
        match waiting {
            None => {
                drop(state);
                enqueued.push(self.accept(new_job.clone())?.id());
                Ok(())
            }
            Some((id, moment)) if moment.is_none() || moment > now => {
                self.move_job(state, id, (now, due)).map(drop)
            }
            Some(_) => Ok(()),
        }
    }

    pub(super) fn move_job(
        &self,
        mut state: MutexGuard<'_, State>,
        id: i64,
        (moment, due): (Option<Instant>, Due),
    ) -> Result<Rescheduling, QueueError> {
        let Some(entry) = state.jobs.get(&id) else { return Ok(Rescheduling::Unknown) };
        if let Stage::Running { .. } = entry.stage {
            return Ok(Rescheduling::Running);
        }
        let (task, turn) = state.withdraw(id);
        let Some(entry) = state.jobs.get_mut(&id) else { return Ok(Rescheduling::Unknown) };
        (entry.moment, entry.wall) = (moment, wall_of(&due));
        let generation = entry.generation;
        drop(state);
        self.cancel_task(task);
        self.submit_or_discard(turn);
        self.submit(Next { id, generation, due }, Refusal::IsReturned)?;
        Ok(Rescheduling::Moved)
    }

    pub(super) fn cancel_by_key(&self, key: &str) -> Result<Cancellation, QueueError> {
        let mut state = self.state.lock();
        state.refuse_if_over()?;
        let Some(id) = state.keys.get(key).copied() else { return Ok(Cancellation::Unknown) };
        let Some(entry) = state.jobs.get_mut(&id) else { return Ok(Cancellation::Unknown) };
        if let Stage::Running { stop, is_retired, .. } = &mut entry.stage {
            *is_retired = true;
            entry.key = None;
            let stop = stop.clone();
            state.keys.remove(key);
            drop(state);
            stop.raise(StopReason::Cancelled);
            return Ok(Cancellation::Signalled);
        }
        let (task, turn) = state.withdraw(id);
        let entry = state.remove(id);
        drop(state);
        drop(entry);
        self.cancel_task(task);
        self.submit_or_discard(turn);
        Ok(Cancellation::Removed)
    }

    /// Makes the task of the next attempt. If the executor refuses it, the job is removed.
    pub(super) fn submit(&self, next: Next, refusal: Refusal) -> Result<(), QueueError> {
        let mut state = self.state.lock();
        let definition = state.jobs.get(&next.id).map(|it| Arc::clone(&it.definition));
        state.note_ready(&next);
        let (Some(definition), Some(board)) = (definition, self.arc()) else { return Ok(()) };
        drop(state);
        let Next { id, generation, due, .. } = next;
        let mut task = self.executor.task().name(definition.name);
        if let Some(limit) = definition.timeout {
            task = task.timeout(limit).on_failure(punctual::FailurePolicy::resume());
        }
        let mut attempt = Attempt::new(board, definition, (id, generation), refusal);
        let trigger = punctual::trigger::from_fn(move |last| (last.runs() == 0).then_some(due));
        match task.repeat(trigger, move || attempt.run()) {
            Ok(future) => {
                let handle = future.task_handle();
                state = self.state.lock();
                let is_wrong = match state.jobs.get_mut(&id) {
                    Some(entry) if entry.generation == generation => {
                        if let Stage::Waiting(task) = &mut entry.stage {
                            *task = Some(handle.clone());
                        }
                        false
                    }
                    _ => true,
                };
                drop(state);
                self.cancel_task(is_wrong.then_some(handle));
                Ok(())
            }
            // The attempt was dropped with the error, and has taken the entry with it.
            Err(error) => Err(refused(&error)),
        }
    }

    /// Submits tasks for which no caller waits. If the executor refuses one, its job is discarded.
    pub(super) fn submit_or_discard(&self, next: impl IntoIterator<Item = Next>) {
        self.arm_tokens();
        self.answer_waiting();
        for next in next {
            let _ = self.submit(next, Refusal::Discards);
        }
    }

    /// Cancels a task that would do nothing. It drops what it has on the way, so no lock may be held.
    pub(super) fn cancel_task(&self, task: Option<TaskHandle>) {
        if let Some(task) = task {
            task.cancel();
        }
    }

    /// Returns the moment as an instant, and as the answer of a trigger. The wall clock is followed: the
    /// instant of a wall time is an estimate, and only orders jobs with one ordering key.
    pub(super) fn moment_of(&self, when: When) -> (Option<Instant>, Due) {
        let clock = self.executor.clock();
        let instant = match when {
            When::After(delay) => clock.now().checked_add(delay),
            When::At(instant) => Some(instant),
            When::Wall(time) => {
                let delay = until(time, clock.wall_time());
                return (clock.now().checked_add(delay), Due::Wall(time));
            }
        };
        (instant, instant.map_or(Due::OnDemand, Due::At))
    }
}

/// Returns the answer of a trigger for a moment that an entry has.
pub(super) fn due_at(moment: Option<Instant>, wall: Option<SystemTime>) -> Due {
    wall.map_or_else(|| moment.map_or(Due::OnDemand, Due::At), Due::Wall)
}

fn wall_of(due: &Due) -> Option<SystemTime> {
    if let Due::Wall(time) = due { Some(*time) } else { None }
}

/// A job that is on the board and has no task yet.
#[must_use = "the job does not run unless its task is submitted"]
pub(super) struct Stored {
    /// The task of the job that it has replaced, and the jobs whose turns it is instead.
    task: Option<TaskHandle>,
    turns: Vec<Next>,
    next: Next,
}

/// A waiting entry that was replaced.
pub(super) struct Replaced {
    id: i64,
    generation: u64,
    begun: u32,
    moment: Option<Instant>,
    wall: Option<SystemTime>,
    task: Option<TaskHandle>,
    turns: Vec<Next>,
}

impl State {
    /// A board without a job, which keeps a history for that long.
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
    fn replaced_by(&mut self, key: &str) -> Option<Replaced> {
        let id = *self.keys.get(key)?;
        let entry = self.jobs.get_mut(&id)?;
        if let Stage::Running { is_retired, .. } = &mut entry.stage {
            *is_retired = true;
            entry.key = None;
            return None;
        }
        let (task, turns) = self.withdraw(id);
        let entry = self.jobs.get(&id)?;
        let (generation, begun) = (entry.generation, entry.begun);
        let (moment, wall) = (entry.moment, entry.wall);
        Some(Replaced { id, generation, begun, moment, wall, task, turns })
    }

    /// Takes a job that does not run out of wherever it waits, so that it can wait elsewhere. Returns its
    /// task, which is the wrong one now, and the jobs whose turns it is instead.
    pub(super) fn withdraw(&mut self, id: i64) -> (Option<TaskHandle>, Vec<Next>) {
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

    /// A job does not wait for anything any more, and does not run. Returns the jobs that are next.
    pub(super) fn leave_lines(&mut self, id: i64) -> Vec<Next> {
        self.leave_line(id).into_iter().chain(self.leave_slot(id)).collect()
    }

    /// Takes the entry of a job off the board.
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
        let is_over = self.closing.as_ref().is_some_and(Closing::is_over);
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
        let discarded = || self.discarded.iter().find(|(other, _)| *other == id);
        Ok(match self.jobs.get(&id) {
            Some(Entry { stage: Stage::Running { .. }, .. }) => JobState::Running,
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
