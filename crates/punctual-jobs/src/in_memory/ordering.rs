//! Ordering keys: of the jobs with one key, one at a time runs, in the order of their moments.
//!
//! An ordering key has a turn, which one job has, and a line of those that are due and have none. A job comes
//! to the line when it is due. If no job has the turn, the first of the line gets it: mostly that is the
//! job that has just come, and sometimes one whose moment was earlier and whose task was later. A job gives
//! the turn back when its attempt ends, however it ends, or when it is moved or cancelled before its
//! attempt has begun; the first of the line gets it then, and a task that is due at once.
//!
//! A key without a turn and without a line is taken off the board, so names cost nothing once they
//! are not used any more.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use punctual::trigger::Due;

use super::board::{Next, Stage, State};

#[derive(Default)]
pub(super) struct Turns {
    /// The job that has the turn: it runs, or is about to.
    holder: Option<i64>,
    /// The jobs that are due, by moment and then by id, which is the order in which they were enqueued.
    line: BTreeSet<(Option<Instant>, i64)>,
}

/// The answer to a job that has asked for its turn.
pub(super) enum Arrival {
    /// It has the turn.
    Go,
    /// It has to wait, and perhaps another job has to be submitted.
    Wait(Option<Next>),
}

impl State {
    /// A job with an ordering key is due.
    pub(super) fn arrive(&mut self, id: i64) -> Arrival {
        let Some(entry) = self.jobs.get_mut(&id) else { return Arrival::Wait(None) };
        let Some(name) = &entry.ordering_key else { return Arrival::Go };
        let turns = self.turns.entry(name.clone()).or_default();
        if turns.holder == Some(id) {
            return Arrival::Go;
        }
        turns.line.insert((entry.moment, id));
        entry.stage = Stage::InLine;
        if turns.holder.is_some() {
            return Arrival::Wait(None);
        }
        let name = name.clone();
        let next = self.give_turn(&name);
        match next {
            Some(next) if next.id == id => Arrival::Go,
            next => Arrival::Wait(next),
        }
    }

    /// A job does not wait for its turn any more, and does not run. Returns the job that is next.
    pub(super) fn leave_line(&mut self, id: i64) -> Option<Next> {
        let name = self.jobs.get(&id)?.ordering_key.clone()?;
        let turns = self.turns.get_mut(&name)?;
        turns.line.retain(|(_, other)| *other != id);
        if turns.holder == Some(id) {
            turns.holder = None;
        }
        if turns.holder.is_some() {
            return None;
        }
        let next = self.give_turn(&name);
        if next.is_none() {
            self.turns.remove(&name);
        }
        next
    }

    /// Gives the turn to the first of the line.
    fn give_turn(&mut self, name: &str) -> Option<Next> {
        let turns = self.turns.get_mut(name)?;
        let (_, id) = turns.line.pop_first()?;
        turns.holder = Some(id);
        let entry = self.jobs.get_mut(&id)?;
        entry.stage = Stage::Waiting(None);
        entry.generation += 1;
        let due = at_once(entry.moment);
        Some(Next { id, generation: entry.generation, due })
    }
}

/// A job that is due already is so at its own moment, or at the latest now.
pub(super) fn at_once(moment: Option<Instant>) -> Due {
    moment.map_or(Due::Wall(std::time::UNIX_EPOCH + Duration::ZERO), Due::At)
}
