//! The policies for missed ticks, of schedules that are rows and of gates.

use std::time::{Duration, SystemTime};

/// What becomes of the ticks that no machine has taken in time: none was running, or none could reach the database.
///
/// The last tick that is due is in time for ten seconds. Those that are missed are counted and told, by whichever machine finds
/// them: [`TicksMissed`](crate::gate::GateEvent::TicksMissed) of a gate, and an event of the same name of a queue. (Quartz: misfire instruction.
/// Kubernetes: `startingDeadlineSeconds`. Temporal: catch-up window.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CatchUp {
    /// They do not run.
    None,
    /// One run, for the last of them, stands for all, if that tick was due no longer ago than this window.
    Last(Duration),
    /// Each that was due no longer ago than this window runs, in their order, one after the other. Jobs of a schedule wait for
    /// room, as its rule for overlaps says, and later ticks wait behind them; so there are never more jobs at once than that allows.
    Each(Duration),
}

impl CatchUp {
    pub(crate) fn window(self) -> Duration {
        match self {
            Self::None => Duration::ZERO,
            Self::Last(window) | Self::Each(window) => window,
        }
    }
}

/// How long after it is due the last tick counts as on time.
pub(crate) const ON_TIME: Duration = Duration::from_secs(10);

/// Returns the last tick that is later than `after` and not later than `until`.
pub(crate) fn last_between(
    next_after: impl Fn(SystemTime) -> Option<SystemTime>,
    after: SystemTime,
    until: SystemTime,
) -> Option<SystemTime> {
    let next = |moment| next_after(moment).filter(|tick| *tick <= until);
    let mut last = next(after)?;
    let mut none_after = until;
    // Each round goes on by a tick, and halves what may hold others: years of seconds take some thirty rounds.
    while let Some(later) = next(last) {
        last = later;
        let half = none_after.duration_since(last).unwrap_or_default() / 2;
        match next(last + half) {
            Some(later) => last = later,
            None => none_after = last + half,
        }
    }
    Some(last)
}
