//! The wall clock, and estimates of when it shows a moment.
//!
//! A moment of the wall clock has no timestamp, only an *estimate*: the timestamp at which it comes, provided that the
//! wall clock keeps pace with the monotonic clock. A task planned on the wall clock waits until its moment's estimate,
//! but for at most 30 s at a time; a worker then [checks](Timestamp::next_look) the wall clock. So the task is never
//! early, and at most 30 s late after the clock was set ahead or the machine slept.
//!
//! A thread reads the monotonic clock first, and then the wall clock. If it is preempted in between, the estimate is
//! too early, which a check corrects; the estimate is never too late.
//!
//! A time daemon (NTP) slews the wall clock, so that it runs a little faster or slower. On Linux the same slew applies
//! to the monotonic clock (`clock_gettime(2)`). Elsewhere a slew of 500 ppm amounts to 15 ms between two checks. Apart
//! from slewing, the two clocks diverge only in steps: when the wall clock is set, at a leap second, and while the
//! machine sleeps.

use std::time::{Duration, SystemTime};

use super::{Clock, TimeSource, Timestamp};

/// How often a worker checks the wall clock for a task that is planned on it.
pub(super) const BETWEEN_LOOKS: Duration = Duration::from_secs(30);

impl Clock {
    /// Returns the wall time: the system's, or [a manual clock's](crate::ManualClock::wall_time). Does not block.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use punctual::{Clock, ManualClock};
    ///
    /// let manual = ManualClock::new();
    /// let clock = Clock::from(manual.clone());
    /// manual.set_wall_time(SystemTime::UNIX_EPOCH);
    /// manual.advance(Duration::from_secs(60));
    /// assert_eq!(clock.wall_time(), SystemTime::UNIX_EPOCH + Duration::from_secs(60));
    /// ```
    pub fn wall_time(&self) -> SystemTime {
        self.read_both().1
    }

    pub(crate) fn read_both(&self) -> (Timestamp, SystemTime) {
        match &self.source {
            TimeSource::System { .. } => {
                // In this order: see the head of the module.
                let now = self.read();
                #[allow(clippy::disallowed_methods, reason = "the one place that reads it")]
                (now, SystemTime::now())
            }
            TimeSource::Manual(manual) => manual.read_both(),
        }
    }

    /// Returns what the wall clock shows at a past or future timestamp, if the clock is not set between then and now.
    pub(crate) fn wall_at(&self, timestamp: Timestamp) -> SystemTime {
        let (now, wall) = self.read_both();
        let shown = wall.checked_sub(now.since(timestamp));
        shown.and_then(|shown| shown.checked_add(timestamp.since(now))).unwrap_or(wall)
    }
}

/// Returns when the wall clock shows `moment`, given that it showed `wall` at `now`.
pub(crate) fn estimate((now, wall): (Timestamp, SystemTime), moment: SystemTime) -> Timestamp {
    match moment.duration_since(wall) {
        Ok(ahead) => now.after(ahead),
        Err(passed) => now.before(passed.duration()),
    }
}

impl Timestamp {
    /// Returns when, after this timestamp, workers next check the wall clock. The moment is the same for all tasks.
    pub(crate) fn next_look(self) -> Self {
        Self::PAST.on_grid_after(BETWEEN_LOOKS, self)
    }
}

#[cfg(test)]
#[cfg(not(any(shuttle, loom)))]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;
    use crate::time::ManualClock;

    #[test]
    fn an_estimate_goes_both_ways() {
        let manual = ManualClock::from_zero();
        manual.advance(Duration::from_secs(100));
        let (clock, wall) = (Clock::from(manual.clone()), manual.wall_time());
        let second = Duration::from_secs(1);
        let deadline = |moment| estimate(clock.read_both(), moment);
        assert_eq!(deadline(wall + second), clock.read().after(second));
        assert_eq!(deadline(wall - second), clock.read().before(second));
        manual.set_wall_time(wall + 50 * second);
        for moment in [wall, wall + 7 * second, wall + 70 * second] {
            assert_eq!(clock.wall_at(deadline(moment)), moment);
        }
        assert_eq!(deadline(UNIX_EPOCH), Timestamp::PAST);
    }

    #[test]
    fn looks_fall_together() {
        let at = |seconds| Timestamp::PAST.after(Duration::from_secs(seconds));
        let looks = [0, 1, 29, 30, 31].map(|now| at(now).next_look());
        assert_eq!(looks, [at(30), at(30), at(30), at(60), at(60)]);
        assert_eq!(Timestamp::NEVER.next_look(), Timestamp::NEVER);
    }
}
