//! What the gates count their leases on: the clock of the runtime that the thread is in.

use std::{sync::OnceLock, time::Duration};

use tokio::time::Instant;

/// Returns the time since some moment in the past.
///
/// Simulated clocks begin at different moments, and the first one that is asked may be ahead of the next. A span from a
/// later origin would stand still at zero.
pub(super) fn now() -> Duration {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    let origin = || {
        let now = Instant::now();
        now.checked_sub(Duration::from_secs(60)).unwrap_or(now)
    };
    ORIGIN.get_or_init(origin).elapsed()
}
