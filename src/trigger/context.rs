//! A trigger's context ([`TriggerContext`]) and answer ([`Due`]).
//!
//! After a run that was planned on the wall clock, [`after_wall`](TriggerContext::after_wall) is exact: it comes from
//! the moment for which that run was planned, or from what the wall clock showed when the run started or ended.
//! Otherwise, and when the trigger is asked again, `after_wall` is computed from the executor's clock. A computed
//! moment is inexact, so a trigger that steps from moment to moment could return the same moment twice.

use std::time::{Duration, Instant, SystemTime};

use crate::time::{Clock, Timestamp, estimate};

/// The moment of a run; the answer of a [trigger](crate::Trigger).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Due {
    /// The run is due at this moment, on the executor's [clock](crate::Handle::clock).
    At(Instant),
    /// The run is due when the wall clock shows this moment, even if that clock is set in the meantime.
    Wall(SystemTime),
    /// The run is not due until a caller requests it, for example with [`run_now`](crate::TaskHandle::run_now) or
    /// [`reschedule`](crate::TaskHandle::reschedule).
    OnDemand,
}

impl Due {
    /// Returns this moment on the executor's clock: an estimate for `Wall`, `NEVER` for `OnDemand`.
    pub(crate) fn timestamp(self, clock: &Clock) -> Timestamp {
        match self {
            Self::At(moment) => clock.deadline_of(moment),
            Self::Wall(moment) => estimate(clock.read_both(), moment),
            Self::OnDemand => Timestamp::NEVER,
        }
    }

    pub(crate) fn wall(self) -> Option<SystemTime> {
        if let Self::Wall(moment) = self { Some(moment) } else { None }
    }

    pub(super) fn is_after(self, other: Self, clock: &Clock) -> bool {
        match (self, other) {
            (Self::At(this), Self::At(other)) => this > other,
            (Self::Wall(this), Self::Wall(other)) => this > other,
            _ => self.timestamp(clock) > other.timestamp(clock),
        }
    }

    /// Returns the earlier of this moment and `other`, or this one if they are not on the same clock.
    pub(super) fn earlier(self, other: Self) -> Self {
        match (self, other) {
            (Self::At(this), Self::At(other)) => Self::At(this.min(other)),
            (Self::Wall(this), Self::Wall(other)) => Self::Wall(this.min(other)),
            _ => self,
        }
    }

    /// Returns the moment `span` before this one, or this one if there is no such moment.
    pub(crate) fn before(self, span: Duration) -> Self {
        match self {
            Self::At(moment) => Self::At(moment.checked_sub(span).unwrap_or(moment)),
            Self::Wall(moment) => Self::Wall(moment.checked_sub(span).unwrap_or(moment)),
            Self::OnDemand => self,
        }
    }

    pub(crate) fn later_by(self, span: Duration) -> Option<Self> {
        match self {
            Self::At(moment) => moment.checked_add(span).map(Self::At),
            Self::Wall(moment) => moment.checked_add(span).map(Self::Wall),
            Self::OnDemand => Some(self),
        }
    }
}

impl From<SystemTime> for Due {
    fn from(moment: SystemTime) -> Self {
        Self::Wall(moment)
    }
}

impl From<Instant> for Due {
    fn from(instant: Instant) -> Self {
        Self::At(instant)
    }
}

/// `None` becomes [`OnDemand`](Due::OnDemand).
impl From<Option<Instant>> for Due {
    fn from(instant: Option<Instant>) -> Self {
        instant.map_or(Self::OnDemand, Self::At)
    }
}

/// The facts about the task that a [trigger](crate::Trigger) is given.
#[derive(Clone, Copy, Debug)]
pub struct TriggerContext<'a> {
    pub(crate) clock: &'a Clock,
    pub(crate) after: Timestamp,
    pub(crate) after_wall: Option<SystemTime>,
    pub(crate) last: Option<LastRun>,
    pub(crate) runs: u64,
    pub(crate) failures_in_a_row: u32,
    /// `true` if the trigger has already planned the run after `last`, and is now [asked
    /// again](crate::Trigger::is_asked_again).
    pub(crate) is_asked_again: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LastRun {
    pub(crate) planned: Timestamp,
    pub(crate) planned_wall: Option<SystemTime>,
    pub(crate) started: Timestamp,
    pub(crate) ended: Timestamp,
    /// `false` if the gate skipped the run, or the run was too late to start.
    pub(crate) took_place: bool,
}

impl<'a> TriggerContext<'a> {
    pub(crate) fn new(
        clock: &'a Clock,
        after: Timestamp,
        last: Option<LastRun>,
        runs: u64,
        failures_in_a_row: u32,
    ) -> Self {
        let (after_wall, is_asked_again) = (None, false);
        Self { clock, after, after_wall, last, runs, failures_in_a_row, is_asked_again }
    }

    /// Returns the moment that the next run has to come after; see the [module](super). Before the first run that is
    /// the moment of submission.
    pub fn after(&self) -> Instant {
        self.clock.shown_at(self.after)
    }

    /// Returns the same moment on the wall clock. If the last run was planned there, it is what that clock showed, or
    /// the exact planned moment, depending on the policy for missed runs. Otherwise it is computed from what the clock
    /// shows now. It is never later than now, even if the clock has been set back.
    ///
    /// ```
    /// use std::time::{Duration, UNIX_EPOCH};
    /// use punctual::trigger::{Due, from_fn};
    ///
    /// // At every full hour in UTC.
    /// let hourly = from_fn(|last| {
    ///     let since = last.after_wall().duration_since(UNIX_EPOCH).ok()?;
    ///     let next = (since.as_secs() / 3600 + 1) * 3600;
    ///     Some(Due::Wall(UNIX_EPOCH + Duration::from_secs(next)))
    /// });
    /// ```
    pub fn after_wall(&self) -> SystemTime {
        let after = self.after_wall.unwrap_or_else(|| self.clock.wall_at(self.after));
        after.min(self.clock.wall_time())
    }

    /// Returns the moment for which the last run was planned; `None` before the first.
    pub fn planned(&self) -> Option<Instant> {
        self.last.map(|last| self.clock.shown_at(last.planned))
    }

    /// Returns the wall-clock moment for which the last run was planned; `None` before the first, and if it was not
    /// planned on that clock.
    pub fn planned_wall(&self) -> Option<SystemTime> {
        self.last.and_then(|last| last.planned_wall)
    }

    /// Returns when the last run started; `None` before the first.
    pub fn started(&self) -> Option<Instant> {
        self.last.map(|last| self.clock.shown_at(last.started))
    }

    /// Returns when the last run ended; `None` before the first.
    pub fn ended(&self) -> Option<Instant> {
        self.last.map(|last| self.clock.shown_at(last.ended))
    }

    /// Returns `true` if the run that the trigger planned last took place; `false` if its gate skipped it, if it was
    /// too late to start, and before the first. [`runs`](Self::runs) does not tell, since it also counts runs [beside
    /// the schedule](crate::TaskHandle::run_now).
    pub fn took_place(&self) -> bool {
        self.last.is_some_and(|last| last.took_place)
    }

    /// Returns how many runs there have been.
    pub fn runs(&self) -> u64 {
        self.runs
    }

    /// Returns how many of the last runs in a row have failed; zero if the last one has not.
    pub fn failures_in_a_row(&self) -> u32 {
        self.failures_in_a_row
    }
}
