//! What Restate keeps of a schedule, and what it is told of a tick.

use serde::{Deserialize, Serialize};

use crate::Plan;

/// One tick of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tick {
    /// The name of the schedule.
    pub schedule: String,
    /// How often the schedule had been changed.
    pub revision: u64,
    /// When it is due, in seconds since 1970.
    pub moment: u64,
}

impl Tick {
    /// Returns the key that only this tick has.
    pub fn key(&self) -> String {
        format!("{}.{}.{}", self.schedule, self.revision, self.moment)
    }
}

/// The state of a schedule, as a caller is told it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// `None` if it was removed.
    pub plan: Option<Plan>,
    /// How often it has been changed.
    pub revision: u64,
    /// The moments of the first and of the last tick of this revision that have ended, in seconds since 1970.
    pub span: Option<(u64, u64)>,
    /// How many of its ticks have ended, well or not.
    pub ticks: u64,
    /// How many of them have failed.
    pub failed: u64,
}

impl Status {
    /// Another plan, or none: the ticks of the plan before are of no effect.
    pub(crate) fn change(&self, plan: Option<Plan>) -> Self {
        Self { plan, revision: self.revision + 1, ..Self::default() }
    }

    /// A tick has ended.
    pub(crate) fn count(&mut self, moment: u64, is_failed: bool) {
        let first = self.span.map_or(moment, |(first, _)| first);
        self.span = Some((first, moment));
        self.ticks += 1;
        self.failed += u64::from(is_failed);
    }
}
