//! Watches one running command: passes its output on, sees its end, and makes it end when its time
//! is over or the program is to stop.

use std::{
    io,
    time::{Duration, Instant},
};

use crate::{
    attempt::Attempt,
    outcome::Outcome,
    process::{Process, Request, Seen},
    runner::Runner,
};

/// The shortest and the longest time between two polls of a command.
const LOOKS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(100));
/// How long a command that was told to stop may take before the next, less polite step.
const PATIENCE: Duration = Duration::from_secs(1);

/// One job while its command runs.
pub(crate) struct Watched {
    runner: Runner,
    attempt: Attempt,
    process: Process,
    begun: Instant,
    /// When a poll last found something.
    stirred: Instant,
    /// The last request to the command, and its time.
    request: Option<(Request, Instant)>,
    /// Whether it was told to stop because it took too long.
    is_too_long: bool,
}

impl Watched {
    /// Watches a command that has just been started.
    pub(crate) fn begin(runner: Runner, attempt: Attempt, process: Process) {
        let begun = Instant::now();
        Self { runner, attempt, process, begun, stirred: begun, request: None, is_too_long: false }
            .look_after(LOOKS.0);
    }

    fn look_after(self, pause: Duration) {
        let watcher = self.runner.crew().watcher.clone();
        // The watcher is shut down when no command runs any more.
        let _ = watcher.schedule(pause, move || self.look());
    }

    /// Polls the command, on the watcher.
    fn look(mut self) {
        let is_to_stop = self.request.is_some();
        let seen = self.process.look(is_to_stop, |line| self.runner.output(line));
        match self.judge(seen) {
            Some(outcome) => self.runner.ended(self.attempt, outcome),
            None => {
                let pause = (self.stirred.elapsed() / 32).min(LOOKS.1);
                let pause = self.time_left().map_or(pause, |left| pause.min(left));
                self.look_after(pause.max(LOOKS.0));
            }
        }
    }

    /// How long the command may still take; `None` if it may take for ever, or has been told to stop.
    fn time_left(&self) -> Option<Duration> {
        let limit = self.runner.job().timeout.filter(|_| self.request.is_none())?;
        Some(limit.saturating_sub(self.begun.elapsed()))
    }

    /// The outcome of the attempt, if the command has ended.
    fn judge(&mut self, seen: io::Result<Seen>) -> Option<Outcome> {
        match seen {
            Ok(Seen::Ended(status)) if self.is_too_long => return Some(Outcome::TimedOut(status)),
            Ok(Seen::Ended(status)) if self.request.is_some() => {
                return Some(Outcome::Stopped(status));
            }
            Ok(Seen::Ended(status)) => return Some(Outcome::Exited(status)),
            Err(error) => return Some(Outcome::Lost(error.into())),
            Ok(Seen::Talking) => self.stirred = Instant::now(),
            Ok(Seen::Nothing) => {}
        }
        let is_to_stop = self.runner.crew().hurry.is_cancelled();
        self.is_too_long |= !is_to_stop && self.time_left().is_some_and(|left| left.is_zero());
        if is_to_stop || self.is_too_long { self.stop() } else { None }
    }

    /// Makes the command end: first asks it to, then kills it, and finally gives up. Each step
    /// leaves it some time.
    fn stop(&mut self) -> Option<Outcome> {
        let request = match self.request {
            Some((_, at)) if at.elapsed() < PATIENCE => return None,
            None => Request::Terminate,
            Some((Request::Terminate, _)) => Request::Kill,
            Some((Request::Kill, _)) => {
                let cause = "killed, but something it has started still holds its output";
                return Some(Outcome::Lost(cause.into()));
            }
        };
        self.process.request(request);
        let now = Instant::now();
        (self.stirred, self.request) = (now, Some((request, now)));
        None
    }
}
