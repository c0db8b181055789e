//! The clock that a holder counts its lease on: it cannot be set, and it goes on while the machine sleeps.
//!
//! On Linux that is the time since boot, `CLOCK_BOOTTIME`. Elsewhere it is [`Instant`](std::time::Instant),
//! which may stand still while the machine sleeps: there a holder that wakes believes in its lease until
//! its next renewal tells it otherwise. Its fencing token is stale all the same.

use std::time::Duration;

/// Returns the time since some moment in the past, which is the same for the whole process: [`now`], unless a simulation says.
pub(super) type BootClock = fn() -> Duration;

/// Returns the time since some moment in the past, which is the same for the whole process.
#[cfg(target_os = "linux")]
pub(super) fn now() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Returns the time since some moment in the past, which is the same for the whole process.
#[cfg(not(target_os = "linux"))]
pub(super) fn now() -> Duration {
    use std::{sync::OnceLock, time::Instant};

    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    ORIGIN.get_or_init(Instant::now).elapsed()
}
