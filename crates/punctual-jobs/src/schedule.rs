//! Ticks: the moments at which periodic jobs are sent, and how a task learns which tick it runs for.
//!
//! Several machines can agree that a tick has been taken only if they mean the same moment by it. So a
//! tick is a time of the wall clock, exactly as the trigger has named it, to the nanosecond: a calendar's
//! minute, or a point of a grid that is aligned to the epoch. When a machine gets to it is another matter,
//! and differs.
//!
//! punctual tells a trigger what happened, and a task when it was planned on the monotonic clock. So the
//! trigger is wrapped, and writes its answer into a cell that the body reads. Both are called by the same
//! task, one after the other, and the lock of the cell is there because two threads may do that.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;
use punctual::{
    Trigger,
    trigger::{Due, TriggerContext},
};

/// Runs at the ends of each period since 1 January 1970, 00:00 in UTC: the same moments on every machine.
/// A period of zero counts as a nanosecond.
///
/// ```
/// use std::time::Duration;
/// use punctual_jobs::aligned;
///
/// let five_minutes = aligned(Duration::from_secs(300)); // at :00, :05, :10, …
/// ```
#[must_use]
pub fn aligned(period: Duration) -> Aligned {
    Aligned { period: period.max(Duration::from_nanos(1)) }
}

/// A fixed rate on the wall clock; from [`aligned`].
#[derive(Clone, Copy, Debug)]
pub struct Aligned {
    period: Duration,
}

impl Aligned {
    /// Returns the first point of the grid that is later than `time`, if there is one.
    fn next_after(&self, time: SystemTime) -> Option<SystemTime> {
        let period = self.period.as_nanos();
        let since = match time.duration_since(UNIX_EPOCH) {
            Ok(since) => since.as_nanos(),
            Err(_) => return Some(UNIX_EPOCH),
        };
        let next = (since / period + 1) * period;
        let (seconds, nanos) = (next / 1_000_000_000, next % 1_000_000_000);
        let next = Duration::new(u64::try_from(seconds).ok()?, nanos as u32);
        UNIX_EPOCH.checked_add(next)
    }
}

impl Trigger for Aligned {
    fn next(&mut self, last: &TriggerContext<'_>) -> Option<Due> {
        // A clock that was set back shows moments again that have been ticks already.
        let after = last.after_wall();
        let after = last.planned_wall().map_or(after, |planned| planned.max(after));
        self.next_after(after).map(Due::Wall)
    }
}

/// A trigger of any type.
pub(crate) struct BoxedTrigger(Box<dyn Trigger>);

impl BoxedTrigger {
    pub(crate) fn new(trigger: impl Trigger) -> Self {
        Self(Box::new(trigger))
    }

    /// Returns the trigger for a task, and the cell from which its body learns the tick.
    pub(crate) fn ticking(self) -> (Ticking, Tick) {
        let tick = Tick(Arc::default());
        (Ticking { inner: self.0, tick: tick.clone() }, tick)
    }
}

/// The moment for which the next run of a task is planned.
#[derive(Clone)]
pub(crate) struct Tick(Arc<Mutex<Option<Due>>>);

#[cfg_attr(not(feature = "postgres"), allow(dead_code, reason = "one process needs not agree"))]
impl Tick {
    pub(crate) fn get(&self) -> Option<Due> {
        *self.0.lock()
    }

    /// Returns the moment, if it is one of the wall clock.
    pub(crate) fn wall(&self) -> Option<SystemTime> {
        match self.get() {
            Some(Due::Wall(time)) => Some(time),
            _ => None,
        }
    }
}

/// A trigger whose answers can be read.
pub(crate) struct Ticking {
    inner: Box<dyn Trigger>,
    tick: Tick,
}

impl Trigger for Ticking {
    fn next(&mut self, last: &TriggerContext<'_>) -> Option<Due> {
        let due = self.inner.next(last);
        *self.tick.0.lock() = due;
        due
    }

    fn is_asked_again(&self) -> bool {
        self.inner.is_asked_again()
    }

    fn between(&self, from: Due, to: Due) -> u64 {
        self.inner.between(from, to)
    }
}

impl fmt::Debug for Ticking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticking").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grid_is_aligned_to_the_epoch() {
        let minute = aligned(Duration::from_secs(60));
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        assert_eq!(minute.next_after(at(59)), Some(at(60)));
        assert_eq!(minute.next_after(at(60)), Some(at(120)));
        assert_eq!(minute.next_after(UNIX_EPOCH - Duration::from_secs(1)), Some(UNIX_EPOCH));
    }

    #[test]
    fn a_period_beyond_time_has_no_next_point() {
        assert_eq!(aligned(Duration::MAX).next_after(UNIX_EPOCH + Duration::from_secs(1)), None);
    }
}
