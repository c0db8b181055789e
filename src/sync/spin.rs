//! AdaptiveSpin: how long a thread that has nothing to do looks on before it sleeps.
//!
//! To be woken takes a thread some microseconds, and tens of them if its core has gone idle; the
//! one who wakes it pays too. If what it waits for comes sooner than that, to look on is cheaper
//! for both. If not, looking was wasted. So a thread learns from its last waits: after a short
//! one it looks on for as long as a wake-up costs, after a long one only half as long as before.
//! A thread whose waits are long does not look on at all.
//!
//! After a few turns it gives way, each time, to any other thread that wants its core: perhaps
//! that is the one it waits for, and in any case nobody is kept from working.

use std::{cell::Cell, time::Duration};

use super::{spin_loop, thread};

/// What a wake-up costs, roughly.
const MOST: Duration = Duration::from_micros(20);
/// Less is none.
const LEAST: Duration = Duration::from_micros(1);
/// How many turns without giving way.
const EAGER: u32 = 4;

/// See the [module](self). Belongs to one thread.
pub(crate) struct AdaptiveSpin(Cell<Duration>);

impl AdaptiveSpin {
    pub(super) const fn new() -> Self {
        Self(Cell::new(MOST))
    }

    /// How long to look on.
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

/// Looks until there is an answer.
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
