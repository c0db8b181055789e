//! A small cron: runs the commands of a job file once, at a fixed rate, with a fixed delay, or by
//! the calendar of a time zone.
//!
//! A job says when (`after`, `every`, `delay`, or `at = "0 3 * * *"` with a `zone`), and may say
//! how far its runs are put off (`jitter`), how often a command that fails is tried (`retry`), how
//! long it may take (`timeout`), and what becomes of runs that are missed (`on_missed`) or that are
//! due while the one before still runs (`overlap`). The sample, `jobs.toml`, explains each.
//!
//! A command has ended when its shell has. What it leaves in the background goes on, but nobody reads its output any
//! more; a command that is told to stop is told so together with all that it has started.
//!
//! It reports each run with its lateness and its duration, and prints a table of all jobs at the
//! end. It ends when its time is over, or on Ctrl-C or a SIGTERM: then it starts nothing more, and
//! running commands may finish within a grace period, after which they are told to stop. It also
//! ends when no job has another run to come.
//!
//! ```text
//! cargo run -p jobs -- [--for DURATION] [--grace DURATION] [FILE]
//! cargo run -p jobs -- --next COUNT [--from MOMENT] [FILE]
//! ```
//!
//! With `--next` it runs nothing, and prints when the jobs would run, with each change of the
//! clocks on the way. A line of a crontab means here what it means to cronie, the cron of many
//! Linux systems, also in the hours around such a change.
//!
//! Without a file it takes the sample beside it, which shows the format, and ends by itself after a
//! few seconds. It exits with 0 when it was stopped, whatever became of the commands; with 2 if the
//! command line is wrong or the file is broken; and with 1 if it could not do its work. If its
//! output cannot be written any more, it stops at once; that is an error unless the reader has gone.
//!
//! It needs only a few threads, whatever the number of jobs: `crew.rs` explains how. The system
//! limits how many commands can run at a time: each has a pipe, which is an open file.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a program of its own: it does not use the crate's inner parts"
)]

mod attempt;
#[allow(dead_code, reason = "other examples use the rest")]
#[path = "../../common/mod.rs"]
mod common;
mod config;
mod crew;
mod draft;
mod fault;
mod jitter;
mod lateness;
mod moment;
mod options;
mod outcome;
mod overdue;
mod preview;
mod process;
mod report;
mod retry;
mod run;
mod runner;
mod schedule;
mod tally;
mod timetable;
mod values;
mod wall;
mod watch;

use std::{process::ExitCode, time::Instant};

use crate::options::{Options, USAGE};

fn main() -> ExitCode {
    let begun = Instant::now();
    let options = match common::options(USAGE, Options::parse) {
        Ok(options) => options,
        Err(code) => return code,
    };
    let text = common::read_text(&options.file);
    let plan = match text.and_then(|text| config::check(&options.file, &text)) {
        Ok(plan) => plan,
        Err(error) => return common::refuse(&error),
    };
    if let Some(preview) = &options.preview {
        return match preview.lines(&plan) {
            Ok(lines) => {
                lines.iter().for_each(|line| common::say(format_args!("{line}")));
                ExitCode::SUCCESS
            }
            Err(error) => common::refuse(&error),
        };
    }
    let report = run::run(&options, &plan, begun);
    match report.as_ref().map(|report| report.unwritten()) {
        Ok(Some(error)) => ExitCode::from(common::unwritten(error)),
        _ => common::end(report.map(drop)),
    }
}
