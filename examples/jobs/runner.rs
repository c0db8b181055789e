//! Runs jobs. A few threads serve any number of jobs: none waits for a command.
//!
//! Two executors take part, and neither waits for the other:
//!
//! 1. When a run is due, a task of the **starters** starts its command.
//! 2. A task of the **watcher** polls the command ([`watch`](crate::watch)): it passes the
//!    command's output on, and asks whether the command has ended. If not, it schedules the next
//!    poll: soon after there was activity, and later the longer there was none, between a
//!    millisecond and a tenth of a second. So an end is seen, and reported, late by a thirtieth of
//!    the command's time, but by no more than a tenth of a second.
//! 3. When the command has ended, that task reports the run, and schedules the next one with the
//!    starters ([`timetable`](crate::timetable)). If the command has failed and may be tried again,
//!    it schedules that instead: all attempts are one run.
//!
//! So a run is a chain of tasks, in which each schedules its successor and hands its state on to
//! it: nothing is shared, nothing is locked. One thread is enough to watch, because polling is
//! quick; starting takes as many as there are cores, because it is work for the system. A thread
//! that waits for each command would see its end at once; that would be ten thousand threads for
//! ten thousand commands.
//!
//! Because the end of a run schedules the next one, runs of a job do not overlap. A job whose runs
//! may do so schedules the next one as each starts.
//!
//! A chain breaks off where an executor has been shut down, and drops its state: that is how jobs
//! are stopped. A run that was waiting for another attempt then has failed. When the last chain has
//! ended, the [`Crew`] is dropped, which raises the token for that.

use std::{sync::Arc, time::Duration};

use punctual::{
    CancellationToken, Handle, RejectedExecutionError, Trigger,
    trigger::{Due, from_fn},
};

use crate::{
    config::Job,
    outcome::Outcome,
    process::Process,
    report::{Report, Run},
    timetable::{Moment, Now, Planned},
    watch::Watched,
};

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

/// One job.
#[derive(Clone)]
pub(crate) struct Runner {
    job: Arc<Job>,
    /// The job's index, for the report.
    index: usize,
    crew: Arc<Crew>,
}

/// One of the times that a run tries its command.
#[derive(Clone, Copy)]
pub(crate) struct Attempt {
    planned: Planned,
    /// When the run started, which is when its first attempt did.
    started: Now,
    /// Counted from 1.
    number: u32,
}

impl Runner {
    /// Schedules the first run, if there is one.
    pub(crate) fn start(
        job: &Job,
        index: usize,
        crew: &Arc<Crew>,
    ) -> Result<(), RejectedExecutionError> {
        let runner = Self { job: Arc::new(job.clone()), index, crew: Arc::clone(crew) };
        match Planned::first(&job.schedule, job.put_off, Now::read()) {
            Some(first) => runner.schedule(first),
            None => Ok(()),
        }
    }

    pub(crate) fn job(&self) -> &Job {
        &self.job
    }

    pub(crate) fn crew(&self) -> &Crew {
        &self.crew
    }

    /// Reports a line of the command's output.
    pub(crate) fn output(&self, line: &str) {
        self.crew.report.output(self.index, line);
    }

    fn schedule(self, planned: Planned) -> Result<(), RejectedExecutionError> {
        let starters = self.crew.starters.clone();
        match planned.at.later_by(self.job.put_off) {
            Moment::Steady(at) => starters.schedule_at(at, move || self.run(planned)).map(drop),
            // Only a trigger can name a moment of the wall clock, which is then followed when it is
            // set. This one has a single run.
            Moment::Wall(at) => {
                let once = from_fn(move |_| Some(Due::Wall(at))).times(1);
                let mut runner = Some(self);
                let body = move || {
                    if let Some(runner) = runner.take() {
                        runner.run(planned);
                    }
                };
                starters.repeat(once, body).map(drop)
            }
        }
    }

    /// Begins a run, on a starter.
    fn run(self, planned: Planned) {
        let attempt = Attempt { planned, started: Now::read(), number: 1 };
        if self.job.may_overlap {
            self.clone().schedule_next(attempt, attempt.started);
        }
        self.attempt(attempt);
    }

    /// Starts the command, on a starter.
    fn attempt(self, attempt: Attempt) {
        match Process::start(&self.job.command) {
            Ok(process) => Watched::begin(self, attempt, process),
            Err(error) => {
                let cause = format!("the shell cannot be started: {error}");
                self.ended(attempt, Outcome::Lost(cause.into()));
            }
        }
    }

    /// Tries the command again if that may help, or else ends the run.
    pub(crate) fn ended(self, attempt: Attempt, outcome: Outcome) {
        let retry = self.job.retry.filter(|retry| attempt.number < retry.attempts);
        match retry.filter(|_| outcome.is_failure()) {
            Some(retry) => self.try_again(attempt, outcome, retry.pause_after(attempt.number)),
            None => {
                let ended = self.report(attempt, outcome);
                if !self.job.may_overlap {
                    self.schedule_next(attempt, ended);
                }
            }
        }
    }

    /// Schedules another attempt of the run. The back-off counts from the end of this one.
    fn try_again(self, attempt: Attempt, outcome: Outcome, pause: Duration) {
        let run = attempt.planned.number;
        self.crew.report.retried(self.index, run, attempt.number, &outcome, pause);
        let starters = self.crew.starters.clone();
        let waiting = Waiting { runner: self, attempt, outcome: Some(outcome) };
        // If the submission is refused, the run has ended.
        let _ = starters.schedule(pause, move || waiting.go_on());
    }

    /// Reports a run with its last attempt, and returns when it ended.
    fn report(&self, Attempt { planned, started, number }: Attempt, outcome: Outcome) -> Now {
        let (job, ended) = (&self.job, Now::read());
        let run = Run {
            number: planned.number,
            missed: planned.missed(&job.schedule, started.earlier_by(job.put_off)),
            lateness: planned.at.later_by(job.put_off).late_at(started),
            took: ended.steady - started.steady,
            attempt: number,
            outcome,
        };
        self.crew.report.add(self.index, &run);
        ended
    }

    /// Schedules the run after one that has ended, or counts as ended.
    fn schedule_next(self, Attempt { planned, started, .. }: Attempt, ended: Now) {
        let Job { schedule, put_off, .. } = &*self.job;
        let (started, ended) = (started.earlier_by(*put_off), ended.earlier_by(*put_off));
        if let Some(next) = planned.next(schedule, started, ended) {
            // The submission is refused if the program stops: then this was the last run.
            let _ = self.schedule(next);
        }
    }
}

/// A run that waits for its next attempt. If there is none, because the program stops, the run has
/// ended with the last one.
struct Waiting {
    runner: Runner,
    attempt: Attempt,
    /// Of that attempt; `None` when the run has gone on.
    outcome: Option<Outcome>,
}

impl Waiting {
    fn go_on(mut self) {
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
