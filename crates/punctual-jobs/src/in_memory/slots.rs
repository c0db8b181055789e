//! Limits of kinds: so many jobs of one run at once, and the others wait in a line.
//!
//! It is the line of an ordering key ([`ordering`](super::ordering)) with more than one turn: a job comes to the line when
//! it is due and has its turn, if it has an ordering key. It has a slot from when it is the first of the line and one is
//! free until its attempt ends, or until it is moved or cancelled before that has begun. The first of the line gets the slot
//! then, and a task that is due at once. The line is in the order of priorities and then of moments.
//!
//! # Invariants, under the lock
//!
//! * A job is in the line or has a slot, and not both.
//! * While the line is not empty all slots are taken.

use std::{
    collections::{BTreeSet, HashSet},
    time::Instant,
};

use super::{
    board::{Next, Stage, State},
    ordering::{Arrival, at_once},
};
use crate::Priority;

type Place = (Priority, Option<Instant>, i64);

#[derive(Default)]
pub(super) struct Slots {
    /// The jobs that run, or are about to.
    taken: HashSet<i64>,
    line: BTreeSet<Place>,
}

impl State {
    /// A job is due, and has its turn.
    pub(super) fn enter(&mut self, id: i64) -> Arrival {
        let Some((name, places)) = self.limit_of(id) else { return Arrival::Go };
        let Some(place) = self.place_in_line(id) else { return Arrival::Wait(None) };
        let slots = self.slots.entry(name).or_default();
        if slots.taken.contains(&id) {
            return Arrival::Go;
        }
        slots.line.insert(place);
        if let Some(entry) = self.jobs.get_mut(&id) {
            entry.stage = Stage::InLine;
        }
        match self.give_slot(name, places) {
            Some(next) if next.id == id => Arrival::Go,
            next => Arrival::Wait(next),
        }
    }

    /// A job does not wait for a slot any more, and does not run. Returns the job that is next.
    pub(super) fn leave_slot(&mut self, id: i64) -> Option<Next> {
        let (name, places) = self.limit_of(id)?;
        let place = self.place_in_line(id)?;
        let slots = self.slots.get_mut(name)?;
        slots.line.remove(&place);
        slots.taken.remove(&id);
        self.give_slot(name, places)
    }

    /// Whether a job has a slot, and so goes on without letting another one go first.
    pub(super) fn has_slot(&self, id: i64) -> bool {
        let slots = self.limit_of(id).and_then(|(name, _)| self.slots.get(name));
        slots.is_some_and(|slots| slots.taken.contains(&id))
    }

    fn limit_of(&self, id: i64) -> Option<(&'static str, usize)> {
        let definition = &self.jobs.get(&id)?.definition;
        Some((definition.name, definition.limit?.places()))
    }

    fn place_in_line(&self, id: i64) -> Option<Place> {
        let entry = self.jobs.get(&id)?;
        let is_ordered = entry.ordering_key.is_some();
        let priority = if is_ordered { Priority::Normal } else { entry.priority };
        Some((priority, entry.moment, id))
    }

    /// Gives a slot to the first of the line, if one is free.
    fn give_slot(&mut self, name: &'static str, places: usize) -> Option<Next> {
        let slots = self.slots.get_mut(name).filter(|slots| slots.taken.len() < places)?;
        let (_, _, id) = slots.line.pop_first()?;
        slots.taken.insert(id);
        let entry = self.jobs.get_mut(&id)?;
        entry.stage = Stage::Waiting(None);
        entry.generation += 1;
        let due = at_once(entry.moment);
        Some(Next { id, generation: entry.generation, due })
    }
}
