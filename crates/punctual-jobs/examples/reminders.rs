//! Reminders that are sent later, moved and cancelled: in this process, or on PostgreSQL.
//!
//! ```text
//! cargo run -p punctual-jobs --example reminders
//! cargo run -p punctual-jobs --example reminders --features postgres -- --postgres postgres://app@localhost/app
//! ```
//!
//! The program is the same; the line that opens the queue is not. On PostgreSQL it may be started several times
//! at once, and each reminder is sent by one of the processes.

#![allow(clippy::print_stdout, reason = "that is what it does")]

use std::{
    error::Error,
    sync::mpsc::{Receiver, Sender, channel},
    time::Duration,
};

use punctual::{Backoff, Grace, ScheduledThreadPoolExecutor};
#[cfg(feature = "postgres")]
use punctual_jobs::Postgres;
use punctual_jobs::{InMemory, Job, JobError, JobQueue, JobRun, Jobs};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Remind {
    user: u64,
    text: String,
}

impl Job for Remind {
    const NAME: &'static str = "remind";
}

/// The handlers of the program's jobs, whichever queue it has.
fn jobs(sent: Sender<String>) -> Jobs {
    Jobs::new()
        .on(move |run: &JobRun, job: Remind| {
            // The first try of this one fails, as mail sometimes does.
            if job.text.contains("call") && run.attempt == 1 {
                return Err(JobError::new("the mail server is busy"));
            }
            sent.send(format!("to {}: {} (attempt {})", job.user, job.text, run.attempt))?;
            Ok(())
        })
        .max_attempts::<Remind>(5)
        .backoff::<Remind>(Backoff::exponential(
            Duration::from_millis(200)..=Duration::from_secs(60),
        ))
        .timeout::<Remind>(Duration::from_secs(30))
        .on_discarded(|job| println!("discarded: {} after {}", job.payload, job.last_error))
}

/// The one line that differs.
fn open(
    jobs: Jobs,
    executor: &ScheduledThreadPoolExecutor,
) -> Result<JobQueue, Box<dyn Error + Send + Sync>> {
    match std::env::args().skip_while(|word| word != "--postgres").nth(1) {
        None => Ok(jobs.open(InMemory::on(executor))?),
        #[cfg(feature = "postgres")]
        Some(url) => Ok(jobs.open(Postgres::on(executor, url))?.into()),
        #[cfg(not(feature = "postgres"))]
        Some(_) => Err("the program was built without the feature `postgres`".into()),
    }
}

fn remind(queue: &JobQueue, sent: &Receiver<String>) -> Result<(), Box<dyn Error + Send + Sync>> {
    let soon = Duration::from_millis(300);
    let to = |user, text: &str| Remind { user, text: text.to_owned() };
    queue.after(soon, to(1, "tea")).key("remind/1").enqueue()?;
    queue.after(2 * soon, to(2, "call home")).key("remind/2").enqueue()?;
    queue.after(soon, to(3, "nothing")).key("remind/3").enqueue()?;
    // Asked again: the old one is replaced.
    queue.after(3 * soon, to(1, "tea and cake")).key("remind/1").enqueue()?;
    println!("moved: {:?}", queue.reschedule("remind/2", soon)?);
    println!("cancelled: {:?}", queue.cancel("remind/3")?);
    for _ in 0..2 {
        println!("{}", sent.recv_timeout(Duration::from_secs(60))?);
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let executor = ScheduledThreadPoolExecutor::new(2);
    let (sender, sent) = channel();
    let queue = open(jobs(sender), &executor)?;
    remind(&queue, &sent)?;
    let report = queue
        .shutdown_within(Grace::patience(Duration::from_secs(5)).then(Duration::from_secs(1)))?;
    println!("shut down, released: {}", report.released.len());
    // A handler that does not stop ends with the process: after this the drop of the executor waits for nothing.
    executor.shutdown_within(Grace::patience(Duration::ZERO).then(Duration::from_secs(1)))?;
    Ok(())
}
