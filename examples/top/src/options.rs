//! The command line.

use std::time::Duration;

use lexopt::Arg;

use crate::common;

pub(crate) const USAGE: &str = "\
Usage: top [--manual] [--plain] [--jobs] [--database URL] [--every DURATION] [--for DURATION]

Shows the tasks of an executor while they run, and tells them what the keys say:

  up, down     select a task       r  run it now
  p, u         pause, resume it    c  cancel it
  q            quit                !  panic, to show what becomes of the terminal
  2            show the jobs       1  show the tasks again

On the page of jobs, r retries the selected job, d discards it, and x removes it.

  --manual          the executor's clock stands still until the space bar moves it by a second
  --plain           print text, as it does without a terminal: one table, or one every now and then
  --jobs            begin with the page of jobs; as text: print that
  --database URL    the jobs of a queue on PostgreSQL, which other programs run; it begins with their page. The queue's
                    tables are made if there are none. The program has to be built with `--features postgres`
  --every DURATION  how often to look [default: 250ms; as text: once]
  --for DURATION    stop by then [default: never; as text: after the first table]

A duration is written as \"250ms\", \"1.5s\" or \"1h 30min\".";

#[derive(Default)]
pub(crate) struct Options {
    pub(crate) is_manual: bool,
    pub(crate) is_plain: bool,
    pub(crate) has_jobs: bool,
    pub(crate) database: Option<String>,
    pub(crate) every: Option<Duration>,
    pub(crate) run_for: Option<Duration>,
}

impl Options {
    /// Returns `None` if only the usage is asked for.
    pub(crate) fn parse(args: &mut lexopt::Parser) -> Result<Option<Self>, String> {
        let mut options = Self::default();
        while let Some(arg) = common::next(args)? {
            match arg {
                Arg::Short('h') | Arg::Long("help") => return Ok(None),
                Arg::Long("manual") => options.is_manual = true,
                Arg::Long("plain") => options.is_plain = true,
                Arg::Long("jobs") => options.has_jobs = true,
                Arg::Long("database") => {
                    options.database = Some(common::value(args, "--database", "a URL")?);
                    options.has_jobs = true;
                }
                Arg::Long("every") => options.every = Some(duration(args, "--every")?),
                Arg::Long("for") => options.run_for = Some(duration(args, "--for")?),
                arg => return Err(common::unknown(arg)),
            }
        }
        if options.database.is_some() && options.is_manual {
            return Err("--database and --manual exclude each other".to_owned());
        }
        if options.database.is_some() && cfg!(not(feature = "postgres")) {
            return Err("--database: build it with `--features postgres`".to_owned());
        }
        Ok(Some(options))
    }
}

fn duration(args: &mut lexopt::Parser, option: &str) -> Result<Duration, String> {
    let text = common::value(args, option, "a duration")?;
    match humantime::parse_duration(&text) {
        Ok(Duration::ZERO) => Err(format!("{option}: it must be more than zero")),
        Ok(duration) => Ok(duration),
        Err(error) => Err(format!("{option}: bad duration {text:?}: {error}")),
    }
}
