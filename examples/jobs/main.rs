//! A small cron: runs the commands of a job file once, at a fixed rate, with a fixed delay, or by
//! the calendar of a time zone.
//!
//! A job says when (`after`, `every`, `delay`, or `at = "0 3 * * *"` with a `zone`), and may say
//! how far its runs are put off (`jitter`), how often a command that fails is tried (`retry`), how
//! long it may take (`timeout`), and what becomes of runs that are missed (`on_missed`) or that are
//! due while the one before still runs (`overlap`). The sample, `jobs.toml`, explains each.
//!
//! It reports each run with its lateness and its duration, and prints a table of all jobs at the
//! end. It ends when its time is over, or on Ctrl-C or a SIGTERM: then it starts nothing more, and
//! running commands may finish within a grace period, after which they are told to stop. It also
//! ends when no job has another run to come.
//!
//! ```text
//! cargo run --features cron --example jobs -- [--for DURATION] [--grace DURATION] [FILE]
//! cargo run --features cron --example jobs -- --next COUNT [--from MOMENT] [FILE]
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
//! It needs only a few threads, whatever the number of jobs: `runner.rs` explains how. The system
//! limits how many commands can run at a time: each has a pipe, which is an open file.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a program of its own: it does not use the crate's inner parts"
)]

#[allow(dead_code, reason = "other examples use the rest")]
#[path = "../common/mod.rs"]
mod common;
mod config;
mod fault;
mod jitter;
mod lateness;
mod options;
mod outcome;
mod preview;
mod process;
mod report;
mod runner;
mod timetable;
mod values;
mod watch;

use std::{
    error::Error,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use punctual::{CancellationToken, Handle, RejectedExecutionError, ScheduledThreadPoolExecutor};

use crate::{
    config::{Job, Plan},
    options::{Options, USAGE},
    report::Report,
    runner::{Crew, Runner},
    values::readable,
};

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
    let report = run(&options, &plan, begun);
    match report.as_ref().map(|report| report.unwritten()) {
        Ok(Some(error)) => ExitCode::from(common::unwritten(error)),
        _ => common::end(report.map(drop)),
    }
}

/// Runs the jobs until they are stopped, or have all ended, and reports.
fn run(
    options: &Options,
    plan: &Plan,
    begun: Instant,
) -> Result<Arc<Report>, Box<dyn Error + Send + Sync>> {
    // The watcher comes first because it also enforces the time limit, which counts from the
    // beginning.
    let watcher =
        ScheduledThreadPoolExecutor::builder().core_pool_size(1).thread_name("watcher").build()?;
    let starters = ScheduledThreadPoolExecutor::builder().thread_name("starter").build()?;
    let (stop, hurry) = stop_on_signals()?;
    let run_for = options.run_for.or(plan.run_for);
    if let Some(run_for) = run_for {
        raise_after(&watcher, run_for.saturating_sub(begun.elapsed()), &stop)?;
    }

    let report = Arc::new(Report::new(&plan.jobs, begun, vec![stop.clone(), hurry.clone()]));
    greet(&report, options, plan, run_for);
    let over = CancellationToken::new();
    let started = start(
        &plan.jobs,
        Crew {
            starters: starters.handle(),
            watcher: watcher.handle(),
            report: Arc::clone(&report),
            hurry: hurry.clone(),
            over: vec![over.clone(), stop.clone()],
        },
        &stop,
    );
    if started.is_err() {
        stop.cancel();
        hurry.cancel();
    }

    stop.wait();
    if !over.is_cancelled() {
        let grace = readable(options.grace);
        report.say(format_args!("\nStopping; commands that run have {grace} to finish.\n"));
    }
    drop(starters.shutdown_now());
    raise_after(&watcher, options.grace, &hurry)?;
    over.wait();
    report.say(format_args!("\n{}", report.table()));
    started?;
    Ok(report)
}

/// Two tokens: the first signal (Ctrl-C, SIGTERM, SIGHUP) raises one, the next the other.
fn stop_on_signals() -> Result<(CancellationToken, CancellationToken), ctrlc::Error> {
    let (stop, hurry) = (CancellationToken::new(), CancellationToken::new());
    let tokens = (stop.clone(), hurry.clone());
    ctrlc::set_handler(move || {
        let next = if stop.is_cancelled() { &hurry } else { &stop };
        next.cancel();
    })?;
    Ok(tokens)
}

/// Raises the token after `delay`; before this function returns if the delay is zero.
fn raise_after(
    executor: &Handle,
    delay: Duration,
    token: &CancellationToken,
) -> Result<(), RejectedExecutionError> {
    if delay.is_zero() {
        token.cancel();
        return Ok(());
    }
    let token = token.clone();
    executor.schedule(delay, move || token.cancel()).map(drop)
}

fn greet(report: &Report, options: &Options, plan: &Plan, run_for: Option<Duration>) {
    let jobs = match plan.jobs.len() {
        1 => "1 job".to_owned(),
        count => format!("{count} jobs"),
    };
    let limit = match run_for {
        Some(limit) => format!("for {}", readable(limit)),
        None => "without a limit".to_owned(),
    };
    let file = options.file.display();
    report.say(format_args!("{jobs} from {file}, {limit}; Ctrl-C stops.\n"));
}

/// Starts the jobs, as many as there is time for. From then on only they keep their crew alive.
fn start(jobs: &[Job], crew: Crew, stop: &CancellationToken) -> Result<(), RejectedExecutionError> {
    let crew = Arc::new(crew);
    for (index, job) in jobs.iter().enumerate() {
        if stop.is_cancelled() {
            break;
        }
        Runner::start(job, index, &crew)?;
    }
    Ok(())
}
