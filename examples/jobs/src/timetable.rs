//! When a job runs next: pure arithmetic on times.
//!
//! The library has all of this itself (`repeat`, its triggers, [`MissedRuns`]), but for the library
//! a run is over when its closure returns. Here no closure waits for its command: the run outlasts
//! it. So each run is a task of its own, and its end plans the next by the library's rules.

use std::time::{Duration, SystemTime};

use punctual::{MissedRuns, trigger::Cron};

use crate::{
    config::Schedule,
    moment::{Moment, Now},
};

/// More missed runs of a calendar than this are not counted.
const MOST_COUNTED: u64 = 1_000;

/// A run that is to come.
///
/// A jitter puts all runs of a job off by the same span. So the times here are those without it,
/// and a caller that asks when the next run is says when the last one would have started without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Planned {
    /// Counted from 1.
    pub(crate) number: u64,
    pub(crate) at: Moment,
    /// The number of runs that are skipped between the previous one and this.
    pub(crate) skipped: u64,
}

impl Planned {
    /// The first run of a job that is added now; `None` if its calendar is over. By the calendar a
    /// run may have been planned for a moment that is past, and be put off until one that is to
    /// come.
    pub(crate) fn first(schedule: &Schedule, put_off: Duration, now: Now) -> Option<Self> {
        let at = match schedule {
            Schedule::After(delay)
            | Schedule::Every { initial: delay, .. }
            | Schedule::Delay { initial: delay, .. } => Moment::Steady(now.steady).later_by(*delay),
            Schedule::At { calendar, .. } => {
                Moment::Wall(calendar.next_after(now.earlier_by(put_off).wall)?)
            }
        };
        Some(Self { number: 1, at, skipped: 0 })
    }

    /// The number of runs missed before this one, which has started this late: those that were
    /// skipped, and those for which it stands.
    pub(crate) fn missed(&self, schedule: &Schedule, started: Now) -> u64 {
        use MissedRuns::{Coalesce, Delay};

        let stands_for = match (schedule, self.at) {
            (Schedule::Every { period, missed: Coalesce | Delay, .. }, at) => {
                whole_periods(at.late_at(started), *period)
            }
            (Schedule::At { calendar, missed: Coalesce | Delay }, Moment::Wall(at)) => {
                count(calendar, at, started.wall)
            }
            _ => 0,
        };
        self.skipped + stands_for
    }

    /// The run after this one, given when this one started and ended; `None` if there is none.
    pub(crate) fn next(&self, schedule: &Schedule, started: Now, ended: Now) -> Option<Self> {
        let (at, skipped) = match (schedule, self.at) {
            (Schedule::After(_), _) => return None,
            (Schedule::Delay { delay, .. }, _) => {
                (Moment::Steady(ended.steady).later_by(*delay), 0)
            }
            (Schedule::Every { period, missed, .. }, _) => {
                self.next_on_grid(*period, *missed, started, ended)
            }
            (Schedule::At { calendar, missed }, Moment::Wall(at)) => {
                let (after, counted) = match *missed {
                    MissedRuns::Burst => (at, false),
                    MissedRuns::Skip => (ended.wall, true),
                    MissedRuns::Within(limit) => (too_late(ended, limit).wall, true),
                    _ => (started.wall, false),
                };
                // The clock may have been set back since this run was due.
                let after = after.max(at);
                let skipped = if counted { count(calendar, at, after) } else { 0 };
                (Moment::Wall(calendar.next_after(after)?), skipped)
            }
            (Schedule::At { .. }, Moment::Steady(_)) => return None,
        };
        Some(Self { number: self.number + 1, at, skipped })
    }

    fn next_on_grid(
        &self,
        period: Duration,
        missed: MissedRuns,
        started: Now,
        ended: Now,
    ) -> (Moment, u64) {
        let late = whole_periods(self.at.late_at(started), period);
        let skip_until = |last: Now| {
            let skipped = whole_periods(self.at.late_at(last), period);
            (self.on_grid(period, skipped), skipped)
        };
        match missed {
            MissedRuns::Coalesce => (self.on_grid(period, late), 0),
            MissedRuns::Skip => skip_until(ended),
            MissedRuns::Within(limit) => skip_until(too_late(ended, limit)),
            MissedRuns::Delay if late > 0 => (Moment::Steady(started.steady).later_by(period), 0),
            // `Burst` makes up for each missed run.
            _ => (self.on_grid(period, 0), 0),
        }
    }

    /// The next planned time after that many others.
    fn on_grid(&self, period: Duration, left_out: u64) -> Moment {
        // The runs that are left out are over.
        let over = Duration::from_nanos(nanos(period).saturating_mul(left_out));
        self.at.later_by(over).later_by(period)
    }
}

/// The last moment whose run is too late to be made up for.
fn too_late(ended: Now, limit: Duration) -> Now {
    ended.earlier_by(limit.saturating_add(Duration::from_nanos(1)))
}

/// The number of a calendar's moments after `from`, up to and including `to`, as far as they are
/// counted.
pub(crate) fn count(calendar: &Cron, from: SystemTime, to: SystemTime) -> u64 {
    let (mut moment, mut count) = (from, 0);
    while count < MOST_COUNTED {
        match calendar.next_after(moment) {
            Some(next) if next <= to => (moment, count) = (next, count + 1),
            _ => break,
        }
    }
    count
}

fn whole_periods(span: Duration, period: Duration) -> u64 {
    nanos(span) / nanos(period).max(1)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
