//! The attempts of a run: each tries the command once, and all of them are one run.

use crate::{moment::Now, outcome::Outcome, runner::Runner, timetable::Planned};

/// One of the times that a run tries its command.
#[derive(Clone, Copy)]
pub(crate) struct Attempt {
    pub(crate) planned: Planned,
    /// When the run started, which is when its first attempt did.
    pub(crate) started: Now,
    /// Counted from 1.
    pub(crate) number: u32,
}

/// A run that waits for its next attempt. If there is none, because the program stops, the run has
/// ended with the last one.
pub(crate) struct Waiting {
    pub(crate) runner: Runner,
    pub(crate) attempt: Attempt,
    /// Of that attempt; `None` when the run has gone on.
    pub(crate) outcome: Option<Outcome>,
}

impl Waiting {
    pub(crate) fn go_on(mut self) {
        self.outcome = None;
        let attempt = Attempt { number: self.attempt.number + 1, ..self.attempt };
        self.runner.clone().attempt(attempt);
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(outcome) = self.outcome.take() {
            self.runner.report(self.attempt, outcome);
        }
    }
}
