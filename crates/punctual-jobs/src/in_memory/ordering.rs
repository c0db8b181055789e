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

use std::{collections::BTreeSet, time::Instant};

/// The turn of one ordering key.
#[derive(Default)]
pub(super) struct Turn {
    /// The job that has the turn: it runs, or is about to.
    holder: Option<i64>,
    /// The jobs that are due, by moment and then by id, which is the order in which they were enqueued.
    line: BTreeSet<(Option<Instant>, i64)>,
}

impl Turn {
    pub(super) fn is_of(&self, id: i64) -> bool {
        self.holder == Some(id)
    }

    pub(super) fn is_free(&self) -> bool {
        self.holder.is_none()
    }

    pub(super) fn join(&mut self, id: i64, moment: Option<Instant>) {
        self.line.insert((moment, id));
    }

    pub(super) fn leave(&mut self, id: i64) {
        self.line.retain(|(_, other)| *other != id);
        self.holder = self.holder.filter(|holder| *holder != id);
    }

    /// Gives the turn, if no job has it, to the first of the line.
    pub(super) fn give(&mut self) -> Option<i64> {
        let (_, id) = self.is_free().then(|| self.line.pop_first())??;
        self.holder = Some(id);
        Some(id)
    }
}
