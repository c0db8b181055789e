//! Adaptive spinning: how long a thread that has nothing to do spins before it parks.
//!
//! A thread needs some microseconds to wake up, and tens of them if its core has gone idle; the
//! thread that wakes it pays too. If what it waits for comes sooner than that, spinning is cheaper
//! for both. If not, the spinning was wasted. So a thread learns from its last waits: after a short
//! one it spins for as long as a wake-up costs, after a long one only for half as long as before. A
//! thread whose waits are long does not spin at all.
//!
//! After a few turns the spinning thread yields, each time, to any other thread that wants its core:
//! that may be the one it waits for, and in any case no other thread is kept from working.

use std::{cell::Cell, time::Duration};

use super::{spin_loop, thread};

/// What a wake-up costs, roughly; the longest time to spin.
const MOST: Duration = Duration::from_micros(20);
/// A time to spin that is shorter than this counts as none.
const LEAST: Duration = Duration::from_micros(1);
/// How many turns a thread spins before it yields in each.
const EAGER: u32 = 4;

/// See the [module](self). Belongs to one thread.
pub(crate) struct AdaptiveSpin(Cell<Duration>);

impl AdaptiveSpin {
    pub(super) const fn new() -> Self {
        Self(Cell::new(MOST))
    }

    /// Returns how long to spin before the next park.
    pub(crate) fn span(&self) -> Duration {
        self.0.get()
    }

    /// Takes note of how long a wait was.
    pub(crate) fn learn(&self, waited: Duration) {
        let half = self.0.get() / 2;
        let next = if half < LEAST { Duration::ZERO } else { half };
        self.0.set(if waited <= MOST { MOST } else { next });
    }
}

/// Calls `look` until it has an answer.
pub(crate) fn spin_until<R>(look: impl Fn() -> Option<R>) -> R {
    for _ in 0..EAGER {
        if let Some(answer) = look() {
            return answer;
        }
        spin_loop();
    }
    loop {
        if let Some(answer) = look() {
            return answer;
        }
        thread::yield_now();
    }
}
