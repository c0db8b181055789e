//! How a task stands that is in the queue: when its planned run is, what else was asked of it, and when its entry is
//! due by that.
//!
//! It is plain data. [`control`](super) derives it from the entry that it finds and from what it has kept
//! beside it, has a [change](Change) applied, and moves the entry to where it then belongs.

use super::Change;
use crate::time::Timestamp;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) plan: Timestamp,
    pub(super) is_paused: bool,
    /// When an extra run was asked for.
    pub(super) extra: Option<Timestamp>,
    /// When the planned run was asked for, which was due already: its lateness begins anew then.
    pub(super) asked: Option<Timestamp>,
}

impl Standing {
    pub(super) fn planned(plan: Timestamp) -> Self {
        Self { plan, is_paused: false, extra: None, asked: None }
    }

    /// Returns when the extra run is due, if the entry stands for that: it comes before the plan, or the plan waits for the
    /// end of a pause. A gate may put an extra run off, also to a moment behind the plan.
    pub(super) fn next_extra(self) -> Option<Timestamp> {
        self.extra.filter(|moment| self.is_paused || *moment <= self.plan)
    }

    pub(super) fn due(self) -> Timestamp {
        let planned = if self.is_paused { Timestamp::NEVER } else { self.plan };
        self.next_extra().unwrap_or(planned)
    }

    pub(super) fn after(mut self, change: &Change, repeats: bool) -> Self {
        match *change {
            Change::At(moment) | Change::Schedule(_, moment) => {
                (self.plan, self.asked) = (moment, None);
            }
            Change::Within(moment) if self.plan < moment => self.asked = Some(moment),
            Change::Within(moment) => self.plan = moment,
            // A run that is due already is the one that was asked for.
            Change::RunNow(now) if self.next_extra().is_some_and(|moment| moment <= now) => {}
            Change::RunNow(now) if self.due() <= now => self.asked = Some(now),
            Change::RunNow(now) if repeats => self.extra = Some(now),
            Change::RunNow(now) => (self.plan, self.is_paused) = (now, false),
            Change::Pause => self.is_paused = true,
            Change::Resume => self.is_paused = false,
        }
        self.simplified()
    }

    /// An extra run of a task without a plan is its next run: there is no other that could stay.
    pub(super) fn simplified(self) -> Self {
        match self.extra {
            Some(moment) if self.plan == Timestamp::NEVER && !self.is_paused => {
                Self { plan: moment, extra: None, ..self }
            }
            _ => self,
        }
    }
}
