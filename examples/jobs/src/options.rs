//! The command line.

use std::{path::PathBuf, time::Duration};

use jiff::Timestamp;
use lexopt::Arg;

use crate::{
    common,
    preview::{Preview, in_millis},
    values::parse_duration,
};

pub(crate) const USAGE: &str = "\
Usage: jobs [--for DURATION] [--grace DURATION] [FILE]
       jobs --next COUNT [--from MOMENT] [FILE]

Runs the commands of a job file until it is stopped by Ctrl-C, or the time is over; or prints when
they would run.

  --for DURATION    stop after this time, whatever the file says
  --grace DURATION  how long commands may go on after that [default: 2s]
  --next COUNT      print the next runs of each job, so many, and run nothing
  --from MOMENT     those that are later than this [default: now]
  FILE              the job file [default: the sample of the example]

A duration is written as \"250ms\", \"1.5s\" or \"1h 30min\", and a moment as
\"2026-03-08T06:30:00Z\" or \"2026-03-08T01:30:00-05:00\".";

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/jobs.toml");
const GRACE: Duration = Duration::from_secs(2);

/// The options of the command line.
pub(crate) struct Options {
    pub(crate) file: PathBuf,
    pub(crate) run_for: Option<Duration>,
    pub(crate) grace: Duration,
    /// The preview to show instead of running the jobs.
    pub(crate) preview: Option<Preview>,
}

impl Options {
    /// Returns `None` if only the usage is asked for.
    pub(crate) fn parse(args: &mut lexopt::Parser) -> Result<Option<Self>, String> {
        let (mut file, mut run_for, mut grace) = (None, None, None);
        let (mut count, mut from) = (None, None);
        while let Some(arg) = common::next(args)? {
            match arg {
                Arg::Short('h') | Arg::Long("help") => return Ok(None),
                Arg::Long("for") => run_for = Some(duration(args, "--for")?),
                Arg::Long("grace") => grace = Some(duration(args, "--grace")?),
                Arg::Long("next") => count = Some(number(args)?),
                Arg::Long("from") => from = Some(moment(args)?),
                Arg::Value(second) if file.is_some() => {
                    return Err(format!("a second file, {}", second.to_string_lossy()));
                }
                Arg::Value(value) => file = Some(PathBuf::from(value)),
                arg => return Err(common::unknown(arg)),
            }
        }
        if count.is_some() && (run_for.is_some() || grace.is_some()) {
            return Err("--next runs nothing: --for and --grace say nothing beside it".to_owned());
        }
        if count.is_none() && from.is_some() {
            return Err("--from says nothing without --next".to_owned());
        }
        let preview = count.map(|count| Preview { count, from: from.unwrap_or_else(now) });
        let file = file.unwrap_or_else(|| SAMPLE.into());
        Ok(Some(Self { file, run_for, grace: grace.unwrap_or(GRACE), preview }))
    }
}

fn now() -> Timestamp {
    in_millis(Timestamp::now())
}

fn duration(args: &mut lexopt::Parser, option: &str) -> Result<Duration, String> {
    let text = common::value(args, option, "a duration")?;
    parse_duration(&text).map_err(|error| format!("{option}: {error}"))
}

fn number(args: &mut lexopt::Parser) -> Result<u16, String> {
    let text = common::value(args, "--next", "a number")?;
    match text.parse() {
        Ok(count @ 1..) => Ok(count),
        _ => Err(format!("--next: bad number {text:?}: give one from 1 to {}", u16::MAX)),
    }
}

fn moment(args: &mut lexopt::Parser) -> Result<Timestamp, String> {
    let text = common::value(args, "--from", "a moment")?;
    text.parse()
        .map_err(|_| format!("--from: bad moment {text:?}: write it as in 2026-03-08T06:30:00Z"))
}
