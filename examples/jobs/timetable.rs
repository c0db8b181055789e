//! When a job runs next: pure arithmetic on times.
//!
//! The library has all of this itself (`schedule_at_fixed_rate`, `schedule_with_fixed_delay`,
//! [`MissedRuns`]), but for the library a run is over when its closure returns. Here no closure
//! waits for its command: the run outlasts it. So each run is a task of its own, and its end plans
//! the next by the library's rules.

use std::time::{Duration, Instant};

use punctual::MissedRuns;

use crate::config::Schedule;

/// A time this far away never comes, and adding to times does not overflow.
const NEVER: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// A run that is to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Planned {
    /// Counted from 1.
    pub(crate) number: u64,
    pub(crate) at: Instant,
    /// The number of runs that are skipped between the previous one and this.
    pub(crate) skipped: u64,
}

impl Planned {
    /// The first run of a job that is added now.
    pub(crate) fn first(schedule: Schedule, now: Instant) -> Self {
        let (Schedule::After(delay)
        | Schedule::Every { initial: delay, .. }
        | Schedule::Delay { initial: delay, .. }) = schedule;
        Self { number: 1, at: now + delay.min(NEVER), skipped: 0 }
    }

    /// The number of runs missed before this one, which has started this late: those that were
    /// skipped, and those for which it stands.
    pub(crate) fn missed(&self, schedule: Schedule, started: Instant) -> u64 {
        let stands_for = match schedule {
            Schedule::Every {
                period, missed: MissedRuns::Coalesce | MissedRuns::Delay, ..
            } => whole_periods(self.at, started, period),
            _ => 0,
        };
        self.skipped + stands_for
    }

    /// The run after this one, given when this one started and ended; `None` for a job that runs
    /// once.
    pub(crate) fn next(
        &self,
        schedule: Schedule,
        started: Instant,
        ended: Instant,
    ) -> Option<Self> {
        let (at, skipped) = match schedule {
            Schedule::After(_) => return None,
            Schedule::Delay { delay, .. } => (ended + delay.min(NEVER), 0),
            Schedule::Every { period, missed, .. } => {
                let late = whole_periods(self.at, started, period);
                match missed {
                    MissedRuns::Coalesce => (self.on_grid(period, late), 0),
                    MissedRuns::Skip => {
                        let skipped = whole_periods(self.at, ended, period);
                        (self.on_grid(period, skipped), skipped)
                    }
                    MissedRuns::Delay if late > 0 => (started + period.min(NEVER), 0),
                    // `Burst` makes up for each missed run.
                    _ => (self.on_grid(period, 0), 0),
                }
            }
        };
        Some(Self { number: self.number + 1, at, skipped })
    }

    /// The next planned time after that many others.
    fn on_grid(&self, period: Duration, left_out: u64) -> Instant {
        // The runs that are left out are over.
        let over = nanos(period).saturating_mul(left_out);
        self.at + Duration::from_nanos(over) + period.min(NEVER)
    }
}

fn whole_periods(from: Instant, to: Instant, period: Duration) -> u64 {
    nanos(to.saturating_duration_since(from)) / nanos(period).max(1)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
