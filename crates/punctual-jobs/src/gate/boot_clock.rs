//! The clock that a holder counts its lease on: it cannot be set, and it goes on while the machine sleeps.
//!
//! On Linux that is the time since boot, `CLOCK_BOOTTIME`. Elsewhere it is [`Instant`](std::time::Instant),
//! which may stand still while the machine sleeps: there a holder that wakes believes in its lease until
//! its next renewal tells it otherwise. Its fencing token is stale all the same.

use std::time::Duration;

/// Returns the time since some moment in the past, which is the same for the whole process.
#[cfg(all(target_os = "linux", not(test)))]
pub(crate) fn now() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Returns the time since some moment in the past, which is the same for the whole process.
#[cfg(any(not(target_os = "linux"), test))]
pub(crate) fn now() -> Duration {
    use std::sync::OnceLock;

    // In a unit test the clock of the runtime that the thread is in, which may be simulated.
    #[cfg(not(test))]
    use std::time::Instant;
    #[cfg(test)]
    use tokio::time::Instant;

    // Simulated clocks begin at different moments, and the first one that is asked may be ahead of the next. A span from a
    // later origin would stand still at zero.
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    let origin = || {
        let now = Instant::now();
        now.checked_sub(Duration::from_secs(60)).unwrap_or(now)
    };
    ORIGIN.get_or_init(origin).elapsed()
}
