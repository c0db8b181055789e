//! Faults that only the clock's own state shows.

use super::*;

/// A sleeper whose deadline has come, and that has not been given a core since, must not bring the
/// clock to that deadline again: `run_for` would go there until it is given one.
#[test]
fn who_is_slow_to_wake_is_not_waited_for() {
    let clock = ManualClock::from_zero();
    let sleeper = |nanos| {
        let thread = Arc::clone(Parker::current().thread());
        Sleeper { until: Timestamp::from_nanos(nanos), thread, is_worker: false }
    };
    for nanos in [10, 30] {
        clock.shared.state.lock().begin_sleep(sleeper(nanos));
    }
    clock.advance(Duration::from_nanos(20));
    assert_eq!(clock.next_deadline(), Some(Duration::from_nanos(10)));
}
