//! The output: a line for each run as it ends, and a table at the end.

use std::{
    fmt, io,
    sync::{Mutex, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use comfy_table::{CellAlignment, Table, presets};
use punctual::CancellationToken;

use crate::{
    common,
    config::Job,
    outcome::Outcome,
    tally::{Run, Tally},
    values::readable,
};

/// All runs so far; jobs are known by their index.
pub(crate) struct Report {
    begun: Instant,
    jobs: Vec<(Job, Mutex<Tally>)>,
    /// The width of the names.
    width: usize,
    /// The error after which nothing more is written.
    unwritten: OnceLock<io::Error>,
    /// Cancelled when something cannot be written.
    stop: Vec<CancellationToken>,
}

impl Report {
    /// Cancels all these tokens when something cannot be written.
    pub(crate) fn new(jobs: &[Job], begun: Instant, stop: Vec<CancellationToken>) -> Self {
        Self {
            begun,
            jobs: jobs.iter().map(|job| (job.clone(), Mutex::default())).collect(),
            width: jobs.iter().map(|job| job.name.chars().count()).max().unwrap_or(0),
            unwritten: OnceLock::new(),
            stop,
        }
    }

    /// Writes a line, in one piece; writes nothing after an error.
    pub(crate) fn say(&self, line: fmt::Arguments<'_>) {
        if self.unwritten.get().is_some() {
            return;
        }
        if let Err(error) = common::try_say(line) {
            // Of several errors the first counts.
            let _ = self.unwritten.set(error);
            for token in &self.stop {
                token.cancel();
            }
        }
    }

    /// The error of a write that failed.
    pub(crate) fn unwritten(&self) -> Option<&io::Error> {
        self.unwritten.get()
    }

    /// Reports a line of output of a job's command.
    pub(crate) fn output(&self, job: usize, line: &str) {
        self.line(job, format_args!("| {line}"));
    }

    /// Reports an attempt that has failed, and after which the command is tried again.
    pub(crate) fn retried(
        &self,
        job: usize,
        run: u64,
        attempt: u32,
        outcome: &Outcome,
        pause: Duration,
    ) {
        self.tally(job, |tally| {
            tally.retries += 1;
            tally.timeouts += u64::from(outcome.is_timeout());
        });
        let again = readable(pause);
        self.line(
            job,
            format_args!("run {run:<3} attempt {attempt}: {outcome}; tried again in {again}"),
        );
    }

    /// Reports a run that has ended.
    pub(crate) fn add(&self, job: usize, run: &Run) {
        self.tally(job, |tally| tally.add(run));
        let Run { number, missed, lateness, took, attempt, outcome } = run;
        let tried = match attempt {
            1 => String::new(),
            attempt => format!(", at attempt {attempt}"),
        };
        let after = match missed {
            0 => String::new(),
            missed => format!(", after {missed} missed"),
        };
        self.line(
            job,
            format_args!(
                "run {number:<3} {lateness:>8.1?} late, took {took:>8.2?}: {outcome}{tried}{after}"
            ),
        );
    }

    fn tally(&self, job: usize, count: impl FnOnce(&mut Tally)) {
        count(&mut self.jobs[job].1.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn line(&self, job: usize, text: fmt::Arguments<'_>) {
        let (elapsed, width) = (self.begun.elapsed().as_secs_f64(), self.width);
        let name = &self.jobs[job].0.name;
        self.say(format_args!("{elapsed:8.3}  {name:width$}  {text}"));
    }

    /// Prints a row for each job.
    pub(crate) fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(presets::UTF8_FULL_CONDENSED).set_header([
            "job", "when", "runs", "failures", "missed", "retries", "timeouts", "late p50",
            "late p99", "late max",
        ]);
        for (job, tally) in &self.jobs {
            let mut row = vec![job.name.clone(), job.schedule.to_string()];
            row.extend(tally.lock().unwrap_or_else(PoisonError::into_inner).cells());
            table.add_row(row);
        }
        for column in table.column_iter_mut().skip(2) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }
}
