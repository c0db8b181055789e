//! Runs jobs. A few threads serve any number of jobs: none waits for a command.
//!
//! Two executors take part, and neither waits for the other:
//!
//! 1. When a run is due, a task of the **starters** starts its command.
//! 2. A task of the **watcher** polls the command: it passes the command's output on, and asks
//!    whether the command has ended. If not, it schedules the next poll: soon after there was
//!    activity, and later the longer there was none, between a millisecond and a tenth of a second.
//!    So an end is seen, and reported, late by a thirtieth of the command's time, but by no more
//!    than a tenth of a second.
//! 3. When the command has ended, that task reports the run, and schedules the next one with the
//!    starters ([`timetable`](crate::timetable)).
//!
//! So a run is a chain of tasks, in which each schedules its successor and hands its state on to
//! it: nothing is shared, nothing is locked. One thread is enough to watch, because polling is
//! quick; starting takes as many as there are cores, because it is work for the system. A thread
//! that waits for each command would see its end at once; that would be ten thousand threads for
//! ten thousand commands.
//!
//! A chain breaks off where an executor has been shut down, and drops its state: that is how jobs
//! are stopped. When the last chain has ended, the [`Crew`] is dropped, which raises the token for
//! that.

use std::{
    error::Error,
    fmt, io,
    process::ExitStatus,
    sync::Arc,
    time::{Duration, Instant},
};

use punctual::{CancellationToken, Handle, RejectedExecutionError};

use crate::{
    config::Job,
    process::{Process, Request, Seen},
    report::{Report, Run},
    timetable::Planned,
};

/// The shortest and the longest time between two polls of a command.
const LOOKS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(100));
/// How long a command that was told to stop may take before the next, less polite step.
const PATIENCE: Duration = Duration::from_secs(1);

/// The outcome of a run.
pub(crate) enum Outcome {
    Exited(ExitStatus),
    /// The command was told to stop, and ended because of that.
    Stopped(ExitStatus),
    /// The command could not be started, or not be followed to its end.
    Lost(Box<dyn Error + Send + Sync>),
}

impl Outcome {
    pub(crate) fn is_failure(&self) -> bool {
        match self {
            Self::Exited(status) => !status.success(),
            Self::Stopped(_) => false,
            Self::Lost(_) => true,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(status) if status.success() => f.write_str("ok"),
            Self::Exited(status) => write!(f, "FAILED ({status})"),
            Self::Stopped(status) => write!(f, "stopped ({status})"),
            Self::Lost(error) => write!(f, "FAILED ({error})"),
        }
    }
}

/// The state that all jobs share.
pub(crate) struct Crew {
    pub(crate) starters: Handle,
    pub(crate) watcher: Handle,
    pub(crate) report: Arc<Report>,
    /// Raised when running commands are to be stopped.
    pub(crate) hurry: CancellationToken,
    /// Raised when no job has a run to come, and no command runs.
    pub(crate) over: Vec<CancellationToken>,
}

impl Drop for Crew {
    fn drop(&mut self) {
        for token in &self.over {
            token.cancel();
        }
    }
}

/// One job, between two runs.
pub(crate) struct Runner {
    job: Job,
    /// The job's index, for the report.
    index: usize,
    crew: Arc<Crew>,
}

impl Runner {
    /// Schedules the first run.
    pub(crate) fn start(
        job: &Job,
        index: usize,
        crew: &Arc<Crew>,
    ) -> Result<(), RejectedExecutionError> {
        let first = Planned::first(job.schedule, Instant::now());
        Self { job: job.clone(), index, crew: Arc::clone(crew) }.schedule(first)
    }

    fn schedule(self, planned: Planned) -> Result<(), RejectedExecutionError> {
        let starters = self.crew.starters.clone();
        starters.schedule_at(planned.at, move || self.run(planned)).map(drop)
    }

    /// Starts the command, on a starter.
    fn run(self, planned: Planned) {
        let started = Instant::now();
        match Process::start(&self.job.command) {
            Ok(process) => {
                let runner = self;
                let stirred = started;
                Running { runner, planned, started, process, stirred, request: None }
                    .look_after(LOOKS.0);
            }
            Err(error) => {
                let cause = format!("the shell cannot be started: {error}");
                self.ended(planned, started, Outcome::Lost(cause.into()));
            }
        }
    }

    fn ended(self, planned: Planned, started: Instant, outcome: Outcome) {
        let ended = Instant::now();
        let schedule = self.job.schedule;
        let run = Run {
            number: planned.number,
            missed: planned.missed(schedule, started),
            lateness: started.saturating_duration_since(planned.at),
            took: ended - started,
            outcome,
        };
        self.crew.report.add(self.index, &run);
        if let Some(next) = planned.next(schedule, started, ended) {
            // The submission is refused if the program stops: then this was the last run.
            let _ = self.schedule(next);
        }
    }
}

/// One job while its command runs.
struct Running {
    runner: Runner,
    planned: Planned,
    started: Instant,
    process: Process,
    /// When a poll last found something.
    stirred: Instant,
    /// The last request to the command, and its time.
    request: Option<(Request, Instant)>,
}

impl Running {
    fn look_after(self, pause: Duration) {
        let watcher = self.runner.crew.watcher.clone();
        // The watcher is shut down when no command runs any more.
        let _ = watcher.schedule(pause, move || self.look());
    }

    /// Polls the command, on the watcher.
    fn look(mut self) {
        let Runner { crew, index, .. } = &self.runner;
        let seen = self.process.look(|line| crew.report.output(*index, line));
        match self.judge(seen) {
            Some(outcome) => self.runner.ended(self.planned, self.started, outcome),
            None => {
                let quiet = self.stirred.elapsed();
                self.look_after((quiet / 32).clamp(LOOKS.0, LOOKS.1));
            }
        }
    }

    /// The outcome of the run, if it has ended.
    fn judge(&mut self, seen: io::Result<Seen>) -> Option<Outcome> {
        match seen {
            Ok(Seen::Ended(status)) if self.request.is_none() => {
                return Some(Outcome::Exited(status));
            }
            Ok(Seen::Ended(status)) => return Some(Outcome::Stopped(status)),
            Err(error) => return Some(Outcome::Lost(error.into())),
            Ok(Seen::Talking) => self.stirred = Instant::now(),
            Ok(Seen::Nothing) => {}
        }
        if self.runner.crew.hurry.is_cancelled() { self.stop() } else { None }
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
