//! Moments as the statements take them.

use std::time::{Duration, SystemTime};

/// The last moment that a job can have. No time of Rust can show `infinity`.
const NEVER: Duration = Duration::from_secs(253_370_764_800); // 1 January 9999

/// Returns the moment as the server keeps it, or it would not be the one that its answer names.
pub(super) fn in_micros(moment: SystemTime) -> SystemTime {
    let since = moment.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().min(NEVER);
    SystemTime::UNIX_EPOCH + Duration::new(since.as_secs(), since.subsec_micros() * 1000)
}

/// Returns a moment as the statements take it: a time, or seconds from the time of the statement.
pub(super) fn moment(
    when: crate::When,
    clock: &punctual::Clock,
) -> (Option<SystemTime>, Option<f64>) {
    let last = SystemTime::UNIX_EPOCH + NEVER;
    let delay = match when {
        crate::When::Wall(time) => {
            return (Some(time.clamp(SystemTime::UNIX_EPOCH, last)), None);
        }
        crate::When::After(delay) => delay,
        crate::When::At(instant) => {
            let now = clock.now();
            // Jobs with one ordering key are ordered by their moments, those that have passed included.
            let passed = now.saturating_duration_since(instant).min(NEVER / 8);
            if !passed.is_zero() {
                return (None, Some(-passed.as_secs_f64()));
            }
            instant.saturating_duration_since(now)
        }
    };
    if delay >= NEVER / 8 { (Some(last), None) } else { (None, Some(delay.as_secs_f64())) }
}
