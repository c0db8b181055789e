//! Several customers share a pool of workers, each with a group of its own.
//!
//! One submits far more than its share, and the others do not notice. One has not paid: its group is paused,
//! and what it has missed is made up for later. One leaves, and its group is shut down with a
//! deadline, while the pool goes on.
//!
//! ```text
//! cargo run --example tenants
//! ```

#![allow(
    clippy::disallowed_methods,
    reason = "a program of its own: it does not use the crate's inner parts"
)]

#[allow(dead_code, reason = "other examples use the rest")]
mod common;

use std::{
    error::Error,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use punctual::{Grace, Group, RejectedExecutionError, ScheduledThreadPoolExecutor, trigger::every};

use crate::common::say;

const WORKERS: usize = 4;
const WORK: Duration = Duration::from_millis(10);

fn main() -> ExitCode {
    common::end(demonstrate())
}

fn demonstrate() -> Result<(), Box<dyn Error + Send + Sync>> {
    let executor = ScheduledThreadPoolExecutor::new(WORKERS);
    // However much a customer submits, it has at most two workers, and one is always left to others.
    let customer = |name| executor.group(name).limit(2).reserve(1).build();
    let (busy, late, leaving) = (customer("busy")?, customer("late")?, customer("leaving")?);
    nobody_occupies_the_pool(&busy, &late)?;
    an_unpaid_bill(&late)?;
    a_customer_leaves(&leaving)?;
    say(format_args!("the pool goes on: {}", executor.submit(|| "it does")?.join()?));
    Ok(executor.close()?)
}

/// The work of one customer; `most` becomes the largest number of jobs that ran at once.
fn work(now: &AtomicUsize, most: &AtomicUsize) {
    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
    thread::sleep(WORK);
    now.fetch_sub(1, Ordering::SeqCst);
}

fn nobody_occupies_the_pool(
    busy: &Group,
    other: &Group,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let counts = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let jobs = (0..20).map(|_| {
        let counts = Arc::clone(&counts);
        busy.task().submit(move || work(&counts.0, &counts.1))
    });
    let jobs = jobs.collect::<Result<Vec<_>, RejectedExecutionError>>()?;
    other.task().submit(|| ())?.join()?;
    let ahead = busy.statistics();
    say(format_args!(
        "{}: a job of {} has overtaken {} jobs",
        busy.name(),
        other.name(),
        ahead.pending + ahead.active
    ));
    for job in &jobs {
        job.join()?;
    }
    let most = counts.1.load(Ordering::SeqCst);
    say(format_args!("{}: 20 jobs, never more than {most} at once", busy.name()));
    Ok(())
}

fn an_unpaid_bill(late: &Group) -> Result<(), Box<dyn Error + Send + Sync>> {
    let report = late.task().repeat(every(WORK).first_in(WORK), || { /* write the report */ })?;
    late.pause();
    let before = late.statistics().runs;
    thread::sleep(5 * WORK);
    let during = late.statistics().runs - before;
    say(format_args!("{}: paused, {during} reports meanwhile", late.name()));
    late.resume();
    while late.statistics().runs == before + during {
        thread::yield_now();
    }
    report.cancel();
    say(format_args!(
        "{}: has paid, and one report makes up for those that were missed",
        late.name()
    ));
    Ok(())
}

fn a_customer_leaves(leaving: &Group) -> Result<(), Box<dyn Error + Send + Sync>> {
    leaving.task().name("farewell").schedule(WORK, || ())?;
    leaving.task().name("next year").schedule(Duration::from_secs(3600), || ())?;
    let report = leaving.shutdown_within(Grace::patience(10 * WORK).then(10 * WORK))?;
    let names = |tasks: &[punctual::TaskSummary]| {
        tasks.iter().filter_map(|task| task.name()).collect::<Vec<_>>().join(", ")
    };
    say(format_args!(
        "{}: ran {}; cancelled {}; nothing is left: {}",
        leaving.name(),
        names(&report.ran),
        names(&report.cancelled),
        report.is_terminated
    ));
    let refused = leaving.task().submit(|| ()).err().ok_or("it was shut down")?;
    say(format_args!("{}: {refused}", leaving.name()));
    Ok(())
}
