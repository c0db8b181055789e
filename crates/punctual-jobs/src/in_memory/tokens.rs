//! Tokens: how many jobs of a kind, or of one limit key, begin in a window of time.
//!
//! A bucket is one moment, at which it is full again: its theoretical arrival time, by the algorithm GCRA. A job takes a token
//! when it gets its slot ([`slots`](super::slots)). A job that is moved or cancelled after that and before its attempt begins
//! has spent it all the same.
//!
//! # How jobs that wait for a token begin
//!
//! When a job cannot begin for lack of a token, its kind notes the moment of the next one. The board has a task of the executor
//! for it, one for each kind: it is submitted where the tasks of the next jobs are, with no lock held. The task has all
//! jobs begin that can, and what still waits notes the next moment. So while any job waits for a token alone, the task is there.
//! If an executor with a bound refuses it, the next job that comes or ends does its work.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use punctual::TaskHandle;

use crate::job::job_limit::JobWindow;

impl JobWindow {
    /// Returns when a bucket that is full again at this moment has a token.
    pub(super) fn next(self, full: Instant) -> Instant {
        let rest = Duration::from_micros(u64::from(self.burst - 1) * self.gap);
        full.checked_sub(rest).unwrap_or(full)
    }

    /// Returns when a bucket is full again of which a token is taken now.
    pub(super) fn spend(self, full: Option<Instant>, now: Instant) -> Instant {
        full.map_or(now, |full| full.max(now)) + Duration::from_micros(self.gap)
    }
}

/// The buckets of a kind that are not full, and of its limit keys.
#[derive(Default)]
pub(super) struct Buckets {
    kind: Option<Instant>,
    keys: HashMap<String, Instant>,
    /// With how many keys those that are full again are forgotten.
    clean_at: usize,
}

impl Buckets {
    /// Returns when the kind has a token, if that is later than now.
    pub(super) fn kind_waits(&self, window: Option<JobWindow>, now: Instant) -> Option<Instant> {
        let next = window?.next(self.kind?);
        (next > now).then_some(next)
    }

    /// Returns when a key has a token, as far as it is not full.
    pub(super) fn next_of_key(&self, window: Option<JobWindow>, key: &str) -> Option<Instant> {
        Some(window?.next(*self.keys.get(key)?))
    }

    pub(super) fn spend(
        &mut self,
        kind: Option<JobWindow>,
        of_key: Option<JobWindow>,
        key: &str,
        now: Instant,
    ) {
        if let Some(window) = kind {
            self.kind = Some(window.spend(self.kind, now));
        }
        if let Some(window) = of_key {
            if self.keys.len() >= self.clean_at {
                self.keys.retain(|_, full| *full > now);
                self.clean_at = 2 * self.keys.len().max(64);
            }
            let full = window.spend(self.keys.get(key).copied(), now);
            self.keys.insert(key.to_owned(), full);
        }
    }
}

/// The task that has jobs begin when there is a token.
#[derive(Default)]
pub(super) struct TokenTimer {
    /// When a job that waits has its token.
    pub(super) wanted: Option<Instant>,
    /// When the task is due, if there is one.
    pub(super) armed: Option<Instant>,
    pub(super) task: Option<TaskHandle>,
}

impl TokenTimer {
    pub(super) fn take_task(&mut self) -> Option<TaskHandle> {
        self.armed = None;
        self.task.take()
    }

    /// Returns when a task has to be due that is not there.
    pub(super) fn take_unarmed(&mut self) -> Option<Instant> {
        let wanted = self.wanted.take()?;
        let is_new = self.armed.is_none_or(|armed| wanted < armed);
        is_new.then(|| *self.armed.insert(wanted))
    }
}
