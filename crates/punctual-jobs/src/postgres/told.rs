//! The discarded jobs of which a worker is telling, and what it has told: see [`telling`](super::telling).

use std::collections::HashMap;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// The discarded jobs of which this worker is telling.
#[derive(Default)]
pub(super) struct Telling {
    pub(super) jobs: Mutex<HashMap<i64, Told>>,
    /// Held by the task that asks.
    pub(super) turn: tokio::sync::Mutex<()>,
    /// A callback has returned, or its task was refused.
    pub(super) ended: Notify,
}

#[derive(Clone, Copy)]
pub(super) struct Told {
    /// After how many attempts the job was discarded of which this tells.
    pub(super) attempts: i32,
    /// The callback was called, and that has to be written down.
    pub(super) is_called: bool,
}

impl Telling {
    pub(super) fn told(&self) -> (Vec<i64>, Vec<i32>) {
        let jobs = self.jobs.lock();
        let told = jobs.iter().filter(|(_, told)| told.is_called);
        told.map(|(id, told)| (*id, told.attempts)).unzip()
    }
}
