//! From the wall clock, on which meetings are, to the monotonic clock, on which a queue waits.
//!
//! The two are read together, which gives a fixed point; from there on they are taken to run side
//! by side, or the wall clock so many times faster. They do not for ever: somebody sets the wall
//! clock, or the machine sleeps, and the monotonic clock with it. So a program that waits for long
//! reads both again from time to time ([`WallClock::check`]), and if they have come apart takes a
//! new fixed point. All that was computed from the old one is to be computed again.

use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};

/// A difference up to this is none: clocks that are kept on time over a network are slewed by more.
const TOLERANCE: TimeDelta = TimeDelta::milliseconds(500);

pub(crate) struct WallClock {
    /// The fixed point: the same moment on both clocks.
    wall: DateTime<Utc>,
    instant: Instant,
    /// None if it is the system's clock.
    speed: Option<f64>,
}

impl WallClock {
    /// The clock of the system.
    pub(crate) fn system() -> Self {
        Self { wall: Utc::now(), instant: Instant::now(), speed: None }
    }

    /// A clock that shows `wall` now, and goes at `speed`, which is positive.
    pub(crate) fn made_up(wall: DateTime<Utc>, speed: f64) -> Self {
        Self { wall, instant: Instant::now(), speed: Some(speed) }
    }

    /// What the wall clock shows at that moment.
    pub(crate) fn at(&self, instant: Instant) -> DateTime<Utc> {
        let since = instant.saturating_duration_since(self.instant);
        let since = Duration::try_from_secs_f64(since.as_secs_f64() * self.speed.unwrap_or(1.0));
        let since = since.ok().and_then(|since| TimeDelta::from_std(since).ok());
        since
            .and_then(|since| self.wall.checked_add_signed(since))
            .unwrap_or(DateTime::<Utc>::MAX_UTC)
    }

    /// When the wall clock will show that time; the fixed point for all that is before, and none
    /// for what is so late that no clock will show it.
    pub(crate) fn instant_of(&self, wall: DateTime<Utc>) -> Option<Instant> {
        let until = (wall - self.wall).to_std().unwrap_or_default();
        let until = until.as_secs_f64() / self.speed.unwrap_or(1.0);
        self.instant.checked_add(Duration::try_from_secs_f64(until).ok()?)
    }

    /// Reads the clocks again. If they have come apart, gives by how much the wall clock was ahead.
    pub(crate) fn check(&mut self) -> Option<TimeDelta> {
        match self.speed {
            None => self.correct(Utc::now(), Instant::now()),
            Some(_) => None,
        }
    }

    /// The same, for clocks that show this now.
    pub(crate) fn correct(&mut self, wall: DateTime<Utc>, instant: Instant) -> Option<TimeDelta> {
        let ahead = wall - self.at(instant);
        if ahead.abs() <= TOLERANCE {
            return None;
        }
        (self.wall, self.instant) = (wall, instant);
        Some(ahead)
    }
}
