//! One job: its runs, its command, its reports. The head of `crew.rs` says how the runs follow each other.

use std::{sync::Arc, time::Duration};

use punctual::{
    RejectedExecutionError, Trigger,
    trigger::{Due, from_fn},
};

use crate::{
    attempt::{Attempt, Waiting},
    config::Job,
    crew::Crew,
    moment::{Moment, Now},
    outcome::Outcome,
    process::Process,
    tally::Run,
    timetable::Planned,
    watch::Watched,
};

/// One job.
#[derive(Clone)]
pub(crate) struct Runner {
    job: Arc<Job>,
    /// The job's index, for the report.
    index: usize,
    crew: Arc<Crew>,
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

    /// Begins a run, on a starter, unless it is overdue.
    fn run(self, planned: Planned) {
        if let Some(next) = planned.instead_of_overdue(&self.job) {
            return drop(next.map(|next| self.schedule(next)));
        }
        let attempt = Attempt { planned, started: Now::read(), number: 1 };
        if self.job.may_overlap {
            self.clone().schedule_next(attempt, attempt.started);
        }
        self.attempt(attempt);
    }

    /// Starts the command, on a starter.
    pub(crate) fn attempt(self, attempt: Attempt) {
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
        let pause = self.job.retry.and_then(|backoff| backoff.delay_after(attempt.number));
        match pause.filter(|_| outcome.is_failure()) {
            Some(pause) => self.try_again(attempt, outcome, pause),
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
    pub(crate) fn report(&self, attempt: Attempt, outcome: Outcome) -> Now {
        let Attempt { planned, started, number } = attempt;
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
