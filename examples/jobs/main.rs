//! Runs the commands of a job file: once, at a fixed rate or with a fixed delay.
//!
//! Each run is reported with how late it began and how long it took, and at the end there is a
//! table of all jobs. It ends when its time is over, or on Ctrl-C or a SIGTERM: then nothing more
//! is started, and the commands that run may finish within a grace period, after which they are
//! told to stop. It also ends when no job has another run to come.
//!
//! ```text
//! cargo run --example jobs -- [--for DURATION] [--grace DURATION] [FILE]
//! ```
//!
//! Without a file it runs the sample beside it, `jobs.toml`, which says what can be in one, and
//! ends by itself after a few seconds. It exits with 0 when it was stopped, whatever became of
//! the commands; with 2 if it was called wrongly or the file is broken; and with 1 if it could
//! not do its work.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a program of its own: it does not use the crate's inner parts"
)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it talks to its user")]

mod config;
mod report;
mod runner;

use std::{
    error::Error, ffi::OsString, path::PathBuf, process::ExitCode, sync::Arc, time::Duration,
};

use punctual::{CancellationToken, Handle, RejectedExecutionError, ScheduledThreadPoolExecutor};

use crate::{
    config::{Job, Plan, parse_duration, readable},
    report::{Report, say},
    runner::Runner,
};

const USAGE: &str = "\
Usage: jobs [--for DURATION] [--grace DURATION] [FILE]

Runs the commands of a job file until it is stopped by Ctrl-C, or the time is over.

  --for DURATION    stop after this time, whatever the file says
  --grace DURATION  how long commands may go on after that [default: 2s]
  FILE              the job file [default: the sample of the example]

A duration is written as \"250ms\", \"1.5s\" or \"1h 30min\".";

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/jobs/jobs.toml");
const GRACE: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args_os().skip(1)) {
        Ok(Some(options)) => options,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("error: {error}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let plan = match config::load(&options.file) {
        Ok(plan) => plan,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    match run(&options, &plan) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What the command line says.
struct Options {
    file: PathBuf,
    run_for: Option<Duration>,
    grace: Duration,
}

impl Options {
    /// Nothing if only the usage is asked for.
    fn parse(mut args: impl Iterator<Item = OsString>) -> Result<Option<Self>, String> {
        let (mut file, mut run_for, mut grace) = (None, None, GRACE);
        while let Some(arg) = args.next() {
            match arg.to_str() {
                Some("--help" | "-h") => return Ok(None),
                Some(option @ "--for") => run_for = Some(duration(option, args.next())?),
                Some(option @ "--grace") => grace = duration(option, args.next())?,
                Some(option) if option.starts_with('-') => {
                    return Err(format!("unknown option {option}"));
                }
                _ if file.is_some() => {
                    return Err(format!("a second file, {}", arg.to_string_lossy()));
                }
                _ => file = Some(PathBuf::from(arg)),
            }
        }
        Ok(Some(Self { file: file.unwrap_or_else(|| SAMPLE.into()), run_for, grace }))
    }
}

fn duration(option: &str, value: Option<OsString>) -> Result<Duration, String> {
    let value = value.ok_or_else(|| format!("{option} wants a duration"))?;
    parse_duration(&value.to_string_lossy()).map_err(|error| format!("{option}: {error}"))
}

/// Runs the jobs until they are stopped, or have all ended, and reports.
fn run(options: &Options, plan: &Plan) -> Result<(), Box<dyn Error + Send + Sync>> {
    // A thread for each job: none is late because of another.
    let executor = ScheduledThreadPoolExecutor::builder()
        .core_pool_size(plan.jobs.len())
        .thread_name("job")
        .executes_existing_delayed_tasks_after_shutdown(false)
        .build()?;
    // Each job may have one that follows its command, and one keeps the time.
    let helpers = ScheduledThreadPoolExecutor::builder()
        .core_pool_size(plan.jobs.len() + 1)
        .thread_name("helper")
        .build()?;
    let (stop, hurry) = stop_on_signals()?;
    let run_for = options.run_for.or(plan.run_for);
    greet(options, plan, run_for);

    let report = Arc::new(Report::new(&plan.jobs)?);
    if let Some(run_for) = run_for {
        raise_after(&helpers, run_for, &stop)?;
    }
    run_jobs(&plan.jobs, &report, &executor, &helpers, &stop)?;
    if stop.is_cancelled() {
        let grace = readable(options.grace);
        say(format_args!("\nStopping; commands that run have {grace} to finish.\n"));
    }
    raise_after(&helpers, options.grace, &hurry)?;
    executor.close_unless(&hurry)?;
    // Not waited for: one may follow a command that could not be ended.
    helpers.shutdown_background();
    say(format_args!("\n{}", report.table()));
    Ok(())
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

fn raise_after(
    helpers: &Handle,
    delay: Duration,
    token: &CancellationToken,
) -> Result<(), RejectedExecutionError> {
    let token = token.clone();
    helpers.schedule(delay, move || token.cancel()).map(drop)
}

fn greet(options: &Options, plan: &Plan, run_for: Option<Duration>) {
    let jobs = match plan.jobs.len() {
        1 => "1 job".to_owned(),
        count => format!("{count} jobs"),
    };
    let limit = match run_for {
        Some(limit) => format!("for {}", readable(limit)),
        None => "without a limit".to_owned(),
    };
    let file = options.file.display();
    say(format_args!("{jobs} from {file}, {limit}; Ctrl-C stops.\n"));
}

/// Starts the jobs, and waits for `stop`, or until none has a run to come: a future of one that
/// goes on for ever never ends, so with one of these it is `stop` alone.
fn run_jobs(
    jobs: &[Job],
    report: &Arc<Report>,
    executor: &Handle,
    helpers: &Handle,
    stop: &CancellationToken,
) -> Result<(), RejectedExecutionError> {
    let mut futures = Vec::new();
    for (index, job) in jobs.iter().enumerate() {
        futures.push(Runner::new(job, index, report, helpers).start(executor)?);
    }
    for future in &futures {
        if let Some(Err(error)) = future.join_unless(stop) {
            eprintln!("error: {}: {error}", future.name().unwrap_or_default());
        }
    }
    Ok(())
}
