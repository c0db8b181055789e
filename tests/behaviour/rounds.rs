//! How many rounds a race runs.
//!
//! A race is repeated because it finds its faults by chance. Its threads yield to each other at
//! each step, so on a busy machine a round takes many times as long. `cargo test` therefore runs as
//! many rounds as fit into a few seconds, and prints how many that was; with `PUNCTUAL_ROUNDS=all`
//! in the environment, as in the search (`ci/search.sh`), every race runs all of its rounds. No test
//! asserts on the time.

use std::{
    env,
    io::{self, Write},
    time::Duration,
};

use crate::support::Patience;

/// How long a race starts new rounds, unless all are requested, not counting how long the process stands still.
const BUDGET: Duration = Duration::from_secs(3);

/// The numbers of the rounds of one race, from zero.
pub struct Rounds {
    race: &'static str,
    next: usize,
    at_least: usize,
    all: usize,
    /// `None` if all rounds are requested.
    budget: Option<Patience>,
}

/// Returns the rounds of a race: `all` of them if `PUNCTUAL_ROUNDS` is `all`, and otherwise as many
/// as fit into the budget, but at least a hundredth of them.
pub fn rounds(race: &'static str, all: usize) -> Rounds {
    let budget = match env::var("PUNCTUAL_ROUNDS").as_deref() {
        Ok("all") => None,
        Ok(other) => panic!("PUNCTUAL_ROUNDS is {other:?}, and may only be \"all\""),
        Err(_) => Some(Patience::of(BUDGET)),
    };
    Rounds { race, next: 0, at_least: all.div_ceil(100), all, budget }
}

impl Rounds {
    /// How many rounds have begun.
    pub const fn begun(&self) -> usize {
        self.next
    }
}

impl Iterator for Rounds {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let is_over = self.budget.as_mut().is_some_and(|budget| !budget.lasts());
        if self.next == self.all || (self.next >= self.at_least && is_over) {
            return None;
        }
        self.next += 1;
        Some(self.next - 1)
    }
}

impl Drop for Rounds {
    /// Prints how many rounds there were, bypassing the test harness, which captures the output of
    /// a passing test.
    fn drop(&mut self) {
        let (race, begun, all) = (self.race, self.next, self.all);
        let hint = if begun < all { "; PUNCTUAL_ROUNDS=all runs all" } else { "" };
        let _ = writeln!(io::stderr(), "{race}: {begun} of {all} rounds{hint}");
    }
}
