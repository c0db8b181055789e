//! One attempt: from the task that is due to what becomes of the job.
//!
//! The task owns an [`Attempt`], which is dropped with it. If the task was dropped without having run, and
//! the board has no other task in its place, the executor has refused it or was shut down: the job is
//! taken off the board, since nothing will ever run it. If the executor goes on, and no caller learns of that from the
//! submission's error, the job is discarded: `on_discarded` is told.

use std::{
    sync::{Arc, OnceLock, atomic::Ordering},
    time::{Instant, SystemTime},
};

use super::{
    board::{Board, Refusal, refused},
    entry::{Entry, Next, Stage, due_at, once},
    state::State,
    waiting::Arrival,
};
use crate::{
    DiscardedJob, JobId, JobOutcome, JobQueue, JobRun, PastRun, QueueError,
    job::{jobs::Definition, payload::Payload},
    queue::{engine::Engine, handling::Handling, machine},
    run::{self, Outcome},
};

pub(super) struct Attempt {
    board: Arc<Board>,
    definition: Arc<Definition>,
    id: i64,
    generation: u64,
    refusal: Refusal,
    has_run: bool,
}

/// The last error of a job that is discarded for that.
const REFUSED: &str =
    "the executor has refused the task of the next attempt, or has dropped it to make room";

fn clock_now(board: &Board) -> (Instant, SystemTime) {
    let clock = board.executor.clock();
    (clock.now(), clock.wall_time())
}

struct Claim {
    run: JobRun,
    payload: Payload,
    began: Instant,
}

impl Attempt {
    pub(super) fn run(&mut self) {
        self.has_run = true;
        let Some(claim) = self.claim() else { return };
        let clock = self.board.executor.clock();
        let outcome = run::call(&self.definition, &claim.run, &claim.payload, clock, claim.began);
        drop(claim.run);
        self.board.finish(self.id, outcome);
    }

    /// Begins the run, unless the job is gone, was moved, or has to wait for its turn.
    fn claim(&self) -> Option<Claim> {
        let board = &self.board;
        let (stop, began) = run::begin(&board.executor, self.definition.timeout);
        let mut state = board.state.lock();
        let entry = state.jobs.get(&self.id)?;
        if entry.generation != self.generation || !matches!(entry.stage, Stage::Waiting(_)) {
            return None;
        }
        if let Some(way) = state.give_way(self.id, clock_now(board)) {
            drop(state);
            board.cancel_task(way.task);
            board.submit_or_discard(way.next);
            return None;
        }
        state.forget_ready(self.id);
        let arrival = match state.arrive(self.id) {
            Arrival::Go => state.enter(self.id),
            wait @ Arrival::Wait(_) => wait,
        };
        if let Arrival::Wait(next) = arrival {
            drop(state);
            board.submit_or_discard(next);
            return None;
        }
        state.running += 1;
        let entry = state.jobs.get_mut(&self.id)?;
        entry.begun += 1;
        let stage =
            Stage::Running { stop: stop.clone(), is_retired: false, gives_up: false, since: began };
        let task = std::mem::replace(&mut entry.stage, stage);
        let run = JobRun {
            id: JobId(self.id),
            name: entry.definition.name,
            attempt: entry.begun,
            max_attempts: entry.job.max_attempts,
            tick: None,
            traceparent: entry.job.traceparent.clone(),
            key: entry.job.key.clone(),
            stop,
            queue: JobQueue::borrowing(Arc::clone(board) as _, Arc::clone(&board.definitions)),
            draw_fencing_token: draw_fencing_token(board),
            fence: OnceLock::new(),
        };
        let payload = entry.job.payload.clone();
        drop(state);
        drop(task);
        Some(Claim { run, payload, began })
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if !self.has_run {
            self.board.forget(self.id, self.generation, self.refusal);
        }
    }
}

fn draw_fencing_token(board: &Arc<Board>) -> run::DrawFencingToken {
    let board = Arc::clone(board);
    // Relaxed: the numbers only have to differ and to rise, and one counter gives them.
    Box::new(move || Ok(board.fences.fetch_add(1, Ordering::Relaxed) + 1))
}

impl Board {
    /// Makes the task of the next attempt. If the executor refuses it, the job is removed.
    pub(super) fn submit(&self, next: Next, refusal: Refusal) -> Result<(), QueueError> {
        let mut state = self.state.lock();
        let definition = state.jobs.get(&next.id).map(|it| Arc::clone(&it.definition));
        state.note_ready(&next);
        let (Some(definition), Some(board)) = (definition, self.me.upgrade()) else {
            return Ok(());
        };
        drop(state);
        let Next { id, generation, due, .. } = next;
        let mut task = self.executor.task().name(definition.name);
        if let Some(limit) = definition.timeout {
            task = task.timeout(limit).on_failure(punctual::FailurePolicy::resume());
        }
        let mut attempt = Attempt { board, definition, id, generation, refusal, has_run: false };
        match task.repeat(once(due), move || attempt.run()) {
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

    fn finish(&self, id: i64, outcome: Outcome) {
        let (next, discarded) = self.settle(id, outcome);
        self.submit_or_discard(next);
        self.tell_discarded(discarded);
    }

    /// Tells of a discarded job. User code: the caller holds no lock.
    fn tell_discarded(&self, discarded: Option<DiscardedJob>) {
        if let Some(discarded) = discarded {
            let engine = self.me.upgrade().map(|board| board as Arc<dyn Engine>);
            let _handling = engine.as_ref().map(Handling::begin);
            self.definitions.tell_discarded(&discarded);
        }
    }

    /// Writes down how an attempt has ended. Returns what is left to be done without the lock: the tasks to be submitted of the jobs
    /// that are next, and of this one, and whether it is discarded.
    fn settle(&self, id: i64, outcome: Outcome) -> (Vec<Next>, Option<DiscardedJob>) {
        let now = self.executor.clock().now();
        let mut state = self.state.lock();
        let state = &mut *state;
        let (mut next, mut discarded) = (state.leave_lines(id), None);
        let Some(entry) = state.jobs.get_mut(&id) else { return (next, None) };
        let is_released = state.closing.as_ref().is_some_and(|closing| closing.has_asked);
        let (ended, error, delay) = entry.ending(&outcome, is_released);
        self.definitions.outcomes.note(entry.definition.name, ended);
        if state.past.keeps() {
            let run = self.past_run(id, entry, ended, error.clone());
            state.past.note(run, now);
        }
        state.running -= 1;
        match ended {
            JobOutcome::Succeeded => {
                if let Outcome::Succeeded(Some(returned)) = outcome {
                    state.results.put(id, returned, now);
                }
                if let Some(closing) = &mut state.closing {
                    closing.note_ran(id, entry.definition.name);
                }
                state.remove(id);
            }
            JobOutcome::Cancelled => drop(state.remove(id)),
            JobOutcome::Discarded => discarded = state.discard(id, error),
            _ => {
                // A run that was snoozed or released counts as no attempt.
                entry.begun -= u32::from(ended != JobOutcome::Failed);
                if ended == JobOutcome::Failed {
                    entry.last_error = error;
                }
                next.extend(state.put_back(id, now.checked_add(delay)));
            }
        }
        if let Some(closing) = state.closing.as_ref().filter(|_| state.running == 0) {
            closing.idle.cancel();
        }
        (next, discarded)
    }

    fn past_run(
        &self,
        id: i64,
        entry: &Entry,
        outcome: JobOutcome,
        error: Option<String>,
    ) -> PastRun {
        let ended = self.executor.clock().wall_time();
        let began = entry.since().and_then(|since| self.wall_of(since));
        PastRun {
            id: 0,
            job: JobId(id),
            kind: entry.definition.name.to_owned(),
            key: entry.job.key.clone(),
            schedule: None,
            tick: None,
            attempt: entry.begun,
            machine: machine::name_of_this(),
            began: began.unwrap_or(ended),
            ended,
            outcome,
            error,
        }
    }

    /// The executor has dropped the task of a job: nothing will run it.
    fn forget(&self, id: i64, generation: u64, refusal: Refusal) {
        let mut state = self.state.lock();
        let Some(entry) = state.jobs.get(&id).filter(|it| it.generation == generation) else {
            return;
        };
        let Stage::Waiting(queued) = &entry.stage else { return };
        let is_unheard = queued.is_some() || refusal == Refusal::Discards;
        let is_told = is_unheard && !self.executor.is_shutdown();
        let (task, turns) = state.withdraw(id);
        let (discarded, entry) = if is_told {
            (state.discard(id, Some(REFUSED.to_owned())), None)
        } else {
            (None, state.remove(id))
        };
        drop(state);
        drop((task, entry));
        self.submit_or_discard(turns);
        self.tell_discarded(discarded);
    }
}

impl State {
    /// Lets a job wait for another moment after its run. If the queue is closing, it is released.
    fn put_back(&mut self, id: i64, moment: Option<Instant>) -> Option<Next> {
        if self.closing.is_some() {
            let entry = self.remove(id);
            if let Some(closing) = &mut self.closing {
                closing.release(id, entry);
            }
            return None;
        }
        let entry = self.jobs.get_mut(&id)?;
        (entry.moment, entry.wall) = (moment, None);
        Some(entry.wait_until(id, due_at(moment, None)))
    }

    /// Discards a job, with this error or else its last one. No attempt is left for a retry to give back.
    fn discard(&mut self, id: i64, error: Option<String>) -> Option<DiscardedJob> {
        let entry = self.jobs.get_mut(&id)?;
        entry.last_error = error.or(entry.last_error.take());
        entry.job.max_attempts = entry.begun;
        let discarded = DiscardedJob {
            id: JobId(id),
            name: entry.definition.name.to_owned(),
            payload: entry.job.payload.to_text(),
            attempts: entry.begun,
            last_error: entry.last_error.clone().unwrap_or_default(),
        };
        self.set_aside(id);
        Some(discarded)
    }
}
