//! The command line.

use std::{path::PathBuf, time::Duration};

use lexopt::Arg;

use crate::{common, values::parse_duration};

pub(crate) const USAGE: &str = "\
Usage: jobs [--for DURATION] [--grace DURATION] [FILE]

Runs the commands of a job file until it is stopped by Ctrl-C, or the time is over.

  --for DURATION    stop after this time, whatever the file says
  --grace DURATION  how long commands may go on after that [default: 2s]
  FILE              the job file [default: the sample of the example]

A duration is written as \"250ms\", \"1.5s\" or \"1h 30min\".";

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/jobs/jobs.toml");
const GRACE: Duration = Duration::from_secs(2);

/// The options of the command line.
pub(crate) struct Options {
    pub(crate) file: PathBuf,
    pub(crate) run_for: Option<Duration>,
    pub(crate) grace: Duration,
}

impl Options {
    /// Returns `None` if only the usage is asked for.
    pub(crate) fn parse(args: &mut lexopt::Parser) -> Result<Option<Self>, String> {
        let (mut file, mut run_for, mut grace) = (None, None, GRACE);
        while let Some(arg) = common::next(args)? {
            match arg {
                Arg::Short('h') | Arg::Long("help") => return Ok(None),
                Arg::Long("for") => run_for = Some(duration(args, "--for")?),
                Arg::Long("grace") => grace = duration(args, "--grace")?,
                Arg::Value(second) if file.is_some() => {
                    return Err(format!("a second file, {}", second.to_string_lossy()));
                }
                Arg::Value(value) => file = Some(PathBuf::from(value)),
                arg => return Err(common::unknown(arg)),
            }
        }
        let file = file.unwrap_or_else(|| SAMPLE.into());
        Ok(Some(Self { file, run_for, grace }))
    }
}

fn duration(args: &mut lexopt::Parser, option: &str) -> Result<Duration, String> {
    let text = common::value(args, option, "a duration")?;
    parse_duration(&text).map_err(|error| format!("{option}: {error}"))
}
