//! Faults that only the clock's own state shows.

use super::*;

impl ManualClock {
    /// Returns a clock whose timestamps count from zero.
    pub(crate) fn from_zero() -> Self {
        Self::with_past(Duration::ZERO, Duration::ZERO)
    }

    /// Returns how often a thread has gone to sleep.
    pub(crate) fn parks(&self) -> usize {
        self.shared.state.lock().parks
    }

    /// Returns the timestamps that threads sleep until.
    pub(crate) fn sleepers(&self) -> Vec<Timestamp> {
        let state = self.shared.state.lock();
        let mut deadlines: Vec<_> = state.sleepers.iter().map(|sleeper| sleeper.until).collect();
        deadlines.sort();
        deadlines
    }
}

/// A sleeper whose deadline has come, but that has no core yet, must not bring the clock to that deadline again:
/// `run_for` would go there again and again until the sleeper had a core.
#[test]
fn who_is_slow_to_wake_is_not_waited_for() {
    let clock = ManualClock::from_zero();
    let sleeper = |nanos| {
        let thread = Arc::clone(&Parker::current().thread);
        Sleeper { until: Timestamp::from_nanos(nanos), thread, is_worker: false }
    };
    for nanos in [10, 30] {
        clock.shared.state.lock().sleepers.push(sleeper(nanos));
    }
    clock.advance(Duration::from_nanos(20));
    assert_eq!(clock.next_deadline(), Some(Duration::from_nanos(10)));
}
