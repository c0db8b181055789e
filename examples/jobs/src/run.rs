//! A run of the program: starts the jobs, waits until they have ended or are to stop, and stops them.

use std::{
    error::Error,
    sync::Arc,
    time::{Duration, Instant},
};

use punctual::{CancellationToken, Handle, RejectedExecutionError, ScheduledThreadPoolExecutor};

use crate::{
    config::{Job, Plan},
    crew::Crew,
    options::Options,
    report::Report,
    runner::Runner,
    values::readable,
};

/// Runs the jobs until they are stopped, or have all ended, and reports.
pub(crate) fn run(
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

/// Two tokens: the first signal (Ctrl-C, SIGTERM, SIGHUP) cancels one, the next the other.
fn stop_on_signals() -> Result<(CancellationToken, CancellationToken), ctrlc::Error> {
    let (stop, hurry) = (CancellationToken::new(), CancellationToken::new());
    let tokens = (stop.clone(), hurry.clone());
    ctrlc::set_handler(move || {
        let next = if stop.is_cancelled() { &hurry } else { &stop };
        next.cancel();
    })?;
    Ok(tokens)
}

/// Cancels the token after `delay`; before this function returns if the delay is zero.
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
