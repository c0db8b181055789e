//! Pauses of kinds. A job of a paused kind gets as far as its turn, if it has an ordering key, and keeps that. Then it waits
//! without a task in a line for a [slot](super::slots), since a paused kind gives none: a kind without a limit has slots while it is
//! paused, as many as it wants. When the pause ends the jobs get a task that is due at once, as far as there are slots.
//!
//! A pause until a moment has a task of the executor, which ends that very pause and no other: each has a number.

use std::{collections::HashMap, time::SystemTime};

use punctual::TaskHandle;

/// The pauses, by the names of the kinds.
#[derive(Default)]
pub(super) struct Pauses {
    pub(super) of_kinds: HashMap<String, Pause>,
    pub(super) last_number: u64,
}

pub(super) struct Pause {
    pub(super) number: u64,
    pub(super) until: Option<SystemTime>,
    /// Ends it.
    pub(super) task: Option<TaskHandle>,
}

impl Pauses {
    pub(super) fn has(&self, kind: &str) -> bool {
        self.of_kinds.contains_key(kind)
    }

    pub(super) fn take_tasks(&mut self) -> Vec<TaskHandle> {
        self.of_kinds.drain().filter_map(|(_, pause)| pause.task).collect()
    }
}
