//! A service that stops cleanly on Ctrl-C, or on the SIGTERM of a service manager.
//!
//! It polls at a fixed rate, copies a long list piece by piece, and has a report to write in an hour. When it is asked
//! to stop, it starts nothing new. The copy may go on for a moment; then it is asked to stop as well, and does so
//! between two pieces. A report says what became of each task. A task that would not stop would end with the program,
//! when `main` returns: after a shutdown with a deadline the drop of the executor waits for nothing. A second Ctrl-C ends the
//! program at once.
//!
//! ```text
//! cargo run --example ctrl_c
//! ```

#![allow(
    clippy::disallowed_methods,
    reason = "a program of its own: it does not use the crate's inner parts"
)]

#[allow(dead_code, reason = "other examples use the rest")]
mod common;

use std::{
    error::Error,
    process::{self, ExitCode},
    time::Duration,
};

use punctual::{
    CancellationToken, Grace, ScheduledThreadPoolExecutor, TaskContext, TaskSummary,
    trigger::every, with_context,
};

use crate::common::say;

const POLL: Duration = Duration::from_millis(250);
const HOUR: Duration = Duration::from_secs(3600);
/// How long one piece takes to copy.
const PIECE: Duration = Duration::from_millis(100);
const PIECES: u32 = 36_000;
/// How long tasks may go on after the first Ctrl-C, and how long they may take to stop then.
const GRACE: Grace = Grace::patience(Duration::from_millis(300)).then(Duration::from_secs(5));
/// The exit status that a shell reports of a program that Ctrl-C has ended.
const INTERRUPTED: i32 = 130;

fn main() -> ExitCode {
    common::end(serve())
}

fn serve() -> Result<(), Box<dyn Error + Send + Sync>> {
    let executor = ScheduledThreadPoolExecutor::new(2);
    let stop = stop_on_signals()?;
    say(format_args!("Serving; Ctrl-C stops."));
    executor
        .task()
        .name("poll")
        .repeat(every(POLL).first_in(POLL), || say(format_args!("poll")))?;
    executor.task().name("copy").execute(with_context(copy))?;
    executor.task().name("report").schedule(HOUR, || say(format_args!("all is well")))?;

    stop.wait();
    say(format_args!("Stopping: what runs may go on for {:?}.", GRACE.patience));
    let report = executor.shutdown_within(GRACE)?;
    list("ran to its end", &report.ran);
    list("cancelled", &report.cancelled);
    list("still running", &report.still_running);
    if !report.is_terminated {
        return Err("some tasks did not stop, and end with the program".into());
    }
    Ok(())
}

/// Returns a token that the first signal cancels. The second signal ends the program.
fn stop_on_signals() -> Result<CancellationToken, ctrlc::Error> {
    let stop = CancellationToken::new();
    let token = stop.clone();
    ctrlc::set_handler(move || {
        if token.is_cancelled() {
            process::exit(INTERRUPTED);
        }
        token.cancel();
    })?;
    Ok(stop)
}

/// Copies the pieces. Its token ends it between two of them.
fn copy(run: &TaskContext) {
    for piece in 0..PIECES {
        // The sleep is the work on one piece; it ends early when the token is cancelled.
        if run.token().sleep(PIECE).is_err() {
            say(format_args!("the copy stops after {piece} of {PIECES} pieces"));
            return;
        }
    }
}

fn list(what: &str, tasks: &[TaskSummary]) {
    let names: Vec<_> = tasks.iter().filter_map(TaskSummary::name).collect();
    if !names.is_empty() {
        say(format_args!("{what}: {}", names.join(", ")));
    }
}
