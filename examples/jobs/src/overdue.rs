//! Which run is overdue, and left out: the starting deadlines of `within` and `skip`.

use std::time::Duration;

use punctual::MissedRuns;

use crate::{
    config::{Job, Schedule},
    moment::{Moment, Now},
    timetable::{Planned, count},
};

/// A run that is less late is on time.
const ON_TIME: Duration = Duration::from_millis(1);
/// By `skip`, a run that is later does not start, even if the next one is not due.
const SKIP_AFTER: Duration = Duration::from_secs(10);

impl Planned {
    /// If this run must not start any more, the one that is to come then, if there is one.
    pub(crate) fn instead_of_overdue(&self, job: &Job) -> Option<Option<Self>> {
        let now = Now::read().earlier_by(job.put_off);
        self.is_overdue(&job.schedule, now).then(|| self.left_out(&job.schedule, now))
    }

    /// Returns `true` if this run, which could start now, must not start any more.
    pub(crate) fn is_overdue(&self, schedule: &Schedule, now: Now) -> bool {
        let late = self.at.late_at(now);
        let (missed, is_next_due) = match (schedule, self.at) {
            (Schedule::Every { period, missed, .. }, _) => (*missed, late >= *period),
            (Schedule::At { calendar, missed }, Moment::Wall(at)) => {
                (*missed, count(calendar, at, now.wall) > 0)
            }
            _ => return false,
        };
        match missed {
            MissedRuns::Within(limit) => late > limit,
            MissedRuns::Skip => late > SKIP_AFTER || late >= ON_TIME && is_next_due,
            _ => false,
        }
    }

    /// The run to come if this one is left out now, as overdue; `None` if there is none.
    pub(crate) fn left_out(&self, schedule: &Schedule, now: Now) -> Option<Self> {
        let next = self.next(schedule, now, now)?;
        Some(Self { number: self.number, skipped: self.skipped + 1 + next.skipped, ..next })
    }
}
