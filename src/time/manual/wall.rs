//! The wall time of a manual clock: it goes on with the clock, and a test may set it.
//!
//! The state keeps one pair, what the wall clock showed at which timestamp. To set the wall clock is
//! to replace that pair, so it moves no deadline by itself. The threads that watch the wall clock are
//! woken in the same step, under the clock's lock, and count as busy from then on. So a test that sets
//! the wall clock and then waits [until idle](ManualClock::run_until_idle) finds every task that
//! follows that clock where it belongs now.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::ManualClock;
use crate::{sync::Parker, time::Timestamp};

/// The first second of the year 2000, in UTC, as seconds since the epoch of Unix.
const BEGINNING: Duration = Duration::from_secs(946_684_800);

/// Returns what the wall clock shows on a new clock that shows `elapsed`.
pub(super) fn at_first(elapsed: Duration) -> SystemTime {
    let beginning = UNIX_EPOCH + BEGINNING;
    beginning.checked_add(elapsed).unwrap_or(beginning)
}

impl ManualClock {
    /// Returns the wall time. At the clock's origin it is the beginning of the year 2000 in UTC, and it
    /// goes on as the clock is moved. Does not block.
    #[must_use]
    pub fn wall_time(&self) -> SystemTime {
        self.shared.state.lock().wall_time()
    }

    /// Sets the wall time, as an administrator or a time server does, or as it looks after the machine
    /// has slept. The clock itself stands still: [`now`](Self::now) and [`elapsed`](Self::elapsed) do
    /// not change, nor do rates and delays. Tasks that are planned
    /// [on the wall clock](crate::trigger::Due::Wall) follow it. Does not block: wait
    /// [until idle](Self::run_until_idle) before you look at them.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor, trigger::at};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let hour = Duration::from_secs(3600);
    /// let tea = executor.repeat(at([clock.wall_time() + 4 * hour]), || ())?;
    ///
    /// clock.set_wall_time(clock.wall_time() + 3 * hour); // to summer time, by somebody in a hurry
    /// clock.run_until_idle();
    /// assert_eq!(tea.delay(), Some(hour));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn set_wall_time(&self, wall: SystemTime) {
        self.shared.state.lock().set_wall_time(wall);
    }

    /// Returns the present, and the wall time at the same moment.
    pub(in crate::time) fn read_both(&self) -> (Timestamp, SystemTime) {
        let state = self.shared.state.lock();
        (state.now(), state.wall_time())
    }

    /// Has the calling thread, whose parker this is, be woken when the wall clock is set.
    pub(in crate::time) fn watch_wall(&self, parker: &Parker) {
        self.shared.state.lock().watch_wall(parker.thread());
    }

    pub(in crate::time) fn unwatch_wall(&self, parker: &Parker) {
        self.shared.state.lock().unwatch_wall(parker.thread());
    }
}
