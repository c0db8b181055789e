//! Priorities: a job that is about to begin lets one of a higher priority go first that is due.
//!
//! The executor runs tasks in the order of their moments, and knows no priorities. So when the task of a job runs, the job
//! asks here whether another one is to go first: one that is due, waits for a worker, and has a higher priority. Then that
//! job gets a new task, and this one gets another task behind it.
//!
//! The executor may have taken more tasks out of its queue already, and these run before the new ones. So the jobs that
//! have new tasks are remembered, as *called*. Each job lets those of them go first that come before it, by priority, moment
//! and id. That keeps the order among jobs of one priority as well.
//!
//! # Why it ends
//!
//! The task of a called job has a moment, its *ticket*. A job that lets it go first gets a task whose moment is not before
//! the ticket, and which is submitted later, so the called job is asked before this job is asked again. The first of the
//! called jobs lets none of them go first. It may call another of a higher priority, which is the first then; there are two
//! of these at most. So between any two askings of one job another job begins, or leaves.
//!
//! A job is called no more when it begins, waits in a line, is moved, replaced or cancelled ([`State::forget_ready`]).
//!
//! Jobs with an ordering key are not here: their turns are given in another way ([`ordering`](super::ordering)). Nor are
//! those that have a slot of a limit already ([`slots`](super::slots)), whose line has the order of priorities itself.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Instant, SystemTime},
};

use punctual::{TaskHandle, trigger::Due};

use super::board::{Entry, Next, Stage, State};
use crate::Priority;

type Place = (Priority, Instant, i64);

/// The jobs that may be let go first.
#[derive(Default)]
pub(super) struct Ready {
    high: BTreeSet<(Instant, i64)>,
    normal: BTreeSet<(Instant, i64)>,
    /// Those that are called, with their tickets.
    called: BTreeMap<Place, Instant>,
}

impl Ready {
    /// Returns the jobs of a priority that are not called. No job calls one of a low priority.
    fn of(&mut self, priority: Priority) -> Option<&mut BTreeSet<(Instant, i64)>> {
        match priority {
            Priority::High => Some(&mut self.high),
            Priority::Normal => Some(&mut self.normal),
            Priority::Low => None,
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
    /// A job waits, and its task is about to be submitted.
    pub(super) fn note_ready(&mut self, next: &Next) {
        let Some(entry) = self.jobs.get(&next.id) else { return };
        let waits = entry.generation == next.generation && matches!(entry.stage, Stage::Waiting(_));
        let Some(place) = self.place_of(next.id).filter(|_| waits) else { return };
        let (priority, moment, id) = place;
        if !self.ready.called.contains_key(&place) {
            self.ready.of(priority).map(|jobs| jobs.insert((moment, id)));
        }
    }

    /// A job begins, or does not wait for a worker any more as it did.
    pub(super) fn forget_ready(&mut self, id: i64) {
        let Some(place) = self.place_of(id) else { return };
        let (priority, moment, id) = place;
        self.ready.of(priority).map(|jobs| jobs.remove(&(moment, id)));
        self.ready.called.remove(&place);
    }

    fn place_of(&self, id: i64) -> Option<Place> {
        let is_here = |entry: &&Entry| entry.ordering_key.is_none() && !self.has_slot(id);
        let entry = self.jobs.get(&id).filter(is_here)?;
        Some((entry.priority, entry.moment?, id))
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
        let of_level = |level: Priority, jobs: &BTreeSet<(Instant, i64)>| {
            let mut due = jobs.iter().take_while(|(moment, _)| *moment <= now);
            // The instant of a wall time is an estimate.
            let first = due.find(|(_, id)| {
                let wall = self.jobs.get(id).and_then(|entry| entry.wall);
                wall.is_none_or(|wall| wall <= time)
            });
            first.map(|(moment, id)| (level, *moment, *id)).filter(|_| level < priority)
        };
        of_level(Priority::High, &self.ready.high)
            .or_else(|| of_level(Priority::Normal, &self.ready.normal))
    }
}
