//! What a limit costs where it is not what binds: jobs of five milliseconds on several machines.
//!
//! ```text
//! cargo bench -p punctual-jobs --features postgres --bench limits [-- JOBS MACHINES SLOTS]
//! ```
//!
//! It starts a server of its own, as the tests do. The machines are queues of this process, each with an executor of its own. Each line
//! has the jobs per second, and how many statements the server has rolled back.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    missing_docs,
    reason = "a program that measures, and that ends when something fails"
)]

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread::sleep,
    time::{Duration, Instant},
};

use punctual::{Grace, ScheduledThreadPoolExecutor};
use punctual_jobs::{Job, JobLimit, JobRun, Jobs, Postgres};
use serde::{Deserialize, Serialize};

#[path = "../tests/support/mod.rs"]
mod support;

use support::server::Server;

#[derive(Serialize, Deserialize)]
struct Nap {}

impl Job for Nap {
    const NAME: &'static str = "nap";
}

fn main() {
    let mut numbers = std::env::args().filter_map(|word| word.parse().ok());
    let mut number = |usual: usize| numbers.next().unwrap_or(usual);
    let (jobs, machines, slots) = (number(2000), number(2), number(4));
    println!("{jobs} jobs of 5 ms, {machines} machines of {slots} slots");
    round("no limit", jobs, (machines, slots), None);
    round("at_once(6)", jobs, (machines, slots), Some(JobLimit::at_once(6)));
    let of_key = JobLimit::at_once(1).for_each_key();
    round("at_once(1) for each of eight keys", jobs, (machines, slots), Some(of_key));
}

fn round(what: &str, jobs: usize, (machines, slots): (usize, usize), limit: Option<JobLimit>) {
    let server = Server::start();
    let runs = Arc::<AtomicUsize>::default();
    let machines: Vec<_> = (0..machines)
        .map(|_| {
            let (executor, runs) = (ScheduledThreadPoolExecutor::new(slots), Arc::clone(&runs));
            let kinds = Jobs::new().on(move |_: &JobRun, _: Nap| {
                sleep(Duration::from_millis(5));
                runs.fetch_add(1, Ordering::SeqCst);
                Ok(())
            });
            let kinds = match limit {
                Some(limit) => kinds.limit::<Nap>(limit),
                None => kinds,
            };
            (kinds.open(Postgres::on(&executor, server.url()).slots(slots)).unwrap(), executor)
        })
        .collect();
    server.sql(&format!(
        "insert into punctual.job (name, payload, limit_key, due)
         select 'nap', '{{}}', (n % 8)::text, true from generate_series(1, {jobs}) n; notify punctual"
    ));
    let begun = Instant::now();
    while runs.load(Ordering::SeqCst) < jobs {
        sleep(Duration::from_millis(1));
    }
    let speed = jobs as f64 / begun.elapsed().as_secs_f64();
    for (queue, _executor) in machines {
        queue.shutdown_within(Grace::patience(Duration::from_secs(30))).unwrap();
    }
    let undone = server
        .value("select xact_rollback from pg_stat_database where datname = current_database()");
    println!("{what}: {speed:.0} jobs/s, {undone} rollbacks");
}
