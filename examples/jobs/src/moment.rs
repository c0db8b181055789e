//! A moment on one of two clocks.
//!
//! A job that is planned by the calendar goes by the wall clock, and all others by one that cannot be
//! set. Each [`Moment`] says which it is on, and both clocks are read together ([`Now`]).

use std::time::{Duration, Instant, SystemTime};

/// A time this far away never comes, and adding to times does not overflow.
pub(crate) const NEVER: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// A moment on one of the two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    Steady(Instant),
    Wall(SystemTime),
}

impl Moment {
    pub(crate) fn later_by(self, span: Duration) -> Self {
        let span = span.min(NEVER);
        match self {
            Self::Steady(at) => Self::Steady(at + span),
            Self::Wall(at) => Self::Wall(at + span),
        }
    }

    /// How long ago it was; zero if it is to come.
    pub(crate) fn late_at(self, now: Now) -> Duration {
        match self {
            Self::Steady(at) => now.steady.saturating_duration_since(at),
            Self::Wall(at) => now.wall.duration_since(at).unwrap_or_default(),
        }
    }
}

/// The times of the two clocks at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    pub(crate) steady: Instant,
    pub(crate) wall: SystemTime,
}

impl Now {
    pub(crate) fn read() -> Self {
        Self { steady: Instant::now(), wall: SystemTime::now() }
    }

    pub(crate) fn earlier_by(self, span: Duration) -> Self {
        Self {
            steady: self.steady.checked_sub(span).unwrap_or(self.steady),
            wall: self.wall.checked_sub(span).unwrap_or(self.wall),
        }
    }
}
