//! The board, and the verbs that change its jobs.

use std::{
    sync::{Arc, Weak, atomic::AtomicU64},
    time::{Instant, SystemTime},
};

use parking_lot::{Mutex, MutexGuard};
use punctual::{Handle, TaskHandle, trigger::Due};

use super::{
    entry::{Entry, Next, Stage, due_at},
    state::{Left, State},
};
use crate::{
    JobChange, JobHandle, JobId, JobStage, QueueError, StopReason, When,
    job::{
        jobs::{Definition, Definitions},
        until,
    },
    queue::engine::NewJob,
};

pub(super) struct Board {
    pub(super) me: Weak<Board>,
    pub(super) executor: Handle,
    pub(super) definitions: Arc<Definitions>,
    /// Whether any kind has a limit for a window of time.
    pub(super) has_windows: bool,
    pub(super) state: Mutex<State>,
    /// The last fencing token that was drawn.
    pub(super) fences: AtomicU64,
    pub(super) periodic: Mutex<Vec<TaskHandle>>,
}

impl Board {
    /// Stores a job, or replaces the waiting one with its key. A unique one is skipped if there is one with its key.
    pub(super) fn accept(&self, new_job: NewJob) -> Result<JobHandle, QueueError> {
        Ok(self.accept_all(vec![new_job])?.remove(0))
    }

    /// Puts a job on the board, unless it is skipped. What is left to be done needs no lock ([`begin`](Self::begin)).
    pub(super) fn store(
        &self,
        state: &mut State,
        definition: Arc<Definition>,
        new_job: NewJob,
    ) -> (JobHandle, Option<(Left, Next)>) {
        let name = new_job.name;
        let (moment, due) = self.moment_of(new_job.when);
        let key = new_job.key.clone();
        let present = new_job.key.as_ref().and_then(|key| state.keys.get(key));
        if let Some(&id) = present.filter(|_| new_job.is_unique) {
            return (JobHandle { id: JobId(id), name, was_skipped: true }, None);
        }
        let replaced = new_job.key.as_ref().and_then(|key| state.replaced_by(key));
        let old = replaced.as_ref().map(|(_, old, _)| old);
        let (moment, due) = match old.filter(|old| new_job.keeps_moment && old.begun == 0) {
            Some(old) => (old.moment, due_at(old.moment, old.wall)),
            None => (moment, due),
        };
        let generation = old.map_or(0, |old| old.generation + 1);
        let (id, left) = match replaced {
            Some((id, _, left)) => (id, left),
            None => {
                state.last_id += 1;
                (state.last_id, Left::default())
            }
        };
        let entry = Entry {
            definition,
            job: new_job,
            moment,
            wall: wall_of(&due),
            begun: 0,
            last_error: None,
            generation,
            stage: Stage::Waiting(None),
        };
        state.keys.extend(key.map(|key| (key, id)));
        state.jobs.insert(id, entry);
        let handle = JobHandle { id: JobId(id), name, was_skipped: false };
        (handle, Some((left, Next { id, generation, due })))
    }

    /// Makes the task of a job that was stored or moved. The caller holds no lock.
    pub(super) fn begin(&self, (left, next): (Left, Next)) -> Result<(), QueueError> {
        self.clear(left);
        self.submit(next, Refusal::IsReturned)
    }

    /// Cancels the old task of a job, and submits those of the jobs that are next. The caller holds no lock.
    pub(super) fn clear(&self, (task, turns): Left) {
        self.cancel_task(task);
        self.submit_or_discard(turns);
    }

    pub(super) fn take_off(&self, mut state: MutexGuard<'_, State>, id: i64) {
        let left = state.withdraw(id);
        let entry = state.remove(id);
        drop(state);
        drop(entry);
        self.clear(left);
    }

    pub(super) fn move_to(&self, key: &str, when: When) -> Result<JobChange, QueueError> {
        let (moment, due) = self.moment_of(when);
        let state = self.state.lock();
        state.refuse_if_over()?;
        let Some(&id) = state.keys.get(key) else { return Ok(JobChange::Unknown) };
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
            (entry.job_stage() == JobStage::Waiting).then_some((id.0, entry.moment))
        });
        match waiting {
            None => {
                drop(state);
                enqueued.push(self.accept(new_job.clone())?.id);
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
    ) -> Result<JobChange, QueueError> {
        if state.jobs.get(&id).is_some_and(Entry::runs) {
            return Ok(JobChange::Running);
        }
        let left = state.withdraw(id);
        let Some(entry) = state.jobs.get_mut(&id) else { return Ok(JobChange::Unknown) };
        (entry.moment, entry.wall) = (moment, wall_of(&due));
        let generation = entry.generation;
        drop(state);
        self.begin((left, Next { id, generation, due }))?;
        Ok(JobChange::Done)
    }

    pub(super) fn cancel_by_key(&self, key: &str) -> Result<JobChange, QueueError> {
        let mut state = self.state.lock();
        state.refuse_if_over()?;
        let Some(id) = state.keys.get(key).copied() else { return Ok(JobChange::Unknown) };
        let Some(entry) = state.jobs.get_mut(&id) else { return Ok(JobChange::Unknown) };
        if let Stage::Running { stop, is_retired, .. } = &mut entry.stage {
            *is_retired = true;
            entry.job.key = None;
            let stop = stop.clone();
            state.keys.remove(key);
            drop(state);
            stop.cancel(StopReason::Cancelled);
            return Ok(JobChange::Signalled);
        }
        self.take_off(state, id);
        Ok(JobChange::Done)
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

pub(super) fn wall_of(due: &Due) -> Option<SystemTime> {
    if let Due::Wall(time) = due { Some(*time) } else { None }
}

/// How a refusal of the task by the executor is reported.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The caller that has enqueued the job or moved it gets an error.
    IsReturned,
    /// The callback for discarded jobs is called.
    Discards,
}

impl Board {
    /// Stores jobs in one step under the lock. If an executor with a bound refuses a task, those that have not begun are taken off
    /// again.
    pub(super) fn accept_all(&self, jobs: Vec<NewJob>) -> Result<Vec<JobHandle>, QueueError> {
        let definition_for = |job: &NewJob| {
            let definition = self.definitions.handled(job.name).map(Arc::clone);
            definition.ok_or(QueueError::NoHandler { name: job.name })
        };
        let definitions = jobs.iter().map(definition_for).collect::<Result<Vec<_>, _>>()?;
        let mut state = self.state.lock();
        if state.closing.is_some() {
            return Err(QueueError::ShutDown);
        }
        let all = definitions.into_iter().zip(jobs);
        let (handles, stored): (Vec<_>, Vec<_>) =
            all.map(|(definition, job)| self.store(&mut state, definition, job)).unzip();
        drop(state);
        let mut refusal = None;
        for stored in stored.into_iter().flatten() {
            refusal = refusal.or(self.begin(stored).err());
        }
        let Some(error) = refusal else { return Ok(handles) };
        for handle in handles.iter().filter(|handle| !handle.was_skipped) {
            // One that runs goes on.
            let _ = self.remove_job(handle.id);
        }
        Err(error)
    }
}

pub(super) fn refused(error: &punctual::RejectedExecutionError) -> QueueError {
    QueueError::Refused(error.to_string().into())
}
