//! One replica of a program that has a periodic task. Several of them share the schedule: each tick is run by one.
//!
//! ```text
//! crates/punctual-jobs/examples/three_replicas.sh
//! cargo run -p punctual-jobs --features gate --example replica -- A 'host=/run/postgresql user=app dbname=app'
//! ```
//!
//! The script starts a server of its own and three replicas on one terminal, and kills one of them in the
//! middle of a run. The arguments of the program are its name, and where the database is.

#![allow(clippy::print_stdout, reason = "that is what it does")]

use std::{
    env,
    error::Error,
    io::{self, Write},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use punctual::{FailurePolicy, ScheduledThreadPoolExecutor, with_context};
use punctual_jobs::{
    aligned,
    gate::{Gate, GateEvent},
};

const PERIOD: Duration = Duration::from_secs(1);
const WORK: Duration = Duration::from_millis(600);
/// A run that has not been heard of for so long may be taken over.
const LEASE: Duration = Duration::from_secs(2);

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut words = env::args().skip(1);
    let (Some(me), Some(url)) = (words.next(), words.next()) else {
        return Err("usage: replica NAME URL".into());
    };
    let says = me.clone();
    let gate = Gate::postgres(url)
        .lease(LEASE)
        .on_event(move |event| {
            // A replica that comes too late is what happens all the time.
            if let GateEvent::Lost { fence, .. } = event {
                say(&says, format_args!("has lost the lease of fence {fence}"));
            }
        })
        .open()?;
    let executor = ScheduledThreadPoolExecutor::new(1);
    let sweep = executor.task().name("sweep").gate(gate.for_name("sweep")?);
    // By default a failed run ends the task on this replica.
    let sweep = sweep.on_failure(FailurePolicy::resume());
    let body = with_context(move |run| {
        let planned = SystemTime::now() - run.lateness();
        let (tick, fence) = (second_of(planned), run.fencing_token().unwrap_or_default());
        say(&me, format_args!("sweeps for tick {tick}, fence {fence}"));
        thread::sleep(WORK);
        say(&me, format_args!("has swept for tick {tick}, fence {fence}"));
    });
    let sweep = sweep.repeat(aligned(PERIOD), body)?;
    sweep.join()?;
    Ok(())
}

/// The full second that is nearest, by the last two digits of a clock on the wall.
fn second_of(moment: SystemTime) -> String {
    let since = moment.duration_since(UNIX_EPOCH).unwrap_or_default() + PERIOD / 2;
    format!(":{:02}", since.as_secs() % 60)
}

/// Writes one line, whole, whichever other process writes to the terminal.
fn say(me: &str, what: std::fmt::Arguments<'_>) {
    let line = format!("{me} {what}\n");
    // A reader that has gone is no error of this program.
    let _ = io::stdout().lock().write_all(line.as_bytes());
}
