//! A rate whose moments are the same on every machine.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use punctual::{
    Trigger,
    trigger::{Due, TriggerContext},
};

/// Runs whenever the time since the beginning of 1970, in UTC, is a multiple of the period: with an
/// hour, at each full hour of UTC. So replicas that know nothing of each other plan the same moments, which
/// [`Trigger`]s that count from the submission do not, and their ticks can be told apart.
///
/// If the clock is set back by no more than a period, no moment comes twice. If it is set back further, the rate
/// follows it at once, as a cron expression does after a long step: moments that come again are planned again. A gate
/// or [`Jobs::every`](crate::Jobs::every) says then whether they run.
///
/// A period below a microsecond counts as one.
///
/// ```
/// use std::time::Duration;
/// use punctual::ScheduledThreadPoolExecutor;
/// use punctual_jobs::aligned;
///
/// let executor = ScheduledThreadPoolExecutor::new(1);
/// executor.repeat(aligned(Duration::from_secs(60)), || { /* sweep */ })?;
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[must_use]
pub fn aligned(period: Duration) -> Aligned {
    Aligned { period: period.max(Duration::from_micros(1)) }
}

/// A rate that is aligned to the clock; from [`aligned`].
#[derive(Clone, Copy, Debug)]
pub struct Aligned {
    period: Duration,
}

impl Aligned {
    /// Returns the first multiple of the period after a moment; `None` if no [`SystemTime`] can show it.
    #[must_use]
    pub fn next_after(self, moment: SystemTime) -> Option<SystemTime> {
        let next = self.number(moment).checked_add(1)?.checked_mul(self.period.as_nanos())?;
        let whole = u64::try_from(next / 1_000_000_000).ok()?;
        let rest = u32::try_from(next % 1_000_000_000).ok()?;
        UNIX_EPOCH.checked_add(Duration::new(whole, rest))
    }

    /// Returns how many whole periods there are up to a moment. All of the time before 1970 is in the first
    /// one.
    fn number(self, moment: SystemTime) -> u128 {
        let since = moment.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        since.as_nanos() / self.period.as_nanos()
    }
}

impl Trigger for Aligned {
    fn next(&mut self, last: &TriggerContext<'_>) -> Option<Due> {
        // A clock that was set back shows moments again that have been ticks already.
        let after = last.after_wall();
        let back = |planned: &SystemTime| planned.duration_since(after).unwrap_or_default();
        let planned = last.planned_wall().filter(|planned| back(planned) <= self.period);
        self.next_after(planned.map_or(after, |planned| planned.max(after))).map(Due::Wall)
    }

    fn is_asked_again(&mut self) -> bool {
        true
    }

    fn between(&mut self, from: Due, to: Due) -> u64 {
        let (Due::Wall(from), Due::Wall(to)) = (from, to) else { return 0 };
        let count = self.number(to).saturating_sub(self.number(from));
        u64::try_from(count).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;
    use punctual::{ManualClock, ScheduledThreadPoolExecutor, with_context};

    use super::*;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn the_next_moment_is_a_multiple_and_never_the_one_given() {
        let minute = aligned(Duration::from_secs(60));
        assert_eq!(minute.next_after(at(59)), Some(at(60)));
        assert_eq!(minute.next_after(at(60)), Some(at(120)));
        assert_eq!(minute.next_after(at(60) - Duration::from_nanos(1)), Some(at(60)));
        assert_eq!(minute.next_after(UNIX_EPOCH - Duration::from_secs(7)), Some(at(60)));
    }

    #[test]
    fn a_period_of_nothing_is_one_of_a_microsecond() {
        let none = aligned(Duration::ZERO);
        assert_eq!(none.next_after(at(1)), Some(at(1) + Duration::from_micros(1)));
    }

    #[test]
    fn a_period_beyond_the_clock_has_no_next_moment() {
        assert_eq!(aligned(Duration::MAX).next_after(at(1)), None);
    }

    #[test]
    fn missed_moments_are_counted() {
        let mut minute = aligned(Duration::from_secs(60));
        assert_eq!(minute.between(Due::Wall(at(60)), Due::Wall(at(240))), 3);
        assert_eq!(minute.between(Due::Wall(at(60)), Due::Wall(at(61))), 0);
    }

    /// Moves the wall clock, lets two minutes pass, and returns the minutes at which the rate has run.
    fn after_a_step(back: Duration) -> Vec<u64> {
        let (clock, minute) = (ManualClock::new(), Duration::from_secs(60));
        clock.set_wall_time(at(6_000_000));
        let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(1);
        let executor = builder.clock(clock.clone()).build().expect("good settings");
        let runs = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&runs);
        let body = with_context(move |run| {
            let since = run.planned_wall().duration_since(UNIX_EPOCH).unwrap_or_default();
            seen.lock().push(since.as_secs() / 60 - 100_000);
        });
        executor.repeat(aligned(minute), body).expect("accepted");
        clock.run_for(125 * minute);
        runs.lock().clear();
        clock.set_wall_time(clock.wall_time() - back);
        clock.run_for(2 * minute);
        runs.lock().clone()
    }

    #[test]
    fn a_clock_that_is_set_back_by_a_period_repeats_no_moment_and_by_more_is_followed() {
        assert_eq!(after_a_step(Duration::ZERO), [126, 127]);
        assert_eq!(after_a_step(Duration::from_secs(30)), [126]);
        assert_eq!(after_a_step(Duration::from_secs(60)), [126]);
        // The executor looks half a minute later, and what has passed by then is no step.
        assert_eq!(after_a_step(Duration::from_secs(91)), [124, 125]);
        assert_eq!(after_a_step(Duration::from_secs(7200)), [6, 7]);
    }
}
