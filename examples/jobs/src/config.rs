//! The job file: its format, and its rules.
//!
//! Serde checks the shape, and [`Draft::check`] the rules that the shape cannot express. Either way
//! an error is a cause and a place in the text ([`Fault`]), and is shown with its line.

use std::{collections::HashMap, fmt, path::Path, time::Duration};

use punctual::{
    Backoff, MissedRuns,
    trigger::{Cron, cron},
};
use serde::Deserialize;
use toml::Spanned;

use crate::{
    draft::Draft,
    fault::{Fault, line_of},
    values::{Readable, readable},
};

/// A valid job file.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) jobs: Vec<Job>,
    /// When to stop, if the file sets that.
    pub(crate) run_for: Option<Duration>,
    /// The time zone of jobs that have none of their own.
    pub(crate) zone: Option<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct Job {
    /// The name as it is shown.
    pub(crate) name: String,
    pub(crate) command: String,
    pub(crate) schedule: Schedule,
    /// By how much each run is put off, because of `jitter`.
    pub(crate) put_off: Duration,
    pub(crate) retry: Option<Backoff>,
    /// How long the command may take.
    pub(crate) timeout: Option<Duration>,
    /// Whether a run may start while another one of the job runs.
    pub(crate) may_overlap: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Schedule {
    After(Duration),
    Every { initial: Duration, period: Duration, missed: MissedRuns },
    Delay { initial: Duration, delay: Duration },
    At { calendar: Cron, missed: MissedRuns },
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, duration) = match self {
            Self::After(delay) => ("after", delay),
            Self::Every { period, .. } => ("every", period),
            Self::Delay { delay, .. } => ("delay", delay),
            Self::At { calendar, .. } => return write!(f, "at {calendar}"),
        };
        write!(f, "{kind} {}", readable(*duration))
    }
}

/// Parses the text of a job file; an error is ready to be shown.
pub(crate) fn check(path: &Path, text: &str) -> Result<Plan, String> {
    parse(text).map_err(|mut faults| {
        faults.sort_by_key(Fault::start);
        let shown: Vec<_> = faults.iter().map(|fault| fault.shown_in(path, text)).collect();
        shown.join("\n")
    })
}

/// Returns all faults against the rules, or the first one against the shape.
fn parse(text: &str) -> Result<Plan, Vec<Fault>> {
    let file: JobFile = toml::from_str(text).map_err(|error| vec![Fault::from(error)])?;
    let mut faults = Vec::new();
    let zone = file.zone.as_ref();
    if let Some(zone) = zone {
        let known = cron("@daily", zone.get_ref());
        faults.extend(known.err().map(|error| Fault::at(zone.span(), error.to_string())));
    }
    let mut jobs = Vec::new();
    let mut names = HashMap::new();
    for draft in file.job {
        let name = draft.get_ref().name.clone();
        jobs.extend(Draft::check(draft, zone, text, &mut faults));
        if let Some(first) = names.insert(name.get_ref().clone(), name.span()) {
            let line = line_of(&first, text);
            let cause =
                format!("there is a job {name:?} already, in line {line}", name = name.get_ref());
            faults.push(Fault::at(name.span(), cause));
        }
    }
    if names.is_empty() {
        faults.push(Fault::at(0..0, "there is no [[job]]"));
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let run_for = file.run_for.map(|duration| duration.0);
    Ok(Plan { jobs, run_for, zone: file.zone.map(Spanned::into_inner) })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JobFile {
    run_for: Option<Readable>,
    zone: Option<Spanned<String>>,
    #[serde(default)]
    job: Vec<Spanned<Draft>>,
}
