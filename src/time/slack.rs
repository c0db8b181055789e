//! Timer slack: how much later than asked the system may end a timed sleep.
//!
//! Linux gives every thread a slack of 50 µs, so that timers which are close together share one
//! interrupt. That is half of the lateness of a program that waits with a lock's timeout. A thread
//! may ask for less; with one nanosecond its timers are shared with no other.

use std::time::Duration;

/// Sets the slack of the calling thread. Does nothing on systems other than Linux, and without
/// the feature `timer-slack`; if the system refuses, the thread keeps what it had.
#[cfg(all(target_os = "linux", feature = "timer-slack"))]
pub(crate) fn set(slack: Duration) {
    let nanos = super::saturating_nanos(slack);
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(nanos));
}

#[cfg(not(all(target_os = "linux", feature = "timer-slack")))]
pub(crate) fn set(_: Duration) {}
