//! The job file: its format, and the error messages for a broken one.
//!
//! Serde checks the shape, and [`Draft::check`] the rules that the shape cannot express. Either way
//! an error is a cause and a place in the text, and is shown with its line.

use std::{collections::HashMap, fmt, ops::Range, path::Path, time::Duration};

use punctual::MissedRuns;
use serde::Deserialize;
use toml::Spanned;

/// A valid job file.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) jobs: Vec<Job>,
    /// When to stop, if the file sets that.
    pub(crate) run_for: Option<Duration>,
}

#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) name: String,
    pub(crate) command: String,
    pub(crate) schedule: Schedule,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Schedule {
    After(Duration),
    Every { initial: Duration, period: Duration, missed: MissedRuns },
    Delay { initial: Duration, delay: Duration },
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, duration) = match self {
            Self::After(delay) => ("after", delay),
            Self::Every { period, .. } => ("every", period),
            Self::Delay { delay, .. } => ("delay", delay),
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
    let mut plan = Plan { jobs: Vec::new(), run_for: file.run_for.map(|duration| duration.0) };
    let mut names = HashMap::new();
    for draft in file.job {
        let name = draft.get_ref().name.clone();
        plan.jobs.push(Draft::check(draft)?);
        if let Some(first) = names.insert(name.get_ref().clone(), name.span()) {
            let line = Place::of(&first, text).line;
            let cause =
                format!("there is a job {name:?} already, in line {line}", name = name.get_ref());
            return Err(Fault::at(name.span(), cause));
        }
    }
    if plan.jobs.is_empty() {
        return Err(Fault::at(0..0, "there is no [[job]]"));
    }
    Ok(plan)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JobFile {
    run_for: Option<Readable>,
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
    initial: Option<Spanned<Readable>>,
    missed: Option<Spanned<Missed>>,
}

impl Draft {
    fn check(draft: Spanned<Self>) -> Result<Job, Fault> {
        let place = draft.span();
        let draft = draft.into_inner();
        let schedule = draft.schedule(place)?;
        Ok(Job { name: draft.name.into_inner(), command: draft.command, schedule })
    }

    fn schedule(&self, place: Range<usize>) -> Result<Schedule, Fault> {
        let initial = self.initial.as_ref().map_or(Duration::ZERO, duration);
        match (&self.after, &self.every, &self.delay) {
            (Some(after), None, None) => {
                refuse(&self.initial, "`initial` says nothing beside `after`")?;
                self.refuse_missed()?;
                Ok(Schedule::After(duration(after)))
            }
            (None, Some(every), None) => Ok(Schedule::Every {
                initial,
                period: positive(every)?,
                missed: self
                    .missed
                    .as_ref()
                    .map_or(MissedRuns::Coalesce, |missed| (*missed.get_ref()).into()),
            }),
            (None, None, Some(delay)) => {
                self.refuse_missed()?;
                Ok(Schedule::Delay { initial, delay: positive(delay)? })
            }
            _ => Err(self.not_one_kind(place)),
        }
    }

    fn refuse_missed(&self) -> Result<(), Fault> {
        refuse(&self.missed, "`missed` says nothing without `every`")
    }

    /// Points at the surplus kind of schedule, or at the job that has none.
    fn not_one_kind(&self, place: Range<usize>) -> Fault {
        let kinds = [("after", &self.after), ("every", &self.every), ("delay", &self.delay)];
        let mut given: Vec<_> = kinds
            .iter()
            .filter_map(|(kind, value)| Some((value.as_ref()?.span(), format!("`{kind}`"))))
            .collect();
        given.sort_by_key(|(span, _)| span.start);
        let names: Vec<_> = given.iter().map(|(_, kind)| kind.as_str()).collect();
        let found = match names.as_slice() {
            [] => "none".to_owned(),
            names => names.join(" and "),
        };
        let cause = format!("a job has exactly one of `after`, `every`, `delay`; this has {found}");
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

/// A duration such as "250ms", "1.5s" or "1h 30min".
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
struct Readable(Duration);

// This is not `humantime_serde`, which does not report what is wrong with a duration.
impl TryFrom<String> for Readable {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        parse_duration(&text).map(Self)
    }
}

/// Parses a duration, also for the command line.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| format!("bad duration {text:?}: {error}"))
}

/// Formats a duration: "1.5s" rather than "1s 500ms", and "1day" rather than "86400s".
pub(crate) fn readable(duration: Duration) -> String {
    if duration.is_zero() {
        "0s".to_owned()
    } else if duration < Duration::from_secs(60) {
        format!("{duration:?}")
    } else {
        humantime::format_duration(duration).to_string()
    }
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Missed {
    Burst,
    Coalesce,
    Skip,
    Delay,
}

impl From<Missed> for MissedRuns {
    fn from(missed: Missed) -> Self {
        match missed {
            Missed::Burst => Self::Burst,
            Missed::Coalesce => Self::Coalesce,
            Missed::Skip => Self::Skip,
            Missed::Delay => Self::Delay,
        }
    }
}

/// An error in the text of a job file, and its position.
#[derive(Debug)]
struct Fault {
    span: Range<usize>,
    cause: String,
}

impl Fault {
    fn at(span: Range<usize>, cause: impl Into<String>) -> Self {
        Self { span, cause: cause.into() }
    }

    /// The message: file, line, cause; and the line itself with a mark under the place.
    fn shown_in(&self, path: &Path, text: &str) -> String {
        let Place { line, before, marked, whole } = Place::of(&self.span, text);
        let margin = " ".repeat(line.to_string().len());
        // A tab below the line is as wide as in it.
        let indent: String = before.chars().map(|c| if c == '\t' { c } else { ' ' }).collect();
        let mark = "^".repeat(marked.chars().count().max(1));
        format!(
            "{path}:{line}: {cause}\n {line} | {whole}\n {margin} | {indent}{mark}",
            path = path.display(),
            cause = self.cause,
        )
    }
}

impl From<toml::de::Error> for Fault {
    fn from(error: toml::de::Error) -> Self {
        Self::at(error.span().unwrap_or(0..0), error.message())
    }
}

/// The first line of a span, in parts.
struct Place<'a> {
    /// Counted from 1.
    line: usize,
    whole: &'a str,
    before: &'a str,
    marked: &'a str,
}

impl<'a> Place<'a> {
    fn of(span: &Range<usize>, text: &'a str) -> Self {
        let (above, below) = text.split_at_checked(span.start).unwrap_or((text, ""));
        let line = above.matches('\n').count() + 1;
        let start = above.rfind('\n').map_or(0, |newline| newline + 1);
        let rest = below.lines().next().unwrap_or_default();
        Self {
            line,
            whole: text[start..].lines().next().unwrap_or_default(),
            // The line ending is not part of the place.
            before: text[start..above.len()].trim_end_matches('\r'),
            marked: rest.get(..span.len()).unwrap_or(rest),
        }
    }
}
