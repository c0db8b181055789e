//! Runs that have failed, and that their tasks try again between two ticks.
//!
//! A task that [backs off](punctual::FailurePolicy::back_off) or [retries](punctual::Trigger::retry) plans the run after
//! a failed one by its own clock. That run is no tick of the schedule, and other replicas do not plan it. But it has
//! a tick: the one that has failed. So it is claimed under that tick once more, with a larger fencing token, unless
//! the failed run has finished its tick, or any replica has claimed another one since: that run made up for it.
//!
//! Such a run is recognized by its moment, which the executor tells at the end of the one before.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Instant, SystemTime},
};

use parking_lot::Mutex;
use punctual::{TaskId, gate::Tick};

use super::lease::LeaseState;

/// The last failed run of each task that goes on.
#[derive(Default)]
pub(super) struct Retries(Mutex<HashMap<TaskId, Retry>>);

/// A failed run, and when its task runs next.
#[derive(Clone)]
pub(super) struct Retry {
    pub(super) tick: SystemTime,
    pub(super) failed: Arc<LeaseState>,
    pub(super) at: Instant,
}

impl Retries {
    /// Notes how a run has ended: that it failed and its task goes on, or otherwise.
    pub(super) fn note(&self, task: TaskId, retry: Option<Retry>) {
        let mut all = self.0.lock();
        match retry {
            Some(retry) => drop(all.insert(task, retry)),
            None => drop(all.remove(&task)),
        }
    }

    /// Returns the failed run that is tried again now.
    pub(super) fn find(&self, tick: &Tick<'_>) -> Option<Retry> {
        let retry = self.0.lock().get(&tick.task_id()).cloned()?;
        (Some(retry.at) == tick.planned()).then_some(retry)
    }
}
