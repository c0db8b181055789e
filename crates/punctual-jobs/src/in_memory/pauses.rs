//! Pauses of kinds. A job of a paused kind gets as far as its turn, if it has an ordering key, and keeps that. Then it waits
//! without a task: in its line for a slot, if the kind has a limit, since a paused kind gives none; else its stage is
//! [`Stage::Paused`]. When the pause ends all of these get a task that is due at once, as far as there are slots.
//!
//! A pause until a moment has a task of the executor, which ends that very pause and no other: each has a number.

use std::{
    collections::HashMap,
    time::{Instant, SystemTime},
};

use punctual::{
    TaskHandle,
    trigger::{Due, from_fn},
};

use super::{
    Board,
    board::{Next, Stage, State},
    ordering::{Arrival, at_once},
    refused,
};
use crate::{KindPause, QueueError, When};

/// The pauses, by the names of the kinds.
#[derive(Default)]
pub(super) struct Pauses {
    of_kinds: HashMap<String, Pause>,
    last_number: u64,
}

struct Pause {
    number: u64,
    until: Option<SystemTime>,
    /// Ends it.
    task: Option<TaskHandle>,
}

impl Pauses {
    pub(super) fn get(&self, kind: &str) -> Option<KindPause> {
        self.of_kinds.get(kind).map(|pause| KindPause { until: pause.until })
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&str, KindPause)> {
        self.of_kinds.iter().map(|(kind, it)| (kind.as_str(), KindPause { until: it.until }))
    }

    pub(super) fn take_tasks(&mut self) -> Vec<TaskHandle> {
        self.of_kinds.drain().filter_map(|(_, pause)| pause.task).collect()
    }
}

impl Board {
    pub(super) fn pause(&self, kind: &str, until: Option<When>) -> Result<(), QueueError> {
        let ends = until.map(|until| self.moment_of(until));
        let wall = ends.as_ref().and_then(|(instant, due)| self.shown_at(*instant, due));
        let mut state = self.state.lock();
        if state.closing.is_some() {
            return Err(QueueError::ShutDown);
        }
        state.pauses.last_number += 1;
        let number = state.pauses.last_number;
        let pause = Pause { number, until: wall, task: None };
        let old = state.pauses.of_kinds.insert(kind.to_owned(), pause);
        drop(state);
        self.cancel_task(old.and_then(|old| old.task));
        let Some((_, due)) = ends else { return Ok(()) };
        let (me, name) = (self.me.clone(), kind.to_owned());
        let body = move || {
            if let Some(board) = me.upgrade() {
                board.end_pause(&name, Some(number));
            }
        };
        let once = from_fn(move |last| (last.runs() == 0).then_some(due));
        let task = match self.executor.task().repeat(once, body) {
            Ok(future) => future.task_handle(),
            Err(error) => {
                self.end_pause(kind, Some(number));
                return Err(refused(&error));
            }
        };
        let mut state = self.state.lock();
        let its = state.pauses.of_kinds.get_mut(kind).filter(|pause| pause.number == number);
        let is_over = its.is_none();
        if let Some(pause) = its {
            pause.task = Some(task.clone());
        }
        drop(state);
        self.cancel_task(is_over.then_some(task));
        Ok(())
    }

    pub(super) fn resume(&self, kind: &str) -> Result<bool, QueueError> {
        self.state.lock().refuse_if_over()?;
        Ok(self.end_pause(kind, None))
    }

    /// Ends a pause: that with this number, if one is named.
    fn end_pause(&self, kind: &str, number: Option<u64>) -> bool {
        let mut state = self.state.lock();
        let found = state.pauses.of_kinds.get(kind);
        if found.is_none_or(|pause| number.is_some_and(|number| number != pause.number)) {
            return false;
        }
        let pause = state.pauses.of_kinds.remove(kind);
        let mut next = state.wake_paused(kind);
        if let Some(definition) = self.definitions.handled(kind) {
            while let Some(one) = state.give_slot(definition.name, definition.limits) {
                next.push(one);
            }
        }
        drop(state);
        self.cancel_task(pause.and_then(|pause| pause.task));
        self.submit_or_discard(next);
        true
    }

    /// Returns what the wall clock shows at the end of a pause.
    fn shown_at(&self, instant: Option<Instant>, due: &Due) -> Option<SystemTime> {
        match due {
            Due::Wall(time) => Some(*time),
            _ => instant.and_then(|instant| self.wall_of(instant)),
        }
    }
}

impl State {
    /// A job has its turn. If its kind is paused, it waits for the end of that; one that has a slot goes back to its line.
    pub(super) fn wait_if_paused(&mut self, id: i64) -> Option<Arrival> {
        let entry = self.jobs.get_mut(&id)?;
        self.pauses.get(entry.definition.name)?;
        entry.stage = Stage::Paused;
        if !entry.definition.limits.is_some() {
            return Some(Arrival::Wait(None));
        }
        let none = self.leave_slot(id);
        debug_assert!(none.is_none(), "a paused kind gives no slot");
        Some(self.enter(id))
    }

    /// Returns the tasks of the jobs that wait for the end of this kind's pause, in the order of their moments.
    fn wake_paused(&mut self, kind: &str) -> Vec<Next> {
        let is_such = |stage: &Stage| matches!(stage, Stage::Paused);
        let all = self.jobs.iter_mut();
        let mut paused: Vec<_> = all
            .filter(|(_, entry)| entry.definition.name == kind && is_such(&entry.stage))
            .collect();
        paused.sort_by_key(|(id, entry)| (entry.moment, **id));
        let wake = |(id, entry): (&i64, &mut super::board::Entry)| {
            entry.stage = Stage::Waiting(None);
            entry.generation += 1;
            Next { id: *id, generation: entry.generation, due: at_once(entry.moment) }
        };
        paused.into_iter().map(wake).collect()
    }
}
