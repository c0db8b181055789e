//! What a due job waits for: a job of a higher priority, the turn of its ordering key, a slot of its kind, the end of a pause.
//!
//! The parts ([`ready`](super::ready), [`ordering`](super::ordering), [`slots`](super::slots), [`pauses`](super::pauses)) know
//! jobs by their ids. Here they meet the entries.

use std::time::{Instant, SystemTime};

use punctual::{TaskHandle, trigger::Due};

use super::{
    entry::{Entry, Next, Stage},
    ready::Place,
    slots::PlaceInLine,
    state::State,
};
use crate::{Priority, job::job_limit::Limits};

/// The answer to a job that has asked for its turn.
pub(super) enum Arrival {
    /// It has the turn.
    Go,
    /// It has to wait, and perhaps another job has to be submitted.
    Wait(Option<Next>),
}

impl Arrival {
    /// Returns the answer to a job, if the other one is next.
    fn of(id: i64, next: Option<Next>) -> Self {
        match next {
            Some(next) if next.id == id => Self::Go,
            next => Self::Wait(next),
        }
    }
}

/// How a job lets another one go first, without the lock.
#[must_use = "neither job runs unless the tasks are submitted"]
pub(super) struct Way {
    /// The task of a job that is called, to be cancelled.
    pub(super) task: Option<TaskHandle>,
    /// The handle of this job's task, which runs.
    _own: Option<TaskHandle>,
    /// The tasks to be submitted, in their order.
    pub(super) next: Vec<Next>,
}

impl State {
    /// A job with an ordering key is due.
    pub(super) fn arrive(&mut self, id: i64) -> Arrival {
        let Some(entry) = self.jobs.get_mut(&id) else { return Arrival::Wait(None) };
        let Some(key) = &entry.job.ordering_key else { return Arrival::Go };
        let turn = self.turns.entry(key.clone()).or_default();
        if turn.is_of(id) {
            return Arrival::Go;
        }
        turn.join(id, entry.moment);
        entry.stage = Stage::InLine;
        let first = turn.give();
        Arrival::of(id, self.wake(first))
    }

    /// A job does not wait for its turn any more, and does not run. Returns the job that is next.
    pub(super) fn leave_line(&mut self, id: i64) -> Option<Next> {
        let key = self.jobs.get(&id)?.job.ordering_key.as_ref()?;
        let turn = self.turns.get_mut(key)?;
        turn.leave(id);
        let first = turn.give();
        if turn.is_free() {
            self.turns.remove(key);
        }
        self.wake(first)
    }

    fn wake(&mut self, id: Option<i64>) -> Option<Next> {
        let id = id?;
        Some(self.jobs.get_mut(&id)?.wake(id))
    }

    /// A job is due, and has its turn. One that has a slot goes back to its line if its kind was paused meanwhile.
    pub(super) fn enter(&mut self, id: i64) -> Arrival {
        let Some(place) = self.place_in_line(id) else { return Arrival::Go };
        let is_paused = self.pauses.has(place.kind);
        if !is_paused && !place.limits.is_some() {
            return Arrival::Go;
        }
        let now = self.clock.now();
        let slots = self.slots.entry(place.kind).or_default();
        if slots.has(id) {
            if !is_paused {
                return Arrival::Go;
            }
            slots.leave(id, &place, now);
        }
        slots.wait(id, &place, now);
        if let Some(entry) = self.jobs.get_mut(&id) {
            entry.stage = Stage::InLine;
        }
        Arrival::of(id, self.give_slot(place.kind, place.limits))
    }

    /// A job does not wait for a slot any more, and does not run. Returns the job that is next.
    pub(super) fn leave_slot(&mut self, id: i64) -> Option<Next> {
        let place = self.place_in_line(id)?;
        let now = self.clock.now();
        self.slots.get_mut(place.kind)?.leave(id, &place, now);
        self.give_slot(place.kind, place.limits)
    }

    /// Whether a job has a slot, and so goes on without letting another one go first.
    pub(super) fn has_slot(&self, id: i64) -> bool {
        let definition = self.jobs.get(&id).map(|entry| &entry.definition);
        let limited = definition.filter(|definition| definition.limits.is_some());
        let slots = limited.and_then(|definition| self.slots.get(definition.name));
        slots.is_some_and(|slots| slots.has(id))
    }

    /// Returns where a job waits for a slot, if its kind has slots.
    fn place_in_line(&self, id: i64) -> Option<PlaceInLine> {
        let entry = self.jobs.get(&id)?;
        let (kind, limits) = (entry.definition.name, entry.definition.limits);
        let is_ordered = entry.job.ordering_key.is_some();
        let priority = if is_ordered { Priority::Normal } else { entry.job.priority };
        let line = (priority, entry.job.limit_key.clone().unwrap_or_default());
        Some(PlaceInLine { kind, limits, line, moment: entry.moment })
    }

    /// Gives a slot to the next job of the kind, if one is free, there is a token, and the kind is not paused.
    pub(super) fn give_slot(&mut self, kind: &'static str, limits: Limits) -> Option<Next> {
        if self.pauses.has(kind) {
            return None;
        }
        let now = self.clock.now();
        let first = self.slots.get_mut(kind)?.take_next(limits, now);
        self.wake(first)
    }

    /// Gives all slots that are free. A kind without a limit had lines for its pause, and has none any more.
    pub(super) fn give_slots(&mut self, kind: &'static str, limits: Limits) -> Vec<Next> {
        let next = std::iter::from_fn(|| self.give_slot(kind, limits)).collect();
        if !limits.is_some() && !self.pauses.has(kind) {
            self.slots.remove(kind);
        }
        next
    }

    /// A job waits, and its task is about to be submitted.
    pub(super) fn note_ready(&mut self, next: &Next) {
        let Some(entry) = self.jobs.get(&next.id) else { return };
        let waits = entry.generation == next.generation && matches!(entry.stage, Stage::Waiting(_));
        let Some(place) = self.place_of(next.id).filter(|_| waits) else { return };
        let (priority, moment, id) = place;
        if !self.ready.called.contains_key(&place) {
            self.ready.jobs.entry(priority).or_default().insert((moment, id));
        }
    }

    /// A job begins, or does not wait for a worker any more as it did.
    pub(super) fn forget_ready(&mut self, id: i64) {
        let Some(place) = self.place_of(id) else { return };
        let (priority, moment, id) = place;
        self.ready.jobs.get_mut(&priority).map(|jobs| jobs.remove(&(moment, id)));
        self.ready.called.remove(&place);
    }

    fn place_of(&self, id: i64) -> Option<Place> {
        let is_here = |entry: &&Entry| entry.job.ordering_key.is_none() && !self.has_slot(id);
        let entry = self.jobs.get(&id).filter(is_here)?;
        Some((entry.job.priority, entry.moment?, id))
    }

    /// Returns what is to be done instead of beginning this job, if another one is to go first.
    pub(super) fn give_way(&mut self, id: i64, present: (Instant, SystemTime)) -> Option<Way> {
        let place = self.place_of(id)?;
        let own_ticket = place.1.min(present.0);
        let called = self.ready.called.first_key_value().filter(|(first, _)| **first < place);
        let called = called.map(|(first, ticket)| (*first, *ticket));
        let better = self.better_than(place.0, present);
        let better = better.filter(|better| called.is_none_or(|(first, _)| *better < first));
        let mut next = Vec::with_capacity(2);
        let (task, ticket) = match (better, called) {
            (Some(better), _) => (self.call(better, own_ticket, &mut next), own_ticket),
            (None, Some((_, ticket))) => (None, ticket.max(own_ticket)),
            (None, None) => return None,
        };
        let own = self.call(place, ticket, &mut next);
        Some(Way { task, _own: own, next })
    }

    /// Gives a job a new task, and returns the handle of the one that it had.
    fn call(&mut self, place: Place, ticket: Instant, next: &mut Vec<Next>) -> Option<TaskHandle> {
        let (_, _, id) = place;
        let (task, _) = self.withdraw(id);
        self.ready.called.insert(place, ticket);
        let generation = self.jobs.get(&id)?.generation;
        next.push(Next { id, generation, due: Due::At(ticket) });
        task
    }

    /// Returns the first job of a higher priority that is due and not called.
    fn better_than(&self, priority: Priority, (now, time): (Instant, SystemTime)) -> Option<Place> {
        self.ready.jobs.range(..priority).find_map(|(level, jobs)| {
            let mut due = jobs.iter().take_while(|(moment, _)| *moment <= now);
            // The instant of a wall time is an estimate.
            let first = due.find(|(_, id)| {
                let wall = self.jobs.get(id).and_then(|entry| entry.wall);
                wall.is_none_or(|wall| wall <= time)
            });
            first.map(|(moment, id)| (*level, *moment, *id))
        })
    }
}
