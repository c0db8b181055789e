//! What the user sees: a line for each run as it ends, and a table at the end.

use std::{
    fmt,
    io::{self, Write},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use comfy_table::{CellAlignment, Table, presets};
use hdrhistogram::Histogram;

use crate::{config::Job, runner::Outcome};

/// Writes a line, in one piece. That nobody reads any more is no reason to stop.
pub(crate) fn say(line: fmt::Arguments<'_>) {
    let _ = writeln!(io::stdout().lock(), "{line}");
}

/// One run, as it is reported.
pub(crate) struct Run {
    pub(crate) number: u64,
    pub(crate) missed: u64,
    pub(crate) lateness: Duration,
    pub(crate) took: Duration,
    pub(crate) outcome: Outcome,
}

const DAY: u64 = 24 * 60 * 60 * 1_000_000_000;

/// All runs so far; jobs are known by their index.
pub(crate) struct Report {
    begun: Instant,
    jobs: Vec<(Job, Mutex<Tally>)>,
    /// How wide the names are.
    width: usize,
}

struct Tally {
    runs: u64,
    failures: u64,
    missed: u64,
    /// In nanoseconds, to three digits; more than a day counts as a day.
    lateness: Histogram<u64>,
}

impl Report {
    pub(crate) fn new(jobs: &[Job]) -> Result<Self, hdrhistogram::CreationError> {
        let with_tally = |job: &Job| Ok((job.clone(), Mutex::new(Tally::new()?)));
        Ok(Self {
            begun: Instant::now(),
            jobs: jobs.iter().map(with_tally).collect::<Result<_, _>>()?,
            width: jobs.iter().map(|job| job.name.chars().count()).max().unwrap_or(0),
        })
    }

    /// A line that the command of a job has said.
    pub(crate) fn output(&self, job: usize, line: &str) {
        self.line(job, format_args!("| {line}"));
    }

    /// A run that has ended.
    pub(crate) fn add(&self, job: usize, run: &Run) {
        self.jobs[job].1.lock().unwrap_or_else(PoisonError::into_inner).add(run);
        let Run { number, missed, lateness, took, outcome } = run;
        let after = match missed {
            0 => String::new(),
            missed => format!(", after {missed} missed"),
        };
        self.line(
            job,
            format_args!(
                "run {number:<3} {lateness:>8.1?} late, took {took:>8.2?}: {outcome}{after}"
            ),
        );
    }

    fn line(&self, job: usize, text: fmt::Arguments<'_>) {
        let (elapsed, width) = (self.begun.elapsed().as_secs_f64(), self.width);
        let name = &self.jobs[job].0.name;
        say(format_args!("{elapsed:8.3}  {name:width$}  {text}"));
    }

    /// A row for each job.
    pub(crate) fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(presets::UTF8_FULL_CONDENSED).set_header([
            "job", "when", "runs", "failures", "missed", "late p50", "late p99", "late max",
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

impl Tally {
    fn new() -> Result<Self, hdrhistogram::CreationError> {
        Ok(Self { runs: 0, failures: 0, missed: 0, lateness: Histogram::new_with_max(DAY, 3)? })
    }

    fn add(&mut self, run: &Run) {
        self.runs += 1;
        self.failures += u64::from(run.outcome.is_failure());
        self.missed += run.missed;
        let nanos = u64::try_from(run.lateness.as_nanos()).unwrap_or(u64::MAX);
        self.lateness.saturating_record(nanos);
    }

    fn cells(&self) -> [String; 6] {
        let lateness = |nanos| match self.runs {
            0 => "-".to_owned(),
            _ => format!("{:.1?}", Duration::from_nanos(nanos)),
        };
        [
            self.runs.to_string(),
            self.failures.to_string(),
            self.missed.to_string(),
            lateness(self.lateness.value_at_quantile(0.5)),
            lateness(self.lateness.value_at_quantile(0.99)),
            lateness(self.lateness.max()),
        ]
    }
}
