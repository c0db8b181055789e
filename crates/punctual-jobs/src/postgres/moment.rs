//! Moments as the statements take them.

use std::time::{Duration, SystemTime};

/// The last moment that a job can have, since 1970: the last year that the server's timestamps have. No time of Rust can show
/// `infinity`.
const NEVER: Duration = Duration::from_secs(9_224_286_393_600); // 1 January 294276

/// From which on a delay is for ever: a hundred thousand years. The server can add shorter ones to its time.
const LONGEST_DELAY: Duration = Duration::from_secs(100_000 * 365 * 86_400);

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
            let passed = now.saturating_duration_since(instant).min(LONGEST_DELAY);
            if !passed.is_zero() {
                return (None, Some(-passed.as_secs_f64()));
            }
            instant.saturating_duration_since(now)
        }
    };
    if delay >= LONGEST_DELAY { (Some(last), None) } else { (None, Some(delay.as_secs_f64())) }
}
