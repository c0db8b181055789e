//! Sequences: of the jobs in one, one at a time runs, in the order of their moments.
//!
//! A sequence is a turn, which one job has, and a line of those that are due and have no turn. A job comes
//! to the line when it is due. If nobody has the turn, the first of the line gets it: mostly that is the
//! job that has just come, and sometimes one whose moment was earlier and whose task was later. A job gives
//! the turn back when its attempt ends, however it ends, or when it is moved or cancelled before its
//! attempt has begun; the first of the line gets it then, and a task that is due at once.
//!
//! A sequence without a turn and without a line is taken off the board, so names cost nothing once they
//! are not used any more.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use punctual::trigger::Due;

use super::board::{Next, Stage, State};

#[derive(Default)]
pub(super) struct Serial {
    /// The job that runs, or is about to.
    turn: Option<i64>,
    /// The jobs that are due, by moment and then by id, which is the order in which they were sent.
    line: BTreeSet<(Option<Instant>, i64)>,
}

/// What a job finds that has come to its sequence.
pub(super) enum Arrival {
    /// It has the turn.
    Go,
    /// It has to wait, and perhaps another job has to be submitted.
    Wait(Option<Next>),
}

impl State {
    /// A job of a sequence is due.
    pub(super) fn arrive(&mut self, id: i64) -> Arrival {
        let Some(entry) = self.jobs.get_mut(&id) else { return Arrival::Wait(None) };
        let Some(name) = &entry.serial else { return Arrival::Go };
        let serial = self.serials.entry(name.clone()).or_default();
        if serial.turn == Some(id) {
            return Arrival::Go;
        }
        serial.line.insert((entry.moment, id));
        entry.stage = Stage::InLine;
        if serial.turn.is_some() {
            return Arrival::Wait(None);
        }
        let name = name.clone();
        let next = self.give_turn(&name);
        match next {
            Some(next) if next.id == id => Arrival::Go,
            next => Arrival::Wait(next),
        }
    }

    /// A job does not wait in its sequence any more, and does not run. Returns the job that is next.
    pub(super) fn leave_line(&mut self, id: i64) -> Option<Next> {
        let name = self.jobs.get(&id)?.serial.clone()?;
        let serial = self.serials.get_mut(&name)?;
        serial.line.retain(|(_, other)| *other != id);
        if serial.turn == Some(id) {
            serial.turn = None;
        }
        if serial.turn.is_some() {
            return None;
        }
        let next = self.give_turn(&name);
        if next.is_none() {
            self.serials.remove(&name);
        }
        next
    }

    /// Gives the turn to the first of the line.
    fn give_turn(&mut self, name: &str) -> Option<Next> {
        let serial = self.serials.get_mut(name)?;
        let (_, id) = serial.line.pop_first()?;
        serial.turn = Some(id);
        let entry = self.jobs.get_mut(&id)?;
        entry.stage = Stage::Waiting(None);
        entry.generation += 1;
        Some(Next { id, generation: entry.generation, due: at_once(entry.moment) })
    }
}

/// A job that is due already is so at its own moment, or at the latest now.
fn at_once(moment: Option<Instant>) -> Due {
    moment.map_or(Due::Wall(std::time::UNIX_EPOCH + Duration::ZERO), Due::At)
}
