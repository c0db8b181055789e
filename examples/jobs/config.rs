//! The job file: its format, and its rules.
//!
//! Serde checks the shape, and [`Draft::check`] the rules that the shape cannot express. Either way
//! an error is a cause and a place in the text ([`Fault`]), and is shown with its line. Nothing
//! that is written in a file is without effect: a key that would say nothing is an error.

use std::{collections::HashMap, fmt, ops::Range, path::Path, time::Duration};

use punctual::{
    MissedRuns,
    trigger::{Cron, cron},
};
use serde::Deserialize;
use toml::Spanned;

use crate::{
    fault::{Fault, line_of},
    jitter,
    values::{Attempts, OnMissed, Overlap, Readable, Retry, readable},
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
    pub(crate) name: String,
    pub(crate) command: String,
    pub(crate) schedule: Schedule,
    /// By how much each run is put off, because of `jitter`.
    pub(crate) put_off: Duration,
    pub(crate) retry: Option<Retry>,
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
    parse(text).map_err(|fault| fault.shown_in(path, text))
}

fn parse(text: &str) -> Result<Plan, Fault> {
    let file: JobFile = toml::from_str(text)?;
    let zone = file.zone.as_ref();
    if let Some(zone) = zone {
        cron("@daily", zone.get_ref())
            .map_err(|error| Fault::at(zone.span(), error.to_string()))?;
    }
    let mut jobs = Vec::new();
    let mut names = HashMap::new();
    for draft in file.job {
        let name = draft.get_ref().name.clone();
        jobs.push(Draft::check(draft, zone, text)?);
        if let Some(first) = names.insert(name.get_ref().clone(), name.span()) {
            let line = line_of(&first, text);
            let cause =
                format!("there is a job {name:?} already, in line {line}", name = name.get_ref());
            return Err(Fault::at(name.span(), cause));
        }
    }
    if jobs.is_empty() {
        return Err(Fault::at(0..0, "there is no [[job]]"));
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

/// A job as written in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Draft {
    name: Spanned<String>,
    command: String,
    after: Option<Spanned<Readable>>,
    every: Option<Spanned<Readable>>,
    delay: Option<Spanned<Readable>>,
    at: Option<Spanned<String>>,
    zone: Option<Spanned<String>>,
    initial: Option<Spanned<Readable>>,
    jitter: Option<Spanned<Readable>>,
    #[serde(alias = "missed")]
    on_missed: Option<Spanned<OnMissed>>,
    overlap: Option<Spanned<Overlap>>,
    timeout: Option<Spanned<Readable>>,
    retry: Option<Spanned<Attempts>>,
}

impl Draft {
    fn check(
        draft: Spanned<Self>,
        zone: Option<&Spanned<String>>,
        text: &str,
    ) -> Result<Job, Fault> {
        let place = draft.span();
        let draft = draft.into_inner();
        let schedule = draft.schedule(place, zone, text)?;
        let put_off = match &draft.jitter {
            Some(most) => jitter::span(draft.name.get_ref(), positive(most)?),
            None => Duration::ZERO,
        };
        let check = |retry: &Spanned<Attempts>| {
            retry.get_ref().check().map_err(|cause| Fault::at(retry.span(), cause))
        };
        Ok(Job {
            schedule,
            put_off,
            retry: draft.retry.as_ref().map(check).transpose()?,
            timeout: draft.timeout.as_ref().map(positive).transpose()?,
            may_overlap: draft.overlap.is_some_and(|overlap| *overlap.get_ref() == Overlap::Allow),
            name: draft.name.into_inner(),
            command: draft.command,
        })
    }

    fn schedule(
        &self,
        place: Range<usize>,
        zone: Option<&Spanned<String>>,
        text: &str,
    ) -> Result<Schedule, Fault> {
        let initial = self.initial.as_ref().map_or(Duration::ZERO, duration);
        if self.at.is_none() {
            refuse(&self.zone, "`zone` says nothing without `at`")?;
        }
        match (&self.after, &self.every, &self.delay, &self.at) {
            (Some(after), None, None, None) => {
                refuse(&self.initial, "`initial` says nothing beside `after`")?;
                self.refuse_what_a_plan_has()?;
                Ok(Schedule::After(duration(after)))
            }
            (None, Some(every), None, None) => {
                Ok(Schedule::Every { initial, period: positive(every)?, missed: self.missed()? })
            }
            (None, None, Some(delay), None) => {
                self.refuse_what_a_plan_has()?;
                Ok(Schedule::Delay { initial, delay: positive(delay)? })
            }
            (None, None, None, Some(at)) => {
                refuse(&self.initial, "`initial` says nothing beside `at`")?;
                let calendar = self.calendar(at, zone, text)?;
                let missed = self.missed()?;
                match (&self.on_missed, missed) {
                    (Some(value), MissedRuns::Delay) => Err(Fault::at(
                        value.span(),
                        "\"delay\" moves the runs after a late one, and those of a calendar stay \
                         where they are; use \"coalesce\"",
                    )),
                    _ => Ok(Schedule::At { calendar, missed }),
                }
            }
            _ => Err(self.not_one_kind(place)),
        }
    }

    fn calendar(
        &self,
        at: &Spanned<String>,
        default: Option<&Spanned<String>>,
        text: &str,
    ) -> Result<Cron, Fault> {
        let Some(zone) = self.zone.as_ref().or(default) else {
            return Err(Fault::at(
                at.span(),
                "`at` needs a time zone; write `zone = \"Europe/Berlin\"` in the job, or at the \
                 top of the file for all jobs",
            ));
        };
        cron(at.get_ref(), zone.get_ref()).map_err(|error| match error.span() {
            Some(_) => Fault::in_expression(at, &error, text),
            None => Fault::at(zone.span(), error.to_string()),
        })
    }

    /// What becomes of missed runs. Those of a job that may not overlap are missed because of an
    /// earlier run, so `skip` and `queue` are names of policies.
    fn missed(&self) -> Result<MissedRuns, Fault> {
        let policy = match self.overlap.as_ref().map(Spanned::get_ref) {
            Some(Overlap::Skip) => MissedRuns::Skip,
            Some(Overlap::Queue) => MissedRuns::Burst,
            Some(Overlap::Allow) | None => {
                let given = self.on_missed.as_ref().map(|missed| missed.get_ref().0);
                return Ok(given.unwrap_or(MissedRuns::Coalesce));
            }
        };
        refuse(
            &self.on_missed,
            "`overlap` says already what becomes of missed runs; leave out one of the two",
        )?;
        Ok(policy)
    }

    /// Of a job whose next run depends on the end of the one before, or that has only one.
    fn refuse_what_a_plan_has(&self) -> Result<(), Fault> {
        refuse(&self.on_missed, "`on_missed` says nothing without `every` or `at`")?;
        refuse(&self.overlap, "`overlap` says nothing without `every` or `at`")?;
        refuse(&self.jitter, "`jitter` says nothing without `every` or `at`")
    }

    /// Points at the surplus kind of schedule, or at the job that has none.
    fn not_one_kind(&self, place: Range<usize>) -> Fault {
        let span = |value: &Option<Spanned<Readable>>| Some(value.as_ref()?.span());
        let kinds = [
            ("`after`", span(&self.after)),
            ("`every`", span(&self.every)),
            ("`delay`", span(&self.delay)),
            ("`at`", self.at.as_ref().map(Spanned::span)),
        ];
        let mut given: Vec<_> =
            kinds.into_iter().filter_map(|(kind, span)| Some((span?, kind))).collect();
        given.sort_by_key(|(span, _)| span.start);
        let names: Vec<_> = given.iter().map(|(_, kind)| *kind).collect();
        let found = match names.as_slice() {
            [] => "none".to_owned(),
            names => names.join(" and "),
        };
        let cause =
            format!("a job has exactly one of `after`, `every`, `delay`, `at`; this has {found}");
        Fault::at(given.pop().map_or(place, |(span, _)| span), cause)
    }
}

fn duration(readable: &Spanned<Readable>) -> Duration {
    readable.get_ref().0
}

fn positive(readable: &Spanned<Readable>) -> Result<Duration, Fault> {
    match duration(readable) {
        Duration::ZERO => Err(Fault::at(readable.span(), "it must be more than zero")),
        duration => Ok(duration),
    }
}

fn refuse<T>(value: &Option<Spanned<T>>, cause: &str) -> Result<(), Fault> {
    match value {
        Some(value) => Err(Fault::at(value.span(), cause)),
        None => Ok(()),
    }
}
