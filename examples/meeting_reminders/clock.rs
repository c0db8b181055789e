//! Conversion from the wall clock, which meetings use, to the monotonic clock, which a queue uses.
//!
//! The two are read together, which yields a fixed point; from there on they are assumed to run
//! side by side, or the wall clock at a multiple of the speed. That does not hold for ever: the
//! wall clock is set, or the machine sleeps, and the monotonic clock with it. So a program that
//! waits for long reads both again from time to time ([`WallClock::check`]), and takes a new fixed
//! point if they have diverged. Everything computed from the old one must then be computed again.

use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};

/// A difference up to this is ignored: clocks that are synchronized over a network are slewed by
/// more.
const TOLERANCE: TimeDelta = TimeDelta::milliseconds(500);

pub(crate) struct WallClock {
    /// The fixed point: the same moment on both clocks.
    wall: DateTime<Utc>,
    instant: Instant,
    /// `None` for the system's clock.
    speed: Option<f64>,
}

impl WallClock {
    /// The clock of the system.
    pub(crate) fn system() -> Self {
        Self { wall: Utc::now(), instant: Instant::now(), speed: None }
    }

    /// A clock that shows `wall` now and runs at `speed`, which is positive.
    pub(crate) fn made_up(wall: DateTime<Utc>, speed: f64) -> Self {
        Self { wall, instant: Instant::now(), speed: Some(speed) }
    }

    /// The wall clock's time at that instant.
    pub(crate) fn at(&self, instant: Instant) -> DateTime<Utc> {
        let since = instant.saturating_duration_since(self.instant);
        let since = Duration::try_from_secs_f64(since.as_secs_f64() * self.speed.unwrap_or(1.0));
        let since = since.ok().and_then(|since| TimeDelta::from_std(since).ok());
        since
            .and_then(|since| self.wall.checked_add_signed(since))
            .unwrap_or(DateTime::<Utc>::MAX_UTC)
    }

    /// The instant at which the wall clock will show that time; the fixed point for any earlier
    /// time, and `None` for one so late that no clock will show it.
    pub(crate) fn instant_of(&self, wall: DateTime<Utc>) -> Option<Instant> {
        let until = (wall - self.wall).to_std().unwrap_or_default();
        let until = until.as_secs_f64() / self.speed.unwrap_or(1.0);
        self.instant.checked_add(Duration::try_from_secs_f64(until).ok()?)
    }

    /// Reads the clocks again. If they have diverged, returns by how much the wall clock was ahead.
    pub(crate) fn check(&mut self) -> Option<TimeDelta> {
        match self.speed {
            None => self.correct(Utc::now(), Instant::now()),
            Some(_) => None,
        }
    }

    /// Does the same for the given readings.
    pub(crate) fn correct(&mut self, wall: DateTime<Utc>, instant: Instant) -> Option<TimeDelta> {
        let ahead = wall - self.at(instant);
        if ahead.abs() <= TOLERANCE {
            return None;
        }
        (self.wall, self.instant) = (wall, instant);
        Some(ahead)
    }
}
