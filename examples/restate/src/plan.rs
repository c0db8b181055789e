//! When a schedule runs, and which body.

use std::time::SystemTime;

use punctual::trigger::{CronError, cron};
use serde::{Deserialize, Serialize};

/// Whether the ticks run for which no service was there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missed {
    /// Each runs, one after the other.
    #[default]
    Each,
    /// The one that is under way runs, and then the first whose moment has not passed.
    Skip,
}

/// When a schedule runs, and which body: what [`Schedule::put`](crate::Schedule) takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// An expression of five or six fields: [`cron`].
    pub expression: String,
    /// The name of a time zone.
    pub zone: String,
    /// The name of the body.
    pub body: String,
    /// The policy for missed ticks.
    #[serde(default)]
    pub missed: Missed,
}

impl Plan {
    /// Returns the moment of the tick that follows the one of `after`; `None` if there is none. It depends on `now` only if
    /// missed ticks are skipped, so two services whose clocks differ agree otherwise.
    ///
    /// # Errors
    ///
    /// If the expression or the zone is not understood.
    pub fn next_after(
        &self,
        after: SystemTime,
        now: SystemTime,
    ) -> Result<Option<SystemTime>, CronError> {
        let after = match self.missed {
            Missed::Each => after,
            Missed::Skip => after.max(now),
        };
        Ok(cron(&self.expression, &self.zone)?.next_after(after))
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    fn nine_in_paris(missed: Missed) -> Plan {
        let (expression, zone) = ("0 9 * * MON-FRI".into(), "Europe/Paris".into());
        Plan { expression, zone, body: "note".into(), missed }
    }

    fn hours(hours: u64) -> Duration {
        Duration::from_secs(hours * 3600)
    }

    /// Friday, 27 March 2026, 09:00 in Paris, two days before the clocks are set forward.
    fn friday() -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_774_598_400)
    }

    #[test]
    fn a_weekend_on_which_the_clocks_change_is_seventy_one_hours() {
        let next = nine_in_paris(Missed::Each).next_after(friday(), friday());
        assert_eq!(next, Ok(Some(friday() + hours(71))));
    }

    #[test]
    fn missed_ticks_run_or_are_skipped() {
        // Tuesday, eleven in the morning.
        let now = friday() + hours(71 + 24 + 2);
        let next = |missed| nine_in_paris(missed).next_after(friday(), now);
        assert_eq!(next(Missed::Each), Ok(Some(friday() + hours(71))));
        assert_eq!(next(Missed::Skip), Ok(Some(friday() + hours(71 + 48))));
    }

    #[test]
    fn a_clock_that_is_behind_makes_no_tick_come_twice() {
        let next = nine_in_paris(Missed::Skip).next_after(friday(), friday() - hours(1));
        assert_eq!(next, Ok(Some(friday() + hours(71))));
    }
}
